"""`verify`: checks that everything in an archive is as it was written.

Every check of a session stands alone: whatever one finds, or cannot read, the others go on, and so do the other sessions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from compact.archive import keys
from compact.archive.copies import Copies, lists_outputs, saved_names
from compact.archive.masks import listed_head
from compact.archive.notes import problem_in, reset_note, tenant_note
from compact.archive.reading import Reader
from compact.archive.records import FORMAT, Step, digest, session_id_in, tenant_in, to_line
from compact.archive.stores.chain import LogCheck
from compact.archive.stores.port import Blob, Chained, Store
from compact.errors import ArchiveError
from compact.events import parse

DefectCode: TypeAlias = Literal[
    "missing", "damaged", "changed", "gap", "orphan", "misplaced", "unreadable", "unkeyed"
]

LARGEST_RECORD = 1 << 28
"""Bytes of a state or a session's own record. A larger file is reported without being read."""
_STATE_CODES: dict[str, DefectCode] = {"damaged": "damaged", "misplaced": "misplaced"}
_FILE_CODES: dict[str, DefectCode] = {"missing": "missing", "changed": "changed"}
_MOST_LISTED = 100
"""Defects of one kind in one file. A log with a million broken lines gives a report, not another log."""


@dataclass(frozen=True, slots=True)
class Defect:
    """Something in the archive that is not as it was written."""

    session_id: str
    key: str
    code: DefectCode
    message: str


def verify(store: Store, reader: Reader, folder: str) -> Iterator[Defect]:
    """Find the defects of one session's folder. Reads all of it, changes nothing, and raises nothing."""
    if folder == keys.PROBES:
        return
    if not keys.is_folder(folder):
        yield Defect(folder, folder, "orphan", "no session has a folder of this name")
        return
    check = _Check(store, reader, folder)
    try:
        blobs = [blob for blob in store.blobs(folder) if not blob.hidden]
    except ArchiveError as problem:
        yield check.defect("", "unreadable", problem.message)
        return
    check.blobs.update((blob.name, blob) for blob in blobs)
    yield from check.guarded("", check.strangers)
    if not check.blobs:
        return
    yield from check.guarded(keys.SESSION, check.session)
    yield from check.guarded("", check.resets)
    yield from check.step_numbers()
    for name in check.blobs:
        if not keys.is_known(name):
            yield check.defect(name, "orphan", "the archive makes no file of this name")
    check.steps.update(check.readable_steps())
    yield from check.unreadable_steps
    for step in check.steps.values():
        for kind in step.files if step.pruned_at is None else ():
            yield from check.guarded(step.files[kind].name, partial(check.file, step, kind))
    lines = list(check.guarded(keys.EVENTS, check.events))
    yield from lines
    if all(
        found.code != "damaged" for found in lines
    ):  # lines that are no events are said one by one; the chain would only say it again
        yield from check.guarded(keys.EVENTS, partial(check.chain, keys.EVENTS))
    for log in (keys.LISTED, keys.LEARNED, keys.PLACEHOLDERS, keys.PINS):
        yield from check.guarded(log, partial(check.chain, log))
    yield from check.guarded(keys.LISTED, check.outputs)


def verify_tenant(reader: Reader) -> list[Defect]:
    """Check the record that says whose root an archive is. That of no tenant has none."""
    if reader.tenant is None or not reader.store.folders():
        return []
    try:
        data = reader.store.read(keys.TENANT)
    except ArchiveError as problem:
        return [Defect(keys.TENANT, keys.TENANT, "unreadable", problem.message)]
    if data is None:
        return [Defect(keys.TENANT, keys.TENANT, "missing", "nothing says whose root this is")]
    label = tenant_in(data)
    if label is None or not keys.is_label_of(label, reader.root.split("/")[1]):
        return [Defect(keys.TENANT, keys.TENANT, "misplaced", f"it is the record of tenant {label!r:.80}")]
    found = problem_in(data, tenant_note(label), reader.root, reader.seals)
    return [] if found is None else [Defect(keys.TENANT, keys.TENANT, "damaged", found)]


