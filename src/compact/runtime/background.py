"""Passes that run while their session goes on. See `engine/background.py` for what they do.

    begin    the call that begins one leaves its lane and returns; a thread goes on with the pass
    collect  a later call takes what was prepared. Only a call that does not fit waits for it
    drop     the pass is fenced: what it waits for is cancelled, its attempt is removed, and an event says why

A session has one such pass at a time, and the run that holds its lane decides about it. It ends with its timeout, with the
manager, with the process, and in a child process after a fork.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

from compact.engine.background import STARTED, Background, PreparedPass
from compact.engine.call import Result
from compact.engine.effects import Asking
from compact.engine.line import Line
from compact.events import Failure, Finished, PassOutcome
from compact.runtime.lanes import Fenced
from compact.runtime.run import Run
from compact.runtime.services import Services
from compact.runtime.threads import in_thread
from compact.tracing.spans import Spans

_THREAD = "compact-background"


class BackgroundPass:
    """A pass that nobody waits for, from its start to its swap. Its events end with `drop` or with what the swap becomes."""

    def __init__(
        self,
        run: Run,
        tokens: int,
        close: Callable[[BackgroundPass], None],
        report: Callable[[BackgroundPass, PassOutcome, str], None],
    ) -> None:
        self.run = run
        self.tokens = tokens
        """Of the request that began it."""
        self.ended: Future[None] = Future()
        """Done when it is ready, or when nothing came of it."""
        self._prepared: PreparedPass | None = None
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._is_over = False
        self._close = close
        self.report = partial(report, self)
        """Records how it ended, and why."""

    @property
    def spans(self) -> Spans:
        """Where its events stand."""
        assert self.run.spans is not None
        return self.run.spans

    @property
    def is_ready(self) -> bool:
        """Whether it waits for its swap."""
        return self._prepared is not None

    @property
    def is_lost(self) -> bool:
        """Whether its thread is in the process that this one was forked from."""
        return not self.is_ready and self._process != os.getpid()

    @property
    def is_late(self) -> bool:
        """Whether it is out of time."""
        return not self.is_ready and time.monotonic() >= self.run.until

    def keep(self, prepared: PreparedPass) -> None:
        """Wait for the swap with this result, unless the pass is over."""
        with self._mutex:
            if not self._is_over:
                self._prepared = prepared
        self._tell()

    def take(self) -> PreparedPass | None:
        """End the pass and return what it has prepared, if it has."""
        found = self._prepared
        return found if self.end() else None

    def drop(self, why: str) -> None:
        """End the pass, discard what it made or still makes, and record that."""
        if self.end():
            self.report("dropped", why)

    def end(self) -> bool:
        """End the pass. Returns False if it was over before."""
        with self._mutex:
            if self._is_over:
                return False
            is_working, self._is_over, self._prepared = self._prepared is None, True, None
        if is_working:
            self.run.is_fenced = True
            self.run.interrupt()
        self._close(self)
        self._tell()
        return True

    def _tell(self) -> None:
        with suppress(InvalidStateError):
            self.ended.set_result(None)


class Backgrounds:
    """The passes in the background of one manager."""

    def __init__(
        self, services: Services, serve: Callable[[Run, Any], Any], *, timeout_s: float, may_ask: bool
    ) -> None:
        self._services = services
        self._serve = serve
        self._timeout_s = timeout_s
        self._may_ask = may_ask
        self.has_model = may_ask and services.asks_model(None)
        """Whether passes ask a model, also in calls that bring none."""
        self._open: set[BackgroundPass] = set()
        self._is_closed = False

    # --- a call

    def equip(self, line: Line, run: Run) -> None:
        """Tell a call's line what it may do, before it runs."""
        session = run.session
        known = session.background
        if known is not None and known.is_lost:
            known = session.background = None
        elif known is not None and known.is_late:
            self._time_out(known)
            known = session.background
        line.background = Background(
            may_start=line.rules.background is not None and known is None and self._may_start(run),
            above=session.came_to_nothing,
            is_running=known is not None and not known.is_ready,
            is_ready=known is not None and known.is_ready,
        )

    def collect(self, run: Run) -> PreparedPass | None:
        """Serve `Collect`."""
        known = run.session.background
        if known is None:
            return None
        if not known.is_ready:
            self._wait(run, known)
        prepared = known.take()
        if prepared is not None:
            run.session.came_to_nothing = prepared.tokens  # until the swap is committed
            assert run.spans is not None
            run.spans.take_over(known.spans)
        return prepared

    def settle(self, run: Run, result: Result) -> list[Callable[[], None]]:
        """Note what a call leaves in its session, as the holder of its lane. Returns what has to be done behind it."""
        session = run.session
        known = session.background
        if known is not None:
            is_outgrown = result.state.step != session.state.step
            return [partial(known.drop, "another pass came first")] if is_outgrown else []
        if result.background is None or self._is_closed:
            return []
        session.background = self._make(run, result)
        return [partial(self._begin, session.background, result.background)]

    def close(self) -> None:
        """End all passes, and begin none any more."""
        self._is_closed = True
        for known in list(self._open):
            known.drop("the manager was closed")

    # --- a pass

    def _may_start(self, run: Run) -> bool:
        if self._is_closed or not (self.has_model or (self._may_ask and run.summarizer is not None)):
            return False
        # The provider is asked with the list, and by the client, of the call. On a host's filesystem, a summary names its transcript
        # by the hash of that, which is another one at the swap.
        return not (self._services.asks_provider or self._services.shares_pages)

    def _make(self, run: Run, result: Result) -> BackgroundPass:
        own = run.again(run.call, until=time.monotonic() + self._timeout_s)
        own.line, own.spans, own.is_background = run.line, run.spans, True
        began = self._services.now()

        def close(known: BackgroundPass) -> None:
            self._open.discard(known)
            if run.session.background is known:
                run.session.background = None

        def report(known: BackgroundPass, outcome: PassOutcome, why: str) -> None:
            finished = Finished(
                reason=STARTED,
                note=None,
                outcome=outcome,
                duration_ms=round((self._services.now() - began) * 1000, 3),
                tokens_before=known.tokens,
                tokens_after=known.tokens,
            )
            span = known.spans.place(finished)
            self._services.emit(run.session, finished, {"why": why}, span=span)

        return BackgroundPass(own, result.estimate.total, close, report)

    def _begin(self, begun: BackgroundPass, asking: Asking[PreparedPass | None]) -> None:
        self._open.add(begun)
        try:
            in_thread(
                partial(self._work, begun, asking), _THREAD, stop=partial(begun.drop, "the process ends")
            )
        except RuntimeError:  # the process is ending, or no thread can be started
            begun.end()

    def _work(self, begun: BackgroundPass, asking: Asking[PreparedPass | None]) -> None:
        run, prepared = begun.run, None
        try:
            serve = begun.spans.around(partial(self._serve, run))
            prepared = run.drive(asking, serve, takes_turns=run.loop is not None)
        except Fenced:
            begun.drop("the event loop of its summarizer ended")  # unless it is over already
        finally:
            run.end()
            if prepared is None:
                self._give_up(begun)
            elif begun.is_late:
                self._time_out(begun)
            else:
                begun.keep(prepared)

    def _wait(self, run: Run, known: BackgroundPass) -> None:
        """Wait until a pass is ready or over, or until either is out of time."""
        ended: Future[None] = Future()

        def tell(_: Future[None]) -> None:
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)

        known.ended.add_done_callback(tell)
        try:
            run.wait_for(ended, max(0.0, min(known.run.until, run.until) - time.monotonic()))
        except TimeoutError:
            if known.is_late:
                self._time_out(known)

    def _time_out(self, known: BackgroundPass) -> None:
        message = f"a pass in the background did not end within {self._timeout_s:g} s: what still comes of it is discarded"
        failure = Failure(error_type="TimeoutError", message=message, fallback="snapshot")
        if known.end():
            known.run.session.came_to_nothing = known.tokens
            self._services.emit(known.run.session, failure, span=known.spans.place(failure))
            known.report("timeout", message)

    def _give_up(self, known: BackgroundPass) -> None:
        if known.end():
            known.run.session.came_to_nothing = known.tokens
