"""Whose words stand where in a message, and which of its fields are nobody's.

A message is walked by its structure. What a field means depends on where it stands: `signature` of a thinking block is the
provider's and stays as it is, `signature` in the result of a tool is text like any other. Every dialect is walked alike,
because their fields have different names.

A person's words are the known texts of a message of a user, a system or a developer. Everything else in such a message, a block
of a type that is not known here or a field beside the text, comes from outside like the result of a tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby
from typing import Any, Protocol

from compact.messages.dialects.wire import marks, plain, rebuild
from compact.redaction.data import Masker, mask_across, mask_value
from compact.redaction.memory import Origin
from compact.redaction.shapes import word_set

_IDS = word_set(
    "id call_id tool_call_id tool_use_id toolCallId toolUseId file_id item_id itemId response_id "
    "container_id approval_request_id message_id messageId previous_response_id"
)
"""Ids link a call with its result, and some are made by the provider. They are never matched."""
_STRUCTURE = word_set(
    "role type kind part_kind status model index finish_reason stop_reason stopReason cache_control media_type "
    "mime_type mimeType mediaType detail state format phase"
)
_STRUCTURAL = re.compile(r"[\w.:/+-]{0,128}\Z")
"""What such a field says. Anything else is text that stands in the wrong place."""
_NAMES = frozenset({"name", "toolName", "tool_name"})
_SPEAKERS = frozenset({"user", "system", "developer", "assistant"})
"""Roles whose `name` is that of a speaker, not of a tool."""
_UNNAMED = re.compile(r"[^A-Za-z0-9_.-]+")
"""What no name may contain."""

_BLOCKS = word_set(
    "content parts tool_calls function function_call custom summary toolUse functionCall reasoningContent reasoningText thinking_blocks reasoning_details citations "
    "annotations source image_url input_audio file inlineData inline_data fileData file_data audio"
)
"""Fields that hold blocks or a part of a block."""
_PROVIDER_FIELDS = word_set("providerOptions providerMetadata provider_specific_fields extra_content")
"""Fields that hold what a provider wants back, by the provider's name."""
_TEXTS = word_set("content text thinking reasoning_content reasoning refusal arguments input output code")
_RESULT_FIELDS = word_set(
    "output outputs result results errorText codeExecutionResult code_execution_result toolResponse tool_response response"
)
"""What a tool said inside an entry of the model, such as a call that the provider ran itself."""
_RESULTS = word_set(
    "toolResult functionResponse function_response document searchResult guardContent resource tool_result"
)
"""Fields that hold a whole result, or something else that somebody else wrote, in dialects whose blocks have no type."""
_RESULT_BLOCKS = word_set("content output value toolResult source image_url inlineData inline_data")
"""Fields of a result that hold blocks of text and pictures."""
_OUTSIDE_TYPES = word_set(
    "document search_result search-result file input_file function_response resource retry-prompt"
)
"""Blocks that hold what somebody else wrote, whoever attached them."""
_RESULT_TYPE_ENDS = ("tool_result", "tool-result", "tool-return", "_output")
_TEXT_TYPES = word_set("text input_text output_text user-prompt system-prompt")
"""Blocks that hold the words of whoever wrote the message."""
_UNTYPED_TEXT = frozenset({"text", "thought", "cache_control", "cachePoint"})
"""Fields of a block of text in dialects whose blocks have no type. With any other field it is something else."""
_SPOKEN = word_set("content text parts instructions reason")
"""Fields that hold a person's words, in a message or a block of a person."""
_SEALED_TYPES = word_set("compaction compaction_summary compaction_trigger encrypted_reasoning")
"""Blocks and items that only their provider can read."""
_SEALED_DATA = frozenset(["redacted_thinking", "redacted-reasoning", "reasoning.encrypted"])
_SEALED_FIELDS = word_set(
    "signature encrypted_content encryptedContent thought_signature thought_signatures thoughtSignature "
    "encrypted_index encrypted_stdout reasoningEncryptedContent redactedContent redactedData"
)
_BASE64_FIELDS = word_set("data file_data url image_url image b64_json bytes result")
_MEDIA_FIELDS = word_set("media_type mime_type mimeType mediaType format")
_MEDIA_NAMES = frozenset({"bytes", "b64_json", "file_data"})
_MEDIA_TYPE = re.compile(r"image|audio|video|media|file|base64|screenshot|document|resource")
_BASE64 = re.compile(r"(?:data:[\w/+.-]*(?:;[\w=.-]+)*;base64,)?[A-Za-z0-9+/_\s-]{64,}={0,3}\s*\Z")
_MAX_LEVELS = 8
"""Blocks inside a result inside a message are four levels. Data nested much deeper is not a message."""
_PEOPLE = word_set("user system developer human mcp_approval_response")
_MODELS = word_set("assistant model ai reasoning mcp_approval_request tool_call")
_PART_KINDS: dict[str, Origin] = {"request": "person", "response": "model"}
"""Messages of pydantic-ai. Whose words a request holds is said by each of its parts."""
_CLASSES: dict[str, Origin] = {"Human": "person", "System": "person", "AI": "model"}
"""Messages of LangChain, by their class: `HumanMessage`, `AIMessageChunk`."""
_CLASS = re.compile(r"([A-Za-z]+)Message(?:Chunk)?\Z")


