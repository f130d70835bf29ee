from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from support.events import ADDED_LATER, EXAMPLES, POLICY

from compact.events import (
    KINDS,
    WARNING_CODES,
    Event,
    Ids,
    Properties,
    Recorder,
    Started,
    Trace,
    TriggerDecision,
    Warned,
    moment,
    parse,
    timestamp,
)
from compact.events.reading import in_current_form

NOW = datetime(2026, 5, 1, 12, 30, 0, 5, tzinfo=UTC)


def recorder() -> Recorder:
    return Recorder(lambda: NOW, Ids("seed"))


def made(properties: Properties) -> Event:
    return recorder().event(
        properties, session_id="s", step=3, trace=Trace("t" * 32, "p" * 16), payload={"k": [1]}
    )


def test_the_examples_cover_every_event() -> None:
    assert {type(example) for example in EXAMPLES} == set(KINDS.values())


def test_the_names_are_those_of_the_contract() -> None:
    assert set(KINDS) == {
        "compact.token_estimate",
        "compact.trigger_decision",
        "compact.archival",
        "compact.offload",
        "compact.calls_shrunk",
        "compact.summary_created",
        "compact.pruned_messages",
        "compact.started",
        "compact.finished",
        "compact.error",
        "compact.warning",
        "compact.recovery",
        "compact.ledger",
    }


@pytest.mark.parametrize("properties", EXAMPLES, ids=lambda example: type(example).__name__)
def test_a_line_has_the_form_of_the_contract_and_comes_back(properties: Properties) -> None:
    event = made(properties)
    line = json.loads(json.dumps(event.to_json()))
    assert list(line) == [
        "name", "session_id", "step", "trace_id", "span_id", "parent_id",
        "started_at", "ended_at", "status", "properties", "payload",
    ]  # fmt: skip
    assert line["name"] == properties.NAME
    assert line["started_at"] == line["ended_at"] == "2026-05-01T12:30:00.000005Z"
    assert line["payload"] == {"k": [1]}
    assert parse(line) == event


def test_a_decision_carries_its_plan_only_when_triggered() -> None:
    idle, acting = (made(example).to_json()["properties"] for example in EXAMPLES[1:3])
    assert set(idle) == {"triggered", "reason", "note", "policy"}
    assert set(acting) == {"triggered", "reason", "note", "policy", "planned"}
    assert acting["planned"] == {
        "kept": {"pinned": 1, "recent_turns": 6, "tool_pairs": 4},
        "pruned_count": 12,
    }
    planless = made(TriggerDecision(triggered=True, reason="manual", note=None, policy=POLICY))
    with pytest.raises(ValueError, match="needs 'planned'"):
        parse(planless.to_json())


def test_a_failure_has_status_error_and_nothing_else_has() -> None:
    assert {made(example).name for example in EXAMPLES if made(example).status == "error"} == {
        "compact.error"
    }


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "compact.unheard_of"}, "unknown event name 'compact.unheard_of'"),
        ({"name": None}, "unknown event name None"),
        ({"status": "fine"}, "'status': Input should be 'ok' or 'error'"),
        ({"step": "3"}, "'step': Input should be a valid integer"),
        ({"step": True}, "'step': Input should be a valid integer"),
        ({"parent_id": 7}, "'parent_id': Input should be a valid string"),
        ({"started_at": "2026-05-01T12:30:00+00:00"}, "'started_at' must be UTC"),
        ({"properties": []}, "'properties': Input should be a dictionary"),
        ({"payload": "text"}, "'payload': Input should be a valid dictionary"),
    ],
)
def test_what_is_no_event_is_refused_with_the_field(change: dict[str, Any], complaint: str) -> None:
    line = {**made(EXAMPLES[0]).to_json(), **change}
    with pytest.raises(ValueError, match=complaint):
        parse(line)


@pytest.mark.parametrize("properties", EXAMPLES, ids=lambda example: type(example).__name__)
def test_every_property_is_required(properties: Properties) -> None:
    line = made(properties).to_json()
    for name in line["properties"].keys() - ADDED_LATER.get(properties.NAME, set()):
        short = {key: value for key, value in line["properties"].items() if key != name}
        with pytest.raises(ValueError, match=rf"'properties\.{name}'|{name!r}"):
            parse({**line, "properties": short})


def test_nested_and_closed_values_are_checked() -> None:
    estimate = made(EXAMPLES[0]).to_json()
    estimate["properties"]["breakdown"] = {"system": 1}
    with pytest.raises(
        ValueError, match=r"compact.token_estimate: 'properties.breakdown.developer': Field required"
    ):
        parse(estimate)
    warning = made(Warned(code="spooled", severity="low", message="m")).to_json()
    warning["properties"]["code"] = "made_up"
    with pytest.raises(ValueError, match=r"'properties.code': Input should be 'redaction_disabled'"):
        parse(warning)
    with pytest.raises(ValueError, match="an event is an object, got list"):
        parse([])


def test_properties_of_a_later_version_are_passed_over() -> None:
    line = made(EXAMPLES[3]).to_json()
    line["properties"]["added_later"] = 1
    assert parse(line) == made(EXAMPLES[3])


