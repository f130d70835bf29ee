"""Remove or repair what no provider accepts in a single message."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compact.messages import dialects
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import is_plain, plain, rebuild
from compact.messages.hygiene.work import Removed, without_loose_ends, write_back
from compact.messages.legality import (
    ROLES,
    bad_text_in,
    id_problem,
    is_misplaced,
    is_refused_text,
    item_id,
    lacks_content,
    name_problem,
)
from compact.messages.message import (
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    bad_text,
    unknown_number,
    with_known_numbers,
)

_REPLACEMENT = "\ufffd"
_MODEL_ROLES = frozenset({"model", "ai", "bot", "chatbot"})
"""What other formats call the assistant."""


def sanitize(
    messages: Sequence[Any], dialect: str | None = None, allowed_tools: Collection[str] | None = None
) -> Any:
    """Remove or repair what a provider would refuse in any context.

    - Calls without an id or a name, with a malformed name, or with arguments that are not a JSON object are dropped. With
      `allowed_tools`, so are calls of other tools.
    - Spaces around tool names are stripped.
    - Ids that are too long or contain forbidden characters are replaced by a hash, the same in call and result.
    - Lone surrogates and NULs become U+FFFD; NaN and the infinities become text.
    - Content that is null, bare strings between blocks, text blocks of another role and similar faults of form are written
      as the provider takes them (see `Dialect.mend`).
    - Calls in a message that is not the assistant's, and results in one that is, are dropped.
    - An item's own id that was used before is removed, and a repeated reasoning item is dropped (Responses).
    - Empty messages are dropped.
    - A role that the dialect does not have becomes `user`, or `assistant` if it is another name for the model or if the
      message calls tools.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    known, neutral = dialects.read(messages, dialect)
    return write_back(messages, neutral, sanitize_neutral(neutral, known, allowed_tools)[0], known)


def sanitize_neutral(
    messages: list[Message], dialect: Dialect, allowed_tools: Collection[str] | None = None
) -> tuple[list[Message], list[Removed]]:
    """`sanitize` on neutral messages, with what was removed or changed."""
    kept: list[Message] = []
    removed: list[Removed] = []
    seen: set[str] = set()
    for before in messages:
        after = _sanitize_message(before, dialect, allowed_tools)
        after = None if after is None else _with_own_id(after, seen, dialect)
        if after is None:
            removed.append(Removed(before.origin, "empty, or nothing in it could be sent"))
            continue
        if after is not before:
            removed.append(Removed(before.origin, "parts of it could not be sent"))
        kept.append(after)
    if dialect.RESULTS_IN_USER:
        # The sort is stable: only the system prompt moves, to the front.
        kept.sort(key=lambda message: message.role != "system")
    return kept, removed


def _with_own_id(message: Message, seen: set[str], dialect: Dialect) -> Message | None:
    """The item without its id if that was used before; a provider needs none. Reasoning is nothing without it."""
    own = item_id(message, dialect)
    if own is None or own not in seen:
        seen |= {own} if own else set()
        return message
    if any(isinstance(part, Reasoning) for part in message.parts):
        return None
    data = {key: value for key, value in plain(dialect.write(message)).items() if key != "id"}
    return replace(dialect.read(rebuild(message.origin, data)), edited=False)


def safe_id(call_id: str, occurrence: int = 1) -> str:
    """Return an id that every provider accepts. It depends only on the given id and occurrence."""
    seed = f"{occurrence}:{call_id}".encode("utf-8", "surrogatepass")
    return f"call_{hashlib.sha256(seed).hexdigest()[:24]}"


