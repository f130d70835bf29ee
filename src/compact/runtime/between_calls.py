"""What a host does with a session between two model calls: tool results, counts, masks, reading back, forgetting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import to_thread
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from compact.archive import Archive
from compact.engine.effects import Asking, adrive, drive
from compact.engine.outcome import Outcome
from compact.engine.stages.offload import Offloaded
from compact.events import Warned, WarningCode
from compact.runtime.conductor import Conductor
from compact.runtime.lanes import wait_here, wait_on_loop
from compact.runtime.live_masking import LiveMasking
from compact.runtime.parts import check_count
from compact.runtime.run import is_light
from compact.runtime.services import Services
from compact.runtime.session_cache import Prepared, Session, check_session_id
from compact.runtime.tenants import Tenant, Tenants

if TYPE_CHECKING:
    from compact.archive.recall import RecallTool
    from compact.summaries.ledger import Entry, Kind

R = TypeVar("R")


class BetweenCalls(ABC):
    """The operations of a manager that send nothing to a model.

    `tenant` is whose session it is. Without it, that is the manager's own tenant: `tenant` in the configuration, or the
    one of `for_tenant`.
    """

    services: Services
    conductor: Conductor
    live: LiveMasking | None
    _tenants: Tenants
    _tenant: Tenant

    # --- tool results

    def process_tool_result(
        self,
        result: R,
        tool_name: str,
        tool_call_id: str,
        session_id: str | None = None,
        tenant: str | None = None,
    ) -> R | str:
        """Return a tool's result as it should go into the context: itself, or a preview with the path of the whole.

        If the archive cannot take it, or not within `archive.timeout_s` and a moment, it stays as it is. Without an id it
        is stored for the session of its call (see `recall_tools`), else in a default session, from where the conversation
        takes it whose list shows it first.
        """
        session = self._session_of_call(session_id, tool_call_id, tenant)
        asking = session.tenant.tool_results.process(session, result, tool_name, tool_call_id)
        shown: R | str = drive(asking, wait_here)
        return shown

    async def aprocess_tool_result(
        self,
        result: R,
        tool_name: str,
        tool_call_id: str,
        session_id: str | None = None,
        tenant: str | None = None,
    ) -> R | str:
        """`process_tool_result` for async hosts. Disk and heavy work happen off the event loop."""
        session = self._session_of_call(session_id, tool_call_id, tenant)
        here = is_light(result)
        asking = session.tenant.tool_results.process(session, result, tool_name, tool_call_id, here=here)
        return await adrive(asking, wait_on_loop)

    def offload(
        self,
        result: str,
        tool_name: str,
        tool_call_id: str,
        session_id: str | None = None,
        tenant: str | None = None,
    ) -> Offloaded:
        """Store a tool's result in the archive, whatever its size.

        Raises:
            ArchiveError: the archive did not take it.
        """
        session = self._session_of_call(session_id, tool_call_id, tenant)
        return drive(session.tenant.tool_results.offload(session, result, tool_name, tool_call_id), wait_here)

    # --- what a provider said, and what it may see

    def observe(
        self,
        session_id: str,
        *,
        input_tokens: int,
        cached_tokens: int | None = None,
        cached_for_an_hour: bool = False,
        request: Prepared | None = None,
        tenant: str | None = None,
    ) -> None:
        """Take the provider's own count of a request. The next estimates are this count and ours of what came since.

        `request` is what `prepared` returned when it was sent; without it, the count is that of the last preflight's request.
        A smaller count than ours only takes back the margin of a model without a public tokenizer: an exact count is never
        relaxed. It holds for the session and the model of that request; how much requests grew teaches other sessions of that
        model, too. The count of a request from before the newest compaction is ignored, and 0 is. Do not pass the counts of
        aborted calls.

        `cached_tokens` of them were served by the provider's prompt cache. `cached_for_an_hour` says that the others were
        put there for an hour. From these, `policy.economy` learns what the cache holds.

        Raises:
            ConfigError: it is not a number of tokens.
        """
        session = self._session(session_id, tenant)
        counted = check_count("input_tokens", input_tokens)
        cached = None if cached_tokens is None else check_count("cached_tokens", cached_tokens)
        session.cache.observe(cached, for_an_hour=cached_for_an_hour)
        request = request or session.prepared
        if request is not None:
            self.services.observe(session, request, counted)

    def prepared(self, session_id: str, *, tenant: str | None = None) -> Prepared | None:
        """The request that the session's last call prepared; None before the first.

        Keep it where replies may come late or out of order, and pass it to `observe` with the usage of its reply.
        """
        return self._session(session_id, tenant).prepared

    def mask(self, session_id: str, value: R, *, schemas: bool = False, tenant: str | None = None) -> R:
        """Mask what is sent beside the list: a system prompt, or the schemas of tools. Without live masking: nothing.

        Raises:
            MaskingError: it could not be masked.
        """
        session = self._session(session_id, tenant)
        return value if self.live is None else self.live.mask_beside(session, value, is_schema=schemas)

    def unmask(self, session_id: str, text: R, *, tenant: str | None = None) -> R:
        """Turn the placeholders of live masking back, in a text, or in data such as the arguments of a tool call.

        A placeholder stays if its value is not known: in a new process, until the host has passed a list with it.
        """
        session = self._session(session_id, tenant)
        return text if self.live is None else self.live.unmask(session, text)

    # --- reading back and forgetting

    @property
    def archive(self) -> Archive:
        """The archive of everything that left a context, as the manager's tenant sees it."""
        return self.services.archive_of(self._tenant.name)

    def recall_tools(
        self, session_id: str | None = None, *, tenant: str | None = None
    ) -> dict[str, RecallTool]:
        """Return read_file, grep, ls and search over what left this session's context, by name.

        Without an id they read the session of the running call, the only one that had calls in this task or in the main
        thread. If there is none, or several, they say so and read nothing; so they do in a pool's worker thread.

        Raises:
            ConfigError: the id is not a non-empty string.
        """
        from compact.archive.recall import recall_tools
        from compact.runtime.recalling import follow_running, note_answers

        found = self._tenant_called(tenant)
        archive = self.services.archive_of(found.name)
        if session_id is None:
            tools_of = partial(self.recall_tools, tenant=tenant)
            return follow_running(recall_tools(archive, ""), lambda: found.resolver.certain, tools_of)
        name = check_session_id(session_id)
        return note_answers(recall_tools(archive, name), lambda: self._session(name, tenant).written)

    recovery_tools = recall_tools
    """The former name of `recall_tools`."""

    def reset(self, session_id: str, *, tenant: str | None = None) -> None:
        """Forget a session's state: the next call starts from the host's list as it is given. The archive keeps it all.

        This holds in every process that reads the session's state afterwards. A process that has the session in memory
        goes on with what it has; reset it there too.

        Raises:
            ArchiveError: the archive did not take it, or the session is in use for too long. Nothing is forgotten.
        """
        drive(self._reset(session_id, tenant), wait_here)

    async def areset(self, session_id: str, *, tenant: str | None = None) -> None:
        """`reset` for async hosts."""
        await adrive(self._reset(session_id, tenant), wait_on_loop)

    def _reset(self, session_id: str, tenant: str | None) -> Asking[int]:
        session = self._session(session_id, tenant)
        session.tenant.resolver.forget(session_id)
        forget = partial(self.services.archive_of(session.tenant.name).forget_state, session_id)
        return self.conductor.work_alone(session, forget, session.begin_anew)

    # --- what people said, and what stands of it

    def pin(
        self,
        session_id: str,
        text: str,
        kind: Kind = "rule",
        *,
        source: Literal["host", "model"] = "host",
        tenant: str | None = None,
    ) -> Entry:
        """Add an entry to the session's ledger and return it. It stands in the context from the next step on.

        It is durable on return, with secrets masked, and edits nothing that was sent. With `source="model"` only words are
        accepted that a person says in a message. Pinning what stands already changes nothing. What takes more tokens than
        the ledger has room for is refused.

        Raises:
            ConfigError: an argument is wrong, the words are too many, or a model's words are nobody's.
            ArchiveError: the archive did not take it.
        """
        from compact.runtime.pinning import pin  # reads people's words, which most processes leave to a pass

        return pin(self.services, self._session(session_id, tenant), text, kind, source)

    async def apin(
        self,
        session_id: str,
        text: str,
        kind: Kind = "rule",
        *,
        source: Literal["host", "model"] = "host",
        tenant: str | None = None,
    ) -> Entry:
        """`pin` for async hosts."""
        return await to_thread(self.pin, session_id, text, kind, source=source, tenant=tenant)

    def unpin(self, session_id: str, entry_id: str, *, tenant: str | None = None) -> None:
        """Withdraw an entry of the session's ledger, whoever added it. It leaves the context with the next step.

        What does not stand any more stays as it is: a second call changes nothing.

        Raises:
            ConfigError: the session has no such entry.
            ArchiveError: the archive did not take it.
        """
        from compact.runtime.pinning import unpin

        unpin(self.services, self._session(session_id, tenant), entry_id)

    async def aunpin(self, session_id: str, entry_id: str, *, tenant: str | None = None) -> None:
        """`unpin` for async hosts."""
        await to_thread(self.unpin, session_id, entry_id, tenant=tenant)

    def ledger(self, session_id: str, *, tenant: str | None = None) -> list[Entry]:
        """Return what people said in the session and what stands of it, in the order of time.

        These are the entries of the newest step, what was said since in the last list that this manager saw, and the pins.

        Raises:
            ArchiveError: the archive does not answer.
        """
        from compact.runtime.pinning import entries_of

        return entries_of(self.services, self._session(session_id, tenant))

    async def aledger(self, session_id: str, *, tenant: str | None = None) -> list[Entry]:
        """`ledger` for async hosts."""
        return await to_thread(self.ledger, session_id, tenant=tenant)

    def last_outcome(self, session_id: str, *, tenant: str | None = None) -> Outcome | None:
        """What the newest pass over a session did; None before the first, and if the session is not in memory."""
        return self._session(session_id, tenant).outcome

    def last_request(self, session_id: str, *, tenant: str | None = None) -> list[Any] | None:
        """The messages that the newest reply of `call` answers. A host that keeps them sends less the next time.

        None before the first call, and if the session is not in memory (`policy.sessions_in_memory`).
        """
        found: list[Any] | None = self._session(session_id, tenant).request
        return found

    def warn(self, session_id: str, code: WarningCode, message: str, *, tenant: str | None = None) -> None:
        """Record a warning the first time that it applies to a session. For integrations."""
        warning = Warned(code=code, severity="low", message=message)
        self.services.warn_once(self._session(session_id, tenant), warning)

    # --- whose it is

    @abstractmethod
    def _session(self, session_id: str, tenant: str | None) -> Session:
        """The session of a call that names this tenant, or none."""

    def _session_of_call(self, session_id: str | None, call_id: str, tenant: str | None) -> Session:
        """A tool result without an id belongs where the model asked for it, else to a default session."""
        if session_id is None:
            session_id = self._tenant_called(tenant).resolver.place_result(call_id)
        return self._session(session_id, tenant)

    def _tenant_called(self, tenant: str | None) -> Tenant:
        return self._tenant if tenant is None else self._tenants.get(tenant)
