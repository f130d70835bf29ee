"""Fields in text: a name, an operator, a value. In code, JSON, YAML, INI, shell, SQL, XML, tables and prose."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from compact.redaction.fields.literals import (
    Value,
    end_of_value,
    read_block,
    read_cell,
    read_next_line,
    read_value,
)
from compact.redaction.fields.names import is_innocent, normal_name
from compact.redaction.fields.shapes import has_digit, looks_random
from compact.redaction.fields.values import Fields, holds_secret, is_made_up
from compact.redaction.rules.candidates import Candidate, Find, Span
from compact.redaction.rules.rule import Rule

_WRAPPING = r"(?:&quot;|&#3[49];|&apos;|\x1b\[[\d;]{0,12}m)?"
"""HTML's quotes, and the codes that colour a terminal."""
_CLOSERS = _WRAPPING + r"[\"'`\]\\*]*(?:\[[^\]\n]{0,30}\])?[ \t]*"
"""What stands between a name and its operator: closing quotes, brackets and escapes, a subscript, Markdown."""
_OPERATORS = r":=|=>|={1,3}|!==?|(?:\|\||\?\?|[?+])=|::?|\(|,|>|\||value[ \t]*=|[ \t][\"']|%3[AD]"

_WRAPPED = re.compile(r"\A" + _WRAPPING)
_LONGEST_NAME_HEAD = 64
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_NAME_TAIL = re.compile(r"[\w.\-]+")
_LEADING_WORD = re.compile(r"\^?([a-z]{3,})(?![a-z]*[?*{])")
_FIRST_HALF = re.compile(r"([A-Za-z]{2,20})[ \t]\Z")
_NO_FIELD = re.compile(r"[\w*:]:\Z|://\Z")
"""`arn:aws:secretsmanager:...:secret:name`, `AWS::IAM::AccessKey`, `https://token:...@host`: no names of fields."""


