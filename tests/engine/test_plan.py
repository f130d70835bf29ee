"""Which messages a summary replaces and where it stands: every message costs 100 tokens, the summary what it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.cuts import built
from support.engine import pass_rules

from compact.engine.context import Context, Desk, Row
from compact.engine.effects import Emit, Store, drive
from compact.engine.plan import choose_kept, doomed
from compact.engine.stages.shrink_calls import shrink_calls
from compact.engine.stages.summarize import summarize
from compact.messages import Text, ToolResult, dialects
from compact.messages.message import text_hash
from compact.messages.units import removable
from compact.summaries.request import Reply, SummaryRequest

CHAT = dialects.get("chat")


def desk(summary: int = 20) -> Desk:
    """A desk on which a summary with words in it costs so many tokens, and its frame nothing."""
    return Desk(
        dialect=CHAT,
        count=lambda message: summary if "BODY" in message.text else 0,
        count_text=lambda text: len(text.split()),
        gauge_text=lambda text: len(text.split()),
        scale=int,
        redact=str,
        redact_output=str,
        rewrite=lambda message: message,
        large_result_tokens=20_000,
        preview_lines=10,
        preview_tokens=400,
        excerpt_share=0.25,
        write_tools=frozenset(),
    )


def rows_of(pattern: str) -> list[Row]:
    return [Row(CHAT.read(item), 100, n) for n, item in enumerate(built(pattern))]


def context_of(pattern: str, *, summary: int = 20, **changed: Any) -> Context:
    """A pass over a pattern. Its summaries are the session's own."""
    rows = rows_of(pattern)
    return Context(
        rows=rows,
        rules=pass_rules(**changed),
        desk=desk(summary),
        step=1,
        history_path="/conversation_history/1.md",
        summaries=frozenset(text_hash(row.message.text) for row in rows if row.message.text.startswith("S")),
    )


def fold(
    pattern: str, *, summary: int = 20, answer: str = "BODY", **changed: Any
) -> tuple[str, Context, list[SummaryRequest]]:
    """What summarizing leaves of a pattern (* is the new summary), the whole result, and what was asked for."""
    requests: list[SummaryRequest] = []

    def serve(effect: Any) -> Reply | None:
        if isinstance(effect, Emit):
            return None
        assert isinstance(effect, SummaryRequest)
        requests.append(effect)
        return Reply(answer, trusted=True)

    after = drive(summarize(context_of(pattern, summary=summary, **changed)), serve)
    left = "".join("*" if row.source is None else pattern[row.source] for row in after.rows)
    return left, after, requests


def fold_runs(pattern: str, **changed: Any) -> tuple[str, Context, list[SummaryRequest]]:
    """`fold` in the selective layout."""
    return fold(pattern, layout="selective", **changed)


# --- what is pinned, what is a summary


def test_a_message_is_pinned_by_its_mark_or_its_role() -> None:
    context = context_of("sup")
    assert [context.is_pinned(row.message) for row in context.rows] == [True, False, True]


def test_only_a_summary_of_this_session_is_one() -> None:
    context = context_of("Sa")
    assert [context.is_summary(row.message) for row in context.rows] == [True, False]
    of_another_session = replace(context, summaries=frozenset())
    assert not of_another_session.is_summary(context.rows[0].message)


# --- what may be reduced


@pytest.mark.parametrize(
    ("up_to", "keep", "whole"),
    [
        (1200, 4, 4),
        (1199, 4, 3),
        (1000, 4, 3),
        (999, 4, 2),
        (800, 4, 2),
        (799, 4, 1),
        (1, 4, 1),
        (1, 1, 1),
        (2000, 0, 0),
    ],
)
def test_the_newest_pairs_stay_whole_as_long_as_they_fit_beside_a_summary(
    up_to: int, keep: int, whole: int
) -> None:
    """A pair costs 200 tokens. They leave 200, twice what a summary may take, for those that go."""
    context = context_of("u" + "tr" * 5 + "a", target=1, keep_up_to=up_to, keep_pairs=keep)
    assert choose_kept(context) == (1, whole)


def test_turns_and_pairs_fall_in_turn() -> None:
    context = context_of("utra" * 5, keep_turns=3, keep_pairs=3)
    found = [
        choose_kept(replace(context, rules=pass_rules(keep_turns=3, keep_pairs=3, keep_up_to=size)))
        for size in range(2100, 0, -100)
    ]
    assert list(dict.fromkeys(found)) == [(3, 3), (2, 3), (2, 2), (1, 2), (1, 1)]


def test_a_protected_pair_is_counted_with_what_must_stay() -> None:
    context = context_of("utrtrtra", keep_up_to=800, keep_pairs=2)
    assert choose_kept(context) == (1, 2)
    rows = list(context.rows)
    item = {**built("utrtrtra")[2], "meta": {"protected": True}}
    rows[2] = Row(CHAT.read(item), 100, 2)
    assert choose_kept(context.with_rows(rows)) == (1, 2)
    assert choose_kept(replace(context, rules=pass_rules(keep_up_to=699, keep_pairs=2))) == (1, 1)


