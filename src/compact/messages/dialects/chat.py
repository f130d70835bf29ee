"""OpenAI chat completions, which many other providers accept too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compact.messages.dialects import wire
from compact.messages.dialects.foreign import find_hidden_text
from compact.messages.dialects.forms import Flaw, Form, is_missing, text_block
from compact.messages.message import (
    CallId,
    Image,
    Message,
    Opaque,
    Part,
    Piece,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    to_json,
)

NAME = "chat"
EXPECTED = (
    "an OpenAI chat message: {'role': 'user' | 'assistant' | 'system' | 'developer' | 'tool', 'content': text or "
    "blocks, 'tool_calls'?: [...], 'tool_call_id'?: ...}"
)
ITEMS_ARE_PARTS = False
RESULTS_IN_USER = False
TAKES_PLAIN = True
MODEL_ROLE = "assistant"

_RESULT_ROLES = ("tool", "function")
_SIGNED_KEYS = ("reasoning_details", "thinking_blocks")
_REASONING_KEYS = ("reasoning_content", "reasoning", *_SIGNED_KEYS)


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    role = item.get("role")
    if not isinstance(role, str) or item.get("type") is not None or "kind" in item:
        return 0
    by_blocks = wire.claim_by_blocks(item.get("content"), NAME)
    if by_blocks == 0 or find_hidden_text(item):
        return 0
    certain = any(item.get(key) is not None for key in ("tool_calls", "tool_call_id", "function_call"))
    return 2 if certain else by_blocks


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = wire.plain(item)
    role = wire.role_of(data)
    content = wire.read_content(data.get("content"), _read_block)
    if not content:
        wire.require_own_text(data)
    if role in _RESULT_ROLES:
        _require_call_id(data)
        result = ToolResult(
            call_id=wire.text_at(data, "tool_call_id"),
            content=content,
            name=data["name"] if isinstance(data.get("name"), str) else None,
            by_position=role == "function",
        )
        return Message("tool", (result,), origin=item, **wire.marks(data))
    parts = [*_read_reasoning(data), *content]
    refusal = data.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(Refusal(refusal))
    parts.extend(_read_calls(data))
    return Message(role, tuple(parts), origin=item, **wire.marks(data))


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return wire.write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    if data.get("role") not in (_RESULT_ROLES if message.role == "tool" else (message.role,)):
        data["role"] = message.role
    if message.role == "tool":
        _write_result(data, message)
    else:
        _write_speech(data, message)


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`."""
    form = Form(data)
    role = data.get("role")
    if role == "function" and not data.get("name") and data.get("tool_call_id"):
        role = "tool"
        form.put("role", role, "a function message has no name, but the id of a tool's call")
    elif role == "function" and not data.get("name"):
        form.put("name", "unknown", "a function message has no name", "bad_name")
    form.put_blocks("content", text_block, ("text",))
    if role in _RESULT_ROLES:
        if not isinstance(data.get("name", ""), str | None):
            form.drop("name", "the name of the tool is not text", "bad_name")
        if is_missing(form.data.get("content")):
            form.put("content", "", "the tool message has no content", "empty_content")
    elif form.data.get("content") == []:
        form.put("content", None, "the content is an empty list")
    calls = data.get("tool_calls")
    if isinstance(calls, list | tuple) and not calls:
        form.drop("tool_calls", "the list of tool calls is empty")
    elif calls:
        mended = [_mend_call(call) for call in calls]
        if any(new is not old for new, old in zip(mended, calls, strict=True)):
            form.put("tool_calls", mended, "a tool call lacks its type, or its arguments are not text")
    return form.data, form.flaws


