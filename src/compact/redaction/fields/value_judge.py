"""Judging the value of a field: whether it is a secret, or code, a reference or a placeholder."""

from __future__ import annotations

from collections.abc import Mapping

from compact.redaction.fields.value_reader import Value, is_regex
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.validators import CHECKS, KINDS, Check
from compact.redaction.shapes import (
    has_digit,
    is_code,
    is_common_word,
    is_generated,
    is_generic_type,
    is_identifier,
    is_name_of_variable,
    is_placeholder,
    is_plain_reference,
    is_prose,
    is_reference,
    is_version,
    looks_random,
    split_words,
    surprise,
    word_set,
)
from compact.redaction.ui_texts import is_ui_text, is_word_for_password

_SAMPLE_CHARS = 400
"""Enough of a value to judge it. Reading more would only cost time on hostile text."""
_AFTER_A_STRING = ("+", ")", ",", ";")
"""`"API_KEY=" + key`: this quote closes a string and does not open one."""
_SHORTEST_TOKEN = 8
LEAVES: Mapping[str, Check] = {
    "literal": bool,
    "mixed": is_generated,
    "random": lambda text: KINDS["random"](text) or (len(text) >= _SHORTEST_TOKEN and is_generated(text)),
}
"""What a leaf of data must look like. Randomness is judged first there: nothing in it is code."""
_TYPES = word_set("string number integer boolean object array null")
"""What a description of data has in place of values."""
_TELLING_WORDS = word_set("password passwords passwd pass pwd token key auth credential credentials api")


def is_secret_leaf(rule: Rule, leaf: str | float) -> bool:
    """Whether a string or a number in data is masked, because its name falls under `rule`."""
    if isinstance(leaf, int | float):
        is_code = rule.validator == "code_number" and KINDS["code_number"](str(leaf))
        return rule.validator in (None, "literal", "mixed") or is_code or abs(leaf) >= 10**9
    return is_secret(rule, Value(0, len(leaf), leaf, quoted=True), in_code=False, is_leaf=True)


def is_secret(rule: Rule, value: Value, *, in_code: bool, is_leaf: bool = False) -> bool:
    """Whether the value of a field is a secret, and not code, a reference or a placeholder.

    Args:
        rule: the rule that the field's name falls under.
        value: the value.
        in_code: whether the field is part of an expression, where a bare word is a variable.
        is_leaf: whether it is a leaf of data or of a settings file, where nothing is an expression.
    """
    kind = rule.validator
    text = value.text[:_SAMPLE_CHARS] if kind in KINDS else value.text
    if not text or text == rule.replacement:
        return False
    if kind in KINDS and (is_plain_reference(text) or (kind != "literal" and is_version(text))):
        return False
    if not value.quoted and is_generic_type(text):
        return False
    if kind == "literal" and _is_whole_word(text, value):
        return not is_word_for_password(text) and not (is_leaf and text.rstrip("?") in _TYPES)
    if is_reference(text):
        return False
    if callable(kind):
        return bool(kind(text))
    if kind is None:
        return value.quoted or not is_code(text)
    if kind not in KINDS:
        return CHECKS[kind](text)
    if value.template or is_placeholder(text) or (not value.quoted and is_regex(text)):
        return False
    if is_ui_text(text):
        return False
    if is_leaf and kind in LEAVES:
        return LEAVES[kind](text)
    if value.quoted:
        if is_prose(text) or (text.lstrip()[:1] in _AFTER_A_STRING and not looks_random(text)):
            return False
    elif not _is_bare_literal(kind, text, value, in_code):
        return False
    return KINDS[kind](text)


def _is_whole_word(text: str, value: Value) -> bool:
    """Whether a value is one word that is a value beyond doubt. Then even `changeme` and `password` are passwords."""
    if value.template or len(text.split()) != 1 or is_name_of_variable(text):
        return False
    return value.quoted or (value.alone and not is_code(text) and not is_reference(text))


def _is_bare_literal(kind: str, text: str, value: Value, in_code: bool) -> bool:
    """Whether an unquoted value is a literal, and not a variable, a type or an expression."""
    if is_code(text) or value.follower in ("(", "[") or (is_common_word(text) and not value.alone):
        return False
    if looks_random(text):
        return True
    if text.isdigit():
        return not in_code
    if not is_identifier(text):
        return not text.startswith(("/", "~", "./")) and not (kind != "literal" and surprise(text) < 0.15)
    words = split_words(text)
    if len(words) > 1 and not has_digit(text):
        return False
    if not _TELLING_WORDS.isdisjoint(words):
        # `password1` is a variable and `secret123` is a password; in code both are variables.
        digits = sum(char.isdigit() for char in text)
        return not in_code and (digits > 1 or (digits == 1 and value.alone))
    return not in_code or has_digit(text)
