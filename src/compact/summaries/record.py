"""The record: the lines of a session that it will need, in its own words, with who said them and where. Pure.

It stands beside a summary and fills the room that the plan gives it. The lines of the previous record compete with new ones, so
what was kept once is kept again as long as it is worth more than what came since. A small part of the room belongs to the words in
which the agent introduced a name, as long as the name is in use.

    - The flag is read in load_config() before the file ... it wins over the environment [m14]
    - read_file said: "def load_config(path):" "    flag = os.environ.get(...)" [m15]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby

from compact.messages import Message, Text, ToolCall, ToolResult
from compact.messages.excerpts import Piece, pieces_of, split_pieces, words_of
from compact.summaries import needs
from compact.summaries.choosing import choose
from compact.summaries.extracting.session_reading import flat, is_written
from compact.summaries.needs import PLAIN_SHAPES, Spoken, Voice, shape_of
from compact.summaries.spoken import spoken_in, text_of_call
from compact.summaries.voices import AGENT, HOST, PERSON, attribute, attributed, defuse, quote, speaker_of

_BETWEEN = " ... "
"""Stands between pieces of the agent's own words that do not follow each other."""
_CHARS_PER_TOKEN = 3.6
_OPENING_TOKENS = 9
"""Roughly what the speaker and the citation of a line cost."""
_PIECE_TOKENS = 2
_MORE = 1.5
"""Pieces are ranked for more than the room, because their cost is an estimate."""
_LEAST_PIECE = 4
"""Tokens. No piece fits into less room than this."""
_INTRODUCING_SHARE = 1 / 8
"""The part of the room that is set aside for the words that introduced a name which is still in use."""
_INTRODUCING_TOKENS = 48
"""As many tokens in any case, in a small room at most half of it."""
_ROUNDS = 4
_LONGEST = 320


@dataclass(frozen=True, slots=True)
class Source:
    """A text that the record may quote: whose it is, who is named as its speaker, and where it stands."""

    voice: Voice
    speaker: str
    cite: str
    text: str
    pieces: tuple[str, ...] | None = None
    """The pieces of a line of the previous record, which were chosen before."""

    def split(self, owner: int) -> list[Piece]:
        """The text in pieces that belong to `owner`."""
        if self.pieces is None:
            return pieces_of(self.text, owner)
        return [Piece(text, owner, 2 * number + 1) for number, text in enumerate(self.pieces)]

    def write(self, pieces: Sequence[Piece]) -> str:
        """The line that quotes these pieces, which are in order."""
        runs = [" ".join(flat(piece.text, _LONGEST) for piece in run) for run in _runs(pieces)]
        if self.speaker == AGENT:
            return f"- {_BETWEEN.join(defuse(run) for run in runs)} {self.cite}"
        return f"- {attribute(self.speaker, [quote(run, self.speaker) for run in runs], self.cite)}"


def sources_of(
    messages: Sequence[Message], numbers: Sequence[int], pointers: frozenset[str]
) -> Iterator[Source]:
    """Every text of these messages. `numbers` are those of the archived transcript.

    `pointers` are the hashes of texts that compact put in place of others; only their excerpts count.
    """
    names = {call.id: call.name for message in messages for call in message.calls}
    for message, number in zip(messages, numbers, strict=True):
        cite = f"[m{number}]"
        for part in message.parts:
            if isinstance(part, ToolCall):
                yield Source("call", AGENT, cite, text_of_call(part))
            elif isinstance(part, ToolResult) and part.text.strip():
                speaker = speaker_of(part.name or names.get(part.call_id))
                yield Source("tool", speaker, cite, _without_pointer(part.text, pointers))
            elif isinstance(part, Text) and part.text.strip() and message.role == "assistant":
                yield Source("agent", AGENT, cite, part.text)
            elif isinstance(part, Text) and part.text.strip():
                is_person = message.starts_turn
                yield Source("user" if is_person else "tool", PERSON if is_person else HOST, cite, part.text)


def carried_sources(lines: Iterable[str]) -> Iterator[Source]:
    """The lines of the previous record, without their list marks. Their citations name their step."""
    for line in lines:
        quoted = attributed(line)
        if quoted is not None:
            speaker, quotes, cite = quoted
            said = tuple(each[1:-1] for each in quotes)
            voice: Voice = "user" if speaker == PERSON else "tool"
            yield Source(voice, speaker, cite, " ".join(said), said)
            continue
        text, _, cite = line.rpartition(" [")
        if not text or not cite.endswith("]"):
            text, cite = line, "]"
        yield Source("agent", AGENT, f"[{cite}" if cite != "]" else "", text, tuple(text.split(_BETWEEN)))


def spoken_again(summary: str) -> Iterator[Spoken]:
    """The lines of an earlier summary, each with the voice that it quotes."""
    lines = [line.removeprefix("- ") for line in summary.splitlines() if line.startswith(("- ", "  "))]
    yield from (Spoken(source.voice, source.text) for source in carried_sources(lines))