class MessageMasker(Masker, Protocol):
    """Masks the texts of a message by their origin."""

    origin: Origin
    """Whose words the texts are that follow."""
    escapes: bool
    """Whether what looks like a placeholder is text like any other."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """Where in a message the walk is."""

    masker: MessageMasker
    origin: Origin
    for_model: bool
    """The copy goes to the model: signed blocks stay whole, and so do the names of tools."""
    is_beside: bool = False
    """It is the host's own, sent beside the list of messages: what is not known to be a result is the host's too."""
    is_fixed: bool = False
    """The masker's origin is the same for the whole message."""
    in_result: bool = False
    by_provider: bool = False
    """The result stands in a reply of the model: a tool of the provider gave it."""
    in_provider_field: bool = False
    levels: int = _MAX_LEVELS

    @property
    def is_outermost(self) -> bool:
        """Whether the entry is a message, or the block of a result itself."""
        return self.levels == _MAX_LEVELS


def origin_of(data: Mapping[str, Any]) -> Origin:
    """Whose words a message holds, apart from results inside it.

    What a host marks as injected, documents, and artifacts of a kind of their own come from outside, as results do.
    """
    kind, role = data.get("kind"), data.get("role")
    if kind in ("request", "response") and isinstance(data.get("parts"), list | tuple):
        return _PART_KINDS[kind]
    if isinstance(kind, str) and kind not in ("system", "task", "message"):
        return "model" if kind == "tool_call" else "tool"
    if not isinstance(role, str):
        origin = _origin_of_type(kind or data.get("type"))
    elif role in _MODELS:
        return "model"
    else:
        origin = "person" if role in _PEOPLE or kind else "tool"
    return "tool" if origin == "person" and marks(data).get("injected") else origin


def _origin_of_type(kind: Any) -> Origin:
    """The origin of an item without a role, by its type."""
    if not isinstance(kind, str):
        return "tool"
    if kind in _PEOPLE or kind in ("task", "message"):
        return "person"
    named = _CLASS.match(kind)
    if named:
        return _CLASSES.get(named[1], "tool")
    return "model" if kind in _MODELS or kind in _SEALED_TYPES or kind.endswith("_call") else "tool"


def mask_message(item: Any, masker: MessageMasker, *, for_model: bool = False) -> Any:
    """Mask a message by the origin of its words. It is returned itself if nothing is masked.

    If the masker's origin is `compact`, it stays that for the whole message.
    """
    if isinstance(item, str):
        return masker.mask_text(item, 0)[0]
    is_fixed = masker.origin == "compact"
    data = _fields(item)
    if data is None:
        return _mask_unknown(item, _Walk(masker, "tool", for_model, is_fixed=is_fixed))
    name, origin = _find_message(data)
    walk = _Walk(masker, origin, for_model, is_fixed=is_fixed, in_result=origin == "tool")
    if name is None:
        masked = _mask_entry(data, walk)
    else:
        inside = _mask_entry(data[name], walk)
        masked = data if inside is data[name] else {**data, name: inside}
    return item if masked is data else _rebuild(item, masked)


def _find_message(data: Mapping[str, Any]) -> tuple[str | None, Origin]:
    """The field of a stored message that holds the message, None if it is the message itself; and whose words it holds."""
    kwargs, inside, path = data.get("kwargs"), data.get("data"), data.get("id")
    if "lc" in data and isinstance(kwargs, Mapping):
        named = path[-1] if isinstance(path, list | tuple) and path else None
        return "kwargs", origin_of({**kwargs, "type": named})
    if isinstance(inside, Mapping) and "content" in inside and not data.keys() & {"role", "kind", "content"}:
        return "data", origin_of({**inside, "type": data.get("type")})
    return None, origin_of(data)


def _fields(item: Any) -> Mapping[str, Any] | None:
    """A message or a block as a mapping; None if it is no such thing."""
    try:
        return plain(item)
    except ValueError:
        if is_dataclass(item) and not isinstance(item, type):
            return {part.name: getattr(item, part.name) for part in fields(item) if part.init}
        return None


