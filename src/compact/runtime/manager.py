"""`CompactManager`: the only mutable state, and the face of the library."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Any

from compact.archive import Archive, Backend
from compact.config import CompactConfig
from compact.engine.effects import Asking
from compact.engine.ladder import Outcome
from compact.engine.limits import Limits
from compact.engine.line import Call, Line
from compact.engine.rows import Desk
from compact.engine.spans import Spans
from compact.engine.stages.offload import is_large, offloaded
from compact.errors import ArchiveError
from compact.events import Failure, Offload, Warned, WarningCode
from compact.messages import to_json
from compact.messages.dialects import Dialect, get
from compact.messages.hygiene.sanitizing import valid_text
from compact.runtime.conductor import Conductor, Job, copied, is_light
from compact.runtime.guidance import SYSTEM_PROMPT_SEGMENT
from compact.runtime.lanes import Waiting, wait_here, wait_on_loop
from compact.runtime.overflow.calling import Calling, ModelCall, Parts
from compact.runtime.overflow.learning import LearnedWindows
from compact.runtime.overflow.surviving import Learn, Learned, Request, input_tokens
from compact.runtime.services import Outside, Summarizer
from compact.runtime.session_cache import OpenSessions, Session
from compact.runtime.settings import corrected, desk_for, guarded, limits_for, policy_for
from compact.summaries.agent import agent_summarizer
from compact.tokens import Estimate, Meter
from compact.tokens.windows import Window, window_of
from compact.tracing.exporters import Given

DEFAULT_SESSION = "default"
_OBSERVABLE_TOKENS = 500
"""Below this a provider's fixed overhead says nothing about its tokenizer."""
_MAX_CORRECTION = 3.0
_SPOOLING_S = 1.0
"""A bucket that used up its time leaves this much for writing to the spool."""


