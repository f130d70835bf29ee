"""One session, one run at a time.

A run holds its session's lane until its work has ended, and other calls of the session wait for it. A run that takes too
long, or that nobody waits for any more, is fenced: the lane is free at once, and whatever the run still does is discarded.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from compact.engine.line import Call, Line, Result, UnderWay
from compact.errors import CompactError
from compact.runtime.threads import ProcessorTurn

if TYPE_CHECKING:
    from compact.archive import Attempt
    from compact.runtime.session_cache import Session
    from compact.runtime.summarizing import Summarizer
    from compact.tracing.spans import Spans

T = TypeVar("T")

NEVER = float("inf")
_LIGHT_CHARS = 16_000
_LIGHT_MESSAGES = 5_000
"""More new text, or more messages, is too much work for an event loop."""


class Fenced(BaseException):
    """Ends the work of a run that lost its lane. Not an error, so nothing on the way may handle it as one."""


class Run:
    """One run of the engine for one call of a host: what was asked, how far it came, and who waits for it."""

    line: Line | None = None
    spans: Spans | None = None
    attempt: Attempt | None = None
    committed = False
    was_answered = False
    """A summarizer has replied. Whether the reply was good shows in what the engine asks for next."""
    result: Result | None = None
    problem: BaseException | None = None
    generation = 0
    """Its number in the lane, given when it enters."""
    is_fenced = False
    is_out_of_time = False
    """Why it was fenced: it ran out of time, or nobody waited for it any more."""
    ended: Future[None] | None = None
    """Done when the lane is free again. It exists from the moment that somebody waits."""
    watchers = 1
    turn: ProcessorTurn | None = None
    rescue_until: float | None = None
    """When everything that follows a run out of time must have ended; None while no run was."""
    _answer: Future[Any] | None = None

    def __init__(
        self,
        session: Session,
        call: Call,
        line_for: Callable[[Session], Line] | None = None,
        *,
        until: float = NEVER,
        loop: asyncio.AbstractEventLoop | None = None,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.session = session
        self.call = call
        self.line_for = line_for
        self.until = until
        """When it is out of time, by the monotonic clock."""
        self.loop = loop
        """The caller's event loop. None: the caller is a thread, which may do heavy work."""
        self.summarizer = summarizer
        """A summarizer for this call only, instead of the manager's."""

    def again(self, call: Call, *, until: float | None = None) -> Run:
        """Another run for the same caller."""
        until = self.until if until is None else until
        run = Run(self.session, call, self.line_for, until=until, loop=self.loop, summarizer=self.summarizer)
        run.rescue_until = self.rescue_until
        return run

    def grow(self) -> Run | None:
        """A run for the longer list that the host's has become; None if it was rewritten, not grown."""
        before, now = self.call.messages, list(self.call.given)
        if any(one is not other for one, other in zip(before, now, strict=False)):
            return None  # rewritten, not grown: what was asked is answered
        return self.again(replace(self.call, messages=now, manual=False))

    def follow(self, other: Run) -> None:
        """Another run of the session has ended. A manual compaction that it made is not made again."""
        asked = other.call
        if self.call.manual and other.committed and asked.manual and asked.messages == self.call.messages:
            self.call = replace(self.call, manual=False)

    @property
    def is_light(self) -> bool:
        """Whether little is new since the last call, so that an event loop may look at it."""
        messages = self.call.messages
        if len(messages) > _LIGHT_MESSAGES:
            return False
        for seen in (self.session.sent, self.session.given):
            count = len(seen)
            if count and len(messages) >= count and messages[count - 1] is seen[count - 1]:
                return is_light(messages[count:])
        return False

    @property
    def step(self) -> int:
        """The step that the run is about."""
        return self.session.state.step if self.attempt is None else self.attempt.step

    @property
    def under_way(self) -> UnderWay | None:
        """The pass that was begun, if one was."""
        return None if self.line is None else self.line.under_way

    def check(self) -> None:
        """Raise `Fenced` if the run has lost its lane."""
        if self.is_fenced:
            raise Fenced

    def wait_for(self, answer: Future[T], timeout_s: float | None) -> T:
        """Wait for the answer of a summarizer.

        Raises:
            Fenced: the run was fenced meanwhile; the answer is cancelled.
            TimeoutError: it took longer than `timeout_s`; the answer is cancelled.
            CompactError: somebody else cancelled it.
        """
        self._answer = answer
        if self.turn is not None:
            self.turn.rest()
        try:
            self.check()
            return answer.result(timeout_s)
        except CancelledError:
            self.check()
            raise CompactError("it was cancelled before it gave an answer") from None
        except TimeoutError:
            if answer.done():
                raise  # its own
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        finally:
            self._answer = None
            answer.cancel()

    def interrupt(self) -> None:
        """Stop a run that was fenced: it may not commit, what it waits for is cancelled, and its turn is free."""
        if self.turn is not None:
            self.turn.rest()
        if self.attempt is not None:
            self.attempt.revoke()
        answer = self._answer
        if answer is not None:
            answer.cancel()

    def end(self) -> None:
        """Abandon an attempt that was not committed, whatever ended the run."""
        if self.attempt is not None:
            self.attempt.abandon()
            self.attempt = None


