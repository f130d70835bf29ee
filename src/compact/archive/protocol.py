"""What the archive needs from outside, and what it gives back.

`Store` is the port that the three adapters (`fs`, `object_store`, `memory`) implement: bytes under keys, nothing more.
Everything that makes an archive of it (redaction, steps, events, restoring) is written once, above the port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from compact.archive.records import Record

Created: TypeAlias = Literal["created", "same", "taken", "spooled"]
"""How a create ended: written now; already there with the same bytes; taken by other bytes; kept in the local spool."""

Appended: TypeAlias = Literal["appended", "mended", "spooled"]
"""How an append ended: written; written after a torn last line was cut off; kept in the local spool."""


class Redactor(Protocol):
    """Masks secrets. Never raises because of what it finds, and never changes its argument."""

    @property
    def enabled(self) -> bool:
        """False when it lets everything through."""
        ...

    def redact(self, text: str) -> str:
        """The text with every secret masked."""
        ...

    def redact_value(self, value: Any) -> Any:
        """A copy of a JSON value with every secret in it masked."""
        ...

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        """Copies of wire messages, one for one, with every secret in them masked."""
        ...

    def session(self) -> Redactor:
        """One for a single session: it may remember what it masked, and mask it wherever it stands again."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored object: its key, its size, when it was last written."""

    key: str
    size: int
    modified: datetime


class Store(Protocol):
    """Bytes under keys. Every method raises ArchiveError when the medium fails, and is safe to call from any thread."""

    adapter: str
    """Its name in config and in `compact.archival` events."""
    settle_s: float
    """How long a write of a process that ended may still arrive."""

    def stage(self, key: str, record: Record) -> None:
        """A new record under a hidden key that is used only once; durable on return."""
        ...

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """Gives staged records their final keys. May be repeated; moves already made are passed over."""
        ...

    def create(self, key: str, record: Record) -> Created:
        """A new record, durable on return. An existing one is never changed."""
        ...

    def replace(self, key: str, record: Record) -> None:
        """A new record in the place of an old one, at once and durable. For pruned steps and caches, nothing else."""
        ...

    def append(self, log: str, record: Record) -> Appended:
        """Adds whole lines to a log, without mixing them with those of others."""
        ...

    def sync(self, log: str) -> None:
        """Makes all lines of a log durable."""
        ...

    def read(self, key: str) -> bytes | None:
        """A record, or None when there is none."""
        ...

    def read_log(self, log: str) -> bytes:
        """All lines of a log; empty when there are none."""
        ...

    def entries(self, folder: str, prefix: str = "") -> list[Entry]:
        """What a folder holds, hidden keys and subfolders too, where the path in it starts with `prefix`; sorted."""
        ...

    def folders(self) -> list[str]:
        """The folders of the archive, sorted."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Removes records; those that are not there are passed over."""
        ...

    def address(self, key: str) -> str:
        """Where a record lies, for people and audit: a path or a URL."""
        ...

    def close(self) -> None:
        """Ends what runs in the background, within a short time. May be called twice."""
        ...


@runtime_checkable
class Spooling(Protocol):
    """A store that keeps records on this machine while they cannot be sent."""

    def entries_here(self, folder: str, prefix: str = "") -> list[Entry]:
        """As `Store.entries`, but only what waits here. Needs no network."""
        ...


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of a step: its name in the session's folder, its hash, its size in bytes and in lines."""

    name: str
    sha256: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class Step:
    """One committed compaction of a session."""

    session_id: str
    step: int
    committed_at: str
    dialect: str
    attempt: str
    files: Mapping[str, FileRef]
    """By kind: "transcript", "summary", "history"."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What the engine asked to be remembered, redacted."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Hashes that the engine asked to be remembered, as they are."""
    pruned_at: str | None = None
    """When its records were removed; a pruned step keeps its number and its hashes."""
    unfinished: str | None = None
    """Committed just now, but its file names could not all be set: why. Whoever writes next tries again."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Another worker committed this step first. Nothing of the attempt is left; `winner` is the newest step."""

    step: int
    winner: Step


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """A tool output in the archive. `path` is what an agent's recovery tools call it."""

    path: str
    address: str
    sha256: str
    bytes: int
    new: bool
    """False when the same text was already there."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file that an agent may read: its virtual path and its size."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that an agent may read. `problem` says why the list may lack some; None when it is whole."""

    files: list[FileInfo]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """A session as it was before a step, redacted, in its own dialect."""

    session_id: str
    step: int
    dialect: str
    messages: list[Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the archive that is not as it was written."""

    session_id: str
    key: str
    code: Literal["missing", "damaged", "changed", "gap", "orphan", "misplaced"]
    message: str


@dataclass(frozen=True, slots=True)
class Removed:
    """What pruning removed, or would remove."""

    session_id: str
    step: int | None
    """None for outputs, which belong to the session."""
    keys: tuple[str, ...]
    bytes: int
