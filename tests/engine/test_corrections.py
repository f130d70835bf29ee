"""How our count of a request becomes its provider's."""

from __future__ import annotations

import pytest

from compact.engine.corrections import (
    GROWTH_MARGIN,
    GROWTH_TOKENS,
    UNCORRECTED,
    Correction,
    Observed,
    correction_of,
)
from compact.tokens import Estimate

ESTIMATE = Estimate(10_000, 1_000, 0, 2_000, 7_000, 0.1, 100_000, "m")


def total(
    ours: int, step: int, observed: Observed | None, *, rate: float = 1.0, is_exact: bool = True
) -> int:
    found = correction_of(ours, step, observed, rate=rate, is_exact=is_exact)
    return found.scale(ours) + found.unseen


def test_without_an_observation_our_count_stands_at_the_learned_rate() -> None:
    assert correction_of(10_000, 0, None) == UNCORRECTED
    assert UNCORRECTED.correct(ESTIMATE) is ESTIMATE
    assert total(10_000, 0, None, rate=0.95) == 9_500


def test_what_came_since_is_added_to_the_last_observed_count() -> None:
    for counted in (9_000, 10_000, 60_000):
        assert total(12_000, 3, Observed(3, counted, 10_000)) == counted + 2_000


def test_growth_by_an_inexact_count_is_rounded_up_and_an_equal_list_is_what_was_counted() -> None:
    seen = Observed(3, 60_000, 10_000)
    assert total(12_000, 3, seen, is_exact=False) == 60_000 + round(2_000 * GROWTH_MARGIN) + GROWTH_TOKENS
    assert total(10_000, 3, seen, is_exact=False) == 60_000
    assert 60_000 - 2_000 < total(8_000, 3, seen, is_exact=False) < 60_000


@pytest.mark.parametrize("step", [4, 9])
def test_behind_a_later_step_the_observed_total_says_nothing_of_what_stands(step: int) -> None:
    """A usage from before a compaction as the present size is what makes other tools compact again and again."""
    assert total(4_000, step, Observed(3, 60_000, 50_000)) == 4_000 + 10_000, "a hidden prompt stays"
    assert total(4_000, step, Observed(3, 40_000, 50_000)) == 3_200, "a lower count lowers the rate"


def test_a_refused_request_makes_all_count_as_much_as_it_did() -> None:
    for step in (3, 4):
        assert total(4_000, step, Observed(3, 14_000, 10_000, refused=True)) == 5_600


def test_the_shares_of_a_corrected_estimate_add_up() -> None:
    for correction in (Correction(0.9, 0), Correction(1.0, 5_000), Correction(1.3, 77)):
        found = correction.correct(ESTIMATE)
        assert found.total == correction.scale(10_000) + correction.unseen
        assert found.system + found.developer + found.tools_schema + found.messages == found.total
        assert found.usage_pct == found.total / found.max_tokens
        assert min(found.system, found.tools_schema, found.messages) > 0


def test_a_fixed_part_has_room_for_what_rounding_adds() -> None:
    assert UNCORRECTED.scale_fixed(100) == 100
    assert Correction(1.5, 40).scale_fixed(100) >= 150 + 40 + 3
