from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.messages.settings_text import SettingsProblem, load_json, load_yaml

PRD_EXAMPLE = """\
compact:
  max_tokens: 2000
  token_threshold: 60000
  retention_window: 6
  model: google/gemini-2.0-flash-001
  prompt: "{{> system-prompt-context-summarizer.hbs }}"
  summary_tag: "summary"
"""


def written(tmp_path: Path, text: str | bytes, name: str = "settings.yaml") -> Path:
    file = tmp_path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def refused(file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        CompactConfig.load(file)
    return str(caught.value)


def test_file_environment_and_arguments_in_that_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(
        tmp_path, "model: a\npolicy: {trigger_pct: 0.5, hard_cap_buffer: 1, keep_recent_turns: 2}\n"
    )
    monkeypatch.setenv("COMPACT_HARD_CAP_BUFFER", "2")
    monkeypatch.setenv("COMPACT_KEEP_RECENT_TURNS", "3")
    config = CompactConfig.load(file, policy={"keep_recent_turns": 4})
    policy = config.policy
    assert (config.model, policy.trigger_pct, policy.hard_cap_buffer, policy.keep_recent_turns) == (
        "a",
        0.5,
        2,
        4,
    )
    assert config.sources["model"] == f"file {file}"
    assert config.sources["policy.hard_cap_buffer"] == "environment COMPACT_HARD_CAP_BUFFER"
    assert config.sources["policy.keep_recent_turns"] == "argument"
    assert config.sources["policy.keep_tool_io_pairs"] == "default"


@pytest.mark.parametrize("name", ["compact.yaml", "compact.yml", "compact.json"])
def test_a_file_in_the_current_directory_is_found(tmp_path: Path, name: str) -> None:
    written(tmp_path, json.dumps({"model": "found"}), name)
    config = CompactConfig.load()
    assert config.model == "found"
    assert config.sources["model"] == f"file {name}"
    assert CompactConfig().model == "gpt-4o"


def test_without_a_file_load_gives_the_defaults() -> None:
    assert CompactConfig.load() == CompactConfig()


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "policy:\n  # trigger_pct: 0.9\n", "\ufeffmodel: gpt-4o\n"]
)
def test_a_file_that_says_nothing_new(tmp_path: Path, text: str) -> None:
    assert CompactConfig.load(written(tmp_path, text)) == CompactConfig()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.yaml", "policy:\n  trigger_pct: [1\n", "is not YAML: line 3, column 1: "),
        ("c.yaml", "policy:\n\ttrigger_pct: 1\n", "is not YAML: line 2, column 1: "),
        ("c.yaml", "a: 1\nb: \x01\n", "is not YAML: line 2: "),
        ("c.yaml", "!!python/object:os.system {}", "is not YAML: line 1, column 1: "),
        ("c.yaml", "- a\n- b\n", "must hold a mapping of settings, got a list"),
        ("c.yaml", "just words", "must hold a mapping of settings, got a str"),
        ("c.yaml", "[" * 1200, "is not YAML"),
        ("c.json", '{"policy": {"trigger_pct": 0.9,}}', "is not JSON: line 1, column 32: "),
        ("c.json", "", "is not JSON: line 1, column 1: "),
        ("c.json", "[" * 60_000, "is not JSON"),
        ("c.yaml", "windows: &w {a: *w}", "is not YAML: line 1, column 17: aliases (*w) are not supported"),
        ("c.yaml", "a: &a [x]\nb: [*a, *a]", "is not YAML: line 2, column 5: aliases (*a) are not supported"),
        ("c.yaml", "policy: {<<: &p {max_turns: 1}}\nx: {<<: *p}", "is not YAML: line 2, column 9: aliases"),
        ("c.yaml", "model: a\nmodel: b", "is not YAML: line 2, column 1: the key 'model' is given twice"),
        ("c.yaml", "policy: {max_turns: 1, 'max_turns': 2}", "is not YAML: line 1, column 24: the key"),
        ("c.json", '{"model": "a", "model": "b"}', "is not JSON: the key 'model' is given twice"),
        ("c.yaml", "a: " + "[" * 50, "is not YAML: line 1, column 43: nested deeper than 40"),
        (
            "c.yaml",
            "seed: " + "1:" * 30_000 + "1",
            "is not YAML: line 1, column 7: a number of 60,001 characters",
        ),
        ("c.yaml", "#" * 64_001, "is larger than 64,000 bytes"),
        ("c.json", " " * 64_001, "is larger than 64,000 bytes"),
        ("c.json", '{"a": ' * 40 + "1" + "}" * 40, "is not JSON: nested deeper than 40"),
        ("c.json", '{"seed": ' + "1" * 5_000 + "}", "is not JSON: a value cannot be read: "),
        (
            "c.yaml",
            f"policy: {{trigger_pct: {'1:' * 400}1.0}}",
            "is not YAML: line 1, column 23: a number of 803 characters",
        ),
        ("c.yaml", "a: 2024-05-40", "is not YAML: line 1, column 4: '2024-05-40' cannot be read: "),
        ("c.yaml", "? [a]\n: 1", "is not YAML: line 1, column 3: a key must be a plain value"),
        ("c.yaml", "a: {? {b: 1} : 1}", "is not YAML: line 1, column 7: a key must be a plain value"),
        ("c.yaml", "<<: {model: a}", "is not YAML: line 1, column 1: merges (<<) are not supported"),
        ("c.yaml", "policy: {<<: [{max_turns: 1}]}", "is not YAML: line 1, column 10: merges (<<) are"),
        ("c.yaml", "windows: {1: 5, '1': 6}", "is not YAML: line 1, column 17: the key '1' is given twice"),
        ("c.yaml", b"model: \xff\xfe", "is not UTF-8 text: byte 7 is 0xff"),
        ("c.yaml", bytes(range(256)), "is not UTF-8 text: byte 128 is 0x80"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(
    tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    file = written(tmp_path, text, name)
    assert refused(file).startswith(f"config file {file} {message}")


TAGS = (
    *(
        "int",
        "float",
        "bool",
        "null",
        "timestamp",
        "binary",
        "str",
        "seq",
        "map",
        "set",
        "omap",
        "pairs",
        "merge",
    ),
    *("value", "python/tuple", "python/name:os.system", "python/object/apply:os.getcwd", "unheard.of"),
)


@pytest.mark.parametrize("tag", ["!", "!own", "!<tag:yaml.org,2002:int>", *(f"!!{tag}" for tag in TAGS)])
def test_tags_are_refused(tag: str) -> None:
    for value in ("''", "x", "[a]", "{a: 1}", "1:1"):
        for frame in ("%s", "a: %s", "? %s\n: 1", "windows: [%s]"):
            with pytest.raises(SettingsProblem, match=r"line 1, column \d+: tags \(.+\) are not supported"):
                load_yaml(frame % f"{tag} {value}")


@given(st.text(alphabet="!<>&*?:-,.'\"[]{}|%=~#@ \n\t019eEx_abnptuy", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for load in (load_yaml, load_json):
        with contextlib.suppress(SettingsProblem):
            load(text)


@pytest.mark.parametrize(
    "text",
    [
        "policy: {trigger_pct: 0.5}\npolicy.trigger_pct: 0.9",
        "policy.trigger_pct: 0.9\npolicy: {trigger_pct: 0.9}",
        "agents: {a: {policy: {trigger_pct: 0.5}, policy.trigger_pct: 0.9}}",
    ],
)
def test_a_setting_is_given_once(tmp_path: Path, text: str) -> None:
    assert "policy.trigger_pct is given twice (file " in refused(written(tmp_path, text))


def test_of_many_problems_the_first_are_shown(tmp_path: Path) -> None:
    lines = refused(written(tmp_path, "\n".join(f"wrong{n}: 1" for n in range(25)))).splitlines()
    assert lines[0] == "25 settings are wrong:"
    assert (len(lines), lines[-1]) == (22, "  and 5 more")


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    assert refused(tmp_path / "no.yaml") == f"config file {tmp_path / 'no.yaml'} does not exist"
    assert refused(tmp_path) == f"config file {tmp_path} is a directory, not a file"


def test_a_wrong_value_names_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "policy: {trigger_pct: 1.7}\nwindos: {}\n1: 2\n")
    assert refused(file).splitlines() == [
        "3 settings are wrong:",
        f"  windos is not a setting; did you mean windows? (file {file})",
        "  1 is not a setting; there are model, tenant, max_context_tokens, windows, models, policy, summary, offload, archive, "
        f"redaction, tracing, guard, recovery, meter, economy, proxy (file {file})",
        f"  policy.trigger_pct must be 0.0-1.0, got 1.7 (file {file})",
    ]


def test_a_key_may_be_a_path(tmp_path: Path) -> None:
    config = CompactConfig.load(written(tmp_path, "policy.trigger_pct: 0.9\npolicy: {max_turns: 4}\n"))
    assert (config.policy.trigger_pct, config.policy.max_turns) == (0.9, 4)


@pytest.mark.parametrize("windows", ["{2024-01-01: 5}", "[[[]]]", "{a: {b: {c: 1}}}"])
def test_a_value_that_json_cannot_say_is_refused_too(tmp_path: Path, windows: str) -> None:
    file = written(tmp_path, f"windows: {windows}\n")
    assert refused(file).startswith("windows must be a mapping of model names to tokens, ")


def test_the_context_compaction_prds_block_as_written_there(tmp_path: Path) -> None:
    config = CompactConfig.load(written(tmp_path, PRD_EXAMPLE))
    assert config.policy.layout == "selective"
    assert (config.policy.token_threshold, config.policy.retention_window) == (60_000, 6)
    assert config.summary.max_tokens == 2000
    assert config.summary.model == "google/gemini-2.0-flash-001"
    assert config.summary.prompt == "{{> system-prompt-context-summarizer.hbs }}"
    assert config.summary.summary_tag == "summary"
    assert config.model == "gpt-4o"


@pytest.mark.parametrize("block", [None, {}])
def test_the_blocks_own_defaults(block: dict[str, Any] | None) -> None:
    config = CompactConfig(compact=block)  # type: ignore[arg-type]
    assert config == CompactConfig.preset("selective")
    assert config.sources["policy.token_threshold"] == "argument, compact"


def test_own_sections_win_over_the_block(tmp_path: Path) -> None:
    text = (
        "policy: {layout: layered, turn_threshold: 9}\n"
        + PRD_EXAMPLE
        + "  turn_threshold: 3\n  message_threshold: 50\n"
    )
    policy = CompactConfig.load(written(tmp_path, text)).policy
    assert (policy.layout, policy.turn_threshold, policy.message_threshold) == ("layered", 9, 50)


def test_the_block_may_switch_its_threshold_off() -> None:
    assert CompactConfig(compact={"token_threshold": None}).policy.token_threshold is None


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            "{max_token: 5}",
            "compact.max_token is not a setting; did you mean compact.max_tokens? (file {file})",
        ),
        (
            "{token_threshold: lots}",
            'policy.token_threshold must be a whole number >= 1 or null, got "lots" (file {file}, compact.token_threshold)',
        ),
        ("5", "compact must be a mapping of settings, got 5 (file {file})"),
    ],
)
def test_a_wrong_block_says_so_in_its_own_names(tmp_path: Path, block: str, message: str) -> None:
    file = written(tmp_path, f"compact: {block}\n")
    assert refused(file) == message.replace("{file}", str(file))
