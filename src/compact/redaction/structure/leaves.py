"""What the walkers over JSON text and Python data share: which rule applies to a leaf, and how it is masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from compact.redaction.fields.names import FieldNames
from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.rules.rule import Rule

_BLOB = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{64,}={0,3}\Z")
_BLOB_CHARS = 512
_SEALED_NAMES = frozenset({"signature", "encrypted_content", "thought_signature", "thoughtSignature"})
_LABELS = ("name", "Name", "key", "Key", "id", "field", "variable")
_LABELLED = frozenset({"value", "Value", "val"})
_SCHEMA_WORDS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "properties", "enum"})
_SCHEMA_TYPES = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"})


class Masker(Protocol):
    """Masks plain text and judges leaves, for a walker."""

    field_names: FieldNames

    def find(self, text: str) -> list[Finding]:
        """Everything to mask in a plain text, sorted by start, without overlaps."""
        ...

    def mask_text(self, text: str, depth: int) -> tuple[str, int]:
        """Mask a text, and count what was masked. `depth` is the level of JSON inside strings."""
        ...

    def masks_leaf(self, rule: Rule, leaf: str | float) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        ...


def mask_leaf(
    leaf: str | float | None, written: str, name: Any, rule: Rule | None, masker: Masker, depth: int
) -> tuple[Any, int]:
    """Mask a scalar, and count what was masked.

    Args:
        leaf: a string, a number, a boolean or None.
        written: a number as it is written.
        name: the name of the leaf in its object; None in a list.
        rule: the rule that the leaf falls under by its name.
        masker: masks and judges.
        depth: the level of JSON inside strings.
    """
    if leaf is None or isinstance(leaf, bool):
        return leaf, 0
    if rule is not None and masker.masks_leaf(rule, leaf):
        return rule.replacement, 1
    if not isinstance(leaf, str):
        count = masker.mask_text(written, depth)[1]
        return (MASK if count else leaf), count
    if _is_sealed(name, leaf):
        return leaf, 0
    return masker.mask_text(leaf, depth)


def _is_sealed(name: Any, value: str) -> bool:
    """Whether a leaf is encoded binary data, such as an image or a provider's signature, which must stay as it is."""
    if len(value) < 64 or (len(value) < _BLOB_CHARS and name not in _SEALED_NAMES):
        return False
    return _BLOB.match(value) is not None


def rule_in_object(name: Any, siblings: Mapping[Any, Any], field_names: FieldNames) -> Rule | None:
    """The rule of a value in an object, by its own name or by a label beside it.

    A label is a name that is a value too: `{"name": "DB_PASSWORD", "value": "..."}`.
    """
    rule = field_names.rule_for(name) if isinstance(name, str) else None
    if rule is not None or name not in _LABELLED:
        return rule
    for label in _LABELS:
        said = siblings.get(label)
        rule = field_names.rule_for(said) if isinstance(said, str) else None
        if rule is not None:
            return rule
    return None


def is_schema(data: Mapping[Any, Any]) -> bool:
    """Whether an object describes a field (JSON Schema) and so holds no value of it."""
    kind = data.get("type")
    return (isinstance(kind, str) and kind in _SCHEMA_TYPES) or any(word in data for word in _SCHEMA_WORDS)


class FreeNames:
    """The names of one object. Two names that are masked alike must not overwrite each other's values."""

    def __init__(self, taken: Iterable[Any]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Take the name, with a number appended if it is already taken."""
        free, number = name, self._numbers.get(name, 1)
        while free in self._taken:
            number += 1
            free = f"{name}-{number}"
        self._numbers[name] = number
        self._taken.add(free)
        return free
