from __future__ import annotations

from threading import Thread

from compact.tokens.memo import Memo


def test_the_oldest_go_until_half_is_free() -> None:
    memo: Memo[str, int] = Memo(100)
    for number in range(10):
        memo.put(f"k{number}", number, 10)
    assert (len(memo), memo.bytes) == (10, 100)
    memo.put("k10", 10, 10)
    assert (len(memo), memo.bytes) == (5, 50)
    assert memo.get("k5") is None
    assert [memo.get(f"k{number}") for number in range(6, 11)] == [6, 7, 8, 9, 10]


def test_what_is_larger_than_the_limit_is_not_kept() -> None:
    memo: Memo[str, int] = Memo(100)
    memo.put("small", 1, 40)
    memo.put("huge", 2, 101)
    assert (memo.get("small"), memo.get("huge")) == (1, None)


def test_putting_again_replaces_the_value_and_its_weight_and_makes_it_young() -> None:
    memo: Memo[str, int] = Memo(100)
    memo.put("a", 1, 40)
    memo.put("b", 2, 40)
    memo.put("a", 3, 20)
    assert (memo.get("a"), memo.bytes) == (3, 60)
    memo.put("c", 4, 45)
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (None, None, 4)


def test_threads_keep_the_weight_right() -> None:
    memo: Memo[int, int] = Memo(5_000)

    def fill(start: int) -> None:
        for number in range(start, start + 3_000):
            memo.put(number % 700, number, 10)
            memo.get(number % 700)

    threads = [Thread(target=fill, args=(start,)) for start in range(0, 8_000, 1_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memo.bytes == 10 * len(memo) <= 5_000
