"""The reading side of the archive: sessions, steps, transcripts, events, and the files that an agent may see.

A step exists if its state file exists. Its other files are found under their final names, or, when the process that
committed it died before giving them those, under the names of its attempt.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from compact.archive import keys
from compact.archive.deadlines import Operation
from compact.archive.protocol import Entry, FileInfo, Listing, Restored, Spooling, Step, Store
from compact.archive.records import digest, read_state
from compact.errors import ArchiveError
from compact.events import Event, parse


class Reader:
    """Reads an archive. Nothing here writes."""

    def __init__(self, store: Store, label: Callable[[str], str]) -> None:
        self._store = store
        self._label = label

    def folder(self, session_id: str) -> str:
        """The session's folder in the archive.

        Raises:
            ArchiveError: the id is no text.
        """
        keys.check_session_id(session_id)
        return keys.folder_for(session_id, self._label(session_id))

    def sessions(self) -> list[str]:
        """The ids of all sessions, sorted."""
        return sorted(self.sessions_by_folder().values())

    def sessions_by_folder(self) -> dict[str, str]:
        """The id of each session by its folder. An id that holds a secret is masked, and only the folder leads to it."""
        found = {folder: self.session_in(folder) for folder in self.folders()}
        return {folder: session_id for folder, session_id in found.items() if session_id is not None}

    def folders(self) -> list[str]:
        """The folders that can be a session's, sorted. Nothing in them is read."""
        return [folder for folder in self._store.folders() if keys.is_folder(folder)]

    def session_in(self, folder: str) -> str | None:
        """The id of the session in a folder; None when nothing is there. An id that holds a secret is masked."""
        data = self._store.read(f"{folder}/{keys.SESSION}")
        if data is None:
            return None
        try:
            return str(json.loads(data)["session_id"])
        except (ValueError, KeyError, TypeError):
            return folder  # `verify` says what is wrong with it

    def steps(self, session_id: str) -> list[int]:
        """The numbers of a session's steps, in order; pruned ones too."""
        return self.steps_in(self.folder(session_id))

    def steps_in(self, folder: str) -> list[int]:
        """The same, by folder."""
        names = (entry.key.removeprefix(f"{folder}/") for entry in self._store.entries(folder, "state-"))
        return sorted(found[1] for name in names if (found := keys.step_of(name)))

    def latest(self, session_id: str) -> Step | None:
        """The newest step, which holds the session's state; None before the first.

        Raises:
            ArchiveError: the state file is damaged.
        """
        return self.latest_in(self.folder(session_id))

    def latest_in(self, folder: str) -> Step | None:
        """The same, by folder."""
        with Operation("step").entered():
            steps = self.steps_in(folder)
            return self.step_in(folder, steps[-1]) if steps else None

    def step(self, session_id: str, step: int) -> Step:
        """One step.

        Raises:
            ArchiveError: the session has no such step, or its state file is damaged.
        """
        return self.step_in(self.folder(session_id), step)

    def step_in(self, folder: str, step: int) -> Step:
        """The same, by folder."""
        if type(step) is not int:  # True would be step 1
            raise ArchiveError(
                f"a step must be an int, got {type(step).__name__}",
                hint="`steps` lists the numbers that a session has",
                key=folder,
                reason="argument",
            )
        data = self._store.read(f"{folder}/{keys.state_name(step)}")
        if data is None:
            raise _no_step(folder, step, self.steps_in(folder))
        return self.read_step(folder, step, data)

    def read_step(self, folder: str, step: int, data: bytes) -> Step:
        """The step in the bytes of a state file."""
        key = f"{folder}/{keys.state_name(step)}"
        try:
            found = read_state(data)
        except (ValueError, KeyError, TypeError) as problem:
            raise ArchiveError(
                f"{key} cannot be read: {problem}",
                hint="Restore the file from a backup; `verify` lists everything that is damaged",
                key=key,
                reason="damaged",
            ) from problem
        if found.step != step:
            raise ArchiveError(
                f"{key} is the record of step {found.step}",
                hint="Somebody renamed the file: give it its own name again",
                key=key,
                reason="damaged",
            )
        return found

    def restore(self, session_id: str, step: int | None = None) -> Restored:
        """The transcript as it was before a step (by default the newest), redacted, in its own dialect.

        Raises:
            ArchiveError: there is no such step, it was pruned, or its transcript is not the one that was written.
        """
        found = self.latest(session_id) if step is None else self.step(session_id, step)
        if found is None:
            raise _no_step(self.folder(session_id), None, [])
        return Restored(session_id, found.step, found.dialect, self.transcript(session_id, found))

    def transcript(self, session_id: str, step: Step) -> list[Any]:
        """The messages before a step, one for one."""
        return self.transcript_in(self.folder(session_id), step)

    def transcript_in(self, folder: str, step: Step) -> list[Any]:
        """The same, by folder."""
        data = self.file(folder, step, "transcript")
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def summary(self, session_id: str, step: Step) -> dict[str, Any]:
        """The summary record of a step."""
        return self.summary_in(self.folder(session_id), step)

    def summary_in(self, folder: str, step: Step) -> dict[str, Any]:
        """The same, by folder."""
        return cast("dict[str, Any]", json.loads(self.file(folder, step, "summary")))

    def file(self, folder: str, step: Step, kind: str) -> bytes:
        """A file of a step, checked against its hash.

        Raises:
            ArchiveError: it was pruned, is missing, or is not what was written.
        """
        ref = step.files[kind]
        key = f"{folder}/{ref.name}"
        staged = f"{folder}/{keys.staged_name(step.attempt, kind)}"
        found = False
        # The final name once more at the end: it may have been given while we looked under the other.
        for place in (key, staged, key):
            data = self._store.read(place)
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
        """The session's events in the order of the log, from number `start` on. A line that is none is passed over."""
        return self.events_in(self.folder(session_id), start)

    def events_in(self, folder: str, start: int = 0) -> list[Event]:
        """The same, by folder."""
        found = []
        for line in self.event_lines(folder)[start:]:
            try:
                found.append(parse(json.loads(line)))
            except ValueError:
                continue
        return found

    def event_lines(self, folder: str) -> list[bytes]:
        """The whole lines of a session's log; one that is still being written is left out."""
        return self._store.read_log(f"{folder}/{keys.EVENTS}").split(b"\n")[:-1]

    def log_size(self, folder: str) -> int:
        """How many bytes a session's log has: another number means that there are other events."""
        parts = self._store.entries(folder, keys.EVENTS.partition(".")[0])
        return sum(entry.size for entry in parts if not keys.is_hidden(entry.key))

    def address(self) -> str:
        """Where the archive lies, for people: a folder or a URL."""
        return self._store.address("").rstrip("/")

    def files(self, session_id: str) -> list[FileInfo]:
        """What an agent may read, by virtual path: `/tool_outputs/...` and `/conversation_history/...`.

        While an object store does not answer, these are the files that wait on this machine; `listing` says so.
        """
        return self.listing(session_id).files

    def listing(self, session_id: str) -> Listing:
        """The same, with a word about what may be missing."""
        return self.listing_in(self.folder(session_id))

    def listing_in(self, folder: str) -> Listing:
        """The same, by folder."""
        problem = None
        try:
            with Operation("quick").entered():
                entries = self._readable(folder, self._store.entries)
                files = [*self._unnamed_pages(folder, entries), *_infos(folder, entries)]
        except ArchiveError as error:
            if not isinstance(self._store, Spooling):
                raise
            problem = error.message
            files = _infos(folder, self._readable(folder, self._store.entries_here))
        return Listing(sorted(files, key=lambda info: info.path), problem)

    def read_text(self, session_id: str, path: str) -> str:
        """A file by its virtual path. It can never lie outside the session.

        Raises:
            ArchiveError: there is no such file.
        """
        return self.read_text_in(self.folder(session_id), path)

    def read_text_in(self, folder: str, path: str) -> str:
        """The same, by folder."""
        if not isinstance(path, str):
            raise ArchiveError(
                f"a path must be a str, got {type(path).__name__}",
                hint="`files` lists the paths that a session has",
                key=folder,
                reason="argument",
            )
        shown = self._label(path)
        name = keys.virtual_name(path, shown)
        data = self._store.read(f"{folder}/{name}")
        if data is None:
            data = self._unnamed_page(folder, name)
        if data is None:
            raise ArchiveError(
                f"there is no file {shown}",
                hint="List the folder to see what is there",
                key=shown,
                reason="missing",
            )
        return data.decode("utf-8", "replace")

    def _readable(self, folder: str, entries: Callable[[str, str], list[Entry]]) -> list[Entry]:
        return [entry for part in (keys.HISTORY, keys.OUTPUTS) for entry in entries(folder, f"{part}/")]

    def _unnamed_pages(self, folder: str, entries: list[Entry]) -> list[FileInfo]:
        """The pages of committed steps that only have their attempt's name yet."""
        present = {entry.key.removeprefix(f"{folder}/") for entry in entries}
        if not any(keys.is_hidden(name) and name.endswith("-history") for name in present):
            return []
        found = []
        for number in self.steps_in(folder):
            if keys.file_names(number)["history"] in present:
                continue
            with suppress(ArchiveError):  # `verify` says what is wrong with it; the other files can be read
                step = self.step_in(folder, number)
                if keys.staged_name(step.attempt, "history") in present:
                    page = step.files["history"]
                    found.append(FileInfo(f"/{page.name}", page.bytes))
        return found

    def _unnamed_page(self, folder: str, name: str) -> bytes | None:
        """A page that only has its attempt's name yet; None when there is no such step, or it was pruned."""
        number = keys.history_step(name)
        state = None if number is None else self._store.read(f"{folder}/{keys.state_name(number)}")
        if number is None or state is None:
            return None
        step = self.read_step(folder, number, state)
        return None if step.pruned_at else self.file(folder, step, "history")


def _infos(folder: str, entries: list[Entry]) -> list[FileInfo]:
    return [
        FileInfo(entry.key.removeprefix(folder), entry.size)
        for entry in entries
        if not keys.is_hidden(entry.key)
    ]


def _no_step(folder: str, step: int | None, steps: list[int]) -> ArchiveError:
    known = f"it has {steps[0]} to {steps[-1]}" if steps else "it has none yet"
    return ArchiveError(
        f"the session in {folder} has no step{'' if step is None else f' {step}'}: {known}",
        hint="`steps` and `sessions` list what is there",
        key=folder,
        reason="missing",
    )
