"""What goes out for a conversation: the client's own bytes, unless a step has to be applied, a pass is due, a huge result
arrives for an agent that can read the archive, or secrets are masked.

Work on a request that fits as it is gets `proxy.deadline_ms`. Then the request goes out as the last step left it, and the work
goes on: what it commits is applied to the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.archive.recall import offered_prefix
from compact.engine.state import resolve
from compact.errors import CompactError, MaskingError
from compact.integrations.nested_requests import list_tools
from compact.integrations.offering import has_pointers
from compact.integrations.proxy.conversations import Conversation
from compact.integrations.proxy.measuring import Metrics
from compact.integrations.proxy.written import say_to
from compact.messages.cache_marks import make_room
from compact.runtime.manager import CompactManager
from compact.runtime.session_cache import Session

log = logging.getLogger("compact")

_NOBODY = "proxy"
"""Whose masks those requests get that belong to no session."""
_NAMED = 4096
_LOOKED_UP = 8
"""A list of fewer messages may be new in this process, and then the archive is asked about it, in a thread."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What goes out for a conversation."""

    conversation: Conversation
    session: str | None = None
    """None: it is not known, so that nothing can be compacted."""
    items: Sequence[Any] = ()
    """The messages as the manager knows them."""
    edited: bool = False
    """Whether they are sent in the place of the client's own."""
    clean: Sequence[Any] | None = None
    """The client's messages after repairs, if the provider should call them illegal. None: nothing was wrong."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields that were masked."""
    tokens: int = 0
    """What it costs by our count; 0 if it was not counted."""

    @property
    def is_changed(self) -> bool:
        """Whether something else is sent than the client's own bytes."""
        return self.edited or bool(self.fields)

    def content(self) -> bytes | None:
        """The body to send; None: as the client sent it."""
        if not self.is_changed:
            return None
        conversation = self.conversation
        items = None
        if self.edited:
            tools = conversation.tools
            said = say_to(self.items, conversation.items, tools, has_reader=_prefix_of(tools) is not None)
            items = make_room(said, conversation.body.get("cache_control"), conversation.system, tools)
        return conversation.body.with_changes(items, self.fields).encode("utf-8", "surrogatepass")


