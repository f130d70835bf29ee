"""Pages: a transcript as Markdown, for people who read it and agents who grep it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compact.errors import CompactError
from compact.messages import (
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    dialects,
    to_json,
)

_FENCES = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def page_title(session_label: str, step: int) -> str:
    """Return the heading of a step's page."""
    return f"{session_label}: the conversation before step {step}"


def render_history(messages: Sequence[Any], dialect: str, title: str) -> str:
    """Render a transcript as Markdown, for people who read it and agents who grep it. Nothing is shortened except images.

    Messages that cannot be read in their dialect are shown as JSON, because a page for people must not stop a step.
    """
    try:
        _, neutral = dialects.read(messages, dialect)
    except CompactError:
        shown = [f"## {number}\n\n{_fence(to_json(item), 'json')}" for number, item in enumerate(messages, 1)]
    else:
        shown = [_render_message(number, message) for number, message in enumerate(neutral, 1)]
    return "\n\n".join([f"# {title}", *shown]) + "\n"


def _render_message(number: int, message: Message) -> str:
    pieces = [f"## {number}. {message.role}"]
    for part in message.parts:
        pieces.extend(_render_part(part))
    return "\n\n".join(pieces)


def _render_part(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text) | Refusal(text=text):
            yield text
        case ToolCall():
            yield f"**calls `{part.name}`** ({part.id})"
            yield _fence(part.arguments_text, "" if part.free_form else "json")
        case ToolResult():
            yield f"**{'error' if part.is_error else 'result'} of** {part.call_id}"
            for inner in part.content:
                if isinstance(inner, Text):
                    yield _fence(inner.text, "")
                else:
                    yield from _render_part(inner)
        case Reasoning(text=text):
            yield f"**reasoning**\n\n{text}" if text else "**reasoning** (sealed)"
        case Image(source=source):
            yield (
                f"[image {source}]"
                if source.startswith("http")
                else f"[image, {len(source)} characters inline]"
            )
        case Opaque(type=kind):
            yield f"**{kind}**\n\n{_fence(to_json(part.origin), 'json')}"


def _fence(text: str, language: str) -> str:
    longest = max(map(len, _FENCES.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
