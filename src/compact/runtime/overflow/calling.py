"""One model call of a host, step by step: what `recovery` asks for, done with a manager's parts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from compact.config.sections import RecoveryConfig
from compact.engine.line import Call
from compact.events import Recovery
from compact.messages import hygiene
from compact.runtime.overflow import surviving
from compact.runtime.overflow.surviving import Learn, Learned, Prepare, Request, Send, Step, Surviving, Tell

ModelCall: TypeAlias = Callable[[Any], Any]
"""The host's own call: gets the messages to send, returns the provider's reply, or a coroutine that does."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a manager lends to a call."""

    count: Callable[[Any], int]
    """Our own count of a request with these messages."""
    step: Callable[[], int]
    """The session's newest compaction."""
    learn: Callable[[Learn], Learned]
    emit: Callable[[Recovery], None]
    redact: Callable[[str], str]
    settings: RecoveryConfig


@dataclass(frozen=True, slots=True)
class Calling:
    """A call of a host on its way to the model."""

    session_id: str
    call: Call
    model_call: ModelCall
    parts: Parts

    def run(self, preflight: Callable[[Call], Any]) -> tuple[Any, Request]:
        """The reply and the request that it answers, on the caller's thread."""
        sent: list[Request] = []

        def perform(step: Step) -> Any:
            match step:
                case Prepare():
                    return self._request(preflight(self._asked(step)))
                case Send():
                    sent[:] = [step.request]
                    return _at_once(self.model_call(step.request.messages))
                case _:
                    return self._noted(step)

        reply = surviving.run(self._steps(), perform)
        return reply, sent[0]

    async def arun(self, preflight: Callable[[Call], Awaitable[Any]]) -> tuple[Any, Request]:
        """`run` for an event loop: a model call that is no coroutine runs in a thread."""
        sent: list[Request] = []

        async def perform(step: Step) -> Any:
            match step:
                case Prepare():
                    return self._request(await preflight(self._asked(step)))
                case Send():
                    sent[:] = [step.request]
                    return await self._sent(step.request.messages)
                case _:
                    return self._noted(step)

        reply = await surviving.arun(self._steps(), perform)
        return reply, sent[0]

    def _steps(self) -> Surviving:
        return surviving.surviving(self.parts.settings, self.parts.redact)

    def _asked(self, step: Prepare) -> Call:
        return replace(self.call, fit=step.fit, without_model=step.without_model, note=step.note)

    def _request(self, messages: Any) -> Request:
        ready = hygiene.sendable(messages, self.call.dialect)
        return Request(ready, self.parts.count(ready), self.parts.step())

    async def _sent(self, messages: Any) -> Any:
        if surviving.is_coroutine_function(self.model_call):
            return await self.model_call(messages)
        reply = await asyncio.to_thread(self._in_thread, messages)
        if isinstance(reply, _Stopped):
            raise RuntimeError("model_call raised StopIteration") from reply.problem
        return await reply if inspect.isawaitable(reply) else reply

    def _in_thread(self, messages: Any) -> Any:
        try:
            return self.model_call(messages)
        except StopIteration as problem:
            return _Stopped(problem)

    def _noted(self, step: Learn | Tell) -> Learned | None:
        if isinstance(step, Learn):
            return self.parts.learn(step)
        self.parts.emit(Recovery(attempt=step.attempt, action=step.action, learned_limit=step.overflow.limit))
        return None


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A `StopIteration` on its way out of a thread: no future takes one, and whoever waits would wait forever."""

    problem: StopIteration


def _at_once(reply: Any) -> Any:
    if not inspect.isawaitable(reply):
        return reply
    close = getattr(reply, "close", None)
    if close is not None:
        close()
    raise TypeError(
        "model_call returned an awaitable: use `await manager.acall(...)` for an async model call"
    )