# --- what will be folded anyway


def find_doomed(pattern: str, **changed: Any) -> set[int]:
    """Places of the doomed units, where nothing can be reduced."""
    context = context_of(pattern, **changed)
    free = removable(context.units, context.rules.keep_turns, context.rules.keep_pairs)
    return doomed(context, free, [context.tokens_of(unit) for unit in context.units])


def test_as_many_of_the_oldest_are_folded_as_the_target_with_a_summary_takes() -> None:
    """300 tokens must stay. Of the room above them a summary with its record gets three quarters, the newest of the others the rest."""
    pattern = "s" + "ua" * 6
    assert find_doomed(pattern, target=1300) == set()
    assert find_doomed(pattern, target=1299) == set(range(1, 9)), "a quarter of 999 is room for two"
    assert find_doomed(pattern, target=1100) == set(range(1, 9)), "a quarter of 800 is room for two"
    assert find_doomed(pattern, target=1096) == set(range(1, 10))
    assert find_doomed(pattern, target=700) == set(range(1, 10)), "a quarter of 400 is room for one"
    assert find_doomed(pattern, target=696) == set(range(1, 11))
    assert find_doomed(pattern, target=1) == set(range(1, 11)), "the system prompt and the newest turn stay"


@pytest.mark.parametrize("other", [{"summarize_above": 1}, {"layout": "selective"}, {"recent_tokens": 5}])
def test_nothing_is_bound_to_be_folded_where_something_else_decides(other: dict[str, Any]) -> None:
    assert find_doomed("s" + "ua" * 6, target=600, **other) == set()


@pytest.mark.parametrize(
    ("target", "gone", "stored"), [(1124, set(), 4), (1123, {1, 2, 3}, 1), (1119, {1, 2, 3, 4}, 0)]
)
def test_what_can_become_pointers_counts_as_pointers(target: int, gone: set[int], stored: int) -> None:
    """A result of 200 words takes 56 tokens as a pointer: four of five pairs take 156, the newest 300.

    With the words around them that is 1,124 tokens, of which 500 must stay. If that is too much, three quarters of the room above
    500 go to a summary. What is folded anyway is not stored beforehand.
    """
    context = context_of("u" + "tr" * 5 + "a", target=target)
    rows = list(context.rows)
    for n, row in enumerate(rows):
        if row.message.results:
            (result,) = row.message.results
            long = ToolResult(result.call_id, (Text("word " * 200),))
            rows[n] = Row(row.message.with_parts((long,)), 200, n)
    context = context.with_rows(rows)
    free = removable(context.units, 1, 1)
    assert doomed(context, free, [100, 156, 156, 156, 156, 300, 100]) == gone
    stores: list[Store] = []

    def serve(effect: Any) -> str | None:
        if not isinstance(effect, Store):
            return None
        stores.append(effect)
        return f"/tool_outputs/{len(stores)}.txt"

    drive(shrink_calls(context), serve)
    assert len(stores) == stored


# --- layered


def test_the_oldest_are_folded_behind_what_is_pinned_and_only_as_many_as_it_takes() -> None:
    """Nine make room for a summary of 375 tokens, three quarters of 500; it takes 100, so the newest three of them stay."""
    left, after, _ = fold("s" + "ua" * 6, target=800, summary=100)
    assert left == "s*uauaua"
    assert [made.input_messages for made in after.folds] == [9]
    assert fold("s" + "ua" * 6, target=799, summary=100)[0] == "s*auaua"


def test_a_summary_stands_behind_the_last_message_if_all_are_pinned() -> None:
    assert fold("saaaap", target=1)[0] == "sp*"


@pytest.mark.parametrize(("summary", "left"), [(50, "s*auauaua"), (51, "s*uauaua"), (100, "s*uauaua")])
def test_the_newest_of_what_was_folded_stays_after_all_where_the_summary_left_room(
    summary: int, left: str
) -> None:
    found, after, _ = fold("s" + "ua" * 6, target=850, summary=summary)
    assert found == left
    assert after.folds[0].input_messages == 9, "it is in the summary all the same"


def test_everything_that_may_go_is_folded_on_request() -> None:
    assert fold("s" + "ua" * 6, fold_all=True)[0] == "s*ua"


@pytest.mark.parametrize(("summary", "left"), [(299, "*u"), (300, "aaau"), (301, "aaau")])
def test_a_summary_that_is_not_smaller_replaces_nothing(summary: int, left: str) -> None:
    found, after, _ = fold("aaau", fold_all=True, summary=summary)
    assert found == left
    assert len(after.folds) == (1 if "*" in left else 0)


def test_a_summary_that_says_nothing_replaces_nothing() -> None:
    left, after, requests = fold("aaau", fold_all=True, answer="")
    assert (left, after.folds, len(requests)) == ("aaau", (), 1)


