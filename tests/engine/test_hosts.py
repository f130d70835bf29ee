"""Both kinds of host, restarts, other workers, and histories that were edited."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import pytest
from support.data import all_sessions, bundled_sessions
from support.engine import Clock, assert_good, events, manager, pair, says, turns, user

from compact import CompactConfig, CompactManager
from compact.archive import Archive
from compact.checks import violations
from compact.errors import MessageError

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

Item = dict[str, Any]


def calls_of(messages: Sequence[Item]) -> list[int]:
    """Where a model call would come: after a user message, or after the last result of a batch."""
    return [
        n + 1
        for n, item in enumerate(messages)
        if item["role"] in ("user", "tool")
        and (n + 1 == len(messages) or messages[n + 1]["role"] == "assistant")
    ]


def replay(messages: list[Item], window: int, keeps_result: bool) -> tuple[list[list[Item]], CompactManager]:
    """What would have been sent, call by call."""
    made = manager(window)
    sent, history, done = [], [], 0
    for stop in calls_of(messages):
        history += messages[done:stop]
        done = stop
        out = made.preflight("s", history)
        assert made.estimate(out).total <= window - 1500
        sent.append(list(out))
        if keeps_result:
            history = list(out)
    return sent, made


@pytest.mark.sweep
@pytest.mark.parametrize("window", [6000, 16_000])
def test_both_kinds_of_host_send_the_same_and_always_legally(window: int) -> None:
    for session in bundled_sessions():
        kept, _ = replay(session["messages"], window, keeps_result=True)
        full, _ = replay(session["messages"], window, keeps_result=False)
        assert kept == full, session["id"]
        for request in kept[:: max(1, len(kept) // 10)]:
            assert violations(request, in_flight=False) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("keeps_result", [True, False])
@pytest.mark.parametrize("window", [16_000, 32_000, 128_000])
def test_every_shared_session_replayed_turn_by_turn(window: int, keeps_result: bool) -> None:
    for session in all_sessions():
        sent, made = replay(session["messages"], window, keeps_result)
        for request in sent:
            assert violations(request, in_flight=False) == [], session["id"]
        steps = len(made.archive.steps("s"))
        fresh = [
            e["properties"] for e in events(made, name="trigger_decision") if e["properties"]["triggered"]
        ]
        assert steps <= len(fresh)


def test_between_two_steps_the_prefix_is_byte_identical() -> None:
    """Provider prompt caches stay warm: a request extends the one before, unless a step was made in between."""
    for session in bundled_sessions():
        made = manager(8000)
        history: list[Item] = []
        before: list[Item] = []
        steps = 0
        for stop in calls_of(session["messages"]):
            history = session["messages"][:stop]
            out = made.preflight("s", history)
            now = len(made.archive.steps("s"))
            if now == steps:
                assert out[: len(before)] == before
            steps, before = now, list(out)
        stats = made.get_compaction_stats()
        assert 0 <= stats["unchanged_prefix_tokens"] <= stats["sent_tokens"]
        if len(calls_of(session["messages"])) > 10:
            assert stats["unchanged_prefix_tokens"] > stats["sent_tokens"] // 3


def restarted(archive: Archive, window: int) -> CompactManager:
    config = CompactConfig(model="gpt-4o", max_context_tokens=window)
    return CompactManager(config, archive=archive, clock=Clock())


@pytest.mark.parametrize("keeps_result", [True, False])
def test_a_process_restarted_between_every_two_turns_summarizes_once_per_step(keeps_result: bool) -> None:
    session = max(bundled_sessions(), key=lambda session: len(session["messages"]))
    archive = manager().archive
    sent: list[list[Item]] = []
    history: list[Item] = []
    done = 0
    for stop in calls_of(session["messages"]):
        made = restarted(archive, 8000)
        history = [*history, *copy.deepcopy(session["messages"][done:stop])]
        done = stop
        out = made.preflight("s", history)
        made.flush()
        sent.append(copy.deepcopy(list(out)))
        if keeps_result:
            history = copy.deepcopy(list(out))
    expected, one_process = replay(session["messages"], 8000, keeps_result)
    assert sent == expected, "the same bytes as without restarts"
    steps = len(archive.steps("s"))
    assert steps == len(one_process.archive.steps("s")) > 1
    summaries = [event for event in archive.events("s") if event.name == "compact.summary_created"]
    assert len(summaries) <= steps


@pytest.mark.parametrize("change", ["edited", "branched", "rewound"])
def test_a_history_that_was_edited_branched_or_rewound_starts_again_and_loses_nothing(change: str) -> None:
    made = manager(8000)
    history = turns(40)
    first = made.preflight("s", history)
    assert len(first) < len(history)
    if change == "edited":
        history = [user("Question 0, asked otherwise?"), *history[1:], user("next")]
    elif change == "branched":
        history = [*history[:20], user("something else"), says("yes"), *turns(30)]
    else:
        history = [*history[:10]]
    out = made.preflight("s", history)
    assert_good(made, history, out)
    assert out[-1] is history[-1]
    assert [e["properties"]["code"] for e in events(made, name="warning")] == ["state_reset"]
    if change == "rewound":
        assert out is history
        assert made.preflight("s", history) is history
        assert len(events(made, name="warning")) == 1, "it is told once"


def test_the_loser_of_a_race_adopts_the_winners_step() -> None:
    archive = manager().archive
    one, two = restarted(archive, 8000), restarted(archive, 8000)
    history = turns(40)
    assert one.preflight("s", history[:2]) == two.preflight("s", history[:2])
    first = one.preflight("s", history)
    second = two.preflight("s", history)
    assert first == second
    assert archive.steps("s") == [1]
    two.flush()
    outcomes = [
        e.to_json()["properties"]["outcome"] for e in archive.events("s") if e.name == "compact.finished"
    ]
    assert outcomes == ["compacted", "adopted"] or outcomes == ["compacted"]


def test_a_second_preflight_right_after_is_a_no_op() -> None:
    made = manager(8000)
    history = turns(40)
    first = made.preflight("s", history)
    assert made.preflight("s", first) is first
    assert list(made.preflight("s", history)) == list(first)
    assert made.archive.steps("s") == [1]


def test_compaction_loop_is_not_possible() -> None:
    """Field failure: it fires every turn and saves next to nothing. Here the newest turn alone is above the trigger."""
    made = manager(8000)
    history = [user("x " * 6300)]
    for n in range(300):
        history = made.preflight("s", [*history, says(f"reply {n}"), user(f"short {n} " * 40)])
    assert len(made.archive.steps("s")) <= 30
    codes = [e["properties"]["code"] for e in events(made, name="warning")]
    assert codes.count("ineffective") <= 1


def test_one_turn_of_many_calls_is_cut_between_its_pairs() -> None:
    """The normal case of a coding agent: one user message, a hundred calls."""
    made = manager(32_000)
    items = [
        user("Refactor everything."),
        *(m for n in range(150) for m in pair(f"c{n}", f"line {n}\n" * 150)),
    ]
    out = made.preflight("s", items)
    assert_good(made, items, out)
    assert out[0] is items[0] or items[0] in out
    assert all(any(a is b for b in out) for a in items[-8:]), "the newest four pairs are whole"
    target = 0.5 * 32_000
    assert 0.9 * target <= made.estimate(out).total <= target


def test_messages_that_the_host_mutates_later_do_not_change_what_was_archived() -> None:
    made = manager(8000)
    history = turns(40)
    made.preflight("s", history)
    before = made.archive.restore("s", 1).messages
    history[0]["content"] = "changed"
    assert made.archive.restore("s", 1).messages == before


@pytest.mark.parametrize("wrong", ["abc", None, 5])
def test_an_entry_that_is_no_message_is_named_also_after_a_compaction(wrong: Any) -> None:
    made = manager(8000)
    made.manual_compact("s", turns(20))
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        made.preflight("s", [user("x"), wrong])


@pytest.mark.parametrize("restarts", [False, True], ids=["two processes", "new ones each time"])
def test_two_conversations_under_one_id_each_continue_their_own_step(restarts: bool) -> None:
    """Two workers compact in turn, in one archive. Neither takes the other's words, and neither loses its own."""
    archive = manager(8_000).archive

    def worker() -> CompactManager:
        return CompactManager(
            CompactConfig(model="gpt-4o", max_context_tokens=8_000), archive=archive, clock=Clock()
        )

    workers = [worker(), worker()]
    rules = ["Never delete the database.", "Answer in French."]
    contexts: list[list[Item]] = [[user(rule), *turns(30)] for rule in rules]
    for _ in range(4):
        for n, rule in enumerate(rules):
            if restarts:
                workers[n] = worker()
            after = list(workers[n].manual_compact("s", contexts[n]))
            (summary,) = [m["content"] for m in after if m["content"].startswith("<COMPACT-SUMMARY v")]
            assert [
                line
                for line in summary.splitlines()
                if re.fullmatch(rf"- \[(?:v[12] )?m1\] {re.escape(rule)}", line)
            ]
            assert rules[1 - n] not in summary
            contexts[n] = [*after, *turns(20)]
    assert archive.steps("s") == list(range(1, 9))


