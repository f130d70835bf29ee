"""Build OpenAI chat messages from formats that record calls and results in other shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compact.messages import to_json


def call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """One tool call. Arguments that are not text yet become JSON."""
    text = arguments if isinstance(arguments, str) else to_json({} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def result(call_id: str, content: Any) -> dict[str, Any]:
    """The message that answers a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def reply(text: Any, calls: Sequence[dict[str, Any]] = (), reasoning: str = "") -> dict[str, Any]:
    """What the model said, with its calls and its reasoning."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None if calls else text}
    if reasoning:
        message["reasoning_content"] = reasoning
    return {**message, "tool_calls": list(calls)} if calls else message


def injected(message: dict[str, Any]) -> dict[str, Any]:
    """Mark a message that the host wrote in the user's role."""
    return {**message, "meta": {"injected": True}}


def content_of(blocks: Iterable[dict[str, Any]]) -> Any:
    """Blocks as a message's content: plain text if there is nothing but one text."""
    found = list(blocks)
    return found[0]["text"] if len(found) == 1 and found[0]["type"] == "text" else found


def text_block(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


def data_block(mime: str, data: str, name: str | None = None) -> dict[str, Any]:
    """A block of inline data: a picture, or a file of another kind. `data` is base64, or an address."""
    url = data if "://" in data[:32] or data.startswith("data:") else f"data:{mime};base64,{data}"
    if mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url, **({"filename": name} if name else {})}}