class Lane:
    """Who works on a session. Costs a lock and two attributes while nobody waits."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._generation = 0
        self.run: Run | None = None
        """The run that holds the lane."""

    def enter(self, run: Run) -> Run | None:
        """Give a free lane to `run` and return None; otherwise return the run that holds it, now watched by the caller."""
        with self._mutex:
            busy = self.run
            if busy is None:
                self._generation += 1
                run.generation = self._generation
                self.run = run
            else:
                busy.watchers += 1
                busy.ended = busy.ended or Future()
            return busy

    def watch(self, run: Run) -> Future[None]:
        """A future that is done when the run has ended or was fenced."""
        with self._mutex:
            if run.ended is None:
                run.ended = Future()
                if self.run is not run:
                    run.ended.set_result(None)
            return run.ended

    def leave(self, run: Run, settle: Callable[[], None] | None = None) -> None:
        """End a run. `settle` is called first, unless the run was fenced."""
        with self._mutex:
            if self.run is not run:
                return
            if settle is not None:
                settle()
            self.run = None
        if run.ended is not None:
            _set(run.ended)

    def fence(self, run: Run, *, out_of_time: bool) -> bool:
        """Take the lane away from a run. Returns False if it no longer held it."""
        with self._mutex:
            if self.run is not run:
                return False
            run.is_fenced, run.is_out_of_time = True, out_of_time
            run.session.renew_intake()
            self.run = None
        run.interrupt()
        if run.ended is not None:
            _set(run.ended)
        return True

    def forsake(self, run: Run) -> None:
        """A caller no longer waits for a run. A run that nobody waits for is fenced."""
        with self._mutex:
            run.watchers -= 1
            is_alone = run.watchers <= 0
        if is_alone:
            self.fence(run, out_of_time=False)

    def when_free(self, settle: Callable[[], None]) -> None:
        """Call `settle` if nobody works on the session."""
        with self._mutex:
            if self.run is None:
                settle()


# --- waiting, on a thread or on an event loop


@dataclass(frozen=True, slots=True)
class Wait:
    """An effect: wait for a future, until a moment of the monotonic clock. The answer is whether it came in time."""

    ended: Future[Any]
    until: float


def wait_here(wanted: Wait) -> bool:
    """Serve a `Wait` on the caller's thread."""
    try:
        wanted.ended.exception(_seconds_to(wanted.until))
    except TimeoutError:
        return False
    return True


async def wait_on_loop(wanted: Wait) -> bool:
    """Serve a `Wait` on the caller's event loop."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(_wake, woken)

    wanted.ended.add_done_callback(wake)
    try:
        async with asyncio.timeout(_seconds_to(wanted.until)):
            await woken
    except TimeoutError:
        return wanted.ended.done()
    return True


def is_light(value: Any) -> bool:
    """Whether a value holds so little text that an event loop may count it."""
    return _count_chars(value, _LIGHT_CHARS) <= _LIGHT_CHARS


def _count_chars(value: Any, limit: int) -> int:
    """Roughly how much text is in messages. Stops looking once it is more than `limit`."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, list | tuple):
        # Numbers cost nothing. What an object holds is not known without reading it.
        return 0 if value is None or isinstance(value, int | float) else limit + 1
    found = 0
    for entry in value:
        found += _count_chars(entry, limit - found) + 1
        if found > limit:
            break
    return found


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _seconds_to(until: float) -> float | None:
    return None if until == NEVER else max(0.0, until - time.monotonic())


def _set(ended: Future[None]) -> None:
    with suppress(InvalidStateError):
        ended.set_result(None)