@dataclass(frozen=True, slots=True)
class _Check:
    store: Store
    reader: Reader
    folder: str
    blobs: dict[str, Blob] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)
    unreadable_steps: list[Defect] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def session_id(self) -> str:
        return self.facts.get("session_id", self.folder)

    def defect(self, name: str, code: DefectCode, message: str) -> Defect:
        return Defect(self.session_id, f"{self.folder}/{name}".rstrip("/"), code, message)

    def guarded(self, name: str, look: Callable[[], Iterator[Defect]]) -> Iterator[Defect]:
        """Make one check. What it cannot read is a defect of its own."""
        try:
            yield from look()
        except ArchiveError as problem:
            yield self.defect(self._name_in(problem) or name, "unreadable", problem.message)
        except (ValueError, RecursionError, MemoryError) as problem:
            yield self.defect(name, "damaged", f"it cannot be read: {type(problem).__name__}")

    def _name_in(self, problem: ArchiveError) -> str:
        key = str(problem.details.get("key") or "")
        return key.removeprefix(f"{self.folder}/") if key.startswith(f"{self.folder}/") else ""

    def strangers(self) -> Iterator[Defect]:
        if isinstance(self.store, Chained):
            for key, why in self.store.strangers(self.folder):
                yield self.defect(key.partition("/")[2], "unreadable", why)

    def session(self) -> Iterator[Defect]:
        """Check whose folder it is."""
        data = self._read(keys.SESSION)
        session_id = session_id_in(data)
        if data is None or session_id is None:
            yield self.defect(keys.SESSION, "damaged", "the session's own record cannot be read")
            return
        body = json.loads(data)
        written = {"format": FORMAT, "session_id": session_id}
        if data != to_line(body) or {**body, "mac": None} not in (
            {**written, "mac": None},
            {**written, "lists_outputs": True, "mac": None},
        ):
            yield self.defect(
                keys.SESSION, "damaged", "the session's own record is not one that this version writes"
            )
        mac, seals = body.pop("mac", None), self.reader.seals
        if mac is not None and not seals.is_keyed:
            message = "its records carry MACs, which cannot be checked without the key: set archive.mac_key"
            yield self.defect(keys.SESSION, "unkeyed", message)
        if seals.is_keyed:
            try:
                seals.check_mac(mac, self.reader.place_of(self.folder), to_line(body))
            except ValueError as problem:
                yield self.defect(keys.SESSION, "damaged", str(problem))
        if self.folder.startswith("h-"):
            self.facts["session_id"] = session_id
        elif not keys.is_label_of(session_id, self.folder):
            yield self.defect(keys.SESSION, "misplaced", f"it is the record of session {session_id!r:.80}")

    def resets(self) -> Iterator[Defect]:
        """Check what says that a step is forgotten."""
        place = self.reader.place_of(self.folder)
        for name in self.blobs:
            step = keys.reset_step(name)
            data = None if step is None else self._read(name)
            if step is not None and data is not None:
                problem = problem_in(data, reset_note(step), place, self.reader.seals)
                if problem is not None:
                    yield self.defect(name, "damaged", problem)

    def step_numbers(self) -> Iterator[Defect]:
        steps = keys.state_steps(self.blobs)
        for missing in sorted(set(range(1, max(steps, default=0) + 1)) - set(steps))[:_MOST_LISTED]:
            yield self.defect(
                keys.state_name(missing), "gap", f"step {missing} of {max(steps)} has no state file"
            )
        for name in self.blobs:
            found = keys.step_of(name)
            page = keys.history_step(name) or 0
            # The page of a step in a gap is not said again.
            number = found[1] if found else page if page > max(steps, default=0) else None
            if number is not None and number not in steps:
                yield self.defect(name, "orphan", f"there is no {keys.state_name(number)} that names it")

    def readable_steps(self) -> Iterator[tuple[int, Step]]:
        for number in dict.fromkeys(keys.state_steps(self.blobs)):
            name = keys.state_name(number)
            try:
                data = self._read(name)
                step = None if data is None else self.reader.read_step(self.folder, number, data)
            except ArchiveError as problem:
                code = _STATE_CODES.get(str(problem.reason), "unreadable")
                self.unreadable_steps.append(self.defect(name, code, problem.message))
                continue
            if data is None or step is None:
                continue  # removed since it was listed
            if data != to_line(json.loads(data)):
                self.unreadable_steps.append(
                    self.defect(name, "damaged", "it is not in the form that was written")
                )
            if step.session_id != self.session_id and not keys.is_label_of(step.session_id, self.folder):
                message = f"it is a record of session {step.session_id!r:.80}"
                self.unreadable_steps.append(self.defect(name, "misplaced", message))
            yield number, step

    def file(self, step: Step, kind: str) -> Iterator[Defect]:
        """Check a file of a step against its hash."""
        ref = step.files[kind]
        blob = self.blobs.get(ref.name)
        if blob is not None and blob.size not in (0, ref.bytes):
            yield self.defect(
                ref.name, "changed", f"it has {blob.size:,} bytes, and {ref.bytes:,} were written"
            )
            return
        try:
            data = self.reader.file(self.folder, step, kind)
        except ArchiveError as problem:
            code = _FILE_CODES.get(str(problem.reason), "unreadable")
            yield self.defect(ref.name, code, problem.message)
            return
        lines = [] if kind == "history" else data.split(b"\n")[:-1]
        for number, line in enumerate(lines, 1):
            try:
                json.loads(line)
            except (ValueError, RecursionError) as problem:
                yield self.defect(ref.name, "damaged", f"line {number} is not JSON: {problem!s:.200}")

    def chain(self, log: str) -> Iterator[Defect]:
        """Check a log against its seals, and against what the states have seen of it."""
        if not isinstance(self.store, Chained):
            return
        sealed = [
            (f"step {number}", step.logs[log]) for number, step in self.steps.items() if log in step.logs
        ]
        listed = listed_head(Copies(self.reader), self.folder, log)
        sealed += [] if listed is None else [("the list of outputs", listed)]
        found: LogCheck = self.store.check_log(f"{self.folder}/{log}")
        for message in found.problems[:_MOST_LISTED]:
            yield self.defect(log, "changed", message)
        if not found.is_chained and (sealed or self._must_be_chained(log)):
            yield self.defect(log, "missing", "the file with its seals is gone")
            return
        for witness, head in sealed:
            if found.lacks(head):
                yield self.defect(log, "changed", f"it is not the log that {witness} has seen")

    def _must_be_chained(self, log: str) -> bool:
        return log in self.blobs and self.blobs[log].size > 0 and lists_outputs(self._read(keys.SESSION))

    def outputs(self) -> Iterator[Defect]:
        """Check outputs and removed messages against the list of outputs."""
        copies = Copies(self.reader)
        listed, is_listing = copies.listed(self.folder), copies.is_listing(self.folder)
        saved: set[str] | None = None
        for name, entry in listed.items():
            if name in self.blobs or entry.is_pruned:
                continue
            saved = saved_names(self.reader, self.folder) if saved is None else saved
            if (
                name in saved or keys.reset_step(name) is not None
            ):  # without an event it was never confirmed: its writer was killed
                yield self.defect(name, "missing", "it was stored and is gone")
        for name, blob in self.blobs.items():
            expected, known = keys.content_hash(name), listed.get(name)
            if expected is None:
                continue
            if known is None and is_listing and not copies.is_held(self.folder, name):
                yield self.defect(name, "orphan", "the list of outputs does not name it")
                continue
            if known is not None and blob.size not in (0, known.bytes):
                message = f"it has {blob.size:,} bytes, and {known.bytes:,} were written"
                yield self.defect(name, "changed", message)
                continue
            yield from self.guarded(name, partial(self._output, name, known.sha256 if known else expected))

    def _output(self, name: str, expected: str) -> Iterator[Defect]:
        data = self._read(name)
        if data is not None and not digest(data).startswith(expected):
            yield self.defect(name, "changed", "it is not what was written")

    def events(self) -> Iterator[Defect]:
        """Check that every line is an event, and that the steps that they speak of are there."""
        broken = 0
        for number, line in enumerate(self.reader.event_lines(self.folder), 1):
            try:
                parse(json.loads(line))
            except (ValueError, RecursionError) as problem:
                broken += 1
                if broken <= _MOST_LISTED:
                    yield self.defect(
                        keys.EVENTS, "damaged", f"line {number} is not an event: {problem!s:.200}"
                    )
        names = [(name, keys.step_of(name)) for name in sorted(saved_names(self.reader, self.folder))]
        newest = max(keys.state_steps(self.blobs), default=0)
        for name, found in names:
            # Gaps below the newest step are reported as such.
            if found is not None and found[0] == "state" and found[1] > newest:
                yield self.defect(name, "missing", f"step {found[1]} was committed, and its state is gone")

    def _read(self, name: str) -> bytes | None:
        self._check_size(name)
        return self.store.read(f"{self.folder}/{name}")

    def _check_size(self, name: str) -> None:
        blob = self.blobs.get(name)
        if blob is not None and blob.size > LARGEST_RECORD:
            message = f"{self.folder}/{name} has {blob.size:,} bytes, more than any record"
            raise ArchiveError(message, key=blob.key, reason="damaged")