def _rebuild(item: Any, data: dict[str, Any]) -> Any:
    made = rebuild(item, data)
    if made is not data or isinstance(item, Mapping) or not is_dataclass(item) or isinstance(item, type):
        return made
    known = {part.name for part in fields(item) if part.init}
    changed = {name: value for name, value in data.items() if name in known}
    return replace(item, **changed)


def mask_blocks(value: Any, masker: MessageMasker) -> Any:
    """Mask what stands beside a list of messages for the model: a system prompt, or schemas."""
    return _mask_blocks(value, _Walk(masker, "person", for_model=True, is_beside=True))


def _mask_entry(data: Mapping[str, Any], walk: _Walk) -> Any:
    """Mask a message or a block. It is returned itself if nothing in it is masked."""
    if _is_sealed(data, walk):
        return data
    before = walk.masker.origin
    if not walk.is_fixed:
        walk.masker.origin = walk.origin
    changed = {}
    try:
        for name, value in data.items():
            new = _mask_field(data, name, value, walk)
            if new is not value:
                changed[name] = new
    finally:
        walk.masker.origin = before
    return {**data, **changed} if changed else data


def _mask_field(data: Mapping[str, Any], name: Any, value: Any, walk: _Walk) -> Any:
    if value is None or isinstance(value, bool) or not isinstance(name, str):
        return value
    if name in _IDS or name in _STRUCTURE or name in _NAMES:
        return _mask_structure(data, name, value, walk)
    if _is_sealed_field(data, name, value, walk) or _is_picture(data, name, value):
        return value
    if name in _RESULTS and not walk.in_result and isinstance(value, Mapping) and not walk.is_beside:
        return _mask_entry(value, _result_of(walk))
    is_result = name in _RESULT_FIELDS and not walk.in_result
    if is_result or (_is_strict(walk) and name not in _SPOKEN):
        inside = replace(walk, origin="tool", in_result=is_result)
        (masked,) = _mask_entry({name: value}, inside).values()
        return masked
    if isinstance(value, str) and name in _TEXTS:
        return walk.masker.mask_text(value, 0)[0]
    if not isinstance(value, str) and walk.levels and _holds_blocks(name, value, walk):
        return _mask_blocks(value, replace(walk, in_provider_field=_is_provider_field(name, walk)))
    (masked,) = mask_value({name: value}, walk.masker).values()
    return masked


def _holds_blocks(name: str, value: Any, walk: _Walk) -> bool:
    if not walk.in_result:
        return name in _BLOCKS or (_is_provider_field(name, walk) and isinstance(value, Mapping))
    # `{"type": "json", "value": {...}}`: an object there is data, whatever its fields are called.
    is_data = isinstance(value, Mapping) and (name == "value" or not isinstance(value.get("type", ""), str))
    return name in _RESULT_BLOCKS and not is_data


def _is_provider_field(name: str, walk: _Walk) -> bool:
    return walk.origin == "model" and (walk.in_provider_field or name in _PROVIDER_FIELDS)


def _mask_structure(data: Mapping[str, Any], name: str, value: Any, walk: _Walk) -> Any:
    """Mask an id, a name, or a word of the dialect. What was learned never changes these."""
    if not isinstance(value, str):
        return value if name == "cache_control" else mask_value(value, walk.masker)
    if walk.in_result and not walk.is_outermost:
        return walk.masker.mask_name(value, 0)[0]  # a block inside a result is the tool's
    if name in _IDS or (name in _STRUCTURE and _STRUCTURAL.match(value)):
        return value
    if name not in _NAMES:
        return walk.masker.mask_name(value, 0)[0]
    is_speaker = name == "name" and _word_at(data, "role") in _SPEAKERS
    if walk.for_model and not is_speaker:
        return value
    masked, count = walk.masker.mask_name(value, 0)
    return (_UNNAMED.sub("-", masked).strip("-") or "masked") if count else value


def _mask_blocks(value: Any, walk: _Walk) -> Any:
    if isinstance(value, Mapping):
        return _mask_block(value, walk)
    if not isinstance(value, list | tuple):
        return mask_value(value, walk.masker)
    masker, masked = walk.masker, []
    for old, block in zip(value, _mask_seams(value, walk), strict=True):
        # What has just been masked holds placeholders of ours.
        outside, masker.escapes = masker.escapes, masker.escapes and block is old
        masked.append(_mask_block(block, walk))
        masker.escapes = outside
    return masked if any(new is not old for new, old in zip(masked, value, strict=True)) else value


def _mask_seams(blocks: list[Any] | tuple[Any, ...], walk: _Walk) -> list[Any]:
    """Mask the secrets that continue from one block in the next, where both are the same speaker's."""
    masked: list[Any] = []
    for voice, run in groupby(blocks, key=lambda block: _voice_of(block, walk)):
        same = list(run)
        if voice is None or len(same) < 2:
            masked += same
            continue
        masked += mask_across(same, walk.masker)
    return masked


