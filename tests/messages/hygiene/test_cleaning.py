"""Broken sessions become legal, legal ones stay themselves, and what was taken out is reported."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.data import all_sessions, bundled_sessions
from support.dialects import CONVERTERS
from support.mutations import mutated
from support.strategies import SESSIONS

from compact import hygiene
from compact.checks import violations
from compact.errors import ConfigError, MessageError
from compact.messages.hygiene.sanitizing import safe_id

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

Item = dict[str, Any]
USER = {"role": "user", "content": "hi"}
SAYS = {"role": "assistant", "content": "ok"}


def call(*ids: str, **more: Any) -> Item:
    calls = [{"id": i, "type": "function", "function": {"name": "read", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, text: str = "done") -> Item:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def check_cleaned(items: list[Item], dialect: str, why: object) -> None:
    before = copy.deepcopy(items)
    report = hygiene.clean_report(items, dialect=dialect)
    after = report.messages
    assert violations(after, dialect) == [], why
    assert hygiene.clean(after, dialect=dialect) is after, f"not idempotent: {why}"
    assert items == before, f"the host's messages were changed: {why}"
    kept = {id(item) for item in after}
    reported = {id(removed.message) for removed in report.removed}
    for item in items:
        assert id(item) in kept | reported or any(other == item for other in after), f"lost in silence: {why}"


def check_mutations(seeds: range, dialects: list[str]) -> None:
    sessions = [session["messages"] for session in all_sessions() if len(session["messages"]) < 100]
    for seed in seeds:
        broken = mutated(random.Random(seed).choice(sessions), seed)
        for dialect in dialects:
            try:
                items = CONVERTERS[dialect](broken)
            except (TypeError, AttributeError):
                continue  # some corruption has no counterpart in this dialect
            check_cleaned(items, dialect, (seed, dialect))


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(4))
def test_mutated_real_sessions_are_legal_after_cleaning(part: int) -> None:
    check_mutations(range(part * 500, part * 500 + 500), ["chat"])


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", ["responses", "anthropic", "ai_sdk", "gemini", "converse"])
def test_mutated_real_sessions_are_legal_after_cleaning_in_other_dialects(dialect: str) -> None:
    check_mutations(range(10_000, 10_300), [dialect])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_twenty_thousand_mutated_sessions(part: int) -> None:
    check_mutations(range(part * 1000, part * 1000 + 1000), list(CONVERTERS))


@pytest.mark.parametrize(
    "dialect", ["chat", "responses", "anthropic", "ai_sdk", "harness", "gemini", "converse"]
)
@given(data=st.data())
def test_a_legal_session_comes_back_as_the_same_object(dialect: str, data: st.DataObject) -> None:
    items = data.draw(SESSIONS[dialect])
    assert hygiene.clean(items, dialect=dialect) is items
    assert hygiene.sanitize(items, dialect) is items
    assert hygiene.limit_turns(items, None, dialect) is items
    assert hygiene.repair_tool_pairs(items, dialect).messages is items


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "ai_sdk", "gemini", "converse"])
@given(data=st.data())
def test_any_shuffled_session_becomes_legal(dialect: str, data: st.DataObject) -> None:
    items = data.draw(SESSIONS[dialect])
    order = data.draw(st.lists(st.integers(0, len(items) - 1), max_size=len(items) + 3))
    check_cleaned([copy.deepcopy(items[index]) for index in order], dialect, order)


@pytest.mark.sweep
def test_every_real_session_comes_back_as_the_same_object() -> None:
    for session in all_sessions():
        assert hygiene.clean(session["messages"]) is session["messages"], session["id"]


def test_turn_limit_never_leaves_a_pair_broken() -> None:
    """The order matters: limiting turns can part a late result from its call."""
    for session in bundled_sessions():
        for limit in (1, 2, 5):
            after = hygiene.clean(session["messages"], max_turns=limit)
            assert violations(after) == []
            people = [item for item in after if item["role"] == "user"]
            assert len(people) <= limit


def test_system_developer_and_protected_messages_outlive_the_turn_limit() -> None:
    kept = {**result("b"), "meta": {"protected": True}}
    items = [
        {"role": "system", "content": "rules"},
        USER,
        {"role": "developer", "content": "more rules"},
        call("a"),
        result("a"),
        call("b"),
        kept,
        {"role": "user", "content": "note", "meta": {"protected": True}},
        {"role": "user", "content": "now"},
        SAYS,
    ]
    after = hygiene.limit_turns(items, 1)
    assert [items.index(item) for item in after] == [0, 2, 5, 6, 7, 8, 9], "a protected result keeps its call"
    assert violations(after) == []


def test_as_many_turns_as_allowed_come_back_as_the_same_object() -> None:
    items = [SAYS, USER, SAYS, USER]
    assert hygiene.limit_turns(items, 2) is items
    assert hygiene.limit_turns(items, 1) == [USER]


def test_a_negative_turn_limit_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_turns must be 0 or more, got -1"):
        hygiene.limit_turns([USER], -1)


def test_text_that_a_tool_injected_starts_no_turn() -> None:
    reminder = {"role": "user", "content": "<system-reminder>", "meta": {"injected": True}}
    items = [USER, SAYS, {"role": "user", "content": "second"}, reminder, SAYS]
    assert hygiene.limit_turns(items, 1) == items[2:]


def test_orphan_after_compaction_is_dropped() -> None:
    """Field failure: an orphan result makes every later request a 400."""
    repair = hygiene.repair_tool_pairs([USER, result("gone"), SAYS])
    assert repair.messages == [USER, SAYS]
    assert (repair.dropped_orphans, len(repair.removed)) == (1, 1)


def test_a_result_of_nobody_among_the_results_of_a_reply_is_dropped_and_counted() -> None:
    repair = hygiene.repair_tool_pairs([USER, call("a"), result("a"), result("gone"), SAYS])
    assert repair.messages == [USER, call("a"), result("a"), SAYS]
    assert (repair.dropped_orphans, repair.dropped_duplicates, repair.moved) == (1, 0, 0)


def test_a_message_of_two_results_stays_the_same_object_beside_one_that_is_mended() -> None:
    use = {"type": "tool_use", "name": "read", "input": {}}
    asks = {"role": "assistant", "content": [{**use, "id": "a"}, {**use, "id": "b"}]}
    results = [{"type": "tool_result", "tool_use_id": i, "content": "x"} for i in ("a", "b")]
    answers = {"role": "user", "content": results}
    stale = {"role": "assistant", "content": [{**use, "id": "c"}]}
    after = hygiene.repair_tool_pairs([USER, asks, answers, stale, USER], "anthropic").messages
    assert after[2] is answers
    assert [block["type"] for block in after[4]["content"]] == ["tool_result", "text"]


def test_late_result_of_the_newest_batch_stays_open() -> None:
    """Field failure: compaction fires between a call and its late result."""
    items = [USER, call("a", "b"), result("a")]
    assert hygiene.clean(items) is items


def test_one_stale_unmatched_call_is_answered_not_kept_open() -> None:
    """Field failure: one stale call blocks every later compaction."""
    repair = hygiene.repair_tool_pairs([USER, call("a"), USER, call("b")])
    assert [item["role"] for item in repair.messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert "missing tool result" in repair.messages[2]["content"]
    assert repair.added == 1


def test_displaced_results_move_up_in_call_order() -> None:
    items = [USER, call("a", "b"), result("b", "B"), USER, result("a", "A"), SAYS]
    repair = hygiene.repair_tool_pairs(items)
    assert repair.messages == [USER, items[1], items[4], items[2], USER, SAYS]
    assert repair.moved == 2


def test_results_before_their_call_do_not_count() -> None:
    repair = hygiene.repair_tool_pairs([USER, result("a"), call("a"), USER])
    assert (repair.dropped_orphans, repair.added) == (1, 1)


def test_the_first_of_two_results_wins() -> None:
    repair = hygiene.repair_tool_pairs([USER, call("a"), result("a", "first"), result("a", "second"), SAYS])
    assert repair.messages[2]["content"] == "first"
    assert repair.dropped_duplicates == 1


def test_an_id_used_twice_is_replaced_on_both_sides_always_by_the_same() -> None:
    items = [USER, call("a"), result("a", "one"), SAYS, call("a"), result("a", "two"), SAYS]
    after = hygiene.clean(items)
    assert after[1] is items[1]
    fresh = after[4]["tool_calls"][0]["id"]
    assert fresh == after[5]["tool_call_id"] != "a"
    assert after == hygiene.clean(copy.deepcopy(items)), "the same ids on every run"
    assert after[5]["content"] == "two"


def test_over_long_ids_are_made_safe_on_both_sides() -> None:
    long_id = "call_" + "x" * 200
    after = hygiene.sanitize([USER, call(long_id), result(long_id)])
    assert after[1]["tool_calls"][0]["id"] == after[2]["tool_call_id"]
    assert violations(after) == []


def test_a_safe_id_is_the_same_in_every_version_and_fits_every_provider() -> None:
    """A list that was mended before, and archived, has these ids."""
    assert safe_id("a b") == "call_f1d8955dd564fb7c662a1c59"
    assert safe_id("a b", 2) == "call_2e1cbfe5715de03db77dc3bf"
    assert len(safe_id("x" * 500)) <= 40


def test_a_role_that_the_dialect_does_not_have_becomes_the_users() -> None:
    assert hygiene.sanitize([{"role": "critic", "content": "x"}], "chat") == [
        {"role": "user", "content": "x"}
    ]


def test_the_system_prompt_moves_to_the_front_only_where_it_must_stand_there() -> None:
    late = [USER, SAYS, {"role": "system", "content": "rules"}, USER]
    assert hygiene.sanitize(late, "chat") is late
    assert hygiene.sanitize(late, "anthropic") == [late[2], USER, SAYS, USER]


def test_calls_of_an_aborted_reply_are_stripped_and_its_words_stay() -> None:
    items = [USER, call("a", content="Let me look", stop_reason="aborted"), result("a"), USER]
    repair = hygiene.repair_tool_pairs(items)
    assert [item["role"] for item in repair.messages] == ["user", "assistant", "user"]
    assert "tool_calls" not in repair.messages[1]
    assert (repair.added, repair.dropped_orphans) == (0, 1)
    wordless = hygiene.repair_tool_pairs([USER, call("a", stop_reason="error"), USER])
    assert wordless.messages == [USER, USER]


def test_lone_surrogates_and_nuls_are_replaced_everywhere() -> None:
    block = {"type": "text", "text": "a\ud800b", "x": ["\x00", {"\udfff": 1}]}
    after = hygiene.sanitize([{"role": "user", "content": [block]}])
    assert after == [
        {"role": "user", "content": [{"type": "text", "text": "a\ufffdb", "x": ["\ufffd", {"\ufffd": 1}]}]}
    ]


def test_text_is_mended_deep_inside_of_a_message() -> None:
    nested: Any = "\x00"
    for _ in range(150):
        nested = {"more": nested}
    (after,) = hygiene.sanitize(
        [{"role": "user", "content": [{"type": "text", "text": "\x00", "x": nested}]}]
    )
    found = after["content"][0]["x"]
    while isinstance(found, dict):
        found = found["more"]
    assert found == "\ufffd"


def test_arguments_of_a_tool_without_parameters_become_an_empty_object() -> None:
    broken = call("a")
    broken["tool_calls"][0]["function"]["arguments"] = ""
    assert hygiene.sanitize([USER, broken])[1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_what_was_taken_out_or_changed_is_reported_with_its_reason() -> None:
    old, empty = {"role": "user", "content": "old"}, {"role": "assistant", "content": ""}
    spoiled, orphan = {"role": "user", "content": "a\x00b"}, result("gone")
    report = hygiene.clean_report([old, empty, spoiled, orphan, SAYS], max_turns=1)
    assert [item["content"] for item in report.messages] == ["a\ufffdb", "ok"]
    assert [(removed.message, removed.reason) for removed in report.removed] == [
        (empty, "empty, or nothing in it could be sent"),
        (spoiled, "parts of it could not be sent"),
        (old, "older than the turn limit"),
        (orphan, "its tool calls and results did not fit together"),
    ]
    assert report.removed[0].message is empty, "the host's own object"


def test_thinking_never_stays_behind_without_its_call() -> None:
    thinking = {"type": "thinking", "thinking": "t", "signature": "s"}
    bad = {"type": "tool_use", "id": "a", "name": "no good", "input": {}}
    items = [USER, {"role": "assistant", "content": [thinking, bad]}, USER]
    assert hygiene.clean(items, dialect="anthropic") == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}] * 2}
    ]
    reasoning = {"type": "reasoning", "id": "rs", "summary": []}
    nameless = {"type": "function_call", "call_id": "a", "name": "", "arguments": "{}"}
    assert hygiene.clean([USER, reasoning, nameless]) == [USER]


def test_anthropic_results_are_merged_into_the_next_user_message() -> None:
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    items = [USER, {"role": "assistant", "content": [use]}, {"role": "user", "content": "stop"}]
    after = hygiene.clean(items, dialect="anthropic")
    assert [block["type"] for block in after[2]["content"]] == ["tool_result", "text"]
    assert after[2]["content"][0]["is_error"] is True
    assert after[0] is USER


def test_what_a_person_wrote_is_not_merged_into_a_message_of_results() -> None:
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    answers = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    items = [USER, {"role": "assistant", "content": [use]}, answers, {"role": "user", "content": "stop"}]
    after = hygiene.clean(items, dialect="anthropic")
    assert [item["role"] for item in after] == ["user", "assistant", "user", "assistant", "user"]
    assert after[2] is items[2]
    assert after[4] is items[3]


def test_an_anthropic_list_that_lost_its_first_user_message_gets_a_marker() -> None:
    after = hygiene.clean([{"role": "system", "content": "s"}, SAYS, USER], dialect="anthropic")
    assert [item["role"] for item in after] == ["system", "user", "assistant", "user"]
    assert "not shown" in after[1]["content"]


def test_a_harness_list_has_no_pairs_to_repair() -> None:
    items = [{"kind": "tool_output", "content": "x"}, {"kind": "system", "content": "late"}]
    assert hygiene.repair_tool_pairs(items, "harness").messages is items


@pytest.mark.parametrize(("pattern", "counts"), [("xcuko", (0, 0, 0, 1)), ("cxuko", (0, 0, 0, 1))])
def test_a_repair_in_two_rounds_counts_what_was_moved(pattern: str, counts: tuple[int, ...]) -> None:
    """Lonely reasoning goes in the first round; the output behind it belongs to the call before it, and is never replaced."""
    kinds: dict[str, Item] = {
        "x": {"type": "item_reference", "id": "x"},
        "c": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        "u": USER,
        "k": {"type": "reasoning", "id": "rs", "summary": []},
        "o": {"type": "function_call_output", "call_id": "c", "output": "1"},
    }
    repair = hygiene.repair_tool_pairs([kinds[letter] for letter in pattern], "responses")
    assert violations(repair.messages, "responses") == []
    assert (repair.added, repair.dropped_duplicates, repair.dropped_orphans, repair.moved) == counts


def test_what_is_no_message_is_an_error_not_a_repair() -> None:
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        hygiene.clean([USER, 5])