def test_a_context_that_is_left_with_words_like_the_first_ones_is_not_taken_for_the_full_history() -> None:
    """A manual compaction leaves only the user's newest message, and the session began with the same words."""
    said = "0:0:0:0\x81\x95\U00010000\U0001018c\U00011740\U00018cd6"
    zero = {"type": "text", "text": "0"}
    calls = [
        {"type": "tool_use", "id": "toolu_1", "name": "0", "input": {}},
        {"type": "tool_use", "id": "toolu_2", "name": "0", "input": {"path": "0:0:0\x1f"}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "0"},
        {"type": "tool_result", "tool_use_id": "toolu_2"},
    ]
    history = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": [zero, {"type": "text", "text": "0:\U00015340"}]},
        {"role": "user", "content": [zero]},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [zero, zero]},
        {"role": "user", "content": [zero]},
        {"role": "assistant", "content": [zero, zero]},
        {"role": "user", "content": [{"type": "text", "text": said}]},
    ]
    policy: Any = {"hard_cap_buffer": 20, "keep_recent_turns": 1, "keep_tool_io_pairs": 0}
    guard: Any = {"min_context_tokens": 50, "warn_context_tokens": 50}
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=82, policy=policy, guard=guard, archive={"adapter": "memory"}
    )
    with CompactManager(config) as made:
        after = made.manual_compact("s", history, dialect="anthropic")
        assert after == history[-1:]
        assert made.preflight("s", history, dialect="anthropic") == after
