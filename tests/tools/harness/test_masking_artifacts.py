"""Personal data in any field of an artifact: masked, checked, and never written or reported in clear."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.harness import message, output, system, task

from compact.errors import CompactError
from compact.harness import HarnessConfig, stabilize, validate, validate_turns
from compact.tools.cli.app import run

PHONE = "5550100"
MAIL = "ada@example.org"

SHAPES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "content": lambda pii: {"content": f"call {pii}"},
    "title": lambda pii: {"title": f"for {pii}"},
    "id": lambda pii: {"id": f"id-{pii}"},
    "the whole id": lambda pii: {"id": pii},
    "authority": lambda pii: {"authority": pii},
    "authority, nested": lambda pii: {"authority": {"by": [pii]}},
    "role": lambda pii: {"role": f"user {pii}"},
    "kind": lambda pii: {"kind": f"note {pii}"},
    "type beside kind": lambda pii: {"type": str(pii)},
    "meta": lambda pii: {"meta": {"phone": pii}},
    "meta, in a text": lambda pii: {"meta": {"note": f"ring {pii} now"}},
    "meta, a key": lambda pii: {"meta": {f"{pii}": "seen"}},
    "meta, two keys": lambda pii: {"meta": {f"a {pii}": "seen", f"b {pii}": 1}},
    "meta, a list": lambda pii: {"meta": {"all": [1, [None, True, {"deep": [pii]}]]}},
    "meta, JSON in a text": lambda pii: {"meta": {"raw": json.dumps({"phone": pii})}},
    "another field": lambda pii: {"source": pii},
    "the name of another field": lambda pii: {f"from {pii}": 1},
    "another field, nested": lambda pii: {"trace": {"span": {"user": {"contact": [pii]}}}},
    "very deep": lambda pii: {"meta": {"deep": nested(pii, 400)}},
}
NOT_JSON: dict[str, Callable[[Any], dict[str, Any]]] = {
    "a tuple": lambda pii: {"meta": {"t": (1, pii)}},
    "a set": lambda pii: {"meta": {"s": {f"x{pii}"}}},
    "bytes": lambda pii: {"meta": {"b": str(pii).encode()}},
    "a path": lambda pii: {"meta": {"p": Path(f"/home/{pii}")}},
    "a key that is no text": lambda pii: {"meta": {(pii, 1): "x"}},
    "a cycle": lambda pii: {"meta": looped(pii)},
    "an object": lambda pii: {"source": Person(f"tel {pii}")},
}


class Person:
    def __init__(self, words: str) -> None:
        self.words = words

    def __str__(self) -> str:
        return self.words


def nested(leaf: Any, depth: int) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def looped(pii: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"pii": pii}
    found["again"] = found
    return found


def clear(value: Any) -> str:
    """Everything that could be written of a value, as text."""
    return json.dumps(value, default=str, ensure_ascii=False)


@pytest.mark.parametrize(("rule", "pii"), [("digits", PHONE), ("digits", int(PHONE)), ("standard", MAIL)])
@pytest.mark.parametrize("shape", [*SHAPES, *NOT_JSON])
def test_personal_data_in_any_field_is_masked_counted_and_checked(shape: str, rule: str, pii: Any) -> None:
    given = [
        system(),
        {"kind": "message", "content": "hi", **{**SHAPES, **NOT_JSON}[shape](pii)},
        message("go"),
    ]
    settings = HarnessConfig(pii=rule, budget=500)
    before = validate(given, settings)
    assert not before.passed, "the check alone finds it"
    done = stabilize(given, settings)
    assert str(pii) not in clear([dict(one) for one in done.artifacts])
    assert str(pii) not in clear(done.report) + clear(before)
    assert done.report.masked > 0
    assert done.report.passed
    assert validate(done.artifacts, settings).passed
    assert stabilize(done.artifacts, settings).artifacts == done.artifacts, "masked once, it stays as it is"


@pytest.mark.parametrize("kind", ["system", "task"])
@pytest.mark.parametrize(
    "shape", [name for name in SHAPES if name not in ("kind", "role", "type beside kind")]
)
def test_in_system_and_task_it_stays_and_fails_the_check(kind: str, shape: str) -> None:
    """They are the operator's own; the check names the artifact, and no report repeats what it found."""
    one = {"kind": kind, "content": "Obey.", **SHAPES[shape](PHONE)}
    done = stabilize([one, message("hi")])
    assert done.artifacts[0] is one
    (problem,) = done.report.checks[0]["details"]
    assert f"({kind}) holds personal data" in problem
    assert PHONE not in clear(done.report)
    assert stabilize([one, message("hi")], HarnessConfig(pii_allow=[kind])).report.passed


def test_masked_names_stay_apart() -> None:
    keys = {f"{n:04} {PHONE}": n for n in range(60)}
    meta = stabilize([message("hi", meta=keys)]).artifacts[0]["meta"]
    assert sorted(meta.values()) == list(range(60))


def test_a_value_that_only_its_key_gives_away_is_masked() -> None:
    given = [message("hi", meta={"password": "hunter2-Zebra", "colour": "green"})]
    done = stabilize(given, HarnessConfig(pii="standard"))
    assert "hunter2" not in clear(done.artifacts)
    assert done.artifacts[0]["meta"]["colour"] == "green"


def test_what_has_no_personal_data_is_the_very_same_object() -> None:
    given = [message("hi", id="a", meta={"at": date.resolution, "n": 12, "d": Decimal(3), "l": [1, None]})]
    assert stabilize(given).artifacts[0] is given[0]


