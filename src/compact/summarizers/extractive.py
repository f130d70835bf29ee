"""A summary without a model: what was said and done, line by line, in the words of the session. Deterministic.

Every line of it stands in the input. Newer lines are chosen before older ones; they are printed in the order of time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compact.excerpts import fitting_head
from compact.markers import is_pointer
from compact.messages import Message, Text, ToolCall, ToolResult, to_json
from compact.stages.base import SummaryRequest

_PREVIOUS_SHARE = 3
"""One part in this many is kept for the summary before this one."""
_LINE_CHARS = 240
_ERROR = re.compile(r"error|exception|fail|fatal|traceback|panic|denied|not found|cannot", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Line:
    place: int
    text: str


def summarize(request: SummaryRequest, count: Callable[[str], int]) -> str:
    """The summary, never longer than `request.max_tokens`; empty when there is no room for a line."""
    room = request.max_tokens
    sections: list[str] = []
    if request.previous:
        heading = "## Before\n"
        limit = max(0, room // _PREVIOUS_SHARE - count(heading))
        kept = fitting_head(_body_of(request.previous), limit, count).strip()
        if kept:
            sections.append(f"{heading}{kept}")
            room -= count(sections[0]) + 2
    heading = "## What happened"
    lines = _chosen(_lines(request.messages), room - count(heading) - 2, count)
    if lines:
        sections.append("\n".join([heading, *lines]))
    text = "\n\n".join(sections)
    return text if count(text) <= request.max_tokens else fitting_head(text, request.max_tokens, count)


def _body_of(previous: str) -> str:
    """An earlier summary without its own headings, so that they do not pile up."""
    return "\n".join(line for line in previous.splitlines() if line.strip() and not line.startswith("## "))


def _chosen(lines: Sequence[_Line], room: int, count: Callable[[str], int]) -> list[str]:
    found: list[_Line] = []
    seen: set[str] = set()
    for line in reversed(lines):
        if line.text in seen:
            continue
        seen.add(line.text)
        cost = count(line.text) + 1
        if cost > room:
            part = "" if found else fitting_head(line.text, room - 1, count)
            found += [_Line(line.place, part)] if part else []  # a part of it is better than nothing
            break
        room -= cost
        found.append(line)
    return [line.text for line in reversed(found)]


def _lines(messages: Sequence[Message]) -> list[_Line]:
    outcomes = {result.call_id: _outcome(result) for message in messages for result in message.results}
    found = []
    for place, message in enumerate(messages):
        if message.starts_turn:
            continue  # the user's words are carried whole, apart from this
        for part in message.parts:
            if isinstance(part, Text) and message.role == "assistant" and part.text.strip():
                found.append(_Line(place, f"- {_shortened(part.text)}"))
            elif isinstance(part, ToolCall):
                outcome = outcomes.get(part.id, "")
                arrow = f" -> {outcome}" if outcome else ""
                found.append(_Line(place, f"- {part.name}({_arguments(part)}){arrow}"))
    return found


def _arguments(call: ToolCall) -> str:
    arguments = call.parsed_arguments()
    if arguments is None:
        return _shortened(call.arguments_text, 80)
    shown = [
        f"{key}={_shortened(value if isinstance(value, str) else to_json(value), 80)}"
        for key, value in arguments.items()
        if not (isinstance(value, str) and is_pointer(value))
    ]
    return _shortened(", ".join(shown), 160)


def _outcome(result: ToolResult) -> str:
    lines = [line.strip() for line in result.text.splitlines() if line.strip()]
    if not lines:
        return ""
    telling = next((line for line in lines if _ERROR.search(line)), lines[0])
    return _shortened(telling, 120)


def _shortened(text: str, limit: int = _LINE_CHARS) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."
