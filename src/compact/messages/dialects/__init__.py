"""Wire formats, one module each. Every module offers the same names (see `Dialect`).

`detect` finds the dialect of a list, `read` turns a list into neutral messages, `write` turns them back. Index i of the
neutral list is always index i of the host's list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from compact.errors import MessageError
from compact.messages.dialects.foreign import Shape, shape_of
from compact.messages.dialects.forms import Flaw
from compact.messages.dialects.wire import is_plain, plain, require_shallow
from compact.messages.message import Message, Piece

__all__ = [
    "NAMES",
    "Dialect",
    "detect",
    "get",
    "not_a_list",
    "read",
    "read_prompt",
    "require_list",
    "unreadable",
    "write",
]


class Dialect(Protocol):
    """What the module of a dialect offers."""

    NAME: str
    """Its name in config, CLI and docs."""
    EXPECTED: str
    """What an entry looks like, for error messages."""
    ITEMS_ARE_PARTS: bool
    """A reply of the model may span several neighbouring entries (OpenAI Responses)."""
    RESULTS_IN_USER: bool
    """Tool results are part of a user message, and roles must alternate (Anthropic, Gemini, Converse)."""
    TAKES_PLAIN: bool
    """A message may be a role and a string, `{"role": "user", "content": "Hi"}`."""
    MODEL_ROLE: str
    """What the model's role is called on the wire."""

    def claim(self, item: Mapping[str, Any]) -> int:
        """Return 2 if the entry certainly belongs to this dialect, 1 if it may, 0 if it does not."""
        ...

    def read(self, item: Any) -> Message:
        """Return the neutral message of one entry. Raises ValueError if it is not a message of this dialect."""
        ...

    def write(self, message: Message) -> Any:
        """Return the entry of one message: its `origin` if nothing changed, else a changed copy of it."""
        ...

    def mend(self, data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Flaw]]:
        """Return an entry in the form that its provider takes, and what was wrong with it.

        Contents that are null, bare strings, blocks of another role and the like are about the form; what a message
        says is not judged here. Without a flaw the entry is the given object.
        """
        ...

    def pieces(self, item: Any) -> Iterable[Piece]:
        """Everything in an entry that costs tokens. Must be fast: it is called in every preflight."""
        ...


NAMES: tuple[str, ...] = ("chat", "responses", "anthropic", "ai_sdk", "harness", "gemini", "converse")
"""The canonical names, in the order in which they are tried for an ambiguous list."""

_ALIASES = {
    "openai": "chat",
    "openai_chat": "chat",
    "chat_completions": "chat",
    "openai_responses": "responses",
    "claude": "anthropic",
    "messages": "anthropic",
    "aisdk": "ai_sdk",
    "vercel": "ai_sdk",
    "artifacts": "harness",
    "harness_artifacts": "harness",
    "google": "gemini",
    "google_genai": "gemini",
    "contents": "gemini",
    "bedrock": "converse",
    "bedrock_converse": "converse",
}


def get(name: str) -> Dialect:
    """Return the dialect of this name.

    Raises:
        MessageError: there is none; the error lists the names.
    """
    key = name.lower().replace("-", "_").replace(" ", "_")
    key = _ALIASES.get(key, key)
    if key not in NAMES:
        raise MessageError(f"unknown dialect {name!r}", hint=f"Known: {', '.join(NAMES)}", dialect=name)
    return cast("Dialect", import_module(f"compact.messages.dialects.{key}"))


def detect(messages: Sequence[Any]) -> Dialect:
    """Detect the dialect of a list by what only that dialect writes. A list that fits several is OpenAI chat.

    Raises:
        MessageError: an entry is not a message, or belongs to another dialect than the entries before it.
    """
    chosen: Dialect | None = None
    first = -1
    plains: list[int] = []
    waiting: list[tuple[int, Mapping[str, Any]]] = []
    for index, item in enumerate(messages):
        if is_plain(item):
            plains.append(index)
            continue
        data = _mapping(item, index)
        if chosen is not None:
            if not chosen.claim(data):
                raise _not_a_message(index, item, data, chosen)
            continue
        chosen = next((dialect for dialect in map(get, NAMES) if dialect.claim(data) == 2), None)
        first = index
        if chosen is None:
            waiting.append((index, data))
    if chosen is None:
        # An entry of an unknown type is carried along beside items that are known. Alone it tells nothing.
        is_told = all("role" in data for _, data in waiting)
        chosen = next(
            (d for d in map(get, NAMES) if is_told and all(d.claim(data) for _, data in waiting)), None
        )
    if chosen is None:
        strangers = (
            entry
            for entry in waiting
            if "role" not in entry[1] or not any(known.claim(entry[1]) for known in map(get, NAMES))
        )
        index, data = next(strangers, waiting[-1])
        raise _not_a_message(index, messages[index], data, None)
    for index, data in waiting:
        if not chosen.claim(data):
            raise _not_a_message(index, messages[index], data, chosen)
    if plains and not chosen.TAKES_PLAIN:
        # The entry that came later is the stranger: a session is continued in the dialect in which it began.
        index, around = (first, get("chat")) if plains[0] < first else (plains[0], chosen)
        raise _not_a_message(index, messages[index], _mapping(messages[index], index), around)
    return chosen


