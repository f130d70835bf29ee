"""Fields: a name that says a secret follows, an operator, and the value. In text of any language, and in data."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable
from typing import Any

from compact.redaction.candidates import Candidate, Find, Span
from compact.redaction.literals import Value, read_cell, read_next_line, read_value
from compact.redaction.names import is_innocent, normal_name
from compact.redaction.rules import Rule
from compact.redaction.shapes import (
    has_digit,
    is_code,
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
from compact.redaction.validators import CHECKS

_CLOSERS = r"[\"'`\]\\*]*(?:\[[^\]\n]{0,30}\])?[ \t]*"
_OPERATORS = r":=|=>|={1,3}|!==?|(?:\|\||\?\?|[?+])=|::?|\(|,|>|\||value[ \t]*=|[ \t][\"']"

_SAMPLE_CHARS = 400
"""Enough of a value to know its kind by; judging more would only cost time on hostile text."""
_AFTER_A_STRING = ("+", ")", ",", ";")
"""`"API_KEY=" + key`: that quote closes a string, it does not open one."""
_CODE_WORDS = word_set(
    "return if else elif for while in is not and or with as await new yield raise throw def class import from"
)
_TELLING_WORDS = word_set("password passwd pass pwd secret token key auth credential credentials api")
_LONGEST_NAME_HEAD = 64
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_NAME_TAIL = re.compile(r"[\w.\-]+", re.ASCII)
_FIRST_HALF = re.compile(r"([A-Za-z]{2,20})[ \t]\Z")
_SCHEMA_WORDS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "properties", "enum"})
_SCHEMA_TYPES = frozenset({"string", "object", "number", "integer", "boolean", "array", "null"})


class Fields:
    """The rules whose scope is `key`, and what they say about a name and its value."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._known: dict[str, Rule | None] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def rule_for(self, name: str) -> Rule | None:
        """The first rule that a field's name falls under, or None."""
        if name not in self._known:
            if len(self._known) > 20_000:
                self._known.clear()
            self._known[name] = self._look_up(name)
        return self._known[name]

    def _look_up(self, name: str) -> Rule | None:
        normal = normal_name(name)
        if not normal:
            return None
        innocent = is_innocent(normal)
        for rule in self._rules:
            if rule.regex.search(normal) is not None and not (innocent and rule.validator in _KINDS):
                return rule
        return None

    def patterns(self) -> list[tuple[str, tuple[str, ...], Find]]:
        """What to look for in text: a pattern, its keywords, and the judge of what it finds."""
        found: list[tuple[str, tuple[str, ...], Find]] = []
        for stems in self._stems():
            # The name's beginning is looked up after the match: a group to capture it makes RE2 three times slower.
            stem = f"(?:{'|'.join(map(re.escape, stems))})" if stems else r"[\w.\-]"
            name = stem + r"[\w.\-]*"
            found += [
                (rf"(?i){name}{_CLOSERS}(?:{_OPERATORS})", stems, self._assigned),
                (rf"(?i){name}[\"']?[ \t]*,?\s*\n[ \t\-]*[\"']?value[\"']?[ \t]*[:=]", stems, self._assigned),
                (rf"(?i){name}[ \t]+(?:is|was|of)[ \t]*:?[ \t]+", stems, self._told),
                (
                    rf"(?i)(?:(?:^|[\s\"'`])--?|\b(?:ENV|ARG|setx|set)[ \t]+)(?P<key>[\w.\-]*{name})[ \t]+",
                    stems,
                    self._flagged,
                ),
            ]
        return found

    def _stems(self) -> list[tuple[str, ...]]:
        # Names outside ASCII are searched for apart: RE2 then has to work on the real characters, which is slower.
        words = sorted({word.lower() for rule in self._rules for word in rule.keywords})
        groups = [tuple(w for w in words if w.isascii()), tuple(w for w in words if not w.isascii())]
        if any(not rule.keywords for rule in self._rules):
            return [()]
        return [group for group in groups if group]

    def _rule_before(self, found: Candidate) -> Rule | None:
        # "API key: ..." has the half that tells before a blank.
        word = _FIRST_HALF.search(found.text, max(0, found.key_start - 24), found.key_start)
        if word:
            whole = f"{word[1]}_{found.key}"
            if is_innocent(normal_name(whole)):
                return None
            rule = self.rule_for(whole)
            if rule is not None:
                return rule
        return self.rule_for(found.key)

    def _assigned(self, match: Candidate) -> Span | None:
        found = _with_name(match)
        rule = self._rule_before(found)
        if rule is None:
            return None
        gap = found.text[found.key_end : found.match_end]
        position = found.match_end
        if gap[-1] in "\"'":
            gap, position = gap[:-1], position - 1
        operator = gap.lstrip("\"'`]\\* \t")
        value = self._value_of(found, position, operator)
        if value is None or not value.text or not _fits_operator(found, gap, operator, value):
            return None
        if not _is_secret(rule, value, _in_code(found, value)):
            return None
        return Span(value.start, value.end, rule.id, rule.replacement)

    def _value_of(self, found: Candidate, position: int, operator: str) -> Value | None:
        text = found.text
        if operator == "|":
            return read_cell(text, position)
        shell_word = found.key.startswith("-")
        value = read_value(text, found.key_start, position, annotated=operator == ":", word=shell_word)
        if value is None and operator in (":", "="):
            value = read_next_line(text, position)
            if value is not None and not _mixed(value.text):
                return None
        return value

    def _flagged(self, found: Candidate) -> Span | None:
        rule = self.rule_for(found.key)
        value = read_value(found.text, found.key_start, found.match_end, word=True)
        if rule is None or value is None or value.text.startswith("-"):
            return None
        return (
            Span(value.start, value.end, rule.id, rule.replacement)
            if _is_secret(rule, value, False)
            else None
        )

    def _told(self, match: Candidate) -> Span | None:
        found = _with_name(match)
        rule = self._rule_before(found)
        value = read_value(found.text, found.key_start, found.match_end)
        if rule is None or value is None or len(value.text) < 6 or not _is_secret(rule, value, True):
            return None
        made_up = has_digit(value.text) and any(c.isalpha() for c in value.text)
        if not (made_up or looks_random(value.text)):
            return None
        return Span(value.start, value.end, rule.id, rule.replacement)

    def masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        """Whether a leaf of data under a telling name is masked: a string, or a number."""
        if isinstance(leaf, bool) or leaf is None:
            return False
        if isinstance(leaf, int | float):
            return rule.validator in (None, "literal", "mixed") or len(str(abs(leaf))) >= 10
        value = Value(0, len(leaf), leaf, quoted=True, template=False, follower="", alone=False)
        return _is_secret(rule, value, False)


