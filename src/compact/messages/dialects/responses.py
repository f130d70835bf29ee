"""OpenAI Responses items: messages, calls and their outputs, reasoning, references, built-in tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compact.messages.dialects import wire
from compact.messages.dialects.foreign import find_hidden_text
from compact.messages.dialects.forms import Flaw, Form
from compact.messages.message import (
    CallId,
    Image,
    Message,
    Opaque,
    Part,
    Piece,
    Reasoning,
    Refusal,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    to_json,
)

NAME = "responses"
EXPECTED = (
    "an OpenAI Responses item: {'type': 'message' | 'function_call' | 'function_call_output' | 'reasoning' | "
    "'item_reference' | a built-in tool's type, ...} or {'role', 'content'}"
)
ITEMS_ARE_PARTS = True
RESULTS_IN_USER = False
TAKES_PLAIN = True
MODEL_ROLE = "assistant"

_CALLS: dict[str, tuple[str, str]] = {
    # type of the call: (its name if it carries none, the key of its arguments)
    "function_call": ("", "arguments"),
    "custom_tool_call": ("", "input"),
    "computer_call": ("computer", "action"),
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
}
_OUTPUTS = {f"{kind}_output": kind for kind in _CALLS}
_ENDINGS = ("_call", "_call_output", "_list_tools", "_approval_request", "_approval_response")
"""How the types of all other items end."""
_TEXTS = ("input_text", "output_text", "text")
_USER_TYPES = frozenset({"mcp_approval_response"})


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    kind = item.get("type")
    content = item.get("content")
    if kind is None or kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role == "tool" or "tool_calls" in item or "kind" in item:
            return 0
        if find_hidden_text(item):
            return 0
        by_blocks = wire.claim_by_blocks(content, NAME)
        if by_blocks == 1 and isinstance(content, list | tuple) and any(_is_foreign_text(b) for b in content):
            return 0
        return 2 if kind == "message" and by_blocks and "stop_reason" not in item else by_blocks
    if not isinstance(kind, str):
        return 0
    if kind in ("reasoning", "item_reference", "compaction") or kind.endswith(_ENDINGS):
        return 2
    # An unknown type is carried along if the entries around it are items.
    return 0 if item.keys() & {"role", "kind", "content", "lc"} else 1


def _is_foreign_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and wire.owner(block) is None


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = wire.plain(item)
    kind = data.get("type")
    if kind is None or kind == "message":
        parts = wire.read_content(data.get("content"), _read_block)
        if not parts:
            wire.require_own_text(data)
        return Message(wire.role_of(data), parts, origin=item, **_marks(data))
    if not isinstance(kind, str):
        raise ValueError(f"its 'type' is {kind!r}")
    if kind in _CALLS:
        return Message("assistant", (_read_call(kind, data),), origin=item, **_marks(data))
    if kind in _OUTPUTS:
        result = ToolResult(wire.text_at(data, "call_id"), _read_output(data.get("output")), origin=data)
        return Message("tool", (result,), origin=item, **wire.marks(data))
    if kind == "reasoning":
        signed = data.get("encrypted_content") is not None or data.get("id") is not None
        return Message(
            "assistant",
            (Reasoning(_summary(data), signed=signed, origin=data),),
            origin=item,
            **wire.marks(data),
        )
    role = "user" if kind in _USER_TYPES else "assistant"
    return Message(role, (Opaque(kind, origin=data),), origin=item, **wire.marks(data))


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return wire.write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    (only, *others) = message.parts or (None,)
    if isinstance(only, ToolCall) and not others:
        _write_call(data, only)
    elif isinstance(only, ToolResult) and not others:
        data.setdefault("type", "function_call_output")
        data["call_id"] = only.call_id
        blocks = _write_content(only.content, "input_text") if only.content else ""
        # A computer's screenshot is one object, not a list of them.
        data["output"] = blocks[0] if isinstance(data.get("output"), Mapping) and len(blocks) == 1 else blocks
    elif isinstance(only, Reasoning | Opaque) and not others and isinstance(only.origin, Mapping):
        data.clear()
        data.update(only.origin)
    else:
        data["role"] = message.role
        speaks = "output_text" if message.role == "assistant" else "input_text"
        if message.parts or data.get("content"):
            data["content"] = _write_content(message.parts, speaks) if message.parts else ""


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`."""
    form = Form(data)
    kind = data.get("type")
    if kind is None or kind == "message":
        if data.get("role") == "tool":
            form.put("role", "user", "a message cannot have the role 'tool'; results are items of their own")
        speaks = "output_text" if data.get("role") == "assistant" else "input_text"
        _mend_texts(form, "content", speaks)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        if data.get("output") is None:
            form.put("output", "", "the output of the call is missing", "empty_content")
        _mend_texts(form, "output", "input_text")
    elif kind == "function_call" and isinstance(data.get("arguments"), Mapping):
        form.put("arguments", to_json(data["arguments"]), "the arguments of the call are not text")
    return form.data, form.flaws


