"""The reading side of the archive: sessions, steps, transcripts, events, and the files that an agent may see.

A step exists if its state file exists. Its other files are found under their final names, or, when the process that
committed it died before giving them those, under the names of its attempt.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from compact.archive import keys
from compact.archive.protocol import FileInfo, Restored, Step, Store
from compact.archive.records import digest, read_state
from compact.errors import ArchiveError
from compact.events import Event, parse


class Reader:
    """Reads an archive. Nothing here writes."""

    def __init__(self, store: Store, label: Callable[[str], str]) -> None:
        self._store = store
        self._label = label

    def folder(self, session_id: str) -> str:
        """The session's folder in the archive."""
        return keys.folder_for(session_id, self._label(session_id))

    def sessions(self) -> list[str]:
        """The ids of all sessions, sorted."""
        found = (self.session_in(folder) for folder in self._store.folders() if keys.is_folder(folder))
        return sorted(session_id for session_id in found if session_id is not None)

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
        steps = self.steps(session_id)
        return self.step(session_id, steps[-1]) if steps else None

    def step(self, session_id: str, step: int) -> Step:
        """One step.

        Raises:
            ArchiveError: the session has no such step, or its state file is damaged.
        """
        return self.step_in(self.folder(session_id), step)

    def step_in(self, folder: str, step: int) -> Step:
        """The same, by folder."""
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
        data = self.file(self.folder(session_id), step, "transcript")
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def summary(self, session_id: str, step: Step) -> dict[str, Any]:
        """The summary record of a step."""
        return cast("dict[str, Any]", json.loads(self.file(self.folder(session_id), step, "summary")))

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
        found = []
        for line in self.event_lines(self.folder(session_id))[start:]:
            try:
                found.append(parse(json.loads(line)))
            except ValueError:
                continue
        return found

    def event_lines(self, folder: str) -> list[bytes]:
        """The whole lines of a session's log; one that is still being written is left out."""
        return self._store.read_log(f"{folder}/{keys.EVENTS}").split(b"\n")[:-1]

    def files(self, session_id: str) -> list[FileInfo]:
        """What an agent may read, by virtual path: `/tool_outputs/...` and `/conversation_history/...`."""
        folder = self.folder(session_id)
        return [
            FileInfo(entry.key.removeprefix(folder), entry.size)
            for part in (keys.HISTORY, keys.OUTPUTS)
            for entry in self._store.entries(folder, f"{part}/")
            if not keys.is_hidden(entry.key)
        ]

    def read_text(self, session_id: str, path: str) -> str:
        """A file by its virtual path. It can never lie outside the session.

        Raises:
            ArchiveError: there is no such file.
        """
        key = f"{self.folder(session_id)}/{keys.virtual_name(path)}"
        data = self._store.read(key)
        if data is None:
            raise ArchiveError(
                f"there is no file {path}",
                hint="List the folder to see what is there",
                key=path,
                reason="missing",
            )
        return data.decode("utf-8", "replace")


def _no_step(folder: str, step: int | None, steps: list[int]) -> ArchiveError:
    known = f"it has {steps[0]} to {steps[-1]}" if steps else "it has none yet"
    return ArchiveError(
        f"the session in {folder} has no step{'' if step is None else f' {step}'}: {known}",
        hint="`steps` and `sessions` list what is there",
        key=folder,
        reason="missing",
    )