@pytest.mark.parametrize(
    ("pattern", "changed", "tokens", "record"),
    [
        ("a" * 10 + "u", {"summary_tokens": 300}, 300, 298),
        ("a" * 10 + "u", {"summary_tokens": 900}, 798, 0),
        ("aaau", {"summary_tokens": 400}, 238, 0),
        ("s" + "a" * 10 + "u", {"summary_tokens": 400, "budget": 900}, 348, 0),
        ("s" + "a" * 10 + "u", {"summary_tokens": 400, "budget": 100}, 46, 0),
        ("s" + "a" * 10 + "u", {"target": 900}, 100, 498),
        ("s" + "a" * 10 + "u", {"target": 900, "fold_all": True}, 98, 0),
    ],
)
def test_the_room_for_a_summary_and_for_its_record(
    pattern: str, changed: dict[str, Any], tokens: int, record: int
) -> None:
    """Together they fill the target, but never more than four fifths of what they replace. The frame takes 2 tokens of it.

    If next to nothing fits the target, they get twice the configured number, or half of what is not pinned or newest of the
    user's; at least 48. The summary itself gets the configured number at most, the record the rest. Where everything is
    folded, there is only the summary.
    """
    (request,) = fold(pattern, **{"target": 1, **changed})[2]
    assert (request.max_tokens, request.record_tokens) == (tokens, record)


def test_an_earlier_summary_is_taken_in() -> None:
    left, after, (request,) = fold("Saaaau", target=1)
    assert left == "*u"
    assert request.previous == "S0"
    assert len(request.messages) == 4
    assert request.numbers == (2, 3, 4, 5)
    assert after.folds[0].input_tokens == 500


def test_an_earlier_summary_is_taken_in_even_if_it_would_be_enough_without() -> None:
    assert fold("aaaaSau", target=400, summary=101)[0] == "*au"


def test_an_earlier_summary_alone_is_not_summarized_again() -> None:
    left, after, requests = fold("Su", fold_all=True)
    assert (left, after.folds, requests) == ("Su", (), [])


def test_an_earlier_summary_is_never_spared() -> None:
    assert fold("aaSu", target=350, summary=1)[0] == "*aau"


@pytest.mark.parametrize(
    ("tokens", "pattern", "left"),
    [
        (250, "aaaaaau", "*au"),
        (200, "aaaaaau", "*au"),
        (199, "aaaaaau", "*u"),
        (200, "aaaaaapu", "*apu"),
        (100, "uatrtrau", "*u"),
        (900, "aaaaaau", "aaaaaau"),
    ],
)
def test_with_a_share_for_what_is_recent_all_that_is_older_is_folded(
    tokens: int, pattern: str, left: str
) -> None:
    assert fold(pattern, target=1, recent_tokens=tokens, keep_pairs=9, keep_turns=9)[0] == left


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (1500, "*uaatruaatruatr"),
        (1400, "*aatruaatruatr"),
        (1300, "*atruaatruatr"),
        (1000, "*uaatruatr"),
        (500, "*uatr"),
    ],
)
def test_one_turn_less_is_kept_then_one_pair_less_while_it_does_not_fit(limit: int, left: str) -> None:
    rules: dict[str, Any] = {
        "target": limit,
        "budget": limit,
        "keep_up_to": limit,
        "keep_turns": 3,
        "keep_pairs": 3,
    }
    found = fold("uatruaatruaatruatr", **rules)[0]
    assert found == left


# --- selective


def test_run_after_run_is_folded_while_it_is_too_much() -> None:
    pattern = "uaauaauaau"
    assert fold_runs(pattern, target=1000)[0] == pattern
    assert fold_runs(pattern, target=820)[0] == "u*uaauaau"
    left, after, requests = fold_runs(pattern, target=819, summary_tokens=400)
    assert left == "u*u*auaau", "the newest of what was folded stays where there is room for it"
    assert [request.numbers for request in requests] == [(2, 3), (5, 6)]
    assert [request.max_tokens for request in requests] == [98, 98], "half of what it replaces"
    assert len(after.folds) == 2
    assert fold_runs(pattern, target=1000, fold_all=True)[0] == "u*u*u*u"


def test_the_room_for_the_summary_of_a_run_is_the_configured_number_at_most() -> None:
    (request,) = fold_runs("uaaaau", target=1, summary_tokens=60)[2]
    assert request.max_tokens == 58


@pytest.mark.parametrize(("summary", "left"), [(199, "u*u"), (200, "uaau"), (201, "uaau")])
def test_a_run_stays_if_its_summary_is_not_smaller(summary: int, left: str) -> None:
    assert fold_runs("uaau", fold_all=True, summary=summary)[0] == left


def test_a_run_stays_if_its_summary_says_nothing() -> None:
    assert fold_runs("uaau", fold_all=True, answer="")[0] == "uaau"
