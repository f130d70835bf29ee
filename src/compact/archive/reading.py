"""The reading side of the archive: sessions, steps, transcripts, events, and the files that an agent may see.

A step exists if its state file exists. Its other files have their final names or, if the process that committed the step
died before giving them these, the names of its attempt.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, EPERM
from typing import Any, cast

from compact.archive import keys
from compact.archive.copies import Copies, Listed
from compact.archive.noted import NotedReader
from compact.archive.recent import Recent
from compact.archive.records import (
    Misplaced,
    Step,
    digest,
    read_state,
    session_id_in,
    tenant_in,
)
from compact.archive.seals import Seals
from compact.archive.stores.port import Blob, Chained, Operation, SharedPages, Spooling, Store, is_foreign
from compact.engine.state import Sides, rebuild_sides
from compact.errors import ArchiveError
from compact.events import Event, parse

UNTRUSTED = frozenset({"damaged", "misplaced"})
"""The reasons of errors about a state that is there and must not be used."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file that an agent may read: its virtual path and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that an agent may read. `problem` says why some may be missing; None if the list is complete."""

    files: list[FileInfo]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """The messages that went into a step, as `restore` returns them, redacted, in the host's own dialect."""

    session_id: str
    step: int
    dialect: str
    messages: list[Any]


class Places:
    """Finds the folder in which a session, or a tenant, already is.

    Rules change, and what has a folder keeps it. `mask` masks secrets and nothing else: no file name shows one.
    """

    def __init__(self, store: Store, mask: Callable[[str], str]) -> None:
        self._store = store
        self._mask = mask
        self._found: Recent[str, str] = Recent()

    def folder(self, session_id: str) -> str:
        """Return the folder that has a session's record; if none has, the one that the session will get."""
        return self._place(session_id, "", keys.SESSION, session_id_in)

    def tenant_folder(self, tenant: str) -> str:
        """Return the folder of a tenant below `_tenants/`, likewise."""
        return self._place(tenant, f"{keys.TENANTS}/", keys.TENANT, tenant_in)

    def _place(
        self, name: str, root: str, record: str, owner_in: Callable[[bytes | None], str | None]
    ) -> str:
        known = self._found.get(root + name)
        if known is not None:
            return known
        if not keys.is_plain(name):
            return keys.hashed(name)
        wanted = keys.folder_for(name, self._mask(name))
        with Operation("quick").enter():
            try:
                owner = owner_in(self._read(f"{root}{name}/{record}"))
                if owner is not None and keys.is_label_of(owner, name):
                    found = name
                elif self._read(f"{root}{keys.hashed(name)}/{record}") is not None:
                    found = keys.hashed(name)
                else:
                    return wanted
            except ArchiveError:
                if not isinstance(self._store, Spooling):
                    raise
                return wanted  # the object store is away, and what can wait is not refused
        self._found[root + name] = found
        return found

    def keep(self, session_id: str, folder: str) -> None:
        """Remember where a session is."""
        self._found[session_id] = folder

    def _read(self, key: str) -> bytes | None:
        try:
            return self._store.read(key)
        except ArchiveError as problem:
            if is_foreign(problem) and problem.details.get("errno") not in (EACCES, EPERM):
                return None  # a link or a folder in its place is nobody's record
            raise


