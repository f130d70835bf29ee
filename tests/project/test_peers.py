"""The driver of the comparison with other tools: what it measures again, and what it lets count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Compaction, Item, Peer, basis, tasks
from bench.peers import __main__ as driver
from bench.peers.report import page_of
from bench.retention import Case, Needed, cases_of, tokens_in

_ASK = {"role": "user", "content": "Look at src/old_place.py and say what it is for, in one sentence."}
_TOLD = {"role": "assistant", "content": "The file src/old_place.py holds the table of the opening hours."}
_NEEDED = Needed("src/old_place.py", (_TOLD["content"],), "")
_ORPHAN = {"role": "tool", "tool_call_id": "call_1", "content": "a result without its call"}


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "DO_NOT_TRACK",
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "TIKTOKEN_CACHE_DIR",
        "CUSTOM_TIKTOKEN_CACHE_DIR",
    ):
        monkeypatch.setenv(name, "set by the test")  # so that what the run sets is taken back
    monkeypatch.setattr(driver, "_importing", lambda name: {"cpu_ms": 7.0, "wall_ms": 8.0, "memory_mb": 9.0})
    return tmp_path


def _run(docs: Path, *words: str) -> int:
    return driver.main(["--docs", str(docs), "--peers", "ours", "--tasks", "importing", *words])


def test_a_measurement_on_the_same_source_and_machine_is_kept(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(docs)
    first = json.loads((docs / "benchmarks.json").read_text())["ours"]["importing"]
    capsys.readouterr()
    _run(docs)
    assert f"ours importing: kept from {first['measured']}" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["tool", "measured_by", "machine"])
def test_a_measurement_on_something_else_is_made_again(
    docs: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(docs)
    file = docs / "benchmarks.json"
    results = json.loads(file.read_text())
    results["ours"]["importing"]["measured_on"][part] = "another"
    results["ours"]["importing"]["cpu_ms"] = 4321
    file.write_text(json.dumps(results))
    capsys.readouterr()
    _run(docs)
    assert "kept from" not in capsys.readouterr().out
    assert json.loads(file.read_text())["ours"]["importing"]["cpu_ms"] == 7.0


def test_a_measurement_that_does_not_say_what_it_was_made_on_is_not_shown(docs: Path) -> None:
    old = {"ours": {"title": "compact", "importing": {"cpu_ms": 4321}}}
    (docs / "benchmarks.json").write_text(json.dumps(old))
    assert driver.known(docs / "benchmarks.json") == {"ours": {"title": "compact"}}


def test_show_prints_the_tables_says_what_is_stale_and_writes_nothing(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(docs)
    file = docs / "benchmarks.json"
    file.write_text(file.read_text().replace(basis.our_source(), "another source"))
    (docs / "BENCHMARKS.md").unlink()
    before = {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()}
    capsys.readouterr()
    driver.main(["--show", "--docs", str(docs)])
    shown = capsys.readouterr().out
    assert "| compact |" in shown
    assert "compact importing: kept from" in shown
    assert {path: path.read_bytes() for path in docs.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("option", ["--peers", "--tasks"])
def test_an_unknown_name_is_refused_with_the_known_ones(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        driver.main([option, "nonsense"])
    said = capsys.readouterr().err
    assert "nonsense: no such name; choose from" in said
    assert ("strands" if option == "--peers" else "preflight") in said


def test_no_peer_at_all_writes_only_the_page(docs: Path) -> None:
    driver.main(["--docs", str(docs), "--peers", ""])
    assert [path.name for path in docs.iterdir()] == ["BENCHMARKS.md"]


def test_a_task_that_takes_too_long_loses_its_cell_and_not_the_page(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_LONGEST_S", 0.01)
    driver.main(["--docs", str(docs), "--peers", "ours", "--tasks", "importing,preflight,compaction"])
    page = (docs / "BENCHMARKS.md").read_text()
    assert "| too slow | too slow | too slow | not measured | too slow |" in page
    assert "| 7 ms | 9 MB |" in page


def test_the_digest_sees_a_changed_file_and_a_new_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("a = 1")
    before = basis.digest([one])
    one.write_text("a = 2")
    changed = basis.digest([one])
    one.rename(other)
    assert len({before, changed, basis.digest([other])}) == 3


class _Trimmer(Peer):
    """Gives what it was told to give, whatever it gets."""

    def __init__(self, first: list[Item], *others: list[Item]) -> None:
        super().__init__()
        self._first, self._others = first, others

    def default(self, budget: int) -> Compaction:
        return lambda native: self._first

    def tuned(self, budget: int) -> Iterator[Compaction]:
        for other in self._others:
            yield lambda native, other=other: other  # type: ignore[misc]


def _outcome(peer: Peer, budget: int = 1_000) -> dict[str, Any]:
    case = Case("s", [_ASK, _TOLD], budget, (_NEEDED,), (_NEEDED,))
    found = tasks._Outcome()
    found.add(peer, case, half=1)
    return found.summed()


@pytest.mark.parametrize("first", [[], [_ORPHAN, _ASK]], ids=["empty", "illegal"])
def test_an_empty_or_illegal_list_does_not_fit_so_other_settings_are_tried(first: list[Item]) -> None:
    found = _outcome(_Trimmer(first, [_ASK, _TOLD]))
    assert found["illegal"] == 1
    assert found["never_fits"] == 0
    assert found["retention_measured_half"] == 1.0


def test_what_is_never_legal_keeps_nothing() -> None:
    found = _outcome(_Trimmer([_ORPHAN, _ASK, _TOLD]))
    assert (found["never_fits"], found["retention_measured_half"]) == (1, 0.0)


def test_a_list_over_the_budget_does_not_fit() -> None:
    both = [_ASK, _TOLD]
    assert _outcome(_Trimmer(both), tokens_in(both) - 1)["never_fits"] == 1
    assert _outcome(_Trimmer(both), tokens_in(both))["never_fits"] == 0


def test_a_call_that_takes_too_long_cannot_be_hidden_by_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    def patient(native: list[Item]) -> list[Item]:
        try:
            while True:
                pass
        except Exception:
            return native

    peer = _Trimmer([])
    monkeypatch.setattr(peer, "default", lambda budget: patient)
    monkeypatch.setattr(tasks._limited.__wrapped__, "__defaults__", (1,))  # type: ignore[attr-defined]
    assert _outcome(peer)["too_slow"] == 1


def test_all_that_is_needed_holds_what_the_newest_messages_hold_and_the_rest() -> None:
    filler = [
        {"role": "user" if n % 2 else "assistant", "content": f"{n} " + "some other words " * 300}
        for n in range(20)
    ]
    olds = [f"src/old_part_{n}.py" for n in range(3)]
    lines = [{"role": "user", "content": f"The part {name} is about the opening hours"} for name in olds]
    newest = {"role": "user", "content": "The part src/new_part.py is about the closing hours"}
    later = {"role": "assistant", "content": f"I open {' and '.join(olds)} and src/new_part.py now."}
    messages = [*lines, *filler, newest, *[later] * 24]
    (case, *_) = cases_of({"id": "s", "messages": messages}, 0.25)
    assert [one.name for one in case.needed] == olds
    assert [one.name for one in case.needed_or_recent] == [*olds, "src/new_part.py"]


def test_the_page_says_what_was_imported_and_which_half_is_scored(docs: Path) -> None:
    _run(docs)
    page = page_of(driver.known(docs / "benchmarks.json"))
    assert "Imported: `from compact import CompactConfig, CompactManager`" in page
    assert "that nothing in compact was chosen by" in page
