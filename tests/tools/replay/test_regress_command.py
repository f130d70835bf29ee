"""`compact regress`: what counts as worse, which sessions belong together, and reports that are none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.harness import message, system
from support.replay import long_session, policy, session

from compact.tokens.prices import built_in
from compact.tools.cli.app import run
from compact.tools.replay import Job, as_data, play
from compact.tools.replay.regress import Allowance, changes
from compact.tools.replay.reports import ReplayReport

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Called:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("COMPACT_")]:
        monkeypatch.delenv(name)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@cache
def report_text() -> str:
    """The report of three small sessions; made once."""
    sessions = [long_session(12), long_session(3), long_session(12, words=60)]
    policies = [policy("default")]
    jobs = [
        Job(file="talks", session=session(messages, name=f"s{n}"), policies=policies, prices=built_in())
        for n, messages in enumerate(sessions)
    ]
    return json.dumps(as_data([play(job) for job in jobs], policies))


def reports() -> tuple[Path, Path]:
    """Two equal reports in the current folder."""
    for name in ("a.json", "b.json"):
        Path(name).write_text(report_text())
    return Path("a.json"), Path("b.json")


def edited(file: Path, **numbers: Any) -> Path:
    data = json.loads(file.read_text())
    data["summary"][0].update(numbers)
    file.write_text(json.dumps(data))
    return file


def test_regress_says_nothing_changed(called: Called) -> None:
    code, out, _ = called("regress", *reports())
    assert (code, out) == (0, "Nothing changed\n")


@pytest.mark.parametrize(
    ("number", "factor", "code"),
    [
        ("input_tokens", 1.01, 0),
        ("input_tokens", 1.03, 1),
        ("input_tokens", 0.5, 0),
        ("cost", 1.5, 1),
        ("cost_cached", 1.5, 1),
        ("steps", 1.2, 0),
        ("steps", 2, 1),
    ],
)
def test_regress_fails_past_the_thresholds_only(
    called: Called, number: str, factor: float, code: int
) -> None:
    a, b = reports()
    before = json.loads(a.read_text())["summary"][0][number]
    found, out, _ = called("regress", a, edited(b, **{number: before * factor}), "--json")
    assert found == code
    (change,) = json.loads(out)["changes"]
    assert change["what"] == number.replace("_", " ")
    assert change["worse"] is bool(code)


def test_regress_takes_thresholds_as_options(called: Called) -> None:
    a, b = reports()
    tokens = json.loads(a.read_text())["summary"][0]["input_tokens"]
    edited(b, input_tokens=int(tokens * 1.08))
    assert called("regress", a, b)[0] == 1
    code, out, _ = called("regress", a, b, "--max-tokens-growth", "10")
    assert code == 0
    assert "+8.0%" in out


def test_regress_never_accepts_more_failures_or_lost_sessions(called: Called) -> None:
    a, b = reports()
    assert called("regress", a, edited(b, illegal=1))[0] == 1
    data = json.loads(a.read_text())
    data["sessions"][1]["runs"][0]["control"] = ["call 3: lost"]
    del data["sessions"][2]
    b.write_text(json.dumps(data))
    code, out, _ = called("regress", a, b, "--json")
    found = {(change["where"], change["after"]) for change in json.loads(out)["changes"]}
    assert code == 1
    assert found == {("talks: s1", "failed"), ("talks: s2", "missing")}


def test_regress_retention_is_measured_in_points() -> None:
    def report(retention: float | None) -> ReplayReport:
        numbers = dict.fromkeys(("failed", "illegal", "over_budget", "control", "input_tokens", "steps"), 1)
        summary = {"policy": "p", **numbers, "cost": None, "cost_cached": None, "retention": retention}
        return ReplayReport.model_validate({"summary": [summary], "sessions": []})

    assert not changes(report(0.5), report(0.485), Allowance())[0].worse
    assert changes(report(0.5), report(0.4), Allowance())[0].worse
    assert changes(report(None), report(0.4), Allowance()) == []


def test_regress_compares_harness_reports_too(called: Called, tmp_path: Path) -> None:
    Path("talk.json").write_text(
        '[{"kind": "system", "content": "Obey"}, {"kind": "message", "content": "hi"}]'
    )
    called("harness", "talk.json", "--report", "a.json")
    Path("talk.json").write_text(
        '[{"kind": "system", "content": "Dial 5550100"}, {"kind": "message", "content": "hi"}]'
    )
    called("harness", "talk.json", "--report", "b.json")
    code, out, _ = called("regress", "a.json", "b.json")
    assert code == 1
    assert "check pii" in out
    assert called("regress", "b.json", "a.json")[0] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "c.json: it is empty"),
        ("{", "line 1: it is not JSON"),
        ("[]", "it is not a report"),
        ('{"a": 1}', "it is not a report"),
        (None, "no such file"),
    ],
)
def test_regress_refuses_what_is_no_report(called: Called, text: str | None, words: str) -> None:
    a, _ = reports()
    if text is not None:
        Path("c.json").write_text(text)
    code, _, err = called("regress", a, "c.json")
    assert code == 2
    assert words in err


def test_regress_refuses_to_compare_two_kinds(called: Called) -> None:
    a, _ = reports()
    Path("talk.json").write_text('[{"kind": "message", "content": "hi"}]')
    called("harness", "talk.json", "--report", "h.json")
    code, _, err = called("regress", a, "h.json")
    assert code == 2
    assert "one report is of `compact replay`" in err


def broken(**parts: Any) -> str:
    """The report of replay, with some parts of the first summary or session replaced; `...` takes one out."""
    data = json.loads(report_text())
    for path, value in parts.items():
        place, *keys = path.split("__")
        target = data if not keys else data[place][0]
        key = keys[0] if keys else place
        if value is ...:
            del target[key]
        else:
            target[key] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"summary": ...}, "summary is missing"),
        ({"sessions": ...}, "sessions is missing"),
        ({"sessions": {}}, "sessions is {}, not a list"),
        ({"summary": [5]}, "summary[0] is 5, not an object"),
        ({"summary__cost": ...}, "summary[0].cost is missing"),
        ({"summary__steps": "many"}, "summary[0].steps is 'many', not a number"),
        ({"summary__failed": True}, "summary[0].failed is True, not a number"),
        ({"summary__input_tokens": 10**400}, "summary[0].input_tokens is 1000"),
        ({"summary__retention": float("nan")}, "NaN is not a JSON number"),
        ({"sessions__runs": None}, "sessions[0].runs is None, not a list"),
        ({"sessions__file": 5}, "sessions[0].file is 5, not text"),
    ],
)
def test_regress_names_the_file_and_the_part_of_a_broken_report(
    called: Called, parts: dict[str, Any], words: str
) -> None:
    a, _ = reports()
    Path("c.json").write_text(broken(**parts))
    for pair in ((a, "c.json"), ("c.json", a)):
        code, out, err = called("regress", *pair)
        assert (code, out) == (2, "")
        assert "cannot read c.json" in err
        assert words in err


@pytest.mark.parametrize(
    "text",
    [
        '{"checks": 5}',
        '{"checks": [], "kept": [], "dropped": []}',
        '{"checks": [{"name": "pii"}], "tokens": 1, "kept": [], "dropped": []}',
        '{"checks": [], "tokens": 1, "kept": [1], "dropped": []}',
        '{"sessions": [{"checks": []}]}',
    ],
)
def test_regress_refuses_a_broken_report_of_the_harness(called: Called, text: str) -> None:
    Path("c.json").write_text(text)
    code, _, err = called("regress", "c.json", "c.json")
    assert code == 2
    assert "cannot read c.json: it is not a complete report" in err


# --- which session is which


GOOD = [system(), message("hi")]
BAD = [system("Dial 5550100"), message("hi")]


def stability(called: Called, out: str, folder: str, **sessions: list[Any]) -> str:
    """The report of the harness on files of a folder."""
    for name, artifacts in sessions.items():
        file = Path(folder, name.replace("__", "/") + ".json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(artifacts))
    called("harness", folder, "--report", out)
    return out


def test_a_new_session_or_a_new_check_that_fails_is_worse(called: Called) -> None:
    a = stability(called, "a.json", "a", one=GOOD, two=GOOD)
    b = stability(called, "b.json", "b", one=GOOD, two=GOOD, three=BAD)
    code, out, _ = called("regress", a, b, "--json")
    assert code == 1
    assert json.loads(out)["changes"] == [
        {
            "where": "three.json: three",
            "what": "session",
            "before": "missing",
            "after": "failed",
            "worse": True,
        }
    ]
    fine = stability(called, "c.json", "c", one=GOOD, two=GOOD, three=GOOD)
    assert called("regress", a, fine)[0] == 0
    data = json.loads(Path(a).read_text())
    data["sessions"][0]["checks"].append({"name": "polite", "passed": False, "details": ["no"]})
    Path("d.json").write_text(json.dumps(data))
    code, out, _ = called("regress", a, "d.json", "--json")
    (change,) = json.loads(out)["changes"]
    assert (code, change["what"], change["before"], change["worse"]) == (1, "check polite", "missing", True)
    assert called("regress", "d.json", a)[0] == 0


def test_sessions_of_one_name_in_two_files_are_two(called: Called) -> None:
    data = json.loads(report_text())
    one = data["sessions"][0]
    failed = {**one, "file": "x/talk.json", "error": "lost"}
    data["sessions"] = [{**one, "file": "y/talk.json"}, failed, {**failed, "session": "again"}, failed]
    Path("a.json").write_text(json.dumps(data))
    assert called("regress", "a.json", "a.json")[:2] == (0, "Nothing changed\n")


def test_a_new_session_that_fails_in_a_replay_is_worse(called: Called) -> None:
    a, b = reports()
    data = json.loads(b.read_text())
    data["sessions"].append({**data["sessions"][0], "session": "new", "error": "lost"})
    b.write_text(json.dumps(data))
    code, out, _ = called("regress", a, b)
    assert code == 1
    assert "talks: new" in out


def test_the_same_files_in_another_folder_are_the_same_sessions(called: Called) -> None:
    a = stability(called, "a.json", "old", x__talk=GOOD, y__talk=GOOD)
    b = stability(called, "b.json", "deep/new", x__talk=GOOD, y__talk=GOOD)
    assert called("regress", a, b)[:2] == (0, "Nothing changed\n")
    called("harness", Path("old").resolve(), "--report", "c.json")
    assert called("regress", a, "c.json")[:2] == (0, "Nothing changed\n")


def test_a_session_that_is_gone_is_not_taken_for_another_of_its_name(called: Called) -> None:
    a = stability(called, "a.json", "s", x__talk=GOOD, y__talk=GOOD)
    Path("s/x/talk.json").unlink()
    b = stability(called, "b.json", "s", z__talk=GOOD)
    code, out, _ = called("regress", a, b, "--json")
    found = [(one["where"], one["after"]) for one in json.loads(out)["changes"]]
    assert (code, found) == (1, [("s/x/talk.json: talk", "missing"), ("s/z/talk.json: talk", "passed")])


def test_the_report_of_a_single_session_is_compared_with_that_session_of_many(called: Called) -> None:
    other = [*GOOD, message("more")]
    one = stability(called, "one.json", "one", talk=GOOD)
    many = stability(called, "many.json", "many", talk=GOOD, other=other)
    assert called("regress", one, many)[0] == 0
    code, out, _ = called("regress", many, one, "--json")
    assert code == 1
    assert [change["where"] for change in json.loads(out)["changes"]] == ["many/other.json: other"]
    worse = stability(called, "worse.json", "worse", talk=BAD, other=other)
    code, out, _ = called("regress", one, worse, "--json")
    assert code == 1
    assert json.loads(out)["changes"][0]["what"] == "check pii"
