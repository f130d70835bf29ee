"""Placeholders: what stands for a value in the messages that go to a model, and how it is turned back.

A placeholder is a label and a number: `<SECRET_1>`, `<EMAIL_2>`. Numbers count the values of a session by their first
appearance. A number that somebody typed before it was given out is never given out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compact.redaction.data import mask_value
from compact.redaction.fields.names import FieldNames
from compact.redaction.json_text import looks_like_json, mask_json
from compact.redaction.rules.matches import PLACEHOLDER, Finding
from compact.redaction.rules.rule import Rule

TYPED_LABEL = "TEXT"
"""The label for a text that looks like a placeholder of ours and was typed by somebody."""
_NUMBER_MARK = "\x00number:"
"""A number in data and the same digits in a text are two values, so that each is turned back into what it was."""
_MAX_JSON_LEVELS = 16

Seal = Callable[[str], str]
"""Turns a value into a keyed hash, under which another process knows its placeholder."""


class Placeholders:
    """The values of one session and their placeholders. Values are kept in memory only."""

    def __init__(self) -> None:
        self._by_value: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._by_seal: dict[str, str] = {}
        self._taken: set[int] = set()
        self._next = 1
        self._seal: Seal | None = None
        self.unsaved: list[tuple[str, str]] = []
        """Placeholders that were given out since they were last saved, each with the seal of its value."""

    def adopt(self, saved: Iterable[tuple[str, str]], seal: Seal) -> None:
        """Continue with the placeholders that this or another process has given out, by the seals of their values."""
        self._seal = seal
        for placeholder, sealed in saved:
            self._by_seal[sealed] = placeholder
            self._taken.add(_number_of(placeholder))

    def reserve(self, text: str) -> None:
        """Never give out a placeholder that occurs in a text. Those that were given out stay what they are."""
        self._taken.update(int(found["number"]) for found in PLACEHOLDER.finditer(text))

    def give(self, value: str | float, label: str) -> str:
        """Return the placeholder of a value. A new value gets the next free number."""
        name = self.restore(value) if isinstance(value, str) else _NUMBER_MARK + json.dumps(value)
        return self._give(name, label)

    def give_typed(self, text: str) -> str:
        """Return the placeholder of a text that only looks like one of ours."""
        return self._give(text, TYPED_LABEL)

    def restore(self, text: str) -> str:
        """Put the values back into a plain text. A placeholder without a known value stays."""
        if "<" not in text:
            return text
        return PLACEHOLDER.sub(lambda found: self._value_of(found[0]), text)

    def restore_value(self, value: Any) -> Any:
        """Put the values back into a text or into data. JSON text stays valid JSON."""
        return mask_value(value, _Restoring(self, is_data=not isinstance(value, str)))

    def number_for(self, placeholder: str) -> Any:
        """The number that a placeholder stands for; None if it stands for something else."""
        value = self._values.get(placeholder, "")
        return json.loads(value[len(_NUMBER_MARK) :]) if value.startswith(_NUMBER_MARK) else None

    def _value_of(self, placeholder: str) -> str:
        return self._values.get(placeholder, placeholder).removeprefix(_NUMBER_MARK)

    def _give(self, name: str, label: str) -> str:
        known = self._by_value.get(name)
        if known is not None:
            return known
        sealed = "" if self._seal is None else self._seal(name)
        placeholder = self._by_seal.get(sealed)
        if placeholder is None:
            while self._next in self._taken:
                self._next += 1
            self._taken.add(self._next)
            placeholder = f"<{label}_{self._next}>"
            self.unsaved.append((placeholder, sealed))
        self._by_value[name] = placeholder
        self._values[placeholder] = name
        return placeholder


class _Restoring:
    """Puts values back, as a masker of data and JSON text."""

    field_names = FieldNames(())

    def __init__(self, placeholders: Placeholders, *, is_data: bool) -> None:
        self._placeholders = placeholders
        self._is_data = is_data

    def find(self, _text: str) -> list[Finding]:
        return []

    def mask_text(self, text: str, depth: int) -> tuple[Any, int]:
        if PLACEHOLDER.search(text) is None:
            return text, 0
        if depth < _MAX_JSON_LEVELS and looks_like_json(text):
            restored = mask_json(text, self, depth + 1)
            if restored is not None:
                return restored
        if (depth or self._is_data) and (number := self._placeholders.number_for(text)) is not None:
            return number, 1
        new = self._placeholders.restore(text)
        return new, int(new != text)

    def mask_name(self, text: str, depth: int) -> tuple[Any, int]:
        return self.mask_text(text, depth)

    def masks_leaf(self, _rule: Rule, _leaf: str | float) -> bool:
        return False

    def stand_in(self, _value: str | float, _rule_id: str, mask: str) -> str:
        return mask


def _number_of(placeholder: str) -> int:
    found = PLACEHOLDER.fullmatch(placeholder)
    return int(found["number"]) if found else 0


def texts_in(value: Any) -> Iterable[str]:
    """Every string in data, in order, including the names of fields."""
    stack, seen = [value], set[int]()
    while stack:
        entry = stack.pop()
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, Mapping | list | tuple):
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            if isinstance(entry, Mapping):
                stack.extend(part for pair in reversed(list(entry.items())) for part in reversed(pair))
            else:
                stack.extend(reversed(entry))