def _mend_call(call: Any) -> Any:
    """A call with its type, and with arguments as text. What is not a call is left for `read` to refuse."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    if isinstance(function.get("arguments"), Mapping):
        return {
            **call,
            "type": "function",
            "function": {**function, "arguments": to_json(function["arguments"])},
        }
    return call if call.get("type") else {**call, "type": "function"}


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else wire.plain(item)
    content = data.get("content")
    found: list[Piece] = [data.get("role") or ""]
    if type(content) is str:
        found.append(content)
    elif content is not None:
        for part in wire.read_content(content, _read_block):
            found.extend(wire.part_pieces(part))
    if not content:
        wire.require_own_text(data)
    if len(data) > 2 or "content" not in data:
        _add_extras(data, found)
    return found


def _add_extras(data: Mapping[str, Any], found: list[Piece]) -> None:
    for key in ("name", "tool_call_id", "refusal", "reasoning_content", "reasoning"):
        value = data.get(key)
        if type(value) is str:
            found.append(CallId(value) if key == "tool_call_id" else value)
    _require_call_id(data)
    if data.get("tool_calls"):
        for place, entry in enumerate(data["tool_calls"]):
            call = entry if type(entry) is dict else wire.plain(entry)
            _require_call(call, place)
            function = call.get("function") or call.get("custom") or call
            if not isinstance(function, Mapping):
                found.append(to_json(function))
                continue
            if call.get("id") is not None:
                found.append(CallId(call["id"]))
            for value in (function.get("name"), function.get("arguments", function.get("input"))):
                if value is not None:
                    found.append(value if type(value) is str else to_json(value))
    if data.get("function_call"):
        found.extend(wire.opaque_pieces(data["function_call"]))
    if data.get("reasoning_details") and not isinstance(data.get("reasoning"), str):
        found.extend(wire.opaque_pieces(data["reasoning_details"]))
    if data.get("thinking_blocks") and not isinstance(data.get("reasoning_content"), str):
        found.extend(wire.opaque_pieces(data["thinking_blocks"]))


def _read_block(block: Mapping[str, Any] | str) -> Part:
    if isinstance(block, str):
        return Text(block, origin=block)
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"], origin=block)
    if kind == "image_url":
        return wire.image_from_url(block.get("image_url"), block)
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        return Refusal(block["refusal"], origin=block)
    if kind == "image":
        return wire.image_block(block) or Opaque(kind, origin=block)
    return Opaque(str(kind), origin=block)


def _read_reasoning(data: Mapping[str, Any]) -> list[Part]:
    found: list[Part] = []
    for key in _REASONING_KEYS:
        value = data.get(key)
        if value:
            # These carry signatures or encrypted text for providers behind a router.
            text = value if isinstance(value, str) else ""
            found.append(Reasoning(text, signed=key in _SIGNED_KEYS, origin=key))
    return found


def _read_calls(data: Mapping[str, Any]) -> list[Part]:
    found: list[Part] = []
    calls = data.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise ValueError(f"its 'tool_calls' is {type(calls).__name__}, not a list")
    for place, entry in enumerate(calls or ()):
        try:
            call = wire.plain(entry)
        except ValueError as problem:
            raise ValueError(f"tool_calls[{place}] is not a call: {problem}") from problem
        _require_call(call, place)
        function = call.get("function") or call.get("custom") or {}
        if not isinstance(function, Mapping):
            function = {}
        free_form = call.get("type") == "custom"
        found.append(
            ToolCall(
                id=wire.text_at(call, "id"),
                name=wire.text_at(function, "name"),
                arguments=function.get("input" if free_form else "arguments"),
                free_form=free_form,
                origin=call,
            )
        )
    legacy = data.get("function_call")
    if isinstance(legacy, Mapping):
        name = wire.text_at(legacy, "name")
        found.append(ToolCall("", name, legacy.get("arguments"), by_position=True, origin=legacy))
    return found


def _require_call(call: Mapping[str, Any], place: int) -> None:
    """Check that a call has an id and a function, whatever is in them; without these it is another format's call."""
    if "id" not in call or not call.keys() & {"function", "custom"}:
        keys = ", ".join(sorted(map(str, call)))
        raise ValueError(f"tool_calls[{place}] is not a call: it lacks 'id' or 'function' (keys: {keys})")


def _require_call_id(data: Mapping[str, Any]) -> None:
    if "tool_name" in data and "tool_call_id" not in data:
        raise ValueError("the result names its tool but not its call: it has no 'tool_call_id'")


def _write_result(data: dict[str, Any], message: Message) -> None:
    (result,) = message.results
    if result.by_position:
        data["role"] = "function"
    else:
        data["tool_call_id"] = result.call_id
    if result.name is not None:
        data["name"] = result.name
    if result.content or data.get("content"):
        data["content"] = wire.write_content(result.content, _write_block) if result.content else ""


def _write_speech(data: dict[str, Any], message: Message) -> None:
    content = tuple(
        p for p in message.parts if not isinstance(p, ToolCall | Reasoning) and not _is_refusal_key(p)
    )
    if content:
        data["content"] = wire.write_content(content, _write_block)
    elif data.get("content"):
        data["content"] = None
    refusals = [part.text for part in message.parts if isinstance(part, Refusal) and _is_refusal_key(part)]
    if refusals:
        data["refusal"] = refusals[0]
    elif data.get("refusal"):
        data["refusal"] = None
    kept = {
        part.origin for part in message.parts if isinstance(part, Reasoning) and isinstance(part.origin, str)
    }
    for key in _REASONING_KEYS:
        if key in data and data[key] and key not in kept:
            del data[key]
    modern = [_write_call(call) for call in message.calls if not call.by_position]
    if modern:
        data["tool_calls"] = modern
    elif data.get("tool_calls"):
        del data["tool_calls"]
    legacy = [call for call in message.calls if call.by_position]
    if legacy:
        data["function_call"] = {**legacy[0].origin, "name": legacy[0].name, "arguments": legacy[0].arguments}
    elif data.get("function_call"):
        del data["function_call"]


def _is_refusal_key(part: Part) -> bool:
    return isinstance(part, Refusal) and part.origin is None


def _write_call(call: ToolCall) -> dict[str, Any]:
    before: Mapping[str, Any] = call.origin if isinstance(call.origin, Mapping) else {"type": "function"}
    inner = "custom" if call.free_form else "function"
    field = "input" if call.free_form else "arguments"
    function = {**(before.get(inner) or {}), "name": call.name}
    if call.arguments is not None:
        same = function.get(field) == call.arguments
        function[field] = function[field] if same else call.arguments_text
    return {**before, "id": call.id, inner: function}


def _write_block(part: Part) -> Any:
    if isinstance(part, Text):
        return wire.text_block(part)
    if isinstance(part, Refusal) and isinstance(part.origin, Mapping):
        return {**part.origin, "refusal": part.text}
    if isinstance(part, Image) and part.origin is None:
        return {
            "type": "image_url",
            "image_url": {"url": part.source, **({"detail": part.detail} if part.detail else {})},
        }
    return part.origin
