"""One run of the engine for one call of a host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from compact.archive import Attempt
from compact.engine.call import Call, Result, UnderWay
from compact.engine.effects import Asking, Serve, drive
from compact.engine.line import Line
from compact.errors import CompactError
from compact.runtime.lanes import NEVER, Fenced
from compact.runtime.native_asking import SendNative
from compact.runtime.session_cache import Session
from compact.runtime.threads import ProcessorTurn
from compact.summaries.request import Summarizer
from compact.tracing.spans import Spans

T = TypeVar("T")

_LIGHT_CHARS = 16_000
_LIGHT_MESSAGES = 5_000
"""More new text, or more messages, is too much work for an event loop."""


@dataclass(eq=False)
class Run:
    """What was asked, how far it came, and who waits for it."""

    session: Session
    call: Call
    line_for: Callable[[Session], Line] | None = None
    until: float = NEVER
    """When it is out of time, by the monotonic clock."""
    loop: asyncio.AbstractEventLoop | None = None
    """The caller's event loop. None: the caller is a thread, which may do heavy work."""
    summarizer: Summarizer | None = None
    """A summarizer for this call only, instead of the manager's."""
    native: SendNative | None = None
    """Sends compaction requests with the host's own client."""
    rescue_until: float | None = None
    """When everything that follows a run out of time must have ended; None while no run was."""

    line: Line | None = None
    spans: Spans | None = None
    turn: ProcessorTurn | None = None
    attempt: Attempt | None = None
    committed: bool = False
    was_answered: bool = False
    """A summarizer has replied. Whether the reply was good shows in what the engine asks for next."""
    result: Result | None = None
    problem: BaseException | None = None

    generation: int = 0
    """Its number in the lane, given when it enters."""
    watchers: int = 1
    """How many callers wait for it."""
    ended: Future[None] | None = None
    """Done when the lane is free again. It exists from the moment that somebody waits."""
    is_fenced: bool = False
    is_background: bool = False
    """Nobody waits for it."""
    is_out_of_time: bool = False
    """Why it was fenced: it ran out of time, or nobody waited for it any more."""
    _cancel: Callable[[], Any] | None = None
    """Cancels the answer that it waits for."""

    def again(self, call: Call, *, until: float | None = None) -> Run:
        """Another run for the same caller."""
        until = self.until if until is None else until
        run = Run(self.session, call, self.line_for, until=until, loop=self.loop, summarizer=self.summarizer)
        run.native, run.rescue_until = self.native, self.rescue_until
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

    def drive(self, asking: Asking[T], serve: Serve, resume: Any = None, *, takes_turns: bool) -> T:
        """Drive a generator in a background thread, in turn with others if its caller is on an event loop."""
        if not takes_turns:
            return drive(asking, serve, resume=resume)
        turn = self.turn = ProcessorTurn()
        turn.take()
        try:
            return drive(asking, turn.around(serve), resume=resume)
        finally:
            turn.rest()

    def wait_for(
        self, answer: Future[T], timeout_s: float | None, loop: asyncio.AbstractEventLoop | None = None
    ) -> T:
        """Wait for an answer. `loop` is the host's event loop, if it is made there.

        Raises:
            Fenced: the run was fenced meanwhile, or nobody waits for it and the event loop of the answer ended; the answer is
                cancelled.
            TimeoutError: it took longer than `timeout_s`; the answer is cancelled.
            CompactError: somebody else cancelled it.
        """

        def cancel() -> None:
            if loop is None or not loop.is_closed():  # nothing is left to cancel there
                answer.cancel()

        self._cancel = cancel
        if self.turn is not None:
            self.turn.rest()
        try:
            self.check()
            return answer.result(timeout_s)
        except (CancelledError, asyncio.CancelledError):  # the future's, or the summarizer's own
            self.check()
            if self.is_background:
                raise Fenced from None
            raise CompactError("it was cancelled before it gave an answer") from None
        except TimeoutError:
            if answer.done():
                raise  # its own
            if self.is_background and loop is not None and not loop.is_running():
                raise Fenced from None  # a call that waits would have kept the loop running
            raise TimeoutError(f"no answer within {timeout_s:g} s (summary.timeout_s)") from None
        finally:
            self._cancel = None
            cancel()

    def lose(self) -> None:
        """It may still use the session's intake, so the next run gets its own."""
        self.session.renew_intake()

    def interrupt(self) -> None:
        """Stop a run that was fenced: it may not commit, what it waits for is cancelled, and its turn is free."""
        if self.turn is not None:
            self.turn.rest()
        if self.attempt is not None:
            self.attempt.revoke()
        cancel = self._cancel
        if cancel is not None:
            cancel()

    def end(self) -> None:
        """Abandon an attempt that was not committed, whatever ended the run."""
        if self.attempt is not None:
            self.attempt.abandon()
            self.attempt = None


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