FORMER_REASONS = {
    "below_threshold": "below",
    "trigger_pct": "trigger",
    "token_threshold": "tokens",
    "message_threshold": "messages",
    "turn_threshold": "turns",
}


@pytest.mark.parametrize(("former", "current"), FORMER_REASONS.items())
@pytest.mark.parametrize("properties", EXAMPLES, ids=lambda example: type(example).__name__)
def test_a_line_with_a_former_reason_is_read(properties: Properties, former: str, current: str) -> None:
    line = made(properties).to_json()
    if "reason" not in line["properties"]:
        assert in_current_form(line) is line
        return
    line["properties"]["reason"] = former
    assert parse(line).to_json()["properties"] == {**line["properties"], "reason": current}


def test_a_decision_of_an_earlier_version_is_read() -> None:
    line = made(EXAMPLES[2]).to_json()
    line["properties"].update(line["properties"].pop("planned"))
    assert parse(line) == made(EXAMPLES[2])
    assert in_current_form(line) == made(EXAMPLES[2]).to_json()
    del line["properties"]["pruned_count"]
    with pytest.raises(ValueError, match=r"'properties.planned.pruned_count': Field required"):
        parse(line)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"name": "compact.started", "properties": None},
        {"name": "compact.started", "properties": {"reason": ["trigger_pct"]}},
        {"name": "someone.else", "properties": {"kept": 1, "pruned_count": 2}},
        {"name": "compact.pruned_messages", "properties": {"kept": 1, "pruned_count": 2}},
    ],
)
def test_any_other_line_keeps_its_form(line: dict[str, Any]) -> None:
    assert in_current_form(line) is line


def test_a_whole_number_is_a_fine_float() -> None:
    line = json.loads(json.dumps(made(EXAMPLES[0]).to_json()).replace('"usage_pct": 0.1', '"usage_pct": 1'))
    assert parse(line).to_json()["properties"]["usage_pct"] == 1


def test_times_are_utc_of_fixed_width() -> None:
    offset = timezone(timedelta(hours=2))
    assert timestamp(datetime(2026, 1, 31, 1, 0, tzinfo=offset)) == "2026-01-30T23:00:00.000000Z"
    assert moment("2026-01-30T23:00:00.000000Z") == datetime(2026, 1, 31, 1, 0, tzinfo=offset)
    with pytest.raises(ValueError, match="with a timezone"):
        timestamp(datetime(2026, 1, 31))  # noqa: DTZ001
    with pytest.raises(ValueError, match="not a time like"):
        moment("2026-01-30T23:00:00Z")


def test_ids_depend_on_the_seed_alone() -> None:
    one, two, other = Ids("a"), Ids("a"), Ids("b")
    mine = [one.trace_id(), one.span_id(), one.span_id()]
    assert mine == [two.trace_id(), two.span_id(), two.span_id()]
    assert [len(each) for each in mine] == [32, 16, 16]
    assert len({*mine, other.trace_id(), other.span_id()}) == 5


def test_the_same_run_gives_the_same_bytes() -> None:
    def run() -> str:
        make = recorder()
        return json.dumps([make.event(e, session_id="s", step=1).to_json() for e in EXAMPLES])

    assert run() == run()


def test_an_event_never_ends_before_it_began() -> None:
    event = recorder().event(EXAMPLES[8], session_id="s", step=1, started_at=NOW + timedelta(seconds=5))
    assert event.started_at <= event.ended_at


def test_an_event_without_a_trace_starts_one() -> None:
    event = recorder().event(EXAMPLES[8], session_id="s", step=1)
    assert (len(event.trace_id), event.parent_id) == (32, None)


def test_events_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        made(EXAMPLES[0]).step = 9  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        EXAMPLES[0].t_est = 9  # type: ignore[attr-defined]


def test_a_misspelt_property_is_an_error() -> None:
    with pytest.raises(TypeError, match="reeson"):
        Started(reeson="x", note=None)  # type: ignore[call-arg]


def test_the_warning_codes_hold_those_of_the_contract() -> None:
    assert {
        "redaction_disabled", "unknown_model", "small_window", "ineffective", "breaker_open",
        "spooled", "exporter_drops", "state_reset", "pointer_copied", "torn_events",
        "ledger_full", "new_conversation", "learned_limit", "clock_unknown",
    } <= set(WARNING_CODES)  # fmt: skip
    assert len(WARNING_CODES) == len(set(WARNING_CODES))


def test_the_closed_sets_are_checked_when_an_event_is_read() -> None:
    for example in EXAMPLES:
        line = made(example).to_json()
        for name in line["properties"].keys() & {
            "reason",
            "outcome",
            "fallback",
            "action",
            "severity",
            "code",
        }:
            with pytest.raises(ValueError, match=f"'properties.{name}'"):
                parse({**line, "properties": {**line["properties"], name: "made_up"}})


def test_text_that_utf8_cannot_encode_comes_back() -> None:
    event = made(Started(reason="manual", note="half a character: \ud800"))
    assert parse(json.loads(json.dumps(event.to_json()))) == event


def test_importing_the_records_loads_nothing_but_the_standard_library() -> None:
    found = "import compact.events, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True).stdout
    assert "pydantic" not in loaded.split()
