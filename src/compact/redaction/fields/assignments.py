"""Fields in text: a name, an operator and a value, in code, JSON, YAML, INI, shell, SQL, XML, tables and prose."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import NamedTuple

from compact.redaction.fields import manifests
from compact.redaction.fields.names import FieldNames, is_innocent, normalize_name
from compact.redaction.fields.tables import Tables, table_headers
from compact.redaction.fields.value_judge import is_secret
from compact.redaction.fields.value_reader import (
    Value,
    find_end,
    read_block,
    read_cell,
    read_element,
    read_next_line,
    read_value,
)
from compact.redaction.rules.detectors import Detector
from compact.redaction.rules.matches import MASK, Candidate, Find, FindAll, Finding
from compact.redaction.rules.patterns import RulePattern
from compact.redaction.rules.rule import Rule
from compact.redaction.shapes import (
    has_digit,
    is_generated,
    is_generic_type,
    is_identifier,
    is_made_up,
    is_path,
    is_version,
    looks_random,
)
from compact.redaction.source_code import (
    closes_string,
    is_call,
    is_expression,
    is_first_word,
    is_near_source,
    is_sample,
    is_sentence,
    is_source,
    repeats_name,
)

_WRAPPING = r"(?:&quot;|&#3[49];|&apos;|\x1b\[[\d;]{0,12}m)?"
"""Quotes in HTML, and the codes that colour a terminal."""
_CLOSERS = _WRAPPING + r"[\"'`\]\\*]*(?:\[[^\]\n]{0,30}\])?[ \t]*"
"""What may come between a name and its operator: closing quotes, brackets and escapes, a subscript, Markdown."""
_OPERATORS = r":=|=>|={1,3}|!==?|(?:\|\||\?\?|[?+])=|::?|\(|,|>|\||value[ \t]*=|[ \t][\"']|%3[AD]"

_BELOW = (
    r"[\"']?[ \t]*,?\s*\n[ \t\-]*[\"']?value[\"']?[ \t]*[:=]"
    r"|[\"'][ \t]*\{\s*\n(?:[^\n{}=]*=[^\n{}]*\n){0,4}\s*default[ \t]*="
    r"|[ \t]*</[\w:\-]+>\s*<(?:[\w:\-]*value|string)>"
)
"""A name whose value stands in another field: `- name: X`, `value: ...`, `<name>X</name><value>...`, HCL's defaults."""
_FORM_FIELD = (
    r"[\w\-\"'\\\]=~^$*:. ]{0,40}[\"'`\]][\"'`\\]?(?:[ \t]*,[ \t]*|[^\n,;(){}]{0,20}\)(?:\.\w+\(\))?"
    r"\.(?:fill|type|send_keys|sendKeys|press_sequentially|pressSequentially|set_value|setValue|val|clear_and_type)\([ \t]*)"
    r"[\"'`]"
)
"""What may come between the name of a form's field and the text that a program types into it."""
_SAID = (
    r"(?:[ \t]*\([^()\n]{1,40}\)|[ \t]+(?:for|of|on)(?:[ \t]+[^\s:\"']{1,40}){1,4}?)(?:[ \t]*[:=]|[ \t]+(?:is|was)[ \t]*:?)"
    r"|[ \t]+(?:is|was|of)[ \t]*:?|[ \t]*[-=~]{1,2}>"
)
"""What says in a sentence that a value follows: `is`, `for root is`, `(root):`, `->`."""
_BESIDE = (
    r"[\"'`*]{0,2}(?:[ \t]+(?:(?:to|as|be|-{1,2})[ \t]+)?|[ \t]*[^\s!-~][ \t]*|[ \t]*\r?\n[ \t]*)[\"'`(*]{0,2}"
    r"\S{0,60}?(?:[0-9!@#$%^&*+~?]|(?-i:[a-z][A-Z]|[a-z]{12}))"
)
"""What may stand beside a name without a word between them. The value shows at once that it may be no word."""
_LINK = re.compile(
    r"[\"'`*]{0,2}[ \t]*(?:(?:to|as|be|--?|[—–→⇒·•])(?=[ \t]))?[ \t]*(?:\r?\n[ \t]*)?[(*]{0,2}"
)
_ENDS_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_ADDRESS = re.compile(r"://|[\w.+-]@[\w-]+\.[\w.]+\Z|\Aarn:")
_SHORTEST_BESIDE = 8
_TYPING = re.compile(r"[.\s](?:fill|type|setValue|set_value|input_text|fill_form)\([ \t]*[\"'`][^\n]{0,60}\Z")
_WRAPPED = re.compile(r"\A" + _WRAPPING)
_LONGEST_NAME_HEAD = 64
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_LEADING_WORD = re.compile(r"\^?([a-z]{3,})(?![a-z]*[?*{])")
_FIRST_HALF = re.compile(r"([A-Za-z]{2,20})[ \t]\Z")
_ASKS = re.compile(
    r"\A(?:get|is|has|find|load|read|clone|check|delete|enable|disable|validate)_|\.(?:startswith|endswith|get)\Z"
)
"""Functions that take a name or an id: `get_secret("DB_PASSWORD")`, `key.startswith("AWS4")`."""
_NO_FIELD = re.compile(r"(?<!\$env)(?<!\$ENV)(?<!\$Env)(?<=[\w*:]):\Z|://\Z")
"""What precedes a word that is not a field's name: `arn:aws:...:secret:name`, `AWS::IAM::AccessKey`, `https://token:`."""


