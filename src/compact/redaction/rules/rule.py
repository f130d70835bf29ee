"""Rules are data: what a rule says, how it is read from settings, and when it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from compact.errors import RedactionError
from compact.redaction.rules.candidates import MASK
from compact.redaction.rules.judges import JUDGES
from compact.redaction.rules.patterns import Pattern, compile_pattern
from compact.redaction.rules.validators import CHECKS, KINDS

Scope: TypeAlias = Literal["text", "key"]
Validator: TypeAlias = str | Callable[[str], bool]
RuleSource: TypeAlias = "str | Rule | Mapping[str, Any]"
"""A set's name, a built-in rule's id, a rule, or a rule as it stands in a settings file."""

_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing to mask.

    Raises:
        RedactionError: a field is wrong, or RE2 refuses the pattern; says which and why.
    """

    id: str
    """Its name in reports; a later rule with the same id replaces an earlier one."""
    pattern: str
    """RE2 syntax: no lookaround, no backreference, linear time. A group named `secret` is what is masked; without one,
    the whole match is."""
    keywords: tuple[str, ...] = ()
    """One of these must occur, or the pattern is not tried. Their case counts unless the pattern starts with (?i)."""
    validator: Validator | None = None
    """The name of a validator, or a function: a match whose text it refuses is left alone."""
    replacement: str = MASK
    scope: Scope = "text"
    """`text`: the pattern is looked for in the text. `key`: it is looked for in the names of fields, in lower case with
    underscores (`dbPassword` is `db_password`), and what stands under such a name is masked."""

    def __post_init__(self) -> None:
        given: Any = self.keywords
        if isinstance(given, str | list):
            object.__setattr__(self, "keywords", (given,) if isinstance(given, str) else tuple(given))
        reason = _what_is_wrong(self)
        if reason:
            raise _refused(self.id, reason)
        _compiled(self.id, self.pattern)

    @property
    def regex(self) -> Pattern:
        """The compiled pattern."""
        return _compiled(self.id, self.pattern)

    @property
    def ignores_case(self) -> bool:
        """Whether the pattern, and with it the keywords, ignore case."""
        return self.pattern.startswith("(?i")


@lru_cache(maxsize=2048)
def _compiled(rule_id: str, pattern: str) -> Pattern:
    return compile_pattern(rule_id, pattern)


def _what_is_wrong(rule: Any) -> str:
    """The first fault of a rule's fields, before its pattern is compiled; empty when there is none."""
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
    if not isinstance(rule.replacement, str):
        return f"its replacement must be a string, got {type(rule.replacement).__name__}"
    if rule.validator is None or callable(rule.validator) or rule.validator in known:
        return ""
    return f"there is no validator {rule.validator!r}; known: {', '.join(sorted(known))}"


def _refused(rule_id: Any, reason: str) -> RedactionError:
    return RedactionError(
        f"redaction rule {rule_id!r} is refused: {reason}",
        hint="Correct it in `redaction.extra`, or remove it",
        rule=rule_id,
        reason=reason,
    )


_FIELDS = tuple(field.name for field in fields(Rule))


def rule_from(source: Mapping[str, Any]) -> Rule:
    """The rule of one entry in a settings file.

    Raises:
        RedactionError: a key is unknown or missing, or a value is wrong; names the rule.
    """
    data = dict(source)
    rule_id = data.get("id", "?")
    unknown = sorted(str(key) for key in data if key not in _FIELDS)
    if unknown:
        raise _refused(rule_id, f"unknown keys {', '.join(unknown)}; known: {', '.join(_FIELDS)}")
    missing = [key for key in ("id", "pattern") if key not in data]
    if missing:
        raise _refused(rule_id, f"it has no {' and no '.join(missing)}")
    return Rule(**data)


def resolve(
    sources: RuleSource | Iterable[RuleSource], known: Mapping[str, tuple[Rule, ...]]
) -> tuple[Rule, ...]:
    """The rules behind names, rules and settings entries, in order; the last one with an id wins.

    Args:
        sources: one or several of them.
        known: the named sets; a single built-in rule is known by its id.

    Raises:
        RedactionError: a name is unknown, or a rule is refused.
    """
    if isinstance(sources, str | Rule | Mapping):
        sources = [sources]
    chosen: dict[str, Rule] = {}
    for source in sources:
        for rule in _rules_of(source, known):
            chosen[rule.id] = rule
    return tuple(chosen.values())


def _rules_of(source: Any, known: Mapping[str, tuple[Rule, ...]]) -> tuple[Rule, ...]:
    if isinstance(source, Rule):
        return (source,)
    if isinstance(source, Mapping):
        return (rule_from(source),)
    if not isinstance(source, str):
        raise _refused(source, f"expected a name, a Rule or a mapping, got {type(source).__name__}")
    if source in known:
        return known[source]
    single = tuple(rule for rules in known.values() for rule in rules if rule.id == source)
    if not single:
        raise RedactionError(
            f"no redaction rule or set is called {source!r}",
            hint=f"Sets: {', '.join(known)}; a single built-in rule is named by its id",
            rule=source,
        )
    return single[:1]