def is_schema(data: Any) -> bool:
    """Whether an object describes a field (JSON Schema) and so holds no value of it."""
    kind = data.get("type")
    return (isinstance(kind, str) and kind in _SCHEMA_TYPES) or any(word in data for word in _SCHEMA_WORDS)


def _with_name(match: Candidate) -> Candidate:
    """The candidate with the bounds of its whole name, of which the pattern saw the telling part and what follows."""
    text, start = match.text, match.start
    head = text[max(0, start - _LONGEST_NAME_HEAD) : start]
    key_start = start - len(head) + len(head.rstrip(_NAME_CHARACTERS))
    tail = _NAME_TAIL.match(text, start, match.match_end)
    return Candidate(text, start, match.end, match.match_end, key_start, tail.end() if tail else start)


def _fits_operator(found: Candidate, gap: str, operator: str, value: Value) -> bool:
    """Whether the value can belong to the name, for the operators that have other uses as well."""
    if operator in ("(", "::") or operator.startswith(("==", "!=")):
        return value.quoted
    if operator == ",":
        return value.quoted and gap[:1] in "\"'`\\" and looks_random(value.text)
    if operator == "":
        return value.quoted and _mixed(value.text)
    if operator == ">":
        return not value.quoted and found.text[found.key_start - 1 : found.key_start] == "<"
    if operator == "|":
        return _mixed(value.text)
    if operator.lower().startswith("value"):
        return value.quoted and gap[:1] in "\"'"
    return True


def _in_code(found: Candidate, value: Value) -> bool:
    before = found.text[max(0, found.key_start - 3) : found.key_start].rstrip()[-1:]
    return not value.alone and (
        before in ("(", ",", "{", ".", "|") or value.follower in (")", ",", "}", ";", "|", "=")
    )


def _is_secret(rule: Rule, value: Value, in_code: bool) -> bool:
    kind = rule.validator
    text = value.text[:_SAMPLE_CHARS] if kind in _KINDS else value.text
    if not text or is_reference(text) or text == rule.replacement:
        return False
    if callable(kind):
        return bool(kind(text))
    if kind is None:
        return value.quoted or not is_code(text)
    if kind not in _KINDS:
        return CHECKS[kind](text)
    if is_placeholder(text) or (value.template and "{" in text):
        return False
    if value.quoted and text.lstrip()[:1] in _AFTER_A_STRING:
        return False
    if not value.quoted and not _is_bare_literal(kind, value, in_code):
        return False
    if value.quoted and (is_label(text) if kind == "literal" else is_prose(text)):
        return False
    return _KINDS[kind](text)


def _is_bare_literal(kind: str, value: Value, in_code: bool) -> bool:
    """Whether an unquoted value is a literal, not a variable, a type or an expression."""
    text = value.text[:_SAMPLE_CHARS]
    if is_code(text) or value.follower in ("(", "[") or text.lower() in _CODE_WORDS:
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
    if any(word in _TELLING_WORDS for word in words) and surprise(text) < 0.3:
        return False
    return not in_code or has_digit(text)


def _mixed(text: str) -> bool:
    if looks_random(text):
        return True
    if len(text) < 6:
        return False
    marks = {char for char in text if char in "!@#$%^&*+~?"}
    return len(marks) > 1 or (bool(marks or has_digit(text)) and surprise(text) >= 0.15)


def _long_random(text: str) -> bool:
    if len(text) < 16 or not has_digit(text) or not looks_random(text):
        return False
    # The keys of caches carry words: `linux-x64-f804a687...`.
    parts = re.split(r"[-_.:/]", text[:200])
    return not any(len(part) >= 4 and part.isalpha() and surprise(part) < 0.3 for part in parts)


_KINDS: dict[str, Callable[[str], bool]] = {
    "literal": bool,
    "mixed": _mixed,
    "random": looks_random,
    "long_random": _long_random,
}
"""How sure a value must look under a name of that kind."""
