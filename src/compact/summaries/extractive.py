"""Summaries without a model: the facts of a session under the headings of its strategy, in the session's own words.

Every section has a quota, so that none starves another; what a section does not need goes to the rest. The facts of the
previous summary are carried over, those that the session still mentions first. The same input gives the same bytes.

The agent's own words stand as they are. Everybody else is quoted by name, the lines of one message together:
`- read_file said: "..." "..." [m12]`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compact.messages.excerpts import words_of
from compact.summaries import strategies
from compact.summaries.extracting import findings
from compact.summaries.extracting.extractors import EXTRACTORS, Fact
from compact.summaries.extracting.session_reading import Reading, flat, read
from compact.summaries.needs import PLAIN_SHAPES, shape_of
from compact.summaries.record import carried_sources, sources_of, write
from compact.summaries.request import SummaryRequest, cite_step
from compact.summaries.spoken import spoken_in
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
_CARRIED_PLACE = -1
"""The place of a fact of the previous summary, before all messages."""
_SECTIONS_SHARE = 1 / 3
"""How much of the room the sections with facts may take before the record."""
_SECTIONS_TOKENS = 200
"""They may take this much in any case, in a small room at most `_MOST_OF_SMALL` of it."""
_MOST_OF_SMALL = 0.5
_FACT_CHARS = 640
_FEW_LINES = 2
_RECORD = Section("## Record: lines of the session, in its own words", (DETAILS,), 1.0)
"""Where the record stands beside a summary that somebody else wrote."""


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
    stays: bool = False
    """A decision or a result of an earlier summary, which reports of what was just seen must not push out."""

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

    def fill(self, room: int, total_room: int, *, staying: bool = False) -> int:
        """Take the facts that fit `room`, in order, and return what was spent of `total_room`. `staying`: only such that stay."""
        before = self.spent
        left = []
        for line in self.waiting:
            cost = self.cost(line)
            is_meant = line.stays or not staying
            if is_meant and self.spent + cost <= room and self.spent + cost - before <= total_room:
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
    """Write a summary and its record, of at most `request.max_tokens + request.record_tokens` tokens together.

    Empty if there is no room for a line.

    Raises:
        ConfigError: there is no strategy of that name.
    """
    strategy = strategies.get(request.strategy)
    reading = read(request.messages, request.numbered, request.pointers)
    reading.goes_on = bool(request.previous)
    before = _parse_previous(cite_step(request.previous, request.previous_step), strategy.sections)
    referred = words_of(text.text for text in spoken_in(request.messages)) if before else set()
    # A fact in a section that is not carried over must not keep it out of one that is, so each kind has its own set.
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    filled: dict[Section, _Filling] = {}
    for section in sorted(_facts_of(strategy), key=lambda section: not section.in_time):
        facts = _in_turn(EXTRACTORS[name](reading) for name in section.extractors)
        carried = [fact for line in before.get(section.heading, ()) for fact in _carried(line)]
        carried = (
            sorted(carried, key=lambda fact: not _mentions(fact.text, referred)) if section.keeps else []
        )
        lines = list(_lines(section, reading, _in_turn([facts, carried]), count, seen[section.keeps]))
        filled[section] = _Filling(section, lines, count(section.heading) + 2)
    fillings = [filled[section] for section in _facts_of(strategy)]
    details = next((section for section in strategy.sections if DETAILS in section.extractors), None)
    whole = request.max_tokens + request.record_tokens
    room = whole - _fill_sections(
        fillings, request.max_tokens if details is None else whole, request.max_tokens
    )
    record = [] if details is None else _write_details(details, request, fillings, before, room, count)
    room -= sum(count(line) + 1 for line in record)
    for filling in fillings:
        room -= filling.fill(whole, room)
    if not record and not any(filling.taken for filling in fillings):
        return _shortest(fillings, request, whole, count)
    return _print_sections(strategy, fillings, record, whole, count)


def write_record(request: SummaryRequest, count: Callable[[str], int]) -> str:
    """Write only the record, of at most `request.record_tokens` tokens, for a summary that somebody else wrote."""
    carried = _parse_previous(cite_step(request.previous, request.previous_step), (_RECORD,))
    lines = _write_details(_RECORD, request, (), carried, request.record_tokens, count)
    return "\n".join(lines)


def _facts_of(strategy: strategies.Strategy) -> list[Section]:
    """The sections that list facts: all but the one that takes the record."""
    return [section for section in strategy.sections if DETAILS not in section.extractors]


def _in_turn(columns: Iterable[Sequence[Fact]]) -> list[Fact]:
    """One fact of each column in turn, so that none starves another."""
    return [fact for row in itertools.zip_longest(*columns) for fact in row if fact is not None]


def _lines(
    section: Section, reading: Reading, facts: Sequence[Fact], count: Callable[[str], int], seen: set[str]
) -> Iterator[_Line]:
    """The facts as they are printed, the most important first, without repetitions."""
    rank = itertools.count()
    is_findings = "findings" in section.extractors
    if is_findings:
        facts = _standing(facts, reading)
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
        is_result = "decisions" in section.extractors or (is_findings and findings.is_lasting(key))
        stays = fact.place == _CARRIED_PLACE and is_result
        yield _Line(fact.place, next(rank), line, count(line) + 1, stays=stays)


def _standing(facts: Sequence[Fact], reading: Reading) -> list[Fact]:
    """The findings, without those of the previous summary that the session replaces or takes back.

    What tells more than how things stand right now comes first, however old it is.
    """
    carried = [fact.text for fact in facts if fact.place == _CARRIED_PLACE and not fact.speaker]
    replaced = findings.replaced_by(reading, [_CITED.sub("", text) for text in carried])
    gone = {text for text, over in zip(carried, replaced, strict=True) if over}
    left = [fact for fact in facts if fact.place != _CARRIED_PLACE or fact.text not in gone]
    return sorted(left, key=lambda fact: not findings.is_lasting(_CITED.sub("", fact.text)))


def _quoted(place: int, rank: int, said: str, speaker: str, cite: str, count: Callable[[str], int]) -> _Line:
    line = f"- {attribute(speaker, [said], cite)}"
    return _Line(place, rank, said, count(line) + 1, speaker, cite, count(f" {said}"))


def _fill_sections(fillings: Sequence[_Filling], whole: int, most: int) -> int:
    """Fill the quotas of the sections with facts and return what they cost. The record gets most of the room.

    In a small room a quota may be shorter than a sentence, so what they leave belongs to the decisions and results of earlier
    summaries: a report of how things stand is replaced by the next one. In a large room the record is worth more than that.
    """
    room = min(most, max(int(whole * _SECTIONS_SHARE), min(_SECTIONS_TOKENS, int(whole * _MOST_OF_SMALL))))
    shares = sum(filling.section.share for filling in fillings)
    spent = 0
    for filling in fillings:
        spent += filling.fill(int(room * filling.section.share / shares), room - spent)
    small = min(room, _SECTIONS_TOKENS)
    for filling in fillings:
        spent += filling.fill(small, small - spent, staying=True)
    return spent


def _write_details(
    section: Section,
    request: SummaryRequest,
    fillings: Sequence[_Filling],
    before: Mapping[str, Sequence[str]],
    room: int,
    count: Callable[[str], int],
) -> list[str]:
    """The heading and the record, or nothing if no line fits."""
    sources = [
        *carried_sources(before.get(section.heading, ())),
        *sources_of(request.messages, request.numbered, request.pointers),
    ]
    standing = [*request.instructions, *(line.text for filling in fillings for line in filling.taken)]
    # A section that is not carried over must not keep a line out of the record, which is.
    lasting = [
        *request.instructions,
        *request.withdrawn,
        *(line.text for filling in fillings if filling.section.keeps for line in filling.taken),
    ]
    room -= count(section.heading) + 2
    lines = write(sources, request.kept, standing, room, count, request.values, lasting)
    return [section.heading, *lines] if lines else []


def _print_sections(
    strategy: strategies.Strategy,
    fillings: Sequence[_Filling],
    record: Sequence[str],
    limit: int,
    count: Callable[[str], int],
) -> str:
    """Print the sections. If the whole costs more than the sum of its lines, the least important lines are dropped."""
    record = list(record)
    while True:
        by_section = {filling.section: filling for filling in fillings}
        blocks = []
        for section in strategy.sections:
            filling = by_section.get(section)
            if filling is None:
                blocks += ["\n".join(record)] if record else []
            elif filling.taken:
                blocks.append("\n".join([section.heading, *filling.lines()]))
        text = "\n".join(blocks)
        if count(text) <= limit:
            return text
        if len(record) > _FEW_LINES:
            del record[-1]
            continue
        longest = max(fillings, key=lambda filling: len(filling.taken), default=None)
        if longest is None or len(longest.taken) <= 1:
            return fitting_lines(text, limit, count)
        del longest.taken[-max(1, len(longest.taken) // 50) :]


def _shortest(
    fillings: Sequence[_Filling], request: SummaryRequest, limit: int, count: Callable[[str], int]
) -> str:
    """The beginning of the most important line, if no whole line fits."""
    for filling in fillings:
        for line in filling.waiting:
            text = f"- {attribute(line.speaker, [line.text], line.cite)}" if line.speaker else line.text
            return fitting_lines(text, limit, count)
    for source in reversed(list(sources_of(request.messages, request.numbered, request.pointers))):
        said = flat(source.text if source.speaker == PERSON else defuse(source.text[:_FACT_CHARS]))
        text = (
            f"- {attribute(source.speaker, [quote(said, source.speaker)], '')}"
            if source.speaker
            else f"- {said}"
        )
        return fitting_lines(text, limit, count)
    return ""


def _parse_previous(previous: str, sections: Sequence[Section]) -> dict[str, list[str]]:
    """The lines of the previous summary by heading. Those under an unknown heading belong to the details."""
    known = {section.heading for section in sections}
    rest = next(
        (section.heading for section in sections if DETAILS in section.extractors), sections[-1].heading
    )
    found: dict[str, list[str]] = {}
    heading = rest
    for line in previous.splitlines():
        bare = line.strip()
        if bare.startswith("#"):
            heading = bare if bare in known else rest
        elif bare:
            found.setdefault(heading, []).append(bare.removeprefix("- ").removeprefix("* "))
    return found


def _carried(text: str) -> list[Fact]:
    """The facts of one line of the previous summary: one for each quote, or the line."""
    quoted = attributed(text)
    if quoted is None:
        return [Fact(_CARRIED_PLACE, text)]
    speaker, quotes, cite = quoted
    return [Fact(_CARRIED_PLACE, said, speaker, cite) for said in quotes]


def _mentions(text: str, referred: set[str]) -> bool:
    words = words_of([_CARRIED.sub("", text)]) & referred
    return any(shape_of(word) not in (None, *PLAIN_SHAPES) for word in words)
