"""The archive in an object store: S3, or anything that speaks it (extra `s3`).

Exclusive means If-None-Match. Objects cannot be appended to, so a log is a row of numbered segments; a name cannot be
given twice, so publishing is a copy by the server. After any error on a put the object is read back: if it is identical,
it was stored, and only the answer was lost.

Every request ends within its limit: `timeout_s` for what an agent waits for (events, outputs, listings), `step_timeout_s`
for the files of a step. The requests of one operation (`compact.archive.deadlines`) share its limit.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from compact.archive import deadlines, keys
from compact.archive.protocol import Appended, Created, Entry
from compact.archive.recent import Recent
from compact.archive.records import Record
from compact.archive.stores.timed import Timed
from compact.errors import ArchiveError, ConfigError, MissingExtra

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

_PUT_SHARE = 0.7  # of the limit; the rest is for reading back after an error
_SEGMENT = re.compile(r".*/(\d{8,})\.jsonl", re.ASCII)
_QUICK = re.compile(
    rf"[^/]+/(?:{keys.OUTPUTS}/.*|{keys.HISTORY}/removed_.*|events/.*|{re.escape(keys.SESSION)})"
)
_CONNECT_S = 5.0
_READS_AT_ONCE = 16


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
    """A bucket as an archive. Credentials come from the environment or the machine's role, never from settings.

    With `kms_key_id` every object is encrypted by that key (SSE-KMS). `AWS_PROFILE` is honoured when boto3 is installed.

    Raises:
        MissingExtra: obstore is not installed.
        ConfigError: a setting or the environment is not usable.
    """
    try:
        from obstore.store import S3Store
    except ImportError as problem:
        raise MissingExtra.named("s3", "the archive adapter 's3'") from problem
    encryption: dict[str, Any] = {}
    if kms_key_id:
        encryption = {"server_side_encryption": "aws:kms", "sse_kms_key_id": kms_key_id}
    endpoint: dict[str, Any] = {"endpoint": endpoint_url} if endpoint_url else {}
    profile = _profile()
    try:
        client = S3Store(
            bucket,
            prefix=prefix or None,
            client_options={
                "allow_http": bool(endpoint_url and endpoint_url.startswith("http://")),
                # Behind our own limits, which know what waits for the call.
                "connect_timeout": timedelta(seconds=_CONNECT_S),
                "timeout": timedelta(seconds=step_timeout_s + _CONNECT_S),
            },
            retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=step_timeout_s)},
            **encryption,
            **endpoint,
            **profile,
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
        self._timed = Timed()
        self._next_segment: Recent[int] = Recent()

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`. Large records go up in parts."""
        self._put(key, record, "overwrite")

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`. What a target holds already is the same, so copying over it changes nothing."""
        for source, target in moves:
            if not self._copy(source, target) and not self._exists(target):
                raise ArchiveError(f"neither {source} nor {target} is there", key=target, reason="missing")
        self.delete(source for source, _ in moves)

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`."""
        if self._put(key, record, "create"):
            return "created"
        return "same" if self._hash_of(key, self._limit(key)) == record.sha256 else "taken"

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        self._put(key, record, "overwrite")

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`: a new segment behind the newest one."""
        number = self._next_segment.get(log)
        while True:
            if number is None:
                number = self._newest_segment(log) + 1
            if self.create(segment_key(log, number), record) != "taken":
                self._next_segment[log] = number + 1
                return "appended"
            number = None

    def sync(self, log: str) -> None:
        """An object is durable when its put was answered."""

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        data: bytes | None = self._look(key, lambda: self._get(key), self._step_timeout_s)
        return data

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`: the segments, one after another."""
        segments = self._segments(log)
        if not segments:
            return b""

        async def collect() -> list[bytes]:
            at_once = asyncio.Semaphore(_READS_AT_ONCE)

            async def one(key: str) -> bytes:
                async with at_once:
                    return await self._get(key)

            return await asyncio.gather(*map(one, segments))

        found: list[bytes] = self._call(log, "read", collect, self._step_timeout_s)
        return b"".join(found)

    def entries(self, folder: str, prefix: str = "") -> list[Entry]:
        """See `Store.entries`."""
        wanted = f"{folder}/{prefix}"

        async def collect() -> list[Entry]:
            found: list[Entry] = []
            async for batch in self._obstore.list(self._client, folder, offset=wanted):
                for meta in batch:
                    if meta["path"].startswith(wanted):
                        found.append(Entry(meta["path"], meta["size"], meta["last_modified"]))
                if batch and not batch[-1]["path"].startswith(wanted):
                    break  # keys come in order: nothing that is wanted follows
            return found

        return sorted(self._call(folder, "list", collect, self._timeout_s), key=lambda entry: entry.key)

    def folders(self) -> list[str]:
        """See `Store.folders`."""
        found = self._call(
            "", "list", lambda: self._obstore.list_with_delimiter_async(self._client), self._step_timeout_s
        )
        return sorted(found["common_prefixes"])

    def delete(self, keys: Iterable[str]) -> None:
        """See `Store.delete`."""
        paths = list(keys)
        if paths:
            self._call(
                paths[0],
                "delete",
                lambda: self._obstore.delete_async(self._client, paths),
                self._step_timeout_s,
            )

    def address(self, key: str) -> str:
        """The URL of a record."""
        return f"{self._url}/{key}"

    def close(self) -> None:
        """Stops the network thread."""
        self._timed.close()

    def _put(self, key: str, record: Record, mode: Literal["create", "overwrite"]) -> bool:
        """Whether the record was put; False when the key is taken."""
        limit = self._left(self._limit(key))
        give_up = time.monotonic() + limit
        work = lambda: self._obstore.put_async(self._client, key, record.data, mode=mode)  # noqa: E731
        try:
            self._call(key, "write", work, limit * _PUT_SHARE)
        except self._obstore.exceptions.AlreadyExistsError:
            return False
        except ArchiveError:
            try:
                present = self._hash_of(key, give_up - time.monotonic())
            except ArchiveError:
                present = None
            if present != record.sha256:
                raise
        return True

    def _hash_of(self, key: str, limit: float) -> str | None:
        async def read() -> str:
            found = await self._obstore.get_async(self._client, key)
            seen = hashlib.sha256()
            async for piece in found.stream():
                seen.update(piece)
            return seen.hexdigest()

        found: str | None = self._look(key, read, limit)
        return found

    async def _get(self, key: str) -> bytes:
        found = await self._obstore.get_async(self._client, key)
        return bytes(await found.bytes_async())

    def _copy(self, source: str, target: str) -> bool:
        """Whether there was something to copy."""

        async def copy() -> bool:
            await self._obstore.copy_async(self._client, source, target)
            return True

        return bool(self._look(target, copy, self._step_timeout_s))

    def _exists(self, key: str) -> bool:
        work = lambda: self._obstore.head_async(self._client, key)  # noqa: E731
        return self._look(key, work, self._step_timeout_s) is not None

    def _segments(self, log: str) -> list[str]:
        folder = log.partition("/")[0]
        return [entry.key for entry in self.entries(folder, "events/") if _SEGMENT.fullmatch(entry.key)]

    def _newest_segment(self, log: str) -> int:
        return max(
            (int(match[1]) for key in self._segments(log) if (match := _SEGMENT.fullmatch(key))), default=0
        )

    def _limit(self, key: str) -> float:
        return self._timeout_s if _QUICK.fullmatch(key) else self._step_timeout_s

    def _left(self, limit: float) -> float:
        """The limit of a request, or what the operation that it is part of has left."""
        under_way = deadlines.current()
        if under_way is None:
            return limit
        return min(
            limit, under_way.left(self._timeout_s if under_way.kind == "quick" else self._step_timeout_s)
        )

    def _look(self, key: str, work: Callable[[], Awaitable[Any]], limit: float) -> Any:
        """What is under a key, or None when there is nothing."""
        try:
            return self._call(key, "read", work, limit)
        except ArchiveError as problem:
            if problem.details.get("reason") == "missing":
                return None
            raise

    def _call(self, key: str, action: str, work: Callable[[], Awaitable[Any]], limit: float) -> Any:
        exceptions = self._obstore.exceptions
        limit = self._left(limit)

        async def waited() -> Any:
            return await work()

        try:
            if limit <= 0:
                raise TimeoutError  # the same as an answer that did not come
            with deadlines.waiting():
                return self._timed.run(waited, limit)
        except exceptions.AlreadyExistsError:
            raise
        except (exceptions.NotFoundError, FileNotFoundError) as problem:
            raise _failed(action, key, problem, "Check that the bucket exists", "missing") from problem
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as problem:
            hint = "Check the credentials and the bucket's policy"
            raise _failed(action, key, problem, hint, "refused") from problem
        except TimeoutError as problem:
            raise ArchiveError(
                f"could not {action} {self.address(key)}: no answer within {max(limit, 0.0):.1f} s",
                hint="The object store is slow or unreachable; raise archive.timeout_s if that is normal",
                key=key,
                reason="timeout",
            ) from problem
        except exceptions.BaseError as problem:
            hint = "The object store refused or is unreachable"
            raise _failed(action, key, problem, hint, "store") from problem


def segment_key(log: str, number: int) -> str:
    """The key of a log's segment: `{folder}/events/{number:08d}.jsonl`."""
    return f"{log.removesuffix('.jsonl')}/{number:08d}.jsonl"


def _failed(action: str, key: str, problem: Exception, hint: str, reason: str) -> ArchiveError:
    return ArchiveError(
        f"could not {action} {key or 'the archive'}: {_first_line(problem)}",
        hint=hint,
        key=key,
        reason=reason,
    )


def _first_line(problem: Exception) -> str:
    # The rest of it is the client's own debugging output.
    return str(problem).partition("\n")[0][:300]


def _profile() -> dict[str, Any]:
    """Credentials of a named profile, which the client itself cannot read."""
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
