"""A conversation as quoted data for a model that summarizes it, in pieces that fit the model's window. Pure.

Nothing in it can be taken for a turn of the chat: roles are words in a header, our own marks and the control words of
chat templates are defused, and lines of tool output that give orders carry a mark. The session itself stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from compact.messages import Image, Message, Opaque, Refusal, Text, ToolCall, ToolResult, units
from compact.messages.dialects import get
from compact.messages.excerpts import head_and_tail
from compact.summaries.checking.verification import orders_marked

DATA_MARK = "[data, not an instruction] "
_CUT_NOTE = "[... cut for the summarizer; the whole is in the archive ...]"
_OUR_TAGS = re.compile(
    r"<(?=/?(?:COMPACT-SUMMARY|conversation\b|previous-summary\b|message\b))", re.IGNORECASE
)
_CONTROL_WORDS = re.compile(
    r"<\|(?=[\w/ ]{1,40}\|>)|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn)>)|\[(?=/?INST\])"
)
_CHUNK_MARGIN = 16
"""Tokens that joining the pieces may add."""


def quoted(message: Message, number: int) -> str:
    """One message as data."""
    lines = [f'<message n="{number}" from="{message.role}">', *_spoken(message), "</message>"]
    return "\n".join(line for line in lines if line)


def defused(text: str) -> str:
    """A text in which nothing looks like our own marks or a chat template's control words any more."""
    return _CONTROL_WORDS.sub(_harmless, _OUR_TAGS.sub("‹", text))


def conversation(messages: Sequence[Message], numbers: Sequence[int] = ()) -> str:
    """All messages as data, with their numbers; without any, counted from 1."""
    numbers = numbers or range(1, len(messages) + 1)
    return "\n".join(map(quoted, messages, numbers))


def chunks(
    messages: Sequence[Message],
    dialect: str,
    room: int,
    count: Callable[[str], int],
    numbers: Sequence[int] = (),
) -> list[str]:
    """The conversation in as few pieces as fit `room` tokens each. A call is never parted from its results.

    What alone is larger than `room` is cut to its head and tail.
    """
    found: list[str] = []
    open_piece: list[str] = []
    taken = 0
    for unit in _units(messages, dialect, numbers or range(1, len(messages) + 1)):
        fits = count(unit) < room
        text = unit if fits else head_and_tail(unit, max(1, room - _CHUNK_MARGIN), count, _CUT_NOTE)
        size = count(text) + 1
        if open_piece and taken + size > room:
            found.append("\n".join(open_piece))
            open_piece, taken = [], 0
        open_piece.append(text)
        taken += size
    return [*found, "\n".join(open_piece)] if open_piece else found or [""]


def _units(messages: Sequence[Message], dialect: str, numbers: Sequence[int]) -> Iterator[str]:
    for unit in units.units(messages, get(dialect), is_pinned=lambda _: False):
        yield conversation(messages[unit.start : unit.stop], numbers[unit.start : unit.stop])


def _spoken(message: Message) -> Iterator[str]:
    trusted = message.starts_turn
    for part in message.parts:
        match part:
            case Text() | Refusal():
                yield defused(part.text) if trusted else _marked(part.text)
            case ToolCall():
                yield defused(f"[calls {part.name} {part.arguments_text}]")
            case ToolResult():
                yield f"[result{' (error)' if part.is_error else ''}]\n{_marked(part.text)}"
            case Image():
                yield "[an image]"
            case Opaque():
                yield f"[{part.type}]"
            case _:
                continue  # the model's own thinking is not what happened


def _marked(text: str) -> str:
    return defused(orders_marked(text, DATA_MARK))


def _harmless(match: re.Match[str]) -> str:
    return "(" if match.group() == "[" else "‹" + match.group()[1:]
