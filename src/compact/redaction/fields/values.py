"""Fields: names that say a secret follows, and whether what follows is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from compact.redaction.fields.literals import Value
from compact.redaction.fields.names import is_innocent, normal_name
from compact.redaction.fields.shapes import (
    has_digit,
    is_code,
    is_common_word,
    is_identifier,
    is_label,
    is_placeholder,
    is_prose,
    is_reference,
    looks_random,
    surprise,
    word_set,
    words_of,
)
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.validators import CHECKS

_REMEMBERED_NAMES = 20_000
_LONGEST_REMEMBERED = 200
_SAMPLE_CHARS = 400
"""Enough of a value to know its kind by; judging more would only cost time on hostile text."""

_AFTER_A_STRING = ("+", ")", ",", ";")
"""`"API_KEY=" + key`: that quote closes a string, it does not open one."""
_TELLING_WORDS = word_set("password passwords passwd pass pwd token key auth credential credentials api")
_SCHEMA_WORDS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "properties", "enum"})
_SCHEMA_TYPES = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"})


class Fields:
    """The rules whose scope is `key`, and what they say about a name and its value."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._known: dict[str, Rule | None] = {}

    def rule_for(self, name: str) -> Rule | None:
        """The first rule that a field's name falls under, or None."""
        if name in self._known:
            return self._known[name]
        rule = self._look_up(name)
        if len(name) <= _LONGEST_REMEMBERED:
            if len(self._known) >= _REMEMBERED_NAMES:
                self._known.clear()
            self._known[name] = rule
        return rule

    def _look_up(self, name: str) -> Rule | None:
        normal = normal_name(name)
        if not normal:
            return None
        innocent = is_innocent(normal)
        for rule in self.rules:
            if rule.regex.search(normal) is not None and not (innocent and rule.validator in KIND_CHECKS):
                return rule
        return None

    def masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        """Whether a leaf of data under a telling name is masked: a string, or a number."""
        if isinstance(leaf, bool) or leaf is None:
            return False
        if isinstance(leaf, int | float):
            return rule.validator in (None, "literal", "mixed") or abs(leaf) >= 10**9
        value = Value(0, len(leaf), leaf, quoted=True, template=False, follower="", alone=False)
        return holds_secret(rule, value, in_code=False)


def is_schema(data: Any) -> bool:
    """Whether an object describes a field (JSON Schema) and so holds no value of it."""
    kind = data.get("type")
    return (isinstance(kind, str) and kind in _SCHEMA_TYPES) or any(word in data for word in _SCHEMA_WORDS)


def holds_secret(rule: Rule, value: Value, *, in_code: bool) -> bool:
    """Whether a value under a name that falls under `rule` is a secret, and not code, a reference or a placeholder."""
    kind = rule.validator
    text = value.text[:_SAMPLE_CHARS] if kind in KIND_CHECKS else value.text
    if not text or is_reference(text) or text == rule.replacement:
        return False
    if callable(kind):
        return bool(kind(text))
    if kind is None:
        return value.quoted or not is_code(text)
    if kind not in KIND_CHECKS:
        return CHECKS[kind](text)
    if value.template or is_placeholder(text):
        return False
    if value.quoted:
        about = is_label(text) if kind == "literal" else is_prose(text)
        if about or text.lstrip()[:1] in _AFTER_A_STRING:
            return False
    elif not _is_bare_literal(kind, text, value, in_code):
        return False
    return KIND_CHECKS[kind](text)


def _is_bare_literal(kind: str, text: str, value: Value, in_code: bool) -> bool:
    """Whether an unquoted value is a literal, not a variable, a type or an expression."""
    if is_code(text) or value.follower in ("(", "[") or (is_common_word(text) and not value.alone):
        return False
    if looks_random(text):
        return True
    if text.isdigit():
        return not in_code
    if not is_identifier(text):
        return not text.startswith(("/", "~", "./")) and not (kind != "literal" and surprise(text) < 0.15)
    words = words_of(text)
    if len(words) > 1 and not has_digit(text):
        return False
    if not _TELLING_WORDS.isdisjoint(words):
        # `password1` is a variable, `secret123` a password; in code both are variables.
        digits = sum(char.isdigit() for char in text)
        return not in_code and (digits > 1 or (digits == 1 and value.alone))
    return not in_code or has_digit(text)


def is_made_up(text: str) -> bool:
    """Whether it is random, or a word with digits or marks put in, as people make their passwords."""
    if looks_random(text):
        return True
    if len(text) < 6:
        return False
    marks = {char for char in text[:_SAMPLE_CHARS] if char in "!@#$%^&*+~?"}
    return len(marks) > 1 or (bool(marks or has_digit(text)) and surprise(text) >= 0.15)


def _random(text: str) -> bool:
    # A token of six characters needs two digits; `#f8f8f2` is a colour.
    short = len(text) < 8 and text.isalnum() and sum(char.isdigit() for char in text) > 1
    return looks_random(text, shortest=6 if short else 8)


def _long_random(text: str) -> bool:
    if len(text) < 16 or not has_digit(text) or not looks_random(text):
        return False
    # The keys of caches carry words: `linux-x64-f804a687...`.
    parts = re.split(r"[-_.:/]", text[:_SAMPLE_CHARS])
    return not any(len(part) >= 4 and part.isalpha() and surprise(part) < 0.3 for part in parts)


KIND_CHECKS: dict[str, Callable[[str], bool]] = {
    "literal": bool,
    "mixed": is_made_up,
    "random": _random,
    "long_random": _long_random,
}
"""How a value must look under a name of that kind: `password` hides anything, `key` only what a generator made."""
