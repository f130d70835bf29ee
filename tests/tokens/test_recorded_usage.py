"""Estimates against the usage that was recorded with real sessions. `python -m bench counts` judges all of them."""

from __future__ import annotations

from bench.counts import excerpts, judge


def test_behind_the_first_reply_estimates_are_close_and_hardly_ever_too_low() -> None:
    found = judge(excerpts())
    assert len(found) >= 60
    assert sum(one.is_under for one in found) <= 0.02 * len(found)
    assert sum(one.is_close for one in found) >= 0.9 * len(found)
    assert all(one.counted * 0.995 <= one.estimate <= one.counted * 1.1 for one in found)
