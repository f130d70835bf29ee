"""Threads that work beside an event loop take turns, and nobody waits for one that only waits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.engine import manager
from support.running import Caller, long_session
from support.waiting import WAIT_S

from compact.engine.call import Call
from compact.engine.effects import Effect
from compact.runtime import threads
from compact.runtime.run import Run
from compact.runtime.threads import ProcessorTurn

FOREVER_S = 100 * WAIT_S


def in_turn(turn: ProcessorTurn, work: Callable[[], None]) -> None:
    turn.take()
    try:
        work()
    finally:
        turn.rest()


class Hanging:
    """A thread that hangs with its turn until it is let go."""

    def __init__(self) -> None:
        self.turn = ProcessorTurn()
        self._has_turn, self._let_go = threading.Event(), threading.Event()
        self._caller = Caller(lambda: in_turn(self.turn, self._hang))
        assert self._has_turn.wait(WAIT_S)

    def _hang(self) -> None:
        self._has_turn.set()
        assert self._let_go.wait(WAIT_S)

    def let_go(self) -> None:
        self._let_go.set()
        self._caller.given()


def test_one_works_at_a_time_and_a_resting_one_lets_others_go_first() -> None:
    working, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal working, most
        turn = ProcessorTurn(patience_s=FOREVER_S)
        for _ in range(5):
            turn.take()
            with lock:
                working += 1
                most = max(most, working)
            time.sleep(0.002)
            with lock:
                working -= 1
            turn.rest()

    for caller in [Caller(work) for _ in range(6)]:
        caller.given()
    assert most == 1
    assert not threads.processor.locked()


@pytest.mark.parametrize("runs_async", [False, True])
def test_only_a_run_for_an_event_loop_takes_turns(runs_async: bool) -> None:
    made, items = manager(8000), long_session()
    takes_turns: set[bool] = set()
    serve = made.services.serve

    def note(run: Run, effect: Effect) -> Any:
        takes_turns.add(run.turn is not None)
        return serve(run, effect)

    made.services.serve = note  # type: ignore[method-assign]
    if runs_async:
        asyncio.run(made.apreflight("s", items))
    else:
        made.preflight("s", items)
    assert takes_turns == {runs_async}
    assert not threads.processor.locked()


def test_who_lost_its_patience_once_does_not_wait_again() -> None:
    hanging = Hanging()

    def take_many_turns() -> None:
        turn = ProcessorTurn(patience_s=0.5)
        for _ in range(100):  # at each of them, it would be 50 seconds
            turn.take()

    Caller(take_many_turns).given()
    assert threads.processor.locked()
    hanging.let_go()


def test_a_run_that_is_fenced_gives_up_its_turn() -> None:
    session = manager().sessions.get("s")
    run = Run(session, Call(messages=[], given=[]))
    assert session.lane.enter(run) is None
    hanging = Hanging()
    run.turn = hanging.turn
    assert threads.processor.locked()
    session.lane.fence(run, out_of_time=True)
    assert not threads.processor.locked()
    hanging.let_go()
