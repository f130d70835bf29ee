"""`CompactManager`: the only mutable state, and the face of the library."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any

from compact.archive import Archive
from compact.archive.backend import Backend
from compact.config import CompactConfig
from compact.dialects import Dialect, get
from compact.drivers import drive
from compact.engine import Call, Limits, Line
from compact.errors import ArchiveError, WindowTooSmall
from compact.events import Failure, Ids, Trace, Warned
from compact.guidance import SYSTEM_PROMPT_SEGMENT
from compact.journal import Exporter
from compact.lanes import wait_here, wait_on_loop
from compact.messages import to_json
from compact.outside import Outside, Session, Summarizer, Work
from compact.passes import Outcome
from compact.running import Conductor, Job, copied
from compact.settings import corrected, desk_for, limits_for, policy_for
from compact.stages.base import Desk
from compact.stages.offload import is_large, offloaded
from compact.summarizers.agent import agent_summarizer
from compact.tokens import Estimate, Meter
from compact.windows import Window, check_window, window_of

DEFAULT_SESSION = "default"
_OBSERVABLE_TOKENS = 500
"""Below this a provider's fixed overhead says nothing about its tokenizer."""
_MAX_CORRECTION = 3.0


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
        exporters: Iterable[Exporter] = (),
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
        self._sessions: dict[str, Session] = {}
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
    ) -> Any:
        """The messages to send: the same list while nothing has to be done, else a shorter one of the same dialect.

        `tools` and a `system` prompt outside the list are counted. Name the `dialect` where a list could be several:
        plain text is taken for OpenAI chat.

        Raises:
            MessageError: an entry is not a message; names its index.
            WindowTooSmall: the model's window cannot hold a working session.
            InsufficientBudget: what must stay is larger than the budget.
            ArchiveError: the messages do not fit, and the archive does not take what would have to leave.
        """
        return self._run(session_id, _call(messages, tools=tools, system=system, dialect=dialect))

    async def apreflight(
        self,
        session_id: str,
        messages: Sequence[Any],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
    ) -> Any:
        """`preflight` for async hosts; disk and heavy work happen off the event loop."""
        call = _call(messages, tools=tools, system=system, dialect=dialect)
        return await self._arun(session_id, call)

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[Any],
        note: str | None = None,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
    ) -> Any:
        """The messages with everything folded that may be, whatever their size. Raises as `preflight` does."""
        return self._run(
            session_id,
            _call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect),
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
    ) -> Any:
        """`manual_compact` for async hosts."""
        return await self._arun(
            session_id,
            _call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect),
        )

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
        job = Job.of(call, session=self._session(session_id), line=line or partial(self._line, model=model))
        return wait_here(self._conductor.conduct(job))

    async def _arun(
        self, session_id: str, call: Call, model: str | None = None, summarizer: Summarizer | None = None
    ) -> Any:
        job = Job.of(
            call,
            session=self._session(session_id),
            line=partial(self._line, model=model),
            summarizer=summarizer,
            loop=asyncio.get_running_loop(),
        )
        return await wait_on_loop(self._conductor.conduct(job))

    def _line(self, session: Session, model: str | None) -> Line:
        config = self.config
        name = model or config.model
        meter = self._meter(name)
        window = self._window(name, None if model else config.max_context_tokens)
        self._check_window(session, window, name)
        limits = self._limits.get(window.tokens)
        if limits is None:
            limits = self._limits[window.tokens] = limits_for(config, window.tokens)
        return Line(
            meter=meter,
            limits=corrected(limits, session.correction),
            policy=self._policy,
            desk=lambda dialect: self._desk(session, dialect, meter),
            verified=session.verified,
            moved=session.moved,
            now=time.perf_counter,
        )

    # --- single operations

    def process_tool_result(
        self, result: Any, tool_name: str, tool_call_id: str, session_id: str | None = None
    ) -> Any:
        """A tool's result as it should go into the context: itself, or a preview with the path of the whole.

        If the archive cannot take it, it stays as it is.
        """
        text = result if isinstance(result, str) else to_json(result)
        session = self._session(session_id or DEFAULT_SESSION)
        meter = self._meter(self.config.model)
        desk = self._desk(session, get("chat"), meter)
        if not is_large(text, desk):
            return result
        try:
            pointer = drive(
                offloaded(text, tool_name, tool_call_id, desk),
                lambda need: self._outside.serve(Work(session), need, meter),
            )
        except ArchiveError as problem:
            failure = Failure(error_type=problem.code, message=str(problem), fallback="none")
            self._outside.emit(session, failure)
            return result
        return pointer

    def estimate(self, messages: Sequence[Any], tools: Any = None, *, system: Any = None) -> Estimate:
        """What a request costs: `.total .system .developer .tools_schema .messages .usage_pct`.

        Raises:
            MessageError: an entry is not a message; names its index.
        """
        config = self.config
        window = window_of(config.model, configured=config.max_context_tokens, windows=config.windows)
        return self._meter(config.model).estimate(messages, tools, system=system, max_tokens=window.tokens)

    def observe(self, session_id: str, *, input_tokens: int) -> None:
        """Tells what the provider counted for the request of the last preflight; the next ones are held against it.

        A larger count than ours makes the session act earlier. A smaller one only takes back the margin of a model
        whose tokenizer is not public: an exact count is never relaxed. Counts of aborted calls must not be passed.
        """
        session = self._session(session_id)
        if input_tokens <= 0 or session.last_total < _OBSERVABLE_TOKENS:
            return
        ratio = input_tokens / session.last_total
        session.correction = min(max(ratio, 1 / self._meter(self.config.model).factor), _MAX_CORRECTION)

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
        from compact.archive.recovery_tools import recovery_tools

        return dict(recovery_tools(self.archive, session_id or DEFAULT_SESSION))

    @property
    def archive(self) -> Archive:
        """Where everything lies that left a context."""
        return self._outside.archive

    def last_outcome(self, session_id: str) -> Outcome | None:
        """What the newest pass over a session did; None before the first in this process."""
        return self._session(session_id).outcome

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

    def _session(self, session_id: str) -> Session:
        with self._lock:
            found = self._sessions.get(session_id)
            if found is None:
                trace = Trace(Ids(f"session:{session_id}").trace_id())
                found = self._sessions[session_id] = Session(session_id, trace)
            return found

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

    def _check_window(self, session: Session, window: Window, model: str) -> None:
        guard = self.config.guard
        verdict = check_window(window.tokens, guard.min_context_tokens, guard.warn_context_tokens)
        if verdict.block:
            raise WindowTooSmall(
                f"{verdict.reason} (model {model}, window from {window.source})",
                tokens=verdict.tokens,
                minimum=verdict.min_tokens,
                source=window.source,
            )
        if not window.known:
            text = f"no context window is known for {model}: {window.tokens:,} tokens are assumed; set max_context_tokens"
            self._outside.warn_once(session, Warned(code="unknown_model", severity="medium", message=text))
        if verdict.warn:
            warning = Warned(code="small_window", severity="medium", message=verdict.reason)
            self._outside.warn_once(session, warning)


def _call(messages: Sequence[Any], **more: Any) -> Call:
    return Call(messages=copied(messages), given=messages, **more)
