"""Managers and sessions for engine tests: exact sizes, an archive in memory, events at hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.engine.limits import Rules
from compact.events import PolicyInForce
from compact.runtime.session_cache import Session

Item = dict[str, Any]


class Clock:
    """A clock that moves one millisecond with every look."""

    def __init__(self) -> None:
        self._ticks = itertools.count()
        self._waited = timedelta()

    def __call__(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + self._waited + timedelta(milliseconds=next(self._ticks))

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self._waited += timedelta(seconds=seconds)


def manager(
    window: int = 128_000,
    summarizer: Any = None,
    exporters: Sequence[Any] = (),
    stages: Sequence[Any] | None = None,
    **settings: Any,
) -> CompactManager:
    """A manager with an archive in memory. `policy` and the other sections as keyword arguments."""
    settings.setdefault("archive", {"adapter": "memory"})
    config = CompactConfig(model="gpt-4o", max_context_tokens=window, **settings)
    return CompactManager(config, summarizer=summarizer, exporters=exporters, clock=Clock(), stages=stages)


def events(made: CompactManager, session: str = "s", name: str | None = None) -> list[dict[str, Any]]:
    """The session's events, as they lie in the archive."""
    made.flush()
    found = [event.to_json() for event in made.archive.events(session)]
    return [event for event in found if name is None or event["name"] == f"compact.{name}"]


def ratio(session: Session, model: str) -> float:
    """How many tokens the provider was seen to count for each of ours."""
    found = session.observed.get(model)
    return 1.0 if found is None else found.counted / found.ours


def user(text: str, **more: Any) -> Item:
    return {"role": "user", "content": text, **more}


def says(text: str, **more: Any) -> Item:
    return {"role": "assistant", "content": text, **more}


def pair(
    call_id: str, output: str, name: str = "read_file", arguments: str = '{"path": "a.py"}'
) -> list[Item]:
    """A call and its result."""
    function = {"name": name, "arguments": arguments}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": output},
    ]


def turns(count: int, words: int = 40) -> list[Item]:
    """That many user and assistant pairs, each different."""
    found: list[Item] = []
    for n in range(count):
        text = " ".join(f"word{n}x{k}" for k in range(words))
        found += [user(f"Question {n}: {text}?"), says(f"Answer {n}: {text}.")]
    return found


def of_size(made: CompactManager, messages: list[Item], tokens: int) -> list[Item]:
    """The messages with one more in front that brings the estimate to exactly `tokens`."""
    filler = {"role": "user", "content": ""}
    padded = [filler, *messages]
    missing = tokens - made.estimate(padded).total
    assert missing > 0
    while True:
        filler["content"] = " a" * missing
        off = tokens - made.estimate(padded).total
        if off == 0:
            return padded
        missing += off


def assert_good(
    made: CompactManager, before: Sequence[Any], after: Sequence[Any], dialect: str | None = None
) -> None:
    """The promises that hold for every result: legal, within the budget, protected identical and in order."""
    config = made.config
    assert violations(after, dialect) == []
    window = config.max_context_tokens or 128_000
    assert made.estimate(after).total <= config.budget(window)
    pinned = [
        m
        for m in before
        if m.get("role") in config.policy.roles_never_prune or m.get("meta", {}).get("protected")
    ]
    kept = [m for m in after if any(m is p for p in pinned)]
    assert len(kept) == len(pinned)
    assert all(a is b for a, b in zip(kept, pinned, strict=True))


def pass_rules(**changed: Any) -> Rules:
    """The rules of a pass for which nothing is too large, in raw tokens of messages."""
    usual: dict[str, Any] = {
        "window": 10_000,
        "budget": 10_000,
        "trigger": 10_000,
        "target": 10_000,
        "summarize_above": 0,
        "recent_tokens": None,
        "has_thresholds": False,
        "token_threshold": None,
        "message_threshold": None,
        "turn_threshold": None,
        "regrow": 0,
        "least_room": 0,
        "keep_turns": 1,
        "keep_pairs": 1,
        "keep_up_to": 10_000,
        "calls_between": 0,
        "never_prune": frozenset({"system"}),
        "layout": "layered",
        "retention_window": 0,
        "max_turns": None,
        "strategy": "task_state",
        "summary_tokens": 100,
        "ledger_tokens": 600,
        "ineffective_passes": 2,
        "in_force": PolicyInForce(trigger_pct=0.85, hard_cap_buffer=0, strategy="task_state"),
    }
    return Rules(**{**usual, **changed})


def summary_of(messages: Sequence[Any]) -> str:
    """The text of the only summary in a list."""
    (found,) = [m["content"] for m in messages if str(m.get("content", "")).startswith("<COMPACT-SUMMARY v")]
    return str(found)


def ledgers_in(messages: Sequence[Any]) -> list[str]:
    """The texts of the ledgers in a list of chat messages."""
    texts = [str(message.get("content") or "") for message in messages]
    return [text for text in texts if text.startswith("<COMPACT-LEDGER v")]
