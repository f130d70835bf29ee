"""Both sides of a step, as its record describes them: what stood before the pass, and what stood after it.

The archive stores the transcript once, as the host gave it. Repairs and offloads come between that list and what the pass
worked on, and the pass itself comes before what was sent. So the record says, for either side, where each message stands in the
list before it, or what it is if compact wrote it. Neither side has to be guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compact.engine.context import Row
from compact.messages.dialects.wire import plain

Entry: TypeAlias = int | Mapping[str, Any]
"""The place of a message in the list before, or `{"item": message}`."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The messages before and after a step, redacted, with what each cost in the model's own tokens."""

    before: list[Any]
    after: list[Any]
    places: list[int | None]
    """For each message after the step its place before it; None if compact wrote it."""
    tokens_before: list[int]
    tokens_after: list[int]
    """Like `tokens_before`, these add up to the figure in the step's `compact.pruned_messages`."""


def find_places(known: Iterable[Any], wanted: Iterable[Any]) -> list[int | None]:
    """Find the place of each object among the known ones; None if it is not one of them.

    A host may use one object several times. Its first use is then the first among the known ones, and so on.
    """
    found: dict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(known):
        found[id(each)].append(place)
    return [places.pop(0) if (places := found[id(each)]) else None for each in wanted]


def describe_sides(
    given: Sequence[Any],
    stood: Sequence[Any],
    before: Sequence[Row],
    after: Sequence[Row],
    items: Sequence[Any],
    scale: Callable[[int], int],
) -> dict[str, Any]:
    """Describe a step for its record.

    Args:
        given: The host's messages before any repair. The archive's transcript holds these.
        stood: What the pass worked on.
        before: The rows of `stood`.
        after: The rows that stand after the pass.
        items: The messages of `after`.
        scale: Turns raw tokens into the model's own.
    """
    places = find_places((row.message for row in before), (row.message for row in after))
    return {
        "before": None if stood is given else _entries(find_places(given, stood), stood),
        "after": _entries(places, items),
        "tokens_before": _scaled(before, scale),
        "tokens_after": _scaled(after, scale),
    }


def rebuild_sides(record: Mapping[str, Any], transcript: Sequence[Any]) -> Sides:
    """Rebuild both sides from what `describe_sides` returned and the archived transcript."""
    described: Sequence[Entry] | None = record["before"]
    before = list(transcript) if described is None else _resolved(described, transcript)
    after: Sequence[Entry] = record["after"]
    return Sides(
        before=before,
        after=_resolved(after, before),
        places=[entry if isinstance(entry, int) else None for entry in after],
        tokens_before=list(record["tokens_before"]),
        tokens_after=list(record["tokens_after"]),
    )


def _entries(places: Sequence[int | None], items: Sequence[Any]) -> list[Entry]:
    return [
        {"item": plain(item)} if place is None else place for place, item in zip(places, items, strict=True)
    ]


def _resolved(entries: Sequence[Entry], items: Sequence[Any]) -> list[Any]:
    return [items[entry] if isinstance(entry, int) else entry["item"] for entry in entries]


def _scaled(rows: Sequence[Row], scale: Callable[[int], int]) -> list[int]:
    """What each row costs. Each is what the sum grows by, so that rounding does not add up."""
    sizes, raw, so_far = [], 0, 0
    for row in rows:
        raw += row.tokens
        sizes.append(scale(raw) - so_far)
        so_far += sizes[-1]
    return sizes
