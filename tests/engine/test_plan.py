"""Which messages a summary replaces and where it stands: every message costs 100 tokens, the summary what it is told."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from support.cuts import built

from compact.engine.context import Desk, Row
from compact.engine.effects import Begun
from compact.engine.plan import Folded, Rules, View, bound_to_fold, layered, reducible, selective
from compact.events import PolicyInForce
from compact.messages import Text, ToolResult, dialects
from compact.messages.markers import text_hash
from compact.summaries.request import Reply, SummaryRequest

CHAT = dialects.get("chat")


def desk(summary: int = 20) -> Desk:
    """A desk on which a summary with words in it costs so many tokens, and its frame nothing."""
    return Desk(
        dialect=CHAT,
        count=lambda message: summary if "BODY" in message.text else 0,
        count_text=lambda text: len(text.split()),
        scale=int,
        redact=str,
        rewrite=lambda message: message,
        large_result_tokens=20_000,
        preview_lines=10,
        preview_tokens=400,
        excerpt_share=0.25,
        write_tools=frozenset(),
    )


def rules(**changed: Any) -> Rules:
    usual: dict[str, Any] = {
        "limit": 10_000,
        "goal": 10_000,
        "fixed": 0,
        "summarize_above": 0,
        "fold_all": False,
        "keep_turns": 1,
        "keep_pairs": 1,
        "never_prune": frozenset({"system"}),
        "layout": "layered",
        "retention_window": 0,
        "recent_tokens": None,
        "strategy": "task_state",
        "summary_tokens": 100,
        "reason": "manual",
        "note": None,
        "policy": PolicyInForce(trigger_pct=0.85, hard_cap_buffer=0, strategy="task_state"),
    }
    return Rules(**{**usual, **changed})


def rows_of(pattern: str) -> list[Row]:
    return [Row(CHAT.read(item), 100, n) for n, item in enumerate(built(pattern))]


def view_of(rows: list[Row]) -> View:
    own = {text_hash(row.message.text) for row in rows if row.message.text.startswith("S")}
    return View(CHAT, frozenset({"system"}), frozenset(own))


def made(
    layout: Any, pattern: str, chosen: Rules, *, summary: int = 20, answer: str = "BODY"
) -> tuple[str, Folded, list[SummaryRequest]]:
    """What a layout leaves of a pattern (* is the new summary), all that it says of it, and what it asked for."""
    rows = rows_of(pattern)
    working: Generator[Any, Any, Folded] = layout(
        rows, desk(summary), chosen, view_of(rows), Begun(1, "/conversation_history/1.md")
    )
    requests: list[SummaryRequest] = []
    reply: Reply | None = None
    try:
        while True:
            need = working.send(reply)
            assert isinstance(need, SummaryRequest)
            requests.append(need)
            reply = Reply(answer, trusted=True)
    except StopIteration as end:
        folded: Folded = end.value
    left = "".join("*" if row.source is None else pattern[row.source] for row in folded.rows)
    return left, folded, requests


# --- what is pinned, what is a summary


def test_a_message_is_pinned_by_its_mark_or_its_role() -> None:
    view = View(CHAT, frozenset({"system"}))
    system, user, protected = (row.message for row in rows_of("sup"))
    assert [view.is_pinned(message) for message in (system, user, protected)] == [True, False, True]


def test_only_a_summary_of_this_session_is_one() -> None:
    ours, words = (row.message for row in rows_of("Sa"))
    assert not View(CHAT, frozenset()).is_summary(ours)
    view = View(CHAT, frozenset(), frozenset({text_hash(ours.text)}))
    assert [view.is_summary(message) for message in (ours, words)] == [True, False]


# --- what may be reduced


@pytest.mark.parametrize(
    ("goal", "keep", "whole"),
    [(2000, 4, 4), (1200, 4, 3), (800, 4, 2), (799, 4, 1), (100, 4, 1), (100, 1, 1), (2000, 0, 0)],
)
def test_the_newest_pairs_stay_whole_in_half_of_the_room(goal: int, keep: int, whole: int) -> None:
    rows = rows_of("u" + "tr" * 5 + "a")
    units = view_of(rows).units(rows)
    free = reducible(rows, units, rules(goal=goal, keep_pairs=keep))
    assert free == [False, *[True] * (5 - whole), *[False] * whole, False]


def test_a_protected_pair_takes_nothing_of_the_room_for_the_newest() -> None:
    rows = rows_of("utrtrtra")
    protected = [Row(row.message, row.tokens, row.source) for row in rows]
    item = {**built("utrtrtra")[6], "meta": {"protected": True}}
    protected[6] = Row(CHAT.read(item), 100, 6)
    units = view_of(rows).units(protected)
    assert reducible(protected, units, rules(goal=400, keep_pairs=2)) == [False, True, False, False, False]


# --- what will be folded anyway


def bound(pattern: str, **changed: Any) -> set[int]:
    rows = rows_of(pattern)
    return bound_to_fold(rows, view_of(rows).units(rows), desk(), rules(**changed))


def test_as_many_of_the_oldest_are_folded_as_the_goal_with_a_summary_takes() -> None:
    pattern = "s" + "ua" * 6
    assert bound(pattern, goal=1300) == set()
    assert bound(pattern, goal=1299) == {1, 2}
    assert bound(pattern, goal=600) == set(range(1, 9))
    assert bound(pattern, goal=599) == set(range(1, 10))
    assert bound(pattern, goal=1) == set(range(1, 11)), "the system prompt and the newest turn stay"


@pytest.mark.parametrize("other", [{"summarize_above": 1}, {"layout": "selective"}, {"recent_tokens": 5}])
def test_nothing_is_bound_to_be_folded_where_something_else_decides(other: dict[str, Any]) -> None:
    assert bound("s" + "ua" * 6, goal=600, **other) == set()


def test_what_can_become_pointers_counts_as_pointers() -> None:
    """A result of 200 words takes 56 tokens as a pointer: three of four pairs take 156, the newest 300."""
    rows = rows_of("u" + "tr" * 4 + "a")
    for n, row in enumerate(rows):
        if row.message.results:
            (result,) = row.message.results
            long = ToolResult(result.call_id, (Text("word " * 200),))
            rows[n] = Row(row.message.with_parts((long,)), 200, n)
    units = view_of(rows).units(rows)
    assert bound_to_fold(rows, units, desk(), rules(goal=968)) == set()
    assert bound_to_fold(rows, units, desk(), rules(goal=900)) == {1, 2}


# --- layered


def test_the_oldest_are_folded_behind_what_is_pinned_and_only_as_many_as_it_takes() -> None:
    left, folded, _ = made(layered, "s" + "ua" * 6, rules(goal=800), summary=100)
    assert left == "s*uauaua"
    assert [fold.input_messages for fold in folded.folds] == [6]
    assert made(layered, "s" + "ua" * 6, rules(goal=799), summary=100)[0] == "s*auaua"


def test_a_summary_stands_behind_the_last_message_if_all_are_pinned() -> None:
    assert made(layered, "saaaap", rules(goal=1))[0] == "sp*"


@pytest.mark.parametrize(("summary", "left"), [(50, "s*auauaua"), (51, "s*uauaua"), (100, "s*uauaua")])
def test_the_newest_of_what_was_folded_stays_after_all_where_the_summary_left_room(
    summary: int, left: str
) -> None:
    found, folded, _ = made(layered, "s" + "ua" * 6, rules(goal=850), summary=summary)
    assert found == left
    assert folded.folds[0].input_messages == 6, "it is in the summary all the same"


def test_everything_that_may_go_is_folded_on_request() -> None:
    assert made(layered, "s" + "ua" * 6, rules(fold_all=True))[0] == "s*ua"


@pytest.mark.parametrize(("summary", "left"), [(299, "*u"), (300, "aaau"), (301, "aaau")])
def test_a_summary_that_is_not_smaller_replaces_nothing(summary: int, left: str) -> None:
    found, folded, _ = made(layered, "aaau", rules(fold_all=True), summary=summary)
    assert found == left
    assert len(folded.folds) == (1 if "*" in left else 0)


def test_a_summary_that_says_nothing_replaces_nothing() -> None:
    left, folded, requests = made(layered, "aaau", rules(fold_all=True), answer="")
    assert (left, folded.folds, len(requests)) == ("aaau", (), 1)


@pytest.mark.parametrize(
    ("pattern", "changed", "tokens"),
    [
        ("a" * 10 + "u", {"summary_tokens": 400}, 400),
        ("aaau", {"summary_tokens": 400}, 200),
        ("s" + "a" * 10 + "u", {"summary_tokens": 400, "limit": 900}, 200),
        ("s" + "a" * 10 + "u", {"summary_tokens": 400, "limit": 100}, 48),
    ],
)
def test_the_room_for_a_summary(pattern: str, changed: dict[str, Any], tokens: int) -> None:
    """The configured number; at most two thirds of what it replaces, and a quarter of what is not pinned."""
    (request,) = made(layered, pattern, rules(goal=1, **changed))[2]
    assert request.max_tokens == tokens - 2


def test_an_earlier_summary_is_taken_in() -> None:
    left, folded, (request,) = made(layered, "Saaaau", rules(goal=1))
    assert left == "*u"
    assert request.previous == "S0"
    assert len(request.messages) == 4
    assert request.numbers == (2, 3, 4, 5)
    assert folded.folds[0].input_tokens == 500


def test_an_earlier_summary_is_taken_in_even_if_it_would_be_enough_without() -> None:
    assert made(layered, "aaaaSau", rules(goal=400), summary=101)[0] == "*au"


def test_an_earlier_summary_alone_is_not_summarized_again() -> None:
    left, folded, requests = made(layered, "Su", rules(fold_all=True))
    assert (left, folded.folds, requests) == ("Su", (), [])


def test_an_earlier_summary_is_never_spared() -> None:
    assert made(layered, "aaSu", rules(goal=350), summary=1)[0] == "*aau"


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
    assert made(layered, pattern, rules(recent_tokens=tokens, keep_pairs=9, keep_turns=9))[0] == left


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
    found = made(layered, "uatruaatruaatruatr", rules(goal=limit, limit=limit, keep_turns=3, keep_pairs=3))[0]
    assert found == left


# --- selective


def test_run_after_run_is_folded_while_it_is_too_much() -> None:
    pattern = "uaauaauaau"
    assert made(selective, pattern, rules(goal=1000))[0] == pattern
    assert made(selective, pattern, rules(goal=820))[0] == "u*uaauaau"
    left, folded, requests = made(selective, pattern, rules(goal=819, summary_tokens=400))
    assert left == "u*u*uaau"
    assert [request.numbers for request in requests] == [(2, 3), (5, 6)]
    assert [request.max_tokens for request in requests] == [98, 98], "half of what it replaces"
    assert len(folded.folds) == 2
    assert made(selective, pattern, rules(goal=1000, fold_all=True))[0] == "u*u*u*u"


def test_the_room_for_the_summary_of_a_run_is_the_configured_number_at_most() -> None:
    (request,) = made(selective, "uaaaau", rules(goal=1, summary_tokens=60))[2]
    assert request.max_tokens == 58


@pytest.mark.parametrize(("summary", "left"), [(199, "u*u"), (200, "uaau"), (201, "uaau")])
def test_a_run_stays_if_its_summary_is_not_smaller(summary: int, left: str) -> None:
    assert made(selective, "uaau", rules(fold_all=True), summary=summary)[0] == left


def test_a_run_stays_if_its_summary_says_nothing() -> None:
    assert made(selective, "uaau", rules(fold_all=True), answer="")[0] == "uaau"
