"""The page of benchmarks: what it prints, what it skips, and what it does with bad input."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path

import pytest

import bench
from bench import (
    Figure,
    Skipped,
    __main__,
    chaos,
    conversations,
    mutation,
    redaction,
    retention,
    rules,
    search,
    soak,
    whole_number,
)

REPO = Path(bench.__file__).resolve().parents[1]


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("COMPACT_BENCH_DATA", str(tmp_path / "absent"))
    for cached in (retention.sessions, search.large_sessions):
        cached.cache_clear()
    yield
    for cached in (retention.sessions, search.large_sessions):
        cached.cache_clear()


def test_the_folder_that_is_named_comes_before_the_one_beside_the_repo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "REPO", tmp_path / "repo")
    monkeypatch.delenv("COMPACT_BENCH_DATA", raising=False)
    assert bench.data_folder() is None
    assert bench.recorded() == []
    beside = tmp_path / "shared" / "data"
    beside.mkdir(parents=True)
    assert bench.data_folder() == beside
    named = tmp_path / "named" / "transcripts"
    named.mkdir(parents=True)
    file = named / "one.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps({"id": "s", "messages": []}).encode()))
    monkeypatch.setenv("COMPACT_BENCH_DATA", str(named.parent))
    assert bench.transcripts() == [file]


@pytest.mark.usefixtures("without_data")
@pytest.mark.parametrize(
    "benchmark",
    [
        retention.bench_retention,
        rules.bench_rules,
        search.bench_found_by_surrounding_words,
        search.bench_each_kind,
        redaction.bench_found,
        redaction.bench_spoiled,
    ],
)
def test_without_recorded_data_a_claim_is_skipped(
    benchmark: __main__.Benchmark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(redaction, "library", lambda: iter(["plain text"]))
    monkeypatch.setattr(__main__, "benchmarks", lambda: [("one", benchmark)])
    assert __main__.main([]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "SKIP needs recorded data" in said
    assert "set COMPACT_BENCH_DATA to a folder with transcripts/*.jsonl.gz" in said
    assert "1 benchmarks, 1 skipped, 0 targets missed" in said


def test_one_that_fails_is_named_and_the_rest_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Iterator[Figure]:
        yield Figure("fine", 1, "x", 2)
        raise ZeroDivisionError("division by zero")

    def skipped() -> Figure:
        raise Skipped("needs two cores")

    def slow() -> Figure:
        return Figure("times the cost", 3, "x", 2)

    made = [("a.broken", broken), ("b.skipped", skipped), ("c.slow", slow)]
    monkeypatch.setattr(__main__, "benchmarks", lambda: made)
    assert __main__.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["PASS", "1", "x", "(target", "<=", "2)", "fine"]
    assert lines[4] == "  FAIL  a.broken: ZeroDivisionError: division by zero"
    assert lines[6] == "  SKIP  needs two cores"
    assert lines[-3:] == [
        "3 benchmarks, 1 skipped, 2 targets missed",
        "  a.broken: ZeroDivisionError: division by zero",
        "  c.slow: times the cost",
    ]


def test_values_line_up_and_long_labels_are_wrapped() -> None:
    shown = str(Figure("labelled " * 20, 0.12345, "s/MB", 0.75, at_least=True)).splitlines()
    short = str(Figure("labelled", 7, "", 10))
    assert len(shown) > 1
    assert max(map(len, shown)) <= 116
    assert {line.index("labelled") for line in (*shown, short)} == {short.index("labelled")}


def test_a_name_that_is_none_lists_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(["tokens", "nonsense"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "no benchmark is named 'nonsense'; known:" in said
    assert "  engine.preflight_growth\n" in said


def test_help_says_where_data_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(["--help"])
    assert ended.value.code == 0
    assert "COMPACT_BENCH_DATA" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["0", "-3", "", "1.5", "many"])
def test_a_number_below_the_least_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="no whole number from 1 up"):
        whole_number(1)(text)
    assert whole_number(1)("1") == 1
    assert whole_number(0)("0") == 0


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (soak, "--sessions 0", "argument --sessions: 0 is no whole number from 1 up"),
        (soak, "--sessions -3", "argument --sessions: -3 is"),
        (soak, "--turns 0", "argument --turns: 0 is"),
        (chaos, "--kills -5", "argument --kills: -5 is"),
        (chaos, "--kills 0", "argument --kills: 0 is"),
        (mutation, "--sample -1", "argument --sample: -1 is no whole number from 0 up"),
        (mutation, "--workers 0", "argument --workers: 0 is"),
        (
            mutation,
            "--files units,nonsense",
            f"no such file: nonsense; known: {', '.join(mutation.TESTS)}",
        ),
        (mutation, "--files=", f"no such file: ; known: {', '.join(mutation.TESTS)}"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    command: object,
    words: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", *words.split()])
    with pytest.raises(SystemExit) as ended:
        command.main()  # type: ignore[attr-defined]
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_ctrl_c_ends_a_long_run_with_one_line() -> None:
    paths = os.pathsep.join(str(REPO / part) for part in ("src", "tests", ""))
    with subprocess.Popen(
        [sys.executable, "-m", "bench.soak", "--sessions", "1000", "--turns", "1"],
        cwd=REPO, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert said.strip() == "stopped"
    assert run.returncode == 130


def _chat(folder: Path) -> None:
    """One chat in the form of BEAM: the answer is said once, and then much else."""
    place = folder / "chats" / "100K" / "1"
    (place / "probing_questions").mkdir(parents=True)
    said = [
        ("user", "My zebra Willibald arrived from Nairobi on March 14 with two crates. ->-> 1,1"),
        ("assistant", "How nice."),
        ("user", "Always answer in verse when I ask about giraffes and their keepers."),
        ("assistant", "I will."),
    ]
    for number in range(150):
        said += [
            ("user", f"What is {number} plus one?"),
            ("assistant", f"It is {number + 1}. " + "Numbers go on. " * 60),
        ]
    turns = [[{"id": n, "role": role, "content": text} for n, (role, text) in enumerate(said)]]
    (place / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": turns}]))
    questions = {
        "information_extraction": [
            {"question": "When did my zebra arrive?", "answer": "March 14", "source_chat_ids": [0]}
        ],
        "instruction_following": [
            {
                "question": "Who keeps giraffes?",
                "instruction_being_tested": "Always answer in verse about giraffes.",
                "source_chat_ids": [2],
            }
        ],
        "abstention": [{"question": "What is my name?", "ideal_response": "Nobody said."}],
    }
    (place / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions))


def test_evidence_is_counted_in_the_context_and_in_what_is_found(tmp_path: Path) -> None:
    _chat(tmp_path)
    (chat,) = conversations.chats(tmp_path)
    assert [question.kind for question in chat.questions] == [
        "information_extraction",
        "instruction_following",
    ]
    assert not any("->->" in str(message["content"]) for message in chat.messages)
    (one,) = chat.questions[0].evidence
    assert one.is_in("Then my zebra Willibald arrived from Nairobi on March 14 with two crates, I said.")
    assert not one.is_in("zebra Willibald Nairobi crates arrived March 14")
    assert not one.is_in("My zebra arrived.")
    found = conversations.measure([chat], 8_000)
    assert found.mean("search") == found.mean("context+search") == found.mean("BM25") == 1
    assert found.mean("last N") == 0
    assert len(found.rules) == 1
    assert "all but summarization" in conversations.table(found)


def test_without_chats_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert conversations.main(["--data", str(tmp_path)]) == 0
    assert "should be a copy of BEAM" in capsys.readouterr().out


def test_the_bench_of_conversations_is_skipped_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(conversations.VARIABLE, raising=False)
    with pytest.raises(Skipped, match="set COMPACT_BENCH_CONVERSATIONS"):
        next(conversations.bench_conversations())
