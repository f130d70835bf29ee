"""What the dialects share: reading the host's objects and writing changed copies of them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from compact.messages.dialects.foreign import find_hidden_text
from compact.messages.dialects.objects import fields_of, with_fields
from compact.messages.message import (
    Image,
    Message,
    Part,
    Pdf,
    Piece,
    Reasoning,
    Refusal,
    Sealed,
    Text,
    to_json,
)

_PLAIN_ROLES = ("user", "assistant", "system", "developer")  # a tuple: a role may be of any type
_ABORTED = frozenset({"aborted", "error", "cancelled"})
_BLOB_CHARS = 1024
_PDF_OPENS = ("JVBERi0", "data:application/pdf;base64,")
"""The beginning of every PDF in base64, with and without a prefix."""
"""A string from this length on may be inline binary data."""
BLOB_SHARE = 8
MAX_LEVELS = 200
"""Lists and objects inside of each other in one message."""
_NESTING = (dict, list, tuple)
_TEXT_LEVELS = 6
"""A message, its content, a block, the block's content, a block of that, its text."""
_BASE64_SIGNS = str.maketrans("", "", "+/=-_")

_OWNERS = {
    "image_url": "chat",
    "input_audio": "chat",
    "input_text": "responses",
    "input_image": "responses",
    "input_file": "responses",
    "output_text": "responses",
    "tool_use": "anthropic",
    "tool_result": "anthropic",
    "thinking": "anthropic",
    "redacted_thinking": "anthropic",
    "server_tool_use": "anthropic",
    "mcp_tool_use": "anthropic",
    "mcp_tool_result": "anthropic",
    "web_search_tool_result": "anthropic",
    "document": "anthropic",
    "search_result": "anthropic",
    "tool-call": "ai_sdk",
    "tool-result": "ai_sdk",
    "reasoning": "ai_sdk",
}


def is_plain(item: Any) -> bool:
    """Whether an entry is just a role and a string. Most of a session is, and several dialects allow it."""
    return (
        type(item) is dict
        and len(item) == 2
        and type(item.get("content")) is str
        and item.get("role") in _PLAIN_ROLES
    )


def begins_with(items: Sequence[Any], prefix: Sequence[Any]) -> bool:
    """Whether a list begins with these messages. The same objects are equal at once; copies are compared."""
    count = len(prefix)
    return len(items) >= count and (items[:count] if type(items) is list else list(items[:count])) == prefix


def longest_text(item: Any) -> str:
    """The longest string in a message that is plain data, at the depth of its blocks' blocks; empty for anything else."""
    longest, level = "", [item]
    for _ in range(_TEXT_LEVELS):
        below: list[Any] = []
        for value in level:
            if type(value) is str:
                longest = value if len(value) > len(longest) else longest
            elif type(value) is dict:
                below += value.values()
            elif type(value) is list:
                below += value
        level = below
    return longest


def require_shallow(item: Any) -> None:
    """Check that plain data can be compared and written as JSON, which Python does by recursion.

    Raises:
        ValueError: it is nested too deep, or contains itself.
    """
    level = [item]
    for _ in range(MAX_LEVELS):
        inside = {id(entry): entry for value in level for entry in _entries(value) if type(entry) in _NESTING}
        if not inside:
            return
        level = list(inside.values())
    raise ValueError(f"it is nested too deeply (more than {MAX_LEVELS} levels), or contains itself")


