"""The archive on a local disk: a folder tree addressed by keys, in which no symbolic link is ever followed.

This file turns keys into open folders and OSError into ArchiveError. `compact.archive.stores.durable` makes writes durable.
Nothing stays open between two calls, so a store may be used from any thread and after a fork.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from compact.archive import keys
from compact.archive.recent import Recent
from compact.archive.records import Record, digest
from compact.archive.seals import Seals
from compact.archive.stores import chain, durable
from compact.archive.stores.chain import LogCheck, LogHead
from compact.archive.stores.port import Appended, Blob, Created
from compact.errors import ArchiveError

_OWN_FOLDER = ".compact"
"""The folder of the default root and the default spool. It is compact's alone."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_HINTS = {
    errno.ENOSPC: "Free disk space or move the archive's root; nothing was taken out of the context",
    errno.EDQUOT: "The disk quota is used up: raise it or move the archive's root",
    errno.EIO: "The disk reported an error: check it before going on",
    errno.EACCES: "Give this process the right to write there, or move the archive's root",
    errno.EPERM: "Give this process the right to write there, or move the archive's root",
    errno.EROFS: "The filesystem is read-only: move the archive's root",
    errno.EMFILE: "Too many open files in this process: raise its limit (ulimit -n) or close some",
    errno.ENFILE: "Too many open files on this machine: raise the system's limit",
    errno.ELOOP: "A symbolic link stands where a file or folder of the archive should be: remove it",
    errno.ENOTDIR: "A file or a symbolic link stands where a folder of the archive should be: remove it",
    errno.ENAMETOOLONG: "The archive's root is too deep: choose a shorter path",
    errno.ETIMEDOUT: "A stopped or stuck process holds the lock on that file: end it",
}
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class FsStore:
    """Durable files under one root. Creates folders with mode 0700 and files with mode 0600."""

    adapter = "fs"
    settle_s = 0.0

    def __init__(self, root: str | os.PathLike[str], *, lock_timeout_s: float = 5.0) -> None:
        self._shown_root = os.fspath(root)
        self.root = Path(root).absolute()  # a host may change its working folder later
        self._lock_timeout_s = lock_timeout_s
        self._folders: Recent[tuple[str, ...], bool] = Recent()
        """Folders that are there; True: durably."""
        self._durable_logs: Recent[str, bool] = Recent()
        self._new_logs: Recent[tuple[str, ...], set[str]] = Recent()
        """By folder, logs that this process opened first. Their names are durable with the folder."""
        self._staged: set[tuple[str, ...]] = set()
        """Folders with staged records whose names are not durable yet."""
        self._seals = Seals()

    def stage(self, key: str, record: Record) -> None:
        """See `Store.stage`."""
        with self._writing(key) as (folder, name):
            durable.write_new(folder, name, record.data)
        self._staged.add(_split(key)[0])

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """See `Store.publish`."""
        by_folder: dict[str, list[tuple[str, str]]] = {}
        for source, target in moves:
            by_folder.setdefault(target.rpartition("/")[0], []).append((source, target))
        for group in by_folder.values():
            with self._writing(group[0][1], durably=False) as (folder, _):
                for source, target in group:
                    durable.publish(folder, source.rpartition("/")[2], target.rpartition("/")[2])

    def create(self, key: str, record: Record) -> Created:
        """See `Store.create`. A file that already has the name is made durable too."""
        with self._writing(key) as (folder, name):
            parts, _ = _split(key)
            if parts in self._staged:
                self._sync_folder(parts, folder)  # a step's files come before its state
            if durable.create(folder, name, record.data):
                self._sync_folder(parts, folder)
                return "created"
            durable.sync(folder, name)
            self._sync_folder(parts, folder)
        return self._compare(key, record)

    def write_copy(self, key: str, record: Record) -> Created:
        """See `Copying.write_copy`."""
        with self._writing(key, durably=False) as (folder, name):
            if durable.create(folder, name, record.data, synced=False):
                return "created"
        return self._compare(key, record)

    def _compare(self, key: str, record: Record) -> Created:
        present = self.read(key)
        return "same" if present is not None and digest(present) == record.sha256 else "taken"

    def replace(self, key: str, record: Record) -> None:
        """See `Store.replace`."""
        with self._writing(key) as (folder, name):
            durable.replace(folder, name, record.data)

    def append(self, log: str, record: Record) -> Appended:
        """See `Store.append`."""
        with self._writing(log, durably=False) as (folder, name):
            mended = durable.append(
                folder, name, record.data, self._lock_timeout_s, self._seals, chain.origin(self._seals, log)
            )
        if log not in self._durable_logs:
            parts, name = _split(log)
            self._new_logs[parts] = {*self._new_logs.get(parts, ()), name}
        return "mended" if mended else "appended"

    def sync(self, log: str) -> None:
        """See `Store.sync`."""
        with self._writing(log) as (folder, name):
            durable.sync(folder, name, chain.seals_name(name))
            # A log is never replaced, so its name has to become durable only once.
            if log not in self._durable_logs:
                self._sync_folder(_split(log)[0], folder)
                self._durable_logs[log] = True

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        parts, name = _split(key)
        with _explain("read", key), self._open(parts) as folder:
            return None if folder is None else durable.read(folder, name)

    def read_log(self, log: str) -> bytes:
        """See `Store.read_log`."""
        return self.read(log) or b""

    def seal_with(self, seals: Seals) -> None:
        """See `Chained.seal_with`."""
        self._seals = seals

    def head(self, log: str) -> LogHead | None:
        """See `Chained.head`."""
        parts, name = _split(log)
        with _explain("read", log), self._open(parts) as folder:
            return None if folder is None else chain.head_of(durable.read_tail(folder, name))

    def check_log(self, log: str) -> LogCheck:
        """See `Chained.check_log`."""
        parts, name = _split(log)
        with _explain("read", log), self._open(parts) as folder:
            if folder is None:
                return LogCheck(is_chained=False)
            lines, sealed = durable.read_chained(folder, name, self._lock_timeout_s)
        return chain.check(self._seals, chain.origin(self._seals, log), lines, sealed)

    def strangers(self, folder: str) -> list[tuple[str, str]]:
        """See `Chained.strangers`: links, pipes, devices, and folders that cannot be read."""
        with _explain("list", folder), self._open(tuple(folder.split("/")) if folder else ()) as opened:
            return [] if opened is None else sorted(_strangers(opened, folder, deep=bool(folder)))

    def blobs(self, folder: str, prefix: str = "") -> list[Blob]:
        """See `Store.blobs`. Lists regular files only."""
        with _explain("list", folder), self._open(tuple(folder.split("/"))) as opened:
            found = [] if opened is None else list(_walk(opened, folder, f"{folder}/{prefix}"))
        return sorted(found, key=lambda blob: blob.key)

    def folders(self, root: str = "") -> list[str]:
        """See `Store.folders`."""
        with _explain("list", root), self._open(tuple(root.split("/")[:-1])) as opened:
            if opened is None:
                return []
            with os.scandir(opened) as items:
                found = {item.name for item in items if item.is_dir(follow_symlinks=False)}
        return sorted(found if root else found - {keys.TENANTS})

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`. Durable on return."""
        touched = set()
        for key in paths:
            parts, name = _split(key)
            touched.add(parts)
            with _explain("delete", key), self._open(parts) as folder:
                if folder is not None:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
        for parts in sorted(touched):
            with _explain("delete", "/".join(parts)), self._open(parts) as folder:
                if folder is not None:
                    self._sync_folder(parts, folder)

    def address(self, key: str) -> str:
        """Return the path of a record, under the root as it was given."""
        return os.path.join(self._shown_root, *key.split("/"))  # noqa: PTH118  # "./x" must not become "x"

    def close(self) -> None:
        """Do nothing: no file stays open between two calls."""

    def _sync_folder(self, parts: tuple[str, ...], folder: int) -> None:
        """Make the names in a folder durable, and know it of those that were waiting for it."""
        logs, has_staged = self._new_logs.pop(parts, set()), parts in self._staged
        self._staged.discard(parts)  # before the call: what is staged meanwhile may come too late for it
        try:
            durable.sync_folder(folder)
        except OSError:
            if has_staged:
                self._staged.add(parts)
            raise
        for name in logs:
            self._durable_logs["/".join((*parts, name))] = True

    @contextmanager
    def _writing(self, key: str, *, durably: bool = True) -> Iterator[tuple[int, str]]:
        """Open the folder of a key. With `durably`, its own name and those above it are durable."""
        parts, name = _split(key)
        with _explain("write", key):
            known = self._folders.get(parts)
            if not known and (durably or known is None):
                self._make_folders(parts, durably)
            with self._open(parts) as folder:
                if folder is None:
                    # Somebody removed the folder after it was made; the next try makes it again.
                    self._folders.clear()
                    raise FileNotFoundError(errno.ENOENT, "the folder was removed meanwhile")
                yield folder, name

    @contextmanager
    def _open(self, parts: tuple[str, ...]) -> Iterator[int | None]:
        """Open a folder component by component from the root. Yields None if it does not exist."""
        opened: list[int] = []
        try:
            try:
                # The root itself may be a link: the operator chose it.
                opened.append(os.open(self.root, os.O_RDONLY | os.O_DIRECTORY))
                for part in parts:
                    opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
            except FileNotFoundError:
                yield None
            else:
                yield opened[-1]
        finally:
            for each in opened:
                os.close(each)

    def _make_folders(self, parts: tuple[str, ...], durably: bool) -> None:
        """Make a folder and its missing parents, and make their names durable.

        A folder that already exists is synced once too, because its maker may have died before doing so.
        """
        _make_root(self.root)
        for depth, name in enumerate(parts):
            known = self._folders.get(parts[: depth + 1])
            if known or (known is False and not durably):
                continue
            with self._open(parts[:depth]) as above:
                if above is None:
                    raise FileNotFoundError(errno.ENOENT, "the folder was removed meanwhile")
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=above)
                if durably:
                    self._sync_folder(parts[:depth], above)
            self._folders[parts[: depth + 1]] = durably


def _make_root(root: Path) -> None:
    try:
        os.mkdir(root, 0o700)  # noqa: PTH102  # all system calls of the archive go through `os`, see its tests
    except FileExistsError:
        return
    except FileNotFoundError:
        if root.parent == root:
            raise
        _make_root(root.parent)
        with suppress(FileExistsError):
            os.mkdir(root, 0o700)  # noqa: PTH102
    if root.parent.name == _OWN_FOLDER:
        _hide_from_git(root.parent)
    above = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        durable.sync_folder(above)
    finally:
        os.close(above)


def _hide_from_git(folder: Path) -> None:
    """Transcripts do not belong into a repository. Whoever wants them there removes the file, and it is not made again."""
    with suppress(OSError):  # it is a courtesy: nothing depends on it
        made = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(made, b"*\n")
        finally:
            os.close(made)


def _split(key: str) -> tuple[tuple[str, ...], str]:
    *parts, name = key.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in (*parts, name)):
        raise ArchiveError(f"not a key of the archive: {key!r:.200}", key=key, reason="outside")
    return tuple(parts), name


def _walk(folder: int, path: str, prefix: str) -> Iterator[Blob]:
    with os.scandir(folder) as items:
        for item in items:
            key = f"{path}/{item.name}"
            if not (key.startswith(prefix) or prefix.startswith(f"{key}/")):
                continue
            with suppress(FileNotFoundError):  # removed since the folder was read
                status = item.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield Blob(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
                elif stat.S_ISDIR(status.st_mode):
                    try:
                        below = os.open(item.name, _FOLDER, dir_fd=folder)
                    except PermissionError:
                        continue  # `verify` reports it; what lies beside it can be read
                    try:
                        yield from _walk(below, key, prefix)
                    finally:
                        os.close(below)


def _strangers(folder: int, path: str, *, deep: bool) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as items:
        for item in items:
            key = f"{path}/{item.name}" if path else item.name
            mode = item.stat(follow_symlinks=False).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield key, f"it is {_KINDS.get(stat.S_IFMT(mode), 'no file')}, and the archive makes none"
            elif deep and stat.S_ISDIR(mode):
                try:
                    below = os.open(item.name, _FOLDER, dir_fd=folder)
                except OSError as problem:
                    yield key, f"the folder cannot be read: {problem.strerror}"
                    continue
                try:
                    yield from _strangers(below, key, deep=True)
                finally:
                    os.close(below)


@contextmanager
def _explain(action: str, key: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        number = problem.errno or 0
        name = errno.errorcode.get(number, type(problem).__name__)
        raise ArchiveError(
            f"could not {action} {key or 'the archive'}: {problem.strerror or problem} ({name})",
            hint=_HINTS.get(number, "Check the archive's root and try again"),
            key=key,
            errno=number,
            reason="io",
        ) from problem