class Assignments:
    """Finds fields in text and masks their values."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def patterns(self) -> list[tuple[str, tuple[str, ...], Find]]:
        """What to look for: a pattern, its keywords, and the judge of what it finds."""
        found: list[tuple[str, tuple[str, ...], Find]] = []
        for stems in _stems(self._fields.rules):
            # The name's beginning is looked up after the match: a group to capture it makes RE2 three times slower.
            stem = f"(?:{'|'.join(map(re.escape, stems))})" if stems else r"[\w.\-]"
            name = stem + r"[\w.\-]*"
            flag = r"(?:(?:^|[\s\"'`])--?|\b(?:ENV|ARG|setx|set)[ \t]+)"
            found += [
                (rf"(?i){name}{_CLOSERS}(?:{_OPERATORS})", stems, self._assigned),
                (rf"(?i){name}[\"']?[ \t]*,?\s*\n[ \t\-]*[\"']?value[\"']?[ \t]*[:=]", stems, self._assigned),
                (rf"(?i){name}[ \t]+(?:is|was|of)[ \t]*:?[ \t]+", stems, self._told),
                (rf"(?i){flag}(?P<key>[\w.\-]*{name})[ \t]+", stems, self._flagged),
            ]
        return found

    def _assigned(self, match: Candidate) -> Span | None:
        """`name = value`, with any operator."""
        found = _with_name(match)
        if _NO_FIELD.search(found.text, max(0, found.key_start - 3), found.key_start):
            return None
        rule = self._rule_before(found)
        if rule is None:
            return None
        gap = found.text[found.key_end : found.match_end]
        position = found.match_end
        if gap[-1:] in ("'", '"'):
            gap, position = gap[:-1], position - 1
        operator = _WRAPPED.sub("", gap).lstrip("\"'`]\\* \t")
        value = _value_of(found, position, operator)
        if value is None or not value.text or not _fits_operator(found, gap, operator, rule, value):
            return None
        if not holds_secret(rule, value, in_code=_in_code(found, value)):
            return None
        return _span(rule, value, end_of_value(found.text, value, phrase=rule.validator == "literal"))

    def _flagged(self, found: Candidate) -> Span | None:
        """`--name value`, `ENV NAME value`."""
        rule = self._fields.rule_for(found.key)
        value = read_value(found.text, found.key_start, found.match_end, word=True)
        if rule is None or value is None or value.text.startswith("-"):
            return None
        is_word = not value.quoted and value.text.isalpha() and not looks_random(value.text)
        return _span(rule, value) if not is_word and holds_secret(rule, value, in_code=False) else None

    def _told(self, match: Candidate) -> Span | None:
        """`the password is value`: in prose only what nobody takes for a word."""
        found = _with_name(match)
        rule = self._rule_before(found)
        value = read_value(found.text, found.key_start, found.match_end)
        if rule is None or value is None or len(value.text) < 6:
            return None
        made_up = has_digit(value.text) and any(char.isalpha() for char in value.text[:80])
        if not (made_up or looks_random(value.text)) or not holds_secret(rule, value, in_code=True):
            return None
        return _span(rule, value)

    def _rule_before(self, found: Candidate) -> Rule | None:
        # "API key: ..." has the half that tells before a blank.
        word = _FIRST_HALF.search(found.text, max(0, found.key_start - 24), found.key_start)
        if word:
            whole = f"{word[1]}_{found.key}"
            if is_innocent(normal_name(whole)):
                return None
            rule = self._fields.rule_for(whole)
            if rule is not None:
                return rule
        return self._fields.rule_for(found.key)


def _stems(rules: Sequence[Rule]) -> list[tuple[str, ...]]:
    """The words to look for, one group per pattern; an empty group stands for any name."""
    found = [rule.keywords or _leading_word(rule.pattern) for rule in rules]
    words = sorted({word.lower() for group in found for word in group})
    # Names outside ASCII are looked for apart: RE2 then has to work on the real characters, which is slower.
    groups = (tuple(w for w in words if w.isascii()), tuple(w for w in words if not w.isascii()))
    return [group for group in groups if group] if all(found) else [()]


def _leading_word(pattern: str) -> tuple[str, ...]:
    """The word that every name matching the pattern begins with, where that is plain to see."""
    word = _LEADING_WORD.match(pattern)
    choices = re.sub(r"\([^()]*\)", "", pattern)
    return (word[1],) if word and "|" not in choices else ()


def _span(rule: Rule, value: Value, end: int | None = None) -> Span:
    return Span(value.start, value.end if end is None else end, rule.id, rule.replacement)


def _with_name(match: Candidate) -> Candidate:
    """The candidate with the bounds of its whole name, of which the pattern saw the telling part and what follows."""
    text, start = match.text, match.start
    head = text[max(0, start - _LONGEST_NAME_HEAD) : start]
    key_start = start - len(head) + len(head.rstrip(_NAME_CHARACTERS))
    tail = _NAME_TAIL.match(text, start, match.match_end)
    return Candidate(text, start, match.end, match.match_end, key_start, tail.end() if tail else start)


def _value_of(found: Candidate, position: int, operator: str) -> Value | None:
    if operator == "|":
        return read_cell(found.text, position)
    shell_word = found.key.startswith("-")
    value = read_value(found.text, found.key_start, position, annotated=operator == ":", word=shell_word)
    if value is None and operator == ":":
        block = read_block(found.text, position)
        if block is not None:
            return block if is_made_up(block.text.split(None, 1)[0]) else None
    if value is None and operator in (":", "="):
        below = read_next_line(found.text, position)
        return below if below is not None and is_made_up(below.text) else None
    return value


def _fits_operator(found: Candidate, gap: str, operator: str, rule: Rule, value: Value) -> bool:
    """Whether the value can belong to the name, for the operators that have other uses as well."""
    text, start = found.text, found.key_start
    if operator == "::" or operator.startswith(("==", "!=")):
        return value.quoted
    if operator == "(":
        return value.quoted and (rule.validator == "literal" or looks_random(value.text))
    if operator == ",":
        return value.quoted and gap[:1] in ("'", '"', "`", "\\") and looks_random(value.text)
    if operator == "":
        return value.quoted and is_made_up(value.text)
    if operator == ">":
        return not value.quoted and text[start - 1 : start] == "<" and text.startswith("</", value.end)
    if operator == "|":
        return is_made_up(value.text) and text[max(0, start - 40) : start].rstrip(" \t`*")[-1:] == "|"
    if operator.lower().startswith("value"):
        return value.quoted and gap[:1] in ("'", '"')
    return True


def _in_code(found: Candidate, value: Value) -> bool:
    """Whether the two stand in an expression, where a bare word is a variable."""
    if found.key.startswith(("self.", "this.", "cls.")):
        return True
    text = found.text
    if value.text.isdigit() and text[found.key_end : found.key_end + 1] in ('"', "'"):
        return False  # `"password": 12345`, in what looks like JSON and is none
    before = text[max(0, found.key_start - 3) : found.key_start].rstrip()[-1:]
    if value.follower == ";" and (before == ";" or text[value.end + 1 : value.end + 2].isalpha()):
        return False  # a connection string: `Server=db;Password=...;Database=x`
    return not value.alone and (before in tuple("(,{.|") or value.follower in tuple("),};|="))
