from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.config import ArchiveConfig, CompactConfig, OffloadConfig, PolicyConfig, SummaryConfig, share_of
from compact.errors import CompactError, ConfigError


def refused(**settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(**settings)
    return str(caught.value)


def test_every_default_of_the_contract() -> None:
    assert CompactConfig().model_dump(exclude={"offload": {"write_tools"}}) == {
        "model": "gpt-4o",
        "tenant": None,
        "max_context_tokens": None,
        "windows": {},
        "models": {},
        "policy": {
            "trigger_pct": 0.85,
            "hard_cap_buffer": 1500,
            "keep_recent_turns": 6,
            "keep_tool_io_pairs": 4,
            "roles_never_prune": ["system", "developer"],
            "strategy": "task_state",
            "layout": "layered",
            "token_threshold": None,
            "message_threshold": None,
            "turn_threshold": None,
            "summarize_pct": None,
            "target_pct": 0.5,
            "background_pct": 0.75,
            "ledger_share": 0.1,
            "calls_between_passes": 6,
            "retention_window": 6,
            "recent_share": None,
            "max_turns": None,
            "reserve_output_tokens": 0,
            "thinking": None,
            "economy": "auto",
            "timeout_s": 120,
            "rescue_timeout_s": 15,
            "sessions_in_memory": 256,
        },
        "summary": {
            "max_tokens": 2000,
            "model": None,
            "base_url": None,
            "prompt": None,
            "summary_tag": "summary",
            "seed": 42,
            "temperature": 0,
            "timeout_s": 60,
            "max_reply_bytes": 2_000_000,
            "fallback": "extractive",
        },
        "offload": {
            "large_result_tokens": 20000,
            "preview_lines": 10,
            "preview_tokens": 400,
            "excerpt_share": 0.25,
        },
        "archive": {
            "adapter": "fs",
            "root": ".compact/archive",
            "bucket": None,
            "prefix": None,
            "kms_key_id": None,
            "endpoint_url": None,
            "timeout_s": 5,
            "step_timeout_s": 60,
            "retries": 2,
            "spool_root": ".compact/spool",
            "spool_retry_s": 30,
            "lock_timeout_s": 5,
            "attempt_ttl_s": 86400,
            "mac_key": None,
        },
        "redaction": {"enabled": True, "rules": "default", "extra": [], "live": "off"},
        "tracing": {
            "exporters": ["jsonl"],
            "ariadne_url": None,
            "ariadne_token": None,
            "otlp_endpoint": None,
            "queue_events": 10_000,
            "flush_timeout_s": 5,
        },
        "guard": {"min_context_tokens": 4000, "warn_context_tokens": 8000, "min_room_share": 0.02},
        "recovery": {
            "max_compactions": 3,
            "shrink_share": 0.7,
            "breaker_failures": 3,
            "breaker_pause_s": 60,
            "ineffective_passes": 2,
            "regrow_share": 0.1,
        },
        "meter": {"memo_bytes": 64_000_000},
        "economy": {"min_tokens": 40_000},
        "proxy": {
            "deadline_ms": 250,
            "anthropic_url": "https://api.anthropic.com",
            "openai_url": "https://api.openai.com",
            "gemini_url": "https://generativelanguage.googleapis.com",
            "token": None,
            "max_body_bytes": 64_000_000,
            "max_header_bytes": 65_536,
            "connect_timeout_s": 10,
            "silence_timeout_s": 900,
        },
    }
    assert {"write_file", "edit_file", "Write", "Edit", "apply_patch"} <= set(OffloadConfig().write_tools)


def test_a_section_may_be_a_mapping_or_an_object_and_is_merged_by_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COMPACT_HARD_CAP_BUFFER", "900")
    by_mapping = CompactConfig(policy={"trigger_pct": 0.7})
    by_object = CompactConfig(policy=PolicyConfig(trigger_pct=0.7))
    assert by_mapping == by_object
    assert by_object.policy.hard_cap_buffer == 900


def test_a_keyword_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    monkeypatch.setenv("COMPACT_MODEL", "gpt-4.1")
    config = CompactConfig(policy={"trigger_pct": 0.6})
    assert (config.policy.trigger_pct, config.model) == (0.6, "gpt-4.1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": {"trigger_pct": 1.7}}, "policy.trigger_pct must be 0.0-1.0, got 1.7"),
        ({"policy": {"trigger_pct": -0.1}}, "policy.trigger_pct must be 0.0-1.0, got -0.1"),
        ({"policy": {"trigger_pct": float("nan")}}, "policy.trigger_pct must be 0.0-1.0, got nan"),
        ({"policy": {"trigger_pct": "0.9"}}, 'policy.trigger_pct must be 0.0-1.0, got "0.9"'),
        ({"policy": {"trigger_pct": None}}, "policy.trigger_pct must be 0.0-1.0, got null"),
        ({"policy": {"summarize_pct": 2}}, "policy.summarize_pct must be 0.0-1.0 or null, got 2"),
        ({"policy": {"keep_recent_turns": 0}}, "policy.keep_recent_turns must be a whole number >= 1, got 0"),
        (
            {"policy": {"keep_recent_turns": True}},
            "policy.keep_recent_turns must be a whole number >= 1, got true",
        ),
        (
            {"policy": {"keep_recent_turns": 2.5}},
            "policy.keep_recent_turns must be a whole number >= 1, got 2.5",
        ),
        ({"policy": {"layout": "flat"}}, 'policy.layout must be one of layered, selective, got "flat"'),
        (
            {"policy": {"roles_never_prune": "system"}},
            'policy.roles_never_prune must be a list of names, got "system"',
        ),
        ({"policy": {"timeout_s": 0}}, "policy.timeout_s must be a number of seconds > 0, got 0"),
        ({"policy": {"strategy": ""}}, 'policy.strategy must be a name of letters, digits, _ and -, got ""'),
        (
            {"summary": {"fallback": "hope"}},
            'summary.fallback must be one of extractive, pruning-only, got "hope"',
        ),
        (
            {"archive": {"adapter": "ftp"}},
            'archive.adapter must be one of fs, object_store, s3, memory, got "ftp"',
        ),
        ({"redaction": {"enabled": "no"}}, 'redaction.enabled must be true or false, got "no"'),
        ({"redaction": {"rules": 5}}, "redaction.rules must be a name or a list of names, got 5"),
        ({"redaction": {"live": "on"}}, 'redaction.live must be one of off, secrets, pii, got "on"'),
        ({"redaction": {"live": True}}, "redaction.live must be one of off, secrets, pii, got true"),
        (
            {"tracing": {"exporters": ["jsonl", "fax"]}},
            "tracing.exporters must be a list, each one of jsonl, console, ariadne, agents_sdk, otlp, "
            'got ["jsonl", "fax"]',
        ),
        ({"model": ""}, 'model must be a text that is not empty, got ""'),
        ({"max_context_tokens": 0}, "max_context_tokens must be a whole number >= 1 or null, got 0"),
        (
            {"windows": {"m": 0}},
            'windows must be a mapping of model names to tokens, each a whole number >= 1, got {"m": 0}',
        ),
        ({"policy": 5}, "policy must be a mapping of settings, got 5"),
        ({"policy": [1]}, "policy must be a mapping of settings, got [1]"),
    ],
)
def test_a_wrong_value_names_the_field_what_is_allowed_and_what_was_given(
    settings: dict[str, Any], message: str
) -> None:
    assert refused(**settings) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"policy": {"triger_pct": 0.9}},
            "policy.triger_pct is not a setting; did you mean policy.trigger_pct?",
        ),
        ({"trigger_pct": 0.9}, "trigger_pct is not a setting; did you mean policy.trigger_pct?"),
        (
            {"summary": {"preview_lines": 3}},
            "summary.preview_lines is not a setting; did you mean offload.preview_lines?",
        ),
        ({"polcy": {}}, "polcy is not a setting; did you mean policy?"),
        ({"meter": {"zzz": 1}}, "meter.zzz is not a setting; meter has memo_bytes"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_the_nearest(
    settings: dict[str, Any], message: str
) -> None:
    assert refused(**settings) == message


def test_an_unknown_name_without_a_neighbour_lists_what_there_is() -> None:
    assert refused(qqq=1).startswith(
        "qqq is not a setting; there are model, tenant, max_context_tokens, windows, models, policy, "
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rules": "defualt"}, "redaction.rules: no redaction rule or set is called 'defualt'"),
        ({"rules": ["pii", "x"]}, "redaction.rules[1]: no redaction rule or set is called 'x'"),
        ({"extra": ["pi"]}, "redaction.extra[0]: no redaction rule or set is called 'pi'"),
        ({"extra": [""]}, "redaction.extra[0]: no redaction rule or set is called ''"),
        ({"extra": [r"\d+", "(?=x)"]}, "redaction.extra[1]: redaction rule 'pattern-"),
        ({"extra": ["x*"]}, "its pattern matches the empty text"),
        ({"extra": [{"name": "t"}]}, "redaction.extra[0]: redaction rule 't' is refused: it has no pattern"),
        ({"extra": [{"id": "t", "pattern": "a", "colour": 1}]}, "redaction.extra[0]: redaction rule 't'"),
        ({"extra": [5]}, "redaction.extra must be a list of names, patterns (RE2), and mappings"),
    ],
)
def test_a_wrong_redaction_rule_is_refused_when_it_is_loaded(settings: dict[str, Any], message: str) -> None:
    assert message in refused(redaction=settings)


