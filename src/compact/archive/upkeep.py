"""Upkeep of an archive: `verify` checks that everything is as it was written, `prune` removes what is old.

A pruned step's state file is replaced atomically by one that keeps only the number and the hashes. Only then are the step's
files removed. So the number stays taken, `verify` knows why the files are gone, and a crash in between leaves only files
that the next run removes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from compact.archive import keys
from compact.archive.reading import Reader
from compact.archive.records import ArchiveRedactor, Scribe, Step, digest, session_id_in
from compact.archive.stores.port import Blob, Store
from compact.errors import ArchiveError
from compact.events import moment, parse, timestamp

DefectCode: TypeAlias = Literal["missing", "damaged", "changed", "gap", "orphan", "misplaced"]


@dataclass(frozen=True, slots=True)
class Defect:
    """Something in the archive that is not as it was written."""

    session_id: str
    key: str
    code: DefectCode
    message: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning removed, or would remove."""

    session_id: str
    step: int | None
    """None for outputs, which belong to the session."""
    keys: tuple[str, ...]
    bytes: int


def verify(store: Store, reader: Reader, folder: str) -> Iterator[Defect]:
    """Find the defects of one session's folder. Reads all of it, changes nothing."""
    if not keys.is_folder(folder):
        yield Defect(folder, folder, "orphan", "no session has a folder of this name")
        return
    names = [blob.name for blob in store.blobs(folder) if not blob.hidden]
    if not names:
        return
    session_id = session_id_in(store.read(f"{folder}/{keys.SESSION}"))
    check = _Check(store, reader, folder, folder if session_id is None else session_id)
    if session_id is None:
        yield check.defect(keys.SESSION, "damaged", "the session's own record cannot be read")
    yield from check.step_numbers(names)
    for step in keys.state_steps(names):
        yield from check.step(step)
    yield from check.outputs(names)
    yield from check.events()


@dataclass(frozen=True, slots=True)
class _Check:
    store: Store
    reader: Reader
    folder: str
    session_id: str

    def defect(self, name: str, code: DefectCode, message: str) -> Defect:
        return Defect(self.session_id, f"{self.folder}/{name}", code, message)

    def step_numbers(self, names: list[str]) -> Iterator[Defect]:
        steps = keys.state_steps(names)
        for missing in sorted(set(range(1, max(steps, default=0) + 1)) - set(steps)):
            yield self.defect(
                keys.state_name(missing), "gap", f"step {missing} of {max(steps)} has no state file"
            )
        for name in names:
            found = keys.step_of(name)
            if found and found[1] not in steps:
                yield self.defect(name, "orphan", f"there is no {keys.state_name(found[1])} that names it")

    def step(self, number: int) -> Iterator[Defect]:
        name = keys.state_name(number)
        data = self.store.read(f"{self.folder}/{name}")
        if data is None:
            return  # removed since it was listed
        try:
            step = self.reader.read_step(self.folder, number, data)
        except ArchiveError as problem:
            yield self.defect(name, "damaged", problem.message)
            return
        if step.session_id != self.session_id:
            yield self.defect(name, "misplaced", f"it is a record of session {step.session_id!r:.80}")
        if step.pruned_at is None:
            for kind in step.files:
                yield from self._file(step, kind)

    def _file(self, step: Step, kind: str) -> Iterator[Defect]:
        name = step.files[kind].name
        try:
            data = self.reader.file(self.folder, step, kind)
        except ArchiveError as problem:
            yield self.defect(name, "missing" if problem.reason == "missing" else "changed", problem.message)
            return
        lines = [] if kind == "history" else data.split(b"\n")[:-1]
        for number, line in enumerate(lines, 1):
            try:
                json.loads(line)
            except ValueError as problem:
                yield self.defect(name, "damaged", f"line {number} is not JSON: {problem}")

    def outputs(self, names: list[str]) -> Iterator[Defect]:
        for name in names:
            expected = keys.content_hash(name)
            if expected is not None:
                data = self.store.read(f"{self.folder}/{name}")
                if data is not None and not digest(data).startswith(expected):
                    yield self.defect(name, "changed", "its content does not match the hash in its name")
            elif name.startswith(f"{keys.OUTPUTS}/"):
                yield self.defect(name, "orphan", "its name carries no hash")

    def events(self) -> Iterator[Defect]:
        for number, line in enumerate(self.reader.event_lines(self.folder), 1):
            try:
                parse(json.loads(line))
            except ValueError as problem:
                yield self.defect(keys.EVENTS, "damaged", f"line {number} is not an event: {problem}")


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
        for step in old:
            if step.pruned_at is None and not self.dry_run:
                stub = replace(step, state={}, fingerprints={}, pruned_at=timestamp(self.now))
                self.store.replace(
                    f"{folder}/{keys.state_name(step.step)}", Scribe(self.redactor, session_id).state(stub)
                )
            files = (blobs.get(f"{folder}/{ref.name}") for ref in step.files.values())
            yield from self._remove(session_id, step.step, [blob for blob in files if blob])
        loose = self._unreferenced_blobs(folder, kept, list(blobs.values()))
        yield from self._remove(session_id, None, loose)
        if (old or loose) and not self.dry_run:
            # A cache may still hold words of removed records.
            self.store.delete(key for key in blobs if key.startswith(f"{folder}/{keys.CACHES}/"))

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
