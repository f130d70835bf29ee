"""`compact replay`: many sessions, reports, exit codes, and the same bytes each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.data import FIXTURES, SHARED
from support.engine import says, user
from support.replay import long_session, write_lines

from compact.errors import ConfigError
from compact.tokens.prices import Price, built_in, read_prices
from compact.tools.cli.app import run
from compact.tools.replay.engines import ENGINES, local

Called = Callable[..., tuple[int, str, str]]
SESSIONS = FIXTURES / "transcripts" / "sessions.jsonl.gz"


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


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    return write_lines(
        tmp_path / "talks.jsonl", [long_session(14), long_session(3), long_session(12, words=90)]
    )


def test_several_sessions_under_two_policies(called: Called, talks: Path) -> None:
    code, out, err = called("replay", talks, "--window", "8k", "--compare", "selective", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found) == ["format", "policies", "summary", "sessions"]
    assert [one["session"] for one in found["sessions"]] == ["s0", "s1", "s2"]
    default, selective = found["summary"]
    assert (default["policy"], selective["policy"]) == ("default", "selective")
    assert default["sessions"] == 3
    assert default["compacted"] == 2
    assert 0.1 < default["saved"] < default["saved_where_compacted"]
    assert default["input_tokens"] == sum(sum(one["runs"][0]["sent"]) for one in found["sessions"])
    assert default["illegal"] == default["over_budget"] == default["control"] == default["failed"] == 0


def test_a_folder_is_walked_without_the_archive_in_it(
    called: Called, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(talks.parent)
    assert called("apply", talks, "--window", "8k", "--session", "s0", "-o", ".out.json")[0] == 0
    assert list(Path(".compact").rglob("events.jsonl"))
    for folder in (".", talks.parent):
        code, out, err = called("replay", folder, "--window", "8k", "--json")
        assert (code, err) == (0, "")
        assert [one["session"] for one in json.loads(out)["sessions"]] == ["s0", "s1", "s2"]


def test_the_table_shows_with_and_without(called: Called, talks: Path) -> None:
    code, out, _ = called("replay", talks, "--window", "8k", "--compare", "progressive", "--workers", "1")
    assert code == 0
    assert "3 sessions: " in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.split()[:1]}
    assert "refused" in lines["without"]
    assert "all legal" in lines["default"]
    assert "all legal" in lines["progressive"]


def test_one_session_is_shown_with_its_steps(called: Called, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "one.jsonl", [long_session()])
    code, out, _ = called("replay", file, "--window", "8k")
    assert code == 0
    assert "Session s0: 60 model calls, played again" in out
    assert "default: steps, in tokens" in out
    assert "  budget  " in out


def test_policies_come_from_files_and_presets_and_keep_their_names_apart(called: Called, talks: Path) -> None:
    folder = talks.parent
    (folder / "a.yaml").write_text("policy: {trigger_pct: 0.6}")
    (folder / "b").mkdir()
    (folder / "b" / "a.yaml").write_text("policy: {trigger_pct: 0.7}")
    options = (
        "--policy",
        "a.yaml",
        "--compare",
        "b/a.yaml",
        "--compare",
        "layered",
        "--window",
        "8k",
        "--json",
    )
    found = json.loads(called("replay", talks, *options)[1])
    assert [one["name"] for one in found["policies"]] == ["a", "a 2", "layered"]
    assert found["policies"][0]["settings"]["policy.trigger_pct"] == 0.6
    firsts = [run["steps"][0]["call"] for run in found["sessions"][0]["runs"]]
    assert firsts[0] < firsts[2], "a lower threshold acts earlier"


def test_reports_are_the_same_bytes_in_every_process_hash_seed_and_number_of_workers(tmp_path: Path) -> None:
    write_lines(tmp_path / "talks.jsonl", [long_session(6), long_session(4, words=200)])
    seen = set()
    for seed, workers in (("0", "1"), ("7", "2")):
        outs = [tmp_path / f"{seed}.{ending}" for ending in ("json", "md", "html")]
        words = [word for out in outs for word in ("--report", str(out))]
        requests = tmp_path / f"{seed}.jsonl"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "compact",
                "replay",
                "talks.jsonl",
                "--window",
                "6k",
                "--compare",
                "selective",
                "--workers",
                workers,
                "--requests",
                str(requests),
                *words,
            ],
            check=True,
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        seen.add(tuple(out.read_bytes() for out in (*outs, requests)))
    assert len(seen) == 1


def test_requests_are_written_as_lines(called: Called, talks: Path) -> None:
    code, _, _ = called("replay", talks, "--window", "8k", "--requests", "sent.jsonl")
    assert code == 0
    lines = [json.loads(line) for line in Path("sent.jsonl").read_text().splitlines()]
    assert {line["session"] for line in lines} == {"s0", "s1", "s2"}
    assert all(line["messages"][0]["role"] == "system" for line in lines)
    assert called("replay", talks, "--requests", "sent.jsonl")[0] == 2


def test_replay_never_writes_over_what_it_reads(called: Called, talks: Path) -> None:
    before = talks.read_bytes()
    Path("p.json").write_text("{}")
    for options in (
        ["--requests", talks],
        ["--policy", "p.json", "--report", "p.json"],
        ["--report", "x.json", "--requests", "x.json"],
    ):
        code, _, err = called("replay", talks, *options, "--force")
        assert code == 2
        assert "cannot write" in err
    assert (talks.read_bytes(), Path("p.json").read_text()) == (before, "{}")
    assert not Path("x.json").exists()


def test_a_session_that_cannot_be_made_to_fit_is_exit_1(called: Called, tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "big.jsonl", [[{"role": "system", "content": "word " * 9_000}, user("hi"), says("ok")]]
    )
    code, out, _ = called("replay", file, "--window", "8k")
    assert code == 1
    assert "InsufficientBudget" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["missing.json"], "cannot read missing.json: there is no such file"),
        (["talks.jsonl", "--policy", "missing.yaml"], "missing.yaml"),
        (["talks.jsonl", "--window", "0"], "--window must be a number of tokens"),
        (["talks.jsonl", "--prices", "missing.yaml"], "cannot read missing.yaml: No such file"),
        (["talks.jsonl", "--engine", "warp"], "there is no engine 'warp'. Known: dask, local"),
        (["talks.jsonl", "--report", "x.txt"], "a report ends in .html, .json, .md, not '.txt'"),
        (["talks.jsonl", "--workers", "0"], "--workers"),
        (["broken.jsonl"], "cannot read broken.jsonl, line 2: it is not JSON"),
        (["empty"], "empty has no transcripts"),
        (
            ["strange.json"],
            "cannot read strange.json, line 1: messages[1] is not a message: it has the keys a",
        ),
    ],
)
def test_bad_input_and_usage_are_exit_2(called: Called, talks: Path, options: list[str], words: str) -> None:
    Path("broken.jsonl").write_text('{"messages": [{"role": "user", "content": "hi"}]}\nnonsense\n')
    Path("strange.json").write_text('{"messages": [{"role": "user", "content": "hi"}, {"a": 1}]}')
    Path("empty").mkdir()
    code, out, err = called("replay", *options)
    assert (code, out) == (2, "")
    assert words in err


def test_lenient_leaves_a_bad_file_out_and_says_so(called: Called, talks: Path) -> None:
    (talks.parent / "bad.json").write_text("\x00\x00")
    code, out, err = called("replay", talks.parent, "--lenient", "--window", "8k", "--workers", "1")
    assert code == 0
    assert "3 sessions" in out
    assert "bad.json" in err


def test_prices_are_a_small_editable_file(called: Called, talks: Path) -> None:
    Path("prices.yaml").write_text("gpt-4o: {input: 1000000, output: 0, cache_read: 0}")
    found = json.loads(called("replay", talks, "--prices", "prices.yaml", "--window", "8k", "--json")[1])
    (summary,) = found["summary"]
    assert summary["cost"] == summary["input_tokens"]
    served = [same for one in found["sessions"] for same in one["runs"][0]["reused"]]
    reused = sum(same for same in served if same >= 1_024)  # a cache takes no shorter prefix
    assert summary["cost_cached"] == summary["input_tokens"] - reused
    unknown = json.loads(called("replay", talks, "--model", "my-own-model", "--window", "8k", "--json")[1])
    assert unknown["summary"][0]["cost"] is None
    for text in (
        "[]",
        "gpt-4o: {input: 1}",
        "gpt-4o: {input: a, output: 1}",
        "gpt-4o: {input: 1, output: -1}",
        "a: [b",
    ):
        Path("prices.yaml").write_text(text)
        with pytest.raises(ConfigError, match=r"prices\.yaml"):
            read_prices(Path("prices.yaml"))


def test_a_price_belongs_to_a_family_of_models() -> None:
    assert built_in().of("openrouter/anthropic/claude-sonnet-4-5-20250929") == Price(
        3.0, 15.0, 0.3, 3.75, 6.0, tiers=((200_000, Price(6.0, 22.5, 0.6, 7.5, 12.0)),)
    )
    assert built_in().of("gpt-4o-2024-11-20") == Price(2.5, 10.0, 1.25, 2.5)
    assert built_in().of("nobody-knows") is None


def test_the_engine_gives_results_in_the_order_of_the_jobs_and_reads_them_as_needed() -> None:
    taken = []

    def jobs() -> Any:
        for n in range(40):
            taken.append(n)
            yield n

    results = local(abs, jobs(), 2)
    assert next(results) == 0
    assert len(taken) < 40, "a thousand sessions are not in memory at once"
    assert list(results) == list(range(1, 40))
    assert ENGINES.get("local") is local


def test_transcripts_of_every_format_are_played_in_a_small_window(called: Called) -> None:
    raw = [file for file in sorted((FIXTURES / "raw").iterdir()) if ".yaml" not in file.name]
    played_without_fault(called, raw)


@pytest.mark.slow
@pytest.mark.parametrize("window", ["16k", "64k"])
def test_every_shared_transcript_is_played(called: Called, window: str) -> None:
    folder = SHARED / "data" / "transcripts"
    if not folder.exists():
        pytest.skip("the shared transcripts are not beside the repo")
    played_without_fault(called, sorted(folder.glob("*.gz")), window)


def played_without_fault(called: Called, files: list[Path], window: str = "16k") -> None:
    """No crash; every request legal, within its budget, under control."""
    code, out, _ = called("replay", *files, "--window", window, "--model", "gpt-4o", "--json", "--lenient")
    found = json.loads(out)
    (summary,) = found["summary"]
    assert summary["illegal"] == summary["over_budget"] == summary["control"] == 0
    errors = [run["error"] for one in found["sessions"] for run in one["runs"] if run["error"]]
    assert all("InsufficientBudget" in error for error in errors)
    assert code == (1 if errors else 0)
    assert summary["saved_where_compacted"] > 0.1
