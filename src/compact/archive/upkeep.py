"""Upkeep of an archive: `prune` removes what is old.

A pruned step's state file is replaced atomically by one that keeps only the number and the hashes. Only then are the step's
files removed. So the number stays taken, `verify` knows why the files are gone, and a crash in between leaves only files
that the next run removes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from compact.archive import keys
from compact.archive.copies import Copies
from compact.archive.reading import Reader
from compact.archive.records import ArchiveRedactor, Scribe, Step, as_written
from compact.archive.stores.port import Blob, Copying, Store
from compact.errors import ArchiveError
from compact.events import moment, timestamp


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning removed, or would remove."""

    session_id: str
    step: int | None
    """None for outputs, which belong to the session."""
    keys: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruner:
    """One run that removes what is older than `before`. With `dry_run`, it only reports what it would remove."""

    store: Store
    reader: Reader
    redactor: ArchiveRedactor
    now: datetime
    before: datetime
    dry_run: bool

    def prune(self, folder: str) -> Iterator[Pruned]:
        """Remove what the session in a folder no longer needs."""
        session_id = self.reader.session_in(folder)
        numbers = self.reader.steps_in(folder)
        if session_id is None or not numbers:
            return  # without a step nobody knows which outputs the session's context still points to
        *steps, newest = [self.reader.step_in(folder, number) for number in numbers]
        blobs = {blob.key: blob for blob in self.store.blobs(folder)}
        kept, old = [newest], list[Step]()
        for step in steps:
            (old if step.pruned_at or moment(step.committed_at) < self.before else kept).append(step)
        scribe = Scribe(self.redactor, session_id, self.reader.place_of(folder), self.reader.seals)
        if not self.dry_run and any(step.pruned_at is None for step in old):
            self._keep_copies(blob for blob in blobs.values() if keys.content_hash(blob.name))
        for step in old:
            if step.pruned_at is None and not self.dry_run:
                stub = replace(step, state={}, fingerprints={}, pruned_at=timestamp(self.now))
                self.store.replace(f"{folder}/{keys.state_name(step.step)}", scribe.state(stub))
            files = (blobs.get(f"{folder}/{ref.name}") for ref in step.files.values())
            yield from self._remove(session_id, step.step, [blob for blob in files if blob])
        loose = self._unreferenced_blobs(folder, kept, list(blobs.values()))
        if loose and not self.dry_run:
            self._note_removal(folder, scribe, loose)
        yield from self._remove(session_id, None, loose)
        if (old or loose) and not self.dry_run:
            # A cache may still hold words of removed records.
            self.store.delete(key for key in blobs if key.startswith(f"{folder}/{keys.CACHES}/"))

    def _keep_copies(self, blobs: Iterable[Blob]) -> None:
        """Make copies durable, because what they could be made from again is going to be removed."""
        if not isinstance(self.store, Copying):
            return
        for blob in blobs:
            with suppress(ArchiveError):  # `verify` reports it
                data = self.reader.copies.read(blob.key.removesuffix(f"/{blob.name}"), blob.name)
                record = None if data is None else as_written(data, keys.content_hash(blob.name) or "none")
                if record is not None and self.store.create(blob.key, record) == "taken":
                    self.store.replace(blob.key, record)

    def _note_removal(self, folder: str, scribe: Scribe, loose: list[Blob]) -> None:
        """Say in the list of outputs that these are pruned, before they are gone."""
        listed = Copies(self.reader).listed(folder)
        log = f"{folder}/{keys.LISTED}"
        for blob in loose:
            if (entry := listed.get(blob.name)) is not None:
                note = scribe.listing(blob.name, entry.sha256, entry.bytes, timestamp(self.now))
                self.store.append(log, note)
        self.store.sync(log)

    def _remove(self, session_id: str, step: int | None, found: list[Blob]) -> Iterator[Pruned]:
        if found:
            if not self.dry_run:
                self.store.delete(blob.key for blob in found)
            yield Pruned(
                session_id, step, tuple(blob.key for blob in found), sum(blob.size for blob in found)
            )

    def _unreferenced_blobs(self, folder: str, kept: list[Step], blobs: list[Blob]) -> list[Blob]:
        """List old outputs and removed messages whose names occur in no kept record.

        One that is newer than the newest step is kept, because a context that no step has seen yet may point to it.
        """
        before = min(self.before, moment(kept[0].committed_at))
        old = [blob for blob in blobs if keys.content_hash(blob.name) and blob.modified < before]
        if not old:
            return []
        texts = [self.reader.file(folder, step, kind) for step in kept for kind in ("transcript", "summary")]
        texts.extend(repr(step.state).encode("utf-8", "replace") for step in kept)
        return [
            blob for blob in old if not any(blob.key.rpartition("/")[2].encode() in text for text in texts)
        ]
