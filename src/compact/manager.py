"""`CompactManager`: the only mutable state, and the two drivers of the engine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeVar

from compact.archive import Archive, Attempt, Step, open_archive
from compact.config import CompactConfig
from compact.dialects import Dialect, get
from compact.drivers import adrive, drive
from compact.engine import Call, Limits, Line, Result
from compact.errors import ArchiveError, WindowTooSmall
from compact.events import Event, Failure, Ids, Offload, Properties, Recorder, Trace, Warned
from compact.guidance import SYSTEM_PROMPT_SEGMENT
from compact.hygiene.verified import Verified
from compact.journal import Exporter, Journal
from compact.messages import Message, to_json
from compact.passes import Outcome
from compact.redaction import Redactor, rules_from_config
from compact.sessions import SessionState
from compact.settings import desk_for, limits_for, policy_for
from compact.stages.base import (
    Begin,
    Begun,
    Commit,
    Emit,
    KeepRemoved,
    Load,
    Loaded,
    Need,
    Store,
    SummaryRequest,
)
from compact.stages.offload import is_large, offloaded
from compact.summarizers import extractive
from compact.summarizers.agent import agent_summarizer
from compact.tokens import Estimate, Meter
from compact.windows import Window, check_window, window_of

T = TypeVar("T")
Summarizer = Callable[[SummaryRequest], str | Awaitable[str]]

DEFAULT_SESSION = "default"


@dataclass(slots=True)
class _Session:
    """What the manager keeps for one session, behind one lock."""

    id: str
    trace: Trace
    lock: threading.Lock = field(default_factory=threading.Lock)
    state: SessionState = field(default_factory=SessionState)
    verified: Verified = field(default_factory=Verified)
    moved: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    attempt: Attempt | None = None
    outcome: Outcome | None = None
    warned: set[str] = field(default_factory=set)
    last_total: int = 0
    correction: float = 1.0


class CompactManager(AbstractContextManager["CompactManager"]):
    """Keeps sessions inside their model's window. Safe to share between threads.

    `summarizer`, `archive`, `exporters`, `redactor` and `clock` replace the parts that the configuration describes.
    """

    def __init__(
        self,
        config: CompactConfig | None = None,
        *,
        summarizer: Summarizer | None = None,
        archive: Archive | None = None,
        exporters: Iterable[Exporter] = (),
        redactor: Any = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.config = config or CompactConfig()
        self._clock = clock or _utc_now
        self._summarizer = summarizer
        self._redactor = (redactor or _redactor_of(self.config)).session()
        self._meters: dict[str, Meter] = {}
        self._limits_by_window: dict[int, Limits] = {}
        self._policy = policy_for(self.config)
        self._sessions: dict[str, _Session] = {}
        self._guard = threading.Lock()
        self._saved: dict[str, int] = {}
        self._operations = 0
        self._recorder = Recorder(self._clock, Ids("compact"))
        self._journal = Journal(self._append_events, exporters)
        self._given_archive = archive
        self._archive_lock = threading.Lock()

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
        return self._run(session_id, Call(messages=messages, tools=tools, system=system, dialect=dialect))

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
        call = Call(messages=messages, tools=tools, system=system, dialect=dialect)
        return await self._arun(session_id, call)

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[Any],
        note: str | None = None,
        tools: Any = None,
        *,
        dialect: str | None = None,
    ) -> Any:
        """The messages with everything folded that may be, whatever their size. Raises as `preflight` does."""
        return self._run(
            session_id, Call(messages=messages, tools=tools, manual=True, note=note, dialect=dialect)
        )

    async def amanual_compact(
        self,
        session_id: str,
        messages: Sequence[Any],
        note: str | None = None,
        tools: Any = None,
        *,
        dialect: str | None = None,
    ) -> Any:
        """`manual_compact` for async hosts."""
        return await self._arun(
            session_id, Call(messages=messages, tools=tools, manual=True, note=note, dialect=dialect)
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
        call = Call(messages=messages)
        return await self._arun(
            session_id,
            call,
            model,
            None if summarization_agent is None else agent_summarizer(summarization_agent),
        )

    def _run(self, session_id: str, call: Call, model: str | None = None) -> Any:
        session = self._session(session_id)
        with session.lock:
            line, stop = self._line(session, model), self._attempt_ends(session)
            asking = line.run(call, session.state)
            with stop:
                result = drive(asking, lambda need: self._serve(session, need, line.meter))
            return self._settled(session, result)

    async def _arun(
        self, session_id: str, call: Call, model: str | None = None, summarizer: Summarizer | None = None
    ) -> Any:
        session = self._session(session_id)
        if not session.lock.acquire(blocking=False):
            await asyncio.to_thread(session.lock.acquire)
        try:
            line, stop = self._line(session, model), self._attempt_ends(session)
            asking = line.run(call, session.state)

            async def serve(need: Need) -> Any:
                if isinstance(need, SummaryRequest):
                    return await self._asummary(need, line.meter, summarizer)
                return await asyncio.to_thread(self._serve, session, need, line.meter)

            with stop:
                result = await adrive(asking, serve, lambda need: self._serve(session, need, line.meter))
            return self._settled(session, result)
        finally:
            session.lock.release()

    def _settled(self, session: _Session, result: Result) -> Any:
        session.state = result.state
        session.outcome = result.outcome or session.outcome
        session.last_total = result.estimate.total
        outcome = result.outcome
        with self._guard:
            if outcome is not None and outcome.step is not None:
                for stage, tokens in outcome.saved.items():
                    if stage != "offload":  # counted one by one, as they happen
                        self._credit(stage, tokens)
        if outcome is not None and outcome.step is not None:
            self._journal.flush()
        return result.messages

    def _credit(self, stage: str, tokens: int) -> None:
        self._operations += 1
        self._saved[stage] = self._saved.get(stage, 0) + tokens

    def _line(self, session: _Session, model: str | None) -> Line:
        config = self.config
        name = model or config.model
        meter = self._meter(name)
        window = window_of(
            name, configured=None if model else config.max_context_tokens, windows=config.windows
        )
        self._check_window(session, window, name)
        return Line(
            meter=meter,
            limits=self._limits(window.tokens),
            policy=self._policy,
            desk=lambda dialect: self._desk(dialect, meter),
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
        desk = self._desk(get("chat"), meter)
        if not is_large(text, desk):
            return result
        try:
            pointer = drive(
                offloaded(text, tool_name, tool_call_id, desk), lambda need: self._serve(session, need, meter)
            )
        except ArchiveError as problem:
            failure = Failure(error_type=problem.code, message=str(problem), fallback="none")
            self._emit(session, failure)
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

    def get_compaction_stats(self) -> dict[str, Any]:
        """Tokens saved in all, how many operations, and how much each kind saved."""
        with self._guard:
            return {
                "total_tokens_saved": sum(self._saved.values()),
                "compaction_events": self._operations,
                "by_strategy": dict(self._saved),
            }

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
        with self._archive_lock:
            if self._given_archive is None:
                self._given_archive = self._open_archive()
            return self._given_archive

    def last_outcome(self, session_id: str) -> Outcome | None:
        """What the newest pass over a session did; None before the first in this process."""
        return self._session(session_id).outcome

    def flush(self) -> None:
        """Waits until every event is in the archive."""
        self._journal.flush()

    def close(self) -> None:
        """Writes what waits and ends what runs in the background. May be called twice."""
        self._journal.close()
        if self._given_archive is not None:
            self._given_archive.close()

    async def aclose(self) -> None:
        """`close` for async hosts."""
        await asyncio.to_thread(self.close)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what the engine asks for

    def _serve(self, session: _Session, need: Need, meter: Meter) -> Any:
        match need:
            case Emit():
                if isinstance(need.properties, Offload):
                    with self._guard:
                        self._credit("offload", need.properties.tokens_before - need.properties.tokens_after)
                return self._emit(session, need.properties, need.payload)
            case Store():
                self._journal.flush()  # the log tells things in the order in which they happened
                stored = self.archive.put_output(
                    session.id, need.text, tool_name=need.tool_name, tool_call_id=need.tool_call_id
                )
                return stored.path
            case SummaryRequest():
                return self._summary(need, meter)
            case Begin():
                self._journal.flush()
                session.attempt = self.archive.begin(
                    session.id, need.items, dialect=need.dialect, after=need.after
                )
                return Begun(session.attempt.step, session.attempt.history_path)
            case Commit():
                assert session.attempt is not None
                self._journal.flush()
                step = session.attempt.commit(
                    summary=need.summary,
                    state=need.state,
                    fingerprints=need.fingerprints,
                    trace=session.trace,
                )
                return isinstance(step, Step)
            case Load():
                return self._load(session)
            case KeepRemoved():
                text = "\n".join(map(to_json, need.items))
                return self.archive.put_output(
                    session.id, text, tool_name="removed", tool_call_id="hygiene"
                ).path

    def _load(self, session: _Session) -> Loaded | None:
        step = self.archive.latest(session.id)
        return None if step is None else Loaded(step.step, step.state, step.fingerprints)

    def _summary(self, request: SummaryRequest, meter: Meter) -> str:
        if self._summarizer is None:
            return extractive.summarize(request, meter.count_text)
        answer = self._summarizer(self._masked(request))
        return answer if isinstance(answer, str) else asyncio.run(_awaited(answer))

    async def _asummary(self, request: SummaryRequest, meter: Meter, summarizer: Summarizer | None) -> str:
        chosen = summarizer or self._summarizer
        if chosen is None:
            return await asyncio.to_thread(extractive.summarize, request, meter.count_text)
        answer = chosen(await asyncio.to_thread(self._masked, request))
        return answer if isinstance(answer, str) else await answer

    def _masked(self, request: SummaryRequest) -> SummaryRequest:
        """The request without secrets: a summarizer is an exit like any other."""
        dialect = get(request.dialect)
        items = [dialect.write(message) for message in request.messages]
        masked = [dialect.read(item) for item in self._redactor.redact_messages(items)]
        return replace(request, messages=masked, previous=self._redactor.redact(request.previous))

    # --- parts

    def _session(self, session_id: str) -> _Session:
        with self._guard:
            found = self._sessions.get(session_id)
            if found is None:
                trace = Trace(Ids(f"session:{session_id}").trace_id())
                found = self._sessions[session_id] = _Session(session_id, trace)
            return found

    def _meter(self, model: str) -> Meter:
        with self._guard:
            found = self._meters.get(model)
            if found is None:
                found = self._meters[model] = Meter(model, memo_bytes=self.config.meter.memo_bytes)
            return found

    def _desk(self, dialect: Dialect, meter: Meter) -> Any:
        def rewrite(message: Message) -> Message:
            item = dialect.write(message)
            masked = self._redactor.redact_messages([item])[0]
            return replace(dialect.read(masked), protected=message.protected)

        return desk_for(self.config, dialect, meter, self._redactor.redact, rewrite)

    def _limits(self, window: int) -> Limits:
        found = self._limits_by_window.get(window)
        if found is None:
            found = self._limits_by_window[window] = limits_for(self.config, window)
        return found

    def _check_window(self, session: _Session, window: Window, model: str) -> None:
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
            self._warn_once(session, Warned(code="unknown_model", severity="medium", message=text))
        if verdict.warn:
            self._warn_once(session, Warned(code="small_window", severity="medium", message=verdict.reason))

    def _warn_once(self, session: _Session, warning: Warned) -> None:
        if warning.code not in session.warned:
            session.warned.add(warning.code)
            self._emit(session, warning)

    def _emit(
        self, session: _Session, properties: Properties, payload: Mapping[str, Any] | None = None
    ) -> None:
        self._journal.emit(
            self._recorder.event(
                properties,
                session_id=session.id,
                step=session.state.step,
                trace=session.trace,
                payload=payload or None,
            )
        )

    def _append_events(self, session_id: str, events: Sequence[Event]) -> None:
        self.archive.append_events(session_id, events)

    def _open_archive(self) -> Archive:
        settings = self.config.archive.model_dump()
        return open_archive(self._redactor, self._recorder, listener=self._journal.heard, **settings)

    def _attempt_ends(self, session: _Session) -> AbstractContextManager[None]:
        return _Ending(session)


class _Ending(AbstractContextManager[None]):
    """An attempt that was not committed leaves no trace, whatever ended the pass."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session.attempt is not None:
            self._session.attempt.abandon()
            self._session.attempt = None


async def _awaited(answer: Awaitable[str]) -> str:
    return await answer


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _redactor_of(config: CompactConfig) -> Redactor:
    if not config.redaction.enabled:
        return Redactor.disabled()
    return Redactor(rules_from_config(config.redaction.rules, config.redaction.extra))
