"""AI-SDK messages: content parts of type `tool-call` and `tool-result`, names in camel case.

Both generations are supported: `args` and `result` (version 4), `input` and `output` (version 5). A tool message may
also carry plain text, with the tool's name in `metadata.tool_name`. Without a call id it answers the next open call of
that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    Text,
    ToolCall,
    ToolResult,
    to_json,
)

NAME = "ai_sdk"
EXPECTED = (
    "an AI-SDK message: {'role', 'content': text or parts of type text, tool-call, tool-result, image, ..., "
    "'metadata'?: {'tool_name'}}"
)
ITEMS_ARE_PARTS = False
RESULTS_IN_USER = False
TAKES_PLAIN = True
MODEL_ROLE = "assistant"


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    role = item.get("role")
    if not isinstance(role, str) or "tool_calls" in item or "kind" in item or item.get("type") is not None:
        return 0
    if find_hidden_text(item):
        return 0
    by_blocks = wire.claim_by_blocks(item.get("content"), NAME)
    metadata = item.get("metadata")
    if by_blocks and role == "tool" and isinstance(metadata, Mapping) and "tool_name" in metadata:
        return 2
    return by_blocks


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = wire.plain(item)
    role = wire.role_of(data)
    content = data.get("content")
    if not content:
        wire.require_own_text(data)
    if role == "tool" and not isinstance(content, list | tuple):
        return Message(role, (_read_text_result(data),), origin=item, **wire.marks(data))
    return Message(role, wire.read_content(content, _read_block), origin=item, **wire.marks(data))


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return wire.write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    data["role"] = message.role
    results = message.results
    if len(results) == 1 and message.parts == results and isinstance(results[0].origin, str):
        _write_text_result(data, results[0])
    elif message.parts or data.get("content"):
        data["content"] = wire.write_content(message.parts, _write_block)


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`."""
    form = Form(data)
    form.put_blocks("content", text_block, ("text",))
    role, content = data.get("role"), form.data.get("content")
    if role == "tool" and is_missing(content):
        form.put("content", "", "the tool message has no content", "empty_content")
    elif role != "assistant" and isinstance(content, list | tuple):
        _mend_results(form, str(role), content)
    return form.data, form.flaws


def _mend_results(form: Form, role: str, content: Sequence[Any]) -> None:
    """Mend a message with results: it is a tool message, which takes either results or one text."""
    results = [
        block for block in content if isinstance(block, Mapping) and block.get("type") == "tool-result"
    ]
    if role != "tool":
        if content and len(results) == len(content):
            form.put("role", "tool", "tool results stand in another message", "misplaced_part")
        elif results:
            kept = [block for block in content if all(block is not each for each in results)]
            form.put("content", kept, "tool results stand beside words", "misplaced_part")
    elif results and len(results) < len(content):
        form.put("content", results, "a tool message has more than results", "misplaced_part")
    elif not results and all(isinstance(block, Mapping) and block.get("type") == "text" for block in content):
        text = "\n".join(block["text"] for block in content)
        form.put("content", text, "the text of a tool message stands in blocks")


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else wire.plain(item)
    content = data.get("content")
    found: list[Piece] = [data.get("role") or ""]
    if not content:
        wire.require_own_text(data)
    if data.get("role") == "tool" and not isinstance(content, list | tuple):
        result = _read_text_result(data)
        return [*found, CallId(result.call_id), result.name or "", result.text]
    if type(content) is str:
        found.append(content)
        return found
    for part in wire.read_content(content, _read_block):
        if isinstance(part, ToolCall):
            found += [CallId(part.id), part.name, part.arguments_text]
        elif isinstance(part, ToolResult):
            found += [CallId(part.call_id), part.name or "", part.text]
            found += [inner for inner in part.content if isinstance(inner, Image)]
        else:
            found += wire.part_pieces(part)
    return found


