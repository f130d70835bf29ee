"""Summaries without a model: the facts of a session under the headings of its strategy, in the session's own words.

Every section has a quota, so that none starves another; what a section does not need goes to the rest. The facts of the
previous summary are carried over, those that the session still mentions first. The same input gives the same bytes.

The agent's own words stand as they are. Everybody else is quoted by name, the lines of one message together:
`- read_file said: "..." "..." [m12]`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compact.messages.excerpts import Piece, choose, pieces_of, words_of, worth_of
from compact.summaries import strategies
from compact.summaries.extracting.extractors import EXTRACTORS, Fact
from compact.summaries.extracting.session_reading import Reading, Source, flat, read
from compact.summaries.request import SummaryRequest, cite_step
from compact.summaries.strategies import DETAILS, Section
from compact.summaries.voices import (
    AGENT,
    PERSON,
    attribute,
    attributed,
    closed,
    defuse,
    fitting_lines,
    quote,
)

_CARRIED = re.compile(r"\[(?:v\d+ )?m\d+\]")
_CITED = re.compile(r"\s*\[(?:v\d+ )?m\d+\]$|^\[(?:v\d+ )?m\d+\]\s*")
_LEAST_LINE = 4
"""Tokens. No fact fits into less room than this."""
_CARRIED_PLACE = -1
"""The place of a fact of the previous summary, before all messages."""
_CARRIED_SHARE = 0.5
"""The share of a section's quota that facts of the previous summary may take before new ones are considered."""
_FACT_CHARS = 640
_DETAIL_CHARS = 240
_SHORTENED = 12
"""Tokens. With less than twice this room left, the next line is shortened instead of left out."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A fact as it is printed, and its cost."""

    place: int
    rank: int
    text: str
    """The whole line, or the quote alone if somebody is quoted."""
    tokens: int
    """What it costs as a line of its own."""
    speaker: str = AGENT
    cite: str = ""
    added: int = 0
    """What a quote costs beside another one of the same message."""

    @property
    def source(self) -> tuple[str, str] | None:
        """Whom it quotes, and where; None for the agent's own words."""
        return (self.speaker, self.cite) if self.speaker else None


@dataclass(slots=True)
class _Filling:
    """A section while it is being filled."""

    section: Section
    waiting: list[_Line]
    heading_tokens: int
    taken: list[_Line] = field(default_factory=list)
    spent: int = 0
    quoted: set[tuple[str, str]] = field(default_factory=set)
    """Whom the lines that were taken quote."""

    def cost(self, line: _Line) -> int:
        """What it costs to print one more line."""
        tokens = line.added if line.source in self.quoted else line.tokens
        return tokens + (0 if self.taken else self.heading_tokens)

    def take(self, line: _Line) -> int:
        """Take a line, and return what it costs."""
        cost = self.cost(line)
        self.taken.append(line)
        self.spent += cost
        if line.source is not None:
            self.quoted.add(line.source)
        return cost

    def fill(self, room: int, total_room: int) -> int:
        """Take the facts that fit `room`, in order, and return what was spent of `total_room`."""
        before = self.spent
        left = []
        for line in self.waiting:
            cost = self.cost(line)
            if self.spent + cost <= room and self.spent + cost - before <= total_room:
                self.take(line)
            else:
                left.append(line)
        self.waiting = left
        return self.spent - before

    def lines(self) -> Iterator[str]:
        """The lines that were taken, as they are printed."""
        taken = self.taken
        if self.section.in_time:
            taken = sorted(taken, key=lambda line: (line.place, line.rank))
        for source, group in itertools.groupby(taken, key=lambda line: line.source):
            if source is None:
                yield from (line.text for line in group)
            else:
                yield f"- {attribute(source[0], [line.text for line in group], source[1])}"


