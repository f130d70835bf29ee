"""Replay with the times of a recording: caches go cold, and the manager decides by the recorded clock."""

from __future__ import annotations

from typing import Any

from support.engine import Item, pair, says, user
from support.replay import session

from compact import CompactConfig
from compact.tokens.prices import built_in
from compact.tools.replay import Job, Played, Policy, play

MODEL = "claude-sonnet-5"


def paused(pause_s: float) -> dict[str, Any]:
    """A session whose user comes back after a pause, with the time of each message."""
    messages: list[Item] = []
    times: list[float] = []
    now = 1_000.0
    for n in range(30):
        output = "\n".join(f"row {n}.{k}: value {n * 31 + k}" for k in range(24))
        now += pause_s if n == 20 else 5
        part = [user(f"Read part {n}."), *pair(f"c{n}", output), says(f"Part {n} is read.")]
        messages += part
        times += [now + place for place in range(len(part))]
    return {"messages": messages, "times": times}


def played(pause_s: float, *policies: Policy) -> Played:
    recording = paused(pause_s)
    made = session(recording["messages"], times=recording["times"])
    return play(Job(file="f", session=made, policies=policies, prices=built_in(), model=MODEL))


def policy(economy: str) -> Policy:
    config = CompactConfig(
        model=MODEL,
        max_context_tokens=200_000,
        policy={"economy": economy},
        economy={"min_tokens": 3_000},
    )
    return Policy(economy, config)


def test_a_pause_makes_the_recording_dearer_and_auto_cheaper_than_off() -> None:
    short, long = played(10, policy("off")), played(1_000, policy("off"), policy("auto"))
    assert short.cost_without is not None
    assert long.cost_without is not None
    assert long.cost_without.cached > short.cost_without.cached
    assert long.cost_without.plain == short.cost_without.plain
    off, auto = long.runs
    assert off.steps == []
    assert [step.reason for step in auto.steps] == ["cold_cache"]
    assert off.cost is not None
    assert auto.cost is not None
    assert auto.cost.cached < off.cost.cached


def test_without_times_no_cache_goes_cold() -> None:
    recording = paused(1_000)
    made = session(recording["messages"])
    found = play(Job(file="f", session=made, policies=[policy("auto")], prices=built_in(), model=MODEL))
    assert found.runs[0].steps == []
