"""One model call of a host: carry out what `surviving` asks for with the parts of a manager."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from compact.config.sections import RecoveryConfig
from compact.engine.call import Call
from compact.engine.corrections import Correction
from compact.engine.effects import adrive, drive
from compact.errors import ConfigError
from compact.events import Recovery, Warned
from compact.messages import hygiene
from compact.runtime.model_rules import Models, rules_for
from compact.runtime.overflow.evidence import cached_tokens, input_tokens, is_cached_for_an_hour
from compact.runtime.overflow.streams import StreamRefused, abegin, begin
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
from compact.runtime.services import Services
from compact.runtime.session_cache import Prepared, Session
from compact.tokens import Meter

ModelCall: TypeAlias = Callable[[Any], Any]
"""The host's own call: takes the messages to send, returns the provider's reply or a coroutine that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalling:
    """A host's model call, and what the manager lends to it."""

    session: Session
    call: Call
    model: str | None
    """None means the configured model."""
    model_call: ModelCall
    models: Models
    emit: Callable[[Recovery | Warned], None]
    observe: Callable[..., None]
    """Takes the provider's count of a request."""
    correct: Callable[[Meter, int, int], Correction]
    """Takes the meter, our count of a request and its step, and returns the correction."""
    redact: Callable[[str], str]
    settings: RecoveryConfig

    def run(self, preflight: Callable[[Call], Any]) -> Any:
        """Return the model's reply, on the caller's thread."""
        refused: list[StreamRefused] = []

        def serve(effect: Any) -> Any:
            match effect:
                case Prepare():
                    while refused:
                        refused.pop().close()
                    return self._request(preflight(self._call_for(effect)))
                case Send():
                    try:
                        return self._send(effect.request.messages)
                    except StreamRefused as problem:
                        refused.append(problem)
                        raise
                case _:
                    return self._note(effect)

        try:
            reply, request = drive(surviving(self.settings, self.redact), serve)
        except StreamRefused as problem:
            return problem.stream  # it raises what the host would have met without us
        if isinstance(reply, _Stopped):
            raise reply.problem
        return self._note_reply(reply, request)

    async def arun(self, preflight: Callable[[Call], Awaitable[Any]]) -> Any:
        """`run` for an event loop. A model call that is not a coroutine function runs in a thread."""
        refused: list[StreamRefused] = []

        async def serve(effect: Any) -> Any:
            match effect:
                case Prepare():
                    while refused:
                        await refused.pop().aclose()
                    return self._request(await preflight(self._call_for(effect)))
                case Send():
                    try:
                        return await self._asend(effect.request.messages)
                    except StreamRefused as problem:
                        refused.append(problem)
                        raise
                case _:
                    return self._note(effect)

        try:
            reply, request = await adrive(surviving(self.settings, self.redact), serve)
        except StreamRefused as problem:
            return problem.stream
        if isinstance(reply, _Stopped):
            raise RuntimeError("model_call raised StopIteration") from reply.problem
        return self._note_reply(reply, request)

    @property
    def _meter(self) -> Meter:
        return self.models.meter(self.model)

    def _call_for(self, effect: Prepare) -> Call:
        return replace(self.call, fit=effect.fit, without_model=effect.without_model, note=effect.note)

    def _request(self, messages: Any) -> Request:
        call, window = self.call, self.models.window(self.model).tokens
        ready = hygiene.sendable(messages, call.dialect)
        estimate = self._meter.estimate(
            ready, call.tools, system=call.system, dialect=call.dialect, max_tokens=window
        )
        step = self.session.state.step
        tokens = self.correct(self._meter, estimate.total, step).correct(estimate).total
        return Request(ready, tokens, step, estimate.total)

    def _send(self, messages: Any) -> Any:
        reply = self._call_model(messages)
        if not inspect.isawaitable(reply):
            return begin(reply)
        close = getattr(reply, "close", None)
        if close is not None:
            close()
        raise TypeError(
            "model_call returned an awaitable: use `await manager.acall(...)` for an async model call"
        )

    async def _asend(self, messages: Any) -> Any:
        if is_coroutine_function(self.model_call):
            return await abegin(await self.model_call(messages))
        reply = await asyncio.to_thread(self._call_model, messages)
        return await abegin(await reply if inspect.isawaitable(reply) else reply)

    def _call_model(self, messages: Any) -> Any:
        try:
            return self.model_call(messages)
        except StopIteration as problem:
            return _Stopped(problem)

    def _note(self, effect: Learn | Tell) -> Learned | None:
        if isinstance(effect, Learn):
            return self._learn(effect)
        limit = effect.overflow.limit
        self.emit(Recovery(attempt=effect.attempt, action=effect.action, learned_limit=limit))
        return None

    def _learn(self, effect: Learn) -> Learned:
        meter, session, learned = self._meter, self.session, self.models.learned
        overflow, tokens = effect.overflow, effect.request.tokens
        if overflow.input is not None:
            self._observe(effect.request, overflow.input, refused=True)
        known = self.models.window(self.model, session.id)
        believed = learned.take(
            meter.model, session.id, overflow, tokens, self.models.known_window(self.model)
        )
        window, most = self.models.window(self.model, session.id), learned.most(meter.model, session.id)
        if window != known:
            text = (
                f"the provider refused a request of {tokens:,} tokens by our count and takes at most {window.tokens:,}; "
                f"the window of this session was {known.tokens:,}"
            )
            self.emit(Warned(code="learned_limit", severity="medium", message=text))
        rules = rules_for(self.models.config, learned.usable(meter.model, session.id, window))
        known_now = self.correct(meter, effect.request.ours, effect.request.step)
        return Learned(
            window=window.tokens,
            budget=rules.budget,
            most=most,
            limit=believed.limit,
            tokens=known_now.scale(effect.request.ours) + known_now.unseen,
        )

    def _observe(self, request: Request, counted: int, *, refused: bool = False) -> None:
        # Not `observe`: another call of the session may have been prepared since this one was sent.
        window = self.models.window(self.model).tokens
        self.observe(Prepared(self._meter, request.step, request.ours, window), counted, refused=refused)

    def _note_reply(self, reply: Any, request: Request) -> Any:
        session, meter = self.session, self._meter
        session.request = request.messages
        counted = input_tokens(reply)
        self.models.learned.note_answer(meter.model, session.id, request.tokens, counted)
        if counted is not None:
            self._observe(request, counted)
        session.cache.observe(cached_tokens(reply), for_an_hour=is_cached_for_an_hour(reply))
        return reply


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Begins the model calls of one manager."""

    services: Services
    settings: RecoveryConfig

    def begin(
        self, session: Session, call: Call, model: str | None, model_call: Callable[[Any], Any]
    ) -> ModelCalling:
        """A model call of a session.

        Raises:
            ConfigError: what should call the model cannot be called.
        """
        if not callable(model_call):
            raise ConfigError(
                f"model_call must be a function of the messages, got {type(model_call).__name__}",
                hint="Pass what sends them: lambda messages: client.chat.completions.create(messages=messages, ...)",
                path="model_call",
            )
        return ModelCalling(
            session=session,
            call=call,
            model=model,
            model_call=model_call,
            models=session.tenant.models,
            emit=lambda event: self.services.emit(session, event),
            observe=partial(self.services.observe, session),
            correct=partial(self.services.correct, session),
            redact=partial(self.services.redactor_of(session).redact, origin="tool"),
            settings=self.settings,
        )


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A `StopIteration` from the model call. Neither a generator nor a future can carry it as an exception."""

    problem: StopIteration