def summarize(request: SummaryRequest, count: Callable[[str], int]) -> str:
    """Write a summary of at most `request.max_tokens` tokens; empty if there is no room for a line.

    Raises:
        ConfigError: there is no strategy of that name.
    """
    strategy = strategies.get(request.strategy)
    reading = read(request.messages, request.numbered, request.pointers)
    before = _parse_previous(cite_step(request.previous, request.previous_step), strategy.sections)
    referred = words_of(source.text for source in reading.texts) if before else set()
    # A fact in a section that is not carried over must not keep it out of one that is, so each kind has its own set.
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    filled: dict[Section, _Filling] = {}
    for section in sorted(strategy.sections, key=lambda section: not section.in_time):
        facts = _in_turn(EXTRACTORS[name](reading) for name in section.extractors if name != DETAILS)
        carried = before.get(section.heading, []) if section.keeps else []
        carried = sorted(carried, key=lambda fact: not _mentions(fact.text, referred))
        lines = list(_lines(section, reading, _in_turn([facts, carried]), count, seen[section.keeps]))
        filled[section] = _Filling(section, lines, count(section.heading) + 2)
    fillings = [filled[section] for section in strategy.sections]
    _share_out(fillings, request.max_tokens, count, reading, seen[True])
    if not any(filling.taken for filling in fillings):
        return _shortest(fillings, reading, request.max_tokens, count)
    return _print_sections(fillings, request.max_tokens, count)


def _in_turn(columns: Iterable[Sequence[Fact]]) -> list[Fact]:
    """One fact of each column in turn, so that none starves another."""
    return [fact for row in itertools.zip_longest(*columns) for fact in row if fact is not None]


def _lines(
    section: Section, reading: Reading, facts: Sequence[Fact], count: Callable[[str], int], seen: set[str]
) -> Iterator[_Line]:
    """The facts as they are printed, the most important first, without repetitions."""
    rank = itertools.count()
    for fact in facts:
        said = closed(flat(fact.text, _FACT_CHARS))
        key = _CITED.sub("", said.removeprefix("Decided: "))
        if not key or key in seen:
            continue
        seen.add(key)
        if fact.speaker:
            yield _quoted(fact.place, next(rank), said, fact.speaker, fact.cite, count)
            continue
        cited = [said] if fact.place == _CARRIED_PLACE else [said, reading.cite(fact.place)]
        line = " ".join(["-", *(reversed(cited) if "ledger" in section.extractors else cited)])
        yield _Line(fact.place, next(rank), line, count(line) + 1)


def _quoted(place: int, rank: int, said: str, speaker: str, cite: str, count: Callable[[str], int]) -> _Line:
    line = f"- {attribute(speaker, [said], cite)}"
    return _Line(place, rank, said, count(line) + 1, speaker, cite, count(f" {said}"))


def _share_out(
    fillings: Sequence[_Filling],
    room: int,
    count: Callable[[str], int],
    reading: Reading,
    seen: set[str],
) -> None:
    """Fill the quotas, then the details, then give what is left to the sections in their order."""
    whole = room
    shares = sum(filling.section.share for filling in fillings)
    details = [filling for filling in fillings if DETAILS in filling.section.extractors]
    others = [filling for filling in fillings if filling not in details]
    for filling in others:
        room -= filling.fill(int(whole * filling.section.share / shares), room)
    for filling in details:
        quota = int(whole * filling.section.share / shares)
        if not reading.texts:
            continue
        # Room that the other sections left is better spent on lines that name things than on their second choices.
        filling.fill(int(quota * _CARRIED_SHARE), room)
        room -= filling.spent
        room = _fill_details(filling, fillings, room, count, reading, seen)
    for filling in fillings:
        room -= filling.fill(whole, room)


