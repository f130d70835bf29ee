"""The body of a request as text: where its fields and its messages stand, and how some of them are replaced.

A request is edited by replacing spans of its text. What is not replaced keeps its bytes: numbers, escapes, the order of
keys, and fields that nobody here knows.

A client sends its whole history every time, so a list is read with the one before it at hand: a message whose text is the
same is the same object again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_scan = json.JSONDecoder().raw_decode
"""Reads the value at a place of a text, and returns where it ends."""
_SPACE = re.compile(r"[ \t\n\r]*")
_SELF_ENDING = ("{", "[", '"')
"""What opens a value that shows its own end. A number may go on."""


class Unreadable(ValueError):
    """A body is not one JSON object, or says the same field twice."""


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a field, and where it stands in the text."""

    value: Any
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: its fields by name, and the messages of its list."""

    text: str
    fields: Mapping[str, Field]
    list_key: str
    items: Sequence[Any] = ()
    """The messages. They are the objects of the body before wherever their texts are the same."""
    texts: Sequence[str] = ()
    """The text of each message."""
    list_start: int = 0
    list_end: int = 0
    _own: Mapping[int, str] = field(default_factory=dict, repr=False)
    """The text of a message by the identity of its object."""

    def get(self, *names: str) -> Any:
        """The value of the first of these fields that is there and not null."""
        for name in names:
            found = self.fields.get(name)
            if found is not None and found.value is not None:
                return found.value
        return None

    def with_changes(
        self, items: Sequence[Any] | None = None, fields: Mapping[str, Any] | None = None
    ) -> str:
        """The text with another list, and with other values of some fields. A message of the list keeps its text."""
        changes: list[tuple[int, int, str]] = []
        if items is not None:
            texts = (self._own.get(id(item)) or write(item) for item in items)
            changes.append((self.list_start, self.list_end, f"[{','.join(texts)}]"))
        for name, value in (fields or {}).items():
            place = self.fields[name]
            changes.append((place.start, place.end, write(value)))
        pieces, done = [], 0
        for start, end, text in sorted(changes):
            pieces += [self.text[done:start], text]
            done = end
        return "".join([*pieces, self.text[done:]])


def write(value: Any) -> str:
    """A value as the text of JSON, without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_body(text: str, list_key: str, known: Body | None = None) -> Body:
    """Read the body of a request. `known` is an earlier one of the same conversation.

    Raises:
        Unreadable: the text is not one JSON object, or a field stands in it twice.
    """
    try:
        return _read(text, list_key, known)
    except (IndexError, RecursionError, ValueError) as problem:
        if isinstance(problem, Unreadable):
            raise
        raise Unreadable(f"the body is not a JSON object ({type(problem).__name__})") from problem


def _read(text: str, list_key: str, known: Body | None) -> Body:
    fields: dict[str, Field] = {}
    items: list[Any] = []
    texts: list[str] = []
    span = (0, 0)
    place = _skip(text, 0)
    if text[place] != "{":
        raise Unreadable("the body is not a JSON object")
    place = _skip(text, place + 1)
    while text[place] != "}":
        name, place = _scan(text, place)
        if not isinstance(name, str) or name in fields:
            raise Unreadable("a field stands in the body twice")
        place = _skip(text, place)
        if text[place] != ":":
            raise Unreadable("the body is not a JSON object")
        place = _skip(text, place + 1)
        if name == list_key and text[place] == "[":
            start = place
            place = _read_items(text, place, known, items, texts)
            span = (start, place)
            fields[name] = Field(items, start, place, "")
        else:
            fields[name] = found = _read_field(text, place, None if known is None else known.fields.get(name))
            place = found.end
        place = _skip(text, place)
        if text[place] == ",":
            place = _skip(text, place + 1)
            if text[place] == "}":
                raise Unreadable("the body is not a JSON object")
        elif text[place] != "}":
            raise Unreadable("the body is not a JSON object")
    if _skip(text, place + 1) != len(text):
        raise Unreadable("something follows the body's object")
    own = {id(item): said for item, said in zip(items, texts, strict=True)}
    return Body(text, fields, list_key, items, texts, *span, own)


def _read_field(text: str, place: int, known: Field | None) -> Field:
    if known is not None and known.text.startswith(_SELF_ENDING) and text.startswith(known.text, place):
        return Field(known.value, place, place + len(known.text), known.text)
    value, end = _scan(text, place)
    return Field(value, place, end, text[place:end])


def _read_items(text: str, place: int, known: Body | None, items: list[Any], texts: list[str]) -> int:
    """Read a list into `items` and `texts`, and return where it ends."""
    said = () if known is None else known.texts
    place = _skip(text, place + 1)
    while text[place] != "]":
        count = len(items)
        old = said[count] if count < len(said) else ""
        if known is not None and old[:1] == "{" and text.startswith(old, place):
            items.append(known.items[count])
            texts.append(old)
            place += len(old)
        else:
            value, end = _scan(text, place)
            items.append(value)
            texts.append(text[place:end])
            place = end
        place = _skip(text, place)
        if text[place] == ",":
            place = _skip(text, place + 1)
            if text[place] == "]":
                raise Unreadable("the body is not a JSON object")
        elif text[place] != "]":
            raise Unreadable("the body is not a JSON object")
    return place + 1


def _skip(text: str, place: int) -> int:
    if place < len(text) and text[place] > " ":
        return place
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()
