"""Sessions that once went wrong, each with what it should have been."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.engine import assert_good, events, manager, pair, says, turns, user

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.checks import violations
from compact.errors import ConfigError, MessageError
from compact.testing import ScriptedSummarizer

Item = dict[str, Any]


def used(number: int, words: int) -> list[Item]:
    """An Anthropic call and its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"n": number}}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"row {number} " * words}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


@pytest.mark.parametrize("protected", [True, False])
def test_what_a_person_says_right_after_a_tool_result_is_not_lost(protected: bool) -> None:
    said: Item = {"role": "user", "content": "RULE: never deploy on Friday"}
    if protected:
        said["meta"] = {"protected": True}
    made = manager(16_000)
    items = [user("go"), *used(0, 20), said, *(m for n in range(1, 181) for m in used(n, 130))]
    out = made.preflight("s", items)
    assert violations(out, "anthropic") == []
    assert len(out) < len(items)
    assert "never deploy on Friday" in json.dumps(out)
    if protected:
        assert any(item is said for item in out)


@pytest.mark.parametrize(("keep", "present"), [(4, 3), (6, 4), (20, 11), (4, 4)])
def test_fewer_pairs_than_the_setting_are_all_kept(keep: int, present: int) -> None:
    made = manager(policy={"keep_tool_io_pairs": keep})
    items = [user("go"), *(m for n in range(present) for m in pair(f"c{n}", f"output {n} " * 50))]
    assert made.manual_compact("s", items) is items


def test_the_newest_call_with_huge_arguments_is_reduced_not_refused() -> None:
    for name in ("write_file", "some_other_tool"):
        made = manager(16_000)
        arguments = json.dumps({"path": "a.py", "content": "x = 1\n" * 8000})
        items = [
            {"role": "system", "content": "s"},
            user("write it"),
            *pair("c1", "ok", name=name, arguments=arguments),
        ]
        out = made.preflight("s", items)
        assert_good(made, items, out)
        call = out[-2]["tool_calls"][0]["function"]
        assert json.loads(call["arguments"])["content"].startswith("[compact: ")


def test_written_contents_become_pointers_before_anything_is_summarized() -> None:
    made = manager(16_000)
    body = "value = compute(alpha, beta)\n" * 90
    items = [user("write them all")]
    for n in range(22):
        arguments = json.dumps({"path": f"f{n}.py", "content": f"# {n}\n{body}"})
        items += pair(f"c{n}", "ok", name="write_file", arguments=arguments)
    out = made.preflight("s", items)
    assert len(out) == len(items)
    assert made.get_compaction_stats()["by_strategy"].keys() == {"compact"}


def test_an_offloaded_result_stays_offloaded_for_a_host_with_full_history() -> None:
    made = manager(64_000)
    history = [user("go"), *used(1, 9000)]
    first = made.preflight("s", history)
    assert made.estimate(first).total < 2000
    second = made.preflight("s", [*history, user("also this")])
    assert made.estimate(second).total < 2000
    assert made.preflight("s", second) is second


def test_a_protected_call_protects_its_large_result() -> None:
    made = manager(64_000)
    items = [user("go"), *pair("c1", "data " * 25_000)]
    items[1]["meta"] = {"protected": True}
    assert made.preflight("s", items) is items


def test_moving_cache_marks_are_no_edit() -> None:
    made = manager(8000)
    history: list[Item] = []
    for n in range(14):
        text = {"type": "text", "text": f"Question {n}. " + "words " * 700}
        history += [{"role": "user", "content": [text]}, {"role": "assistant", "content": f"Answer {n}."}]
        sent = copy.deepcopy(history[:-1])
        sent[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        made.preflight("s", sent, dialect="anthropic")
    assert not [e for e in events(made, name="warning") if e["properties"]["code"] == "state_reset"]
    assert 1 <= len(made.archive.steps("s")) <= 3


def test_a_system_prompt_that_changes_every_turn_is_no_edit() -> None:
    made = manager(8000)
    history: list[Item] = []
    for n in range(14):
        history += [user(f"Question {n}. " + "words " * 250), says(f"Answer {n}.")]
        out = made.preflight("s", [{"role": "system", "content": f"It is {n} o'clock."}, *history])
        assert out[0]["content"] == f"It is {n} o'clock."
    assert not [e for e in events(made, name="warning") if e["properties"]["code"] == "state_reset"]
    assert len(made.archive.steps("s")) <= 3


def test_a_mended_message_is_the_same_after_a_restart() -> None:
    archive = manager().archive
    config = CompactConfig(model="gpt-4o", max_context_tokens=8000)
    items = [user("go with api_key=sk-abc123def456ghi789 \ud83d half"), *turns(40)[1:]]
    first = CompactManager(config, archive=archive).preflight("s", items)
    second = CompactManager(config, archive=archive).preflight("s", copy.deepcopy(items))
    assert list(first) == list(second)


def test_a_count_below_what_is_kept_does_not_fire_every_turn() -> None:
    made = manager(policy={"message_threshold": 20})
    history: list[Item] = []
    for n in range(40):
        new = [user(f"Q{n}"), *pair(f"c{n}", f"row {n} " * 10), says(f"A{n}")]
        history = list(made.preflight("s", [*history, *new]))
    assert len(made.archive.steps("s")) <= 12


def test_tools_that_fill_the_budget_are_named() -> None:
    made = manager(8000)
    tools = [{"type": "function", "function": {"name": "t", "description": "words " * 8000}}]
    with pytest.raises(InsufficientBudget, match="tools and system prompt"):
        made.preflight("s", [user("hi")], tools)


def test_an_archive_that_cannot_be_opened_does_not_hold_up_a_session_that_fits(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file")
    config = CompactConfig(model="gpt-4o", archive={"adapter": "fs", "root": str(tmp_path / "root")})
    made = CompactManager(config)
    items = turns(2)
    assert made.preflight("s", items) is items


def test_no_list_is_a_clear_error() -> None:
    with pytest.raises(MessageError, match="expected a list of messages"):
        manager().preflight("s", None)  # type: ignore[arg-type]


def test_an_empty_summary_replaces_nothing() -> None:
    """Field failure: an empty text becomes the summary, and history is gone."""
    made = manager(
        summarizer=ScriptedSummarizer(""), policy={"keep_recent_turns": 1, "keep_tool_io_pairs": 0}
    )
    items = [user("go"), *(m for n in range(9) for m in pair(f"c{n}", f"output {n} " * 50)), says("ok")]
    out = made.manual_compact("s", items)
    assert out is items or "output" in json.dumps(out)


def test_events_of_a_pass_carry_its_step_and_a_failed_pass_ends_too() -> None:
    made = manager(8000)
    made.preflight("s", turns(40))
    steps = {e["name"]: e["step"] for e in events(made)}
    assert (
        steps["compact.summary_created"] == steps["compact.pruned_messages"] == steps["compact.finished"] == 1
    )
    tiny = manager(8000)
    with pytest.raises(InsufficientBudget):
        tiny.preflight("s", [{"role": "system", "content": "rule " * 9000}, user("hi")])
    assert events(tiny, name="finished")[0]["properties"]["outcome"] == "failed"


def test_an_unknown_strategy_lists_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"task_state.*got 'nope'"):
        manager(policy={"strategy": "nope"})