_IS_TYPE = re.compile(r"\btype=\\?[\"']?\Z")
"""What precedes a kind of input: `input[type=password]:focus`, `<input type="password" :value="x">`."""
_NAMED_ELEMENT = re.compile(r"<[\w:.-]{1,40} (?:[^<>\n]{0,40} )?(?:name|key|id)=[\"']\Z")
"""What precedes the name of an element's content: `<string name="api_key">...</string>`."""
_TYPING_CALLS = (
    "fill(",
    "type(",
    "keys(",
    "keys (",
    "sequentially(",
    "value(",
    "val(",
    "input_text(",
    "fill_form(",
)


class Form(NamedTuple):
    """One way to write a field."""

    pattern: str
    keywords: tuple[str, ...]
    find: Find | None
    find_all: FindAll | None = None


class Assignments:
    """Finds the fields in a text whose values are secrets."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        words = {word for rule in names.rules for word in rule.keywords if " " in word or not word.isascii()}
        stems = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        self._name_tail = re.compile(rf"(?i:{stems or '(?!)'})[a-z0-9_.\-]*|[\w.\-]+", re.IGNORECASE)
        """A name from its telling word on. Some have blanks in them, or marks that are no letters to Python."""

    def detectors(self) -> list[Detector]:
        """One detector for each way to write a field."""
        detectors: list[Detector] = []
        find_cells = Tables(self._names).find_all
        for stems in _group_stems(self._names.rules):
            # The name's beginning is looked up after the match: a group that captures it makes RE2 three times slower.
            stem = f"(?:{'|'.join(map(re.escape, stems))})" if stems else r"[\w.\-]"
            name = stem + r"[\w.\-]*"
            flag = r"(?:(?:^|[\s\"'`])--?|\b(?:ENV|ARG|setx|set(?:[ \t]+-{1,2}\w+)*)[ \t]+)"
            operators = _OPERATORS if stem.isascii() else f"{_OPERATORS}|[：＝是为為は]"
            forms = (
                Form(rf"{name}(?:{_CLOSERS}(?:{operators})|{_BELOW})", stems, self._find_assignment),
                Form(rf"{name}{_FORM_FIELD}", _TYPING_CALLS, self._find_typed),
                Form(rf"{name}(?:{_SAID})[ \t]+", stems, self._find_in_prose),
                Form(rf"{name}{_BESIDE}", stems, self._find_beside),
                Form(rf"{flag}(?P<key>[\w.\-]*{name})[ \t]+", stems, self._find_flag),
                *(Form(pattern, words or stems, None, find_cells) for pattern, words in table_headers(stem)),
            )
            for form in forms:
                source, number = f"(?i){form.pattern}", len(detectors)
                find, pattern = form.find or _find_nothing, RulePattern(source)
                # A keyword must be there whenever the pattern matches. The rarer it is, the more texts are spared.
                keywords = form.keywords if stem.isascii() and stems else stems
                detectors.append(
                    Detector(
                        f"field-{number}", source, pattern, keywords, True, find, True, find_all=form.find_all
                    )
                )
        if self._names.rule_for("secret"):
            pattern, find_all = RulePattern(manifests.PATTERN), manifests.find_manifest_values
            detectors.append(
                Detector(
                    "manifest",
                    manifests.PATTERN,
                    pattern,
                    ("Secret",),
                    False,
                    _find_nothing,
                    True,
                    find_all=find_all,
                )
            )
        return detectors

    def _find_assignment(self, match: Candidate) -> Finding | None:
        """`name = value`, with any operator."""
        if _is_masked(match.text, match.match_end):
            return None
        found = self._widen_key(match)
        if _NO_FIELD.search(found.text, max(0, found.key_start - 5), found.key_start):
            return None
        rule = self._rule_before(found)
        if rule is None:
            return None
        gap = found.text[found.key_end : found.match_end]
        position = found.match_end
        if gap[-1:] in ("'", '"'):
            gap, position = gap[:-1], position - 1
        operator = _WRAPPED.sub("", gap).lstrip("\"'`]\\* \t")
        if operator.startswith("==") and gap.startswith("="):
            operator, position = _split_equals(found, operator, position)
        value = _read_assigned(found, position, operator, rule)
        if operator[:1] == ":" and _IS_TYPE.search(found.text, max(0, found.key_start - 8), found.key_start):
            return None
        if value is None or not value.text or not _fits_operator(found, gap, operator, rule, value):
            return None
        is_leaf = (
            value.alone
            or value.framed
            or operator == ","
            or operator.endswith("default =")
            or _is_variable_of_shell(found, operator, value)
            or _is_pair_of_strings(found, operator, value)
        )
        if not is_secret(rule, value, in_code=_is_in_code(found, value), is_leaf=is_leaf):
            return None
        if _is_code(found, operator, value):
            return None
        return _mask(rule, value, find_end(found.text, value, phrase=rule.validator == "literal"))

    def _find_flag(self, found: Candidate) -> Finding | None:
        """`--name value`, `ENV NAME value`."""
        rule = self._names.rule_for(found.key)
        value = read_value(found.text, found.key_start, found.match_end, word=True)
        if rule is None or value is None:
            return None
        is_setting = found.text[found.key_start - 1] in " \t"  # ENV NAME value
        if value.text.startswith("-") and not (is_setting and is_generated(value.text)):
            return None
        is_word = not value.quoted and value.text.isalpha() and not is_generated(value.text)
        masked = not is_word and is_secret(rule, value, in_code=False, is_leaf=is_setting or value.alone)
        return _mask(rule, value) if masked else None

    def _find_typed(self, match: Candidate) -> Finding | None:
        """`page.fill("#password", "value")`, `locator("#password").fill("value")`."""
        found = self._widen_key(match)
        rule = self._names.rule_for(found.key)
        value = read_value(found.text, found.key_start, found.match_end - 1)
        if rule is None or value is None or not value.quoted:
            return None
        by_selector = "," in found.text[found.key_end : found.match_end].rpartition(")")[2]
        if by_selector and not _TYPING.search(found.text, max(0, found.key_start - 80), found.key_start):
            return None
        return _mask(rule, value) if is_secret(rule, value, in_code=False, is_leaf=True) else None

    def _find_in_prose(self, match: Candidate) -> Finding | None:
        """`the password is value`. In prose the value must not look like a word."""
        found = self._widen_key(match)
        rule = self._rule_before(found)
        value = _read_word(found, found.match_end)
        if rule is None or value is None or len(value.text) < 6 or _is_address(value.text):
            return None
        mixed = has_digit(value.text) and any(char.isalpha() for char in value.text[:80])
        generated = (
            mixed or looks_random(value.text) or (not value.text.isalpha() and is_generated(value.text))
        )
        return _mask(rule, value) if generated and is_secret(rule, value, in_code=True) else None

    def _find_beside(self, match: Candidate) -> Finding | None:
        """`password value`, `password to value`, `password — value`. Only a value that looks random is no word there."""
        found = self._widen_key(match)
        rule = self._rule_before(found)
        if rule is None or rule.validator not in ("literal", "mixed", "random"):
            return None
        link = _LINK.match(found.text, found.key_end)
        value = _read_word(found, link.end()) if link else None
        if link is None or value is None or len(value.text) < _SHORTEST_BESIDE or _is_address(value.text):
            return None
        if not value.text[0].isascii():
            return None  # it stands behind a disguise or a word of another script, not beside the name
        if "\n" in link.group() and not _ENDS_LINE.match(found.text, value.end):
            return None
        return (
            _mask(rule, value) if looks_random(value.text) and is_secret(rule, value, in_code=True) else None
        )

    def _widen_key(self, match: Candidate) -> Candidate:
        """Extend the key to the whole name. The pattern matched only the telling part and what follows it."""
        text, start = match.text, match.start
        head = text[max(0, start - _LONGEST_NAME_HEAD) : start]
        key_start = start - len(head) + len(head.rstrip(_NAME_CHARACTERS))
        tail = self._name_tail.match(text, start, match.match_end)
        return Candidate(text, start, match.end, match.match_end, key_start, tail.end() if tail else start)

    def _rule_before(self, found: Candidate) -> Rule | None:
        # In "API key: ..." the telling half of the name comes before a blank.
        word = _FIRST_HALF.search(found.text, max(0, found.key_start - 24), found.key_start)
        if word:
            whole = f"{word[1]}_{found.key}"
            if is_innocent(normalize_name(whole)):
                return None
            rule = self._names.rule_for(whole)
            if rule is not None:
                return rule
        return self._names.rule_for(found.key)


def _find_nothing(_candidate: Candidate) -> None:
    return None


def _mask(rule: Rule, value: Value, end: int | None = None) -> Finding:
    return Finding(value.start, value.end if end is None else end, rule.id, rule.replacement)


def _group_stems(rules: Sequence[Rule]) -> list[tuple[str, ...]]:
    """The words that names contain, in one group per set of patterns. An empty group means any name."""
    found = [rule.keywords or _find_leading_word(rule.pattern) for rule in rules]
    words = sorted({word.lower() for group in found for word in group})
    # Non-ASCII names get separate patterns, because RE2 is slower on the real characters.
    groups = (tuple(w for w in words if w.isascii()), tuple(w for w in words if not w.isascii()))
    return [group for group in groups if group] if all(found) else [()]


def _find_leading_word(pattern: str) -> tuple[str, ...]:
    """The word that every name matching the pattern begins with, if the pattern shows it plainly."""
    word = _LEADING_WORD.match(pattern)
    choices = re.sub(r"\([^()]*\)", "", pattern)
    return (word[1],) if word and "|" not in choices else ()


def _read_word(found: Candidate, position: int) -> Value | None:
    """Read a word of a sentence, without the marks that end the sentence or close what it stands in."""
    value = read_value(found.text, found.key_start, position, word=True)
    if value is None or value.quoted:
        return value
    word = value.text.rstrip(".,;:)]}*`")
    return value._replace(end=value.start + len(word), text=word)


def _is_address(word: str) -> bool:
    """Whether a word of a sentence is a path, a URL, an e-mail address or a version."""
    return (
        word.startswith(("/", "~", "./")) or is_path(word) or is_version(word) or bool(_ADDRESS.search(word))
    )


def _read_assigned(found: Candidate, position: int, operator: str, rule: Rule) -> Value | None:
    if operator == "|":
        return read_cell(found.text, position)
    if operator.endswith(">") and operator != "=>":
        return read_element(found.text, position)
    shell_word = found.key.startswith("-")
    value = read_value(found.text, found.key_start, position, annotated=operator == ":", word=shell_word)
    if value is None and operator == ":":
        block = read_block(found.text, position)
        if block is not None:
            may_be_a_word = rule.validator == "literal"
            return block if may_be_a_word or is_made_up(block.text.split(None, 1)[0]) else None
    if value is None and operator in (":", "="):
        below = read_next_line(found.text, position)
        return below if below is not None and is_made_up(below.text) else None
    return value


def _split_equals(found: Candidate, operator: str, position: int) -> tuple[str, int]:
    """In a setting, the second `=` of `NAME==...` belongs to the value."""
    value = read_value(found.text, found.key_start, found.key_end + 1)
    is_value = value is not None and not value.quoted and (value.alone or value.framed)
    return ("=", found.key_end + 1) if is_value else (operator, position)


def _fits_operator(found: Candidate, gap: str, operator: str, rule: Rule, value: Value) -> bool:
    """Whether the value can belong to the name, for operators that have other uses too."""
    text, start = found.text, found.key_start
    if operator == "::" or operator.startswith(("==", "!=")):
        return value.quoted
    if operator == "(":
        return (
            value.quoted
            and not _ASKS.search(found.key)
            and (rule.validator == "literal" or looks_random(value.text))
        )
    if operator == ",":
        is_first = text[start - 2 : start - 1] == "("  # `setenv("NAME", "value")`
        generated = is_generated(value.text) if is_first else looks_random(value.text)
        return value.quoted and gap[:1] in ("'", '"', "`", "\\") and generated
    if operator == "":
        return value.quoted and is_made_up(value.text)
    if operator == ">":
        if value.quoted or not text.startswith("</", value.end):
            return False
        is_named = _NAMED_ELEMENT.search(text, max(0, start - 100), start) is not None
        return text[start - 1 : start] == "<" or (is_named and is_generated(value.text))
    if operator.startswith("</"):
        return text[start - 1 : start] == ">"
    if operator == "|":
        return is_made_up(value.text) and text[max(0, start - 40) : start].rstrip(" \t`*")[-1:] == "|"
    if operator.lower().startswith("value"):
        return value.quoted and (gap[:1] in ("'", '"') or text[start - 1 : start] == "<")
    return True


def _is_variable_of_shell(found: Candidate, operator: str, value: Value) -> bool:
    """Whether it is written as shells and environment files do: `NAME=value`."""
    is_tight = found.text[value.start - 1 - value.quoted : value.start - value.quoted] == "="
    return operator == "=" and found.key.isupper() and is_tight and value.follower != ","


def _is_pair_of_strings(found: Candidate, operator: str, value: Value) -> bool:
    """Whether name and value are both quoted, as in JSON: `"name": "value"`."""
    return value.quoted and operator in (":", "=>") and found.text[found.key_end] in "\"'\\&"


def _is_masked(text: str, at: int) -> bool:
    """Whether a value is a mask and nothing else. A text with many secrets is mostly this when it is read again."""
    return text.startswith(MASK, at) and not text[at + len(MASK) : at + len(MASK) + 1].isalnum()


def _is_code(found: Candidate, operator: str, value: Value) -> bool:
    """Whether a value that could be a secret is a word of source code or of a sentence."""
    text, start, word = found.text, found.key_start, value.text
    before = text[value.start - 1 : value.start]
    is_shell = _is_variable_of_shell(found, operator, value)
    if not value.quoted and not is_shell and not value.framed and is_call(word):
        return True
    if value.follower == "<" and is_generic_type(
        text[value.start : value.end + 60].partition("\n")[0].rstrip(" ,;)")
    ):
        return True
    if repeats_name(found.key, word, "" if value.quoted else value.follower):
        return True
    if looks_random(word) and not is_identifier(word):
        return False
    if value.quoted:
        if text[found.key_end] in ":=" and closes_string(text, start, before):
            return not looks_random(word)
        return is_sample(word) and is_near_source(text, start, value.end)
    if (
        is_call(word)
        or is_first_word(text, value.start, value.end)
        or repeats_name(found.key, word, value.follower)
    ):
        return True
    if is_sample(word):
        is_object = text[start - 1 : start] in ('"', "'") and value.follower == ","  # `"password": password,`
        return is_object or is_near_source(text, start, value.end)
    if is_shell:
        return False
    assigned = "=" if "=" in text[found.key_end : value.start] else operator  # `password: str = word`
    expression = is_expression(word, assigned) or is_sentence(text, value.start, value.end)
    return expression and is_source(text, start, value.end)


def _is_in_code(found: Candidate, value: Value) -> bool:
    """Whether name and value are part of an expression, where a bare word is a variable."""
    if found.key.startswith(("self.", "this.", "cls.")):
        return True
    text = found.text
    if value.text.isdigit() and text[found.key_end : found.key_end + 1] in ('"', "'"):
        return False  # `"password": 12345`, in text that looks like JSON but is not
    before = text[max(0, found.key_start - 3) : found.key_start].rstrip()[-1:]
    if value.follower == ";" and (before == ";" or text[value.end + 1 : value.end + 2].isalpha()):
        return False  # a connection string: `Server=db;Password=...;Database=x`
    return not value.alone and (before in tuple("(,{.|") or value.follower in tuple("),};|="))
