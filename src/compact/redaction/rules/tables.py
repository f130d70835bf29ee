"""Rules that are data: the tables `vendors.yaml`, `secrets.yaml`, `commands.yaml` and `pii.yaml` beside this file, and a user's own
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from compact.errors import RedactionError
from compact.redaction.rules.edges import WORD_END, WORD_START
from compact.redaction.rules.patterns import refuse
from compact.redaction.rules.rule import Rule, rule_from

TableName: TypeAlias = Literal["vendors", "secrets", "commands", "pii"]
Edge: TypeAlias = Literal["anywhere", "word"]

MAX_FILE_BYTES = 4_000_000
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"vendors": {"validator": "token"}}
_METACHARACTER = re.compile(r"[\\.^$|?*+()\[\]{}]")


@dataclass(frozen=True, slots=True)
class Format:
    """A row of a table: a rule, and what is known about the tokens that it finds."""

    rule: Rule
    prefixes: tuple[str, ...] = ()
    """The tokens start with one of these."""
    shapes: tuple[str, ...] = ()
    """What tokens look like, after the prefix if there is one: `<hex 32>-us<digit 1>`."""
    source: str = ""
    """Where the format is described, in words."""
    as_of: date | None = None
    """When the description was last checked."""
    start: Edge = "anywhere"
    """Whether a token may start in the middle of a word."""
    end: Edge = "anywhere"
    """Whether a token may end in the middle of a word."""


def load_formats(name: TableName) -> tuple[Format, ...]:
    """Read the rows of a built-in table."""
    file = f"{name}.yaml"
    text = (files("compact.redaction.rules") / file).read_text(encoding="utf-8")
    return parse_formats(text, file, _DEFAULTS.get(name, {}))


def load_table(name: TableName) -> tuple[Rule, ...]:
    """Read the rules of a built-in table."""
    return tuple(row.rule for row in load_formats(name))


def read_formats(path: str | Path) -> tuple[Format, ...]:
    """Read the rows of a user's own file, which has the format of `vendors.yaml`.

    Raises:
        RedactionError: the file cannot be read, or a row is wrong; the error names the file, and the line and the rule
            where they are known.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RedactionError(
            f"the rules of {str(path)!r} cannot be read: {reason}",
            hint="`file` names a YAML file in UTF-8, relative to the current folder",
            rule=str(path),
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise RedactionError(
            f"the rules of {str(path)!r} cannot be read: more than {MAX_FILE_BYTES:,} bytes", rule=str(path)
        )
    return parse_formats(text, str(path), _DEFAULTS["vendors"])


def parse_table(text: str, source: str, defaults: Mapping[str, Any] | None = None) -> tuple[Rule, ...]:
    """Read the rules of a table; see `parse_formats`."""
    return tuple(row.rule for row in parse_formats(text, source, defaults))


def parse_formats(text: str, source: str, defaults: Mapping[str, Any] | None = None) -> tuple[Format, ...]:
    """Read a table.

    Args:
        text: a YAML list without aliases. A row has the fields of a `Rule`; `prefixes` may replace `keywords`, and
            `start`, `end`, `shapes`, `source` and `as_of` may be added (see `vendors.yaml`).
        source: the name of the table, for errors.
        defaults: fields for the rows that do not have them.

    Raises:
        RedactionError: a row is wrong; the error has `line`, and `rule` and `reason` where they are known.
    """
    rows: dict[str, Format] = {}
    for line, row in _rows(text, source):
        if not isinstance(row, Mapping):
            raise _refuse_row(source, line, f"expected a row with an id and a pattern, got {row!r:.40}")
        try:
            found = _format_from({**(defaults or {}), **row})
        except RedactionError as error:
            raise _refuse_row(source, line, error.message, **error.details) from error
        rule_id = found.rule.id
        if rule_id in rows:
            raise _refuse_row(source, line, f"there are two rows with the id {rule_id!r}", rule=rule_id)
        rows[rule_id] = found
    return tuple(rows.values())


def _rows(text: str, source: str) -> Iterator[tuple[int, Any]]:
    import yaml  # here, so that `import compact.redaction` does not pay for it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.SequenceNode):
            raise _refuse_row(source, 1, "expected a list of rows")
        seen: set[int] = set()
        for node in root.value:
            if id(node) in seen or _repeats_a_node(node, seen):
                raise _refuse_row(source, node.start_mark.line + 1, "YAML aliases are not accepted")
            yield node.start_mark.line + 1, loader.construct_object(node, deep=True)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        raise _refuse_row(source, mark.line + 1 if mark else 1, f"it is not YAML: {problem}") from error
    except (ValueError, RecursionError) as error:  # a date that does not exist, lists nested too deeply
        raise _refuse_row(source, 1, f"it is not YAML: {error}") from error
    finally:
        loader.dispose()


def _repeats_a_node(node: Any, seen: set[int]) -> bool:
    """Whether an alias makes a node occur twice. A few aliases can stand for billions of values."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            return True
        seen.add(id(current))
        for child in current.value if isinstance(current.value, list) else ():
            waiting.extend(child if isinstance(child, tuple) else (child,))
    return False


def _format_from(row: Mapping[str, Any]) -> Format:
    rest = dict(row)
    rule_id = row.get("id", row.get("name", "?"))
    about = {name: rest.pop(name, "") for name in ("source", "as_of")}
    shapes = _strings(rule_id, "shapes", rest.pop("shapes", []))
    prefixes = _strings(rule_id, "prefixes", rest.pop("prefixes")) if "prefixes" in rest else ()
    start, end = (_edge(rule_id, name, rest.pop(name, "anywhere")) for name in ("start", "end"))
    if not isinstance(about["source"], str):
        raise refuse(rule_id, "its source must be a text")
    if about["as_of"] and not isinstance(about["as_of"], date):
        raise refuse(rule_id, f"its as_of must be a date such as 2026-11-16, got {about['as_of']!r:.40}")
    if "prefixes" in row:
        if not prefixes:
            raise refuse(rule_id, "its prefixes must be a list of non-empty strings")
        if "keywords" in row:
            raise refuse(rule_id, "it has both prefixes and keywords")
        rest["keywords"] = prefixes
    if isinstance(row.get("pattern"), str):  # otherwise `rule_from` says what is wrong
        rest["pattern"] = _pattern_of(prefixes, row["pattern"], start, end)
    return Format(rule_from(rest), prefixes, shapes, about["source"], about["as_of"] or None, start, end)


def _pattern_of(prefixes: tuple[str, ...], body: str, start: Edge, end: Edge) -> str:
    heads = "|".join(_METACHARACTER.sub(r"\\\g<0>", prefix) for prefix in prefixes)
    token = f"(?:{heads}){body}" if prefixes else body
    if start == end == "anywhere":
        return token
    before, after = WORD_START if start == "word" else "", WORD_END if end == "word" else ""
    return before + (token if "(?P<secret>" in token else f"(?P<secret>{token})") + after


def _strings(rule_id: object, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise refuse(rule_id, f"its {name} must be a list of non-empty strings")
    return tuple(value)


def _edge(rule_id: object, name: str, value: Any) -> Edge:
    if value not in get_args(Edge):
        raise refuse(rule_id, f"its {name} must be one of {', '.join(get_args(Edge))}, got {value!r:.40}")
    edge: Edge = value
    return edge


def _refuse_row(source: str, line: int, problem: str, **details: Any) -> RedactionError:
    return RedactionError(f"{source}, line {line}: {problem}", line=line, **details)
