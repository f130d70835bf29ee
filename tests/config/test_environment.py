from __future__ import annotations

from typing import Any

import pytest

from compact.config import CompactConfig
from compact.errors import ConfigError


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("COMPACT_MODEL", "o3", "model", "o3"),
        ("COMPACT_MODEL", "123", "model", "123"),
        ("COMPACT_MODEL", "null", "model", "null"),
        ("COMPACT_MAX_CONTEXT_TOKENS", "200_000", "max_context_tokens", 200_000),
        ("COMPACT_MAX_CONTEXT_TOKENS", "null", "max_context_tokens", None),
        ("COMPACT_TRIGGER_PCT", "0.5", "policy.trigger_pct", 0.5),
        ("COMPACT_TRIGGER_PCT", " 1 ", "policy.trigger_pct", 1),
        ("COMPACT_POLICY__TRIGGER_PCT", ".75", "policy.trigger_pct", 0.75),
        ("COMPACT_TOKEN_THRESHOLD", "60000", "policy.token_threshold", 60_000),
        ("COMPACT_TOKEN_THRESHOLD", "none", "policy.token_threshold", None),
        (
            "COMPACT_ROLES_NEVER_PRUNE",
            "system, developer,user",
            "policy.roles_never_prune",
            ["system", "developer", "user"],
        ),
        ("COMPACT_ROLES_NEVER_PRUNE", '["system"]', "policy.roles_never_prune", ["system"]),
        ("COMPACT_ROLES_NEVER_PRUNE", "[]", "policy.roles_never_prune", []),
        ("COMPACT_WINDOWS", '{"m": 5000, "n": 6000}', "windows", {"m": 5000, "n": 6000}),
        ("COMPACT_WINDOWS", "{m: 5000}", "windows", {"m": 5000}),
        ("COMPACT_SUMMARY__PROMPT", "[be brief], please", "summary.prompt", "[be brief], please"),
        ("COMPACT_SUMMARY__TEMPERATURE", "1e-1", "summary.temperature", 0.1),
        ("COMPACT_SUMMARY__SEED", "-7", "summary.seed", -7),
        ("COMPACT_REDACTION__ENABLED", "off", "redaction.enabled", False),
        ("COMPACT_REDACTION__ENABLED", "TRUE", "redaction.enabled", True),
        ("COMPACT_REDACTION__RULES", "pii", "redaction.rules", "pii"),
        ("COMPACT_REDACTION__RULES", "default,pii", "redaction.rules", ["default", "pii"]),
        ("COMPACT_REDACTION__EXTRA", r"\d{3,4}", "redaction.extra", [r"\d{3,4}"]),
        ("COMPACT_TRACING__EXPORTERS", "jsonl,console", "tracing.exporters", ["jsonl", "console"]),
        ("COMPACT_METER__MEMO_BYTES", "0", "meter.memo_bytes", 0),
    ],
)
def test_a_variable_is_read_as_its_field_wants_it(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, path: str, value: Any
) -> None:
    monkeypatch.setenv(variable, text)
    config = CompactConfig()
    row = next(row for row in config.explain() if row.path == path)
    assert (row.value, row.source) == (value, f"environment {variable}")


def test_every_setting_has_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any field by its path, and any policy field by its own name."""
    for row in CompactConfig().explain():
        path = row.path.split(".")
        names = ["COMPACT_" + "__".join(path).upper()]
        if path[0] == "policy":
            names.append("COMPACT_" + path[1].upper())
        for name in names:
            with monkeypatch.context() as patch:
                patch.setenv(name, "{")
                try:
                    source = CompactConfig().sources[row.path]
                except ConfigError as error:
                    source = str(error)
                assert f"environment {name}" in source


def test_the_long_name_wins_over_the_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.6")
    monkeypatch.setenv("COMPACT_POLICY__TRIGGER_PCT", "0.7")
    assert CompactConfig().policy.trigger_pct == 0.7


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "")
    monkeypatch.setenv("COMPACT_POLICY__NONSENSE", "  ")
    assert CompactConfig() == CompactConfig(policy={"trigger_pct": 0.85})


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        (
            "COMPACT_TRIGGER_PCT",
            "1.7",
            "policy.trigger_pct must be 0.0-1.0, got 1.7 (environment COMPACT_TRIGGER_PCT)",
        ),
        (
            "COMPACT_POLICY__TRIGGER_PCT",
            "high",
            'policy.trigger_pct must be 0.0-1.0, got "high" (environment COMPACT_POLICY__TRIGGER_PCT)',
        ),
        (
            "COMPACT_POLICY__TRIGER_PCT",
            "0.9",
            "policy.triger_pct is not a setting; did you mean policy.trigger_pct? "
            "(environment COMPACT_POLICY__TRIGER_PCT)",
        ),
        (
            "COMPACT_POLCY__TRIGGER_PCT",
            "0.9",
            "polcy is not a setting; did you mean policy? (environment COMPACT_POLCY__TRIGGER_PCT)",
        ),
        (
            "COMPACT_WINDOWS",
            "{broken",
            "windows must be a mapping of model names to tokens, each a whole number >= 1, "
            'got "{broken" (environment COMPACT_WINDOWS)',
        ),
        (
            "COMPACT_REDACTION__ENABLED",
            "maybe",
            'redaction.enabled must be true or false, got "maybe" (environment COMPACT_REDACTION__ENABLED)',
        ),
        (
            "COMPACT_SUMMARIZE_PCT",
            "0.1",
            "policy.summarize_pct must be >= policy.trigger_pct (0.85), got 0.1 (environment COMPACT_SUMMARIZE_PCT)",
        ),
    ],
)
def test_an_error_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, message: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigError) as caught:
        CompactConfig()
    assert str(caught.value) == message


def test_wrong_variables_are_listed_with_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_POLICY__TRIGER_PCT", "0.9")
    monkeypatch.setenv("COMPACT_MAX_TURNS", "none of them")
    with pytest.raises(ConfigError) as caught:
        CompactConfig(compact={"max_token": 5}, model="")
    assert [problem.path for problem in caught.value.problems] == [
        "policy.triger_pct",
        "compact.max_token",
        "policy.max_turns",
        "model",
    ]


def test_a_conflict_names_the_variable_that_caused_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_MAX_CONTEXT_TOKENS", "5000")
    with pytest.raises(
        ConfigError, match=r"max_context_tokens \(5000\), got 5000 \+ 0 \(environment COMPACT_MAX"
    ):
        CompactConfig(policy={"hard_cap_buffer": 5000})


def test_a_variable_of_another_program_is_ignored_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_DISC_DRIVE", "/dev/sr0")
    monkeypatch.setenv("COMPACT_POLICY", "{}")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    assert CompactConfig().policy.trigger_pct == 0.9
    assert CompactConfig.ignored_variables() == ["COMPACT_DISC_DRIVE", "COMPACT_POLICY"]