def _fill_details(
    filling: _Filling,
    fillings: Sequence[_Filling],
    room: int,
    count: Callable[[str], int],
    reading: Reading,
    seen: set[str],
) -> int:
    """Take the most informative lines that no section has yet, and return the room that is left."""
    standing = words_of(line.text for other in fillings for line in other.taken)
    sources = reading.texts
    pieces = [piece for owner, source in enumerate(sources) for piece in pieces_of(source.text, owner)]
    costs = [len(piece.text) / 3.5 + 8 for piece in pieces]
    factors = [source.worth for source in sources]
    room -= 0 if filling.taken else filling.heading_tokens
    for place in choose(pieces, costs, factors, standing, room * 1.5):
        if room < 2 * _LEAST_LINE:
            break
        piece, source = pieces[place], sources[pieces[place].owner]
        line = _detail(piece, source, _DETAIL_CHARS, reading, count)
        if line.text in seen:
            continue
        cost = line.added if line.source in filling.quoted else line.tokens
        if cost > room:
            if room > 2 * _SHORTENED:
                continue
            line = _detail(piece, source, 2 * room, reading, count)
            cost = line.added if line.source in filling.quoted else line.tokens
            if cost > room:
                continue
        seen.add(line.text)
        filling.take(line)
        room -= cost
    return room


def _detail(piece: Piece, source: Source, limit: int, reading: Reading, count: Callable[[str], int]) -> _Line:
    """A line of a text that names things: in the agent's own voice, or quoted."""
    cite = reading.cite(source.place)
    if source.speaker == AGENT:
        line = f"- {flat(defuse(piece.text), limit)} {cite}"
        return _Line(source.place, piece.line, line, count(line) + 1)
    said = flat(piece.text if source.speaker == PERSON else defuse(piece.text), limit)
    return _quoted(source.place, piece.line, quote(said, source.speaker), source.speaker, cite, count)


def _print_sections(fillings: Sequence[_Filling], limit: int, count: Callable[[str], int]) -> str:
    """Print the sections. If the whole costs more than the sum of its lines, the least important lines are dropped."""
    while True:
        blocks = []
        for filling in fillings:
            if filling.taken:
                blocks.append("\n".join([filling.section.heading, *filling.lines()]))
        text = "\n".join(blocks)
        if count(text) <= limit:
            return text
        longest = max(fillings, key=lambda filling: len(filling.taken))
        if len(longest.taken) <= 1:
            return fitting_lines(text, limit, count)
        del longest.taken[-max(1, len(longest.taken) // 50) :]


def _shortest(fillings: Sequence[_Filling], reading: Reading, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of the most important line, if no whole line fits."""
    for filling in fillings:
        for line in filling.waiting:
            text = f"- {attribute(line.speaker, [line.text], line.cite)}" if line.speaker else line.text
            return fitting_lines(text, limit, count)
    for source in reversed(reading.texts):
        said = flat(source.text if source.speaker == PERSON else defuse(source.text[:_FACT_CHARS]))
        text = (
            f"- {attribute(source.speaker, [quote(said, source.speaker)], '')}"
            if source.speaker
            else f"- {said}"
        )
        return fitting_lines(text, limit, count)
    return ""


def _parse_previous(previous: str, sections: Sequence[Section]) -> dict[str, list[Fact]]:
    """The facts of the previous summary by heading. Those under an unknown heading belong to the details."""
    known = {section.heading: section for section in sections}
    rest = next(
        (section.heading for section in sections if DETAILS in section.extractors), sections[-1].heading
    )
    found: dict[str, list[Fact]] = {}
    heading = rest
    for line in previous.splitlines():
        bare = line.strip()
        if bare.startswith("#"):
            heading = bare if bare in known else rest
        elif bare:
            text = bare.removeprefix("- ").removeprefix("* ")
            found.setdefault(heading, []).extend(_carried(text))
    return found


def _carried(text: str) -> list[Fact]:
    """The facts of one line of the previous summary: one for each quote, or the line."""
    quoted = attributed(text)
    if quoted is None:
        return [Fact(_CARRIED_PLACE, text)]
    speaker, quotes, cite = quoted
    return [Fact(_CARRIED_PLACE, said, speaker, cite) for said in quotes]


def _mentions(text: str, referred: set[str]) -> bool:
    return any(worth_of(word) >= 0.3 for word in words_of([_CARRIED.sub("", text)]) & referred)
