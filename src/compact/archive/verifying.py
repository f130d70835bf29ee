"""Checks that an archive is what was written: every record parses, every hash matches, no step is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator

from compact.archive import keys
from compact.archive.protocol import Problem, Step, Store
from compact.archive.reading import Reader
from compact.archive.records import digest
from compact.errors import ArchiveError
from compact.events import parse


def verify(store: Store, reader: Reader, folder: str) -> Iterator[Problem]:
    """The problems of one session's folder. Reads all of it, changes nothing."""
    session_id = folder
    if not keys.is_folder(folder):
        yield Problem(session_id, folder, "orphan", "no session has a folder of this name")
        return
    names = [entry.key.removeprefix(f"{folder}/") for entry in store.entries(folder)]
    names = [name for name in names if not keys.is_hidden(name)]
    if not names:
        return
    data = store.read(f"{folder}/{keys.SESSION}")
    try:
        session_id = str(json.loads(data or b"")["session_id"])
    except (ValueError, KeyError, TypeError):
        yield Problem(
            session_id, f"{folder}/{keys.SESSION}", "damaged", "the session's own record cannot be read"
        )
    steps = [found[1] for name in names if (found := keys.step_of(name)) and found[0] == "state"]
    yield from _gaps(session_id, folder, steps)
    yield from _orphans(session_id, folder, names, set(steps))
    for step in sorted(steps):
        yield from _step(store, reader, session_id, folder, step)
    yield from _outputs(store, session_id, folder, names)
    yield from _events(reader, session_id, folder)


def _gaps(session_id: str, folder: str, steps: list[int]) -> Iterator[Problem]:
    for missing in sorted(set(range(1, max(steps, default=0) + 1)) - set(steps)):
        key = f"{folder}/{keys.state_name(missing)}"
        yield Problem(session_id, key, "gap", f"step {missing} of {max(steps)} has no state file")


def _orphans(session_id: str, folder: str, names: list[str], steps: set[int]) -> Iterator[Problem]:
    for name in names:
        found = keys.step_of(name)
        if found and found[1] not in steps:
            yield Problem(
                session_id,
                f"{folder}/{name}",
                "orphan",
                f"there is no {keys.state_name(found[1])} that names it",
            )


def _step(store: Store, reader: Reader, session_id: str, folder: str, number: int) -> Iterator[Problem]:
    key = f"{folder}/{keys.state_name(number)}"
    data = store.read(key)
    if data is None:
        return  # removed since it was listed
    try:
        step = reader.read_step(folder, number, data)
    except ArchiveError as problem:
        yield Problem(session_id, key, "damaged", problem.message)
        return
    if step.session_id != session_id:
        yield Problem(session_id, key, "misplaced", f"it is a record of session {step.session_id!r:.80}")
    if step.pruned_at is None:
        yield from _files(reader, session_id, folder, step)


def _files(reader: Reader, session_id: str, folder: str, step: Step) -> Iterator[Problem]:
    for kind, ref in step.files.items():
        key = f"{folder}/{ref.name}"
        try:
            data = reader.file(folder, step, kind)
        except ArchiveError as problem:
            yield Problem(
                session_id, key, "missing" if problem.reason == "missing" else "changed", problem.message
            )
            continue
        if kind != "history":
            yield from _unreadable_lines(session_id, key, data)


def _unreadable_lines(session_id: str, key: str, data: bytes) -> Iterator[Problem]:
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            json.loads(line)
        except ValueError as problem:
            yield Problem(session_id, key, "damaged", f"line {number} is not JSON: {problem}")


def _outputs(store: Store, session_id: str, folder: str, names: list[str]) -> Iterator[Problem]:
    for name in names:
        key = f"{folder}/{name}"
        expected = keys.content_hash(name)
        if expected is not None:
            data = store.read(key)
            if data is not None and not digest(data).startswith(expected):
                yield Problem(session_id, key, "changed", "its content does not match the hash in its name")
        elif name.startswith(f"{keys.OUTPUTS}/"):
            yield Problem(session_id, key, "orphan", "its name carries no hash")


def _events(reader: Reader, session_id: str, folder: str) -> Iterator[Problem]:
    for number, line in enumerate(reader.event_lines(folder), 1):
        try:
            parse(json.loads(line))
        except ValueError as problem:
            yield Problem(
                session_id, f"{folder}/{keys.EVENTS}", "damaged", f"line {number} is no event: {problem}"
            )
