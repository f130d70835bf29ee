"""A folder tree on a local disk, addressed by keys, in which no symbolic link is ever followed.

Keys become open folders here, and OSError becomes ArchiveError. What makes a write durable is in
`compact.archive.stores.durable`. Nothing stays open between two calls, so a tree may be used from any thread and after a fork.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from compact.archive.protocol import Entry
from compact.archive.stores import durable
from compact.errors import ArchiveError

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


class Tree:
    """Durable files under one root. Folders are made 0700 and files 0600 as they are needed."""

    def __init__(self, root: str | os.PathLike[str], *, lock_timeout_s: float = 5.0) -> None:
        self.root = Path(root).absolute()  # a host may change its working folder later
        self._lock_timeout_s = lock_timeout_s
        self._durable_folders: set[tuple[str, ...]] = set()

    def stage(self, key: str, data: bytes) -> None:
        """A new file, durable under a hidden name."""
        with self._writing(key) as (folder, name):
            durable.write_new(folder, name, data)
            durable.sync_folder(folder)

    def publish(self, moves: Sequence[tuple[str, str]]) -> None:
        """Gives staged files their final names. Moves that were already made are passed over."""
        by_folder: dict[str, list[tuple[str, str]]] = {}
        for source, target in moves:
            by_folder.setdefault(target.rpartition("/")[0], []).append((source, target))
        for group in by_folder.values():
            hidden = [source.rpartition("/")[2] for source, _ in group]
            with self._writing(group[0][1]) as (folder, _):
                for name, (_, target) in zip(hidden, group, strict=True):
                    durable.publish(folder, name, target.rpartition("/")[2])
                durable.sync_folder(folder)
                for name in hidden:
                    durable.discard(folder, name)

    def create(self, key: str, data: bytes) -> bool:
        """The file, durable; False when the name is taken. Then that file is durable too."""
        with self._writing(key) as (folder, name):
            if durable.create(folder, name, data):
                return True
            durable.sync(folder, name)
            return False

    def replace(self, key: str, data: bytes) -> None:
        """A new file in the place of an old one, durable."""
        with self._writing(key) as (folder, name):
            durable.replace(folder, name, data)

    def append(self, key: str, lines: bytes) -> bool:
        """Adds lines to a log; True when a torn last line had to be cut off first."""
        with self._writing(key) as (folder, name):
            return durable.append(folder, name, lines, self._lock_timeout_s)

    def sync(self, key: str) -> None:
        """Makes all that was appended durable."""
        with self._writing(key) as (folder, name):
            durable.sync(folder, name)

    def read(self, key: str) -> bytes | None:
        """The file, or None when there is none."""
        parts, name = _split(key)
        with _explained("read", key), self._open(parts) as folder:
            return None if folder is None else durable.read(folder, name)

    def entries(self, folder: str, prefix: str = "") -> list[Entry]:
        """The regular files of a folder and of its subfolders whose path in it starts with `prefix`, sorted."""
        with _explained("list", folder), self._open((folder,)) as opened:
            found = [] if opened is None else list(_walk(opened, folder, f"{folder}/{prefix}"))
        return sorted(found, key=lambda entry: entry.key)

    def folders(self) -> list[str]:
        """The folders directly under the root, sorted."""
        with _explained("list", ""), self._open(()) as root:
            if root is None:
                return []
            with os.scandir(root) as items:
                return sorted(item.name for item in items if item.is_dir(follow_symlinks=False))

    def delete(self, keys: Iterable[str]) -> None:
        """Removes files, durably; those that are not there are passed over."""
        touched = set()
        for key in keys:
            parts, name = _split(key)
            touched.add(parts)
            with _explained("delete", key), self._open(parts) as folder:
                if folder is not None:
                    try:
                        os.unlink(name, dir_fd=folder)
                    except FileNotFoundError:
                        continue
        for parts in sorted(touched):
            with _explained("delete", "/".join(parts)), self._open(parts) as folder:
                if folder is not None:
                    durable.sync_folder(folder)

    @contextmanager
    def _writing(self, key: str) -> Iterator[tuple[int, str]]:
        parts, name = _split(key)
        with _explained("write", key):
            if parts not in self._durable_folders:
                self._make_folders(parts)
                self._durable_folders.add(parts)
            with self._open(parts) as folder:
                if folder is None:
                    # Somebody removed the folder after it was made; the next try makes it again.
                    self._durable_folders.discard(parts)
                    raise FileNotFoundError(errno.ENOENT, "the folder was removed meanwhile")
                yield folder, name

    @contextmanager
    def _open(self, parts: tuple[str, ...]) -> Iterator[int | None]:
        """The folder, opened link by link from the root; None when it does not exist."""
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

    def _make_folders(self, parts: tuple[str, ...]) -> None:
        """Makes a folder and what is missing above it, and makes their names durable.

        A folder that is already there is synced too, once: whoever made it may have died before doing so.
        """
        _make_root(self.root)
        for depth, name in enumerate(parts):
            with self._open(parts[:depth]) as above:
                if above is None:
                    raise FileNotFoundError(errno.ENOENT, "the folder was removed meanwhile")
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=above)
                durable.sync_folder(above)


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
    above = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        durable.sync_folder(above)
    finally:
        os.close(above)


def _split(key: str) -> tuple[tuple[str, ...], str]:
    *parts, name = key.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in (*parts, name)):
        raise ArchiveError(f"not a key of the archive: {key!r:.200}", key=key, reason="outside")
    return tuple(parts), name


def _walk(folder: int, path: str, prefix: str) -> Iterator[Entry]:
    with os.scandir(folder) as items:
        for item in items:
            key = f"{path}/{item.name}"
            status = _status(item)
            if status is None or not (key.startswith(prefix) or prefix.startswith(f"{key}/")):
                continue
            if stat.S_ISREG(status.st_mode):
                yield Entry(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
            elif stat.S_ISDIR(status.st_mode):
                yield from _walk_below(folder, item.name, key, prefix)


def _walk_below(folder: int, name: str, path: str, prefix: str) -> Iterator[Entry]:
    below = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield from _walk(below, path, prefix)
    finally:
        os.close(below)


def _status(item: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return item.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed since the folder was read
        return None


@contextmanager
def _explained(action: str, key: str) -> Iterator[None]:
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
