"""Messages: the same walk as for data, and a look over the seams between neighbouring blocks of text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from compact.messages.dialects.wire import plain, rebuild
from compact.redaction.data import mask_value
from compact.redaction.rules.candidates import MASK, Span
from compact.redaction.structure import Masker

_DEEPEST_BLOCKS = 6
"""Blocks inside a result inside a message are two levels; more than a few is no message."""


class SeamMasker(Masker, Protocol):
    """A masker that can also say where in a plain text the secrets stand."""

    def spans(self, text: str) -> list[Span]:
        """Every span to mask, by start."""
        ...


def mask_message(item: Any, masker: SeamMasker) -> Any:
    """A message with its secrets masked: the same object where there are none."""
    if isinstance(item, str):
        return masker.mask_text(item, 0)[0]
    try:
        data: Any = plain(item)
    except ValueError:
        return mask_value(item, masker)
    masked = mask_value(_without_split_secrets(data, masker, _DEEPEST_BLOCKS), masker)
    return item if masked is data else rebuild(item, masked)


def _without_split_secrets(data: Any, masker: SeamMasker, levels: int) -> Any:
    """The message with secrets masked that run over from one text block into the next."""
    if not isinstance(data, Mapping) or not levels:
        return data
    changed = {}
    for name, value in data.items():
        if isinstance(value, list | tuple) and len(value) > 1:
            joined = _blocks_without_split_secrets(list(value), masker)
            if joined is not None:
                changed[name] = joined
        if isinstance(value, list | tuple):
            inner = [_without_split_secrets(entry, masker, levels - 1) for entry in changed.get(name, value)]
            if any(new is not old for new, old in zip(inner, value, strict=True)):
                changed[name] = inner
    return {**data, **changed} if changed else data


def _blocks_without_split_secrets(blocks: list[Any], masker: SeamMasker) -> list[Any] | None:
    made = list(blocks)
    touched = False
    for run in _text_runs(blocks):
        texts = [blocks[place]["text"] for place in run]
        for number, text in enumerate(_seams_masked(texts, masker)):
            if text is not texts[number]:
                made[run[number]] = {**blocks[run[number]], "text": text}
                touched = True
    return made if touched else None


def _text_runs(blocks: list[Any]) -> Iterator[list[int]]:
    run: list[int] = []
    for place, block in enumerate(blocks):
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            run.append(place)
            continue
        if len(run) > 1:
            yield run
        run = []
    if len(run) > 1:
        yield run


def _seams_masked(texts: list[str], masker: SeamMasker) -> list[str]:
    edges = [0]
    for text in texts:
        edges.append(edges[-1] + len(text))
    made = list(texts)
    for span in reversed(_only_together(texts, edges, masker)):
        for number in range(bisect_right(edges, span.start) - 1, bisect_left(edges, span.end)):
            start, end = edges[number], edges[number + 1]
            head, tail = max(span.start, start) - start, min(span.end, end) - start
            if head < tail:
                made[number] = made[number][:head] + MASK + made[number][tail:]
    return made


def _only_together(texts: list[str], edges: list[int], masker: SeamMasker) -> list[Span]:
    """The spans that the texts hold together and none of them alone: cut in two, or cut off from their name."""
    together = masker.spans("".join(texts))
    if not together:
        return []
    alone = [
        (start + span.start, start + span.end)
        for text, start in zip(texts, edges, strict=False)
        for span in masker.spans(text)
    ]
    starts = [start for start, _ in alone]
    found = []
    for span in together:
        before = bisect_right(starts, span.start) - 1
        if before < 0 or alone[before][1] < span.end:
            found.append(span)
    return found
