"""Who writes a summary: the host's own summarizer, the configured model, or code. The only place that asks them."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from compact.config import CompactConfig
from compact.errors import ConfigError
from compact.events import Warned
from compact.runtime.lanes import Fenced
from compact.runtime.native_asking import native_summarizer
from compact.runtime.run import Run
from compact.runtime.threads import in_thread
from compact.summaries.native import NATIVE, Provider
from compact.summaries.request import Reply, Summarizer, SummaryRequest
from compact.tokens import Meter
from compact.tokens.models import model_table
from compact.tokens.windows import window_of

if TYPE_CHECKING:
    from compact.summaries.llm import SummaryEndpoint
    from compact.summaries.templates import Prompt

AGENT = "agent"
"""The value of `summary.model` that means the agent's own model."""
_THREAD = "compact-summarizer"


@dataclass(frozen=True, slots=True)
class _Chosen:
    ask: Summarizer
    timeout_s: float | None
    """None: it limits each of its requests itself. A long conversation takes several."""
    is_heavy: bool = False
    """It counts and cuts a whole conversation, which must not happen on the host's event loop."""


class Writers:
    """The summarizers of one manager.

    Raises:
        ConfigError: `summary.prompt` is not a template, or the summarizer cannot be called.
    """

    def __init__(self, config: CompactConfig, summarizer: Summarizer | None) -> None:
        if summarizer is not None and not callable(summarizer):
            raise ConfigError(
                f"summarizer must be callable, got a {type(summarizer).__name__}",
                hint="Pass a function that takes a SummaryRequest and returns a text; summary.model names a model, and "
                "compact.summaries.agent.agent_summarizer makes a summarizer of an agent",
                path="summarizer",
            )
        self._config = config
        self._given = summarizer
        self._prompt = _load_prompt(config.summary.prompt) if config.summary.prompt else None

    def unavailable(self, given: Summarizer | None = None) -> Warned | None:
        """The warning that the configured model cannot be asked; None if it can, or is not needed."""
        if given or self._given or self._config.summary.model in (None, NATIVE) or not self._problem:
            return None
        text = f"summary.model is {self._config.summary.model}, but {self._problem}; summaries are made without a model"
        return Warned(code="summarizer_unavailable", severity="medium", message=text)

    def needs_model(self, request: SummaryRequest, given: Summarizer | None = None) -> bool:
        """Whether a model or the host has to be asked; otherwise code writes the summary."""
        return request.source == "configured" and self.have_model(given)

    def have_model(self, given: Summarizer | None = None) -> bool:
        """Whether a model or the host writes summaries."""
        named = self._config.summary.model
        return bool(given or self._given) or (named not in (None, NATIVE) and not self._problem)

    @property
    def is_native(self) -> bool:
        """Whether the agent's own provider is asked first."""
        return self._given is None and self._config.summary.model == NATIVE

    def extract(self, request: SummaryRequest, meter: Meter) -> Reply:
        """The summary that needs no model, or the record alone."""
        from compact.summaries import extractive  # who writes is loaded when something is written

        if request.source == "record":
            return Reply(extractive.write_record(request, meter.count_text), trusted=True)
        return Reply(extractive.summarize(request, meter.count_text), trusted=True)

    def ask(
        self,
        request: SummaryRequest,
        meter: Meter,
        run: Run,
    ) -> str | Reply:
        """Ask the host's summarizer or the configured model. A coroutine runs on the caller's loop, or on a new one.

        Raises:
            TimeoutError: it took too long. A coroutine is cancelled; a thread that hangs is left behind.
            Fenced: the run was fenced meanwhile.
            Exception: what the summarizer raises.
        """
        return self._ask(self._choose(meter, run.summarizer), request, run)

    def ask_provider(self, request: SummaryRequest, meter: Meter, provider: Provider, run: Run) -> Reply:
        """Ask the provider for its own compaction. An empty reply says that the host has another summarizer for this call.

        Raises:
            CompactError: there is no client, or the reply holds no compaction.
            Exception: what `ask` raises.
        """
        if run.summarizer is not None:
            return Reply("", trusted=True)
        summarizer = native_summarizer(self._config, meter.model, provider, run.call, run.native)
        reply = self._ask(_Chosen(summarizer, self._config.summary.timeout_s), request, run)
        assert isinstance(reply, Reply)
        return reply

    def _ask(self, chosen: _Chosen, request: SummaryRequest, run: Run) -> str | Reply:

        async def ask() -> str | Reply:
            answer = chosen.ask(request)
            return answer if isinstance(answer, str | Reply) else await answer

        def wait_on_loop(work: Callable[[], Awaitable[str | Reply]]) -> str | Reply:
            loop = None if chosen.is_heavy else run.loop
            if run.is_background and loop is not None and loop.is_closed():
                raise Fenced
            return run.wait_for(_start(work, loop), chosen.timeout_s, loop)

        if _is_coroutine(chosen.ask):
            return wait_on_loop(ask)
        answer = run.wait_for(in_thread(lambda: chosen.ask(request), _THREAD), chosen.timeout_s)
        if isinstance(answer, str | Reply) or not inspect.isawaitable(answer):
            return answer
        promised = answer
        return wait_on_loop(lambda: promised)

    def _choose(self, meter: Meter, given: Summarizer | None) -> _Chosen:
        own = given or self._given
        if own is not None:
            return _Chosen(own, self._config.summary.timeout_s)
        from compact.summaries import llm

        endpoint = self._endpoint(meter)

        async def ask(asked: SummaryRequest) -> Reply:
            try:
                return await llm.summarize(asked, endpoint, meter.count_text)
            except TimeoutError:
                what = f"no answer within {endpoint.timeout_s:g} s (summary.timeout_s)"
                raise TimeoutError(what) from None

        return _Chosen(ask, None, is_heavy=True)

    @cached_property
    def _problem(self) -> str:
        from compact.summaries import llm

        return llm.why_unavailable(self._config.summary.base_url)

    def _endpoint(self, meter: Meter) -> SummaryEndpoint:
        from compact.summaries.llm import SummaryEndpoint

        summary, own = self._config.summary, self._config.model
        assert summary.model is not None
        is_agent = summary.model == AGENT
        window = window_of(
            meter.model if is_agent else summary.model,
            configured=self._config.max_context_tokens if is_agent and meter.model == own else None,
            windows=self._config.windows,
            table=model_table().with_rows(self._config.models),
        )
        return SummaryEndpoint(
            model=meter.model if is_agent else summary.model,
            base_url=summary.base_url,
            window=window.tokens,
            prompt=self._prompt,
            summary_tag=summary.summary_tag,
            seed=summary.seed,
            temperature=summary.temperature,
            timeout_s=summary.timeout_s,
            max_reply_bytes=summary.max_reply_bytes,
        )


