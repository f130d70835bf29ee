"""The compaction specification's requirement "Configuration System", one test per scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from compact.config import CompactConfig
from compact.errors import ConfigError


def test_yaml_configuration_loading(tmp_path: Path) -> None:
    file = tmp_path / "compact.yaml"
    file.write_text("model: gpt-4\npolicy:\n  trigger_pct: 0.7\n  roles_never_prune: [system]\n")
    config = CompactConfig.load(file)
    assert (config.model, config.policy.trigger_pct, config.policy.roles_never_prune) == (
        "gpt-4",
        0.7,
        ["system"],
    )

    file.write_text("policy:\n  trigger_pct: 1.7\n")
    with pytest.raises(ConfigError, match=r"policy\.trigger_pct must be 0\.0-1\.0, got 1\.7"):
        CompactConfig.load(file)


def test_environment_variable_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "compact.yaml"
    file.write_text("policy:\n  trigger_pct: 0.85\n")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    assert CompactConfig.load(file).policy.trigger_pct == 0.9


def test_sensible_defaults() -> None:
    policy = CompactConfig().policy
    assert policy.trigger_pct == 0.85
    assert policy.hard_cap_buffer == 1500
    assert policy.keep_recent_turns == 6
    assert policy.keep_tool_io_pairs == 4
    assert policy.roles_never_prune == ["system", "developer"]
    assert policy.strategy == "task_state"


def test_budget_calculation_with_buffer_reserve() -> None:
    config = CompactConfig(model="gpt-4", max_context_tokens=128_000)
    assert config.budget(128_000) == 126_500


def test_automatic_trigger_at_85_percent_threshold() -> None:
    assert CompactConfig().trigger_tokens(128_000) == 108_800
