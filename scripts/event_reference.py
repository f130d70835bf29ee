"""Generate the schema and the reference of the events from their types.

python -m scripts.event_reference schema > src/compact/tracing/events.schema.json
python -m scripts.event_reference docs/OBSERVABILITY.md      # replaces the reference between its two marks in that page
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from compact.events import KINDS, Failure, Properties, TriggerDecision
from scripts.config_reference import field_docs

BEGINS = "<!-- Made by `python -m scripts.event_reference docs/OBSERVABILITY.md`. Change the docstrings in src/compact/events/__init__.py. -->"
ENDS = "<!-- End of the made part. -->"
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
_ENVELOPE: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("One of the names below.", {"enum": list(KINDS)}),
    "session_id": ("The session, redacted if its id contains a secret.", {"type": "string"}),
    "step": (
        "The step that is being made, otherwise the newest one; 0 before the first.",
        {"type": "integer", "minimum": 0},
    ),
    "trace_id": (
        "The same for all events of a session, in all its processes.",
        {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ),
    "span_id": ("The event's own id.", {"type": "string", "pattern": "^[0-9a-f]{16}$"}),
    "parent_id": (
        "The event that ends the run this one belongs to; null for that event itself, and outside of a run.",
        {"type": ["string", "null"], "pattern": "^[0-9a-f]{16}$"},
    ),
    "started_at": ("When it started, in UTC.", {"type": "string", "pattern": _TIME}),
    "ended_at": ("When it ended, never before it started.", {"type": "string", "pattern": _TIME}),
    "status": ("`error` for compact.error, otherwise `ok`.", {"enum": ["ok", "error"]}),
    "properties": ("See below.", {"type": "object"}),
    "payload": (
        "Details: a summary, what was wrong with a rejected one, the tokens that each stage of a step saved.",
        {"type": "object"},
    ),
}


def schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) of one line of events.jsonl."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "compact event",
        "type": "object",
        "properties": {name: {"description": about, **rule} for name, (about, rule) in _ENVELOPE.items()},
        "required": list(_ENVELOPE),
        "additionalProperties": False,
        "oneOf": [_variant(kind) for kind in KINDS.values()],
    }


def _variant(kind: type[Properties]) -> dict[str, Any]:
    properties = _object(kind)
    if kind is TriggerDecision:
        properties["if"] = {"properties": {"triggered": {"const": True}}}
        properties["then"] = {"required": ["planned"]}
    return {
        "description": inspect.getdoc(kind),
        "properties": {
            "name": {"const": kind.NAME},
            "status": {"const": "error" if kind is Failure else "ok"},
            "properties": properties,
        },
    }


def _object(kind: type[Properties]) -> dict[str, Any]:
    """Return the schema of a property class, without further keys and with the field docstrings as descriptions."""
    made = TypeAdapter(kind).json_schema()
    return _close(made, made.get("$defs", {}), field_docs(kind))


def _close(made: dict[str, Any], nested: dict[str, Any], docs: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, rule in made["properties"].items():
        about = {"description": docs[name]} if name in docs else {}
        found[name] = {**about, **_rule(rule, nested, name in made["required"])}
    return {
        "type": "object",
        "properties": found,
        "required": made["required"],
        "additionalProperties": False,
    }


def _rule(rule: dict[str, Any], nested: dict[str, Any], is_required: bool) -> dict[str, Any]:
    """Return the schema of a value. An optional property is left out instead of being null."""
    choices = [choice for choice in rule.get("anyOf", [rule]) if is_required or choice.get("type") != "null"]
    if len(choices) > 1:
        return {"type": [choice["type"] for choice in choices]}
    (only,) = choices
    if "$ref" in only:
        name = only["$ref"].rpartition("/")[2]
        return _close(nested[name], nested, field_docs(getattr(sys.modules["compact.events"], name)))
    return {"enum": only["enum"]} if "enum" in only else {"type": only["type"]}


def reference() -> str:
    """Return every event with its properties, as Markdown."""
    rows = [f"| `{name}` | {about} |" for name, (about, _) in _ENVELOPE.items()]
    parts = ["Every line has these fields:\n\n| field | meaning |\n|---|---|\n" + "\n".join(rows)]
    for kind in KINDS.values():
        rows = [f"| `{name}` | {rule} | {about} |" for name, rule, about in _rows(_object(kind))]
        table = "| property | type | meaning |\n|---|---|---|\n" + "\n".join(rows)
        parts.append(f"### `{kind.NAME}`\n\n{inspect.getdoc(kind)}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _rows(rules: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str, str]]:
    found = []
    for name, rule in rules["properties"].items():
        kind = rule.get("type", "")
        shown = " or ".join(kind) if isinstance(kind, list) else kind
        if "enum" in rule:
            shown = ", ".join(f"`{value}`" for value in rule["enum"])
        found.append((f"{prefix}{name}", shown, rule.get("description", "")))
        if "properties" in rule:
            found += _rows(rule, f"{prefix}{name}.")
    return found


def with_reference(page: str) -> str:
    """Return the page with the reference between its marks."""
    before, _, rest = page.partition(BEGINS)
    return f"{before}{BEGINS}\n\n{reference()}\n{ENDS}{rest.partition(ENDS)[2]}"


def as_json(value: Mapping[str, Any]) -> str:
    """Format the schema as its file has it."""
    return json.dumps(value, indent=1) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["schema"]:
        sys.stdout.write(as_json(schema()))
    else:
        page = Path(sys.argv[1])
        page.write_text(with_reference(page.read_text("utf-8")), "utf-8")