def _mend_texts(form: Form, key: str, kind: str) -> None:
    form.put_blocks(key, lambda text: {"type": kind, "text": text}, _TEXTS)
    blocks = form.data.get(key)
    if isinstance(blocks, list | tuple):
        mended = [_mend_text(block, kind) for block in blocks]
        if any(new is not old for new, old in zip(mended, blocks, strict=True)):
            form.put(key, mended, f"a text block is not of the type {kind!r} that its role needs")


def _mend_text(block: Any, kind: str) -> Any:
    if not isinstance(block, Mapping):
        return block
    if block.get("type") == "refusal" and kind == "input_text" and isinstance(block.get("refusal"), str):
        return {"type": kind, "text": block["refusal"]}
    return {**block, "type": kind} if block.get("type") in _TEXTS and block["type"] != kind else block


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else wire.plain(item)
    kind = data.get("type")
    if kind is None or kind == "message":
        content = data.get("content")
        found: list[Piece] = [data.get("role") or ""]
        if type(content) is str:
            found.append(content)
        else:
            for part in wire.read_content(content, _read_block):
                found.extend(wire.part_pieces(part))
        if not content:
            wire.require_own_text(data)
        return found
    if not isinstance(kind, str):
        raise ValueError(f"its 'type' is {kind!r}")
    if kind in _CALLS:
        call = _read_call(kind, data)
        return [CallId(call.id), call.name, "" if call.arguments is None else call.arguments_text]
    if kind in _OUTPUTS:
        output = data.get("output")
        return [
            CallId(wire.text_at(data, "call_id")),
            *(p for part in _read_output(output) for p in wire.part_pieces(part)),
        ]
    if kind in ("reasoning", "compaction"):
        sealed = data.get("encrypted_content")
        return [_summary(data), *([Sealed(len(sealed))] if isinstance(sealed, str) else [])]
    if kind == "image_generation_call" and isinstance(data.get("result"), str):
        return [Image(data["result"])]
    return wire.opaque_pieces(data)


def _marks(data: Mapping[str, Any]) -> dict[str, bool]:
    found = wire.marks(data)
    if data.get("status") in ("incomplete", "failed"):
        found["aborted"] = True
    return found


def _read_call(kind: str, data: Mapping[str, Any]) -> ToolCall:
    name, field = _CALLS[kind]
    return ToolCall(
        id=wire.text_at(data, "call_id"),
        name=wire.text_at(data, "name") or name,
        arguments=data.get(field, data.get(f"{field}s")),
        free_form=kind != "function_call",
        origin=data,
    )


def _write_call(data: dict[str, Any], call: ToolCall) -> None:
    kind = data.setdefault("type", "function_call")
    name, field = _CALLS.get(kind, ("", "arguments"))
    data["call_id"] = call.id
    if call.name != name or "name" in data:
        data["name"] = call.name
    if call.arguments is not None and data.get(field) != call.arguments:
        data[field] = call.arguments_text if isinstance(data.get(field, ""), str) else call.arguments


def _summary(data: Mapping[str, Any]) -> str:
    found = []
    for key in ("summary", "content"):
        blocks = data.get(key)
        for block in blocks if isinstance(blocks, list | tuple) else ():
            if isinstance(block, Mapping) and isinstance(block.get("text"), str):
                found.append(block["text"])
    return "\n".join(found)


def _read_output(output: Any) -> tuple[Part, ...]:
    return (_read_block(output),) if isinstance(output, Mapping) else wire.read_content(output, _read_block)


def _read_block(block: Mapping[str, Any] | str) -> Part:
    if isinstance(block, str):
        return Text(block, origin=block)
    kind = block.get("type")
    if kind in ("input_text", "output_text", "text") and isinstance(block.get("text"), str):
        return Text(block["text"], origin=block)
    if kind in ("input_image", "computer_screenshot") and isinstance(block.get("image_url"), str):
        return Image(block["image_url"], detail=block.get("detail"), origin=block)
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        return Refusal(block["refusal"], origin=block)
    return Opaque(str(kind), origin=block)


def _write_content(parts: tuple[Part, ...], text_kind: str) -> Any:
    return wire.write_content(parts, lambda part: _write_block(part, text_kind))


def _write_block(part: Part, text_kind: str) -> Any:
    if isinstance(part, Text):
        return wire.text_block(part, text_kind)
    if isinstance(part, Refusal) and isinstance(part.origin, Mapping):
        return {**part.origin, "refusal": part.text}
    if isinstance(part, Image) and part.origin is None:
        return {"type": "input_image", "image_url": part.source, "detail": part.detail or "auto"}
    return part.origin