def _read_text_result(data: Mapping[str, Any]) -> ToolResult:
    metadata = data.get("metadata")
    notes: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    call_id, place = "", ""
    for where, key in (
        (data, "tool_call_id"),
        (data, "toolCallId"),
        (notes, "tool_call_id"),
        (notes, "toolCallId"),
    ):
        if isinstance(where.get(key), str) and where[key]:
            call_id, place = where[key], key if where is data else f"metadata.{key}"
            break
    name = notes.get("tool_name") or data.get("toolName") or data.get("name")
    return ToolResult(
        call_id=call_id,
        content=wire.read_content(data.get("content"), _read_block),
        name=name if isinstance(name, str) else None,
        by_position=not call_id,
        # Where the id was found, so that a changed id is written back to the same place.
        origin=place,
    )


def _write_text_result(data: dict[str, Any], result: ToolResult) -> None:
    if result.origin.startswith("metadata."):
        data["metadata"] = {**data["metadata"], result.origin.removeprefix("metadata."): result.call_id}
    elif result.origin:
        data[result.origin] = result.call_id
    data["content"] = wire.join_text(result.content)


def _read_block(block: Mapping[str, Any] | str) -> Part:
    if isinstance(block, str):
        return Text(block, origin=block)
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Text(block["text"], origin=block)
    if kind == "tool-call":
        arguments = block.get("args", block.get("input"))
        call_id = wire.text_at(block, "toolCallId")
        return ToolCall(
            call_id, wire.text_at(block, "toolName"), arguments, by_position=not call_id, origin=block
        )
    if kind == "tool-result":
        return ToolResult(
            call_id=wire.text_at(block, "toolCallId"),
            content=_read_output(block),
            name=wire.text_at(block, "toolName") or None,
            by_position=not wire.text_at(block, "toolCallId"),
            is_error=block.get("isError") is True,
            origin=block,
        )
    if kind == "reasoning" and isinstance(block.get("text"), str):
        signed = bool(block.get("signature") or block.get("providerOptions") or block.get("providerMetadata"))
        return Reasoning(block["text"], signed=signed, origin=block)
    if kind == "image" and isinstance(block.get("image"), str):
        return Image(block["image"], origin=block)
    media_type = wire.text_at(block, "mediaType") or wire.text_at(block, "mimeType")
    if kind == "file" and isinstance(block.get("data"), str) and media_type.startswith("image/"):
        return Image(block["data"], origin=block)
    return Opaque(str(kind), origin=block)


def _read_output(block: Mapping[str, Any]) -> tuple[Part, ...]:
    value = block.get("result")
    if value is None:
        output = block.get("output")
        value = output.get("value") if isinstance(output, Mapping) and "value" in output else output
    if value is None:
        return ()
    return (Text(value if isinstance(value, str) else to_json(value)),)


def _write_block(part: Part) -> Any:
    if isinstance(part, Text):
        return wire.text_block(part)
    if isinstance(part, ToolCall):
        before: Mapping[str, Any] = part.origin if isinstance(part.origin, Mapping) else {"type": "tool-call"}
        field = "input" if "input" in before and "args" not in before else "args"
        changed = {**before, **({} if part.by_position else {"toolCallId": part.id}), "toolName": part.name}
        if part.arguments is not None:
            parsed = part.parsed_arguments()
            changed[field] = part.arguments if parsed is None else parsed
        return before if changed == before else changed
    if isinstance(part, ToolResult):
        return _write_result(part)
    if isinstance(part, Image) and part.origin is None:
        return {"type": "image", "image": part.source}
    return part.origin


def _write_result(result: ToolResult) -> Any:
    if not isinstance(result.origin, Mapping):
        named = {"toolName": result.name} if result.name else {}
        failed = {"isError": True} if result.is_error else {}
        text = wire.join_text(result.content)
        return {"type": "tool-result", "toolCallId": result.call_id, **named, "result": text, **failed}
    before = result.origin
    changed = {**before} if result.by_position else {**before, "toolCallId": result.call_id}
    if result.name and changed.get("toolName") != result.name:
        changed["toolName"] = result.name
    if _read_output(before) != result.content:
        text = wire.join_text(result.content)
        if "output" in before and "result" not in before:
            changed["output"] = {"type": "text", "value": text}
        else:
            changed["result"] = text
    return changed