def read(messages: Sequence[Any], dialect: str | Dialect | None = None) -> tuple[Dialect, list[Message]]:
    """Return the dialect of a list and its neutral messages, one for each entry.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message; names the index.
    """
    require_list(messages)
    known = detect(messages) if dialect is None else get(dialect) if isinstance(dialect, str) else dialect
    found = []
    for index, item in enumerate(messages):
        try:
            require_shallow(item)
            found.append(known.read(item))
        except (ValueError, TypeError, AttributeError) as problem:  # a field may be of any type
            raise unreadable(index, known, problem, item) from problem
    return known, found


def read_prompt(system: Any) -> tuple[Dialect, Any]:
    """A system prompt outside the list as a message of a dialect that can hold it: text, blocks, or Gemini's parts.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(system, str):
        return get("anthropic"), {"role": "system", "content": system}
    given = plain(system) if isinstance(system, Mapping) or hasattr(system, "model_dump") else None
    if given is not None and "parts" in given:
        return get("gemini"), {"role": "system", "parts": given["parts"]}
    if given is not None and isinstance(given.get("text"), str):
        return get("converse"), {"role": "system", "content": [given]}
    blocks = system if isinstance(system, list | tuple) else ()
    if blocks and not any(isinstance(block, Mapping) and "type" in block for block in blocks):
        return get("converse"), {"role": "system", "content": [_as_block(block) for block in blocks]}
    return get("anthropic"), {"role": "system", "content": system}


def _as_block(block: Any) -> Any:
    return block if isinstance(block, str | Mapping) else plain(block)


def unreadable(index: int, dialect: Dialect, problem: Exception, item: Any = None) -> MessageError:
    """The error for an entry that its dialect cannot read."""
    shape = _shape_of(item)
    return MessageError(
        f"messages[{index}] is not a {dialect.NAME} message: {problem}{_looks(shape)}",
        hint=shape.hint if shape else f"Expected {dialect.EXPECTED}",
        index=index,
        dialect=dialect.NAME,
    )


def _shape_of(item: Any) -> Shape | None:
    try:
        return None if item is None else shape_of(item, plain(item))
    except ValueError:
        return None if isinstance(item, str | bytes | int | float | list | tuple) else shape_of(item, {})


def _looks(shape: Shape | None) -> str:
    return f"; it looks like {shape.name}" if shape else ""


def require_list(messages: Any) -> None:
    """Check that this is a list.

    Raises:
        MessageError: it is not.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise not_a_list(messages)


def not_a_list(given: Any) -> MessageError:
    """The error for something that was passed instead of a list of messages."""
    return MessageError(
        f"expected a list of messages, got {type(given).__name__}",
        hint="Pass the list itself, for example request['messages']",
    )


def write(dialect: Dialect, messages: Iterable[Message]) -> list[Any]:
    """Return the host's entries: the same objects where nothing changed."""
    return [dialect.write(message) for message in messages]


def _mapping(item: Any, index: int) -> Mapping[str, Any]:
    try:
        return plain(item)
    except ValueError as problem:
        shape = _shape_of(item)
        raise MessageError(
            f"messages[{index}] is not a message: {problem}{_looks(shape)}",
            hint="Expected a dict with a 'role', an item with a 'type', an SDK object with model_dump(), or an object with "
            "'role' and 'content'. " + (shape.hint if shape else ""),
            index=index,
        ) from problem


def _not_a_message(index: int, item: Any, data: Mapping[str, Any], chosen: Dialect | None) -> MessageError:
    keys = ", ".join(sorted(map(str, data))[:8]) or "none"
    shape = shape_of(item, data)
    hint = f"{shape.hint}. " if shape else ""
    if chosen is None:
        return MessageError(
            f"messages[{index}] is not a message of any known dialect (keys: {keys}){_looks(shape)}",
            hint=f"{hint}Expected a dict with a 'role' and 'content' or 'parts', or an item with a known 'type'; "
            f"or name the dialect: {', '.join(NAMES)}",
            index=index,
        )
    return MessageError(
        f"messages[{index}] is not a {chosen.NAME} message like those around it (keys: {keys}){_looks(shape)}",
        hint=f"{hint}Expected {chosen.EXPECTED}",
        index=index,
        dialect=chosen.NAME,
    )
