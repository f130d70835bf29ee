"""The command of the long fault runs: it reports, it goes on where it was, and it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import chaos
from bench.chaos import Part, Result


@pytest.fixture(autouse=True)
def few_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ran: list[str] = []

    def part(line: str, name: str, passed: bool) -> Part:
        def run() -> Result:
            ran.append(name)
            return Result(passed, {"kills": 5}, 1.0, "" if passed else "torn")

        return Part(line, name, run)

    monkeypatch.setattr(chaos, "DONE", tmp_path / "chaos" / "done.json")
    monkeypatch.setattr(
        chaos,
        "parts",
        lambda kills: [part("kills", "a", True), part("kills", "b", True), part("races", "c", False)],
    )
    monkeypatch.setattr("sys.argv", ["chaos"])
    return ran


def test_one_line_for_each_kind_and_a_failure_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.main() == 1
    first, second, said = capsys.readouterr().out.splitlines()
    assert first.split() == ["PASS", "kills", "10", "kills", "(2", "s)"]
    assert second.startswith("FAIL  races")
    assert said.strip() == "torn"


def test_what_passed_is_not_run_again_until_the_source_changes(
    few_parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chaos.main()
    chaos.main()
    assert few_parts == ["a", "b", "c", "c"]
    monkeypatch.setattr(chaos, "source", lambda: "other")
    chaos.main()
    assert few_parts[4:] == ["a", "b", "c"]


def test_real_kills_are_counted(tmp_path: Path) -> None:
    result = chaos.kill_processes(4, seed=3)
    assert result.passed
    assert result.counts["kills"] == 4
    assert result.counts["lost or torn"] == 0


def test_source_that_is_edited_during_a_run_counts_as_not_tested(
    few_parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = iter(["begun with", *["edited"] * 100])
    monkeypatch.setattr(chaos, "source", lambda: next(versions))
    chaos.main()
    chaos.main()
    assert few_parts == ["a", "b", "c"] * 2


@pytest.mark.parametrize("torn", ["", '{"source": "', "[]", "null", '{"source": "same"}'])
def test_a_torn_record_of_what_is_done_counts_as_none(
    torn: str, few_parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos, "source", lambda: "same")
    chaos.DONE.parent.mkdir()
    chaos.DONE.write_text(torn, encoding="utf-8")
    chaos.main()
    assert few_parts == ["a", "b", "c"]
