"""Bedrock Converse: content blocks without a type, each named by its only key; results inside user messages.

Bytes stand as bytes, as boto3 takes them, or as base64, as they go over the wire. A cache point is a block of its own: it
says nothing and costs nothing. The system prompt is a field of the request. Hosts that keep it in their list put it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compact.messages.dialects import wire
from compact.messages.dialects.forms import Flaw, Form
from compact.messages.message import (
    CACHE_POINT,
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

NAME = "converse"
EXPECTED = (
    "a Bedrock Converse message: {'role': 'user' | 'assistant', 'content': blocks of text, toolUse, toolResult, image, "
    "document, ...}"
)
ITEMS_ARE_PARTS = False
RESULTS_IN_USER = True
TAKES_PLAIN = False
MODEL_ROLE = "assistant"

NO_WORDS = "[the call failed without saying why]"
BESIDE_DOCUMENT = "[the document above]"
BLOCKS = frozenset(
    {
        "text",
        "image",
        "document",
        "video",
        "audio",
        "toolUse",
        "toolResult",
        "guardContent",
        CACHE_POINT,
        "reasoningContent",
        "citationsContent",
        "searchResult",
    }
)
"""The keys by which its blocks are known."""


def claim(item: Mapping[str, Any]) -> int:
    """See `Dialect.claim`."""
    content = item.get("content")
    if item.get("role") not in ("user", "assistant", "system") or not isinstance(content, list | tuple):
        return 0
    if "tool_calls" in item or "kind" in item or item.get("type") is not None:
        return 0
    if any(
        not isinstance(block, str) and (not isinstance(block, Mapping) or "type" in block)
        for block in content
    ):
        return 0
    return 2 if any(not isinstance(block, str) and BLOCKS & block.keys() for block in content) else 1


def read(item: Any) -> Message:
    """See `Dialect.read`."""
    data = wire.plain(item)
    if not data.get("content"):
        wire.require_own_text(data)
    parts = _read_content(data.get("content"))
    found = wire.marks(data)
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].text == GAP:
        found["injected"] = True  # compact wrote it, not a person
    return Message(wire.role_of(data), parts, origin=item, **found)


def write(message: Message) -> Any:
    """See `Dialect.write`."""
    return wire.write_entry(message, _fill)


def _fill(data: dict[str, Any], message: Message) -> None:
    data["role"] = message.role
    before = data.get("content")
    if isinstance(before, str) and message.parts == (Text(before),):
        return
    if message.parts or before:
        data["content"] = list(map(_write_block, message.parts))


def mend(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
    """See `Dialect.mend`."""
    form = Form(data)
    content = data.get("content")
    if isinstance(content, str):
        form.put("content", [{"text": content}], "the content is a bare string", "bare_string")
    _mend_blocks(form)
    blocks = form.data.get("content")
    if isinstance(blocks, list | tuple) and _lacks_words(blocks):
        blocks = [*blocks, {"text": BESIDE_DOCUMENT}]
        form.put("content", blocks, "a document stands in a message without text")
    if isinstance(blocks, list | tuple):
        mended = [_mend_result(block, form.flaws) for block in blocks]
        if any(new is not old for new, old in zip(mended, blocks, strict=True)):
            form.data = {**form.data, "content": mended}
    return form.data, form.flaws


def _lacks_words(blocks: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a document stands without a text beside it, which Bedrock asks for."""
    if not any("document" in block for block in blocks):
        return False
    return not any(isinstance(block.get("text"), str) and block["text"].strip() for block in blocks)


def _mend_blocks(form: Form) -> None:
    blocks = form.data.get("content")
    if not isinstance(blocks, list | tuple):
        return
    if any(isinstance(block, str) for block in blocks):
        blocks = [{"text": block} if isinstance(block, str) else block for block in blocks]
        form.put("content", blocks, "a bare string stands where a content block should", "bare_string")
    kept = [block for block in blocks if not _holds_nothing(block)]
    if len(kept) < len(blocks):
        form.put("content", kept, "a content block holds nothing")


def _holds_nothing(block: Mapping[str, Any]) -> bool:
    """Whether a block has no key with a value. A text must be text, and what else is known an object."""
    if all(value is None for value in block.values()):
        return True
    return "text" in block and not isinstance(block["text"], str)


def _mend_result(block: Any, flaws: list[Flaw]) -> Any:
    result = block.get("toolResult") if isinstance(block, Mapping) else None
    if not isinstance(result, Mapping):
        return block
    form = Form(result)
    content = result.get("content")
    if content is None:
        form.put("content", [], "the tool result has no content", "empty_content")
    elif isinstance(content, str):
        form.put("content", [{"text": content}], "the content of a result is a bare string", "bare_string")
    _mend_blocks(form)
    blocks = form.data.get("content")
    said = [block for block in blocks if not _is_blank(block)] if isinstance(blocks, list | tuple) else blocks
    if said is not None and blocks is not None and len(said) < len(blocks):
        form.put("content", said, "a text in the result is blank", "empty_block")
    if said == [] and result.get("status") == "error":
        form.put(
            "content", [{"text": NO_WORDS}], "the result of a failed call has no content", "empty_content"
        )
    flaws += form.flaws
    return {**block, "toolResult": form.data} if form.flaws else block


def _is_blank(block: Mapping[str, Any]) -> bool:
    return isinstance(block.get("text"), str) and not block["text"].strip()


def pieces(item: Any) -> Iterable[Piece]:
    """See `Dialect.pieces`."""
    data = item if type(item) is dict else wire.plain(item)
    content = data.get("content")
    found: list[Piece] = [data.get("role") or ""]
    if not content:
        wire.require_own_text(data)
    for part in _read_content(content):
        _add_part(part, found)
    return found


