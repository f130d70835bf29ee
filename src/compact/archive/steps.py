"""Committing a step: all of it or nothing, without a lock.

A step is a handful of files, and only one of them decides: a step exists if, and only if, `state-NNN.json` exists.

    begin     the transcript is staged under its attempt's hidden name, durable
    commit    1. summary and history are staged likewise
              2. state-NNN.json is created, exclusively       <- the commit point: of two workers, one wins
              3. the archival events are appended, the log is synced
              4. the staged files get their contract names

The state file names its attempt and the hash of every file, so after point 2 nothing is missing: a reader that does not
find a file under its contract name takes it from the attempt. Whoever begins the next attempt does 3 and 4 for a process
that died in between. Before point 2 an attempt is hidden files that no state names; they occupy no number, block nobody,
and are removed when the pass fails, or, if its process died, when the session is next written to.

When creating the state file ends in an error, nobody knows whether it arrived. Then the attempt's files stay until it is
known: whoever writes next finds either a state that names them, or none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any

from compact.archive import keys
from compact.archive.deadlines import Operation
from compact.archive.log import EventLog, Period
from compact.archive.protocol import Entry, FileRef, Step, Store, Taken
from compact.archive.reading import Reader
from compact.archive.recent import Recent
from compact.archive.records import CleanMessages, Record, Session
from compact.archive.stores import owners
from compact.errors import ArchiveError
from compact.events import Archival, Clock, Trace, timestamp

_active: set[str] = set()
"""The attempts of this process that may still commit, whichever archive they belong to."""

_STUCK_S = 600.0
"""After this long, a step that is committed but lacks its file names is finished by whoever sees it."""


class Steps:
    """Begins attempts, and finishes what processes that died left behind."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        log: EventLog,
        *,
        clock: Clock,
        attempt_ids: Callable[[], str],
        attempt_ttl_s: float,
    ) -> None:
        self.store = store
        self.reader = reader
        self.log = log
        self.clock = clock
        self.attempt_ttl_s = attempt_ttl_s
        self._attempt_ids = attempt_ids
        self._tidy_at: Recent[int] = Recent()

    def begin(
        self, session: Session, messages: Sequence[Any], dialect: str, after: int, operation: Operation
    ) -> Attempt:
        """A claim on step `after` + 1, with the transcript durable. See `Archive.begin`."""
        clean = session.scribe.messages(messages)
        if self._tidy_at.get(session.folder) != after:
            self.tidy(session)
            self._tidy_at[session.folder] = after
        attempt_id = self._attempt_ids()
        _active.add(attempt_id)
        attempt = Attempt(self, session, attempt_id, after + 1, dialect, clean, operation)
        try:
            attempt.stage("transcript", session.scribe.transcript(clean))
        except BaseException:
            attempt.abandon()
            raise
        return attempt

    def ended(self, attempt_id: str) -> None:
        """The attempt will not write again."""
        _active.discard(attempt_id)

    def tidied(self, folder: str, step: int) -> None:
        """All steps up to this one are known to be finished."""
        self._tidy_at[folder] = step

    def tidy(self, session: Session) -> None:
        """Finishes steps whose process died after the commit point; removes what attempts left that will never commit."""
        entries = self.store.entries(session.folder)
        for state in _unfinished(session.folder, entries):
            self._finish(session, state)
        # In this order: an owner that is gone when looked at can commit nothing after the states were read.
        dead = [entry for entry in entries if keys.is_hidden(entry.key) and self._is_dead(entry)]
        if dead:
            needed = self._needed(session)
            if needed is not None:
                self.store.delete(entry.key for entry in dead if entry.key not in needed)

    def _finish(self, session: Session, state: Entry) -> None:
        step = self._read(session.folder, state)
        if step is None or step.pruned_at or not self._may_finish(step.attempt, _age(state)):
            return
        missing = self._unrecorded(session, step)
        if missing:
            self.log.archived(session, step.step, dict.fromkeys(missing), None)
            self.log.sync(session)
        # If this fails it stays readable under the attempt's names, and the next writer tries again.
        with suppress(ArchiveError):
            self.store.publish(moves(session.folder, step))

    def _may_finish(self, attempt: str, age: float) -> bool:
        """Whether nobody else is about to: our own attempts that ended, and those whose process is gone or stuck."""
        if attempt in _active:
            return False
        known = owners.attempt_in(f".attempt-{attempt}-")
        is_ours = attempt.startswith(f"{owners.current()}-")
        return known is None or is_ours or owners.is_gone(known) or age > _STUCK_S

    def _is_dead(self, entry: Entry) -> bool:
        age = _age(entry)
        attempt = owners.attempt_in(entry.key)
        if attempt is None:
            return age > self.attempt_ttl_s
        if attempt in _active or age < self.store.settle_s:
            return False
        is_temporary = entry.key.rpartition("/")[2].startswith(".tmp-")
        ours_and_ended = attempt.startswith(f"{owners.current()}-") and not is_temporary
        return ours_and_ended or owners.is_gone(attempt) or age > self.attempt_ttl_s

    def _needed(self, session: Session) -> set[str] | None:
        """The staged files of committed steps that could not be finished; None when that cannot be told."""
        needed: set[str] = set()
        for state in _unfinished(session.folder, self.store.entries(session.folder)):
            step = self._read(session.folder, state)
            if step is None:
                return None
            if step.pruned_at is None:
                needed.update(source for source, _ in moves(session.folder, step))
        return needed

    def _read(self, folder: str, state: Entry) -> Step | None:
        """The step of a state file; None when it is gone or damaged. `verify` reports that; it must not stop a session."""
        data = self.store.read(state.key)
        found = keys.step_of(state.key.removeprefix(f"{folder}/"))
        if data is None or found is None:
            return None
        try:
            return self.reader.read_step(folder, found[1], data)
        except ArchiveError:
            return None

    def _unrecorded(self, session: Session, step: Step) -> list[str]:
        """The files of a step that have no archival event yet."""
        recorded = set()
        for line in self.reader.event_lines(session.folder):
            if Archival.NAME.encode() in line:
                with suppress(ValueError, KeyError, TypeError):
                    recorded.add(json.loads(line)["properties"]["file_path"])
        return [
            name for name in names_of(step) if self.store.address(f"{session.folder}/{name}") not in recorded
        ]


