"""One model call of a host: what `surviving` asks for, done with a manager's parts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from compact.config.sections import RecoveryConfig
from compact.engine.effects import adrive, drive
from compact.engine.line import Call
from compact.events import Recovery
from compact.messages import hygiene
from compact.runtime.overflow.surviving import (
    Learn,
    Learned,
    Prepare,
    Request,
    Send,
    Tell,
    is_coroutine_function,
    surviving,
)

ModelCall: TypeAlias = Callable[[Any], Any]
"""The host's own call: takes the messages to send, returns the provider's reply or a coroutine that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalling:
    """A host's model call, and what the manager lends to it."""

    call: Call
    model_call: ModelCall
    count: Callable[[Any], int]
    """Counts a request with these messages."""
    step: Callable[[], int]
    """The session's newest step."""
    learn: Callable[[Learn], Learned]
    emit: Callable[[Recovery], None]
    redact: Callable[[str], str]
    settings: RecoveryConfig

    def run(self, preflight: Callable[[Call], Any]) -> tuple[Any, Request]:
        """Return the reply and the request that it answers, on the caller's thread."""

        def serve(effect: Any) -> Any:
            match effect:
                case Prepare():
                    return self._request(preflight(self._call_for(effect)))
                case Send():
                    return self._send(effect.request.messages)
                case _:
                    return self._note(effect)

        reply, request = drive(surviving(self.settings, self.redact), serve)
        if isinstance(reply, _Stopped):
            raise reply.problem
        return reply, request

    async def arun(self, preflight: Callable[[Call], Awaitable[Any]]) -> tuple[Any, Request]:
        """`run` for an event loop. A model call that is not a coroutine function runs in a thread."""

        async def serve(effect: Any) -> Any:
            match effect:
                case Prepare():
                    return self._request(await preflight(self._call_for(effect)))
                case Send():
                    return await self._asend(effect.request.messages)
                case _:
                    return self._note(effect)

        reply, request = await adrive(surviving(self.settings, self.redact), serve)
        if isinstance(reply, _Stopped):
            raise RuntimeError("model_call raised StopIteration") from reply.problem
        return reply, request

    def _call_for(self, effect: Prepare) -> Call:
        return replace(self.call, fit=effect.fit, without_model=effect.without_model, note=effect.note)

    def _request(self, messages: Any) -> Request:
        ready = hygiene.sendable(messages, self.call.dialect)
        return Request(ready, self.count(ready), self.step())

    def _send(self, messages: Any) -> Any:
        reply = self._call_model(messages)
        if not inspect.isawaitable(reply):
            return reply
        close = getattr(reply, "close", None)
        if close is not None:
            close()
        raise TypeError(
            "model_call returned an awaitable: use `await manager.acall(...)` for an async model call"
        )

    async def _asend(self, messages: Any) -> Any:
        if is_coroutine_function(self.model_call):
            return await self.model_call(messages)
        reply = await asyncio.to_thread(self._call_model, messages)
        return await reply if inspect.isawaitable(reply) else reply

    def _call_model(self, messages: Any) -> Any:
        try:
            return self.model_call(messages)
        except StopIteration as problem:
            return _Stopped(problem)

    def _note(self, effect: Learn | Tell) -> Learned | None:
        if isinstance(effect, Learn):
            return self.learn(effect)
        limit = effect.overflow.limit
        self.emit(Recovery(attempt=effect.attempt, action=effect.action, learned_limit=limit))
        return None


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A `StopIteration` of the model call. Neither a generator nor a future may carry it as an exception."""

    problem: StopIteration