def _add_part(part: Part, found: list[Piece]) -> None:
    if isinstance(part, ToolCall):
        found += [CallId(part.id), part.name, part.arguments_text]
    elif isinstance(part, ToolResult):
        found.append(CallId(part.call_id))
        for inner in part.content:
            _add_part(inner, found)
    elif isinstance(part, Reasoning) and not part.text and isinstance(part.origin, Mapping):
        reasoning = part.origin.get("reasoningContent")
        sealed = reasoning.get("redactedContent") if isinstance(reasoning, Mapping) else None
        found.append(Sealed(len(wire.encoded(sealed))))
    elif not (isinstance(part, Opaque) and part.type == CACHE_POINT):
        found += wire.part_pieces(part)


def _read_content(content: Any) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list | tuple):
        raise ValueError(f"its 'content' is {type(content).__name__}, not a list of blocks")
    for place, block in enumerate(content):
        if not isinstance(block, Mapping | str):
            raise ValueError(f"content[{place}] is not a block: got {type(block).__name__}")
        if isinstance(block, Mapping) and "type" in block and not BLOCKS & block.keys():
            raise ValueError(f"content[{place}] is a block of another format: it has a type")
    return tuple(map(_read_block, content))


def _read_block(block: Mapping[str, Any] | str) -> Part:
    if isinstance(block, str):
        return Text(block, origin=block)
    if isinstance(block.get("text"), str):
        return Text(block["text"], origin=block)
    if isinstance(block.get("toolUse"), Mapping):
        use = block["toolUse"]
        return ToolCall(
            wire.text_at(use, "toolUseId"), wire.text_at(use, "name"), use.get("input"), origin=block
        )
    if isinstance(block.get("toolResult"), Mapping):
        result = block["toolResult"]
        return ToolResult(
            wire.text_at(result, "toolUseId"),
            _read_content(result.get("content")),
            is_error=result.get("status") == "error",
            origin=block,
        )
    if "json" in block:
        return Text(to_json(block["json"]), origin=block)
    if isinstance(block.get("reasoningContent"), Mapping):
        return _read_reasoning(block["reasoningContent"], block)
    if isinstance(block.get("image"), Mapping):
        return _read_image(block["image"], block)
    guarded = _guarded_text(block)
    if guarded is not None:
        return Text(guarded, origin=block)
    return Opaque(str(next(iter(block), "")), origin=block)


def _read_reasoning(reasoning: Mapping[str, Any], block: Mapping[str, Any]) -> Part:
    said = reasoning.get("reasoningText")
    if not isinstance(said, Mapping):
        return Reasoning("", signed=True, origin=block)
    return Reasoning(wire.text_at(said, "text"), signed=bool(said.get("signature")), origin=block)


def _read_image(image: Mapping[str, Any], block: Mapping[str, Any]) -> Part:
    source = image.get("source")
    if not isinstance(source, Mapping):
        return Image("", origin=block)
    stored = source.get("s3Location")
    where = stored.get("uri") if isinstance(stored, Mapping) else None
    return Image(wire.encoded(source.get("bytes") or where), origin=block)


def _guarded_text(block: Mapping[str, Any]) -> str | None:
    """What somebody said in a block that a guardrail is to look at; None for a source that it only compares with."""
    guard = block.get("guardContent")
    inner = guard.get("text") if isinstance(guard, Mapping) else None
    if isinstance(inner, Mapping) and "grounding_source" in (inner.get("qualifiers") or ()):
        return None
    text = inner.get("text") if isinstance(inner, Mapping) else None
    return text if isinstance(text, str) else None


def _write_block(part: Part) -> Any:
    if isinstance(part, Text):
        return _write_text(part)
    if isinstance(part, ToolCall):
        return _write_call(part)
    if isinstance(part, ToolResult):
        return _write_result(part)
    if isinstance(part, Image) and part.origin is None:
        return {"image": {"format": "png", "source": {"s3Location": {"uri": part.source}}}}
    return part.origin


def _write_text(part: Text) -> Any:
    before = part.origin
    if isinstance(before, str):
        return part.text
    if not isinstance(before, Mapping):
        return {"text": part.text}
    if isinstance(_read_block(before), Text) and _read_block(before) == part:
        return before
    if "guardContent" in before:
        guard = before["guardContent"]
        return {**before, "guardContent": {**guard, "text": {**guard["text"], "text": part.text}}}
    return {"text": part.text} if "json" in before else {**before, "text": part.text}


def _write_call(call: ToolCall) -> Any:
    block: Mapping[str, Any] = call.origin if isinstance(call.origin, Mapping) else {}
    before: Mapping[str, Any] = block.get("toolUse") or {}
    arguments = call.arguments
    if isinstance(arguments, str):
        parsed = call.parsed_arguments()
        arguments = arguments if parsed is None else parsed
    if (before.get("toolUseId"), before.get("name"), before.get("input")) == (call.id, call.name, arguments):
        return block
    return {**block, "toolUse": {**before, "toolUseId": call.id, "name": call.name, "input": arguments}}


def _write_result(result: ToolResult) -> Any:
    block: Mapping[str, Any] = result.origin if isinstance(result.origin, Mapping) else {}
    before: Mapping[str, Any] = block.get("toolResult") or {}
    changed = {**before, "toolUseId": result.call_id}
    if not block or _read_content(before.get("content")) != result.content:
        changed["content"] = list(map(_write_block, result.content))
    if not block and result.is_error:
        changed["status"] = "error"
    return block if block and changed == before else {**block, "toolResult": changed}