class Attempt:
    """One pass's claim on a step number. Use it in a `with` block: leaving it without a commit removes every trace."""

    def __init__(
        self,
        steps: Steps,
        session: Session,
        attempt_id: str,
        step: int,
        dialect: str,
        clean: CleanMessages,
        operation: Operation,
    ) -> None:
        self.step = step
        """The number that the step gets if it is committed."""
        self._steps = steps
        self._session = session
        self._id = attempt_id
        self._dialect = dialect
        self._clean = clean
        self._operation = operation
        self._files: dict[str, FileRef] = {}
        self._saved: dict[str, Period] = {}
        self._expires = time.monotonic() + steps.attempt_ttl_s / 2
        self._open = True
        self._revoked = False

    @property
    def history_path(self) -> str:
        """Where an agent will find the readable transcript: a virtual path that is valid once the step is committed."""
        return f"/{keys.file_names(self.step)['history']}"

    @property
    def messages(self) -> Sequence[Any]:
        """The transcript as it is stored: redacted wire messages, one for one."""
        return self._clean.items

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def commit(
        self,
        *,
        summary: Mapping[str, Any],
        state: Mapping[str, Any],
        fingerprints: Mapping[str, str] | None = None,
        trace: Trace | None = None,
    ) -> Step | Taken:
        """Makes the step, durable and with its contract file names, or says who was first.

        `fingerprints` are hashes in hexadecimal that are stored as they are; `summary` and `state` are redacted.

        Raises:
            ArchiveError: it could not be confirmed that the step was taken. It exists whole or not at all; `latest`
                tells once the archive answers again.
        """
        with self._operation.entered():
            return self._commit(summary, state, fingerprints or {}, trace)

    def _commit(
        self,
        summary: Mapping[str, Any],
        state: Mapping[str, Any],
        fingerprints: Mapping[str, str],
        trace: Trace | None,
    ) -> Step | Taken:
        self._check_open()
        steps, folder, scribe = self._steps, self._session.folder, self._session.scribe
        self.stage("summary", scribe.value(summary, "summary"))
        self.stage("history", scribe.history(self._clean, self._dialect, self.step))
        step = Step(
            session_id=self._session.id,
            step=self.step,
            committed_at=timestamp(steps.clock()),
            dialect=self._dialect,
            attempt=self._id,
            files=self._files,
            state=state,
            fingerprints=fingerprints,
        )
        record = scribe.state(step)
        self._check_open()
        began = steps.clock()
        try:
            outcome = steps.store.create(f"{folder}/{keys.state_name(self.step)}", record)
        except BaseException:
            self._close()  # without removing anything: the state may have arrived
            raise
        if outcome == "taken":
            self.abandon()
            winner = steps.reader.latest(self._session.id)
            assert winner is not None  # the state that was in our way
            return Taken(self.step, winner)
        self._saved[keys.state_name(self.step)] = (began, steps.clock())
        return self._finish(steps.reader.read_step(folder, self.step, record.data), trace)

    def abandon(self) -> None:
        """Gives the claim up and removes what was staged. Does nothing after a commit."""
        if not self._open:
            return
        with suppress(ArchiveError), self._operation.entered():  # what stays is removed by the next writer
            self._steps.store.delete(
                f"{self._session.folder}/{keys.staged_name(self._id, kind)}"
                for kind in keys.file_names(self.step)
            )
        self._close()

    def revoke(self) -> None:
        """Forbids a commit from now on, from any thread and without waiting; `abandon` still has to follow."""
        self._revoked = True

    def stage(self, kind: str, record: Record) -> None:
        """Makes one of the step's files durable under the attempt's name."""
        name = keys.file_names(self.step)[kind]
        self._files[kind] = record.ref(name)
        began = self._steps.clock()
        self._steps.store.stage(f"{self._session.folder}/{keys.staged_name(self._id, kind)}", record)
        self._saved[name] = (began, self._steps.clock())

    def _finish(self, step: Step, trace: Trace | None) -> Step:
        """What follows the commit point. A failure here undoes nothing: the step is made."""
        steps, session = self._steps, self._session
        try:
            steps.log.archived(session, step.step, self._saved, trace)
            steps.log.sync(session)
            steps.store.publish(moves(session.folder, step))
        except ArchiveError as problem:
            why = session.scribe.label(str(problem))
            with suppress(ArchiveError):
                steps.log.warn(session, "unfinished_step", "medium", why, step.step)
            return replace(step, unfinished=why)
        finally:
            self._close()
        steps.tidied(session.folder, step.step)
        return step

    def _check_open(self) -> None:
        if not self._open or self._revoked:
            raise ArchiveError(
                f"this attempt at step {self.step} has ended", hint="Begin a new one", reason="attempt_ended"
            )
        if time.monotonic() > self._expires:
            # Elsewhere its staged files may soon count as abandoned, so it must not commit any more.
            raise ArchiveError(
                f"this attempt at step {self.step} is older than {self._steps.attempt_ttl_s / 2:g} s",
                hint="Begin a new one, or raise archive.attempt_ttl_s",
                reason="attempt_ended",
            )

    def _close(self) -> None:
        self._open = False
        self._steps.ended(self._id)


def _unfinished(folder: str, entries: list[Entry]) -> list[Entry]:
    """The state files, in order, of steps that lack a file under its contract name: unfinished or pruned."""
    by_name = {entry.key.removeprefix(f"{folder}/"): entry for entry in entries}
    lacking = {}
    for name, entry in by_name.items():
        found = keys.step_of(name)
        if found and found[0] == "state" and not by_name.keys() >= set(keys.file_names(found[1]).values()):
            lacking[found[1]] = entry
    return [lacking[number] for number in sorted(lacking)]


def _age(entry: Entry) -> float:
    return time.time() - entry.modified.timestamp()


def names_of(step: Step) -> list[str]:
    """The contract names of all files of a step."""
    return [*(ref.name for ref in step.files.values()), keys.state_name(step.step)]


def moves(folder: str, step: Step) -> list[tuple[str, str]]:
    """From the attempt's names to the contract's."""
    return [
        (f"{folder}/{keys.staged_name(step.attempt, kind)}", f"{folder}/{ref.name}")
        for kind, ref in step.files.items()
    ]
