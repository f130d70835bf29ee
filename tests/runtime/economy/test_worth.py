"""The formula of a pass: what it costs now, and after how many calls it repays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.economy import worth_it

R, W = 0.5e-6, 6.25e-6
"""Dollars per token: read from the cache, written to it for five minutes."""
tokens = st.integers(0, 400_000)
prices = st.floats(1e-8, 1e-4)


def test_a_warm_pass_repays_when_its_reads_have_paid_for_the_rewrite() -> None:
    found = worth_it(P=20_000, H=60_000, I=40_000, S=2_000, r=R, w=W, cold=False)
    cost = W * (40_000 + 2_000) - R * (60_000 + 40_000)
    assert found.cost == pytest.approx(cost)
    assert found.calls_to_repay == pytest.approx(cost / (R * 58_000))
    assert not found.worth
    assert worth_it(P=20_000, H=60_000, I=40_000, S=2_000, r=R, w=W, cold=False, calls=8).worth


def test_a_cold_pass_without_a_model_saves_what_it_does_not_write() -> None:
    found = worth_it(P=20_000, H=60_000, I=40_000, S=2_000, r=R, w=W, cold=True)
    assert (found.worth, found.calls_to_repay) == (True, 0.0)
    assert found.cost == pytest.approx(-W * 58_000)


def test_a_cold_pass_with_a_model_pays_at_once_only_if_the_model_is_cheaper_than_the_write() -> None:
    limit = W * 58_000
    assert worth_it(P=0, H=60_000, I=0, S=2_000, C=limit * 0.99, r=R, w=W, cold=True).worth
    dear = worth_it(P=0, H=60_000, I=0, S=2_000, C=limit * 1.5, r=R, w=W, cold=True)
    assert not dear.worth
    assert dear.calls_to_repay == pytest.approx(0.5 * limit / (R * 58_000))


def test_what_is_no_smaller_never_repays() -> None:
    for cold in (True, False):
        found = worth_it(P=10, H=500, I=10, S=500, r=R, w=W, cold=cold)
        assert (found.worth, found.calls_to_repay) == (False, None)


def test_a_pass_that_leaves_a_price_tier_saves_on_every_token() -> None:
    plain = worth_it(P=20_000, H=120_000, I=80_000, S=2_000, r=2 * R, w=2 * W, cold=False)
    below = worth_it(
        P=20_000, H=120_000, I=80_000, S=2_000, r=2 * R, w=2 * W, cold=False, r_after=R, w_after=W
    )
    assert plain.calls_to_repay is not None
    assert below.calls_to_repay is not None
    assert below.calls_to_repay < plain.calls_to_repay / 2


@given(tokens, tokens, tokens, tokens, prices, prices, st.floats(0, 10), st.integers(1, 400))
def test_the_calls_are_those_after_which_both_ways_have_cost_the_same(
    P: int,  # noqa: N803
    H: int,  # noqa: N803
    I: int,  # noqa: E741, N803
    S: int,  # noqa: N803
    r: float,
    w: float,
    C: float,  # noqa: N803
    calls: int,
) -> None:
    for cold in (True, False):
        found = worth_it(P=P, H=H, I=I, S=S, C=C, r=r, w=w, cold=cold, calls=calls)
        now = w * (P + H + I) if cold else r * (P + H + I)
        passed = (w * (P + S + I) if cold else r * P + w * (S + I)) + C
        without = now + calls * r * (P + H + I)
        with_pass = passed + calls * r * (P + S + I)
        assert found.cost == pytest.approx(passed - now, abs=1e-9)
        if found.worth:
            assert with_pass <= without + 1e-6
        elif H > S:
            assert with_pass > without - 1e-6
