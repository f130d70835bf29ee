"""`compact price`: what it prints, the JSON of its contract, and its reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from compact import CompactConfig
from compact.tokens.prices import card_names
from compact.tools.cli.app import run

POLICIES = ["recorded", "replayed", "uncompacted", "trigger_85", "auto", "trigger_40"]


@pytest.fixture
def timelines(tmp_path: Path) -> Path:
    """Two sessions: one with pauses longer than five minutes, one that outgrows its window."""
    lines = []
    for name, pauses in (("paused", [10, 400] * 12), ("large", [10] * 90)):
        at_s, size, requests = 0.0, 40_000, []
        for n, pause in enumerate([0, *pauses]):
            at_s += pause
            served = size if n and pause <= 300 else 0
            size += 2_000 if n else 0
            entry = {"fresh": 4, "cache_read": served, "cache_write": size - served - 4, "write_1h": 0}
            requests.append({"start": at_s, "end": at_s + 2, "output": 50, **entry})
        lines.append(json.dumps({"id": name, "requests": requests}))
    path = tmp_path / "timelines.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def priced(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["price", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_json_is_that_of_the_contract(timelines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = priced(capsys, str(timelines))
    assert list(found["cards"]) == list(card_names())
    for policies in found["cards"].values():
        assert list(policies) == POLICIES
        for numbers in policies.values():
            assert numbers.keys() >= {"cost", "passes", "cache_read", "cache_write", "fresh", "output"}
    assert [session["id"] for session in found["sessions"]] == ["paused", "large"]
    for card, policies in found["cards"].items():
        for policy, numbers in policies.items():
            each = [session["cards"][card][policy] for session in found["sessions"]]
            assert numbers["cost"] == pytest.approx(sum(each), abs=1e-5)


def test_recorded_has_the_tokens_of_the_file(timelines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = priced(capsys, str(timelines), "--card", "anthropic-5m")
    assert list(found["cards"]) == ["anthropic-5m"]
    recorded = found["cards"]["anthropic-5m"]["recorded"]
    entries = [
        entry for line in timelines.read_text("utf-8").splitlines() for entry in json.loads(line)["requests"]
    ]
    for name in ("cache_read", "cache_write", "fresh", "output"):
        assert recorded[name] == sum(entry[name] for entry in entries)
    replayed = found["cards"]["anthropic-5m"]["replayed"]
    assert replayed["cost"] == pytest.approx(recorded["cost"], rel=0.01)


def test_what_auto_makes_dearer_is_listed_and_was_forced(
    timelines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = priced(capsys, str(timelines), "--card", "anthropic-1h")
    for one in found["dearer"]:
        assert one["forced"] > 0
        assert one["cost"] > one["other_cost"]


def test_a_larger_window_needs_fewer_passes(timelines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = priced(capsys, str(timelines), "--card", "gemini", "--window", "100k")
    large = priced(capsys, str(timelines), "--card", "gemini", "--window", "1m")
    assert small["cards"]["gemini"]["trigger_85"]["passes"] > 0
    assert large["cards"]["gemini"]["trigger_85"]["passes"] == 0
    plain = [made["cards"]["gemini"]["uncompacted"] for made in (small, large)]
    assert plain[0] == plain[1], "it ignores the window"


def test_the_configuration_can_be_pasted(timelines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["price", str(timelines), "--card", "anthropic-5m"]) == 0
    out = capsys.readouterr().out
    assert "against trigger_85" in out
    assert "\N{FULL BLOCK}" in out
    start = out.index("max_context_tokens")
    text = out[start : out.index("\n\n", start)]
    config = CompactConfig(**yaml.safe_load(text))
    assert (config.max_context_tokens, config.policy.economy) == (200_000, "auto")


def test_reports_say_the_same_as_the_table(timelines: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"prices{ending}" for ending in (".html", ".md", ".svg", ".json")]
    options = [option for file in files for option in ("--report", str(file))]
    assert run(["price", str(timelines), "--card", "openai-30m", *options]) == 0
    html, markdown, svg, data = (file.read_text("utf-8") for file in files)
    cost = json.loads(data)["cards"]["openai-30m"]["auto"]["cost"]
    for text in (html, markdown, svg):
        assert f"${cost:,.2f}" in text
        assert "trigger_40" in text
    assert "<script" not in html
    assert svg.startswith("<svg ")


def test_an_archive_is_read_by_its_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from compact import CompactManager

    root = tmp_path / "archive"
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=8_000, archive={"adapter": "fs", "root": str(root)}
    )
    with CompactManager(config) as manager:
        for n in range(3):
            manager.preflight("live", [{"role": "user", "content": f"word{k} " * 20} for k in range(n + 2)])
    found = priced(capsys, str(root), "--card", "gemini")
    assert [session["id"] for session in found["sessions"]] == ["live"]


def test_a_transcript_without_times_is_priced_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = [{"role": role, "content": "word " * 50} for role in ("user", "assistant", "user", "assistant")]
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps({"messages": talk}) + "\n")
    assert run(["price", str(file), "--card", "gemini"]) == 0
    assert "1 session without times: their caches stay warm" in capsys.readouterr().out


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["price", str(tmp_path / "absent.jsonl")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert run(["price", str(tmp_path), "--card", "anthropic-5m"]) == 2
    assert "has no transcripts" in capsys.readouterr().err
    file = tmp_path / "t.jsonl"
    file.write_text('{"id": "a", "requests": []}\n')
    assert run(["price", str(file)]) == 2
    assert "no session with a request" in capsys.readouterr().err
    assert run(["price", str(file), "--card", "nothing"]) == 2
    assert "there are anthropic-5m" in capsys.readouterr().err
