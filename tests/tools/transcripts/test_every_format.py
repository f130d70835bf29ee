"""Whatever the format, everything that was said is read: every text, every call, every result, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.recorded_formats import WRITERS
from support.talks import Step, Talk, Turn, Use, read_from, said_in

from compact import CompactConfig, CompactManager
from compact.messages import dialects
from compact.messages.legality import violations
from compact.tools.cli.app import run
from compact.tools.transcripts import RecordedSession, read_sessions

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12).map(
    lambda text: f"say {text} so"
)
NAMES = st.sampled_from(["read_file", "grep", "run-tests"])
USES = st.builds(Use, NAMES, st.dictionaries(st.sampled_from(["path", "n"]), WORDS, max_size=2), WORDS)
WORKING = st.builds(Step, st.just("") | WORDS, st.lists(USES, min_size=1, max_size=3))
TURNS = st.builds(
    lambda text, working, last: Turn(text, [*working, last]),
    WORDS,
    st.lists(WORKING, max_size=2),
    st.builds(Step, WORDS),
)
TALKS = st.lists(TURNS, min_size=1, max_size=3)

TALK: Talk = [
    Turn(
        "Fix the build.",
        [Step("Looking.", [Use("grep", {"n": "error"}, "a.c:1: error")]), Step("It is a.c.")],
    ),
    Turn(
        "Go on.",
        [Step("", [Use("read_file", {"path": "a.c"}, "int x"), Use("grep", {}, "none")]), Step("Done.")],
    ),
]


def only(path: Path) -> RecordedSession:
    (session,) = read_sessions(path)
    return session


@pytest.mark.parametrize("name", WRITERS)
@given(talk=TALKS)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_everything_that_was_said_is_read(name: str, talk: Talk, tmp_path_factory: Any) -> None:
    session = only(WRITERS[name](talk, tmp_path_factory.mktemp("talk")))
    assert read_from(session) == said_in(talk)
    assert session.skipped == []
    assert violations(session.messages, session.dialect, in_flight=False) == []


@pytest.mark.parametrize(
    "name", ["chat", "anthropic", "codex new", "gemini session", "gemini list", "converse request", "chatgpt"]
)
@pytest.mark.parametrize("manual", [[], ["--manual"]])
def test_apply_writes_exactly_what_the_manager_returned(
    name: str,
    manual: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Message for message, in the dialect that was read."""
    monkeypatch.chdir(tmp_path)
    turns = [
        Turn(f"Step {n}.", [Step("", [Use("grep", {"n": n}, f"row {n} " * 60)]), Step("Ok.")])
        for n in range(30)
    ]
    file, out = WRITERS[name](turns, tmp_path), tmp_path / "out.json"
    options = ["--window", "6000", "--model", "gpt-4o", "--json"]
    assert run(["apply", str(file), "-o", str(out), *options, *manual]) == 0
    report = json.loads(capsys.readouterr().out)
    session = only(file)
    with CompactManager(model_config(6_000)) as manager:
        act = manager.manual_compact if manual else manager.preflight
        more: list[Any] = ["by hand"] if manual else []
        returned = act(report["session"], session.messages, *more, **session.request)
    assert json.loads(out.read_text()) == returned != session.messages
    dialect = session.dialect or dialects.detect(session.messages).NAME
    assert (report["after"]["messages"], report["dialect"]) == (len(returned), dialect)


def model_config(window: int) -> CompactConfig:
    return CompactConfig(model="gpt-4o", max_context_tokens=window, archive={"adapter": "memory"})


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRITERS)
def test_the_commands_take_every_format(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(WRITERS[name](TALK, tmp_path))
    assert run(["check", file, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["legal"] is True
    assert run(["count", file, "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)["sessions"][0]
    assert counted["messages"] == len(only(Path(file)).messages) == report["sessions"][0]["messages"]
    assert counted["tokens"] > 60
    assert run(["harness", file, "--budget", "8k", "--json"]) == 0
    stable = json.loads(capsys.readouterr().out)
    assert not {entry["kind"] for entry in stable["kept"]} - {
        "system",
        "message",
        "reasoning",
        "tool_call",
        "tool_output",
    }
    out = tmp_path / "out.json"
    assert run(["apply", file, "-o", str(out), "--json"]) == 0
    assert json.loads(out.read_text()) == only(Path(file)).messages
