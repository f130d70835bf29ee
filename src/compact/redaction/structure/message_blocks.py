"""Messages: masked like data, and also where a secret is split over neighbouring blocks of text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import accumulate, groupby
from typing import Any

from compact.messages.dialects.wire import plain, rebuild
from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.structure.data import mask_value
from compact.redaction.structure.leaves import Masker

_MAX_BLOCK_LEVELS = 6
"""Blocks inside a result inside a message are two levels. Data nested much deeper is not a message."""


def mask_message(item: Any, masker: Masker) -> Any:
    """Mask a message. It is returned itself if nothing is masked."""
    if isinstance(item, str):
        return masker.mask_text(item, 0)[0]
    try:
        data: Any = plain(item)
    except ValueError:
        return mask_value(item, masker)
    masked = mask_value(_mask_split_secrets(data, masker, _MAX_BLOCK_LEVELS), masker)
    return item if masked is data else rebuild(item, masked)


def _mask_split_secrets(data: Any, masker: Masker, levels: int) -> Any:
    """Mask the secrets that continue from one text block in the next, at every level of blocks."""
    if not isinstance(data, Mapping) or not levels:
        return data
    changed = {}
    for name, value in data.items():
        if isinstance(value, list | tuple):
            blocks = [_mask_split_secrets(block, masker, levels - 1) for block in _mask_across(value, masker)]
            if any(new is not old for new, old in zip(blocks, value, strict=True)):
                changed[name] = blocks
    return {**data, **changed} if changed else data


def _mask_across(blocks: list[Any] | tuple[Any, ...], masker: Masker) -> list[Any]:
    masked = list(blocks)
    for is_text, run in groupby(range(len(blocks)), key=lambda place: _is_text(blocks[place])):
        places = list(run)
        if not is_text or len(places) < 2:
            continue
        texts = [blocks[place]["text"] for place in places]
        for place, old, new in zip(places, texts, _mask_seams(texts, masker), strict=True):
            if new is not old:
                masked[place] = {**blocks[place], "text": new}
    return masked


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("text"), str)


def _mask_seams(texts: list[str], masker: Masker) -> list[str]:
    edges = list(accumulate(map(len, texts), initial=0))
    masked = list(texts)
    for finding in reversed(_find_across(texts, edges, masker)):
        for number in range(bisect_right(edges, finding.start) - 1, bisect_left(edges, finding.end)):
            start, end = edges[number], edges[number + 1]
            head, tail = max(finding.start, start) - start, min(finding.end, end) - start
            if head < tail:
                masked[number] = masked[number][:head] + MASK + masked[number][tail:]
    return masked


def _find_across(texts: list[str], edges: list[int], masker: Masker) -> list[Finding]:
    """Find the secrets that only the joined texts show: cut in two, or cut off from their name."""
    together = masker.find("".join(texts))
    if not together:
        return []
    alone = [
        (start + finding.start, start + finding.end)
        for text, start in zip(texts, edges, strict=False)
        for finding in masker.find(text)
    ]
    starts = [start for start, _ in alone]
    found = []
    for finding in together:
        before = bisect_right(starts, finding.start) - 1
        if before < 0 or alone[before][1] < finding.end:
            found.append(finding)
    return found
