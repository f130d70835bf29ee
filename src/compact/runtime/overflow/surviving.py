"""A model call that survives overflow. One generator for threads and event loops, without I/O.

    prepare     guard, hygiene, preflight
    send        the host's own call
    compact     if refused as too long: learn the limit, aim lower, send again; a bounded number of times
    truncate    then make the request as small as possible, without a model
    give up     finally raise `ContextOverflow`, with the sizes and what to do

Every rung aims below the request that was refused, and a request that was refused is never sent again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from compact.config.sections import RecoveryConfig
from compact.errors import ArchiveError, CompactError, ContextOverflow, WindowTooSmall
from compact.runtime.overflow import Overflow, recognise, recognise_reply

Action: TypeAlias = Literal["compact", "truncate"]
_SHARES_LEFT = (0.1, 0.25, 0.5, 0.7, 0.85, 0.95)
"""Sizes that the last rung tries, lowest first. Messages that must stay may be most of a request."""

_MAX_RATIO = 4
"""No tokenizer counts more than this many times what ours does."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is about to be sent, and how large it is."""

    messages: Any
    tokens: int
    """By our count, corrected by what the provider counted before."""
    step: int = 0
    """The session's newest compaction when it was made."""
    ours: int = 0
    """By our own count alone."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make the request, of at most `fit` tokens. The answer is a `Request`."""

    fit: int | None = None
    without_model: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request. The answer is the model's reply."""

    request: Request


@dataclass(frozen=True, slots=True)
class Learn:
    """Remember what an overflow says. The answer is a `Learned`."""

    overflow: Overflow
    request: Request


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known after an overflow."""

    tokens: int
    """The size of the refused request, as far as it is known now."""
    window: int
    budget: int
    """What a request may take if the reply and the buffer have their share."""
    most: int | None
    """The most that the provider takes at all; None if it did not say."""
    limit: int | None = None
    """The limit that was believed; None if none was named, or it cannot be true."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Record an attempt."""

    attempt: int
    action: Literal["compact", "truncate", "give_up"]
    overflow: Overflow


Step: TypeAlias = Prepare | Send | Learn | Tell
Surviving: TypeAlias = Generator[Step, Any, tuple[Any, Request]]


def surviving(settings: RecoveryConfig, redact: Callable[[str], str]) -> Surviving:
    """Make the whole call; return the model's reply and the request that it answers. `redact` masks the error at the end.

    Raises:
        ContextOverflow: the provider refused even the smallest possible request.
        WindowTooSmall: the model's window cannot hold a working session.
    """
    request = yield Prepare()
    ladder = _Ladder(settings, redact, first=request)
    while True:
        cause: Exception | None = None
        try:
            reply = yield Send(request)
        except Exception as problem:
            overflow, cause = recognise(problem, request.messages), problem
            if overflow is None:
                raise
        else:
            overflow = recognise_reply(reply, request.messages)
            if overflow is None or _is_long_reply(overflow, request):
                return reply, request
        overflow = _doubt(overflow, request)
        learned = yield Learn(overflow, request)
        overflow = replace(overflow, limit=learned.limit)
        request = replace(request, tokens=learned.tokens)
        try:
            request = yield from ladder.down(request, overflow, learned, cause)
        except ContextOverflow:
            if overflow.in_reply:
                return reply, request  # the beginning of an answer is better than none
            raise


def _is_long_reply(overflow: Overflow, request: Request) -> bool:
    """Whether a reply filled the window by its own length. A smaller request would only make room for a longer reply."""
    return overflow.in_reply and (overflow.output or 0) > request.tokens


def _doubt(overflow: Overflow, request: Request) -> Overflow:
    """Drop what cannot be true of this request: a count that no tokenizer gives for it, or a limit that it is far below."""
    counted = overflow.input
    if counted is not None and counted * _MAX_RATIO < request.tokens:
        return replace(overflow, requested=None, limit=None)  # another request is spoken of
    if counted is not None and counted > request.tokens * _MAX_RATIO:
        overflow = replace(overflow, requested=None)
    if overflow.limit is not None and overflow.requested is None:
        most = (request.tokens + (overflow.output or 0)) * _MAX_RATIO
        return overflow if overflow.limit <= most else replace(overflow, limit=None)
    return overflow