class Editor:
    """Decides what goes out, with one manager."""

    def __init__(self, manager: CompactManager, metrics: Metrics, deadline_s: float) -> None:
        self.manager = manager
        self._metrics = metrics
        self._deadline_s = deadline_s
        self._going_on: set[asyncio.Task[Any]] = set()
        self._named: OrderedDict[str, None] = OrderedDict()

    async def prepare(self, conversation: Conversation) -> Outgoing:
        """Return what goes out. Never fails, unless secrets are masked.

        Raises:
            MaskingError: `redaction.live` is on, and it could not be masked.
        """
        if self.manager.live is not None:
            return await self._masked(conversation)
        if conversation.given is None:
            return Outgoing(conversation)
        name: list[str] = []
        work = self._begin(self._fit(conversation, name))
        try:
            done, _ = await asyncio.wait({work}, timeout=self._deadline_s)
            if not done:
                if await self._is_small(conversation, name):
                    return self._fall_back(conversation, name, "deadline")
                await asyncio.wait({work})
            return work.result()
        except Exception as problem:
            # Whatever it is: the agent's request is worth more than our work on it.
            log.warning("compact proxy: a request goes out as it is: %s", _describe(problem))
            return self._fall_back(conversation, name, type(problem).__name__)

    def _begin(self, work: Coroutine[Any, Any, Outgoing]) -> asyncio.Task[Outgoing]:
        """Start work that goes on when nobody waits for it any more."""
        task = asyncio.ensure_future(work)
        self._going_on.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._going_on.discard(task)
        if not task.cancelled():
            task.exception()  # it was met where it was waited for, or nobody waits

    async def finish(self, longest_s: float) -> None:
        """Let the work end that goes on, but not longer than this."""
        if self._going_on:
            await asyncio.wait(self._going_on, timeout=longest_s)

    # --- the work

    async def _fit(self, conversation: Conversation, names: list[str]) -> Outgoing:
        manager, shape = self.manager, conversation.endpoint.shape
        name = await self.name(conversation)
        session = manager.sessions.get(name, manager.tenant)
        session.reads_archive = _prefix_of(conversation.tools) is not None
        names.append(name)
        if conversation.endpoint.counts:
            return self._as_last_step(conversation, session)
        given = conversation.items
        kept = await manager.apreflight(
            name,
            given,
            conversation.tools,
            system=conversation.system,
            dialect=shape.dialect,
            model=conversation.model,
        )
        tokens = 0 if session.prepared is None else session.prepared.ours
        if _is_same(kept, given):
            return Outgoing(conversation, name, given, tokens=tokens)
        moved = session.reads_archive and has_pointers(kept, given)
        if session.state.standing is None and not moved:
            return Outgoing(conversation, name, given, clean=kept, tokens=tokens)
        return Outgoing(conversation, name, kept, edited=True, tokens=tokens)

    async def name(self, conversation: Conversation) -> str:
        """The session of a conversation.

        Raises:
            CompactError: the client's id is no name, or the archive does not answer.
        """
        assert conversation.given is not None

        def resolve_name() -> str:
            return self.manager.resolver.resolve(
                conversation.items,
                given=conversation.given,
                system=conversation.system,
                kind=conversation.endpoint.shape.dialect,
                frozen=True,
            )

        if len(conversation.items) >= _LOOKED_UP and conversation.given in self._named:
            return resolve_name()
        name = await asyncio.to_thread(resolve_name)
        self._named[conversation.given] = None
        while len(self._named) > _NAMED:
            self._named.popitem(last=False)
        return name

    async def _is_small(self, conversation: Conversation, names: Sequence[str]) -> bool:
        """Whether a request fits the window as it goes out without further work."""
        manager, model = self.manager, conversation.model
        items = self._fall_back(conversation, names, None).items
        estimate = await asyncio.to_thread(
            manager.estimate, items, conversation.tools, system=conversation.system, model=model
        )
        window = manager.models.window(model, names[0] if names else None).tokens
        return estimate.total <= manager.config.budget(window)

    # --- if that fails

    def _fall_back(self, conversation: Conversation, names: Sequence[str], reason: str | None) -> Outgoing:
        """The request as the last step left it, or as the client sent it."""
        if reason is not None:
            self._metrics.count("fallbacks", reason=reason)
        if not names:
            return Outgoing(conversation, None, conversation.items)
        try:
            return self._as_last_step(conversation, self.manager.sessions.get(names[0], self.manager.tenant))
        except Exception as problem:  # as above
            log.warning("compact proxy: the last step is not applied: %s", _describe(problem))
            return Outgoing(conversation, names[0], conversation.items)

    def _as_last_step(self, conversation: Conversation, session: Session) -> Outgoing:
        state, items = session.state, conversation.items
        working = resolve(state, items) if state.asked and state.step else None
        if working is None or _is_same(working.items, items):
            return Outgoing(conversation, session.id, items)
        return Outgoing(conversation, session.id, working.items, edited=True)

    # --- live masking

    async def _masked(self, conversation: Conversation) -> Outgoing:
        """What goes out with everything masked. It waits as long as it takes: nothing goes out unmasked."""
        manager, shape = self.manager, conversation.endpoint.shape
        names = {key: _name_in(conversation, key) for key in conversation.body.fields if key != "session_id"}
        given = {names[key]: conversation.body.fields[key].value for key in names}
        masked, kept = dict(given), conversation.items
        try:
            name = None if conversation.given is None else await self.name(conversation)
            if name is None or conversation.endpoint.counts:
                await asyncio.to_thread(shape.mask_only, manager, masked, name or _NOBODY)
                kept = masked.get(shape.messages) or ()
            else:
                call = await asyncio.to_thread(shape.prepare, manager, masked, name, kind=shape.dialect)
                assert call is not None
                kept = await manager.apreflight(
                    name,
                    conversation.items,
                    list_tools(call.tools) if shape.dialect == "gemini" else call.tools,
                    system=call.system,
                    dialect=shape.dialect,
                    model=conversation.model,
                )
        except MaskingError:
            raise
        except Exception as problem:
            raise MaskingError(
                f"the request could not be masked ({_describe(problem)})",
                hint="Nothing was sent",
                reason=type(problem).__name__,
            ) from problem
        changed = {key: masked[n] for key, n in names.items() if n in masked and masked[n] is not given[n]}
        said = changed.pop(shape.messages, None)
        if isinstance(said, str):  # a text in the place of a list
            return Outgoing(conversation, name, fields={**changed, shape.messages: said})
        is_edited = not _is_same(kept, conversation.items)
        return Outgoing(conversation, name, kept, edited=is_edited, fields=changed)


def _name_in(conversation: Conversation, key: str) -> str:
    """The name of a field as the shape of its endpoint knows it."""
    return (conversation.endpoint.shape.system or key) if key in conversation.endpoint.prompts else key


def _prefix_of(tools: Any) -> str | None:
    """What stands before the names of the recall tools in a request's tools; None: they are not among them."""
    return offered_prefix(tools) if isinstance(tools, list) else None


def _is_same(kept: Sequence[Any], given: Sequence[Any]) -> bool:
    return kept is given or (
        len(kept) == len(given) and all(one is other for one, other in zip(kept, given, strict=True))
    )


def _describe(problem: Exception) -> str:
    """An error without what an unknown one might quote of the request."""
    return problem.message if isinstance(problem, CompactError) else type(problem).__name__
