"""What the dialects share: looking into the host's objects, marks on them, and copies of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compact.messages.message import Image, Part, Piece, Sealed, Text, to_json

_PLAIN_ROLES = frozenset({"user", "assistant", "system", "developer"})
_ABORTED = frozenset({"aborted", "error", "cancelled"})
_BLOB_CHARS = 1024
_BLOB_SHARE = 8

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
    """Whether an entry is just a role and a string: legal in several dialects, and most of any session."""
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


def plain(item: Any) -> Mapping[str, Any]:
    """The entry as a mapping: a dict as it is, an SDK object by its `model_dump`.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    if callable(dump) and not isinstance(item, type):
        data = dumped(dump)
        if isinstance(data, Mapping):
            return data
    raise ValueError(f"got {type(item).__name__}")


def dumped(dump: Any) -> Any:
    """What an SDK object's `model_dump` gives, defaults included: a class may fix its `type` and `role` as such.

    Raises:
        ValueError: the object cannot say what it is.
    """
    try:
        try:
            return dump(mode="json", exclude_none=True, by_alias=True)
        except TypeError:
            return dump()  # something else than pydantic, with the same method
    except Exception as problem:
        raise ValueError(f"its model_dump failed: {type(problem).__name__}") from problem


def rebuilt(origin: Any, data: dict[str, Any]) -> Any:
    """`data` as the kind of object the host uses: its own SDK class where it had one, else the dict."""
    if origin is None or isinstance(origin, Mapping):
        return data
    validate = getattr(type(origin), "model_validate", None)
    if validate is None:
        return data
    try:
        return validate(data)
    except ValueError:
        return data


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
    """The three marks a host can set: protected, injected, aborted."""
    if len(data) == 2 and "content" in data:  # role and content: the common case, and nothing to look for
        return {}
    found: dict[str, bool] = {}
    for key in ("meta", "metadata"):
        notes = data.get(key)
        if isinstance(notes, Mapping):
            if notes.get("protected") is True:
                found["protected"] = True
            if notes.get("injected") is True:
                found["injected"] = True
            if _aborted(notes):
                found["aborted"] = True
    if _aborted(data):
        found["aborted"] = True
    return found


def _aborted(data: Mapping[str, Any]) -> bool:
    for key in ("stop_reason", "stopReason", "finish_reason"):
        reason = data.get(key)
        if isinstance(reason, str) and reason in _ABORTED:
            return True
    return False


def blocks_of(content: Any) -> list[Mapping[str, Any] | str]:
    """The typed blocks of a content list, and the bare strings that some hosts write between them.

    Raises:
        ValueError: the content is no list, or an entry of it is no object.
    """
    if not isinstance(content, list | tuple):
        raise ValueError(f"its 'content' is {type(content).__name__}, not text or a list of blocks")
    found: list[Mapping[str, Any] | str] = []
    for place, block in enumerate(content):
        try:
            found.append(block if isinstance(block, str) else plain(block))
        except ValueError as problem:
            raise ValueError(f"content[{place}] is not a block: {problem}") from problem
    return found


def owner(block: Any) -> str | None:
    """The only dialect that writes such a block, or None when several do."""
    if not isinstance(block, Mapping):
        return None
    kind = block.get("type")
    if kind == "image":
        return "anthropic" if "source" in block else "ai_sdk" if "image" in block else None
    if kind == "file":
        return "chat" if "file" in block else "ai_sdk"
    return _OWNERS.get(kind) if isinstance(kind, str) else None


def claim_by_blocks(content: Any, name: str) -> int:
    """How sure a dialect can be from the blocks alone (see `Dialect.claim`)."""
    if not isinstance(content, list | tuple):
        return 1 if content is None or isinstance(content, str) else 0
    owners = {
        owner(block if isinstance(block, Mapping) else getattr(block, "__dict__", None)) for block in content
    }
    owners.discard(None)
    if not owners:
        return 1
    return 2 if owners == {name} else 0


def text_block(part: Text, kind: str = "text") -> Any:
    """The block of a text part: its own, if the words are the same."""
    before = part.origin
    if isinstance(before, str):
        return part.text
    if isinstance(before, Mapping):
        return before if before.get("text") == part.text else {**before, "text": part.text}
    return {"type": kind, "text": part.text}


def joined(parts: Iterable[Part]) -> str:
    """The text of parts in one string, for fields that take nothing but a string."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def is_bare_text(parts: tuple[Part, ...]) -> bool:
    """Whether parts came from, or can go into, a plain string."""
    return len(parts) == 1 and isinstance(parts[0], Text) and parts[0].origin is None


def opaque_pieces(value: Any) -> list[Piece]:
    """What something uninterpreted costs: its JSON text; inline binary data at a rate, never by its length."""
    blobs: list[Piece] = []
    return [to_json(_without_blobs(value, blobs, depth=0)), *blobs]


def _without_blobs(value: Any, blobs: list[Piece], depth: int) -> Any:
    if isinstance(value, str):
        if len(value) > _BLOB_CHARS and _looks_binary(value):
            # Audio and documents cost far less than their base64 length; providers publish no formula for them.
            blobs.append(Sealed(len(value) // _BLOB_SHARE))
            return ""
        return value
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
    return (
        sample.isascii()
        and not any(c.isspace() for c in sample)
        and sample.replace("+", "")
        .replace("/", "")
        .replace("=", "")
        .replace("-", "")
        .replace("_", "")
        .isalnum()
    )


def image_from_url(value: Any, origin: Any) -> Image:
    """An OpenAI picture: an address or a data URL, as a string or as `{"url", "detail"}`."""
    detail = None
    if isinstance(value, Mapping):
        detail = value.get("detail")
        value = value.get("url")
    return Image(value if isinstance(value, str) else "", detail=detail, origin=origin)
