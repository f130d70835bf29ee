"""Built-in rules that are data: the tables `vendors.yaml`, `secrets.yaml`, `commands.yaml` and `pii.yaml` beside this file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from compact.errors import RedactionError
from compact.redaction.rules.patterns import refuse
from compact.redaction.rules.rule import Rule, rule_from

TableName: TypeAlias = Literal["vendors", "secrets", "commands", "pii"]

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"vendors": {"validator": "token"}}
_METACHARACTER = re.compile(r"[\\.^$|?*+()\[\]{}]")


def load_table(name: TableName) -> tuple[Rule, ...]:
    """Read the rules of a built-in table."""
    file = f"{name}.yaml"
    text = (files("compact.redaction.rules") / file).read_text(encoding="utf-8")
    return parse_table(text, file, _DEFAULTS.get(name, {}))


def parse_table(text: str, source: str, defaults: Mapping[str, Any] | None = None) -> tuple[Rule, ...]:
    """Read a table of rules.

    Args:
        text: a YAML list. A row has the fields of a `Rule`; `prefixes` may replace `keywords` (see `vendors.yaml`).
        source: the name of the table, for errors.
        defaults: fields for the rows that do not have them.

    Raises:
        RedactionError: a row is wrong; the error has `line`, and `rule` and `reason` where they are known.
    """
    rules: dict[str, Rule] = {}
    for line, row in _rows(text, source):
        if not isinstance(row, Mapping):
            raise _refuse_row(source, line, f"expected a row with an id and a pattern, got {row!r:.40}")
        try:
            rule = rule_from({**(defaults or {}), **_expand_prefixes(row)})
        except RedactionError as error:
            raise _refuse_row(source, line, error.message, **error.details) from error
        if rule.id in rules:
            raise _refuse_row(source, line, f"there are two rows with the id {rule.id!r}", rule=rule.id)
        rules[rule.id] = rule
    return tuple(rules.values())


def _rows(text: str, source: str) -> Iterator[tuple[int, Any]]:
    import yaml  # here, so that `import compact.redaction` does not pay for it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.SequenceNode):
            raise _refuse_row(source, 1, "expected a list of rows")
        for node in root.value:
            yield node.start_mark.line + 1, loader.construct_object(node, deep=True)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        raise _refuse_row(source, mark.line + 1 if mark else 1, f"it is not YAML: {problem}") from error
    finally:
        loader.dispose()


def _expand_prefixes(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Turn `prefixes` into keywords, and put them in front of the pattern."""
    if "prefixes" not in row:
        return row
    rest = dict(row)
    rule_id, prefixes, body = row.get("id", "?"), rest.pop("prefixes"), row.get("pattern")
    if not isinstance(prefixes, list) or not prefixes or not all(isinstance(p, str) and p for p in prefixes):
        raise refuse(rule_id, "its prefixes must be a list of non-empty strings")
    if "keywords" in row:
        raise refuse(rule_id, "it has both prefixes and keywords")
    if not isinstance(body, str):
        return rest  # `rule_from` says what is wrong
    heads = "|".join(_METACHARACTER.sub(r"\\\g<0>", prefix) for prefix in prefixes)
    return {**rest, "pattern": rf"\b(?:{heads}){body}", "keywords": prefixes}


def _refuse_row(source: str, line: int, problem: str, **details: Any) -> RedactionError:
    return RedactionError(f"{source}, line {line}: {problem}", line=line, **details)
