"""Tool results that a host hands in one by one, before they enter a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compact.engine.context import Desk
from compact.engine.effects import Asking
from compact.engine.stages.offload import Offloaded, is_large, store
from compact.errors import ArchiveError
from compact.events import Failure
from compact.messages import to_json
from compact.messages.dialects import get
from compact.runtime.conductor import Conductor, Lines
from compact.runtime.live_masking import LiveMasking
from compact.runtime.session_cache import Session

_SPOOLING_S = 1.0
"""An object store that used up its time leaves this much for writing to the spool."""


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Stores the tool results of one manager's sessions. Each method yields what it waits for."""

    lines: Lines
    conductor: Conductor
    live: LiveMasking | None = None

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
            return (yield from store(text, tool_name, tool_call_id, desk)).pointer

        try:
            return (yield from self.conductor.store(session, asking(), self._limit_s, here=here))
        except ArchiveError as problem:
            failure = Failure(error_type=problem.code, message=str(problem), fallback="none")
            self.lines.services.emit(session, failure)
            return result

    def offload(self, session: Session, result: str, tool_name: str, tool_call_id: str) -> Asking[Offloaded]:
        """Store a result, whatever its size. Raises ArchiveError."""
        text = result if self.live is None else self.live.mask_result(session, result)
        asking = store(text, tool_name, tool_call_id, self._desk(session))
        return (yield from self.conductor.store(session, asking, self._limit_s))

    def _desk(self, session: Session) -> Desk:
        return self.lines.desk(session, get("chat"), session.tenant.models.meter(None))

    @property
    def _limit_s(self) -> float:
        return self.lines.config.archive.timeout_s + _SPOOLING_S
