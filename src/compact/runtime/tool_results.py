"""Tool results that a host hands in one by one, before they enter a context."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from compact.archive import Archive
from compact.engine.context import Desk
from compact.engine.effects import Asking
from compact.engine.stages.offload import Offloaded, is_large, store
from compact.errors import ArchiveError
from compact.events import Failure
from compact.messages import to_json
from compact.messages.dialects import get
from compact.runtime.conductor import Conductor, Lines
from compact.runtime.continuing import find_continued
from compact.runtime.conversations import texts_of
from compact.runtime.live_masking import LiveMasking
from compact.runtime.resolver import SessionResolver
from compact.runtime.session_cache import Session

_SPOOLING_S = 1.0
"""An object store that used up its time leaves this much for writing to the spool."""


_KIND = "context"
_HELD = 256
"""Results that wait for their conversation."""


@dataclass(frozen=True, slots=True)
class _Held:
    session_id: str
    path: str


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Stores the tool results of one tenant's sessions. Each method yields what it waits for."""

    lines: Lines
    conductor: Conductor
    resolver: SessionResolver
    live: LiveMasking | None = None
    tenant: str | None = None
    held: dict[str, _Held] = field(default_factory=dict)
    """Results that were stored before anybody knew whose they are, by their pointers."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def process(
        self, session: Session, result: Any, tool_name: str, tool_call_id: str, *, here: bool = True
    ) -> Asking[Any]:
        """Return a result as it should go into the context. It stays as it is if the archive does not take it."""

        def asking() -> Asking[Any]:
            text = result if isinstance(result, str) else to_json(result)
            desk = self._desk(session)
            if not is_large(text, desk):
                return result
            if self.live is not None:
                text = self.live.mask_result(session, text)
            return (yield from store(text, tool_name, tool_call_id, desk))

        try:
            found = yield from self.conductor.store(session, asking(), self._limit_s, here=here)
            return found if found is result else self._note(session, found).pointer
        except ArchiveError as problem:
            failure = Failure(error_type=problem.code, message=str(problem), fallback="none")
            self.lines.services.emit(session, failure)
            return result

    def offload(self, session: Session, result: str, tool_name: str, tool_call_id: str) -> Asking[Offloaded]:
        """Store a result, whatever its size. Raises ArchiveError."""
        text = result if self.live is None else self.live.mask_result(session, result)
        asking = store(text, tool_name, tool_call_id, self._desk(session))
        return self._note(session, (yield from self.conductor.store(session, asking, self._limit_s)))

    # --- whose a result is

    def begin_call(self, messages: Sequence[Any], session_id: str | None, *, system: Any = None) -> str:
        """Return the session of a call whose reply nobody shows us. It is that of the running call from now on.

        Raises:
            ConfigError: the id is not a non-empty string.
        """
        archive = self._archive
        try:
            name = self.resolver.resolve(
                messages,
                session_id=session_id,
                system=system,
                kind=_KIND,
                fresh=lambda: self._find_default(messages) or find_continued(archive, messages),
            )
        except ArchiveError:
            name = self.resolver.fresh_name(_KIND)  # for this call; the next one asks the archive again
        self.resolver.enter(name)
        self.resolver.note_unseen(name)
        return name

    def _find_default(self, messages: Sequence[Any]) -> str | None:
        """Return the default session whose results all stand in a list that nobody has shown before; None: none does.

        Another person's result may be in a default session too, so a list takes it over only as a whole.
        """
        shown = self._shown_in(messages)
        with self.lock:
            names = {held.session_id for held in self.held.values()}
            whole = {
                name
                for name in names
                if all(pointer in shown for pointer, held in self.held.items() if held.session_id == name)
            }
        found = [name for name in whole if self.resolver.is_unclaimed(name)]
        return found[0] if len(found) == 1 else None

    def hand_over(self, session_id: str, messages: Sequence[Any]) -> None:
        """Copy the results whose pointers stand in a list to the list's session. Nobody else gets them afterwards."""
        for pointer in self._shown_in(messages):
            with self.lock:
                held = self.held.pop(pointer, None)
            if held is not None and held.session_id != session_id:
                self.resolver.share_default(held.session_id)
                with suppress(ArchiveError):  # the pointer then leads nowhere; the record stays where it is
                    self._archive.copy_output(held.session_id, held.path, session_id)

    def _note(self, session: Session, stored: Offloaded) -> Offloaded:
        """Remember a result until a list shows whose it is."""
        self.resolver.note_stored(session.id, stored.path)
        if self.resolver.is_default(session.id):
            with self.lock:
                self.held[stored.pointer] = _Held(session.id, stored.path)
                dropped = [self.held.pop(next(iter(self.held))) for _ in range(len(self.held) - _HELD)]
            for each in dropped:
                self.resolver.share_default(each.session_id)
        return stored

    def _shown_in(self, messages: Sequence[Any]) -> list[str]:
        """The pointers of held results that stand in a list, each as the whole of a text or inside one."""
        with self.lock:
            waiting = dict(self.held)
        if not waiting:
            return []
        texts = list(texts_of(messages))
        return [pointer for pointer in waiting if any(pointer in text for text in texts)]

    def _desk(self, session: Session) -> Desk:
        return self.lines.desk(session, get("chat"), session.tenant.models.meter(None))

    @property
    def _archive(self) -> Archive:
        return self.lines.services.archive_of(self.tenant)

    @property
    def _limit_s(self) -> float:
        return self.lines.config.archive.timeout_s + _SPOOLING_S
