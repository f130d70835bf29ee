"""Anthropic messages: content blocks, results inside user messages, signed thinking.

The system prompt is a field of the request, not a message. Hosts that keep it in their list put it first with the role
"system", which is read as the system prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compact.messages.dialects import wire
from compact.messages.dialects.foreign import find_hidden_text
from compact.messages.dialects.forms import Flaw, Form, text_block
from compact.messages.message import (
    GAP,
    CallId,
    Image,
    Message,
    Opaque,
    Part,
    Piece,
    Reasoning,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    to_json,
)

NAME = "anthropic"
EXPECTED = (
    "an Anthropic message: {'role': 'user' | 'assistant', 'content': text or blocks of type text, image, tool_use, "
    "tool_result, thinking, ...}"
)
ITEMS_ARE_PARTS = False
RESULTS_IN_USER = True
TAKES_PLAIN = True
MODEL_ROLE = "assistant"


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    if item.get("role") not in ("user", "assistant", "system") or "tool_calls" in item or "kind" in item:
        return 0
    if item.get("type") not in (None, "message"):
        return 0
    if find_hidden_text(item):
        return 0
    by_blocks = wire.claim_by_blocks(item.get("content"), NAME)
    whole_reply = item.get("type") == "message" and "stop_reason" in item
    return 2 if whole_reply and by_blocks else by_blocks


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = wire.plain(item)
    if not data.get("content"):
        wire.require_own_text(data)
    found = wire.marks(data)
    if data.get("content") == GAP:
        found["injected"] = True  # compact wrote it, not a person
    return Message(
        wire.role_of(data), wire.read_content(data.get("content"), _read_block), origin=item, **found
    )


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return wire.write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    data["role"] = message.role
    if message.parts or data.get("content"):
        data["content"] = wire.write_content(message.parts, _write_block)


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`."""
    form = Form(data)
    form.put_blocks("content", text_block, ("text",))
    blocks = form.data.get("content")
    if isinstance(blocks, list | tuple):
        mended = [_mend_result(block, form.flaws) for block in blocks]
        if any(new is not old for new, old in zip(mended, blocks, strict=True)):
            form.data = {**form.data, "content": mended}
    return form.data, form.flaws


def _mend_result(block: Any, flaws: list[Flaw]) -> Any:
    if not isinstance(block, Mapping) or block.get("type") != "tool_result":
        return block
    form = Form(block)
    if "content" in block and block["content"] is None:
        form.drop("content", "the content of the tool result is null", "empty_content")
    form.put_blocks("content", text_block, ("text",))
    flaws += form.flaws
    return form.data


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else wire.plain(item)
    content = data.get("content")
    found: list[Piece] = [data.get("role") or ""]
    if type(content) is str:
        found.append(content)
    elif content is not None:
        for block in wire.blocks_of(content):
            _add_block(block, found)
    if not content:
        wire.require_own_text(data)
    return found


def _add_block(block: Mapping[str, Any] | str, found: list[Piece]) -> None:
    if isinstance(block, str):
        found.append(block)
        return
    kind = block.get("type")
    if kind == "text":
        found.append(block.get("text") or "")
    elif kind == "tool_use":
        found += [CallId(block.get("id") or ""), block.get("name") or "", to_json(block.get("input"))]
    elif kind == "tool_result":
        found.append(CallId(block.get("tool_use_id") or ""))
        content = block.get("content")
        if type(content) is str:
            found.append(content)
        elif content is not None:
            for inner in wire.blocks_of(content):
                _add_block(inner, found)
    elif kind == "thinking":
        found.append(block.get("thinking") or "")
    elif kind == "redacted_thinking":
        found.append(Sealed(len(block.get("data") or "")))
    elif kind == "image":
        found.append(_read_image(block))
    elif kind == "compaction":
        found += [block.get("content") or "", Sealed(len(block.get("encrypted_content") or ""))]
    else:
        # A cache mark is an instruction to the provider, not text for the model.
        found += wire.opaque_pieces({key: value for key, value in block.items() if key != "cache_control"})


def _read_block(block: Mapping[str, Any] | str) -> Part:
    if isinstance(block, str):
        return Text(block, origin=block)
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"], origin=block)
    if kind == "tool_use":
        return ToolCall(
            wire.text_at(block, "id"), wire.text_at(block, "name"), block.get("input"), origin=block
        )
    if kind == "tool_result":
        return ToolResult(
            call_id=wire.text_at(block, "tool_use_id"),
            content=wire.read_content(block.get("content"), _read_block),
            is_error=block.get("is_error") is True,
            origin=block,
        )
    if kind == "thinking":
        return Reasoning(wire.text_at(block, "thinking"), signed=bool(block.get("signature")), origin=block)
    if kind == "redacted_thinking":
        return Reasoning("", signed=True, origin=block)
    if kind == "image":
        return _read_image(block)
    return Opaque(str(kind), origin=block)


def _read_image(block: Mapping[str, Any]) -> Image:
    source = block.get("source")
    if not isinstance(source, Mapping):
        return Image("", origin=block)
    return Image(str(source.get("data") or source.get("url") or ""), origin=block)


def _write_block(part: Part) -> Any:
    if isinstance(part, Text):
        return wire.text_block(part)
    if isinstance(part, ToolCall):
        return _write_call(part)
    if isinstance(part, ToolResult):
        return _write_result(part)
    if isinstance(part, Image) and part.origin is None:
        return {"type": "image", "source": {"type": "url", "url": part.source}}
    return part.origin


def _write_call(call: ToolCall) -> Any:
    before: Mapping[str, Any] = call.origin if isinstance(call.origin, Mapping) else {"type": "tool_use"}
    arguments = call.arguments
    if isinstance(arguments, str):
        parsed = call.parsed_arguments()
        arguments = arguments if parsed is None else parsed
    if (before.get("id"), before.get("name"), before.get("input")) == (call.id, call.name, arguments):
        return before
    return {**before, "id": call.id, "name": call.name, "input": arguments}


def _write_result(result: ToolResult) -> Any:
    before: Mapping[str, Any] | None = result.origin if isinstance(result.origin, Mapping) else None
    if before is None:
        written: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
        if result.content:
            written["content"] = wire.write_content(result.content, _write_block)
        return {**written, "is_error": True} if result.is_error else written
    content = wire.read_content(before.get("content"), _read_block)
    if before.get("tool_use_id") == result.call_id and content == result.content:
        return before
    changed = {**before, "tool_use_id": result.call_id}
    if result.content or "content" in before:
        changed["content"] = wire.write_content(result.content, _write_block)
    return changed