class _Ladder:
    """The rungs of one call. Each is used once."""

    def __init__(self, settings: RecoveryConfig, redact: Callable[[str], str], *, first: Request) -> None:
        self._redact = redact
        self._first_step = self._last_step = first.step
        self._share = settings.shrink_share
        self._rungs: list[Action] = ["compact"] * settings.max_compactions
        if self._rungs:
            self._rungs.append("truncate")
        self._attempt = 0
        self._refused: list[Any] = []
        self._problem: Exception | None = None

    def down(
        self, request: Request, overflow: Overflow, learned: Learned, cause: Exception | None
    ) -> Generator[Step, Any, Request]:
        """Make a smaller request than the one that was refused."""
        self._refused.append(list(request.messages))
        while self._rungs and not overflow.is_output_alone:
            action = self._rungs.pop(0)
            self._attempt += 1
            yield Tell(self._attempt, action, overflow)
            for step in self._steps(action, request, learned):
                try:
                    smaller = yield step
                except WindowTooSmall as problem:
                    raise problem from cause
                except ArchiveError as problem:
                    # Nothing leaves a context before it is durable, so without the archive there is no smaller request.
                    self._problem, self._rungs = problem, []
                    break
                except Exception as problem:
                    self._problem = problem
                    continue
                self._last_step = smaller.step
                if smaller.tokens < request.tokens and list(smaller.messages) not in self._refused:
                    return smaller  # type: ignore[no-any-return]
            # Compacting again would fail again. What is left needs no model.
            self._rungs = [rung for rung in self._rungs if rung == "truncate"]
        yield Tell(self._attempt + 1, "give_up", overflow)
        raise self._give_up(request, overflow, learned) from cause

    def _steps(self, action: Action, request: Request, learned: Learned) -> Iterator[Prepare]:
        """The requests that a rung tries to make, best first."""
        note = f"overflow, attempt {self._attempt}"
        below = request.tokens - 1
        if action == "compact":
            yield Prepare(max(1, min(learned.budget, int(request.tokens * self._share), below)), note=note)
            return
        most = below if learned.most is None else min(below, learned.most)
        fits = sorted({max(1, min(int(request.tokens * share), most)) for share in _SHARES_LEFT})
        for fit in fits:
            yield Prepare(fit, without_model=True, note=note)

    def _give_up(self, request: Request, overflow: Overflow, learned: Learned) -> ContextOverflow:
        sent = f"{request.tokens:,} tokens by our count"
        if overflow.requested is not None:
            sent += f", {overflow.requested:,} by its own"
        if overflow.is_output_alone:
            why = f"the {overflow.output:,} tokens reserved for the reply alone do not fit the window"
            hint = "Lower the request's max output tokens, or use a model with a larger context window"
        else:
            why = f"nothing smaller is left to try after {self._attempt} attempts"
            if self._problem is not None:
                why += f" ({_describe(self._problem)})"
            hint = "Start a new session (reset), or use a model with a larger context window"
        if isinstance(self._problem, ArchiveError):
            why = f"nothing may leave the context while the archive does not take it ({_describe(self._problem)})"
            hint = "Repair the archive and call again; or start a new session, or use a larger context window"
        text = f"the provider refused the request as too long ({sent}; the window is {learned.window:,}), and {why}: "
        return ContextOverflow(
            self._redact(text + overflow.message),
            hint=f"{hint}. Your list is unchanged; {self._say_committed()}",
            tokens=request.tokens,
            requested=overflow.requested,
            window=learned.window,
            limit=overflow.limit,
            attempts=self._attempt,
        )

    def _say_committed(self) -> str:
        count = self._last_step - self._first_step
        return "1 compaction was committed" if count == 1 else f"{count or 'no'} compactions were committed"


def _describe(problem: Exception) -> str:
    return problem.message if isinstance(problem, CompactError) else f"{type(problem).__name__}: {problem}"


def is_coroutine_function(function: Any) -> bool:
    """Whether it is an async function, or an object with an async `__call__`."""
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
