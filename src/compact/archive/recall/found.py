"""The answer of `search`: short passages by file, each with its line, its message and who said it, within a stated size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compact.archive.recall.answers import answer, plural, quote
from compact.archive.recall.search import Hit
from compact.tokens.counter import counter_for

_HOW_TO_READ_ON = "L: line, m: message. To read on from a line: read_file with the path and offset L-1"
_QUERY_CHARS = 60
_COUNTED_BY = "o200k_base"
"""The tokenizer that counts what an answer costs. The archive does not know the session's model."""


def show(
    query: str, hits: Sequence[Hit], max_chars: int, gaps: Sequence[str], date_of: Callable[[int], str]
) -> str:
    """Compose an answer of at most `max_chars` characters. What does not fit is left out, the worst passage first.

    `date_of` gives the day and time of a step, or an empty text.
    """
    dates = {hit.step: date_of(hit.step) for hit in hits if hit.step is not None}
    for count in range(len(hits), 0, -1):
        lines = _lines(hits[:count], dates)
        tokens = counter_for(_COUNTED_BY).count("\n".join(lines))
        headline = f"search {quote(query, _QUERY_CHARS)}: {plural(count, 'passage')}, about {tokens:,} tokens"
        text = answer(headline, lines, [_HOW_TO_READ_ON, *gaps])
        if len(text) <= max_chars:
            return text
    return text[: max_chars - 1] + "…"


def _lines(hits: Sequence[Hit], dates: Mapping[int, str]) -> list[str]:
    """Write passages by file, the file with the best passage first, and in a file in its order."""
    lines: list[str] = []
    for path in dict.fromkeys(hit.path for hit in hits):
        here = sorted((hit for hit in hits if hit.path == path), key=lambda hit: (hit.first_line, hit.column))
        lines.append(f"{path}{_step(here[0].step, dates)}")
        for hit in here:
            lines += _passage(hit)
    return lines


def _step(step: int | None, dates: Mapping[int, str]) -> str:
    if step is None:
        return ""
    return f" (before step {step}, {dates[step]})" if dates[step] else f" (before step {step})"


def _passage(hit: Hit) -> list[str]:
    """Write a passage. Its further lines are indented, so that no text can pass for the head of another passage."""
    column = f"+{hit.column}" if hit.column else ""
    message = "" if hit.message is None else f" m{hit.message}"
    who = f" {hit.who}" if hit.who else ""
    first, *rest = [line.rstrip() for line in hit.text.strip().split("\n")]
    return [f"L{hit.first_line}{column}{message}{who}: {first}", *(f" {line}" for line in rest if line)]