def _sanitize_message(
    before: Message, dialect: Dialect, allowed_tools: Collection[str] | None
) -> Message | None:
    # The role comes first: the form of a block depends on it.
    message = _with_known_numbers(_with_valid_text(before, dialect), dialect)
    message = _well_formed(_with_known_role(message, dialect), dialect)
    mended = [_sanitize_part(part, dialect, allowed_tools) for part in message.parts]
    kept = tuple(
        part for part in mended if part is not None and not is_misplaced(part, message.role, dialect)
    )
    if len(kept) < len(mended) or any(new is not old for new, old in zip(mended, message.parts, strict=True)):
        message = message.with_parts(kept)
    if message.role in ("user", "assistant"):
        return without_loose_ends(message, dialect)
    return None if lacks_content(message, dialect) else message


def _sanitize_part(part: Part, dialect: Dialect, allowed_tools: Collection[str] | None) -> Part | None:
    if isinstance(part, Text):
        return None if isinstance(part.origin, Mapping) and is_refused_text(part.text, dialect) else part
    if isinstance(part, ToolCall):
        return _sanitize_call(part, dialect, allowed_tools)
    if isinstance(part, ToolResult):
        return _sanitize_result(part, dialect)
    return part


def _sanitize_call(
    call: ToolCall, dialect: Dialect, allowed_tools: Collection[str] | None
) -> ToolCall | None:
    name = call.name.strip()
    if not (call.id or call.by_position) or name_problem(name, dialect):
        return None
    if allowed_tools is not None and name not in allowed_tools:
        return None
    arguments = call.arguments
    if isinstance(arguments, str) and not arguments.strip() and not call.free_form:
        arguments = "{}"  # what a stream gives for a tool without parameters
    mended = replace(call, name=name, arguments=arguments)
    if not call.free_form and mended.parsed_arguments() is None:
        return None
    if call.id and id_problem(call.id, dialect):
        mended = replace(mended, id=safe_id(call.id))
    return call if mended == call else mended


def _sanitize_result(result: ToolResult, dialect: Dialect) -> ToolResult:
    mended = result
    if result.call_id and id_problem(result.call_id, dialect):
        mended = replace(mended, call_id=safe_id(result.call_id))
    content = [_sanitize_part(part, dialect, None) for part in result.content]
    if any(new is not old for new, old in zip(content, result.content, strict=True)):
        mended = replace(mended, content=tuple(part for part in content if part is not None))
    return mended


def _with_known_role(message: Message, dialect: Dialect) -> Message:
    if message.role in ROLES.get(dialect.NAME, {message.role}):
        return message
    # What calls tools is a reply, whatever the host named its role.
    is_reply = bool(message.calls) or message.role.lower() in _MODEL_ROLES
    data = {**plain(message.origin), "role": dialect.MODEL_ROLE if is_reply else "user"}
    return replace(dialect.read(rebuild(message.origin, data)), edited=False)


def _well_formed(message: Message, dialect: Dialect) -> Message:
    if message.origin is None or (dialect.TAKES_PLAIN and is_plain(message.origin)):
        return message
    data, flaws = dialect.mend(plain(message.origin))
    return replace(dialect.read(rebuild(message.origin, dict(data))), edited=False) if flaws else message


def _with_valid_text(message: Message, dialect: Dialect) -> Message:
    if bad_text_in(message, dialect) is None:
        return message
    data = _valid(plain(message.origin))
    return replace(dialect.read(rebuild(message.origin, data)), edited=False)


def _with_known_numbers(message: Message, dialect: Dialect) -> Message:
    if message.origin is None or is_plain(message.origin) or not unknown_number(plain(message.origin)):
        return message
    data = with_known_numbers(plain(message.origin))
    return replace(dialect.read(rebuild(message.origin, data)), edited=False)


def valid_text(text: str) -> str:
    """Replace what no provider accepts in a text: lone surrogates and NULs."""
    if bad_text(text) is None:
        return text
    return text.replace("\x00", _REPLACEMENT).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _valid(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if depth > 200:
        return value
    if isinstance(value, Mapping):
        return {_valid(key, depth + 1): _valid(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(entry, depth + 1) for entry in value]
    return value
