"""What is noted of a session beside its steps: that a step is forgotten, and what the host pinned in the ledger."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from compact.archive import keys
from compact.archive.notes import problem_in, reset_note
from compact.archive.records import Step
from compact.archive.seals import Seals
from compact.archive.stores.port import Store, is_foreign
from compact.engine.state import read_ledger
from compact.errors import ArchiveError
from compact.messages import dialects
from compact.summaries.ledger import Entry


class NotedReader(ABC):
    """The part of a reader that reads notes. Methods ending in `_in` take a session's folder instead of its id."""

    store: Store
    seals: Seals

    @abstractmethod
    def folder(self, session_id: str) -> str:
        """The session's folder."""

    @abstractmethod
    def place_of(self, folder: str) -> str:
        """The folder as its records name it."""

    @abstractmethod
    def latest_in(self, folder: str) -> Step | None:
        """The newest step."""

    def is_forgotten(self, session_id: str, step: int) -> bool:
        """Whether the state after a step was forgotten. Its records are still there. A forged reset forgets nothing."""
        return self.is_forgotten_in(self.folder(session_id), step)

    def is_forgotten_in(self, folder: str, step: int) -> bool:
        """See `is_forgotten`."""
        try:
            data = self.store.read(f"{folder}/{keys.reset_name(step)}")
        except ArchiveError as problem:
            if is_foreign(problem):
                return False
            raise
        return (
            data is not None and problem_in(data, reset_note(step), self.place_of(folder), self.seals) is None
        )

    def pins(self, session_id: str) -> list[dict[str, Any]]:
        """Return what the host pinned and unpinned in a session's ledger, oldest first. An unreadable line says nothing.

        Each is `{"pin": entry}`, `{"unpin": id}` or `{"reset": step}`, which takes back all before it. With `base` in the first,
        that many came before, in a process whose log is gone.

        Raises:
            ArchiveError: the log cannot be read.
        """
        return self.pins_in(self.folder(session_id))

    def pins_in(self, folder: str) -> list[dict[str, Any]]:
        """See `pins`."""
        found = []
        for line in self.store.read_log(f"{folder}/{keys.PINS}").split(b"\n")[:-1]:
            try:
                change = json.loads(line)
            except (ValueError, RecursionError):
                change = None
            found.append(change if isinstance(change, dict) else {})
        return found

    def ledger(self, session_id: str) -> list[Entry]:
        """Return what people said up to the newest step and what stands of it, with what the host pinned since.

        Raises:
            ArchiveError: the newest state or the pins cannot be read.
        """
        return self.ledger_in(self.folder(session_id))

    def ledger_in(self, folder: str) -> list[Entry]:
        """See `ledger`."""
        from compact.engine.user_words import apply_pins, read_frames  # most processes only write

        latest = self.latest_in(folder)
        if latest is None or self.is_forgotten_in(folder, latest.step):
            return list(apply_pins((), self.pins_in(folder), 0)[0])
        entries = read_ledger(latest.state)
        if entries is None:  # an earlier version wrote it
            dialect = dialects.get(latest.dialect)
            written = [entry["item"] for entry in latest.state.get("recipe", ()) if isinstance(entry, dict)]
            entries = read_frames([dialect.read(item) for item in written])
        return list(apply_pins(entries, self.pins_in(folder), latest.state.get("pins", 0))[0])