class Reader(NotedReader):
    """Reads an archive and never writes to it. Methods ending in `_in` take a session's folder instead of its id."""

    def __init__(
        self,
        store: Store,
        label: Callable[[str], str],
        mask: Callable[[str], str],
        seals: Seals | None = None,
    ) -> None:
        self.store = store
        self.seals = seals or Seals()
        self._label = label
        self._places = Places(store, mask)
        self._lists: Recent[str, dict[str, Listed]] = Recent()
        if isinstance(store, Chained):
            store.seal_with(self.seals)

    @property
    def copies(self) -> Copies:
        """The files that an agent may read, checked against what was written."""
        return Copies(self, self._lists)

    def place_of(self, folder: str) -> str:
        """Return a session's folder as its records name it, with the tenant's root. No other session's record can stand there."""
        return f"{self.root}{folder}"

    tenant: str | None = None
    """Whose archive it is; None: nobody's in particular."""
    root = ""
    """Where the keys of a tenant begin: `_tenants/{tenant}/`."""

    def folder(self, session_id: str) -> str:
        """Return the session's folder in the archive. A session that is there already keeps the folder that it has.

        Raises:
            ArchiveError: the id is not text.
        """
        keys.check_session_id(session_id)
        return self._places.folder(session_id)

    def sessions(self) -> list[str]:
        """List the ids of all sessions, sorted."""
        return sorted(self.sessions_by_folder().values())

    def unchained(self) -> list[str]:
        """List the ids of sessions that an earlier version began: their outputs are not listed, or their events not chained."""
        return sorted(
            session_id
            for folder, session_id in self.sessions_by_folder().items()
            if not self.copies.is_listing(folder)
        )

    def sessions_by_folder(self) -> dict[str, str]:
        """Return each session's id by its folder. An id that holds a secret is masked; only the folder identifies it."""
        found = {folder: self.session_in(folder) for folder in self.folders()}
        return {folder: session_id for folder, session_id in found.items() if session_id is not None}

    def folders(self) -> list[str]:
        """List the folders that can belong to a session, sorted, without reading them."""
        return [folder for folder in self.store.folders() if keys.is_folder(folder)]

    def session_in(self, folder: str) -> str | None:
        """Return the id of the session in a folder, with secrets masked; None if nothing is there."""
        try:
            data = self.store.read(f"{folder}/{keys.SESSION}")
        except ArchiveError as problem:
            if not is_foreign(problem):
                raise
            return folder  # a link or a folder in its place; the other sessions must not suffer
        if data is None:
            return None
        session_id = session_id_in(data)
        return folder if session_id is None else session_id  # `verify` reports a damaged record

    def steps(self, session_id: str) -> list[int]:
        """List the numbers of a session's steps in order, including pruned ones."""
        return self.steps_in(self.folder(session_id))

    def steps_in(self, folder: str) -> list[int]:
        """See `steps`."""
        return keys.state_steps(blob.name for blob in self.store.blobs(folder, "state-"))

    def latest(self, session_id: str) -> Step | None:
        """Return the newest step, which holds the session's state; None before the first.

        Raises:
            ArchiveError: the state file is damaged.
        """
        return self.latest_in(self.folder(session_id))

    def latest_in(self, folder: str) -> Step | None:
        """See `latest`."""
        with Operation("step").enter():
            steps = self.steps_in(folder)
            return self.step_in(folder, steps[-1]) if steps else None

    def step(self, session_id: str, step: int) -> Step:
        """Return one step.

        Raises:
            ArchiveError: the session has no such step, or its state file is damaged.
        """
        return self.step_in(self.folder(session_id), step)

    def step_in(self, folder: str, step: int) -> Step:
        """See `step`."""
        keys.check_type(step, int, "a step", hint="`steps` lists the numbers of a session", key=folder)
        key = f"{folder}/{keys.state_name(step)}"
        try:
            data = self.store.read(key)
        except ArchiveError as problem:
            if is_foreign(problem):
                raise ArchiveError(problem.message, hint=problem.hint, key=key, reason="damaged") from problem
            raise
        if data is None:
            raise _no_step(folder, step, self.steps_in(folder))
        return self.read_step(folder, step, data)

    def read_step(self, folder: str, step: int, data: bytes) -> Step:
        """Read a step from the bytes of a state file.

        Raises:
            ArchiveError: the bytes are damaged, or belong to another step.
        """
        key = f"{folder}/{keys.state_name(step)}"
        try:
            found = read_state(data, self.place_of(folder), self.seals)
        except ValueError as problem:
            raise ArchiveError(
                f"{key} cannot be read: {problem}",
                hint="Restore the file from a backup; `verify` lists everything that is damaged",
                key=key,
                reason="misplaced" if isinstance(problem, Misplaced) else "damaged",
            ) from problem
        if found.step != step:
            raise ArchiveError(
                f"{key} is the record of step {found.step}",
                hint="The file was renamed: give it its own name again",
                key=key,
                reason="damaged",
            )
        return found

    def restore(self, session_id: str, step: int | None = None) -> Restored:
        """Return the messages that went into a step (default: the newest), redacted, in the host's own dialect.

        They are the host's, before anything was repaired or offloaded. If the host passes its full history every time,
        a later step's begin with what the step before left; the transcripts of the earlier steps hold the rest.

        Raises:
            ArchiveError: there is no such step, it was pruned, or its transcript is not the one that was written.
        """
        found = self.latest(session_id) if step is None else self.step(session_id, step)
        if found is None:
            raise _no_step(self.folder(session_id), None, [])
        return Restored(session_id, found.step, found.dialect, self.transcript(session_id, found))

    def sides(self, session_id: str, step: Step) -> Sides | None:
        """Return what stood before and after a step, message for message; None if an earlier version wrote its record.

        What stood before it is the transcript after repairs. Summaries count messages in that list.

        Raises:
            ArchiveError: as `restore` does.
        """
        return self.sides_in(self.folder(session_id), step)

    def sides_in(self, folder: str, step: Step) -> Sides | None:
        """See `sides`."""
        transcript, record = self.transcript_in(folder, step), step.state.get("sides")
        return None if record is None else rebuild_sides(record, transcript)

    def transcript(self, session_id: str, step: Step) -> list[Any]:
        """Return the host's messages before a step, one for one."""
        return self.transcript_in(self.folder(session_id), step)

    def transcript_in(self, folder: str, step: Step) -> list[Any]:
        """See `transcript`."""
        data = self.file(folder, step, "transcript")
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    @property
    def forgets(self) -> bool:
        """Whether a new process finds nothing of what this one stored."""
        return isinstance(self.store, SharedPages) and self.store.forgets

    def page_path(self, session_id: str, step: int) -> str:
        """Return the path by which an agent reads the conversation before a step.

        Raises:
            ArchiveError: the session has no such step.
        """
        if not isinstance(self.store, SharedPages):
            return keys.history_path(step)
        transcript = self.step(session_id, step).files["transcript"]
        return self.store.page_path(self.folder(session_id), step, transcript.sha256)

    def summary(self, session_id: str, step: Step) -> dict[str, Any]:
        """Return the summary record of a step."""
        return self.summary_in(self.folder(session_id), step)

    def summary_in(self, folder: str, step: Step) -> dict[str, Any]:
        """See `summary`."""
        return cast("dict[str, Any]", json.loads(self.file(folder, step, "summary")))

    def file(self, folder: str, step: Step, kind: str) -> bytes:
        """Read a file of a step and check it against its hash.

        Raises:
            ArchiveError: it was pruned, is missing, or is not what was written.
        """
        ref = step.files[kind]
        key = f"{folder}/{ref.name}"
        staged = f"{folder}/{keys.staged_name(step.attempt, kind)}"
        found = False
        # Try the final name again at the end: it may have been given while the staged one was read.
        for place in (key, staged, key):
            data = self.store.read(place)
            if data is not None and digest(data) == ref.sha256:
                return data
            found = found or data is not None
        if step.pruned_at:
            raise ArchiveError(
                f"{key} was pruned at {step.pruned_at}",
                hint="Only newer steps remain",
                key=key,
                reason="pruned",
            )
        raise ArchiveError(
            f"{key} {'is not what was written' if found else 'is missing'}",
            hint="Restore the file from a backup; `verify` lists everything that is damaged",
            key=key,
            reason="changed" if found else "missing",
        )

    def events(self, session_id: str, start: int = 0) -> list[Event]:
        """Return the session's events in the order of the log, from number `start` on. Damaged lines are skipped."""
        return self.events_in(self.folder(session_id), start)

    def events_in(self, folder: str, start: int = 0) -> list[Event]:
        """See `events`."""
        found = []
        for line in self.event_lines(folder)[start:]:
            with suppress(ValueError):
                found.append(parse(json.loads(line)))
        return found

    def event_lines(self, folder: str) -> list[bytes]:
        """Return the complete lines of a session's log, without one that is still being written."""
        return self.store.read_log(f"{folder}/{keys.EVENTS}").split(b"\n")[:-1]

    def log_size(self, folder: str) -> int:
        """Return the size of a session's log in bytes. If it differs from before, there are other events."""
        parts = self.store.blobs(folder, keys.EVENTS.partition(".")[0])
        return sum(blob.size for blob in parts if not blob.hidden)

    def address(self) -> str:
        """Return where the archive lies, for people: a folder or a URL."""
        return self.store.address("").rstrip("/")

    def files(self, session_id: str) -> list[FileInfo]:
        """List what an agent may read, by virtual path: `/tool_outputs/...` and `/conversation_history/...`.

        While an object store does not answer, only the files that wait on this machine are listed; `listing` says so.
        """
        return self.listing(session_id).files

    def listing(self, session_id: str) -> Listing:
        """List what an agent may read, and say why some files may be missing."""
        return self.listing_in(self.folder(session_id))

    def listing_in(self, folder: str) -> Listing:
        """See `listing`."""
        problem = None
        try:
            with Operation("quick").enter():
                blobs = self._readable_blobs(folder, self.store.blobs)
                files = [*self._unnamed_pages(folder, blobs), *self._infos(blobs)]
        except ArchiveError as error:
            if not isinstance(self.store, Spooling):
                raise
            problem = error.message
            files = self._infos(self._readable_blobs(folder, self.store.local_blobs))
        return Listing(sorted(files, key=lambda info: info.path), problem)

    def read_text(self, session_id: str, path: str) -> str:
        """Read a file by its virtual path, which can never lead outside the session.

        A copy that is not what was written is rebuilt from the transcripts, if they hold its text.

        Raises:
            ArchiveError: there is no such file, or it is not what was written and cannot be rebuilt.
        """
        return self.read_text_in(self.folder(session_id), path)

    def find_text(self, session_id: str, path: str) -> str | None:
        """Read a file like `read_text`, but return None if there is no such file."""
        try:
            return self.read_text(session_id, path)
        except ArchiveError as problem:
            if problem.details.get("reason") == "missing":
                return None
            raise

    def read_text_in(self, folder: str, path: str) -> str:
        """See `read_text`."""
        keys.check_type(path, str, "a path", hint="`files` lists the paths of a session", key=folder)
        shown = self._label(path)
        name = keys.virtual_name(path.removeprefix(self._pages_root), shown)
        data = self.copies.read(folder, name)
        if data is None:
            raise ArchiveError(
                f"there is no file {shown}",
                hint="List the folder to see what is there",
                key=shown,
                reason="missing",
            )
        return data.decode("utf-8", "replace")

    def path_of(self, key: str) -> str:
        """Return the path by which an agent reads a file."""
        return self.store.address(key) if isinstance(self.store, SharedPages) else _virtual_path(key)

    @property
    def _pages_root(self) -> str:
        """Where the folders of an agent begin in a host's filesystem."""
        if self.tenant is None or not isinstance(self.store, SharedPages):
            return ""
        return f"/{self.root}".rstrip("/")

    def _readable_blobs(self, folder: str, list_blobs: Callable[[str, str], list[Blob]]) -> list[Blob]:
        return [blob for part in (keys.HISTORY, keys.OUTPUTS) for blob in list_blobs(folder, f"{part}/")]

    def _infos(self, blobs: list[Blob]) -> list[FileInfo]:
        return [FileInfo(self.path_of(blob.key), blob.size) for blob in blobs if not blob.hidden]

    def _unnamed_pages(self, folder: str, blobs: list[Blob]) -> list[FileInfo]:
        """List the pages of committed steps that still have their attempt's name."""
        present = {blob.name for blob in blobs}
        if not any(blob.hidden and blob.name.endswith("-history") for blob in blobs):
            return []
        found = []
        for number in self.steps_in(folder):
            if keys.file_names(number)["history"] in present:
                continue
            with suppress(ArchiveError):  # `verify` reports the damage; the other files can be read
                step = self.step_in(folder, number)
                if keys.staged_name(step.attempt, "history") in present:
                    page = step.files["history"]
                    found.append(FileInfo(f"/{page.name}", page.bytes))
        return found


def _virtual_path(key: str) -> str:
    return f"/{key.partition('/')[2]}"


def _no_step(folder: str, step: int | None, steps: list[int]) -> ArchiveError:
    known = f"it has {steps[0]} to {steps[-1]}" if steps else "it has none yet"
    return ArchiveError(
        f"the session in {folder} has no step{'' if step is None else f' {step}'}: {known}",
        hint="`steps` and `sessions` list what is there",
        key=folder,
        reason="missing",
    )
