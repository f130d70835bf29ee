"""The named sets of rules, and the way from a setting to rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from compact.redaction.fields.names import key_rules
from compact.redaction.rules.pii import digit_rules, pii_rules
from compact.redaction.rules.rule import Rule, RuleSource, resolve
from compact.redaction.rules.secrets import shape_rules
from compact.redaction.rules.vendors import vendor_rules


@cache
def named_sets() -> Mapping[str, tuple[Rule, ...]]:
    """`default` (secrets of all kinds), `pii` (personal data), `digits` (three or more digits)."""
    return {
        "default": (*shape_rules(), *vendor_rules(), *key_rules()),
        "pii": tuple(pii_rules()),
        "digits": tuple(digit_rules()),
    }


def rules_of(sources: RuleSource | Iterable[RuleSource]) -> tuple[Rule, ...]:
    """The rules that names, rules and mappings stand for.

    Raises:
        RedactionError: a name is unknown, or a rule is refused.
    """
    return resolve(sources, named_sets())


def rules_from_config(
    rules: RuleSource | Iterable[RuleSource] = "default", extra: Iterable[RuleSource] = ()
) -> tuple[Rule, ...]:
    """The rules of the settings `redaction.rules` and `redaction.extra`; one in `extra` replaces its namesake.

    Raises:
        RedactionError: a name is unknown, or a rule is refused; `rule` and `reason` say which and why.
    """
    first = [rules] if isinstance(rules, str | Rule | Mapping) else list(rules)
    return rules_of([*first, *extra])
