"""Committing a step: all of it or nothing, without a lock.

A step is a handful of files, and only one of them decides: a step exists if and only if `state-NNN.json` exists.

    begin     the transcript is staged under its attempt's hidden name
    commit    1. summary and history are staged likewise; with them the transcript is durable
              2. state-NNN.json is created exclusively       <- the commit point: of two workers, one wins
              3. the archival events are appended, and the log is synced
              4. the staged files get their contract names

The history, and the outputs that a pass stores, are copies of what the transcript holds. A store that can (`Copying`) does not
wait until they are durable: what a loss of power takes of them is made again from the transcript (`archive.copies`).

The state file names its attempt and the hash of every file, so nothing is missing after point 2: a reader that does not
find a file under its contract name takes it from the attempt. If a process dies in between, whoever begins the next attempt
does 3 and 4 for it. Before point 2, an attempt is a set of hidden files that no state names. They occupy no number and block
nobody. They are removed when the pass fails or, if its process died, when the session is next written to.

If creating the state file ends in an error, nobody knows whether it arrived. The attempt's files then stay until it is known:
the next writer finds a state that names them, or none.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from compact.archive import keys
from compact.archive.copies import texts_in
from compact.archive.log import EventLog, OpenSession, Period
from compact.archive.reading import Reader
from compact.archive.records import CleanMessages, FileRef, Record, Step, as_bytes, digest
from compact.archive.stores.chain import LogHead
from compact.archive.stores.port import Blob, Chained, Copying, Operation, SharedPages, Store
from compact.errors import ArchiveError
from compact.events import Archival, Clock, Trace, timestamp

_active: set[str] = set()
"""The attempts of this process that may still commit, whichever archive they belong to."""

STUCK_S = 600.0
"""A committed step that lacks its file names for longer than this is finished by the first process that sees it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Another worker committed this step first. Nothing of the attempt is left; `winner` is the newest step."""

    step: int
    winner: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Begins attempts, and finishes what dead processes left behind."""

    store: Store
    reader: Reader
    log: EventLog
    clock: Clock
    attempt_ids: Callable[[], str]
    attempt_ttl_s: float
    keep_learned: Callable[[OpenSession], None]
    """Makes what masking has learned durable."""

    def begin(
        self,
        session: OpenSession,
        messages: Sequence[Any],
        given: Sequence[Any] | None,
        dialect: str,
        after: int,
        operation: Operation,
        own: Collection[str] = (),
    ) -> Attempt:
        """Claim step `after` + 1 and make the transcript durable. See `Archive.begin`."""
        whole = None if given is None else session.scribe.messages(given, own)
        clean = session.scribe.messages(messages, own)
        if session.tidy_at != after:
            self.tidy(session)
            session.tidy_at = after
        attempt_id = self.attempt_ids()
        _active.add(attempt_id)
        held = clean if whole is None else whole
        attempt = Attempt(self, session, attempt_id, after + 1, dialect, clean, held, operation)
        try:
            attempt.stage("transcript", session.scribe.transcript(held))
        except BaseException:
            attempt.abandon()
            raise
        return attempt

    def heads(self, session: OpenSession) -> dict[str, LogHead]:
        """Return how far the session's logs go, where the store knows it and they go so far durably."""
        if not isinstance(self.store, Chained):
            return {}
        names = [name for name in keys.LOGS if name != keys.LISTED or session.is_list_durable]
        found = {name: self.store.head(f"{session.folder}/{name}") for name in names}
        return {name: head for name, head in found.items() if head is not None}

    def tidy(self, session: OpenSession) -> None:
        """Finish steps whose process died after the commit point, and remove what dead attempts left."""
        blobs = self.store.blobs(session.folder)
        for state, step in self._unfinished_steps(session.folder, blobs):
            if step is not None and step.pruned_at is None and self._may_finish(step.attempt, _age(state)):
                self._finish(session, step)
        # In this order: an owner that is already gone cannot commit anything after the states were read.
        dead = [blob.key for blob in blobs if blob.hidden and self._is_dead(blob)]
        if dead:
            needed = self._needed_keys(session)
            if needed is not None:
                self.store.delete(key for key in dead if key not in needed)

    def _finish(self, session: OpenSession, step: Step) -> None:
        missing = self._unrecorded_files(session, step)
        if missing:
            self.log.record_saved(session, step.step, dict.fromkeys(missing), None)
            self.log.sync(session)
        # If this fails, the step stays readable under the attempt's names and the next writer tries again.
        with suppress(ArchiveError):
            self.store.publish(_moves(session.folder, step))

    def _may_finish(self, attempt: str, age: float) -> bool:
        """Return whether nobody else will finish it: our own attempt ended, or its process is gone or stuck."""
        if attempt in _active:
            return False
        known = keys.attempt_in(f".attempt-{attempt}-")
        is_ours = attempt.startswith(f"{keys.this_process()}-")
        return known is None or is_ours or keys.is_gone(known) or age > STUCK_S

    def _is_dead(self, blob: Blob) -> bool:
        age = _age(blob)
        attempt = keys.attempt_in(blob.key)
        if attempt is None:
            return age > self.attempt_ttl_s
        if attempt in _active or age < self.store.settle_s:
            return False
        is_temporary = blob.key.rpartition("/")[2].startswith(".tmp-")
        ours_and_ended = attempt.startswith(f"{keys.this_process()}-") and not is_temporary
        return ours_and_ended or keys.is_gone(attempt) or age > self.attempt_ttl_s

    def _needed_keys(self, session: OpenSession) -> set[str] | None:
        """Return the staged files of committed steps that could not be finished; None if that cannot be known."""
        needed: set[str] = set()
        for _, step in self._unfinished_steps(session.folder, self.store.blobs(session.folder)):
            if step is None:
                return None
            if step.pruned_at is None:
                needed.update(source for source, _ in _moves(session.folder, step))
        return needed

    def _unfinished_steps(self, folder: str, blobs: list[Blob]) -> Iterator[tuple[Blob, Step | None]]:
        """Yield, in order, the state files of steps that lack a file under its contract name: unfinished or pruned.

        The step is None if its state file is gone or damaged. `verify` reports that; it must not stop a session.
        """
        by_name = {blob.name: blob for blob in blobs}
        for number in keys.state_steps(by_name):
            state = by_name.get(keys.state_name(number))
            if state and not by_name.keys() >= set(keys.file_names(number).values()):
                data, step = self.store.read(state.key), None
                with suppress(ArchiveError):
                    step = None if data is None else self.reader.read_step(folder, number, data)
                yield state, step

    def _unrecorded_files(self, session: OpenSession, step: Step) -> list[str]:
        """List the files of a step that have no archival event yet."""
        recorded = set()
        for line in self.reader.event_lines(session.folder):
            if Archival.NAME.encode() in line:
                with suppress(ValueError, KeyError, TypeError):
                    recorded.add(json.loads(line)["properties"]["file_path"])
        names = [*(ref.name for ref in step.files.values()), keys.state_name(step.step)]
        return [name for name in names if self.store.address(f"{session.folder}/{name}") not in recorded]


