"""Opens an archive on the store that the settings or a host name."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from compact.archive.archive import Archive
from compact.archive.default_root import ARCHIVE, SPOOL, check_default_root
from compact.archive.log import Listener
from compact.archive.records import ArchiveRedactor
from compact.archive.seals import KeySource
from compact.archive.stores.backend import Backend, BackendStore
from compact.archive.stores.memory import MemoryStore
from compact.archive.stores.port import Store
from compact.errors import ArchiveError, ConfigError
from compact.events import Ids, Recorder
from compact.events.session_key import SessionKey
from compact.redaction import Redactor

if TYPE_CHECKING:
    from compact.archive.stores.objects import ObjectStore
    from compact.archive.stores.spool import SpooledStore

_ADAPTERS = ("fs", "s3", "object_store", "memory")


def open_archive(
    redactor: ArchiveRedactor,
    recorder: Recorder,
    *,
    adapter: str = "fs",
    root: str | os.PathLike[str] = ARCHIVE,
    bucket: str | None = None,
    prefix: str | None = None,
    kms_key_id: str | None = None,
    endpoint_url: str | None = None,
    timeout_s: float = 5.0,
    step_timeout_s: float = 60.0,
    retries: int = 2,
    spool_root: str | os.PathLike[str] = SPOOL,
    spool_retry_s: float = 30.0,
    lock_timeout_s: float = 5.0,
    attempt_ttl_s: float = 86_400.0,
    mac_key: KeySource | None = None,
    writes: bool = True,
    session_redactor: Callable[[SessionKey], ArchiveRedactor] | None = None,
    listener: Listener | None = None,
) -> Archive:
    """Open the archive that these settings describe (`archive:` in the configuration).

    A bucket is asked once in a process whether it refuses to write over an object. With `writes` false it is not asked,
    because the archive is only read.

    Raises:
        ArchiveError: the bucket writes over objects, so that two workers could overwrite each other's steps.
        ConfigError: the adapter is unknown, or lacks a setting that it needs, or the key cannot be read; or the default folder is
            not this user's.
        MissingExtra: the adapter needs a package that is not installed.
    """
    store: Store
    if adapter == "fs":
        # Imported here because it needs a POSIX system; the other adapters do not.
        from compact.archive.stores.files import FsStore

        check_default_root(root)
        store = FsStore(root, lock_timeout_s=lock_timeout_s)
    elif adapter == "memory":
        store = MemoryStore()
    elif adapter in {"s3", "object_store"}:
        if not bucket:
            raise ConfigError("archive.bucket must be set for the adapter 's3'", path="archive.bucket")
        from compact.archive.stores.objects import open_s3
        from compact.archive.stores.spool import SpooledStore

        check_default_root(spool_root)
        remote = open_s3(
            bucket=bucket,
            prefix=prefix,
            kms_key_id=kms_key_id,
            endpoint_url=endpoint_url,
            timeout_s=timeout_s,
            step_timeout_s=step_timeout_s,
            retries=retries,
        )
        store = SpooledStore(remote, spool_root, retry_s=spool_retry_s)
        if writes:
            _require_conditional_writes(remote, store)
    else:
        raise ConfigError(
            f"archive.adapter must be one of {', '.join(_ADAPTERS)}, got {adapter!r:.40}",
            path="archive.adapter",
        )
    return Archive(
        store,
        redactor,
        recorder,
        session_redactor=session_redactor,
        attempt_ttl_s=attempt_ttl_s,
        mac_key=mac_key,
        listener=listener,
    )


def _require_conditional_writes(remote: ObjectStore, store: SpooledStore) -> None:
    try:
        remote.require_conditional_writes()
    except ArchiveError as problem:
        if problem.reason == "unconditional":
            store.close()
            raise
        store.rest()  # it does not answer now, and is asked again before the first record


def backend_archive(
    backend: Backend,
    redactor: ArchiveRedactor | None = None,
    recorder: Recorder | None = None,
    listener: Listener | None = None,
    *,
    session_redactor: Callable[[SessionKey], ArchiveRedactor] | None = None,
    timeout_s: float = 60.0,
) -> Archive:
    """Open an archive, for `CompactManager(archive=...)`, whose readable files lie in a host's filesystem.

    The backend's functions may be plain or async. `timeout_s` limits each call of an async one.

    Raises:
        ConfigError: the backend has no `write_file`.
    """
    recorder = recorder or Recorder(lambda: datetime.now(UTC), Ids("compact"))
    return Archive(
        BackendStore(backend, timeout_s),
        redactor or Redactor(),
        recorder,
        session_redactor=session_redactor,
        listener=listener,
    )
