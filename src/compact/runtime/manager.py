"""`CompactManager`: the face of the library, and its only mutable state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from compact.archive import Archive, ArchiveRedactor, Backend
from compact.archive.keys import check_tenant
from compact.config import ArchiveConfig, CompactConfig, SettingArguments
from compact.engine.call import Call
from compact.engine.context import Stage
from compact.engine.effects import adrive, drive
from compact.messages.dialects.objects import in_form_of
from compact.runtime.between_calls import BetweenCalls
from compact.runtime.conductor import Conductor, Lines, make_call
from compact.runtime.guidance import prompt_segment
from compact.runtime.lanes import wait_here, wait_on_loop
from compact.runtime.live_masking import LiveMasking
from compact.runtime.model_rules import Models
from compact.runtime.native_asking import SendNative, sender_of
from compact.runtime.overflow.calling import ModelCalls
from compact.runtime.parts import check_parts, join_settings
from compact.runtime.resolver import SessionResolver
from compact.runtime.run import Run
from compact.runtime.services import CompactionStats, Services
from compact.runtime.session_cache import Session, SessionCache, check_session_id
from compact.runtime.tenants import Tenants
from compact.runtime.tool_results import ToolResults
from compact.runtime.wrapping import wrap_client
from compact.summaries.request import Summarizer
from compact.tokens import Estimate, Meter
from compact.tracing.exporters import ExporterLike

M = TypeVar("M")
R = TypeVar("R")
C = TypeVar("C")


class CompactManager(BetweenCalls, AbstractContextManager["CompactManager"]):
    """Keeps sessions inside their model's window. Safe to share between threads.

    Settings are a `CompactConfig`, keywords with the same names and nesting, or both; then keywords win.

    `summarizer`, `archive`, `exporters`, `redactor` and `clock` replace the parts that the settings describe. An object
    with `write_file(path, content)` is accepted in place of an archive, and a mapping there is settings. `stages`
    replaces the ladder; ours is `compact.DEFAULT_STAGES`. `count_tokens(text)` replaces the tokenizer: it returns a
    text's tokens for the model. `new_id()` replaces the 128 random bits in the names of sessions without an id.

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
        new_id: Callable[[], str] | None = None,
        **settings: Unpack[SettingArguments],
    ) -> None:
        self.config, part = join_settings(config, archive, settings)
        parts: Any = {"summarizer": summarizer, "archive": part, "exporters": exporters}
        parts |= {"redactor": redactor, "clock": clock}
        check_parts(**parts, new_id=new_id)
        self.services = Services(self.config, **parts)
        """What serves the engine. Tests wrap its `serve` to inject faults."""
        self.live: LiveMasking | None = None
        """Masks what goes to the model; None while `redaction.live` is off."""
        if self.config.redaction.live != "off":
            self.live = LiveMasking(self.config, self.services, redactor)
        policy = self.config.policy
        models = Models(self.config, count_tokens)
        self._tenants = Tenants(
            self.config, self.services, models, self._results_of, warn=self.warn, new_id=new_id
        )
        self._is_view = False
        self.sessions = SessionCache(policy.sessions_in_memory, self.services.forget, self._tenants.get)
        """The sessions in memory."""
        hosts = None if stages is None else _check(stages)
        self.conductor = Conductor(
            self.services,
            self.sessions,
            timeout_s=policy.timeout_s,
            rescue_timeout_s=policy.rescue_timeout_s,
            archive_rest_s=self.config.archive.spool_retry_s,
            may_ask=hosts is None or _may_ask(hosts),
        )
        self._lines = Lines(self.config, self.services, hosts)
        self._model_calls = ModelCalls(self.services, self.config.recovery)
        self._tenant = self._tenants.get(self.config.tenant)
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
        tenant: str | None = None,
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
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        return self._run(self._session(session_id, tenant), call, model)

    async def apreflight(
        self,
        session_id: str,
        messages: Sequence[M],
        tools: Any = None,
        *,
        system: Any = None,
        dialect: str | None = None,
        model: str | None = None,
        tenant: str | None = None,
    ) -> list[M]:
        """`preflight` for async hosts. Disk and heavy work happen off the event loop."""
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        return await self._arun(self._session(session_id, tenant), call, model)

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
        tenant: str | None = None,
        summarization_agent: Any = None,
    ) -> list[M]:
        """Fold everything that may be folded, whatever the size. Raises what `preflight` raises.

        `summarization_agent` writes the summary of this call.
        """
        call = make_call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect)
        return self._run(self._session(session_id, tenant), call, model, _summarizer_of(summarization_agent))

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
        tenant: str | None = None,
        summarization_agent: Any = None,
    ) -> list[M]:
        """`manual_compact` for async hosts."""
        call = make_call(messages, tools=tools, system=system, manual=True, note=note, dialect=dialect)
        session = self._session(session_id, tenant)
        return await self._arun(session, call, model, _summarizer_of(summarization_agent))

    async def manage_context(
        self,
        messages: Sequence[M],
        model: str | None = None,
        summarization_agent: Any = None,
        *,
        session_id: str | None = None,
        tenant: str | None = None,
    ) -> list[M]:
        """`apreflight` with the model of this call and an agent that writes the summary.

        Without an id, conversations are told apart by their contents, and none of them is continued after a restart.
        """
        owner = self._tenant_called(tenant)
        name = owner.tool_results.begin_call(messages, session_id)
        session, call = self._session(name, tenant), make_call(messages)
        found = await self._arun(session, call, model, _summarizer_of(summarization_agent))
        owner.resolver.note_sent(name, messages, found)
        return found

    def reduce(
        self,
        session_id: str,
        messages: Sequence[M],
        *,
        model: str | None = None,
        tenant: str | None = None,
    ) -> list[M]:
        """`preflight` with the reversible stages only: no summary, nothing cut, however large the rest is."""
        return self._run(self._session(session_id, tenant), make_call(messages, reversible=True), model)

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
        tenant: str | None = None,
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
        session = self._session(session_id, tenant)
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        calling = self._model_calls.begin(session, call, model, model_call)
        native = sender_of(model_call, dialect)
        reply: R = calling.run(lambda call: self._run(session, call, model, native=native))
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
        tenant: str | None = None,
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
        tenant: str | None = None,
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
        tenant: str | None = None,
    ) -> Any:
        """`call` for async hosts. `model_call` may be a coroutine function; any other runs in a thread."""
        session = self._session(session_id, tenant)
        call = make_call(messages, tools=tools, system=system, dialect=dialect)
        calling = self._model_calls.begin(session, call, model, model_call)
        native = sender_of(model_call, dialect)
        return await calling.arun(lambda call: self._arun(session, call, model, native=native))

    # --- counts

    def estimate(
        self,
        messages: Sequence[Any],
        tools: Any = None,
        *,
        system: Any = None,
        model: str | None = None,
        tenant: str | None = None,
    ) -> Estimate:
        """Return what a request costs: `.total .system .developer .tools_schema .messages .usage_pct`.

        Raises:
            MessageError: an entry is not a message; names its index.
        """
        meter, window = self.meter(model), self._tenant_called(tenant).models.window(model).tokens
        return meter.estimate(messages, tools, system=system, max_tokens=window)

    def get_compaction_stats(self, *, tenant: str | None = None) -> CompactionStats:
        """Return the tokens saved in all, the number of operations, and what each kind saved.

        An operation is a pass that shortened a session, however many stages took part, or a tool result that was moved to
        the archive. What a pass saved is counted once, not again in each call that repeats its result. Also how many
        tokens were sent in all, and how many of them repeated the beginning of the request before, so that a provider's
        prompt cache could serve them.

        With a tenant, and on `for_tenant`, they are those of this tenant since it was last forgotten; exporters serve all
        tenants, so they are left out.
        """
        if tenant is None and not self._is_view:
            return self.services.describe(self.services.statistics)
        return {**self.services.describe(self._tenant_called(tenant).statistics), "exporters": {}}

    def get_system_prompt_segment(self, tool_prefix: str = "") -> str:
        """Return text for the agent's system prompt: what compact does to its context, and how to get things back.

        `tool_prefix` is what stands before the recall tools' names.
        """
        return prompt_segment(tool_prefix)

    # --- tenants and clients

    def for_tenant(self, tenant: str) -> CompactManager:
        """Return this manager as one tenant sees it: every call without `tenant=` is this tenant's.

        Pass it to an integration that serves one tenant. It shares the settings, the threads and the caches of this
        manager, and costs next to nothing. Closing it writes what waits and closes nothing.

        Raises:
            ConfigError: the name is not a non-empty string.
        """
        view = copy(self)
        view._tenant, view._is_view = self._tenants.get(check_tenant(tenant)), True
        return view

    @property
    def tenant(self) -> str | None:
        """Whose calls are those without `tenant=`; None: nobody's in particular."""
        return self._tenant.name

    def wrap(self, client: C, session_id: str | None = None, tenant: str | None = None) -> C:
        """Return a client that is used as before, whose requests fit and survive overflow.

        It is a client of OpenAI, Anthropic or google-genai, or boto3's for bedrock-runtime. Its calls also take
        `session_id=`. Without an id, conversations are told apart by their contents, and none of them is continued
        after a restart.

        Raises:
            ConfigError: it is not such a client, or the id is not a non-empty string.
        """
        owner = self if tenant is None else self.for_tenant(tenant)
        return wrap_client(owner, client, None if session_id is None else check_session_id(session_id))

    def flush(self) -> None:
        """Wait until every event is in the archive."""
        self.services.journal.flush()

    def close(self) -> None:
        """Write what waits and end what runs in the background. May be called twice."""
        if self._is_view:
            self.flush()
        else:
            self.conductor.backgrounds.close()
            self.services.close()

    async def aclose(self) -> None:
        """`close` for async hosts."""
        await asyncio.to_thread(self.close)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def models(self) -> Models:
        """Meters, windows and rules by model."""
        return self._tenant.models

    @property
    def tool_results(self) -> ToolResults:
        """Tool results that hosts hand in one by one."""
        return self._tenant.tool_results

    @property
    def resolver(self) -> SessionResolver:
        """Names the sessions of calls that have no explicit id. Integrations share it."""
        return self._tenant.resolver

    def meter(self, model: str | None = None) -> Meter:
        """The meter that counts for a model; None: for the configured one."""
        return self.models.meter(model)

    # --- one call

    def _results_of(self, tenant: str | None, resolver: SessionResolver) -> ToolResults:
        return ToolResults(self._lines, self.conductor, resolver, self.live, tenant)

    def _session(self, session_id: str, tenant: str | None) -> Session:
        return self.sessions.get(session_id, self._tenant.name if tenant is None else tenant)

    def _run(
        self,
        session: Session,
        call: Call,
        model: str | None = None,
        summarizer: Summarizer | None = None,
        native: SendNative | None = None,
    ) -> list[Any]:
        results = session.tenant.tool_results
        if results.held:
            results.hand_over(session.id, call.messages)
        if self.live is not None:
            call = self.live.mask_call(session, call)
        line_for = partial(self._lines.line, model=model)
        run = Run(session, call, line_for, summarizer=summarizer, native=native)
        found: list[Any] = drive(self.conductor.conduct(run), wait_here)
        return self._hand_over(session, call, found)

    async def _arun(
        self,
        session: Session,
        call: Call,
        model: str | None = None,
        summarizer: Summarizer | None = None,
        native: SendNative | None = None,
    ) -> list[Any]:
        loop, results = asyncio.get_running_loop(), session.tenant.tool_results
        if results.held:
            await asyncio.to_thread(results.hand_over, session.id, call.messages)
        if self.live is not None:
            call = await asyncio.to_thread(self.live.mask_call, session, call)
        line_for = partial(self._lines.line, model=model)
        run = Run(session, call, line_for, loop=loop, summarizer=summarizer, native=native)
        found: list[Any] = await adrive(self.conductor.conduct(run), wait_on_loop)
        return self._hand_over(session, call, found)

    def _hand_over(self, session: Session, call: Call, found: list[Any]) -> list[Any]:
        """Return the messages in the host's own form."""
        if call.messages and type(call.messages[0]) is not dict:
            found = in_form_of(call.messages[0], found)
        return found if self.live is None else self.live.note_sent(session, found)


def _summarizer_of(agent: Any) -> Summarizer | None:
    if agent is None:
        return None
    from compact.summaries.agent import agent_summarizer

    return agent_summarizer(agent)


# The ladder is loaded by the first pass, unless a host brings its own stages.


def _check(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    from compact.engine.ladder import check_stages

    return check_stages(stages)


def _may_ask(stages: Sequence[Stage]) -> bool:
    from compact.engine.ladder import may_ask

    return may_ask(stages)
