"""pydantic-ai's messages as OpenAI chat messages, and back. A message that nobody changed comes back as the same object.

A request of pydantic-ai holds several parts (results of parallel calls, a prompt); each is one chat message. A response is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_core import to_jsonable_python

_Origin = tuple[int, int]
"""A message's place in the list, and a part's place in it."""


class View:
    """A list of pydantic-ai messages as chat messages."""

    def __init__(self, messages: Sequence[ModelMessage]) -> None:
        self._messages = messages
        self.items: list[dict[str, Any]] = []
        self._origins: dict[int, _Origin] = {}
        self._calls: dict[tuple[str, str], _Origin] = {}
        """Where calls are made and answered: so a changed message finds the original that it is a copy of."""
        for place, message in enumerate(messages):
            if isinstance(message, ModelResponse):
                self._add(_response_as_chat(message), (place, 0))
            else:
                for number, part in enumerate(message.parts):
                    self._add(_part_as_chat(part), (place, number))

    def _add(self, item: dict[str, Any], origin: _Origin) -> None:
        self.items.append(item)
        self._origins[id(item)] = origin
        if item["role"] == "tool":
            self._calls["tool", item["tool_call_id"]] = origin
        for call in item.get("tool_calls", ()):
            self._calls["assistant", call["id"]] = origin

    def back(self, kept: Sequence[Any]) -> list[ModelMessage]:
        """pydantic-ai messages for a list that was made of `items`."""
        found: list[ModelMessage] = []
        parts: list[Any] = []
        open_place: int | None = None

        def close() -> None:
            nonlocal open_place
            if parts:
                found.append(self._request(open_place, list(parts)))
                parts.clear()
            open_place = None

        for item in kept:
            origin = self._origins.get(id(item)) or self._origin_of_copy(item)
            place = None if origin is None else origin[0]
            if item["role"] == "assistant":
                close()
                found.append(self._response(item, origin))
                continue
            if place != open_place:
                close()
            open_place = place
            parts.append(self._part(item, origin))
        close()
        return found

    def _origin_of_copy(self, item: Mapping[str, Any]) -> _Origin | None:
        ids = [item.get("tool_call_id"), *(call["id"] for call in item.get("tool_calls") or ())]
        return next((self._calls[key] for one in ids if (key := (item["role"], one)) in self._calls), None)

    def _request(self, place: int | None, parts: list[Any]) -> ModelRequest:
        if place is None:
            return ModelRequest(parts=parts)
        original = self._messages[place]
        assert isinstance(original, ModelRequest)
        if len(parts) == len(original.parts) and all(map(_same, parts, original.parts)):
            return original
        return replace(original, parts=parts)

    def _part(self, item: dict[str, Any], origin: _Origin | None) -> Any:
        if origin is None:
            return UserPromptPart(_words(item["content"]))
        part = self._messages[origin[0]].parts[origin[1]]
        if id(item) in self._origins:
            return part
        if isinstance(part, ToolReturnPart):
            # A plain one: the text that stands for a result has not the shape of a typed result.
            return ToolReturnPart(
                part.tool_name,
                _words(item.get("content")),
                part.tool_call_id,
                metadata=part.metadata,
                timestamp=part.timestamp,
            )
        return UserPromptPart(_words(item["content"]))

    def _response(self, item: dict[str, Any], origin: _Origin | None) -> ModelResponse:
        if origin is None:
            return ModelResponse(parts=[TextPart(_words(item["content"]))])
        original = self._messages[origin[0]]
        assert isinstance(original, ModelResponse)
        if id(item) in self._origins:
            return original
        arguments = {call["id"]: call["function"]["arguments"] for call in item.get("tool_calls") or ()}
        parts = [
            replace(part, args=arguments[part.tool_call_id])
            if isinstance(part, ToolCallPart) and part.tool_call_id in arguments
            else part
            for part in original.parts
        ]
        return replace(original, parts=parts)


def _same(one: Any, other: Any) -> bool:
    return one is other


def _words(content: Any) -> str:
    """The text of a content that compact wrote."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if block.get("type") == "text")


def _part_as_chat(part: Any) -> dict[str, Any]:
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": _content(part.content)}
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    # Feedback and changes of the agent's setting: no person wrote them, and the model needs them where they stand.
    said = part.model_response() if hasattr(part, "model_response") else _opaque(part)
    return {"role": "developer", "content": said if isinstance(said, str) else [said]}


def _response_as_chat(message: ModelResponse) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    item: dict[str, Any] = {"role": "assistant", "content": None}
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            call = {"id": part.tool_call_id, "type": "function", "function": function}
            item.setdefault("tool_calls", []).append(call)
        elif isinstance(part, ThinkingPart):
            item.setdefault("reasoning_details", []).append(_opaque(part))
        elif isinstance(part, TextPart):
            content.append({"type": "text", "text": part.content})
        else:
            content.append(_opaque(part))
    only_text = len(content) == 1 and content[0]["type"] == "text"
    item["content"] = content[0]["text"] if only_text else content or None
    return item


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [_block(each) for each in content]


def _block(each: Any) -> dict[str, Any]:
    if isinstance(each, str):
        return {"type": "text", "text": each}
    if isinstance(each, ImageUrl):
        return {"type": "image_url", "image_url": {"url": each.url}}
    if isinstance(each, BinaryContent) and each.is_image:
        return {"type": "image_url", "image_url": {"url": each.data_uri}}
    return _opaque(each)


def _opaque(part: Any) -> dict[str, Any]:
    """A part that compact does not interpret: carried along, and counted."""
    data = to_jsonable_python(part, exclude_none=True, fallback=str)
    kind = getattr(part, "part_kind", None) or getattr(part, "kind", None) or type(part).__name__
    return {**data, "type": kind} if isinstance(data, dict) else {"type": kind, "data": data}
