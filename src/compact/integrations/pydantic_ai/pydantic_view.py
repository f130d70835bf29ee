"""pydantic-ai's messages as OpenAI chat messages, and back.

A pydantic-ai request holds several parts (results of parallel calls, a prompt), and each part is one chat message. A
response is one chat message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import is_
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

from compact.integrations.chat_view import ChatView

_Origin = tuple[int, int]
"""The index of a message in the list, and of a part in the message."""


class PydanticView(ChatView[_Origin]):
    """A list of pydantic-ai messages as chat messages."""

    def __init__(self, messages: Sequence[ModelMessage]) -> None:
        super().__init__(messages)
        self._prompts: dict[int, Any] = {}
        """The pieces of prompts, by the id of the block that shows them."""
        for index, message in enumerate(messages):
            if isinstance(message, ModelResponse):
                self.add(_response_to_chat(message), (index, 0))
            else:
                for number, part in enumerate(message.parts):
                    item = _part_to_chat(part)
                    self.add(item, (index, number))
                    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
                        self._prompts |= zip(map(id, item["content"]), part.content, strict=True)

    def back(self, kept: Sequence[Any]) -> list[ModelMessage]:
        """Return pydantic-ai messages for a list that was made from `items`."""
        found: list[ModelMessage] = []
        # Neighbouring parts of one request become one request again.
        for (is_response, index), items in groupby(kept, self._message_of):
            if is_response:
                found += [self._response(item) for item in items]
            else:
                found.append(self._request(index, [self._part(item) for item in items]))
        return found

    def _message_of(self, item: dict[str, Any]) -> tuple[bool, int | None]:
        origin = self.origin_of(item)
        return item["role"] == "assistant", None if origin is None else origin[0]

    def _request(self, index: int | None, parts: list[Any]) -> ModelRequest:
        if index is None:
            return ModelRequest(parts=parts)
        original = self.messages[index]
        if len(parts) == len(original.parts) and all(map(is_, parts, original.parts)):
            return original  # type: ignore[no-any-return]
        return replace(original, parts=parts)  # type: ignore[no-any-return]

    def _part(self, item: dict[str, Any]) -> Any:
        origin = self.origin_of(item)
        if origin is None:
            return UserPromptPart(_restore_prompt(item["content"], self._prompts))
        part = self.messages[origin[0]].parts[origin[1]]
        if self.is_unchanged(item):
            return part
        if _is_result(part):
            # A plain part, because the replacement text does not have the shape of a typed result.
            return ToolReturnPart(
                part.tool_name,
                _text(item.get("content")),
                part.tool_call_id,
                metadata=getattr(part, "metadata", None),
                timestamp=part.timestamp,
            )
        return UserPromptPart(_restore_prompt(item["content"], self._prompts))

    def _response(self, item: dict[str, Any]) -> ModelResponse:
        origin = self.origin_of(item)
        if origin is None:
            return ModelResponse(parts=[TextPart(_text(item["content"]))])
        original: ModelResponse = self.messages[origin[0]]
        if self.is_unchanged(item):
            return original
        return replace(original, parts=_restore_parts(original, item))


def _restore_prompt(content: Any, known: Mapping[int, Any]) -> Any:
    """Return the content of a prompt: text, or the host's own pieces between texts that compact changed."""
    if isinstance(content, str) or all(_is_text(block) for block in content or ()):
        return _text(content)
    return [known[id(block)] if id(block) in known else _text([block]) for block in content]


def _restore_parts(original: ModelResponse, item: dict[str, Any]) -> list[Any]:
    """Return a response's parts in their order: with its present words and arguments, without what was taken out."""
    arguments = {call["id"]: call["function"]["arguments"] for call in item.get("tool_calls") or ()}
    reasoning = item.get("reasoning_details") or []
    words = item.get("content")
    same_words = words == _response_to_chat(original)["content"]
    found: list[Any] = []
    for part in original.parts:
        if isinstance(part, ToolCallPart):
            if part.tool_call_id in arguments:
                found.append(_with_arguments(part, arguments[part.tool_call_id]))
        elif isinstance(part, ThinkingPart):
            found += [part] if _to_opaque(part) in reasoning else []
        elif same_words or not isinstance(part, TextPart):
            found.append(part)
        elif words:
            found.append(TextPart(_text(words)))
            words = None
    return found


def _with_arguments(part: ToolCallPart, arguments: Any) -> ToolCallPart:
    return part if arguments == part.args_as_json_str() else replace(part, args=arguments)


def _text(content: Any) -> str:
    """Return the text of a content that compact wrote."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if _is_text(block))


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text"


def _is_result(part: Any) -> bool:
    """Return whether a part answers a tool call. A request to try again does, too, if it names the tool."""
    return isinstance(part, ToolReturnPart) or bool(
        getattr(part, "tool_name", None) and getattr(part, "tool_call_id", None)
    )


def _part_to_chat(part: Any) -> dict[str, Any]:
    if isinstance(part, UserPromptPart):
        is_text = isinstance(part.content, str)
        return {"role": "user", "content": part.content if is_text else list(map(_to_block, part.content))}
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if _is_result(part):
        is_return = isinstance(part, ToolReturnPart)
        said = part.model_response_str() if is_return else part.model_response()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": said}
    # Feedback and changes of the agent's settings: no person wrote them, and the model needs them in place.
    said = part.model_response() if hasattr(part, "model_response") else _to_opaque(part)
    return {"role": "developer", "content": said if isinstance(said, str) else [said]}


def _response_to_chat(message: ModelResponse) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    item: dict[str, Any] = {"role": "assistant", "content": None}
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
            call = {"id": part.tool_call_id, "type": "function", "function": function}
            item.setdefault("tool_calls", []).append(call)
        elif isinstance(part, ThinkingPart):
            item.setdefault("reasoning_details", []).append(_to_opaque(part))
        elif isinstance(part, TextPart):
            content.append({"type": "text", "text": part.content})
        else:
            content.append(_to_opaque(part))
    only_text = len(content) == 1 and content[0]["type"] == "text"
    item["content"] = content[0]["text"] if only_text else content or None
    return item


def _to_block(each: Any) -> dict[str, Any]:
    if isinstance(each, str):
        return {"type": "text", "text": each}
    if isinstance(each, ImageUrl):
        return {"type": "image_url", "image_url": {"url": each.url}}
    if isinstance(each, BinaryContent) and each.is_image:
        return {"type": "image_url", "image_url": {"url": each.data_uri}}
    return _to_opaque(each)


def _to_opaque(part: Any) -> dict[str, Any]:
    """Return a part that compact carries along and counts without interpreting it."""
    data = to_jsonable_python(part, exclude_none=True, fallback=str)
    kind = getattr(part, "part_kind", None) or getattr(part, "kind", None) or type(part).__name__
    return {**data, "type": kind} if isinstance(data, dict) else {"type": kind, "data": data}
