"""The bench of what later words do: its pairs are sound, and they are read as they are meant."""

from __future__ import annotations

from statistics import mean

from bench.turns import judge_all, turns


def test_the_pairs_are_in_many_languages_and_differ() -> None:
    pairs = turns()
    assert {pair.does for pair in pairs} == {"changed", "withdrawn", "both"}
    assert len({pair.lang for pair in pairs if pair.does == "withdrawn"}) >= 10
    assert len({(pair.say, pair.later) for pair in pairs}) == len(pairs)


def test_later_words_are_read_as_they_are_meant() -> None:
    read = list(judge_all(turns(), 0))
    assert mean(one.is_known for one in read) >= 0.97
    assert mean(one.is_shown for one in read if one.turn.does != "both") <= 0.04
