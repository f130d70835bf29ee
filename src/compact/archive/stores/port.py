"""The port that every store implements: bytes under keys, nothing more, and the operation that its requests are part of.

Everything that turns a store into an archive (redaction, steps, events, restoring) is written once, above the port.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from compact.archive import keys
from compact.archive.seals import Seals
from compact.archive.stores.chain import LogCheck, LogHead
from compact.errors import ArchiveError

if TYPE_CHECKING:
    from compact.archive.records import Record

Created: TypeAlias = Literal["created", "same", "taken", "spooled"]
"""Outcome of a create: written now; already there with the same bytes; taken by other bytes; kept in the local spool."""

Appended: TypeAlias = Literal["appended", "mended", "spooled"]
"""Outcome of an append: written; written after a torn last line was cut off; kept in the local spool."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored record in a listing: its key, its size in bytes, and when it was last written."""

    key: str
    size: int
    modified: datetime

    @property
    def name(self) -> str:
        """Its path in the session's folder."""
        return self.key.partition("/")[2]

    @property
    def hidden(self) -> bool:
        """Whether it belongs to an attempt or is a temporary file. These are never shown and never counted."""
        return keys.is_hidden(self.key)


class Store(Protocol):
    """Bytes under keys. Every method is safe to call from any thread and raises ArchiveError when the medium fails."""

    adapter: str
    """The store's name in the configuration and in `compact.archival` events."""
    settle_s: float
    """How long a write can still arrive after its process has ended, in seconds."""

    def stage(self, key: str, record: Record) -> None:
        """Write a new record under a hidden key that is used only once.

        It is durable before any record has its key that is created in the same folder afterwards.
        """

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """Give staged records their final keys. May be repeated; moves that were already made are skipped.

        A record that lost its final key with the power has its staged one.
        """

    def create(self, key: str, record: Record) -> Created:
        """Write a new record, durable on return. An existing record is never changed."""

    def replace(self, key: str, record: Record) -> None:
        """Replace a record atomically and durably. Only pruned steps and caches are ever replaced."""

    def append(self, log: str, record: Record) -> Appended:
        """Add whole lines to a log without interleaving them with those of other writers."""

    def sync(self, log: str) -> None:
        """Make all lines of a log durable."""

    def read(self, key: str) -> bytes | None:
        """Return a record, or None if there is none."""

    def read_log(self, log: str) -> bytes:
        """Return all lines of a log; empty if there are none."""

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """List the records of a folder, sorted by key. Includes hidden ones and subfolders.

        With `prefix`, lists only records whose path inside the folder starts with it.
        """

    def folders(self, root: str = "") -> list[str]:
        """List the names of the folders directly below a root, sorted.

        The root is empty, `_tenants/`, or that of a tenant. The archive's own root is listed without `_tenants`.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Remove records; missing ones are skipped."""

    def address(self, key: str) -> str:
        """Return where a record lies, for people and audits: a path or a URL."""

    def close(self) -> None:
        """Stop background work within a short time. May be called twice."""


@runtime_checkable
class Copying(Protocol):
    """A store that need not wait for its medium where a record can be made again from others."""

    def write_copy(self, key: str, record: Record) -> Created:
        """Like `Store.create`, but the record may be lost with the power, whole or in part."""


@runtime_checkable
class Spooling(Store, Protocol):
    """A store that keeps records on this machine while they cannot be sent."""

    def local_blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """Like `Store.blobs`, but only for records that wait on this machine. Needs no network."""


@runtime_checkable
class SharedPages(Store, Protocol):
    """A store whose pages lie in a filesystem that it shares with others, under names that belong to no one else."""

    @property
    def forgets(self) -> bool:
        """Whether a new process finds nothing of what this one stored."""

    def page_path(self, folder: str, step: int, transcript_sha256: str) -> str:
        """Return the path by which an agent reads the conversation before a step."""


@runtime_checkable
class Chained(Protocol):
    """A store that seals each append to a log together with everything before it, and finds what does not belong."""

    def seal_with(self, seals: Seals) -> None:
        """Use these seals from now on."""

    def head(self, log: str) -> LogHead | None:
        """Return how far a log goes, at no great cost; None if that is not known."""

    def check_log(self, log: str) -> LogCheck:
        """Compare a log with its seals."""

    def strangers(self, folder: str) -> list[tuple[str, str]]:
        """List what no store puts into a folder (empty: the root), as keys and reasons."""


_FOREIGN = frozenset(
    {
        errno.ELOOP,
        errno.EINVAL,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EACCES,
        errno.EPERM,
        errno.EFBIG,
        errno.ENODEV,
    }
)


def is_foreign(problem: ArchiveError) -> bool:
    """Return whether something stands in a record's place that cannot be read as one: a link, a folder, a pipe, a closed file.

    The medium itself works, so that other records can be read.
    """
    return problem.details.get("errno") in _FOREIGN


class Operation:
    """Requests that share one time limit: "quick" while an agent waits for it, "step" for everything that makes a step.

    A store that waits for a network limits each request, and all requests of one call of the archive by one limit more: the
    operation adds up how long they were waited for, and the store gives each request only what is left. Only waiting
    counts, so redacting a large text uses up none of the store's time.

    May be entered more than once, because `begin` and `commit` of a step are one operation.
    """

    def __init__(self, kind: Literal["quick", "step"]) -> None:
        self.kind = kind
        self._waited_s = 0.0
        self._share = 1.0

    def left(self, limit_s: float) -> float:
        """Return what is left of a limit, in seconds; 0 or less once it is used up."""
        return limit_s * self._share - self._waited_s

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Make requests inside part of this operation, or of the outer one if an operation is already under way."""
        if _current.get() is not None:
            yield
            return
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time spent inside."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - began

    @contextmanager
    def sharing(self, part: float) -> Iterator[None]:
        """Let requests inside use only a part of the limit, so that the rest is left for what follows."""
        self._share = part
        try:
            yield
        finally:
            self._share = 1.0


_current: ContextVar[Operation | None] = ContextVar("compact_archive_operation", default=None)


def current_operation() -> Operation | None:
    """Return the operation that this code runs in."""
    return _current.get()
