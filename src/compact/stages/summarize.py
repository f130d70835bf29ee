"""Fold the oldest units into one message. What it replaces lies in the archive, and the message says where.

The user's own instructions are carried word for word by code, whoever wrote the rest of the summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.dialects import Dialect
from compact.excerpts import head_and_tail
from compact.markers import SUMMARY_OPENS
from compact.messages import Message, Text
from compact.stages.base import Asking, Desk, Row, SummaryRequest, total

INSTRUCTIONS = "## What the user asked, in their words, newest first"
_INSTRUCTION_SHARE = 3
"""One part in this many of a summary is for the user's own words."""
_ONE_INSTRUCTION = 2
"""One part in this many of those is the most that a single instruction may take."""
_CLOSES = "</COMPACT-SUMMARY>"


@dataclass(frozen=True, slots=True)
class Fold:
    """A summary, ready to stand in the context, and what it was made from."""

    row: Row
    text: str
    body: str
    """What the summarizer wrote."""
    input_tokens: int
    input_messages: int
    is_empty: bool
    """Nothing was said and nothing was carried: it must not replace anything."""
    positions: tuple[int, int]
    """Where the first and the last of them stand in the archived transcript."""


def fold(
    rows: Sequence[Row],
    desk: Desk,
    *,
    step: int,
    strategy: str,
    max_tokens: int,
    where: str,
    previous: str = "",
    positions: tuple[int, int] = (0, 0),
    carry_instructions: bool = True,
) -> Asking[Fold]:
    """One assistant message for these rows, of at most `max_tokens` tokens, all told."""
    frame = _frame(step, "", where)
    room = max_tokens - desk.count(Message("assistant", (Text(frame),))) - 2
    kept = ""
    if carry_instructions:
        kept = _instructions(rows, previous, room // _INSTRUCTION_SHARE, desk)
    request = SummaryRequest(
        messages=[row.quotable for row in rows],
        dialect=desk.dialect.NAME,
        strategy=strategy,
        max_tokens=max(1, room - desk.count_text(kept)),
        previous=without_instructions(previous),
        positions=positions,
    )
    body = desk.redact((yield request).strip())
    text = _frame(step, "\n\n".join(piece for piece in (kept, body) if piece), where)
    message = Message("assistant", (summary_part(text, rows, desk.dialect),))
    return Fold(
        Row(message, desk.count(message), None, "summary"),
        text,
        body,
        total(rows),
        len(rows),
        not (kept or body),
        positions,
    )


def summary_part(text: str, rows: Sequence[Row], dialect: Dialect) -> Text:
    """The text of a summary; a cache mark that stood on what it replaces stands on it."""
    if dialect.NAME != "anthropic":
        return Text(text)
    for row in reversed(rows):
        for part in row.message.parts:
            mark = part.origin.get("cache_control") if isinstance(part.origin, dict) else None
            if mark is not None:
                return Text(text, origin={"type": "text", "text": text, "cache_control": mark})
    return Text(text)


def instructions_in(summary: str) -> list[str]:
    """The user's instructions that a summary of ours carries."""
    _, opened, rest = summary.partition(f"{INSTRUCTIONS}\n")
    found: list[str] = []
    for line in rest.splitlines() if opened else []:
        if line.startswith("- "):
            found.append(line[2:])
        elif line.startswith("  ") and found:
            found[-1] += f"\n{line[2:]}"
        else:
            break
    return found


def without_instructions(summary: str) -> str:
    """What the summarizer wrote in an earlier summary of ours: no frame, no carried instructions."""
    body = summary.partition(">\n")[2] if summary.startswith(SUMMARY_OPENS) else summary
    body = body.removesuffix(_CLOSES)
    body = body.rpartition("\n\n[Archived:")[0] or body
    before, opened, rest = body.partition(f"{INSTRUCTIONS}\n")
    if not opened:
        return body.strip()
    return f"{before}\n{rest.partition(chr(10) * 2)[2]}".strip()


def _frame(step: int, body: str, where: str) -> str:
    reading = f'[Archived: read_file("{where}"), grep("...", "/conversation_history/"), search("...")]'
    return f"{SUMMARY_OPENS}{step}>\n{body}\n\n{reading}\n{_CLOSES}"


def _instructions(rows: Sequence[Row], previous: str, room: int, desk: Desk) -> str:
    """What the user said in these rows and before, newest first, as much as fits; a long one is cut, never left out."""
    said = [row.quotable.text.strip() for row in rows if row.message.starts_turn]
    newest_first = [text for text in reversed(said) if text] + instructions_in(previous)
    lines: list[str] = []
    room -= desk.count_text(INSTRUCTIONS) + 1
    for text in dict.fromkeys(newest_first):
        limit = min(room, max(room // _ONE_INSTRUCTION, 24))
        if limit < 12:
            break
        shown = (
            text if desk.count_text(text) <= limit else head_and_tail(text, limit, desk.count_text, "[...]")
        )
        line = "- " + shown.replace("\n", "\n  ")
        cost = desk.count_text(line) + 1
        if cost > room:
            break
        lines.append(line)
        room -= cost
    return "\n".join([INSTRUCTIONS, *lines]) if lines else ""


def record(folds: Sequence[Fold], strategy: str) -> dict[str, Any]:
    """What a step's summary file says."""
    return {
        "strategy": strategy,
        "summaries": [
            {
                "text": fold.text,
                "summary_tokens": fold.row.tokens,
                "input_tokens": fold.input_tokens,
                "input_messages": fold.input_messages,
                "positions": list(fold.positions),
            }
            for fold in folds
        ],
    }
