"""A rule: what it says, how it is read from settings, and when it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, get_args

from compact.redaction.rules.judges import JUDGES
from compact.redaction.rules.matches import LABEL, MASK
from compact.redaction.rules.patterns import RulePattern, compile_pattern, refuse
from compact.redaction.rules.validators import CHECKS, KINDS

Scope: TypeAlias = Literal["text", "key"]
Validator: TypeAlias = str | Callable[[str], bool]
RuleSource: TypeAlias = "str | Rule | Mapping[str, Any]"
"""The name of a set, the id of a built-in rule, a pattern, a rule, or a rule as a settings file has it."""

_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
RULE_HINT = "Correct it in `redaction.extra`, or remove it"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret to mask.

    Raises:
        RedactionError: a field is wrong, or RE2 refuses the pattern; the error says which and why.
    """

    id: str
    """The rule's name in reports. A later rule with the same id replaces an earlier one."""
    pattern: str
    """RE2 syntax: no lookaround, no backreference, linear time. A group named `secret` is what is masked; without one,
    the whole match is."""
    keywords: tuple[str, ...] = ()
    """The pattern is tried only if one of these occurs. Case counts unless the pattern starts with (?i)."""
    validator: Validator | None = None
    """The name of a validator, or a function. A match that it refuses is left alone."""
    replacement: str = MASK
    scope: Scope = "text"
    """`text`: the pattern is matched on the text. `key`: it is matched on the names of fields, in lower case with
    underscores (`dbPassword` is `db_password`), and the value of such a field is masked."""
    label: str = "SECRET"
    """The word in the placeholders of live masking: `<SECRET_1>`."""

    def __post_init__(self) -> None:
        given: Any = self.keywords
        if isinstance(given, str | list):
            object.__setattr__(self, "keywords", (given,) if isinstance(given, str) else tuple(given))
        fault = _find_fault(self)
        if fault:
            raise refuse(self.id, fault, RULE_HINT)
        compile_pattern(self.id, self.pattern)

    @property
    def regex(self) -> RulePattern:
        """The compiled pattern."""
        return compile_pattern(self.id, self.pattern)

    @property
    def ignores_case(self) -> bool:
        """Whether the pattern, and with it the keywords, ignore case."""
        return self.pattern.startswith("(?i")


def _find_fault(rule: Any) -> str:
    """The first fault of a rule's fields, apart from the pattern's syntax; an empty string if there is none."""
    known = (*CHECKS, *(KINDS if rule.scope == "key" else JUDGES))
    if not isinstance(rule.id, str) or not _ID.match(rule.id):
        return "its id must be 1-64 of a-z 0-9 _ . -, starting with a letter or digit"
    if not isinstance(rule.pattern, str) or not rule.pattern:
        return "its pattern must be a non-empty string"
    words = rule.keywords
    if not isinstance(words, tuple) or not all(isinstance(word, str) and word for word in words):
        return "its keywords must be a list of non-empty strings"
    if rule.scope not in get_args(Scope):
        return f"its scope must be one of {', '.join(get_args(Scope))}, got {rule.scope!r}"
    if not isinstance(rule.label, str) or not LABEL.fullmatch(rule.label):
        return f"its label must be 2-12 letters A-Z, got {rule.label!r}"
    if not isinstance(rule.replacement, str):
        return f"its replacement must be a string, got {type(rule.replacement).__name__}"
    if rule.validator is None or callable(rule.validator) or rule.validator in known:
        return ""
    return f"there is no validator {rule.validator!r}; known: {', '.join(sorted(known))}"


_FIELDS = tuple(field.name for field in fields(Rule))


def is_rule_id(text: str) -> bool:
    """Whether a text could be the id of a rule."""
    return _ID.match(text) is not None


def rule_from_pattern(pattern: str) -> Rule:
    """Make a rule from a bare pattern. Its id is `pattern-` and a hash, so that equal patterns are one rule.

    Raises:
        RedactionError: RE2 refuses the pattern.
    """
    digest = blake2b(pattern.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return Rule(f"pattern-{digest}", pattern)


def rule_from(data: Mapping[str, Any]) -> Rule:
    """Make a rule from an entry of a settings file. `name` is accepted for `id`.

    Raises:
        RedactionError: a key is unknown or missing, or a value is wrong; the error names the rule.
    """
    if "name" in data and "id" not in data:
        data = {("id" if key == "name" else key): value for key, value in data.items()}
    rule_id = data.get("id", "?")
    unknown = sorted(str(key) for key in data if key not in _FIELDS)
    if unknown:
        raise refuse(rule_id, f"unknown keys {', '.join(unknown)}; known: {', '.join(_FIELDS)}", RULE_HINT)
    missing = [key for key in ("id", "pattern") if key not in data]
    if missing:
        raise refuse(rule_id, f"it has no {' and no '.join(missing)}", RULE_HINT)
    return Rule(**data)