def _voice_of(block: Any, walk: _Walk) -> str | None:
    """What kind of text of the message's own speaker a block is. None if it is not read together with its neighbours."""
    if not isinstance(block, Mapping) or not isinstance(block.get("text"), str):
        return None
    if _walk_into(block, walk).origin != walk.origin:
        return None
    kind = _type_of(block)
    return "text" if kind is None or kind in _TEXT_TYPES else kind


def _mask_block(block: Any, walk: _Walk) -> Any:
    if isinstance(block, str):
        return walk.masker.mask_text(block, 0)[0]
    data = _fields(block)
    if data is None:
        return _mask_unknown(block, replace(walk, origin="tool") if _is_strict(walk) else walk)
    masked = _mask_entry(data, _walk_into(data, walk))
    return block if masked is data else _rebuild(block, masked)


def _mask_unknown(value: Any, walk: _Walk) -> Any:
    """Mask what is neither a text nor has fields."""
    before = walk.masker.origin
    if not walk.is_fixed:
        walk.masker.origin = walk.origin
    try:
        return mask_value(value, walk.masker)
    finally:
        walk.masker.origin = before


def _walk_into(data: Mapping[str, Any], walk: _Walk) -> _Walk:
    """The walk inside a block: whose words it holds."""
    if not walk.in_result and _is_result(data):
        return _result_of(walk)
    inner = replace(walk, levels=walk.levels - 1)
    return replace(inner, origin="tool") if _is_strict(walk) and not _is_spoken(data) else inner


def _is_spoken(data: Mapping[str, Any]) -> bool:
    """Whether a block of a person's message is known to hold the person's words."""
    kind = _type_of(data)
    if kind is not None:
        return kind in _TEXT_TYPES
    return all(value is None or name in _UNTYPED_TEXT for name, value in data.items())


def _result_of(walk: _Walk) -> _Walk:
    by_provider = walk.origin == "model"
    return replace(walk, origin="tool", in_result=True, by_provider=by_provider, levels=_MAX_LEVELS)


def _is_strict(walk: _Walk) -> bool:
    """Whether only what is known to be a person's words counts as that."""
    return walk.origin == "person" and not walk.is_beside


def _type_of(data: Mapping[str, Any]) -> str | None:
    """The type of a block; None if blocks of its dialect have none, empty if it is no text."""
    kind = next((data[name] for name in ("type", "part_kind", "kind") if data.get(name) is not None), None)
    return kind if kind is None or isinstance(kind, str) else ""


def _word_at(data: Mapping[str, Any], name: str) -> str:
    """A field that says what a block is; empty if it is no text, as in data that only looks like a block."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _is_result(data: Mapping[str, Any]) -> bool:
    """Whether a block holds what a tool said. The block itself is the dialect's, what it holds is the tool's."""
    kind = _type_of(data)
    if isinstance(kind, str):
        return kind in _OUTSIDE_TYPES or kind.endswith(_RESULT_TYPE_ENDS)
    return ("toolUseId" in data and "content" in data) or "response" in data


def _is_sealed(data: Mapping[str, Any], walk: _Walk) -> bool:
    """Whether a whole block must stay as it is. Only a reply of the model has such blocks, and no result in it."""
    if walk.origin != "model" or walk.in_result:
        return False
    kind = _word_at(data, "type")
    if kind in _SEALED_TYPES:
        return True
    if not walk.for_model:
        return False
    # Its provider refuses it if its text was changed.
    is_signed = kind in _SEALED_DATA or any(data.get(name) for name in _SEALED_FIELDS)
    return is_signed or (kind == "reasoning" and "id" in data)


def _is_sealed_field(data: Mapping[str, Any], name: str, value: Any, walk: _Walk) -> bool:
    """Whether a field is the provider's own, by where it stands."""
    if walk.in_result:
        # What the provider's own search has found, directly in its result.
        return walk.by_provider and walk.levels >= _MAX_LEVELS - 1 and name in _SEALED_FIELDS
    if walk.origin != "model":
        return False
    if name == "data" and _word_at(data, "type") in _SEALED_DATA:
        return isinstance(value, str)
    return name in _SEALED_FIELDS and _is_sealed_value(value)


def _is_sealed_value(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value)
    return is_list or isinstance(value, str | bytes)


def _is_picture(data: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a field is a picture, a sound or a file, encoded as text."""
    if not isinstance(value, str) or name not in _BASE64_FIELDS or not _BASE64.match(value):
        return False
    kind = data.get("type")
    is_media = isinstance(kind, str) and _MEDIA_TYPE.search(kind) is not None
    return is_media or value.startswith("data:") or name in _MEDIA_NAMES or not _MEDIA_FIELDS.isdisjoint(data)
