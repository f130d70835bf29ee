"""Compare the messages before and after a step: which is which, and at which level of detail.

Pure functions. A step's record says what stood before and after it, and which messages are the same (`compact.engine.state`).
Which message a pointer replaces is found by the ids of tool calls, then by the order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from compact.engine.frames import without_ledger
from compact.messages import Message
from compact.messages.message import FRAME_OPENS, GAP, POINTER_OPENS, SUMMARY_OPENS

Level: TypeAlias = Literal[
    "kept",  # unchanged
    "offloaded",  # a preview, and a pointer to the whole
    "shrunk",  # a pointer to the output or the written text
    "cut",  # head and tail
    "summarized",  # part of a summary
    "pruned",  # gone; the archive has it
    "mended",  # repaired, because no provider would have accepted it
    "marker",  # added so that roles alternate, or to carry the user's words
]
LEVELS: tuple[Level, ...] = get_args(Level)
_REDUCED: dict[str, Level] = {"offloaded": "offloaded", "shrunk": "shrunk", "cut": "cut"}
"""The levels of a record that are also levels here."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of the comparison: the places of a message before and after; None if it is missing there."""

    before: int | None
    after: int | None
    level: Level


def places(
    recipe: Sequence[object], replaced: int, count: int, previous: Mapping[str, Any] | None
) -> dict[int, int]:
    """Map the places in the host's list to places in the transcript of a step, which has `count` messages.

    For records of earlier versions, which say nothing about repairs: where those changed the list, this is a guess. A host that keeps what it was given passes the transcript itself. For one that passes its full history, the messages
    of the step before (`previous`, its state) come first.
    """
    if replaced == count:
        return {n: n for n in range(count)}
    if previous is not None:
        sources = [entry if isinstance(entry, int) else None for entry in previous["recipe"]]
        sources += range(previous["replaced"], replaced)
        if len(sources) == count:
            return {source: n for n, source in enumerate(sources) if source is not None}
    shift = replaced - count  # messages were repaired on the way: only the newest ones correspond
    return {source: source - shift for source in recipe if isinstance(source, int) and source >= shift}


def compare(
    before: Sequence[Message],
    after: Sequence[Message | int],
    *,
    levels: Sequence[str | None] = (),
    offloaded: frozenset[str] = frozenset(),
    summaries: Sequence[tuple[int, int]] = (),
) -> list[Pair]:
    """Compare message by message, in the order of the transcript.

    Args:
        before: What stood before the step.
        after: The context after it. A number is the place, in `before`, of a message that was kept.
        levels: How much of each message after the step is left, as its record says. Otherwise its looks decide.
        offloaded: Ids of calls whose results were offloaded since the step before this one. That happens when a result is
            first seen, so the transcript already has the pointer.
        summaries: The first and the last place that each summary covers.
    """
    levels = levels or [None] * len(after)
    added = {n for n, each in enumerate(after) if not isinstance(each, int) and _is_added(each, levels[n])}
    matched = _match(before, after, added)
    by_before = {place: n for n, place in matched.items()}
    frames = [n for n in sorted(added) if n not in matched and _is_summary(after[n], levels[n])]
    heads = _summary_places(frames, matched, before, summaries)
    pairs: list[Pair] = []
    written = set(heads.values())
    waiting = [n for n in range(len(after)) if n not in matched and n not in written]
    for place in range(len(before)):
        n = by_before.get(place)
        if n is not None:
            while waiting and waiting[0] < n:
                pairs.append(Pair(None, waiting.pop(0), "marker"))
            pairs.append(Pair(place, n, _level(before[place], after[n], levels[n], offloaded)))
        elif place in heads:
            pairs.append(Pair(place, heads[place], "summarized"))
        else:
            covered = any(first <= place <= last for first, last in summaries)
            pairs.append(Pair(place, None, "summarized" if covered else "pruned"))
    return pairs + [Pair(None, n, "marker") for n in waiting]


def _match(before: Sequence[Message], after: Sequence[Message | int], added: Set[int]) -> dict[int, int]:
    """Find the place before of every message after that is the same one, whole or reduced."""
    found = {n: each for n, each in enumerate(after) if isinstance(each, int) and each < len(before)}
    free = set(range(len(before))) - set(found.values())
    by_id: dict[str, list[int]] = {}
    for place in sorted(free):
        for key in _ids(before[place]):
            by_id.setdefault(key, []).append(place)
    for n, each in enumerate(after):
        if isinstance(each, int) or n in added:
            continue
        known = _first(free, (place for key in _ids(each) for place in by_id.get(key, ())))
        if known is not None:
            found[n] = known
            free.discard(known)
    for n, each in enumerate(after):
        if n in found or isinstance(each, int) or each.text == GAP:
            continue
        low = max((found[m] for m in found if m < n), default=-1)
        high = min((found[m] for m in found if m > n and found[m] > low), default=len(before))
        between = [place for place in range(low + 1, high) if place in free]
        known = _same_words(before, between, each) if n in added else _most_alike(before, between, each)
        if known is not None:
            found[n] = known
            free.discard(known)
    return found


