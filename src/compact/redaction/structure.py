"""What the walkers over JSON text and over Python data share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from compact.redaction.fields.values import Fields
from compact.redaction.rules.rule import Rule

_BLOB = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{64,}={0,3}\Z")
_BLOB_CHARS = 512
_SEALED_NAMES = frozenset({"signature", "encrypted_content", "thought_signature", "thoughtSignature"})
_LABELS = ("name", "Name", "key", "Key", "id", "field", "variable")
_LABELLED = frozenset({"value", "Value", "val"})


class Masker(Protocol):
    """What the walkers ask: the masked form of a text, and whether a leaf is masked for its name."""

    fields: Fields

    def mask_text(self, text: str, depth: int) -> tuple[str, int]:
        """The text without its secrets, and how many spans were masked; `depth` counts JSON inside strings."""
        ...

    def masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        """Whether a leaf under a name that falls under `rule` is masked whole."""
        ...


class Names:
    """The names of one object: two masked ones must not swallow each other's values."""

    def __init__(self, taken: Iterable[Any]) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def unused(self, name: str) -> str:
        """The name, or, where it is taken, with a number behind it."""
        spare, number = name, self._numbers.get(name, 1)
        while spare in self._taken:
            number += 1
            spare = f"{name}-{number}"
        self._numbers[name] = number
        self._taken.add(spare)
        return spare


def rule_by_label(name: Any, siblings: Mapping[Any, Any], fields: Fields) -> Rule | None:
    """The rule of a value whose name is a value too: `{"name": "DB_PASSWORD", "value": "..."}`."""
    if name not in _LABELLED:
        return None
    for label in _LABELS:
        said = siblings.get(label)
        rule = fields.rule_for(said) if isinstance(said, str) else None
        if rule is not None:
            return rule
    return None


def is_sealed(name: Any, value: str) -> bool:
    """Whether a leaf is binary data in letters: a picture, a provider's signature. Nobody reads it, nobody edits it."""
    if len(value) < 64 or (len(value) < _BLOB_CHARS and name not in _SEALED_NAMES):
        return False
    return _BLOB.match(value) is not None