def _load_prompt(given: str) -> Prompt:
    from compact.summaries import templates

    return templates.load(given)


class Breaker:
    """A circuit breaker: after `failures` in a row, only one try is let through every `pause_s`. Thread-safe."""

    def __init__(self, failures: int, pause_s: float, clock: Callable[[], datetime]) -> None:
        self._limit = failures
        self._pause = timedelta(seconds=pause_s)
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._next_try: datetime | None = None

    def allows(self) -> bool:
        """Whether the summarizer may be asked now. While open, a try that is let through holds back others for a pause."""
        with self._lock:
            if self._next_try is None:
                return True
            now = self._clock()
            if now < self._next_try:
                return False
            self._next_try = now + self._pause
            return True

    def close(self) -> None:
        """A try succeeded: let all tries through."""
        with self._lock:
            self._failed, self._next_try = 0, None

    def fail(self) -> bool:
        """A try failed. Returns True if that opened the breaker."""
        with self._lock:
            self._failed += 1
            if self._failed < self._limit:
                return False
            opened = self._next_try is None
            self._next_try = self._clock() + self._pause
            return opened


def _start(
    work: Callable[[], Awaitable[str | Reply]], loop: asyncio.AbstractEventLoop | None
) -> Future[str | Reply]:
    """Start a coroutine on a loop, or on a new one in a thread. Cancelling the future cancels the coroutine."""
    answer: Future[str | Reply] = Future()

    async def on_own_loop() -> str | Reply:
        own, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel(done: Future[str | Reply]) -> None:
            if done.cancelled():
                with suppress(RuntimeError):  # the loop has ended at this very moment
                    own.call_soon_threadsafe(task.cancel)

        answer.add_done_callback(cancel)
        return await work()

    async def on_loop() -> str | Reply:
        return await work()

    if loop is None:
        return in_thread(lambda: asyncio.run(on_own_loop()), _THREAD, answer)
    coroutine = on_loop()
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:  # the loop is closed
        coroutine.close()
        raise


def _is_coroutine(summarizer: Any) -> bool:
    call = getattr(summarizer, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(call)