def test_a_priority_that_matches_decides_and_is_not_written() -> None:
    given = [output("x " * 40, id=str(n), priority=int(PHONE) if n == 1 else 0) for n in range(4)]
    done = stabilize(given, HarnessConfig(budget=60))
    assert [one["id"] for one in done.artifacts] == ["1"]
    assert "priority" not in done.artifacts[0]
    assert stabilize([message("hi", priority=12)]).artifacts[0]["priority"] == 12


def test_artifacts_are_named_in_reports_one_by_one() -> None:
    """An id with personal data gives way to kind and place; an id that stands twice is numbered."""
    given = [message("a", id=PHONE), message("b", id="x"), message("c", id="x"), message("d", id="")]
    report = stabilize(given).report
    assert [line["id"] for line in report.kept] == ["message-0", "x", "x#2", "message-3"]


def test_ids_of_turns_are_not_repeated_by_their_checks() -> None:
    boss = system(id=f"boss {PHONE}")
    report = validate_turns([[boss, message("hi")], [message("ho")]])
    assert report.checks[-1]["details"] == ["turn 2: system-0 (system) was pushed out of the context"]


def test_messages_are_named_after_their_place_and_pass_their_own_check() -> None:
    """A session of more than 99 messages has names with three digits, which are no personal data."""
    talk = [{"role": "user", "content": f"word {'x' * n}"} for n in range(120)]
    done = stabilize(talk, HarnessConfig(budget=50_000))
    assert done.report.passed
    assert done.report.masked == 0
    assert done.report.kept[104]["id"] == "m104"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["list", "lines"])
def test_nothing_in_clear_is_written_or_printed_by_the_command(
    shape: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [system(), task(), {"kind": "message", "content": "hi", **SHAPES[shape](PHONE)}, message("go")]
    file, out = tmp_path / "talk.jsonl", tmp_path / "out.json"
    lines = "\n".join(map(json.dumps, given))
    file.write_text(lines if form == "lines" else json.dumps(given, indent=1))
    reports = [tmp_path / f"report.{ending}" for ending in ("json", "md", "html")]
    options = [word for report in reports for word in ("--report", str(report))]
    code = run(["harness", str(file), "-o", str(out), *options])
    printed = capsys.readouterr()
    written = "".join(path.read_text() for path in (out, *reports))
    assert (code, printed.err) == (0, "")
    assert PHONE not in written + printed.out
    assert "REDACTED" in out.read_text()
    assert run(["harness", str(out)]) == 0, "what it writes passes its own checks"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a kind in capitals": ({"kind": "System"}, "write kind 'system'"),
    "a kind with another sign": ({"kind": "tool-output"}, "write kind 'tool_output'"),
    "a kind in camel case": ({"kind": "toolCall"}, "write kind 'tool_call'"),
    "a role for a kind": ({"kind": "user"}, "write kind 'message' with role 'user'"),
    "another word": ({"kind": "tool_result"}, "write kind 'tool_output'"),
    "an empty kind": ({"kind": ""}, "it has no 'kind'"),
    "a list for an id": ({"id": ["a"]}, "its 'id' is list, not text or a whole number"),
    "a switch for an id": ({"id": True}, "its 'id' is bool"),
    "a number for a role": ({"role": 5}, "its 'role' is int, not text"),
    "a number for a title": ({"title": 5}, "its 'title' is int, not text"),
    "a text for meta": ({"meta": "x"}, "its 'meta' is str, not a mapping"),
    "a text for a priority": ({"priority": "5"}, "its 'priority' is str, not a number"),
    "a switch for a priority": ({"priority": True}, "its 'priority' is bool, not a number"),
    "no number for a priority": ({"priority": float("nan")}, "not a finite number"),
    "an endless priority": ({"priority": float("-inf")}, "not a finite number"),
    "no content": ({"content": None}, "its 'content' is NoneType, not text"),
    "blocks for content": ({"content": [{"type": "text", "text": "x"}]}, "its 'content' is list, not text"),
    "an empty system": ({"kind": "system", "content": " "}, "its 'content' is empty"),
    "an empty task": ({"kind": "task", "content": ""}, "its 'content' is empty"),
    "a typo": ({"priorty": 5}, "did you mean 'priority'?"),
    "a field in capitals": ({"Role": "user"}, "did you mean 'role'?"),
    "a plural": ({"titles": "x"}, "did you mean 'title'?"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("act", [stabilize, validate])
def test_what_would_be_ignored_is_refused_by_name(act: Callable[[Any], Any], name: str) -> None:
    fields, words = WRONG[name]
    with pytest.raises(CompactError, match=r"artifacts\[1\]") as caught:
        act([message("fine"), {"kind": "message", "content": "hi", **fields}])
    assert words in str(caught.value)


def test_a_system_prompt_beside_artifacts_is_refused() -> None:
    with pytest.raises(CompactError, match="beside artifacts"):
        stabilize([message("hi")], system="Obey.")


@pytest.mark.parametrize("own", ["author", "created", "source", "name", "tags", "metadata"])
def test_fields_of_the_host_are_carried_along(own: str) -> None:
    assert stabilize([message("hi", **{own: "x"})]).artifacts[0][own] == "x"


def test_a_lower_priority_is_dropped_first() -> None:
    given = [message("x " * 40, id=str(n), priority=-1 if n == 3 else 0) for n in range(4)]
    done = stabilize(given, HarnessConfig(budget=140, keep_messages=0))
    assert [line["id"] for line in done.report.dropped] == ["3"]


def test_an_empty_message_is_dropped_with_a_reason_and_is_none_of_the_newest() -> None:
    given = [message("one"), message("two"), message(""), message(" \n")]
    report = stabilize(given, HarnessConfig(budget=10)).report
    assert [line["id"] for line in report.kept] == ["message-0", "message-1"]
    assert {line["reason"] for line in report.dropped} == {"it is empty"}
    assert len(stabilize([message("a"), output("")]).artifacts) == 2, "a tool may print nothing"
