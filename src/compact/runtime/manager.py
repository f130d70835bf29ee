"""`CompactManager`: the face of the library, and its only mutable state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from compact.archive import Archive, ArchiveRedactor, Backend
from compact.archive.recall import RecallTool, recall_tools
from compact.config import ArchiveConfig, CompactConfig, SettingArguments
from compact.engine.context import Stage
from compact.engine.effects import Asking, adrive, drive
from compact.engine.ladder import DEFAULT_STAGES, Outcome, check_stages
from compact.engine.line import Call
from compact.engine.stages.offload import Offloaded
from compact.events import Warned, WarningCode
from compact.messages.dialects.objects import in_form_of
from compact.runtime.conductor import Conductor, Lines, make_call
from compact.runtime.guidance import prompt_segment
from compact.runtime.lanes import wait_here, wait_on_loop
from compact.runtime.live_masking import LiveMasking
from compact.runtime.model_rules import Models
from compact.runtime.overflow.calling import ModelCalls
from compact.runtime.parts import check_count, check_parts, join_settings
from compact.runtime.recalling import follow_running, note_answers
from compact.runtime.resolver import SessionResolver
from compact.runtime.run import Run, is_light
from compact.runtime.services import CompactionStats, Services
from compact.runtime.session_cache import Session, SessionCache, check_session_id
from compact.runtime.tool_results import ToolResults
from compact.runtime.wrapping import wrap_client
from compact.summaries.agent import agent_summarizer
from compact.summaries.request import Summarizer
from compact.tokens import Estimate, Meter
from compact.tracing.exporters import ExporterLike

M = TypeVar("M")
R = TypeVar("R")
C = TypeVar("C")

DEFAULT_SESSION = "default"


class CompactManager(AbstractContextManager["CompactManager"]):
    """Keeps sessions inside their model's window. Safe to share between threads.

    Settings are a `CompactConfig`, keywords with the same names and nesting, or both; then keywords win.

    `summarizer`, `archive`, `exporters`, `redactor` and `clock` replace the parts that the settings describe. An object
    with `write_file(path, content)` is accepted in place of an archive, and a mapping there is settings. `stages`
    replaces the ladder; ours is `compact.DEFAULT_STAGES`. `count_tokens(text)` replaces the tokenizer: it returns a
    text's tokens for the model.

    Raises:
        ConfigError: a setting or a part is wrong; names it.
    """

    def __init__(
        self,
        config: CompactConfig | None = None,
        *,
        summarizer: Summarizer | None = None,
        archive: Archive | Backend | ArchiveConfig | Mapping[str, Any] | None = None,
        exporters: Iterable[ExporterLike] = (),
        redactor: ArchiveRedactor | None = None,
        clock: Callable[[], datetime] | None = None,
        stages: Iterable[Stage] | None = None,
        count_tokens: Callable[[str], int] | None = None,
        **settings: Unpack[SettingArguments],
    ) -> None:
        self.config, part = join_settings(config, archive, settings)
        check_parts(summarizer=summarizer, archive=part, exporters=exporters, redactor=redactor, clock=clock)
        self.services = Services(
            self.config,
            summarizer=summarizer,
            archive=part,
            exporters=exporters,
            redactor=redactor,
            clock=clock,
        )
        """What serves the engine. Tests wrap its `serve` to inject faults."""
        self.live: LiveMasking | None = None
        """Masks what goes to the model; None while `redaction.live` is off."""
        if self.config.redaction.live != "off":
            self.live = LiveMasking(self.config, self.services, redactor)
        policy = self.config.policy
        self.sessions = SessionCache(policy.sessions_in_memory, self.services.forget)
        """The sessions in memory."""
        self.conductor = Conductor(
            self.services,
            self.sessions,
            timeout_s=policy.timeout_s,
            rescue_timeout_s=policy.rescue_timeout_s,
            archive_rest_s=self.config.archive.spool_retry_s,
        )
        self.models = Models(self.config, count_tokens)
        """Meters, windows and rules by model."""
        ladder = DEFAULT_STAGES if stages is None else check_stages(stages)
        self.resolver = SessionResolver(warn=self.warn)
        """Names the sessions of calls that have no explicit id. Integrations share it."""
        self._lines = Lines(self.config, self.services, self.models, ladder)
        self._model_calls = ModelCalls(self.models, self.services, self.config.recovery)
        self._tool_results = ToolResults(self._lines, self.conductor, self.live)
        # Reading the tokenizer blocks every thread, event loops included, for a tenth of a second. Not later.
        self.meter().load()

    # --- before each model call

    def preflight(
        self,
        session_id: str,
        messages: Sequence[M],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> list[M]:
        """Return the messages to send: the same list while nothing has to be done, else a shorter one.

        `tools`, and a `system` prompt outside the list, are counted. Name the `dialect` of a list that could be several:
        plain text is taken for OpenAI chat. A `model` other than the configured one brings its own window.

        Raises:
            MessageError: an entry is not a message; names its index.
            WindowTooSmall: the model's window cannot hold a working session.
            InsufficientBudget: what must stay is larger than the budget.
            ArchiveError: the messages do not fit, and the archive does not take what would have to leave.
            OutOfTime: the messages do not fit, and `policy.timeout_s` was not enough to change that.
        """
        return self._run(session_id, make_call(messages, tools=tools, system=system, dialect=dialect), model)

    async def apreflight(
        self,
        session_id: str,
        messages: Sequence[M],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> list[M]:
        """`preflight` for async hosts. Disk and heavy work happen off the event loop."""
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        return await self._arun(session_id, call, model)

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
        summarization_agent: Any = None,
    ) -> list[M]:
        """Fold everything that may be folded, whatever the size. Raises what `preflight` raises.

        `summarization_agent` writes the summary of this call.
        """
        call = make_call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect)
        return self._run(session_id, call, model, _summarizer_of(summarization_agent))

    async def amanual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
        summarization_agent: Any = None,
    ) -> list[M]:
        """`manual_compact` for async hosts."""
        call = make_call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect)
        return await self._arun(session_id, call, model, _summarizer_of(summarization_agent))

    async def manage_context(
        self,
        messages: Sequence[M],
        model: str | None = None,
        summarization_agent: Any = None,
        *,
        session_id: str = DEFAULT_SESSION,
    ) -> list[M]:
        """`apreflight` on the default session, with the model of this call and an agent that writes the summary."""
        self.resolver.enter(check_session_id(session_id))
        return await self._arun(session_id, make_call(messages), model, _summarizer_of(summarization_agent))

    def reduce(self, session_id: str, messages: Sequence[M], *, model: str | None = None) -> list[M]:
        """`preflight` with the reversible stages only: no summary, nothing cut, however large the rest is."""
        return self._run(session_id, make_call(messages, reversible=True), model)

    # --- a model call that survives overflow

    def call(
        self,
        session_id: str,
        messages: Sequence[M],
        model_call: Callable[[list[M]], R],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> R:
        """Return the model's reply, whatever it takes to make the request fit. See docs/RECOVERY.md.

        `model_call(messages)` sends the messages that it is given, once, and returns the provider's reply. Calls at the
        end of the list that still wait for results are answered first. If the provider refuses the request as too long,
        its limit is learned, and the session is compacted and sent again (`recovery.max_compactions` times), then cut as
        far as it goes. The usage in the reply is learned as by `observe`. `last_request` gives the messages that were
        answered.

        Raises:
            ContextOverflow: the provider refused even the smallest request; its own error is the cause.
            Exception: what `preflight` raises; and what `model_call` raises, unchanged.
        """
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        calling = self._model_calls.begin(self.sessions.get(session_id), call, model, model_call)
        reply: R = calling.run(lambda call: self._run(session_id, call, model))
        return reply

    @overload
    async def acall(
        self,
        session_id: str,
        messages: Sequence[M],
        model_call: Callable[[list[M]], Awaitable[R]],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> R: ...

    @overload
    async def acall(
        self,
        session_id: str,
        messages: Sequence[M],
        model_call: Callable[[list[M]], R],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> R: ...

    async def acall(
        self,
        session_id: str,
        messages: Sequence[M],
        model_call: Callable[[list[M]], Any],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
    ) -> Any:
        """`call` for async hosts. `model_call` may be a coroutine function; any other runs in a thread."""
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        calling = self._model_calls.begin(self.sessions.get(session_id), call, model, model_call)
        return await calling.arun(lambda call: self._arun(session_id, call, model))

    # --- single operations

    def process_tool_result(
        self, result: R, tool_name: str, tool_call_id: str, session_id: str | None = None
    ) -> R | str:
        """Return a tool's result as it should go into the context: itself, or a preview with the path of the whole.

        If the archive cannot take it, or not within `archive.timeout_s` and a moment, it stays as it is. Without an id it
        is stored for the session of the running call (see `recall_tools`), else for the manager's default session.
        """
        asking = self._tool_results.process(
            self._session(session_id, tool_call_id), result, tool_name, tool_call_id
        )
        shown: R | str = drive(asking, wait_here)
        return shown

    async def aprocess_tool_result(
        self, result: R, tool_name: str, tool_call_id: str, session_id: str | None = None
    ) -> R | str:
        """`process_tool_result` for async hosts. Disk and heavy work happen off the event loop."""
        session, here = self._session(session_id, tool_call_id), is_light(result)
        asking = self._tool_results.process(session, result, tool_name, tool_call_id, here=here)
        return await adrive(asking, wait_on_loop)

    def offload(
        self, result: str, tool_name: str, tool_call_id: str, session_id: str | None = None
    ) -> Offloaded:
        """Store a tool's result in the archive, whatever its size.

        Raises:
            ArchiveError: the archive did not take it.
        """
        session = self._session(session_id, tool_call_id)
        return drive(self._tool_results.offload(session, result, tool_name, tool_call_id), wait_here)

    def estimate(
        self, messages: Sequence[Any], tools: Any = None, *, system: Any = None, model: str | None = None
    ) -> Estimate:
        """Return what a request costs: `.total .system .developer .tools_schema .messages .usage_pct`.

        Raises:
            MessageError: an entry is not a message; names its index.
        """
        meter, window = self.meter(model), self.models.window(model).tokens
        return meter.estimate(messages, tools, system=system, max_tokens=window)

    def observe(self, session_id: str, *, input_tokens: int) -> None:
        """Take the provider's own count of the last preflight's request, to correct the next estimates.

        A larger count than ours makes the session act earlier. A smaller one only takes back the margin of a model
        without a public tokenizer: an exact count is never relaxed. It holds for the session and the model of that
        request. Do not pass the counts of aborted calls.

        Raises:
            ConfigError: it is not a number of tokens.
        """
        session = self.sessions.get(session_id)
        counted = check_count("input_tokens", input_tokens)
        session.correct(session.last_model, counted, session.last_total, session.last_factor)

    def mask(self, session_id: str, value: R, *, schemas: bool = False) -> R:
        """Mask what is sent beside the list: a system prompt, or the schemas of tools. Without live masking: nothing.

        Raises:
            MaskingError: it could not be masked.
        """
        session = self.sessions.get(session_id)
        return value if self.live is None else self.live.mask_beside(session, value, is_schema=schemas)

    def unmask(self, session_id: str, text: R) -> R:
        """Turn the placeholders of live masking back, in a text, or in data such as the arguments of a tool call.

        A placeholder stays if its value is not known: in a new process, until the host has passed a list with it.
        """
        session = self.sessions.get(session_id)
        return text if self.live is None else self.live.unmask(session, text)

    def reset(self, session_id: str) -> None:
        """Forget a session's state: the next call starts from the host's list as it is given. The archive keeps it all.

        This holds in every process that reads the session's state afterwards. A process that has the session in memory
        goes on with what it has; reset it there too.

        Raises:
            ArchiveError: the archive did not take it, or the session is in use for too long. Nothing is forgotten.
        """
        drive(self._reset(session_id), wait_here)

    async def areset(self, session_id: str) -> None:
        """`reset` for async hosts."""
        await adrive(self._reset(session_id), wait_on_loop)

    def _reset(self, session_id: str) -> Asking[int]:
        session = self.sessions.get(session_id)
        self.resolver.forget(session_id)
        forget = partial(self.archive.forget_state, session_id)
        return self.conductor.work_alone(session, forget, session.begin_anew)

    def get_compaction_stats(self) -> CompactionStats:
        """Return the tokens saved in all, the number of operations, and what each kind saved.

        An operation is a pass that shortened a session, however many stages took part, or a tool result that was moved to
        the archive. What a pass saved is counted once, not again in each call that repeats its result. Also how many
        tokens were sent in all, and how many of them repeated the beginning of the request before, so that a provider's
        prompt cache could serve them.
        """
        return self.services.describe(self.sessions)

    def get_system_prompt_segment(self, tool_prefix: str = "") -> str:
        """Return text for the agent's system prompt: what compact does to its context, and how to get things back.

        `tool_prefix` is what stands before the recall tools' names.
        """
        return prompt_segment(tool_prefix)

    def recall_tools(self, session_id: str | None = None) -> dict[str, RecallTool]:
        """Return read_file, grep, ls and search over what left this session's context, by name.

        Without an id they read the session of the running call: the newest that an integration, a wrapped client or
        `manage_context` made in this task or in the main thread. If there is none, they say so and read nothing; so they
        do in a worker thread, whose last call may be somebody else's.

        Raises:
            ConfigError: the id is not a non-empty string.
        """
        if session_id is None:
            tools = recall_tools(self.archive, "")
            return follow_running(tools, lambda: self.resolver.running, self.recall_tools)
        name = check_session_id(session_id)
        return note_answers(recall_tools(self.archive, name), lambda: self.sessions.get(name).written)

    recovery_tools = recall_tools
    """The former name of `recall_tools`."""

    def wrap(self, client: C, session_id: str | None = None) -> C:
        """Return an OpenAI or Anthropic client that is used as before, whose requests fit and survive overflow.

        Its calls also take `session_id=`. Without an id, conversations are told apart by their contents, and none of
        them is continued after a restart.

        Raises:
            ConfigError: it is not such a client, or the id is not a non-empty string.
        """
        return wrap_client(self, client, None if session_id is None else check_session_id(session_id))

    def warn(self, session_id: str, code: WarningCode, message: str) -> None:
        """Record a warning the first time that it applies to a session. For integrations."""
        warning = Warned(code=code, severity="low", message=message)
        self.services.warn_once(self.sessions.get(session_id), warning)

    @property
    def archive(self) -> Archive:
        """The archive of everything that left a context."""
        return self.services.archive

    def last_outcome(self, session_id: str) -> Outcome | None:
        """What the newest pass over a session did; None before the first, and if the session is not in memory."""
        return self.sessions.get(session_id).outcome

    def last_request(self, session_id: str) -> list[Any] | None:
        """The messages that the newest reply of `call` answers. A host that keeps them sends less the next time.

        None before the first call, and if the session is not in memory (`policy.sessions_in_memory`).
        """
        found: list[Any] | None = self.sessions.get(session_id).request
        return found

    def flush(self) -> None:
        """Wait until every event is in the archive."""
        self.services.journal.flush()

    def close(self) -> None:
        """Write what waits and end what runs in the background. May be called twice."""
        self.services.close()

    async def aclose(self) -> None:
        """`close` for async hosts."""
        await asyncio.to_thread(self.close)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def meter(self, model: str | None = None) -> Meter:
        """The meter that counts for a model; None: for the configured one."""
        return self.models.meter(model)

    # --- one call

    def _session(self, session_id: str | None, call_id: str) -> Session:
        """A tool result without an id belongs where the model asked for it, else to the manager's default session."""
        if session_id is None:
            session_id = self.resolver.find_asked(call_id) or DEFAULT_SESSION
        return self.sessions.get(session_id)

    def _run(
        self, session_id: str, call: Call, model: str | None = None, summarizer: Summarizer | None = None
    ) -> list[Any]:
        session = self.sessions.get(session_id)
        if self.live is not None:
            call = self.live.mask_call(session, call)
        run = Run(session, call, partial(self._lines.line, model=model), summarizer=summarizer)
        found: list[Any] = drive(self.conductor.conduct(run), wait_here)
        return self._hand_over(session, call, found)

    async def _arun(
        self, session_id: str, call: Call, model: str | None = None, summarizer: Summarizer | None = None
    ) -> list[Any]:
        session, loop = self.sessions.get(session_id), asyncio.get_running_loop()
        if self.live is not None:
            call = await asyncio.to_thread(self.live.mask_call, session, call)
        run = Run(session, call, partial(self._lines.line, model=model), loop=loop, summarizer=summarizer)
        found: list[Any] = await adrive(self.conductor.conduct(run), wait_on_loop)
        return self._hand_over(session, call, found)

    def _hand_over(self, session: Session, call: Call, found: list[Any]) -> list[Any]:
        """Return the messages in the host's own form."""
        if call.messages and type(call.messages[0]) is not dict:
            found = in_form_of(call.messages[0], found)
        return found if self.live is None else self.live.note_sent(session, found)


def _summarizer_of(agent: Any) -> Summarizer | None:
    return None if agent is None else agent_summarizer(agent)
