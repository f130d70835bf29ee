"""The context compaction PRD's `compact:` block for each agent of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from compact import CompactConfig, ConfigError
from compact.tools.cli.app import run

SHARED: dict[str, Any] = {"model": "gpt-4o", "policy": {"keep_recent_turns": 4, "token_threshold": 30_000}}
BLOCK = {"max_tokens": 1_500, "retention_window": 3, "model": "google/gemini-2.0-flash-001"}
AGENTS: dict[str, Any] = {
    "coder": {"model": "claude-sonnet-4-5", "compact": BLOCK},
    "writer": {"policy": {"keep_recent_turns": 2}},
    "plain": None,
}
LISTED = [
    {"id": "coder", **AGENTS["coder"]},
    {"name": "writer", **AGENTS["writer"]},
    {"id": "plain"},
]


def written(folder: Path, agents: Any, form: str = "yaml", **shared: Any) -> Path:
    file = folder / f"compact.{form}"
    content = {**SHARED, **shared, "agents": agents}
    file.write_text(json.dumps(content) if form == "json" else yaml.safe_dump(content))
    return file


@pytest.mark.parametrize("form", ["yaml", "yml", "json"])
@pytest.mark.parametrize("agents", [AGENTS, LISTED], ids=["by name", "listed"])
def test_per_agent_compact_blocks(tmp_path: Path, agents: Any, form: str) -> None:
    file = written(tmp_path, agents, form)
    coder = CompactConfig.load(file, agent="coder")
    assert (coder.model, coder.summary.model) == ("claude-sonnet-4-5", "google/gemini-2.0-flash-001")
    assert (coder.policy.layout, coder.policy.token_threshold) == ("selective", 60_000)
    assert (coder.summary.max_tokens, coder.policy.retention_window) == (1_500, 3)
    assert coder.policy.keep_recent_turns == 4, "what its block does not say is shared"
    writer = CompactConfig.load(file, agent="writer")
    assert (writer.model, writer.policy.layout) == ("gpt-4o", "layered")
    assert (writer.policy.keep_recent_turns, writer.policy.token_threshold) == (2, 30_000)
    shared = CompactConfig(**SHARED)
    assert CompactConfig.load(file) == CompactConfig.load(file, agent="plain") == shared


def test_sources_name_the_agent_and_later_sources_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, AGENTS)
    monkeypatch.setenv("COMPACT_RETENTION_WINDOW", "9")
    config = CompactConfig.load(file, agent="coder", model="o3")
    assert (config.policy.retention_window, config.model) == (9, "o3")
    assert config.sources["summary.max_tokens"] == f"file {file}, agents.coder, compact.max_tokens"
    assert config.sources["policy.keep_recent_turns"] == f"file {file}"


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        ({"coder": 5}, "agents.coder must be a mapping of settings, got 5"),
        ({"coder": ["compact"]}, "agents.coder must be a mapping of settings"),
        ({5: {}}, "agents.5 must have an id: a name of its own, got 5"),
        ([{"compact": {}}], "agents[0] must have an id: a name of its own, got null"),
        ([{"id": "a"}, {"name": "a"}], 'agents[1] must have an id of its own, got "a" a second time'),
        (["coder"], "agents[0] must be a mapping of settings"),
        ("coder", "agents must be a mapping of settings"),
        ({"coder": {"compact": {"max_token": 5}}}, "did you mean compact.max_tokens?"),
        ({"coder": {"compact": {"max_tokens": -5}}}, "agents.coder, compact.max_tokens)"),
        ({"coder": {"policy": {"trigger_pct": 1.7}}}, "policy.trigger_pct must be 0.0-1.0, got 1.7 (file"),
        ({"coder": {"prompt": "x"}}, "prompt is not a setting"),
        ({"coder": {"agents": {}}}, "agents stands at the top of a file"),
    ],
)
@pytest.mark.parametrize("agent", [None, "other"])
def test_a_wrong_agent_is_named_whichever_agent_is_asked_for(
    tmp_path: Path, agents: Any, problem: str, agent: str | None
) -> None:
    if isinstance(agents, dict):
        agents = {**agents, "other": {}}
    elif isinstance(agents, list):
        agents = [*agents, {"id": "other"}]
    with pytest.raises(ConfigError) as caught:
        CompactConfig.load(written(tmp_path, agents), agent=agent)
    assert problem in str(caught.value)
    assert "compact.yaml" in str(caught.value)


def test_an_agent_that_is_not_there_is_an_error_that_lists_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, AGENTS)
    with pytest.raises(
        ConfigError, match=r'there is no agent "codr" in file .*; there are coder, plain, writer'
    ):
        CompactConfig.load(file, agent="codr")
    file.write_text("model: gpt-4o\n")
    with pytest.raises(ConfigError, match=r'there is no agent "coder" in file .*; it names no agents'):
        CompactConfig.load(file, agent="coder")
    monkeypatch.chdir(tmp_path)
    file.unlink()
    with pytest.raises(ConfigError, match="no file was found"):
        CompactConfig.load(agent="coder")
    with pytest.raises(ConfigError, match='there is no agent ""'):
        CompactConfig.load(agent="")
    assert CompactConfig.load() == CompactConfig()


def test_agents_are_no_argument() -> None:
    with pytest.raises(ConfigError, match="agents stands at the top of a file"):
        CompactConfig(agents=AGENTS)  # type: ignore[call-arg]


def test_the_command_shows_the_settings_of_an_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, AGENTS)
    assert run(["config", "show", str(file), "--agent", "coder", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["settings"]["summary.max_tokens"]
    assert shown == {"value": 1_500, "source": f"file {file}, agents.coder, compact.max_tokens"}
    assert run(["config", "show", str(file), "--agent", "codr"]) == 2
    assert "there are coder, plain, writer" in capsys.readouterr().err
    assert run(["config", "check", str(file)]) == 0
    assert run(["config", "check", str(written(tmp_path, {"a": {"policy": {"trigger_pct": 7}}}))]) == 1