def write(
    sources: Sequence[Source],
    kept: Sequence[Message],
    standing: Iterable[str],
    room: int,
    count: Callable[[str], int],
    values: Mapping[str, float] | None = None,
    lasting: Iterable[str] = (),
) -> list[str]:
    """Return the lines that are worth most, in the order of time, of at most `room` tokens in all.

    `kept` are the messages that stay in the context behind these sources; `standing` are further texts that stand there. `values`
    say how likely each word is to be needed; they are worked out if they are not given. What people and the agent say in `lasting`
    texts, which later summaries carry as well, is not said again.
    """
    if room < 2 * _LEAST_PIECE or not sources:
        return []
    if values is None:
        values = needs.weigh([*(Spoken(source.voice, source.text) for source in sources), *spoken_in(kept)])
    known = dict.fromkeys(words_of(standing), 0)
    known.update(dict.fromkeys(words_of(text.text for text in spoken_in(kept)), len(sources)))
    said = "\n".join(flat(text, len(text)) for text in lasting)
    pieces = [
        piece
        for owner, source in enumerate(sources)
        for piece in source.split(owner)
        if source.voice not in ("agent", "user") or flat(piece.text) not in said
    ]
    costs = [len(piece.text) / _CHARS_PER_TOKEN + _PIECE_TOKENS for piece in pieces]
    worded = {owner for owner, source in enumerate(sources) if source.voice in ("agent", "user")}
    used = _names_in_use(sources, kept)
    set_aside = min(max(room * _INTRODUCING_SHARE, _INTRODUCING_TOKENS), room / 2)
    first = _introducing(sources, pieces, costs, used, values, set_aside)
    known.update(dict.fromkeys(words_of(pieces[place].text for place in first), 0))
    order = choose(pieces, costs, values, known, room * _MORE, _OPENING_TOKENS, worded)
    order = [*first, *(place for place in order if place not in first)]
    filling = _Filling(sources, [pieces[place] for place in order], count)
    return filling.fill(room)


def _names_in_use(sources: Sequence[Source], kept: Sequence[Message]) -> set[str]:
    """The names that people and the agent write since the previous record."""
    new = [source.text for source in sources if source.pieces is None and source.voice != "tool"]
    new += [text.text for text in spoken_in(kept) if text.voice != "tool"]
    return {word for word in words_of(new) if shape_of(word) not in (None, *PLAIN_SHAPES)}


def _introducing(
    sources: Sequence[Source],
    pieces: Sequence[Piece],
    costs: Sequence[float],
    used: Set[str],
    values: Mapping[str, float],
    room: float,
) -> list[int]:
    """The pieces of the previous record in which the agent first wrote of names that are in use, as many as cost `room`.

    A newer statement about a name is worth more than an older one, but it seldom says again what the first one said: what the
    name stands for, and why.
    """
    if all(source.pieces is None for source in sources):
        return []
    introduced: set[str] = set()
    gains: dict[int, float] = {}
    for place, (piece, words) in enumerate(zip(pieces, split_pieces(pieces), strict=True)):
        source = sources[piece.owner]
        if source.pieces is None or source.voice != "agent":
            continue
        names = [word for word in words if word in used and word not in introduced]
        introduced.update(names)
        gain = sum(values.get(name, 0.0) for name in names)
        if gain > 0:
            gains[place] = gain / costs[place]
    found = []
    for place in sorted(gains, key=lambda place: (-gains[place], place)):
        cost = costs[place] + _OPENING_TOKENS
        if cost <= room:
            room -= cost
            found.append(place)
    return found


class _Filling:
    """The record while it is being filled: pieces are taken in their order, as many as fit."""

    def __init__(self, sources: Sequence[Source], waiting: list[Piece], count: Callable[[str], int]) -> None:
        self._sources, self._count = sources, count
        self._waiting = waiting
        self._taken: list[Piece] = []
        self._opened: set[int] = set()
        self._written: dict[int, tuple[list[Piece], str]] = {}

    def fill(self, room: int) -> list[str]:
        """Take what fits. The cost of a piece is only known for certain once all lines are written."""
        left = float(room)
        for _ in range(_ROUNDS):
            self._take(left)
            lines = self._lines()
            left = room - self._count("\n".join(lines))
            if _LEAST_PIECE * 2 > left >= 0 or (left > 0 and not self._waiting):
                break
        while left < 0 and self._taken:
            del self._taken[-max(1, len(self._taken) // 50) :]
            lines = self._lines()
            left = room - self._count("\n".join(lines))
        return lines if left >= 0 else []

    def _take(self, room: float) -> None:
        if room < 0:
            # The last ones were the least valuable.
            while self._taken and room < 0:
                room += self._cost(self._taken.pop())
            return
        skipped = []
        for place, piece in enumerate(self._waiting):
            if room < _LEAST_PIECE:
                skipped += self._waiting[place:]
                break
            cost = self._cost(piece)
            if cost > room:
                skipped.append(piece)
                continue
            room -= cost
            self._taken.append(piece)
            self._opened.add(piece.owner)
        self._waiting = skipped

    def _cost(self, piece: Piece) -> int:
        tokens = self._count(flat(piece.text, _LONGEST)) + _PIECE_TOKENS
        if piece.owner not in self._opened:
            tokens += self._count(self._sources[piece.owner].write([])) + 1
        return tokens

    def _lines(self) -> list[str]:
        taken = sorted(self._taken, key=lambda piece: (piece.owner, piece.line, piece.part))
        return [self._line(owner, list(own)) for owner, own in groupby(taken, key=lambda piece: piece.owner)]

    def _line(self, owner: int, pieces: list[Piece]) -> str:
        written = self._written.get(owner)
        if written is None or written[0] != pieces:
            written = self._written[owner] = pieces, self._sources[owner].write(pieces)
        return written[1]


def _runs(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Group pieces that follow each other in their text."""
    run: list[Piece] = []
    for piece in pieces:
        if run and not _follows(piece, run[-1]):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _follows(piece: Piece, before: Piece) -> bool:
    if piece.line == before.line:
        return piece.part == before.part + 1
    return piece.line == before.line + before.text.count("\n") + 1 and not piece.part


def _without_pointer(text: str, pointers: frozenset[str]) -> str:
    return text.partition("\n")[2] if is_written(text, pointers) else text
