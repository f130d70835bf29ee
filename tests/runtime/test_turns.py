"""Threads that work beside an event loop take turns, and nobody waits for one that only waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from support.running import Caller
from support.waiting import WAIT_S

from compact import turns
from compact.runtime.lanes import Lane, Run


def in_turns(work: Callable[[], None]) -> None:
    turns.join()
    try:
        work()
    finally:
        turns.leave()


def hang(has_turn: threading.Event, let_go: threading.Event) -> None:
    has_turn.set()
    assert let_go.wait(WAIT_S)


def test_one_works_at_a_time_and_a_resting_one_lets_others_go_first() -> None:
    working, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal working, most
        for _ in range(5):
            turns.take()
            with lock:
                working += 1
                most = max(most, working)
            time.sleep(0.002)
            with lock:
                working -= 1
            turns.rest()

    for caller in [Caller(lambda: in_turns(work)) for _ in range(6)]:
        caller.given()
    assert most == 1


def test_a_thread_that_did_not_join_never_waits() -> None:
    has_turn, let_go = threading.Event(), threading.Event()
    holder = Caller(lambda: in_turns(lambda: hang(has_turn, let_go)))
    assert has_turn.wait(WAIT_S)
    turns.take()
    turns.rest()
    let_go.set()
    holder.given()


def test_nobody_waits_for_a_thread_that_hangs_with_its_turn() -> None:
    has_turn, let_go = threading.Event(), threading.Event()
    holder = Caller(lambda: in_turns(lambda: hang(has_turn, let_go)))
    assert has_turn.wait(WAIT_S)
    for other in [Caller(lambda: in_turns(lambda: None)) for _ in range(8)]:
        other.given()
    let_go.set()
    holder.given()
    done: list[bool] = []
    in_turns(lambda: done.append(turns._turn.holder is not None))
    assert done == [True], "the turn is free again and taken"


def test_a_thread_that_hangs_with_its_turn_delays_others_once_and_not_at_each_of_their_turns() -> None:
    has_turn, let_go = threading.Event(), threading.Event()
    holder = Caller(lambda: in_turns(lambda: hang(has_turn, let_go)))
    assert has_turn.wait(WAIT_S)

    def many_turns() -> None:
        for _ in range(200):
            turns.take()
            turns.rest()

    Caller(lambda: in_turns(many_turns)).given()  # two hundred waits would be longer than a caller is given
    let_go.set()
    holder.given()


def test_who_lost_its_patience_once_does_not_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(turns, "_LONGEST_TURN_S", WAIT_S)
    has_turn, let_go = threading.Event(), threading.Event()
    holder = Caller(lambda: in_turns(lambda: hang(has_turn, let_go)))
    assert has_turn.wait(WAIT_S)

    def many_turns() -> None:
        for _ in range(200):
            turns.take()

    Caller(lambda: in_turns(many_turns)).given()  # two hundred waits would be longer than a caller is given
    let_go.set()
    holder.given()


def test_a_run_that_is_fenced_gives_up_its_turn() -> None:
    has_turn, let_go = threading.Event(), threading.Event()
    lane, run = Lane(), Run(until=0.0)
    assert lane.enter(run) is None

    def work() -> None:
        run.turn = turns.join()
        try:
            hang(has_turn, let_go)
        finally:
            turns.leave()

    hanging = Caller(work)
    assert has_turn.wait(WAIT_S)
    assert turns._turn.holder is run.turn
    lane.fence(run, out_of_time=True)
    assert turns._turn.holder is None
    let_go.set()
    hanging.given()
