"""Write the ledger for the context, and read back what was written. Pure.

    ## What the user said that stands, in their words, oldest first
    - [m12] Never push to main.
    - [m14] B (asked: "Should I use A) Redis or B) Postgres?")
    - [m40] The slot shrank, 1200 words at most. (before: "We aim at 1800 words.")
    - Answer in French.
    [3 more that stand: read_file("/conversation_history/ledger.md")]

An entry begins with "- " at the beginning of a line, and its further lines are indented, so no words in it can pass for another
entry. An entry without a place was pinned by the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from compact.redaction import MASK
from compact.summaries.ledger.entry import Entry, Kind, Source, entry_id
from compact.summaries.ledger.forms import word_count
from compact.summaries.ledger.kinds import LEFT_OUT, kind_of, normative_part

HEADING = "## What the user said that stands, in their words, oldest first"
"""The first line. Only code writes it."""
_CLASSES: dict[Kind, int] = {
    "rule": 0,
    "correction": 0,
    "preference": 1,
    "decision": 2,
    "answer": 2,
    "fact": 3,
}
"""What goes first when there is not room for all."""
_LONG = 6
"""An entry that takes more than one part in this many of the room is shown with its normative sentences alone."""
_DEAR = 16
"""An entry that takes more than one part in this many of the room goes behind those of the next class."""
_QUESTION = 240
"""Characters of a question that are shown when there is not room for all."""
_LEAST_CUT = 30
_SAYS_MUCH = 6
"""Words of an answer that is half understood alone."""
_SENTENCE_STARTS = re.compile(r"\n+|(?<=[.!?:])\s+")
_PLACE = re.compile(r"(?:v\d{1,9} )?m\d{1,9}")
_BRACKET = re.compile(r"\[(?:(?P<place>(?:v\d{1,9} )?m\d{1,9})(?:, )?)?(?P<source>host|user|model)?\](?: |$)")
_ASKED = ' (asked: "'
_BEFORE = ' (before: "'
_MARKERS = re.compile(r"\((asked|before):(\\*) \"")


@dataclass(frozen=True, slots=True)
class Written:
    """The ledger as it stands in the context."""

    text: str
    """Heading and lines, entries in the order of time. Empty without an entry."""
    shown: tuple[Entry, ...] = ()
    """The entries in it as they are. A long one may be shown with its normative sentences alone."""
    left: tuple[Entry, ...] = ()
    """Entries that stand, for which there was no room. The text names them with a pointer."""


def write(entries: Sequence[Entry], room: int, count: Callable[[str], int], where: str) -> Written:
    """Write the entries that stand into at most `room` tokens. `where` is the path at which left ones can be read.

    When they do not fit, rules and corrections go before preferences, these before decisions and answers, these before
    facts; among equals the newest goes first. If there is not even room for the pointer, the text is empty and all are left.
    """
    standing = [
        entry for entry in _in_order_of_time(entries) if entry.status == "stands" and _lines(entry.text)
    ]
    if not standing:
        return Written("")
    whole = text_of(standing)
    if count(whole) <= room:
        return Written(whole, tuple(standing))
    return _choose(standing, room, count, where)


def text_of(entries: Iterable[Entry]) -> str:
    """The text of these entries, whole."""
    return _text([_line(entry) for entry in entries])


def read(text: str) -> list[Entry]:
    """Read the entries of a text that begins with what `write` wrote; empty if it does not.

    Kinds are not written; they are judged again from the words.
    """
    first, _, rest = text.partition("\n")
    if first != HEADING:
        return []
    found: list[list[str]] = []
    for line in rest.split("\n"):
        if line.startswith("- "):
            found.append([line[2:]])
        elif found and line.startswith("  "):
            found[-1].append(line[2:])
        else:
            break
    return [_entry("\n".join(lines)) for lines in found]


# --- choosing


def _choose(standing: Sequence[Entry], room: int, count: Callable[[str], int], where: str) -> Written:
    """Take the entries one by one, by their class and newest first, as long as there is room."""
    lines: dict[int, str] = {}
    used = count(f"{HEADING}\n{_pointer(len(standing), where)}") + 2
    short = [_with_short_question(entry) for entry in standing]
    costs = [count(_line(entry)) + 1 for entry in short]

    def rank(place: int) -> tuple[int, bool, int]:
        """What takes the room of several others goes behind those of the next class, unless the host pinned it."""
        is_dear = costs[place] > max(room // _DEAR, 1) and standing[place].source != "host"
        return _CLASSES[standing[place].kind] + is_dear, is_dear, -place

    for place in sorted(range(len(standing)), key=rank):
        entry, cost = short[place], costs[place]
        line = _line(entry)
        # What the host pinned stands as it is, or is left.
        if entry.source != "host" and (cost > max(room // _LONG, 1) or used + cost > room):
            line = _line(replace(entry, text=normative_part(entry.text)))
            cost = count(line) + 1
        if used + cost <= room:
            lines[place] = line
            used += cost
    text = _with_pointer(lines, len(standing), where)
    while lines and count(text) > room:
        # Tokens of the lines do not add up exactly where they meet.
        del lines[max(lines, key=rank)]
        text = _with_pointer(lines, len(standing), where)
    if count(text) > room:
        return Written("", (), tuple(standing))
    shown = tuple(entry for place, entry in enumerate(standing) if place in lines)
    return Written(text, shown, tuple(entry for place, entry in enumerate(standing) if place not in lines))


def _with_short_question(entry: Entry) -> Entry:
    """The entry with the end of the question alone, if it is long: what is asked stands last.

    Of a question whose answer says much itself, less is shown.
    """
    asked = entry.answers or ""
    says_much = word_count(entry.text) >= _SAYS_MUCH
    most = _QUESTION // 2 if says_much else _QUESTION
    if len(asked) <= most:
        return entry
    end = asked[-most:]
    starts = [found.end() for found in _SENTENCE_STARTS.finditer(end) if found.end() < most - _LEAST_CUT]
    cut = end[starts[-1 if says_much else 0] :] if starts else end.partition(" ")[2] or end
    return replace(entry, answers=f"{LEFT_OUT} {cut.strip()}")


def _with_pointer(lines: dict[int, str], standing: int, where: str) -> str:
    left = standing - len(lines)
    ordered = [lines[place] for place in sorted(lines)]
    return _text([*ordered, *([_pointer(left, where)] if left else [])])


def _pointer(count: int, where: str) -> str:
    return f'[{count} more that stand: read_file("{where}")]'


def _in_order_of_time(entries: Sequence[Entry]) -> list[Entry]:
    """By the number of the message, inside a step. Pins without a place stay behind the entry that they follow."""
    last = (0, 0)
    keyed: list[tuple[tuple[int, int], int, Entry]] = []
    for number, entry in enumerate(entries):
        if _PLACE.fullmatch(entry.said_in):
            step, _, message = entry.said_in.rpartition(" ")
            last = (int(step[1:] or 1), int(message[1:]))
        keyed.append((last, number, entry))
    return [entry for _, _, entry in sorted(keyed, key=lambda one: one[:2])]


# --- one entry


def _text(lines: Iterable[str]) -> str:
    return "\n".join([HEADING, *lines])


def _lines(text: str) -> str:
    """The text with line feeds between its lines, whatever parted them: no other sign may look like a new line."""
    return "\n".join(text.splitlines()).strip()


def _line(entry: Entry) -> str:
    words = _lines(entry.text)
    asked, was = _lines(entry.answers or ""), _lines(entry.was or "")
    if asked or (words.endswith('")') and _MARKERS.search(words)):
        # What a person wrote in the form of ours is told from it by a question without words.
        words += f'{_ASKED}{_MARKERS.sub(_escape, asked)}")'
    if was:
        words += f'{_BEFORE}{_MARKERS.sub(_escape, was)}")'
    return "- " + (_bracket(entry, words) + words).replace("\n", "\n  ")


def _bracket(entry: Entry, words: str) -> str:
    place = entry.said_in if _PLACE.fullmatch(entry.said_in) else ""
    implied: Source = "user" if place else "host"
    if entry.source != implied:
        return f"[{place}, {entry.source}] " if place else f"[{entry.source}] "
    if place:
        return f"[{place}] "
    # Words that begin like a bracket of ours must not be taken for one.
    return f"[{implied}] " if _BRACKET.match(words) else ""


def _escape(found: re.Match[str]) -> str:
    return f'({found[1]}:{found[2]}\\ "'


def _unescape(found: re.Match[str]) -> str:
    return f'({found[1]}:{found[2][:-1]} "'


def _cut_off(line: str, marker: str) -> tuple[str, str | None]:
    """The line without what stands behind the marker, and that; None if the line does not end with it."""
    at = line.rfind(marker)
    if at < 0 or not line.endswith('")') or max(line.rfind(_ASKED), line.rfind(_BEFORE)) > at:
        return line, None
    return line[:at], _MARKERS.sub(_unescape, line[at + len(marker) : -2])


def _entry(line: str) -> Entry:
    bracket = _BRACKET.match(line)
    place = (bracket["place"] or "") if bracket else ""
    source: Source = "user" if place else "host"
    if bracket is not None:
        line = line[bracket.end() :]
        named = bracket["source"]
        source = (
            "model"
            if named == "model"
            else "host"
            if named == "host"
            else "user"
            if named == "user"
            else source
        )
    line, was = _cut_off(line, _BEFORE)
    line, answers = _cut_off(line, _ASKED)
    kind: Kind = "answer" if answers else kind_of(line)
    return Entry(
        id=entry_id(kind, line, place),
        kind=kind,
        text=line,
        source=source,
        said_in=place,
        answers=answers or None,
        was=was or None,
        masked=line.count(MASK),
    )
