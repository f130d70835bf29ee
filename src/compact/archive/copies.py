"""The files that an agent may read are copies, and a copy is checked before it is shown.

What a copy must be is written elsewhere: a page's hash stands in its step's state, the hash of an output or of removed messages
in the session's `outputs.jsonl`, which is chained like the events. If a copy is missing or is not what was written, its text is
looked for in the transcripts, which the states seal. A text that is not found there is not shown at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from compact.archive import keys
from compact.archive.pages import page_title, render_history
from compact.archive.recent import Recent
from compact.archive.records import (
    Record,
    Step,
    as_bytes,
    as_written,
    digest,
    session_id_in,
)
from compact.archive.stores.port import SharedPages, Spooling, is_foreign
from compact.errors import ArchiveError, CompactError
from compact.messages import ToolResult, dialects

if TYPE_CHECKING:
    from compact.archive.reading import Reader


class Listed(NamedTuple):
    """An entry of `outputs.jsonl`: what a file must hold, or that it was pruned."""

    sha256: str
    bytes: int
    is_pruned: bool = False


class Copies:
    """Reads the copies of a session, checks and rebuilds them. `known` keeps the lists that were read, by address."""

    def __init__(self, reader: Reader, known: Recent[str, dict[str, Listed]] | None = None) -> None:
        self._reader = reader
        self._known: Recent[str, dict[str, Listed]] = Recent() if known is None else known

    def read(self, folder: str, name: str) -> bytes | None:
        """Read a copy as it was written, from its file or rebuilt. None if there is no such copy.

        Raises:
            ArchiveError: it is not what was written, and the transcripts do not hold its text.
        """
        number = keys.history_step(name)
        if number is not None:
            return self._read_page(folder, name, number)
        data, problem = self._read_file(folder, name)
        try:
            expected = self.expected(folder, name)
            is_listing = expected is None and self.is_listing(folder)
        except ArchiveError:
            if data is None or not isinstance(self._reader.store, Spooling):
                raise
            expected, is_listing = None, False  # the store is away: the hash in the name has to do
        if expected is None:
            if is_listing and keys.content_hash(name):
                # Its entry may be lost with the power. Then the transcripts say whether it is a copy.
                with suppress(ArchiveError):
                    return self._rebuilt_output(folder, name, None)
            if problem is not None:
                raise problem
            if data is None:
                return None
            if is_listing:
                raise _not_as_written(folder, name, "no session wrote it")
            is_as_named = digest(data).startswith(keys.content_hash(name) or "")
            return data if is_as_named else self._rebuilt_output(folder, name, None)
        if data is not None and digest(data) == expected.sha256:
            return data
        if data is None and expected.is_pruned:
            return None
        try:
            return self._rebuilt_output(folder, name, expected.sha256)
        except ArchiveError:
            if data is None and not self._was_there(folder, name):
                return None
            raise

    def expected(self, folder: str, name: str) -> Listed | None:
        """Return what the list of outputs says about a file; None if it says nothing."""
        place = self._reader.store.address(f"{folder}/")
        known = self._known.get(place, {}).get(name)
        if known is None or known.is_pruned:
            self._known[place] = found = self.listed(folder)
            known = found.get(name)
        return known

    def listed(self, folder: str) -> dict[str, Listed]:
        """Return the list of outputs. What was listed first stands, until it is pruned."""
        found: dict[str, Listed] = {}
        for line in self._reader.store.read_log(f"{folder}/{keys.LISTED}").split(b"\n")[:-1]:
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                entry = json.loads(line)
                made = Listed(str(entry["sha256"]), int(entry["bytes"]), entry.get("pruned_at") is not None)
                name = str(entry["name"])
                if made.is_pruned or name not in found or found[name].is_pruned:
                    found[name] = made
        return found

    def is_listing(self, folder: str) -> bool:
        """Return whether every output of a session is in its list. Sessions of an earlier version have none.

        A host's filesystem keeps no list either. There the hash in a file's name decides.
        """
        if isinstance(self._reader.store, SharedPages):
            return False
        try:
            return lists_outputs(self._reader.store.read(f"{folder}/{keys.SESSION}"))
        except ArchiveError as problem:
            if is_foreign(problem):
                return True  # somebody replaced the record: nothing is taken on trust
            raise

    def is_held(self, folder: str, name: str) -> bool:
        """Return whether a transcript has the text that a file's name stands for."""
        try:
            self._rebuilt_output(folder, name, None)
        except ArchiveError:
            return False
        return True

    def rebuild(self, folder: str, name: str) -> Record | None:
        """Return a copy as it was written, made from the transcripts; None if they do not hold its text."""
        number = keys.history_step(name)
        with suppress(ArchiveError, ValueError):
            if number is None:
                entry = self.expected(folder, name)
                known = keys.content_hash(name) if entry is None else entry.sha256
                return as_written(self._rebuilt_output(folder, name, known), known or "none")
            step = self._reader.step_in(folder, number)
            return as_written(self._rebuilt_page(folder, step), step.files["history"].sha256)
        return None

    def _read_file(self, folder: str, name: str) -> tuple[bytes | None, ArchiveError | None]:
        """Read a file. If something else stands in its place, the copy can be made anew: that error is returned."""
        try:
            return self._reader.store.read(f"{folder}/{name}"), None
        except ArchiveError as problem:
            if is_foreign(problem):
                return None, problem
            raise

    def _read_page(self, folder: str, name: str, number: int) -> bytes | None:
        state = self._reader.store.read(f"{folder}/{keys.state_name(number)}")
        if state is None:
            return None
        step = self._reader.read_step(folder, number, state)
        if step.pruned_at:
            return None
        data, _ = self._read_file(folder, name)
        if data is not None and digest(data) == step.files["history"].sha256:
            return data
        with suppress(ArchiveError):
            return self._reader.file(folder, step, "history")
        return self._rebuilt_page(folder, step)

    def _rebuilt_page(self, folder: str, step: Step) -> bytes:
        ref = step.files["history"]
        sides = self._reader.sides_in(folder, step)
        messages = self._reader.transcript_in(folder, step) if sides is None else sides.before
        label = session_id_in(self._reader.store.read(f"{folder}/{keys.SESSION}")) or step.session_id
        for title in dict.fromkeys((step.session_id, label)):
            page = render_history(messages, step.dialect, page_title(title, step.step))
            data = as_bytes(page)
            if digest(data) == ref.sha256:
                return data
        raise _not_as_written(folder, ref.name, "it is not what was written")

    def _was_there(self, folder: str, name: str) -> bool:
        """Return whether a file was stored. One that is listed and has no event was never confirmed."""
        return name in saved_names(self._reader, folder)

    def _rebuilt_output(self, folder: str, name: str, sha256: str | None) -> bytes:
        start = sha256 or keys.content_hash(name)
        for number in reversed(self._reader.steps_in(folder)):
            with suppress(ArchiveError):
                step = self._reader.step_in(folder, number)
                for text in texts_in(self._reader.transcript_in(folder, step), step.dialect):
                    data = as_bytes(text)
                    if start and digest(data).startswith(start):
                        return data
        raise _not_as_written(folder, name, "it is not what was written")