@pytest.mark.parametrize(
    ("written", "live"), [("off", "off"), (False, "off"), ("secrets", "secrets"), ("pii", "pii")]
)
def test_live_masking_is_chosen_by_a_word_and_off_may_be_false(written: Any, live: str) -> None:
    assert CompactConfig(redaction={"live": written}).redaction.live == live


def test_all_problems_are_listed_together() -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(policy={"trigger_pct": 2, "hard_cap_buffer": -1}, model=5, summary={"max_token": 1})  # type: ignore[arg-type]
    assert str(caught.value).splitlines() == [
        "4 settings are wrong:",
        "  summary.max_token is not a setting; did you mean summary.max_tokens?",
        "  policy.trigger_pct must be 0.0-1.0, got 2",
        "  policy.hard_cap_buffer must be a whole number >= 0, got -1",
        "  model must be a text that is not empty, got 5",
    ]
    assert caught.value.code == "ConfigError"
    assert isinstance(caught.value, CompactError)
    assert caught.value.path == "summary.max_token"


def test_a_section_alone_raises_the_same_error() -> None:
    with pytest.raises(ConfigError, match=r"^policy\.trigger_pct must be 0\.0-1\.0, got 1\.7$"):
        PolicyConfig(trigger_pct=1.7)
    with pytest.raises(
        ConfigError, match=r"^summary\.max_token is not a setting; did you mean summary\.max_tokens\?$"
    ):
        SummaryConfig(max_token=1)  # type: ignore[call-arg]


TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize("source", ["argument", "environment", "file"])
def test_a_token_is_read_from_anywhere_and_never_shown(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "argument":
        config = CompactConfig(tracing={"ariadne_token": TOKEN})
    elif source == "environment":
        monkeypatch.setenv("COMPACT_TRACING__ARIADNE_TOKEN", TOKEN)
        config = CompactConfig()
    else:
        (tmp_path / "compact.yaml").write_text(f"tracing: {{ariadne_token: {TOKEN}}}")
        config = CompactConfig.load(tmp_path / "compact.yaml")
    assert config.tracing.ariadne_token is not None
    assert config.tracing.ariadne_token.get_secret_value() == TOKEN
    assert config == CompactConfig(tracing=config.tracing)
    for shown in (repr(config), str(config), repr(config.explain()), config.model_dump_json(), f"{config!r}"):
        assert TOKEN not in shown
    monkeypatch.delenv("COMPACT_TRACING__ARIADNE_TOKEN", raising=False)
    assert config != CompactConfig()


@pytest.mark.parametrize("token", ["", "two words", "a\nline", "schlüssel", 12345678901234567890, ["a"]])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(token: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(tracing={"ariadne_token": token})
    assert "tracing.ariadne_token must be a text of visible ASCII without spaces or null" in str(caught.value)
    assert not token or str(token) not in str(caught.value)


def test_a_long_value_is_shortened_and_an_address_is_not_echoed() -> None:
    assert len(refused(policy={"layout": "x" * 5000})) < 150
    message = refused(archive={"endpoint_url": "ftp://user:hunter2@host"}, summary={"base_url": ["hunter2"]})
    assert "hunter2" not in message
    assert (
        "archive.endpoint_url must be an http:// or https:// address or null, got a text of 23 characters"
        in message
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"max_context_tokens": 8000, "policy": {"reserve_output_tokens": 6500}},
            "policy.hard_cap_buffer + policy.reserve_output_tokens must be smaller than max_context_tokens (8000), "
            "got 1500 + 6500",
        ),
        (
            {"policy": {"target_pct": 0.9}},
            "policy.target_pct must be <= policy.trigger_pct (0.85), got 0.9",
        ),
        (
            {"policy": {"summarize_pct": 0.5}},
            "policy.summarize_pct must be >= policy.trigger_pct (0.85), got 0.5",
        ),
        (
            {"guard": {"warn_context_tokens": 100}},
            "guard.warn_context_tokens must be >= guard.min_context_tokens (4000), got 100",
        ),
        ({"archive": {"adapter": "s3"}}, "archive.bucket must be set when archive.adapter is s3, got null"),
    ],
)
def test_settings_that_cannot_stand_together(settings: dict[str, Any], message: str) -> None:
    assert refused(**settings) == message


