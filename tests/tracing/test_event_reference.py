"""The schema and the reference in the repository are those that the types give."""

from __future__ import annotations

import importlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.engine import Clock
from support.events import ADDED_LATER, EXAMPLES
from support.exporters import event_maker

from compact.events import KINDS, Properties, TriggerDecision
from scripts.event_reference import as_json, reference, schema, with_reference

ROOT = Path(__file__).resolve().parents[2]
jsonschema = importlib.import_module("jsonschema")
make = event_maker(Clock())


VALIDATOR = jsonschema.Draft202012Validator(schema())


def check(event: dict[str, Any]) -> None:
    VALIDATOR.validate(event)


def test_the_schema_that_is_checked_in_is_current() -> None:
    """If not: python -m scripts.event_reference schema > src/compact/tracing/events.schema.json"""
    assert (ROOT / "src/compact/tracing/events.schema.json").read_text("utf-8") == as_json(schema())


def test_the_page_that_is_checked_in_is_current() -> None:
    """If not: python -m scripts.event_reference docs/OBSERVABILITY.md"""
    page = (ROOT / "docs/OBSERVABILITY.md").read_text("utf-8")
    assert page.count(reference().partition("\n")[0]) == 1
    assert reference() in page
    assert page == with_reference(page)


def test_the_reference_names_every_event_and_every_property() -> None:
    page = reference()
    for kind in KINDS.values():
        section = page.partition(f"### `{kind.NAME}`")[2].partition("### ")[0]
        properties: Any = kind
        assert all(f"| `{name}` |" in section for name in (field.name for field in fields(properties)))


@pytest.mark.parametrize("properties", EXAMPLES, ids=lambda example: type(example).__name__)
def test_every_kind_of_event_is_as_the_schema_says(properties: Properties) -> None:
    event = json.loads(json.dumps(make(properties, payload={"summary": "text"}).to_json()))
    check(event)
    for name in event["properties"].keys() - ADDED_LATER.get(properties.NAME, set()):
        short = {key: value for key, value in event["properties"].items() if key != name}
        with pytest.raises(jsonschema.ValidationError):
            check({**event, "properties": short})


@pytest.mark.parametrize(
    "change",
    [
        {"name": "compact.other"},
        {"status": "error"},
        {"step": -1},
        {"trace_id": "short"},
        {"parent_id": ""},
        {"started_at": "2026-01-01T00:00:00+00:00"},
        {"properties": {}},
        {"payload": []},
        {"extra": 1},
    ],
)
def test_what_is_no_event_does_not_pass(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check({**make(EXAMPLES[0]).to_json(), **change})


def test_an_idle_decision_needs_no_plan_and_a_triggered_one_does() -> None:
    idle, acting = (make(e).to_json() for e in EXAMPLES if isinstance(e, TriggerDecision))
    check(idle)
    del acting["properties"]["planned"]
    with pytest.raises(jsonschema.ValidationError):
        check(acting)
