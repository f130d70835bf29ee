"""A session as texts with their voices, for `needs`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compact.messages import Message, Text, ToolCall, ToolResult, to_json
from compact.summaries.needs import Spoken


def spoken_in(messages: Iterable[Message]) -> Iterator[Spoken]:
    """Every text of these messages, in order, except those of prompts."""
    for message in messages:
        if message.role in ("system", "developer"):
            continue
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield Spoken("tool", part.text)
            elif isinstance(part, ToolCall):
                yield Spoken("call", text_of_call(part))
            elif isinstance(part, Text) and message.role == "assistant":
                yield Spoken("agent", part.text)
            elif isinstance(part, Text):
                yield Spoken("user" if message.starts_turn else "tool", part.text)


def text_of_call(call: ToolCall) -> str:
    """A call as text: its tool, and a line for each argument. Texts inside stand as they are, not as JSON quotes them."""
    arguments = call.parsed_arguments()
    if arguments is None:
        return f"{call.name} {call.arguments_text}"
    lines = (
        f"{key}: {value if isinstance(value, str) else to_json(value)}" for key, value in arguments.items()
    )
    return "\n".join([call.name, *lines])
