"""The named sets of built-in rules, and how settings choose among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from compact.errors import RedactionError
from compact.redaction.rules.field_names import field_name_rules
from compact.redaction.rules.patterns import refuse
from compact.redaction.rules.rule import RULE_HINT, Rule, RuleSource, is_rule_id, rule_from, rule_from_pattern
from compact.redaction.rules.tables import load_table, read_formats

_DIGIT = r"[\d\p{Nd}]"
_DIGITS = (
    rf"\+?(?:\({_DIGIT}{{1,4}}\) ?)?(?:{_DIGIT}{{1,4}}(?:\) ?|(?:[-./:,]| )\(?))*{_DIGIT}{{3,}}"
    rf"(?:(?:\) ?|[-./:,]\(?){_DIGIT}+| \(?{_DIGIT}{{2,}})*"
)
"""Three or more digits in a row, with the groups that belong to the same number."""

_BLANKS = r"\s\v\x1c-\x1f" + "\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What `\\s` matches in Python. In RE2 it matches only the blanks of ASCII."""
_PLAIN_VALUE = rf"[{_BLANKS}]*[:=][{_BLANKS}]*(?P<secret>[^{_BLANKS}]+)"


def _plain_value_rules() -> tuple[Rule, ...]:
    """What the two patterns of the compaction specification match, whatever the value looks like."""
    return (
        Rule("plain-password", rf"(?i)password{_PLAIN_VALUE}", ("password",), "any_value"),
        Rule(
            "plain-api-key", rf"(?i)api[_-]?key{_PLAIN_VALUE}", ("apikey", "api_key", "api-key"), "any_value"
        ),
    )


@cache
def named_sets() -> Mapping[str, tuple[Rule, ...]]:
    """`default` (secrets of all kinds), `pii` (personal data), `digits` (the stability harness's rule).

    `vendors` and `common` are the two parts of `default`: the table of vendors' formats, and everything else.
    """
    plain, vendors, names = (
        (*_plain_value_rules(), *load_table("secrets"), *load_table("commands")),
        load_table("vendors"),
        field_name_rules(),
    )
    return {
        "default": (*plain, *vendors, *names),
        "pii": load_table("pii"),
        "digits": (Rule("digits", _DIGITS, label="NUMBER"),),
        "vendors": vendors,
        "common": (*plain, *names),
    }


def rules_from_config(
    rules: RuleSource | Iterable[RuleSource] = "default", extra: Iterable[RuleSource] = ()
) -> tuple[Rule, ...]:
    """The rules of the settings `redaction.rules` and `redaction.extra`. The last rule with an id wins.

    Raises:
        RedactionError: a name is unknown, or a rule is refused; `rule` and `reason` say which and why.
    """
    first = [rules] if isinstance(rules, str | Rule | Mapping) else rules
    chosen = {rule.id: rule for source in (*first, *extra) for rule in _expand(source)}
    return tuple(chosen.values())


def _expand(source: Any) -> tuple[Rule, ...]:
    if isinstance(source, Rule):
        return (source,)
    if isinstance(source, Mapping):
        return _read_file(source) if "file" in source else (rule_from(source),)
    if not isinstance(source, str):
        reason = f"expected a name, a pattern, a Rule or a mapping, got {type(source).__name__}"
        raise refuse(source, reason, RULE_HINT)
    sets = named_sets()
    known = {**{rule.id: (rule,) for rules in sets.values() for rule in rules}, **sets}
    if source in known:
        return known[source]
    if is_rule_id(source) or not source:
        # A mistyped name must not become a pattern that masks a word.
        raise RedactionError(
            f"no redaction rule or set is called {source!r}",
            hint=f"Sets: {', '.join(sets)}; a single built-in rule is named by its id; a word to mask is written "
            f"{{name: ..., pattern: {source or '...'}}}",
            rule=source,
        )
    return (rule_from_pattern(source),)


def _read_file(source: Mapping[str, Any]) -> tuple[Rule, ...]:
    path = source["file"]
    if len(source) > 1 or not isinstance(path, str | Path) or not str(path):
        raise refuse(path, "an entry with `file` has the path of a file and nothing else", RULE_HINT)
    return tuple(row.rule for row in read_formats(path))
