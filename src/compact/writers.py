"""Who writes a summary: the host's own summarizer, the configured model, or code. It is asked here, and only here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from compact.config import CompactConfig
from compact.events import Warned
from compact.stages.base import Reply, SummaryRequest
from compact.summarizers import extractive, llm, templates
from compact.tokens import Meter
from compact.windows import window_of

Summarizer: TypeAlias = Callable[[SummaryRequest], str | Reply | Awaitable[str | Reply]]
"""Writes a summary. It is given masked messages; what it answers is checked and masked."""

AGENT = "agent"
"""The value of `summary.model` that means the agent's own model."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    ask: Summarizer
    timeout_s: float | None
    """None: it times its requests itself, one by one. A long conversation takes several."""


class Writers:
    """The summarizers of one manager.

    Raises:
        ConfigError: `summary.prompt` is not a template.
    """

    def __init__(self, config: CompactConfig, summarizer: Summarizer | None) -> None:
        self._config = config
        self._given = summarizer
        self._prompt = templates.load(config.summary.prompt) if config.summary.prompt else None

    def unavailable(self, given: Summarizer | None = None) -> Warned | None:
        """The warning that a configured model cannot be asked; None when it can, or is not needed."""
        if given or self._given or self._config.summary.model is None or not self._problem:
            return None
        text = f"summary.model is {self._config.summary.model}, but {self._problem}; summaries are made without a model"
        return Warned(code="summarizer_unavailable", severity="medium", message=text)

    def write(
        self, request: SummaryRequest, masked: Callable[[], SummaryRequest], meter: Meter
    ) -> str | Reply:
        """The answer to a request, on the caller's thread. `masked` gives the request without secrets."""
        chosen = self._chosen(request, meter, None)
        if chosen is None:
            return _extracted(request, meter)
        answer = chosen.ask(masked())
        return answer if isinstance(answer, str | Reply) else _run(_in_time(answer, chosen.timeout_s))

    async def awrite(
        self,
        request: SummaryRequest,
        masked: Callable[[], SummaryRequest],
        meter: Meter,
        given: Summarizer | None = None,
    ) -> str | Reply:
        """`write` for an event loop: a coroutine runs on it, everything else in a thread."""
        chosen = self._chosen(request, meter, given)
        if chosen is None:
            return await asyncio.to_thread(_extracted, request, meter)
        safe = await asyncio.to_thread(masked)
        on_loop = _is_coroutine(chosen.ask)
        answer = chosen.ask(safe) if on_loop else await asyncio.to_thread(chosen.ask, safe)
        return answer if isinstance(answer, str | Reply) else await _in_time(answer, chosen.timeout_s)

    def _chosen(self, request: SummaryRequest, meter: Meter, given: Summarizer | None) -> _Chosen | None:
        """The summarizer of a request; None: the one that needs no model."""
        summary = self._config.summary
        if request.source == "extractive":
            return None
        own = given or self._given
        if own is not None:
            return _Chosen(own, summary.timeout_s)
        if summary.model is None or self._problem:
            return None
        endpoint = self._endpoint(meter)

        async def ask(asked: SummaryRequest) -> Reply:
            return await llm.summarize(asked, endpoint, meter.count_text)

        return _Chosen(ask, None)

    @cached_property
    def _problem(self) -> str:
        return llm.why_unavailable(self._config.summary.base_url)

    def _endpoint(self, meter: Meter) -> llm.Endpoint:
        summary, own = self._config.summary, self._config.model
        assert summary.model is not None
        is_agent = summary.model == AGENT
        window = window_of(
            meter.model if is_agent else summary.model,
            configured=self._config.max_context_tokens if is_agent and meter.model == own else None,
            windows=self._config.windows,
        )
        return llm.Endpoint(
            model=meter.model if is_agent else summary.model,
            base_url=summary.base_url,
            window=window.tokens,
            prompt=self._prompt,
            summary_tag=summary.summary_tag,
            seed=summary.seed,
            temperature=summary.temperature,
            timeout_s=summary.timeout_s,
        )


async def _in_time(answer: Awaitable[str | Reply], timeout_s: float | None) -> str | Reply:
    async with asyncio.timeout(timeout_s):
        return await answer


def _extracted(request: SummaryRequest, meter: Meter) -> Reply:
    return Reply(extractive.summarize(request, meter.count_text), trusted=True)


def _is_coroutine(summarizer: Any) -> bool:
    call = getattr(summarizer, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(summarizer) or inspect.iscoroutinefunction(call)


def _run(answer: Awaitable[str | Reply]) -> str | Reply:
    """The answer of a coroutine, for a caller that waits. In a notebook the caller's thread has a loop already."""

    async def awaited() -> str | Reply:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited())
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, awaited()).result()