def _same_words(before: Sequence[Message], places: Sequence[int], after: Message) -> int | None:
    """Find a summary of an earlier step, which may stand as it was, or with another ledger in front of it."""
    wanted = without_ledger(after.text)
    return next((place for place in places if without_ledger(before[place].text) == wanted), None)


def _most_alike(before: Sequence[Message], places: Sequence[int], after: Message) -> int | None:
    """Find the message that was reduced. One that was cut keeps its head; a host's own stage may keep nothing."""
    alike = [place for place in places if before[place].role == after.role]
    head = after.text.partition(POINTER_OPENS)[0].strip()
    begins = (place for place in alike if head and before[place].text.lstrip().startswith(head))
    return next(begins, alike[0] if alike else None)


def _summary_places(
    frames: Sequence[int],
    matched: Mapping[int, int],
    before: Sequence[Message],
    summaries: Sequence[tuple[int, int]],
) -> dict[int, int]:
    """Choose the message beside which a new summary is shown: the first one that it covers and that is gone."""
    taken = set(matched.values())
    heads: dict[int, int] = {}
    for n, (first, last) in zip(frames, summaries, strict=False):
        head = _first(set(range(len(before))) - taken, range(first, last + 1))
        if head is not None:
            heads[head] = n
            taken.add(head)
    return heads


def _level(before: Message, after: Message | int, recorded: str | None, offloaded: frozenset[str]) -> Level:
    stands = before if isinstance(after, int) else after
    level = reduced_level(stands, offloaded)
    if level == "offloaded":
        return level  # on its arrival, which the record of a later step does not tell
    if stands.text.startswith(FRAME_OPENS) and stands.parts != before.parts:
        return "marker"  # it carries another ledger
    return "kept" if stands.parts == before.parts else _REDUCED.get(recorded or "", level)


def reduced_level(message: Message, offloaded: Set[str]) -> Level:
    """Tell the level of a message that was changed. `offloaded` are the ids of calls with offloaded results."""
    pointers = [result for result in message.results if result.text.startswith(POINTER_OPENS)]
    if any(result.call_id in offloaded for result in pointers):
        return "offloaded"
    arguments = [str(value) for call in message.calls for value in (call.parsed_arguments() or {}).values()]
    if pointers or any(text.startswith(POINTER_OPENS) for text in arguments):
        return "shrunk"
    texts = [message.text, *(result.text for result in message.results)]
    return "cut" if any(POINTER_OPENS in text for text in texts) else "mended"


def _is_added(message: Message, recorded: str | None) -> bool:
    """Whether a message stands for others, or only between them."""
    if recorded is not None:
        return recorded != "whole" and recorded not in _REDUCED
    return message.text.startswith(FRAME_OPENS) or message.text == GAP


def _is_summary(message: Message | int, recorded: str | None) -> bool:
    if recorded is not None:
        return recorded == "summary"
    return not isinstance(message, int) and message.text.startswith(SUMMARY_OPENS)


def _ids(message: Message) -> list[str]:
    return [f"r:{result.call_id}" for result in message.results] + [f"c:{call.id}" for call in message.calls]


def _first(free: set[int], candidates: Iterable[int]) -> int | None:
    return next((place for place in candidates if place in free), None)


def find_cited(
    text: str, before: Sequence[Message], covered: Sequence[int], step: int = 0
) -> list[int | None]:
    """Find the place of the message that each line of a step's summary is about; None if unknown, or of another step.

    A number in brackets names a message, counted from 1. Other lines are found by their words, among the places that the
    summary covers, the newest first.
    """
    pool = [(n, flatten(before[n])) for n in sorted(covered, reverse=True)]
    return [_cited_line(line, pool, len(before), step) for line in text.split("\n")]


def flatten(message: Message) -> str:
    """Write a message's text and calls on one line, as a summary quotes them."""
    calls = [
        f"{call.name}({', '.join(f'{key}={value}' for key, value in (call.parsed_arguments() or {}).items())}"
        for call in message.calls
    ]
    return " ".join(" ".join([message.text, *calls]).split())


_SHORTEST_QUOTE = 12
_CITATION = re.compile(r"^\[m?([0-9]{1,9})\]|\[m([0-9]{1,9})\]$")
_OF_STEP = re.compile(r"^\[v([0-9]{1,9}) m([0-9]{1,9})(?:, [a-z]+)?\] ")
"""The place of an entry of the ledger."""


def _cited_line(line: str, pool: Sequence[tuple[int, str]], count: int, step: int) -> int | None:
    body = line.strip()
    if not body.startswith("- "):
        return None
    body = body[2:]
    if (said := _OF_STEP.match(body)) is not None:
        place = int(said[2]) - 1
        return place if int(said[1]) == step and 0 <= place < count else None
    if named := _CITATION.search(body):
        place = int(named[1] or named[2]) - 1
        return place if 0 <= place < count else None
    quote = " ".join(body.partition(") -> ")[0].partition("...")[0].split())
    quote = quote.partition("[compact: ")[0].rstrip()
    if len(quote) < _SHORTEST_QUOTE:
        return None
    begins = next((n for n, words in pool if words.startswith(quote)), None)
    return begins if begins is not None else next((n for n, words in pool if quote in words), None)
