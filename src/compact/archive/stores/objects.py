"""The archive in an object store: S3, or anything that speaks it (extra `s3`).

An exclusive create is a put with If-None-Match. Objects cannot be appended to, so a log is a series of numbered segments.
An object has one name, so publishing is a copy made by the server. After any error on a put the object is read back: if it
is identical, it was stored and only the answer was lost.

Every request ends within its limit: `timeout_s` for what an agent waits for (events, outputs, listings), `step_timeout_s`
for the files of a step. The requests of one operation share its limit (see `port.Operation`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from compact.archive import keys
from compact.archive.recent import Recent
from compact.archive.records import Record, digest
from compact.archive.seals import Seals
from compact.archive.stores import chain
from compact.archive.stores.chain import LogCheck, LogHead
from compact.archive.stores.loop_thread import LoopThread
from compact.archive.stores.port import Appended, Blob, Created, current_operation
from compact.errors import ArchiveError, ConfigError, MissingExtra

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

_PUT_SHARE = 0.7  # of the limit; the rest is for reading the object back after an error
_SEGMENT = re.compile(r".*/(\d{8,})\.jsonl", re.ASCII)
_QUICK = re.compile(
    rf"{keys.OUTPUTS}/.*|{keys.HISTORY}/removed_.*|events/.*|outputs/.*|{re.escape(keys.SESSION)}|"
    rf"{re.escape(keys.TENANT.rpartition('/')[2])}"
)
_AFTER, _SEALED = "compact-after", "compact-seal"
"""The metadata of a segment: the seal that it comes after, and its own."""
_proven: set[str] = set()
"""Stores that have refused to write over an object."""
_CONNECT_S = 5.0
_READS_AT_ONCE = 16
_HEADS_AT_CLOSE = 32
"""Logs whose end is written down when the store is closed: those of the newest sessions, because a process may have had
many. The states of the others know it, up to their newest step."""


def open_s3(
    *,
    bucket: str,
    prefix: str | None = None,
    kms_key_id: str | None = None,
    endpoint_url: str | None = None,
    timeout_s: float = 5.0,
    step_timeout_s: float = 60.0,
    retries: int = 2,
) -> ObjectStore:
    """Open a bucket as a store. Credentials come from the environment or the machine's role, never from settings.

    With `kms_key_id` every object is encrypted with that key (SSE-KMS). `AWS_PROFILE` is honoured if boto3 is installed.

    Raises:
        MissingExtra: obstore is not installed.
        ConfigError: a setting or the environment is unusable.
    """
    try:
        from obstore.store import S3Store
    except ImportError as problem:
        raise MissingExtra.named("s3", "the archive adapter 's3'") from problem
    options = _profile()
    if kms_key_id:
        options |= {"server_side_encryption": "aws:kms", "sse_kms_key_id": kms_key_id}
    if endpoint_url:
        options["endpoint"] = endpoint_url
    try:
        client = S3Store(
            bucket,
            prefix=prefix or None,
            client_options={
                "allow_http": bool(endpoint_url and endpoint_url.startswith("http://")),
                # Longer than our own limits, which know who waits for the call.
                "connect_timeout": timedelta(seconds=_CONNECT_S),
                "timeout": timedelta(seconds=step_timeout_s + _CONNECT_S),
            },
            retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=step_timeout_s)},
            **options,
        )
    except Exception as problem:
        raise ConfigError(
            f"archive.bucket cannot be opened: {_first_line(problem)}",
            hint="Check archive.bucket, archive.prefix, archive.endpoint_url and the AWS_* environment",
            path="archive.bucket",
        ) from problem
    url = "/".join(part.strip("/") for part in (f"s3://{bucket}", prefix or "") if part)
    return ObjectStore(client, url, timeout_s=timeout_s, step_timeout_s=step_timeout_s)


class ObjectStore:
    """Objects under one prefix."""

    adapter = "s3"
    settle_s = 300.0

    def __init__(
        self, client: Client, url: str, *, timeout_s: float = 5.0, step_timeout_s: float = 60.0
    ) -> None:
        import obstore

        self._obstore = obstore
        self._client = client
        self._url = url
        self._timeout_s = timeout_s
        self._step_timeout_s = step_timeout_s
        self._thread = LoopThread()
        self._heads: Recent[str, LogHead] = Recent()
        """The newest segment of each log, as far as this process knows, and its seal."""
        self._unsaved: Recent[str, bool] = Recent()
        """Logs whose head is newer than the object that says so."""
        self._seals = Seals()
        self._must_prove = False

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`. Large records go up in parts."""
        self._put(key, record, "overwrite")

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`. A target that exists already holds the same bytes, so copying over it changes nothing."""
        for source, target in moves:
            if not self._copy(source, target) and not self._exists(target):
                raise ArchiveError(f"neither {source} nor {target} is there", key=target, reason="missing")
        self.delete(source for source, _ in moves)

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`."""
        return self._create(key, record)

    def _create(self, key: str, record: Record, attributes: dict[str, str] | None = None) -> Created:
        if self._must_prove:
            self._prove()
        if self._put(key, record, "create", attributes):
            return "created"
        return "same" if self._holds(key, record, self._limit(key)) else "taken"

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        self._put(key, record, "overwrite")

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`. Writes a new segment after the newest one, sealed together with all before it."""
        known = self._heads.get(log)
        while True:
            last = known or self._newest_head(log)
            seal = self._seals.seal(last.seal.encode(), record.data)
            sealed = {_AFTER: last.seal, _SEALED: seal} if last.seal else None
            if self._create(segment_key(log, last.place + 1), record, sealed) != "taken":
                self._heads[log] = LogHead(last.place + 1, seal if sealed else "")
                self._unsaved[log] = True
                return "appended"
            known = None

    def sync(self, log: str) -> None:
        """Do nothing: an object is durable as soon as its put is answered."""

    def seal_with(self, seals: Seals) -> None:
        """See `Chained.seal_with`."""
        self._seals = seals

    def head(self, log: str) -> LogHead | None:
        """See `Chained.head`. What another process appended since is not asked for."""
        head = self._heads.get(log)
        return head if head is not None and head.seal else None

    def check_log(self, log: str) -> LogCheck:
        """See `Chained.check_log`. A segment carries its seal in its metadata."""
        segments, contents = self._read_segments(log)
        found = LogCheck(is_chained=any(_SEALED in sealed for _, sealed in contents))
        after, place = chain.origin(self._seals, log), 0
        for (number, key), (data, sealed) in zip(segments, contents, strict=True):
            if number != place + 1:
                found.problems.append(f"{key}: segments {place + 1:,} to {number - 1:,} are gone")
            if found.is_chained:
                if not self._seals.is_seal(sealed.get(_SEALED), sealed.get(_AFTER, "").encode(), data):
                    found.problems.append(f"{key}: it is not as it was written")
                elif sealed[_AFTER] != after:
                    found.problems.append(f"{key}: it does not follow the segment before")
                after = found.heads[number] = sealed.get(_SEALED, "")
            place = number
        saved = _read_head(self._read(head_key(log), self._step_timeout_s))
        if saved is not None:
            found.is_chained = True
            if found.lacks(saved):
                found.problems.append(
                    f"{head_key(log)}: segment {saved.place:,} was written and is gone or changed"
                )
        return found

    def strangers(self, folder: str) -> list[tuple[str, str]]:  # noqa: ARG002
        """See `Chained.strangers`. In a bucket there are only objects."""
        return []

    def require_conditional_writes(self) -> None:
        """Make sure, now or before the first record, that this store refuses to write over an object (If-None-Match).

        The store is asked once in a process. If it does not answer, it is asked again before the first exclusive write.

        Raises:
            ArchiveError: it does not refuse, or it does not answer.
        """
        self._must_prove = self._url not in _proven
        if self._must_prove:
            self._prove()

    def _prove(self) -> None:
        key = f"{keys.PROBES}/{keys.unique_id()}"
        answers = []
        for text in (b"first", b"second"):
            work = lambda text=text: self._obstore.put_async(self._client, key, text, mode="create")  # noqa: E731
            try:
                self._call(key, "write", work, self._timeout_s)
                answers.append("taken")
            except self._obstore.exceptions.AlreadyExistsError:
                answers.append("refused")
        with suppress(ArchiveError):
            self.delete([key])
        if answers != ["taken", "refused"]:
            raise ArchiveError(
                f"{self._url} does not honour If-None-Match: it wrote over an object that was there",
                hint="Two workers could overwrite each other's steps there. Use a store with conditional writes (AWS S3, "
                "current MinIO, Ceph, R2), or the adapter fs",
                key=key,
                reason="unconditional",
            )
        _proven.add(self._url)
        self._must_prove = False

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        return self._read(key, self._step_timeout_s)

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`. Joins the segments."""
        return b"".join(data for data, _ in self._read_segments(log)[1])

    def _read_segments(self, log: str) -> tuple[list[tuple[int, str]], list[tuple[bytes, dict[str, str]]]]:
        """Return a log's segments, and what is in them with their metadata."""
        segments = self._segments(log)
        if not segments:
            return [], []

        async def collect() -> list[tuple[bytes, dict[str, str]]]:
            at_once = asyncio.Semaphore(_READS_AT_ONCE)

            async def one(key: str) -> tuple[bytes, dict[str, str]]:
                async with at_once:
                    found = await self._obstore.get_async(self._client, key)
                    return bytes(await found.bytes_async()), _attributes(found)

            return await asyncio.gather(*(one(key) for _, key in segments))

        return segments, self._call(log, "read", collect, self._step_timeout_s)

    def _newest_head(self, log: str) -> LogHead:
        """Return the newest segment and its seal; no seal if an earlier version wrote it."""
        number, key = max(self._segments(log), default=(0, ""))
        if not number:
            return LogHead(0, chain.origin(self._seals, log))

        async def ask() -> dict[str, str]:
            return _attributes(await self._obstore.get_async(self._client, key, options={"head": True}))

        found: dict[str, str] = self._look(key, ask, self._timeout_s) or {}
        # A log that began without seals stays without: nothing could say where they should have begun.
        return LogHead(number, found.get(_SEALED, ""))

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Store.blobs`."""
        wanted = f"{folder}/{prefix}"

        async def collect() -> list[Blob]:
            found: list[Blob] = []
            async for batch in self._obstore.list(self._client, folder, offset=wanted):
                for meta in batch:
                    if meta["path"].startswith(wanted):
                        found.append(Blob(meta["path"], meta["size"], meta["last_modified"]))
                if batch and not batch[-1]["path"].startswith(wanted):
                    break  # keys come in order, so no wanted key follows
            return found

        return sorted(self._call(folder, "list", collect, self._timeout_s), key=lambda blob: blob.key)

    def folders(self, root: str = "") -> list[str]:
        """See `Store.folders`."""
        work = lambda: self._obstore.list_with_delimiter_async(self._client, root or None)  # noqa: E731
        listed = self._call(root, "list", work, self._step_timeout_s)["common_prefixes"]
        found = {path.rstrip("/").rpartition("/")[2] for path in listed}
        return sorted(found if root else found - {keys.TENANTS})

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        paths = list(paths)
        work = lambda: self._obstore.delete_async(self._client, paths)  # noqa: E731
        if paths:
            self._call(paths[0], "delete", work, self._step_timeout_s)

    def address(self, key: str) -> str:
        """Return the URL of a record."""
        return f"{self._url}/{key}"

    def close(self) -> None:
        """Say how far the logs go, and stop the network thread."""
        with suppress(ArchiveError):  # the next state says it
            for log in list(self._unsaved)[-_HEADS_AT_CLOSE:]:
                self._save_head(log)
        self._thread.close()

    def _save_head(self, log: str) -> None:
        """Write how far a log goes, so that the loss of its last segments is noticed before the next step says it."""
        head = self.head(log)
        if head is not None:
            data = json.dumps(head._asdict()).encode() + b"\n"
            work = lambda: self._obstore.put_async(self._client, head_key(log), data)  # noqa: E731
            self._call(log, "write", work, self._timeout_s)
            self._unsaved.pop(log, None)

    def _put(
        self,
        key: str,
        record: Record,
        mode: Literal["create", "overwrite"],
        attributes: dict[str, str] | None = None,
    ) -> bool:
        """Put a record. Returns False if the key is taken."""
        limit = self._left(self._limit(key))
        give_up = time.monotonic() + limit
        work = lambda: self._obstore.put_async(  # noqa: E731
            self._client, key, record.data, mode=mode, attributes=attributes
        )
        try:
            self._call(key, "write", work, limit * _PUT_SHARE)
        except self._obstore.exceptions.AlreadyExistsError:
            return False
        except ArchiveError:
            arrived = False
            with suppress(ArchiveError):
                arrived = self._holds(key, record, give_up - time.monotonic())
            if not arrived:
                raise
        return True

    def _holds(self, key: str, record: Record, limit: float) -> bool:
        """Return whether the object under a key is this record."""
        present = self._read(key, limit)
        return present is not None and digest(present) == record.sha256

    def _read(self, key: str, limit: float) -> bytes | None:
        data: bytes | None = self._look(key, lambda: self._get(key), limit)
        return data

    async def _get(self, key: str) -> bytes:
        found = await self._obstore.get_async(self._client, key)
        return bytes(await found.bytes_async())

    def _copy(self, source: str, target: str) -> bool:
        """Copy an object. Returns False if there is no source."""

        async def copy() -> bool:
            await self._obstore.copy_async(self._client, source, target)
            return True

        return bool(self._look(target, copy, self._step_timeout_s))

    def _exists(self, key: str) -> bool:
        work = lambda: self._obstore.head_async(self._client, key)  # noqa: E731
        return self._look(key, work, self._step_timeout_s) is not None

    def _segments(self, log: str) -> list[tuple[int, str]]:
        """List the numbers and keys of a log's segments, sorted by key."""
        folder, name = keys.split_key(log)
        blobs = self.blobs(folder, f"{name.removesuffix('.jsonl')}/")
        return [(int(match[1]), blob.key) for blob in blobs if (match := _SEGMENT.fullmatch(blob.key))]

    def _limit(self, key: str) -> float:
        return self._timeout_s if _QUICK.fullmatch(keys.split_key(key)[1]) else self._step_timeout_s

    def _left(self, limit: float) -> float:
        """Return the limit of a request, or what its operation has left if that is less."""
        operation = current_operation()
        if operation is None:
            return limit
        whole = self._timeout_s if operation.kind == "quick" else self._step_timeout_s
        return min(limit, operation.left(whole))

    def _look(self, key: str, work: Callable[[], Awaitable[Any]], limit: float) -> Any:
        """Call a reading request. Returns None if there is nothing under the key."""
        try:
            return self._call(key, "read", work, limit)
        except ArchiveError as problem:
            if problem.details.get("reason") == "missing":
                return None
            raise

    def _call(self, key: str, action: str, work: Callable[[], Awaitable[Any]], limit: float) -> Any:
        exceptions = self._obstore.exceptions
        limit = self._left(limit)
        operation = current_operation()

        async def request() -> Any:
            return await work()

        try:
            if limit <= 0:
                raise TimeoutError  # the same as an answer that did not come
            with operation.waiting() if operation else nullcontext():
                return self._thread.run(request, limit)
        except exceptions.AlreadyExistsError:
            raise
        except (exceptions.NotFoundError, FileNotFoundError) as problem:
            raise _failure(action, key, problem, "Check that the bucket exists", "missing") from problem
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as problem:
            hint = "Check the credentials and the bucket's policy"
            raise _failure(action, key, problem, hint, "refused") from problem
        except TimeoutError as problem:
            raise ArchiveError(
                f"could not {action} {self.address(key)}: no answer within {max(limit, 0.0):.1f} s",
                hint="The object store is slow or unreachable; raise archive.timeout_s if that is normal",
                key=key,
                reason="timeout",
            ) from problem
        except exceptions.BaseError as problem:
            hint = "The object store refused or is unreachable"
            raise _failure(action, key, problem, hint, "store") from problem