def _entries(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if type(value) in _NESTING else ()


def plain(item: Any) -> Mapping[str, Any]:
    """Return the entry as a mapping: a dict as it is, an SDK object by its `model_dump`, a plain object by its attributes.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    if callable(dump) and not isinstance(item, type):
        data = dump_plain(dump)
        if isinstance(data, Mapping):
            return data
    attributes = fields_of(item)
    if attributes is not None:
        return attributes
    raise ValueError(f"got {type(item).__name__}")


def dump_plain(dump: Any) -> Any:
    """Call an SDK object's `model_dump`. Defaults are included, because a class may fix its `type` and `role` that way.

    Raises:
        ValueError: the call failed.
    """
    try:
        try:
            return dump(mode="json", exclude_none=True, by_alias=True)
        except TypeError:
            return dump()  # not pydantic, but a method of the same name
    except Exception as problem:
        raise ValueError(f"its model_dump failed: {type(problem).__name__}") from problem


def rebuild(origin: Any, data: dict[str, Any]) -> Any:
    """Return `data` as the host's kind of object: its SDK class if `origin` had one, else the dict."""
    if origin is None or isinstance(origin, Mapping):
        return data
    if not hasattr(type(origin), "model_validate"):
        return with_fields(origin, data)
    for kind in type(origin).__mro__:
        if kind is not type(origin) and not getattr(kind, "model_fields", None):
            break
        try:
            return kind.model_validate(data)  # type: ignore[attr-defined]
        except TypeError:
            continue  # a class with arguments of its own, such as google-genai's UserContent: its base takes all fields
        except ValueError:
            break
    return data


def write_entry(message: Message, fill: Callable[[dict[str, Any], Message], None]) -> Any:
    """Return the message's `origin` if nothing changed, else a copy of it that `fill` brings up to date."""
    before = message.origin
    if before is not None and not message.edited:
        return before
    data = dict(plain(before)) if before is not None else {}
    fill(data, message)
    return rebuild(before, data)


def read_content(content: Any, read_block: Callable[[Mapping[str, Any] | str], Part]) -> tuple[Part, ...]:
    """Read a message's content: nothing, a string, or a list of blocks.

    Raises:
        ValueError: it is something else.
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(map(read_block, blocks_of(content)))


def write_content(parts: tuple[Part, ...], write_block: Callable[[Part], Any]) -> Any:
    """Write parts as a string where they came from one, else as a list of blocks."""
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].origin is None:
        return parts[0].text
    return [write_block(part) for part in parts]


def text_at(data: Mapping[str, Any], key: str) -> str:
    """The string under a key; empty if there is none."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def role_of(data: Mapping[str, Any]) -> str:
    """The entry's role.

    Raises:
        ValueError: it has none.
    """
    role = data.get("role")
    if not isinstance(role, str) or not role:
        raise ValueError("it has no 'role'" if role is None else f"its 'role' is {role!r}")
    return role


def marks(data: Mapping[str, Any]) -> dict[str, bool]:
    """The marks that a host can set on a message: protected, injected, aborted."""
    if len(data) == 2 and "content" in data:  # the common case: role and content, no marks
        return {}
    found: dict[str, bool] = {}
    for key in ("meta", "metadata"):
        notes = data.get(key)
        if isinstance(notes, Mapping):
            found |= {mark: True for mark in ("protected", "injected") if notes.get(mark) is True}
            if _aborted(notes):
                found["aborted"] = True
    if _aborted(data):
        found["aborted"] = True
    return found


def _aborted(data: Mapping[str, Any]) -> bool:
    return any(text_at(data, key) in _ABORTED for key in ("stop_reason", "stopReason", "finish_reason"))


def blocks_of(content: Any) -> list[Mapping[str, Any] | str]:
    """The typed blocks of a content list, and the bare strings that some hosts put between them.

    Raises:
        ValueError: the content is not a list, or an entry of it is not an object.
    """
    if not isinstance(content, list | tuple):
        raise ValueError(f"its 'content' is {type(content).__name__}, not text or a list of blocks")
    found: list[Mapping[str, Any] | str] = []
    for place, block in enumerate(content):
        try:
            found.append(block if isinstance(block, str) else _typed(plain(block)))
        except ValueError as problem:
            raise ValueError(f"content[{place}] is not a block: {problem}") from problem
    return found


def _typed(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(block.get("type"), str):
        raise ValueError(f"it has no 'type' (keys: {', '.join(sorted(map(str, block))[:8]) or 'none'})")
    return block


def require_own_text(data: Mapping[str, Any]) -> None:
    """Check that an entry without content keeps what it says nowhere else.

    Raises:
        ValueError: it is a message of another format.
    """
    key = find_hidden_text(data)
    if key is not None:
        raise ValueError(f"it has no 'content'; what it says seems to be in {key!r}")


def owner(block: Any) -> str | None:
    """The only dialect that writes such a block, or None if several do."""
    if not isinstance(block, Mapping):
        return None
    kind = block.get("type")
    if kind == "image":
        return "anthropic" if "source" in block else "ai_sdk" if "image" in block else None
    if kind == "file":
        return "chat" if "file" in block else "ai_sdk"
    return _OWNERS.get(kind) if isinstance(kind, str) else None


def claim_by_blocks(content: Any, name: str) -> int:
    """Judge from the blocks alone whether an entry belongs to a dialect (see `Dialect.claim`)."""
    if not isinstance(content, list | tuple):
        return 1 if content is None or isinstance(content, str) else 0
    blocks = [block if isinstance(block, Mapping) else getattr(block, "__dict__", None) for block in content]
    if any(isinstance(block, Mapping) and not isinstance(block.get("type"), str) for block in blocks):
        return 0
    owners = set(map(owner, blocks))
    owners.discard(None)
    if not owners:
        return 1
    return 2 if owners == {name} else 0


def text_block(part: Text, kind: str = "text") -> Any:
    """The block of a text part: its own block if the text is the same."""
    before = part.origin
    if isinstance(before, str):
        return part.text
    if isinstance(before, Mapping):
        return before if before.get("text") == part.text else {**before, "text": part.text}
    return {"type": kind, "text": part.text}


def encoded(value: Any) -> str:
    """Binary data as it goes over the wire: bytes as base64, text as it is; empty for anything else."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    return value if isinstance(value, str) else ""


def join_text(parts: Iterable[Part]) -> str:
    """Join the text of parts, for fields that take nothing but a string."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def part_pieces(part: Part) -> list[Piece]:
    """What a part of a content list costs (see `Dialect.pieces`)."""
    if isinstance(part, Text | Refusal | Reasoning):
        return [part.text]
    return [part] if isinstance(part, Image) else opaque_pieces(part.origin)


def opaque_pieces(value: Any) -> list[Piece]:
    """What an uninterpreted value costs: its JSON text, and a rate for inline binary data."""
    blobs: list[Piece] = []
    return [to_json(_without_blobs(value, blobs, depth=0)), *blobs]


def _without_blobs(value: Any, blobs: list[Piece], depth: int) -> Any:
    if isinstance(value, str):
        if value.startswith(_PDF_OPENS):
            blobs.append(Pdf(value))
            return ""
        if len(value) > _BLOB_CHARS and _looks_binary(value):
            # Audio and other documents cost far less than their base64 length; providers publish no formula for them.
            blobs.append(Sealed(len(value) // BLOB_SHARE))
            return ""
        return value
    if isinstance(value, bytes | bytearray):
        if value.startswith(b"%PDF-"):
            blobs.append(Pdf(encoded(value)))
            return ""
        blobs.append(Sealed(len(value) * 4 // 3 // BLOB_SHARE))
        return ""
    if depth > 20:
        return value
    if isinstance(value, Mapping):
        return {key: _without_blobs(entry, blobs, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_blobs(entry, blobs, depth + 1) for entry in value]
    return value


def _looks_binary(text: str) -> bool:
    if text.startswith("data:"):
        return True
    sample = text[:_BLOB_CHARS]
    return sample.isascii() and sample.translate(_BASE64_SIGNS).isalnum()


def image_block(block: Mapping[str, Any]) -> Image | None:
    """A picture as a block of LangChain: `url`, `base64`, or `data` as `source_type` says. None: nothing of it is known."""
    source = next((block[key] for key in ("base64", "data", "url") if isinstance(block.get(key), str)), None)
    return None if source is None else Image(source, origin=block)


def image_from_url(value: Any, origin: Any) -> Image:
    """An OpenAI picture: an address or a data URL, as a string or as `{"url", "detail"}`."""
    detail = None
    if isinstance(value, Mapping):
        detail = value.get("detail")
        value = value.get("url")
    return Image(value if isinstance(value, str) else "", detail=detail, origin=origin)
