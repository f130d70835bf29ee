"""Every example runs offline, out of the box, in an empty folder."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from support.ariadne import Ariadne
from support.quiet import no_tracing

pytestmark = pytest.mark.no_cover

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "offline_model")


def test_there_is_an_example_for_every_host() -> None:
    assert set(SCRIPTS) >= {"agents_sdk_minimal", "coding_session", "long_research", "event_stream_agent"}
    assert len(SCRIPTS) >= 8


# LiteLLM writes its log in a task of its own, which the end of an event loop cuts off.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs_and_compacts(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    (line,) = [line for line in printed.splitlines() if line.startswith("compactions:")]
    assert int(line.split()[1]) >= 1
    assert (tmp_path / ".compact" / "archive").is_dir()
    assert ariadne.refusals == []
    mentions = "ARIADNE_URL" in (EXAMPLES / f"{script}.py").read_text("utf-8")
    finished = [span for span in ariadne.spans if span["name"] == "compact.finished"]
    assert len(finished) >= 1 if mentions else ariadne.spans == []
