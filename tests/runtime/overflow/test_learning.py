"""A limit is believed as far as it fits what is known, and it is one session's until two agree."""

from __future__ import annotations

import pytest

from compact.runtime.overflow import Overflow
from compact.runtime.overflow.learning import LearnedWindows
from compact.tokens.windows import Window

KNOWN = Window(128_000, "built-in", known=True)
UNKNOWN = Window(128_000, "default", known=False)


def told(limit: int, requested: int | None = None, *, by_code: bool = False) -> Overflow:
    return Overflow(limit, requested, None, "too long", by_code=by_code)


def learned() -> LearnedWindows:
    return LearnedWindows(reserve=0, buffer=0)


def test_a_limit_is_its_sessions_until_another_session_is_told_the_same() -> None:
    made = learned()
    for session, expected in (("a", 128_000), ("a", 128_000), ("b", 90_000)):
        made.take("m", session, told(90_000, 100_000), 99_000, KNOWN)
        assert made.narrow("m", KNOWN, session).tokens == 90_000
        assert made.narrow("m", KNOWN, "c").tokens == expected


def test_different_limits_do_not_agree() -> None:
    made = learned()
    made.take("m", "a", told(90_000, 100_000), 99_000, KNOWN)
    made.take("m", "b", told(91_000, 100_000), 99_000, KNOWN)
    assert made.narrow("m", KNOWN, "c") is KNOWN


@pytest.mark.parametrize(
    ("overflow", "window", "believed"),
    [
        (told(4_100), KNOWN, None),
        (told(4_100, 5_000), KNOWN, None),
        (told(4_100, 21_000), KNOWN, 4_100),
        (told(4_100, by_code=True), KNOWN, 4_100),
        (told(4_100), UNKNOWN, 4_100),
        (told(100, 21_000), UNKNOWN, None),
    ],
)
def test_a_limit_far_below_a_known_window_needs_more_than_words(
    overflow: Overflow, window: Window, believed: int | None
) -> None:
    assert learned().take("m", "a", overflow, 20_000, window).limit == believed


def test_a_limit_below_what_was_answered_before_is_not_believed() -> None:
    made = learned()
    made.take("m", "a", told(90_000, 100_000), 99_000, KNOWN)
    made.note_answer("m", "a", 80_000, counted=80_000)
    assert made.take("m", "a", told(70_000, 90_000, by_code=True), 90_000, KNOWN).limit is None


def test_an_answer_above_a_limit_removes_it() -> None:
    made = learned()
    for session in ("a", "b"):
        made.take("m", session, told(90_000, 100_000), 99_000, KNOWN)
    made.note_answer("m", "c", 95_000, counted=95_000)
    assert made.narrow("m", KNOWN, "d") is KNOWN
    made.note_answer("m", "a", 95_000, counted=95_000)
    assert made.narrow("m", KNOWN, "a") is KNOWN


def test_our_own_count_disproves_only_what_any_tokenizer_would() -> None:
    made = learned()
    made.take("m", "a", told(90_000, 100_000), 99_000, KNOWN)
    made.note_answer("m", "a", 100_000)
    assert made.narrow("m", KNOWN, "a").tokens == 90_000
    made.note_answer("m", "a", 125_000)
    assert made.narrow("m", KNOWN, "a") is KNOWN


def test_what_was_answered_before_any_refusal_counts_against_a_limit() -> None:
    made = learned()
    for session in ("a", "b"):
        made.note_answer("m", session, 14_600, counted=14_500)
    for session in ("a", "b", "new"):
        assert made.take("m", session, told(9_000, 15_000, by_code=True), 15_000, KNOWN).limit is None
        assert made.narrow("m", KNOWN, session) is KNOWN
    assert made.take("other", "a", told(9_000, 15_000, by_code=True), 15_000, KNOWN).limit == 9_000


def test_a_usage_that_cannot_be_of_the_request_does_not_count() -> None:
    made = learned()
    made.note_answer("m", "a", 1_000, counted=500_000)
    assert made.take("m", "a", told(9_000, 15_000), 15_000, KNOWN).limit == 9_000


@pytest.mark.parametrize("limit", [300, 3_999])
@pytest.mark.parametrize("window", [KNOWN, UNKNOWN])
def test_nothing_that_is_learned_lies_below_the_least_window(limit: int, window: Window) -> None:
    made = LearnedWindows(reserve=0, buffer=0, least=4_000)
    for session in ("a", "b"):
        made.take("m", session, told(limit, 15_000, by_code=True), 15_000, window)
        made.take("m", session, Overflow(None, None, None, "too long"), 500, window)
        made.take("m", session, Overflow(9_000, 15_000, 8_999, "too long"), 6_001, window)
    for session in ("a", "b", "c"):
        assert made.narrow("m", window, session).tokens >= 4_000
        assert made.usable("m", session, window) >= 4_000


def test_a_limit_absurdly_far_below_a_known_window_stays_its_sessions() -> None:
    made = learned()
    for session in ("a", "b", "d"):
        assert made.take("m", session, told(4_100, 15_000, by_code=True), 15_000, KNOWN).limit == 4_100
    assert made.narrow("m", KNOWN, "c") is KNOWN


def test_words_alone_never_make_a_models_limit() -> None:
    made = learned()
    for session in ("a", "b", "d"):
        assert made.take("m", session, told(90_000), 100_000, UNKNOWN).limit == 90_000
    assert made.narrow("m", UNKNOWN, "c") is UNKNOWN


def test_some_sessions_find_out_whether_the_models_limit_is_true() -> None:
    made = learned()
    for session in ("a", "b"):
        made.take("m", session, told(90_000, 100_000), 99_000, KNOWN)
    trying = [str(n) for n in range(200) if made.narrow("m", KNOWN, str(n)) is KNOWN]
    assert 3 <= len(trying) <= 40
    made.take("m", trying[0], told(90_000, 100_000), 99_000, KNOWN)
    assert made.narrow("m", KNOWN, trying[0]).tokens == 90_000, "it is told for itself"
    made.note_answer("m", trying[1], 95_000, counted=95_000)
    assert made.narrow("m", KNOWN, "c") is KNOWN


def test_what_is_remembered_is_bounded() -> None:
    made = learned()
    made.take("m", "a", told(90_000, 100_000), 99_000, KNOWN)
    for n in range(5_000):
        made.note_answer("m", f"s{n}", 100)
    assert made.narrow("m", KNOWN, "a") is KNOWN
    made.take("m", "a", told(90_000, 100_000), 99_000, KNOWN)
    for n in range(300):
        made.note_answer(f"model {n}", "a", 100)
    assert made.narrow("m", KNOWN, "a") is KNOWN