class CompactManager(AbstractContextManager["CompactManager"]):
    """Keeps sessions inside their model's window. Safe to share between threads.

    `summarizer`, `archive`, `exporters`, `redactor` and `clock` replace the parts that the configuration describes. An
    object with `write_file(path, content)` is accepted in place of an archive.
    """

    def __init__(
        self,
        config: CompactConfig | None = None,
        *,
        summarizer: Summarizer | None = None,
        archive: Archive | Backend | None = None,
        exporters: Iterable[Given] = (),
        redactor: Any = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.config = config or CompactConfig()
        self._outside = Outside(
            self.config,
            summarizer=summarizer,
            archive=archive,
            exporters=exporters,
            redactor=redactor,
            clock=clock,
        )
        policy = self.config.policy
        self._conductor = Conductor(
            self._outside,
            timeout_s=policy.timeout_s,
            rescue_timeout_s=policy.rescue_timeout_s,
            archive_rest_s=self.config.archive.spool_retry_s,
        )
        self._policy = policy_for(self.config)
        self._meters: dict[str, Meter] = {}
        self._limits: dict[int, Limits] = {}
        self._windows: dict[tuple[str, int | None], Window] = {}
        self._learned = LearnedWindows(
            reserve=self.config.policy.reserve_output_tokens, buffer=self.config.policy.hard_cap_buffer
        )
        self._sessions = OpenSessions(policy.sessions_in_memory, self._outside.forget)
        self._lock = threading.Lock()
        # Reading the tokenizer takes a tenth of a second that no other thread can use, an event loop's neither: not later.
        self._meter(self.config.model).load()

    # --- the line, in two drivers

    def preflight(
        self,
        session_id: str,
        messages: Sequence[Any],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """The messages to send: the same list while nothing has to be done, else a shorter one of the same dialect.

        `tools` and a `system` prompt outside the list are counted. Name the `dialect` where a list could be several:
        plain text is taken for OpenAI chat. A `model` other than the configured one brings its own window.

        Raises:
            MessageError: an entry is not a message; names its index.
            WindowTooSmall: the model's window cannot hold a working session.
            InsufficientBudget: what must stay is larger than the budget.
            ArchiveError: the messages do not fit, and the archive does not take what would have to leave.
        """
        return self._run(session_id, _call(messages, tools=tools, system=system, dialect=dialect), model)

    async def apreflight(
        self,
        session_id: str,
        messages: Sequence[Any],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """`preflight` for async hosts; disk and heavy work happen off the event loop."""
        call = _call(messages, tools=tools, system=system, dialect=dialect)
        return await self._arun(session_id, call, model)

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[Any],
        note: str | None = None,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """The messages with everything folded that may be, whatever their size. Raises as `preflight` does."""
        return self._run(
            session_id,
            _call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect),
            model,
        )

    async def amanual_compact(
        self,
        session_id: str,
        messages: Sequence[Any],
        note: str | None = None,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """`manual_compact` for async hosts."""
        return await self._arun(
            session_id,
            _call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect),
            model,
        )

    def call(
        self,
        session_id: str,
        messages: Sequence[Any],
        model_call: ModelCall,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """The model's reply, whatever it takes to make the request fit. See docs/RECOVERY.md.

        `model_call(messages)` sends the messages that it is given, once, and returns the provider's reply. Calls at the
        end that still wait for results are answered first. When the provider refuses the request as too long, its limit
        is learned, the session is compacted and sent again (`recovery.max_compactions` times), then cut as far as it
        goes. What the reply says of its usage is learned as by `observe`. `last_request` gives the messages that were answered.

        Raises:
            ContextOverflow: the provider refused even the smallest request; its own error is the cause.
            Exception: everything else that `model_call` raises, untouched; and what `preflight` raises.
        """
        calling = self._calling(session_id, messages, model_call, tools, system, dialect, model)
        reply, request = calling.run(lambda call: self._run(session_id, call, model))
        return self._answered(session_id, model, reply, request)

    async def acall(
        self,
        session_id: str,
        messages: Sequence[Any],
        model_call: ModelCall,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """`call` for async hosts. `model_call` may be a coroutine function; any other runs in a thread."""
        calling = self._calling(session_id, messages, model_call, tools, system, dialect, model)
        reply, request = await calling.arun(lambda call: self._arun(session_id, call, model))
        return self._answered(session_id, model, reply, request)

    async def manage_context(
        self,
        messages: Sequence[Any],
        model: str | None = None,
        summarization_agent: Any = None,
        *,
        session_id: str = DEFAULT_SESSION,
    ) -> Any:
        """`apreflight` on the default session, with the model of this call and an agent that writes the summary."""
        call = _call(messages)
        return await self._arun(
            session_id,
            call,
            model,
            None if summarization_agent is None else agent_summarizer(summarization_agent),
        )

    def _run(
        self,
        session_id: str,
        call: Call,
        model: str | None = None,
        line: Callable[[Session], Line] | None = None,
    ) -> Any:
        job = Job.of(
            call, session=self._sessions.get(session_id), line=line or partial(self._line, model=model)
        )
        return wait_here(self._conductor.conduct(job))

    async def _arun(
        self, session_id: str, call: Call, model: str | None = None, summarizer: Summarizer | None = None
    ) -> Any:
        job = Job.of(
            call,
            session=self._sessions.get(session_id),
            line=partial(self._line, model=model),
            summarizer=summarizer,
            loop=asyncio.get_running_loop(),
        )
        return await wait_on_loop(self._conductor.conduct(job))

    def _line(self, session: Session, model: str | None) -> Line:
        name = model or self.config.model
        meter = self._meter(name)
        window = self._window_now(model)
        for warning in guarded(self.config, window, name):
            self._outside.warn_once(session, warning)
        return Line(
            meter=meter,
            limits=self._limits_now(session, name, window),
            policy=self._policy,
            desk=lambda dialect: self._desk(session, dialect, meter),
            verified=session.verified,
            moved=session.moved,
            now=self._outside.now,
            spans=Spans(self._outside.recorder, session.trace),
        )

    def _window_now(self, model: str | None) -> Window:
        """The window of this call's model, and never more than its provider said it takes."""
        name = model or self.config.model
        return self._learned.narrowed(name, self._window(name, self._configured_window(model)))

    def _configured_window(self, model: str | None) -> int | None:
        """`max_context_tokens` is the configured model's: another brings its own."""
        return self.config.max_context_tokens if model in (None, self.config.model) else None

    def _limits_now(self, session: Session, name: str, window: Window) -> Limits:
        tokens = self._learned.usable(name, session.id, window)
        limits = self._limits.get(tokens)
        if limits is None:
            limits = self._limits[tokens] = limits_for(self.config, tokens)
        return corrected(limits, session.correction)

    # --- a model call that survives overflow

    def _calling(
        self,
        session_id: str,
        messages: Sequence[Any],
        model_call: ModelCall,
        tools: Any,
        system: Any,
        dialect: str | None,
        model: str | None,
    ) -> Calling:
        session, meter = self._sessions.get(session_id), self._meter(model or self.config.model)

        def count(request: Any) -> int:
            window = self._window_now(model).tokens
            return meter.estimate(request, tools, system=system, dialect=dialect, max_tokens=window).total

        parts = Parts(
            count=count,
            step=lambda: session.state.step,
            learn=lambda step: self._learn(session, model, step),
            emit=lambda event: self._outside.emit(session, event),
            redact=lambda text: str(self._outside.redactor(session_id).redact(text)),
            settings=self.config.recovery,
        )
        call = _call(messages, tools=tools, system=system, dialect=dialect)
        return Calling(session_id, call, model_call, parts)

    def _learn(self, session: Session, model: str | None, step: Learn) -> Learned:
        name, tokens = model or self.config.model, step.request.tokens
        if step.overflow.input is not None:
            _correct(session, step.overflow.input, tokens, self._meter(name).factor)
        self._learned.take(name, session.id, step.overflow, tokens)
        window, most = self._window_now(model), self._learned.most(name)
        return Learned(
            window=window.tokens,
            budget=self._limits_now(session, name, window).budget,
            most=None if most is None else int(most / session.correction),
        )

    def _answered(self, session_id: str, model: str | None, reply: Any, request: Request) -> Any:
        session, name = self._sessions.get(session_id), model or self.config.model
        session.request = request.messages
        self._learned.answered(name, session_id, request.tokens)
        counted = input_tokens(reply)
        if counted is not None:
            # Not `observe`: another call of the session may have been prepared since this one was sent.
            _correct(session, counted, request.tokens, self._meter(name).factor)
        return reply

    # --- single operations

    def process_tool_result(
        self, result: Any, tool_name: str, tool_call_id: str, session_id: str | None = None
    ) -> Any:
        """A tool's result as it should go into the context: itself, or a preview with the path of the whole.

        If the archive cannot take it, or not within `archive.timeout_s` and a moment, it stays as it is.
        """
        return wait_here(self._processed(result, tool_name, tool_call_id, session_id))

    async def aprocess_tool_result(
        self, result: Any, tool_name: str, tool_call_id: str, session_id: str | None = None
    ) -> Any:
        """`process_tool_result` for async hosts; disk and heavy work happen off the event loop."""
        here = is_light(result)
        return await wait_on_loop(self._processed(result, tool_name, tool_call_id, session_id, here))

    def _processed(
        self, result: Any, tool_name: str, tool_call_id: str, session_id: str | None, here: bool = True
    ) -> Waiting[Any]:
        session, meter = self._sessions.get(session_id or DEFAULT_SESSION), self._meter(self.config.model)

        def asking() -> Asking[Any]:
            text = result if isinstance(result, str) else to_json(result)
            desk = self._desk(session, get("chat"), meter)
            if not is_large(text, desk):
                return result
            spans = Spans(self._outside.recorder, session.trace, root=Offload)
            return (yield from spans.around(offloaded(text, tool_name, tool_call_id, desk)))

        limit_s = self.config.archive.timeout_s + _SPOOLING_S
        try:
            return (yield from self._conductor.stored(session, asking(), meter, limit_s, here=here))
        except ArchiveError as problem:
            failure = Failure(error_type=problem.code, message=str(problem), fallback="none")
            self._outside.emit(session, failure)
            return result

    def estimate(self, messages: Sequence[Any], tools: Any = None, *, system: Any = None) -> Estimate:
        """What a request costs: `.total .system .developer .tools_schema .messages .usage_pct`.

        Raises:
            MessageError: an entry is not a message; names its index.
        """
        window = self._window_now(None).tokens
        return self._meter(self.config.model).estimate(messages, tools, system=system, max_tokens=window)

    def observe(self, session_id: str, *, input_tokens: int) -> None:
        """Tells what the provider counted for the request of the last preflight; the next ones are held against it.

        A larger count than ours makes the session act earlier. A smaller one only takes back the margin of a model
        whose tokenizer is not public: an exact count is never relaxed. Counts of aborted calls must not be passed.
        """
        session = self._sessions.get(session_id)
        _correct(session, input_tokens, session.last_total, session.last_factor)

    def get_compaction_stats(self) -> dict[str, Any]:
        """Tokens saved in all, how many operations, how much each kind saved.

        Also how many tokens were sent in all, and how many of them repeated the beginning of the request before, so
        that a provider's prompt cache could serve them.
        """
        return self._outside.stats()

    def get_system_prompt_segment(self) -> str:
        """Text for the agent's system prompt: what compact does to its context, and how to get things back."""
        return SYSTEM_PROMPT_SEGMENT

    def recovery_tools(self, session_id: str | None = None) -> dict[str, Any]:
        """read_file, grep, ls and search over what left this session's context: {name: callable with a JSON schema}."""
        from compact.archive.recall import recall_tools

        return dict(recall_tools(self.archive, session_id or DEFAULT_SESSION))

    def wrap(self, client: Any, session_id: str | None = None) -> Any:
        """An OpenAI or Anthropic client, used as before, whose requests fit and survive overflow.

        Its calls also take `session_id=`. Raises ConfigError if it is no such client.
        """
        # By name: integrations stand above the manager, and are loaded only when they are asked for.
        return import_module("compact.integrations.clients").wrapped(self, client, session_id)

    def warn(self, session_id: str, code: WarningCode, message: str) -> None:
        """Records a warning, the first time it applies to a session; for integrations."""
        self._outside.warn_once(
            self._sessions.get(session_id), Warned(code=code, severity="low", message=message)
        )

    @property
    def archive(self) -> Archive:
        """Where everything lies that left a context."""
        return self._outside.archive

    def last_outcome(self, session_id: str) -> Outcome | None:
        """What the newest pass over a session did; None before the first, and when the session was not kept in memory."""
        return self._sessions.get(session_id).outcome

    def last_request(self, session_id: str) -> Any:
        """The messages that the newest reply of `call` answers: a host that keeps them sends less the next time.

        None before the first, and when the session was not kept in memory (`policy.sessions_in_memory`).
        """
        return self._sessions.get(session_id).request

    def flush(self) -> None:
        """Waits until every event is in the archive."""
        self._outside.flush()

    def close(self) -> None:
        """Writes what waits and ends what runs in the background. May be called twice."""
        self._outside.close()

    async def aclose(self) -> None:
        """`close` for async hosts."""
        await asyncio.to_thread(self.close)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- parts

    def _meter(self, model: str) -> Meter:
        with self._lock:
            found = self._meters.get(model)
            if found is None:
                found = self._meters[model] = Meter(model, memo_bytes=self.config.meter.memo_bytes)
            return found

    def _window(self, model: str, configured: int | None) -> Window:
        """The model's window. Looked up by name on every call, so a switch of models is noticed; found once."""
        found = self._windows.get((model, configured))
        if found is None:
            found = window_of(model, configured=configured, windows=self.config.windows)
            self._windows[(model, configured)] = found
        return found

    def _desk(self, session: Session, dialect: Dialect, meter: Meter) -> Desk:
        return desk_for(
            self.config,
            dialect,
            meter,
            self._outside.redactor(session.id).redact,
            lambda message: self._outside.rewritten(session, message, dialect),
        )


def _correct(session: Session, counted: int, ours: int, factor: float) -> None:
    """Holds our count of a request, which was rounded up by `factor`, against the provider's."""
    if counted > 0 and ours >= _OBSERVABLE_TOKENS:
        session.correction = min(max(counted / ours, 1 / factor), _MAX_CORRECTION)


def _call(messages: Sequence[Any], *, note: str | None = None, **more: Any) -> Call:
    # A note goes into events as it is, and not everybody who reads those can take half a character.
    said = valid_text(note) if isinstance(note, str) else note
    return Call(messages=copied(messages), given=messages, note=said, **more)
