"""Removing what is old: the records of old steps, and outputs that nothing left refers to.

A pruned step's state file is replaced, at once, by one that keeps the number and the hashes and nothing else; only then
are its files removed. So the number stays taken, `verify` knows why the files are gone, and a crash in between only
leaves files that the next run removes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from compact.archive import keys
from compact.archive.protocol import Entry, Redactor, Removed, Step, Store
from compact.archive.reading import Reader
from compact.archive.records import Scribe
from compact.events import moment, timestamp


@dataclass(frozen=True, slots=True)
class Pruner:
    """One run: removes what is older than `before`, or, with `dry_run`, only says what that is."""

    store: Store
    reader: Reader
    redactor: Redactor
    now: datetime
    before: datetime
    dry_run: bool

    def prune(self, folder: str) -> Iterator[Removed]:
        """Removes what the session in a folder can miss."""
        session_id = self.reader.session_in(folder)
        numbers = self.reader.steps_in(folder)
        if session_id is None or not numbers:
            return  # without a step nobody can say which outputs the session's context still points to
        steps = [self.reader.step_in(folder, number) for number in numbers]
        newest = steps.pop()
        entries = {entry.key: entry for entry in self.store.entries(folder)}
        kept, old = [newest], list[Step]()
        for step in steps:
            (old if step.pruned_at or moment(step.committed_at) < self.before else kept).append(step)
        for step in old:
            found = [
                entries[key] for ref in step.files.values() if (key := f"{folder}/{ref.name}") in entries
            ]
            if step.pruned_at is None and not self.dry_run:
                stub = replace(step, state={}, fingerprints={}, pruned_at=timestamp(self.now))
                self.store.replace(
                    f"{folder}/{keys.state_name(step.step)}", Scribe(self.redactor, session_id).state(stub)
                )
            yield from self._remove(session_id, step.step, found)
        loose = self._unreferenced(folder, kept, list(entries.values()))
        yield from self._remove(session_id, None, loose)
        if (old or loose) and not self.dry_run:
            # A cache may still hold words of what is gone.
            self.store.delete(key for key in entries if key.startswith(f"{folder}/{keys.CACHES}/"))

    def _remove(self, session_id: str, step: int | None, found: list[Entry]) -> Iterator[Removed]:
        if found:
            if not self.dry_run:
                self.store.delete(entry.key for entry in found)
            yield Removed(session_id, step, tuple(e.key for e in found), sum(e.size for e in found))

    def _unreferenced(self, folder: str, kept: list[Step], entries: list[Entry]) -> list[Entry]:
        """Old outputs and removed messages whose name stands in no kept record.

        One that is newer than the newest step may be pointed to by a context that no step has seen yet: it stays.
        """
        before = min(self.before, moment(kept[0].committed_at))
        old = [
            entry
            for entry in entries
            if keys.content_hash(entry.key.removeprefix(f"{folder}/")) and entry.modified < before
        ]
        if not old:
            return []
        texts = [self.reader.file(folder, step, kind) for step in kept for kind in ("transcript", "summary")]
        texts.extend(repr(step.state).encode("utf-8", "replace") for step in kept)
        return [entry for entry in old if not any(_file_name(entry) in text for text in texts)]


def _file_name(entry: Entry) -> bytes:
    return entry.key.rpartition("/")[2].encode()
