"""Policies on a recorded timeline: what they send, what it costs, and that money never makes a session dearer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.tokens.prices import card_named, card_names
from compact.tools.pricing import POLICIES, Request, Timeline, dearer, play, price, total
from compact.tools.pricing.comparing import best_policy, settings_of
from compact.tools.pricing.timelines import USUAL_HEAD, Usage

WINDOW = 200_000
CARD = card_named("anthropic-5m")


def recorded(*requests: tuple[float, int, int], life_s: float = 300.0, name: str = "s") -> Timeline:
    """A timeline of (time, tokens, read) as a provider reported it."""
    return Timeline(
        name,
        [
            Request(
                tokens=tokens,
                output=100,
                start_s=at_s,
                usage=Usage(fresh=10, cache_read=read, cache_write=tokens - read - 10, life_s=life_s),
            )
            for at_s, tokens, read in requests
        ],
    )


def steady(pauses_s: Sequence[float], first: int = 30_000, grows: int = 2_000) -> Timeline:
    """A session that grows steadily, recorded as its cache behaves by the clock."""
    at_s, tokens, found = 0.0, first, [(0.0, first, 0)]
    for pause_s in pauses_s:
        at_s += pause_s
        found.append((at_s, tokens + grows, tokens if pause_s <= 300 else 0))
        tokens += grows
    return recorded(*found)


def cost(timeline: Timeline, policy: str) -> float:
    return play(timeline, POLICIES[policy], CARD, WINDOW).bill.cost


def test_recorded_is_the_bill_that_the_provider_reported() -> None:
    found = play(recorded((0, 30_000, 0), (10, 32_000, 30_000)), POLICIES["recorded"], CARD, WINDOW).bill
    assert (found.cache_read, found.cache_write, found.fresh, found.output) == (30_000, 31_980, 20, 200)
    assert found.cost == pytest.approx((30_000 * 0.5 + 31_980 * 6.25 + 20 * 5 + 200 * 25) / 1e6)


def test_the_simulator_plays_what_happened() -> None:
    timeline = steady([10, 20, 400, 10, 900, 10])
    assert cost(timeline, "replayed") == pytest.approx(cost(timeline, "recorded"), rel=0.001)


def test_a_lost_cache_is_played_as_a_loss() -> None:
    timeline = recorded((0, 60_000, 0), (10, 62_000, 18_000), (20, 64_000, 61_990))
    assert timeline.lost == {1}
    assert timeline.head == 18_000
    assert cost(timeline, "replayed") == pytest.approx(cost(timeline, "recorded"), rel=0.001)


def test_a_compaction_of_the_host_adds_nothing_to_an_uncompacted_session() -> None:
    timeline = recorded((0, 100_000, 0), (10, 150_000, 100_000), (20, 40_000, 18_000), (30, 45_000, 40_000))
    assert timeline.shrunk == {2}
    found = play(timeline, POLICIES["uncompacted"], CARD, WINDOW).bill
    assert found.cache_read + found.cache_write + found.fresh == 100_000 + 150_000 + 150_000 + 155_000


def test_a_pass_at_the_trigger_leaves_what_the_ladder_keeps_and_the_head() -> None:
    timeline = steady([10] * 80)
    found = play(timeline, POLICIES["trigger_85"], CARD, WINDOW)
    assert (found.passes, found.forced) == (1, 1)
    assert found.removed == 170_000 - 99_000
    plain = play(timeline, POLICIES["uncompacted"], CARD, WINDOW).bill
    read = plain.cache_read - found.bill.cache_read
    assert read > 168_000 - USUAL_HEAD, "of the request that the pass changed, only the head is read"


def test_money_makes_no_pass_while_the_cache_is_warm() -> None:
    timeline = steady([10] * 30 + [299] * 30)
    assert play(timeline, POLICIES["auto"], CARD, WINDOW).passes == 0


def test_money_makes_a_pass_for_each_cold_moment_above_the_least_size() -> None:
    timeline = steady([10] * 10 + [400] + [10] * 10 + [400] + [10] * 5)
    found = play(timeline, POLICIES["auto"], CARD, WINDOW)
    assert (found.passes, found.forced) == (2, 0)
    assert cost(timeline, "auto") < cost(timeline, "trigger_85")


def test_a_small_session_gets_no_pass() -> None:
    timeline = steady([400] * 10, first=20_000, grows=1_000)
    assert play(timeline, POLICIES["auto"], CARD, WINDOW).passes == 0


def test_without_times_money_decides_nothing() -> None:
    timeline = Timeline("s", [Request(tokens=50_000 + n * 1_000) for n in range(20)])
    assert play(timeline, POLICIES["auto"], CARD, WINDOW).passes == 0


pauses = st.lists(
    st.sampled_from([5.0, 60.0, 290.0, 330.0, 400.0, 2_000.0, 5_000.0]), min_size=1, max_size=60
)


@given(pauses, st.integers(5_000, 150_000), st.integers(0, 12_000), st.sampled_from(card_names()))
def test_passes_that_nothing_forces_never_make_a_session_dearer(
    pauses_s: list[float], first: int, grows: int, name: str
) -> None:
    timeline, card = steady(pauses_s, first, grows), card_named(name)
    auto = play(timeline, POLICIES["auto"], card, WINDOW)
    if not auto.forced:
        assert auto.bill.cost <= play(timeline, POLICIES["uncompacted"], card, WINDOW).bill.cost * (1 + 1e-9)


@given(pauses, st.integers(5_000, 150_000), st.integers(0, 12_000))
def test_every_request_is_billed_once_whatever_the_policy(
    pauses_s: list[float], first: int, grows: int
) -> None:
    timeline = steady(pauses_s, first, grows)
    for policy in POLICIES.values():
        found = play(timeline, policy, CARD, WINDOW)
        sizes = found.bill.cache_read + found.bill.cache_write + found.bill.fresh
        assert sizes <= sum(each.tokens for each in timeline.requests)
        assert found.bill.output == 100 * len(timeline.requests)
        if policy.settings is None:
            assert sizes == sum(each.tokens for each in timeline.requests)


def test_the_best_policy_is_the_cheapest_and_of_two_alike_the_default() -> None:
    cold = price([steady([10] * 20 + [400] + [10] * 20)], [CARD], WINDOW)
    assert best_policy(cold, CARD.name) == "auto"
    warm = price([steady([10] * 20)], [CARD], WINDOW)
    assert best_policy(warm, CARD.name) == "auto"
    assert "economy: off" in settings_of("trigger_85", 200_000)
    assert settings_of("auto", 200_000) == "max_context_tokens: 200000\npolicy:\n  economy: auto"


def test_sessions_that_a_forced_pass_makes_dearer_are_listed() -> None:
    """A pass just before the end of a session is never repaid."""
    sessions = price([steady([10] * 70)], [CARD], WINDOW)
    (found,) = dearer(sessions, CARD.name)
    assert found.forced == 1
    assert found.cost > found.other_cost
    assert found.share == pytest.approx(found.cost / found.other_cost - 1)
    assert dearer(sessions, CARD.name, "trigger_85") == []


def test_sums_are_those_of_the_sessions() -> None:
    timelines = [steady([10, 400, 10]), steady([10] * 80)]
    sessions = price(timelines, [CARD], WINDOW)
    for name in POLICIES:
        each = [session.cards[CARD.name][name] for session in sessions]
        assert total(sessions, CARD.name, name).bill.cost == pytest.approx(sum(one.bill.cost for one in each))
        assert total(sessions, CARD.name, name).passes == sum(one.passes for one in each)


def test_a_session_grows_in_every_policy_as_it_was_recorded() -> None:
    timeline = steady([10] * 10)
    sizes = [each.tokens for each in timeline.requests]
    assert all(after - before == 2_000 for before, after in pairwise(sizes))
    found = play(timeline, POLICIES["trigger_85"], CARD, WINDOW).bill
    assert found.cache_read + found.cache_write + found.fresh == sum(sizes)