def saved_names(reader: Reader, folder: str) -> set[str]:
    """Return the names of the files in a session's folder that its events call saved."""
    found = set()
    for line in reader.event_lines(folder):
        if b'"compact.archival"' in line:
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                path = json.loads(line)["properties"]["file_path"].replace("\\", "/")
                _, slash, name = path.rpartition(f"/{folder}/")
                if slash:
                    found.add(name)
    return found


def lists_outputs(data: bytes | None) -> bool:
    """Return whether a `session.json` says that every output of its session is listed in `outputs.jsonl`."""
    try:
        return json.loads(data or b"")["lists_outputs"] is True
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def texts_in(messages: list[Any], dialect: str) -> Iterator[str]:
    """Yield every text in a transcript that an output can be a copy of."""
    yield from _leaves(messages)
    with suppress(CompactError):
        for message in dialects.read(messages, dialect)[1]:
            yield from (part.text for part in message.parts if isinstance(part, ToolResult))


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, and those in JSON that is written as text: arguments of calls."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                yield from _leaves(json.loads(value))
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _leaves(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _leaves(entry)


def _not_as_written(folder: str, name: str, why: str) -> ArchiveError:
    return ArchiveError(
        f"{folder}/{name} cannot be shown: {why}",
        hint="`verify` lists everything that is damaged; restore the file from a backup",
        key=f"{folder}/{name}",
        reason="changed",
    )
