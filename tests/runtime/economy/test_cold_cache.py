"""The decision in the line: a pass below the trigger, on a cache that is cold, if it pays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.engine import Clock, Item, events, pair, says, user

from compact import CompactConfig, CompactManager
from compact.events import parse

MODEL = "claude-sonnet-5"
LEAST = 3_000
LIFE_S, MARGIN_S = 300, 60


def open_manager(clock: Clock, **settings: Any) -> CompactManager:
    settings.setdefault("archive", {"adapter": "memory"})
    settings.setdefault("economy", {"min_tokens": LEAST})
    return CompactManager(CompactConfig(model=MODEL, max_context_tokens=200_000, **settings), clock=clock)


def talk(parts: int = 24) -> list[Item]:
    """A session of some 9,000 tokens, most of them outputs."""
    found: list[Item] = [{"role": "system", "content": "You read files."}]
    for n in range(parts):
        output = "\n".join(f"row {n}.{k}: value {n * 31 + k}" for k in range(24))
        found += [user(f"Read part {n}."), *pair(f"c{n}", output), says(f"Part {n} is read.")]
    return [*found, user("And now?")]


def more(messages: Sequence[Item], n: int = 0) -> list[Item]:
    return [*messages, says(f"Reply {n}."), user(f"Go on {n}.")]


def decision(manager: CompactManager, session: str = "s") -> dict[str, Any]:
    """The properties of the newest decision."""
    properties: dict[str, Any] = events(manager, session, "trigger_decision")[-1]["properties"]
    return properties


def size(manager: CompactManager, messages: Sequence[Item]) -> int:
    return manager.estimate(messages).total


def test_a_pass_is_made_on_a_cold_cache_and_goes_down_to_half() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        sent = manager.preflight("s", talk())
        clock.wait(LIFE_S + MARGIN_S + 1)
        given = more(sent)
        found = manager.preflight("s", given)
        assert size(manager, given) / 2 >= LEAST
        assert size(manager, given) / 4 < size(manager, found) <= size(manager, given) / 2
        made = decision(manager)
        assert (made["triggered"], made["reason"]) == (True, "cold_cache")
        assert made["economy"]["cache"] == "cold"
        assert made["economy"]["worth"]
        assert made["economy"]["cost"] < 0
        assert manager.archive.steps("s") == [1]


@pytest.mark.parametrize("pause_s", [1, LIFE_S - 1, LIFE_S + MARGIN_S - 1])
def test_nothing_is_done_before_the_cache_is_known_to_be_cold(pause_s: int) -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        sent = manager.preflight("s", talk())
        clock.wait(pause_s)
        given = more(sent)
        assert manager.preflight("s", given) is not None
        made = decision(manager)
        assert (made["triggered"], made["reason"], made["economy"]["cache"]) == (False, "below", "warm")
        assert made["economy"]["cost"] > 0, "it says what the pass would have cost"
        assert made["economy"]["calls_to_repay"] > 0
        assert manager.archive.steps("s") == []


def test_the_first_call_of_a_session_is_never_cold() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        manager.preflight("other", talk())
        clock.wait(10_000)
        given = talk()
        assert manager.preflight("s", given) == given
        assert decision(manager)["economy"]["cache"] == "unknown"


def test_there_is_one_pass_for_each_cold_moment() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        sent = manager.preflight("s", talk(40))
        for moment in range(1, 3):
            clock.wait(LIFE_S + MARGIN_S + 1)
            for n in range(4):
                sent = manager.preflight("s", more(sent, n))
                clock.wait(20)
            assert manager.archive.steps("s") == list(range(1, moment + 1))


def test_no_pass_goes_below_the_least_size_or_is_made_there() -> None:
    clock = Clock()
    with open_manager(clock, economy={"min_tokens": 7_000}) as manager:
        sent = manager.preflight("s", talk(24))
        before = size(manager, sent)
        assert 7_000 < before < 14_000
        clock.wait(1_000)
        found = manager.preflight("s", more(sent))
        assert 6_000 < size(manager, found) <= 7_000
        clock.wait(1_000)
        assert len(manager.preflight("s", more(found, 1))) == len(found) + 2
        assert manager.archive.steps("s") == [1]


@pytest.mark.parametrize("chosen", ["off", "layered", "selective", "progressive"])
def test_off_and_the_presets_are_decided_without_money(chosen: str) -> None:
    clock = Clock()
    config = (
        CompactConfig(policy={"economy": "off"}) if chosen == "off" else CompactConfig.preset(chosen)
    ).updated(
        model=MODEL,
        max_context_tokens=200_000,
        archive={"adapter": "memory"},
        economy={"min_tokens": LEAST},
    )
    with CompactManager(config, clock=clock) as manager:
        sent = manager.preflight("s", talk())
        clock.wait(5_000)
        manager.preflight("s", more(sent))
        assert manager.archive.steps("s") == []
        assert "economy" not in decision(manager)


def test_yaml_reads_off_as_false_and_the_variable_is_the_policys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CompactConfig(policy={"economy": False}).policy.economy == "off"
    monkeypatch.setenv("COMPACT_ECONOMY", "off")
    monkeypatch.setenv("COMPACT_ECONOMY__MIN_TOKENS", "12000")
    config = CompactConfig()
    assert (config.policy.economy, config.economy.min_tokens) == ("off", 12_000)


def test_a_model_without_a_price_is_left_alone() -> None:
    clock = Clock()
    settings = CompactConfig(
        model="nobody-knows-it", archive={"adapter": "memory"}, economy={"min_tokens": LEAST}
    )
    with CompactManager(settings, clock=clock) as manager:
        sent = manager.preflight("s", talk())
        clock.wait(5_000)
        manager.preflight("s", more(sent))
        assert "economy" not in decision(manager)


# --- restarts and other workers


def test_a_restarted_process_knows_when_the_session_was_called(tmp_path: Path) -> None:
    clock = Clock()
    archive = {"adapter": "fs", "root": str(tmp_path)}
    with open_manager(clock, archive=archive) as manager:
        sent = manager.preflight("s", talk())
    clock.wait(LIFE_S + MARGIN_S + 1)
    with open_manager(clock, archive=archive) as manager:
        manager.preflight("s", more(sent))
        assert decision(manager)["reason"] == "cold_cache"


def test_a_call_of_another_worker_keeps_the_cache_warm(tmp_path: Path) -> None:
    clock = Clock()
    archive = {"adapter": "fs", "root": str(tmp_path)}
    with open_manager(clock, archive=archive) as one, open_manager(clock, archive=archive) as other:
        sent = one.preflight("s", talk())
        one.flush()
        clock.wait(LIFE_S)
        sent = other.preflight("s", more(sent))
        other.flush()
        clock.wait(LIFE_S)
        one.preflight("s", more(sent, 1))
        made = decision(one)
        assert (made["reason"], made["economy"]["cache"]) == ("below", "warm")


def test_a_clock_that_was_set_back_is_reported_and_decides_nothing() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        sent = manager.preflight("s", talk())
        clock.wait(-1_000)
        sent = manager.preflight("s", more(sent))
        made = decision(manager)
        assert (made["triggered"], made["economy"]["cache"]) == (False, "unknown")
        assert [one["properties"]["code"] for one in events(manager, name="warning")] == ["clock_unknown"]


# --- what usage and marks say about the cache


def test_marks_for_an_hour_are_believed() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
        system = [{"type": "text", "text": "You read files.", **mark}]
        messages: list[Item] = [user("Read. " * 6_000), says("Read."), user("And now?")]
        sent = manager.preflight("s", messages, system=system, dialect="anthropic")
        clock.wait(3_000)
        sent = manager.preflight("s", more(sent), system=system, dialect="anthropic")
        assert decision(manager)["economy"]["cache"] == "warm"
        clock.wait(3_661)
        manager.preflight("s", more(sent, 1), system=system, dialect="anthropic")
        assert decision(manager)["economy"]["cache"] == "cold"


def test_a_prefix_that_was_served_after_a_long_pause_proves_a_longer_life() -> None:
    clock = Clock()
    with open_manager(clock, economy={"min_tokens": 9_000}) as manager:
        sent = manager.preflight("s", talk(16))
        before = size(manager, sent)
        assert before < 9_000
        clock.wait(2_000)
        sent = manager.preflight("s", more(sent))
        manager.observe("s", input_tokens=before, cached_tokens=before - 50)
        clock.wait(1_900)
        grown = [*sent, says("Reply."), user(" ".join(f"word{n}" for n in range(2_000)))]
        manager.preflight("s", grown)
        assert decision(manager)["economy"]["cache"] == "warm"


def test_one_cold_reading_is_noise_and_two_are_a_cold_cache() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        sent = manager.preflight("s", talk())
        reasons = []
        for n in range(4):
            clock.wait(5)
            sent = manager.preflight("s", more(sent, n))
            reasons.append(decision(manager)["reason"])
            manager.observe("s", input_tokens=size(manager, sent), cached_tokens=0)
        assert reasons == ["below", "below", "cold_cache", "below"]
        clock.wait(5)
        sent = manager.preflight("s", more(sent, 9))
        assert decision(manager)["reason"] == "below", "at most one pass for one cold moment"


def test_a_reply_of_call_is_a_reading() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        usage = {"prompt_tokens": 6_000, "prompt_tokens_details": {"cached_tokens": 0}}
        sent = talk()
        for n in range(4):
            manager.call("s", sent, lambda _: {"usage": usage})
            sent = more(manager.last_request("s") or sent, n)
        reasons = [one["properties"]["reason"] for one in events(manager, name="trigger_decision")]
        assert reasons == ["below", "below", "below", "cold_cache"]


# --- what a pass does not do


def test_the_prefix_stays_the_same_between_two_passes() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        sent = list(manager.preflight("s", talk(40)))
        breaks = 0
        for n in range(12):
            clock.wait(LIFE_S + MARGIN_S + 1 if n in (4, 9) else 30)
            found = list(manager.preflight("s", more(sent, n)))
            breaks += found[: len(sent)] != sent
            sent = found
        assert breaks == len(manager.archive.steps("s")) == 2


def test_an_archive_that_does_not_answer_costs_an_early_pass_and_nothing_else(tmp_path: Path) -> None:
    clock = Clock()
    root = tmp_path / "archive"
    with open_manager(clock, archive={"adapter": "fs", "root": str(root)}) as manager:
        sent = manager.preflight("s", talk())
        manager.flush()
        log = next(root.rglob("events.jsonl"))
        log.unlink()
        log.mkdir()
        clock.wait(1_000)
        given = more(sent)
        assert manager.preflight("s", given) == given
        log.rmdir()


def test_the_line_of_a_decision_reads_back() -> None:
    clock = Clock()
    with open_manager(clock) as manager:
        manager.preflight("s", talk())
        (line,) = events(manager, name="trigger_decision")
        assert parse(line).to_json() == line
        assert line["properties"]["economy"].keys() == {"cache", "worth", "calls_to_repay", "cost"}
