"""Every example runs offline, out of the box, in an empty folder."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from support.ariadne import Ariadne
from support.quiet import no_tracing

pytestmark = pytest.mark.no_cover

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HELPERS = {"offline_model", "outcome"}
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in HELPERS)


def test_there_is_an_example_for_every_host() -> None:
    assert set(SCRIPTS) >= {"agents_sdk_minimal", "coding_session", "long_research", "event_stream_agent"}
    assert len(SCRIPTS) >= 8


def logged(root: Path) -> list[dict[str, Any]]:
    """Every event in the archive, as its files have it."""
    files = sorted(root.glob("*/events.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


# LiteLLM writes its log in a task of its own, which the end of an event loop cuts off.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs_and_compacts(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several times, with a summary, and what it prints at the end is what its archive says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    ariadne = Ariadne()
    monkeypatch.setenv("ARIADNE_URL", ariadne.url)
    try:
        with no_tracing():
            runpy.run_path(str(EXAMPLES / f"{script}.py"), run_name="__main__")
    finally:
        ariadne.stop()
    printed = capsys.readouterr().out
    told = {what: int(number) for what, number in re.findall(r"^([a-z ]+): (\d+)$", printed, re.MULTILINE)}
    events = logged(tmp_path / ".compact" / "archive")
    pruned = [event["properties"] for event in events if event["name"] == "compact.pruned_messages"]
    summaries = [event["payload"] for event in events if event["name"] == "compact.summary_created"]
    assert told == {
        "compactions": len(pruned),
        "summaries": len(summaries),
        "tokens taken out": sum(each["tokens_before"] - each["tokens_after"] for each in pruned),
    }
    assert told["compactions"] >= 2
    assert told["summaries"] >= 1
    assert all("<COMPACT-SUMMARY" in each["summary"] for each in summaries)
    assert ariadne.refusals == []
    if "ARIADNE_URL" in (EXAMPLES / f"{script}.py").read_text("utf-8"):
        assert [span["span_id"] for span in ariadne.spans] == [event["span_id"] for event in events]
    else:
        assert ariadne.spans == []
    if script == "long_research":
        check_figures_of_research(printed)


def check_figures_of_research(printed: str) -> None:
    """Every round stores more, and the context stays within the window."""
    stored = [int(n) for n in re.findall(r"stored: \d+ items, (\d+) tokens", printed)]
    kept = [int(n) for n in re.findall(r"in the context: \d+ items, (\d+) tokens", printed)]
    assert len(stored) == len(kept) == 3
    assert stored == sorted(stored)
    assert kept[-1] < 12_000 < stored[-1]