def test_a_default_gives_way_to_what_was_chosen() -> None:
    assert CompactConfig(policy={"trigger_pct": 0.3}).trigger_tokens(100_000) == 30_000
    assert CompactConfig(guard={"min_context_tokens": 9000}).guard.min_context_tokens == 9000
    # Such a window is the guard's to refuse.
    assert CompactConfig(max_context_tokens=1000).budget(1000) == -500


def test_equal_settings_are_equal_wherever_they_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    by_argument = CompactConfig(policy={"trigger_pct": 0.9})
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    by_environment = CompactConfig()
    assert by_argument == by_environment
    assert by_argument != CompactConfig(model="o3")
    assert by_argument.sources != by_environment.sources


def test_a_config_is_frozen_and_survives_copies() -> None:
    config = CompactConfig(model="o3", windows={"o3": 7000})
    with pytest.raises(ValueError, match="frozen"):
        config.model = "x"
    with pytest.raises(ValueError, match="frozen"):
        config.policy.trigger_pct = 0.1
    for twin in (
        pickle.loads(pickle.dumps(config)),
        copy.deepcopy(config),
        CompactConfig(**config.model_dump()),
    ):
        assert twin == config
    assert pickle.loads(pickle.dumps(config)).sources == config.sources


def test_defaults_are_not_shared() -> None:
    CompactConfig().policy.roles_never_prune.append("user")
    assert CompactConfig().policy.roles_never_prune == ["system", "developer"]


def test_a_folder_may_be_a_path_object(tmp_path: Path) -> None:
    assert ArchiveConfig(root=tmp_path).root == str(tmp_path)  # type: ignore[arg-type]


def test_sources_name_every_setting_and_explain_gives_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_POLICY__HARD_CAP_BUFFER", "700")
    config = CompactConfig.preset(
        "progressive", model="o3", windows={"o3": 9000}, models={"o3": {"output": 9}}
    )
    rows = {row.path: (row.value, row.source) for row in config.explain()}
    assert rows["model"] == ("o3", "argument")
    assert rows["policy.hard_cap_buffer"] == (700, "environment COMPACT_POLICY__HARD_CAP_BUFFER")
    assert rows["policy.summarize_pct"] == (0.95, "preset progressive")
    assert rows["summary.seed"] == (42, "default")
    assert list(rows) == list(config.sources)
    fields = sum(len(section) if isinstance(section, dict) else 1 for section in config.model_dump().values())
    assert len(rows) == fields


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("layered", {}),
        (
            "selective",
            {"layout": "selective", "token_threshold": 60_000, "retention_window": 6},
        ),
        ("progressive", {"trigger_pct": 0.85, "summarize_pct": 0.95, "recent_share": 0.2}),
    ],
)
def test_presets(name: str, expected: dict[str, Any]) -> None:
    expected = {"economy": "off", **expected}
    config = CompactConfig.preset(name)
    expected["background_pct"] = None
    assert config.policy == PolicyConfig(**expected)
    assert config.summary.max_tokens == 2000
    assert config.summary.fallback == ("pruning-only" if name == "layered" else "extractive")
    assert (config.offload.large_result_tokens, config.offload.preview_lines) == (20_000, 10)
    assert CompactConfig.preset(name, policy={"max_turns": 3}).policy == PolicyConfig(**expected, max_turns=3)


def test_the_environment_wins_over_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_RETENTION_WINDOW", "2")
    assert CompactConfig.preset("selective").policy.retention_window == 2


def test_an_unknown_preset_lists_the_presets() -> None:
    with pytest.raises(
        ConfigError, match="there is no preset 'turbo'; there are layered, selective, progressive"
    ):
        CompactConfig.preset("turbo")


def test_the_effective_trigger_is_the_smallest_limit() -> None:
    assert CompactConfig(policy={"trigger_pct": 1.0}).trigger_tokens(128_000) == 126_500
    assert CompactConfig.preset("selective").trigger_tokens(128_000) == 60_000
    assert CompactConfig(policy={"reserve_output_tokens": 16_000}).budget(128_000) == 110_500
    assert CompactConfig.preset("progressive").summarize_tokens(200_000) == 190_000
    assert CompactConfig.preset("progressive").summarize_tokens(10_000) == 8_500
    assert CompactConfig().summarize_tokens(200_000) is None


@given(percent=st.integers(0, 100), window=st.integers(0, 10_000_000))
def test_a_share_of_a_window_is_exact(percent: int, window: int) -> None:
    """No binary fraction leaks in: 0.07 of 100 is 7, not 8."""
    assert share_of(window, percent / 100) == -(-percent * window // 100)


def test_importing_the_settings_loads_no_yaml() -> None:
    code = "import sys, compact.config; compact.config.CompactConfig(); sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