def head_key(log: str) -> str:
    """Return the key of the object that says how far a log goes: `{folder}/seals-events.jsonl`."""
    return chain.seals_name(log)


def _read_head(data: bytes | None) -> LogHead | None:
    """Return the head in an object; None if there is none. An unreadable one matches no log."""
    try:
        return None if data is None else LogHead(**json.loads(data))
    except (ValueError, TypeError, RecursionError):
        return LogHead(-1, "")


def _attributes(found: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in found.attributes.items()}


def segment_key(log: str, number: int) -> str:
    """Return the key of a log's segment: `{folder}/events/{number:08d}.jsonl`."""
    return f"{log.removesuffix('.jsonl')}/{number:08d}.jsonl"


def _failure(action: str, key: str, problem: Exception, hint: str, reason: str) -> ArchiveError:
    return ArchiveError(
        f"could not {action} {key or 'the archive'}: {_first_line(problem)}",
        hint=hint,
        key=key,
        reason=reason,
    )


def _first_line(problem: Exception) -> str:
    # The remaining lines are the client's own debugging output.
    return str(problem).partition("\n")[0][:300]


def _profile() -> dict[str, Any]:
    """Return the credentials of a named profile, which the client itself cannot read."""
    if "AWS_PROFILE" not in os.environ:
        return {}
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as problem:
        raise ConfigError(
            "AWS_PROFILE is set, but profiles can only be read by boto3",
            hint="Install boto3, or unset AWS_PROFILE and use AWS_ACCESS_KEY_ID or the machine's role",
            path="archive",
        ) from problem
    try:
        return {"credential_provider": Boto3CredentialProvider()}
    except Exception as problem:
        raise ConfigError(
            f"the profile in AWS_PROFILE cannot be used: {_first_line(problem)}",
            hint="Check AWS_PROFILE and the shared credentials file",
            path="archive",
        ) from problem