@dataclass(eq=False)
class Attempt:
    """One pass's claim on a step number. Use it in a `with` block: leaving the block without a commit removes every trace."""

    _attempts: Attempts
    _session: OpenSession
    _id: str
    step: int
    """The number that the step gets if it is committed."""
    _dialect: str
    _clean: CleanMessages
    _held: CleanMessages
    """What the transcript holds."""
    _operation: Operation
    _files: dict[str, FileRef] = field(default_factory=dict, init=False)
    _saved: dict[str, Period] = field(default_factory=dict, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _open: bool = field(default=True, init=False)
    _revoked: bool = field(default=False, init=False)

    @property
    def history_path(self) -> str:
        """The path by which an agent reads the transcript. It is valid once the step is committed."""
        store = self._attempts.store
        if isinstance(store, SharedPages):
            return store.page_path(self._session.folder, self.step, self._files["transcript"].sha256)
        return keys.history_path(self.step)

    @property
    def messages(self) -> Sequence[Any]:
        """The messages that the pass works on, one for one, redacted."""
        return self._clean.items

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    def commit(
        self,
        *,
        summary: Mapping[str, Any],
        state: Mapping[str, Any],
        fingerprints: Mapping[str, str] | None = None,
        trace: Trace | None = None,
    ) -> Step | Taken:
        """Make the step, durable and with its contract file names, or say who was first.

        `fingerprints` are hashes in hexadecimal and are stored as they are; `summary` and `state` are redacted.

        Raises:
            ArchiveError: the commit could not be confirmed. The step exists whole or not at all; `latest` tells which
                once the archive answers again.
        """
        with self._operation.enter():
            self._check_open()
            attempts, folder, scribe = self._attempts, self._session.folder, self._session.scribe
            self.stage("summary", scribe.value(summary, "summary"))
            self.stage("history", scribe.history(self._clean, self._dialect, self.step))
            attempts.keep_learned(self._session)
            step = Step(
                session_id=self._session.id,
                step=self.step,
                committed_at=timestamp(attempts.clock()),
                dialect=self._dialect,
                attempt=self._id,
                files=self._files,
                state=state,
                fingerprints=fingerprints or {},
                logs=attempts.heads(self._session),
            )
            record = scribe.state(step)
            self._check_open()
            began = attempts.clock()
            try:
                outcome = attempts.store.create(f"{folder}/{keys.state_name(self.step)}", record)
            except BaseException:
                self._close()  # without removing anything: the state may have arrived
                raise
            if outcome == "taken":
                self.abandon()
                winner = attempts.reader.latest(self._session.id)
                assert winner is not None  # the state that was in our way
                return Taken(self.step, winner)
            self._saved[keys.state_name(self.step)] = (began, attempts.clock())
            return self._finish(attempts.reader.read_step(folder, self.step, record.data), trace)

    def abandon(self) -> None:
        """Give up the claim and remove what was staged. A no-op after a commit."""
        if not self._open:
            return
        with suppress(ArchiveError), self._operation.enter():  # the next writer removes what stays
            self._attempts.store.delete(
                f"{self._session.folder}/{keys.staged_name(self._id, kind)}"
                for kind in keys.file_names(self.step)
            )
        self._close()

    def revoke(self) -> None:
        """Forbid a commit from now on. Safe from any thread and never waits; `abandon` still has to follow."""
        self._revoked = True

    def holds(self, sha256: str) -> bool:
        """Whether the transcript has a text with this hash, so that a file with that text is a copy of it."""
        return self._open and sha256 in self._texts

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(digest(as_bytes(text)) for text in texts_in(self._held.items, self._dialect))

    def stage(self, kind: str, record: Record) -> None:
        """Write one of the step's files under the attempt's name, durable before the state is there."""
        name, store = keys.file_names(self.step)[kind], self._attempts.store
        self._files[kind] = record.ref(name)
        began = self._attempts.clock()
        key = f"{self._session.folder}/{keys.staged_name(self._id, kind)}"
        if kind == "history" and isinstance(store, Copying):
            store.write_copy(key, record)
        else:
            store.stage(key, record)
        self._saved[name] = (began, self._attempts.clock())

    def _finish(self, step: Step, trace: Trace | None) -> Step:
        """Do what follows the commit point. A failure here undoes nothing: the step is made."""
        attempts, session = self._attempts, self._session
        try:
            attempts.log.record_saved(session, step.step, self._saved, trace)
            attempts.log.sync(session)
            attempts.store.publish(_moves(session.folder, step))
        except ArchiveError as problem:
            why = session.scribe.label(str(problem))
            with suppress(ArchiveError):
                attempts.log.warn(session, "unfinished_step", "medium", why, step.step)
            return replace(step, unfinished=why)
        finally:
            self._close()
        session.tidy_at = step.step
        return step

    def _check_open(self) -> None:
        if not self._open or self._revoked:
            raise ArchiveError(
                f"this attempt at step {self.step} has ended", hint="Begin a new one", reason="attempt_ended"
            )
        if time.monotonic() > self._began + self._attempts.attempt_ttl_s / 2:
            # Other processes may soon treat its staged files as abandoned, so it must not commit any more.
            raise ArchiveError(
                f"this attempt at step {self.step} is older than {self._attempts.attempt_ttl_s / 2:g} s",
                hint="Begin a new one, or raise archive.attempt_ttl_s",
                reason="attempt_ended",
            )

    def _close(self) -> None:
        self._open = False
        _active.discard(self._id)


def _age(blob: Blob) -> float:
    return time.time() - blob.modified.timestamp()


def _moves(folder: str, step: Step) -> list[tuple[str, str]]:
    """List the moves from the attempt's names to the contract's."""
    return [
        (f"{folder}/{keys.staged_name(step.attempt, kind)}", f"{folder}/{ref.name}")
        for kind, ref in step.files.items()
    ]
