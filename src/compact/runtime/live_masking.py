"""Live masking for a manager's calls: what goes to a model is masked, or an error is raised.

It comes before everything else, so that counts, summaries, state and archive all see the masked messages.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from compact.archive import ArchiveRedactor
from compact.config import CompactConfig
from compact.engine.call import Call
from compact.errors import ArchiveError, CompactError, MaskingError
from compact.events import Failure
from compact.redaction import Redactor, rules_from_config
from compact.runtime.masked_session import MaskedSession
from compact.runtime.services import Services
from compact.runtime.session_cache import Session

T = TypeVar("T")

_MAX_RACES = 3


class LiveMasking:
    """Masks the calls of one manager, as `redaction.live` says."""

    def __init__(self, config: CompactConfig, services: Services, redactor: ArchiveRedactor | None) -> None:
        self._redactor = _make_redactor(config, redactor)
        self._services = services
        self._making = threading.Lock()
        self._timeout_s = config.policy.timeout_s
        self._rest_s = config.archive.spool_retry_s

    def mask_call(self, session: Session, call: Call) -> Call:
        """Return a call whose messages are masked copies.

        Raises:
            MaskingError: they could not be masked, or what the host sends beside them holds something to mask.
        """
        deadline = time.monotonic() + self._timeout_s

        def mask(masked: MaskedSession) -> Call:
            _require_masked(masked, call.system, "system", is_schema=False)
            _require_masked(masked, call.tools, "tools", is_schema=True)
            messages = masked.take(call.messages, deadline)
            # `given` is a copy too: the host may go on writing to its own list, and that is not masked.
            return replace(call, messages=messages, given=list(messages))

        return self._mask(session, mask)

    def mask_beside(self, session: Session, value: T, *, is_schema: bool) -> T:
        """Return a masked copy of what is sent beside the list: a system prompt, or the schemas of tools.

        Raises:
            MaskingError: it could not be masked.
        """
        found: T = self._mask(session, lambda masked: masked.masks.mask_beside(value, is_schema=is_schema))
        return found

    def mask_result(self, session: Session, text: str) -> str:
        """Return a masked tool result, as it goes into the archive.

        Raises:
            MaskingError: it could not be masked.
        """
        return self._mask(session, lambda masked: masked.masks.mask_result(text))

    def note_sent(self, session: Session, messages: list[Any]) -> list[Any]:
        """Remember what a call returns to its host. Never waits: it may run on an event loop."""
        self._session(session).sent(messages)
        return messages

    def unmask(self, session: Session, value: T) -> T:
        """Turn the placeholders in a text or in data back into their values, as far as these are known. Never waits."""
        found: T = self._session(session).masks.placeholders.restore_value(value)
        return found

    def _mask(self, session: Session, mask: Callable[[MaskedSession], T]) -> T:
        try:
            for _ in range(_MAX_RACES):
                masked = self._session(session)
                with masked.lock:
                    self._load(session, masked)
                    found = mask(masked)
                    if self._save(session, masked):
                        return found
                    session.masked = (
                        None  # another process gave out the same numbers: begin again with its notes
                    )
            return found
        except CompactError:
            raise
        except Exception as problem:
            # Its text may quote what was to be masked, so only its kind is told.
            raise MaskingError(
                f"live masking failed: {type(problem).__name__}",
                hint="Nothing was sent; the error is in a redaction rule or in its validator",
                reason=type(problem).__name__,
            ) from None

    def _session(self, session: Session) -> MaskedSession:
        with self._making:
            if session.masked is None:
                session.masked = MaskedSession(self._redactor)
            return session.masked

    # --- the archive, so that another process gives out the same placeholders

    def _load(self, session: Session, masked: MaskedSession) -> None:
        if masked.is_loaded or time.monotonic() < masked.rests_until:
            return
        try:
            notes = self._services.archive_of(session.tenant.name).placeholders(session.id)
        except ArchiveError as problem:
            self._rest(session, masked, problem)
        else:
            masked.adopt(notes, os.urandom(32).hex())

    def _save(self, session: Session, masked: MaskedSession) -> bool:
        """Whether the placeholders of this call are ours. False: another process was faster."""
        note = masked.note()
        if not note or time.monotonic() < masked.rests_until:
            return True
        try:
            archive = self._services.archive_of(session.tenant.name)
            archive.add_placeholders(session.id, note)
            first: dict[str, str] = {}
            for saved in archive.placeholders(session.id):
                for name, seal in saved.items():
                    first.setdefault(name, seal)
        except ArchiveError as problem:
            self._rest(session, masked, problem)
            return True
        masked.masks.placeholders.unsaved.clear()
        return all(first.get(name) == seal for name, seal in note.items())

    def _rest(self, session: Session, masked: MaskedSession, problem: ArchiveError) -> None:
        """Go on without the archive: what is sent is masked all the same."""
        masked.rests_until = time.monotonic() + self._rest_s
        with suppress(CompactError):
            self._services.emit(session, Failure.of(problem, "none"))


def _require_masked(masked: MaskedSession, value: Any, name: str, *, is_schema: bool) -> None:
    """Check that the host has masked what it sends itself.

    Raises:
        MaskingError: it holds something to mask.
    """
    if value is not None and masked.masks.mask_beside(value, is_schema=is_schema) is not value:
        schemas = ", schemas=True" if is_schema else ""
        raise MaskingError(
            f"`{name}` is sent beside the messages and holds something to mask",
            hint=f"Send and pass `manager.mask(session_id, {name}{schemas})` instead",
            reason=name,
        )


def _make_redactor(config: CompactConfig, given: ArchiveRedactor | None) -> Redactor:
    """The rules of the host's own redactor, or of the configuration; with personal data if that is asked for."""
    if isinstance(given, Redactor) and given.enabled:
        rules = given.rules
    else:
        rules = rules_from_config(config.redaction.rules, config.redaction.extra)
    return Redactor([*rules, "pii"] if config.redaction.live == "pii" else rules)
