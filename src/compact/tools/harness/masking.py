"""Masking: rules for texts, and what they do to a whole artifact.

A rule takes a text and returns the masked text and the number of masked spans, like `re.subn`. An artifact is masked in every
field, name and nested value, because all of it is written and reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from compact.errors import ConfigError
from compact.messages import to_json
from compact.messages.dialects.harness import FIELDS, KINDS
from compact.messages.settings_text import load_yaml, read_settings
from compact.redaction import Redactor
from compact.tools.harness.from_messages import MessageArtifact, letters

MaskingRule: TypeAlias = Callable[[str], tuple[str, int]]
"""A rule must find nothing in its own output."""

_OWN_WORDS = {
    "kind": frozenset(KINDS),
    "type": frozenset(KINDS),
    "role": frozenset({"system", "developer", "user", "assistant", "tool", "function"}),
}
"""The harness's own vocabulary, which is never masked."""
_MAX_DEPTH = 50
"""What is nested deeper is masked as one text."""


def digits(text: str) -> tuple[str, int]:
    """Mask three or more digits in a row, with the groups that belong to the same number."""
    return _scan(_redactor("digits"), text)


def standard(text: str) -> tuple[str, int]:
    """Mask personal data, verified by check digits, and secrets."""
    return _scan(_redactor("standard"), text)


def none(text: str) -> tuple[str, int]:
    """Mask nothing."""
    return text, 0


BUILT_IN: Mapping[str, MaskingRule] = {"digits": digits, "standard": standard, "none": none}


def rule_from_file(path: Path) -> MaskingRule:
    """Load a YAML or JSON file: a list, or one under `rules`, of rules, rule ids, or names of rule sets.

    Raises:
        ConfigError: the file cannot be read or has no list.
        RedactionError: a rule is refused; says which and why.
    """
    try:
        data = load_yaml(read_settings(path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except ValueError as error:
        words = " ".join(str(error).split())[:200]
        raise ConfigError(f"cannot read {path}: it is not YAML: {words}", path=str(path)) from None
    rules = data.get("rules") if isinstance(data, Mapping) else data
    if not isinstance(rules, list) or not rules:
        raise ConfigError(
            f"cannot read {path}: expected a list of rules, or one under 'rules'",
            hint="A rule is {id: ..., pattern: ...}; a name like `digits` or `pii` takes a built-in set",
            path=str(path),
        )
    return from_redactor(Redactor(rules))


def from_redactor(redactor: Redactor) -> MaskingRule:
    """Make a masking rule of a redactor."""
    return lambda text: _scan(redactor, text)


@lru_cache(maxsize=4)
def _redactor(name: str) -> Redactor:
    return Redactor(["default", "pii"] if name == "standard" else name)


def _scan(redactor: Redactor, text: str) -> tuple[str, int]:
    found = redactor.scan(text)
    return found.text, found.count


def mask_artifact(item: Mapping[str, Any], rule: MaskingRule) -> tuple[Mapping[str, Any], int]:
    """Mask every field of an artifact: names, texts, numbers, and whatever is nested in them.

    Returns:
        The artifact itself if the rule finds nothing, else a masked copy; and the number of spans. A `priority` that the
        rule matches is left out of the copy, since it has to stay a number.
    """
    walk = _Walk(rule)
    masked: dict[str, Any] = {}
    for name, value in item.items():
        known = name in FIELDS
        if known and isinstance(value, str) and value in _OWN_WORDS.get(name, ()):
            masked[name] = value
        elif name == "priority":
            spans = walk.spans
            walk.text(str(value))
            masked.update({name: value} if walk.spans == spans else {})
        else:
            # The names of the fields are ours, so they say nothing about what a value means.
            masked[name if known else walk.key(name, masked)] = walk.value(value, None if known else name)
    if not walk.spans:
        return item, 0
    return (
        MessageArtifact.named(item.name, masked) if isinstance(item, MessageArtifact) else masked
    ), walk.spans


class _Walk:
    """Masks a value of any shape and counts the spans."""

    def __init__(self, rule: MaskingRule) -> None:
        self._rule = rule
        self.spans = 0

    def text(self, text: str) -> str:
        if not text:
            return text
        masked, spans = self._rule(text)
        self.spans += spans
        return masked if spans else text

    def key(self, name: Any, taken: Mapping[Any, Any]) -> Any:
        """Mask the name of a field. Names that look alike afterwards stay apart."""
        spans = self.spans
        masked = self.text(str(name))
        if self.spans == spans:
            return name
        count = 0
        while masked in taken:
            count += 1
            masked = f"{masked.rpartition(' ')[0] if count > 1 else masked} {letters(count)}"
        return masked

    def value(self, value: Any, name: Any = None, depth: int = 0) -> Any:
        """Mask a value; one without a match is returned as it is. `name` is the key that it stands under."""
        if value is None or isinstance(value, bool):
            return value
        before = self.spans
        if depth < _MAX_DEPTH and isinstance(value, Mapping):
            found: dict[Any, Any] = {}
            for key, entry in value.items():
                found[self.key(key, found)] = self.value(entry, key, depth + 1)
            return found if self.spans > before else value
        if depth < _MAX_DEPTH and isinstance(value, list | tuple):
            entries = [self.value(entry, name, depth + 1) for entry in value]
            return entries if self.spans > before else value
        text = value if isinstance(value, str) else _as_written(value)
        masked = self.text(text)
        if self.spans == before and name is not None:
            masked = self._beside(name, text)
        return masked if self.spans > before else value

    def _beside(self, name: Any, text: str) -> str:
        """Mask a value that only its key gives away: `"password": "hunter"`."""
        masked, spans = self._rule(to_json({str(name): text}))
        spans -= self._rule(str(name))[1] if spans else 0  # the key is masked on its own
        if spans <= 0:
            return text
        self.spans += spans
        try:
            (found,) = json.loads(masked).values()
        except (ValueError, AttributeError, RecursionError):
            return masked
        return found if isinstance(found, str) else masked


def _as_written(value: Any) -> str:
    """The text of a number, or of any other object, as it is written to a file."""
    return to_json(value) if isinstance(value, Mapping | list | tuple) else str(value)
