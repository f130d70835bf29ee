"""The write sequence: the system calls after which a record is there, whole, and survives power loss.

    new file      open O_EXCL|O_NOFOLLOW 0600, write all, fsync, close        under a hidden name
    its name      link(2) to the final name                                   exclusive: an existing name is never replaced
    clean up      unlink the hidden name, fsync the folder

A crash before the link leaves a hidden file that is swept later; a crash after it leaves the whole record. A linked name is
never taken back, because another process may already have built on it. If the folder's fsync then fails, the write is
reported as failed, and whatever is visible is whole.

A copy is written in the same way, but nothing is synced. A killed process leaves it whole or not at all; a machine that
loses its power may leave a part of it.

Every function works on an open folder and raises OSError, which `compact.archive.stores.files` turns into ArchiveError.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import time
from contextlib import suppress

from compact.archive import keys
from compact.archive.seals import Seals
from compact.archive.stores import chain

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
# Without O_NONBLOCK, opening a pipe that somebody put there would wait forever.
_EXISTING = os.O_NOFOLLOW | os.O_NONBLOCK
_LOG = os.O_RDWR | os.O_CREAT | os.O_APPEND | _EXISTING
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
_NOT_REPLACING = 1  # RENAME_NOREPLACE
LARGEST_FILE = 1 << 30
"""Bytes. No record comes near it, and a file with a hole of a terabyte must not fill the memory."""
_BLOCK = 65536
_LOCK_PAUSE_S = 0.002


def write_new(folder: int, name: str, data: bytes, *, synced: bool = True) -> None:
    """Write all of `data` to a new file and sync it. Its name is durable after `sync_folder`."""
    file = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        try:
            _write_all(file, data)
            if synced:
                os.fsync(file)
        finally:
            os.close(file)
    except BaseException:
        # After a failed fsync the kernel counts the pages as clean, so a second fsync would lie. Give the file up.
        discard(folder, name)
        raise


def create(folder: int, name: str, data: bytes, *, synced: bool = True) -> bool:
    """Write a record under its final name, which `sync_folder` makes durable. Returns False if the name is taken."""
    hidden = f".tmp-{keys.unique_id()}"
    write_new(folder, hidden, data, synced=synced)
    try:
        return give_name(folder, hidden, name)
    finally:
        discard(folder, hidden)


def give_name(folder: int, hidden: str, name: str) -> bool:
    """Link the file `hidden` to `name`. Returns False if the name is taken."""
    try:
        os.link(hidden, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_HARD_LINKS:
            raise
        return _rename_to_new(folder, hidden, name, problem)
    return True


def publish(folder: int, hidden: str, name: str) -> None:
    """Give a staged file its final name, unless somebody already did.

    It is renamed, so that at any moment, and after any crash, it has one of the two names. Only whoever has its step's
    state may call this, so nobody else makes that name meanwhile.
    """
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        try:
            os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileNotFoundError:
            os.stat(name, dir_fd=folder, follow_symlinks=False)  # raises if the record has neither name
        return
    try:
        staged = os.stat(hidden, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not os.path.samestat(there, staged):
        # Keep the staged file: it is the record, and the file under its name is not.
        raise FileExistsError(errno.EEXIST, "another file has its name")
    discard(folder, hidden)  # linked by an earlier version that was killed before it removed the hidden name


def replace(folder: int, name: str, data: bytes) -> None:
    """Replace a record by a new one atomically."""
    hidden = f".tmp-{keys.unique_id()}"
    write_new(folder, hidden, data)
    try:
        os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        discard(folder, hidden)
        raise
    sync_folder(folder)


def append(folder: int, name: str, data: bytes, lock_timeout_s: float, seals: Seals, origin: str) -> bool:
    """Add whole lines to a log in one write, and to its chain. Returns True if a torn end had to be cut off first.

    Writers lock the file, and the kernel drops the lock when its holder dies. The file is opened anew each time, because
    a descriptor shared through fork would share the lock too.
    """
    file = os.open(name, _LOG, 0o600, dir_fd=folder)
    try:
        _lock(file, fcntl.LOCK_EX, lock_timeout_s)
        end = _regular_size(file)
        sealed = os.open(chain.seals_name(name), _LOG, 0o600, dir_fd=folder)
        try:
            at, after = chain.continue_from(_tail(sealed), _end_of_last_line(file, end), origin)
            if at < end:
                os.ftruncate(file, at)
            _write_all(sealed, chain.seal_line(seals, at, after, data))
            try:
                _write_all(file, data)
                _write_all(sealed, chain.DONE)
            except BaseException:
                with suppress(OSError):  # the next writer cuts off what stays
                    os.ftruncate(file, at)
                raise
        finally:
            os.close(sealed)
    finally:
        os.close(file)
    return at < end


def read_chained(folder: int, name: str, lock_timeout_s: float) -> tuple[bytes, bytes | None]:
    """Return a log and its chain as they were at one moment. A writer that holds the lock for long is not waited for."""
    try:
        file = os.open(name, os.O_RDONLY | _EXISTING, dir_fd=folder)
    except FileNotFoundError:
        return b"", read(folder, chain.seals_name(name))
    try:
        _regular_size(file)
        with suppress(TimeoutError):
            _lock(file, fcntl.LOCK_SH, lock_timeout_s)
        return _read_all(file), read(folder, chain.seals_name(name))
    finally:
        os.close(file)


def read_tail(folder: int, name: str) -> bytes:
    """Return the last seals of a log; empty if it has none."""
    try:
        file = os.open(chain.seals_name(name), os.O_RDONLY | _EXISTING, dir_fd=folder)
    except FileNotFoundError:
        return b""
    try:
        end = _regular_size(file)
        return os.pread(file, chain.TAIL_BYTES, max(0, end - chain.TAIL_BYTES))
    finally:
        os.close(file)


def read(folder: int, name: str) -> bytes | None:
    """Return the content of a file, or None if there is none."""
    try:
        file = os.open(name, os.O_RDONLY | _EXISTING, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        _regular_size(file)
        return _read_all(file)
    finally:
        os.close(file)


def sync(folder: int, *names: str) -> None:
    """Make existing files durable, no matter which process wrote them. Missing ones are skipped."""
    for name in names:
        try:
            file = os.open(name, os.O_RDONLY | _EXISTING, dir_fd=folder)
        except FileNotFoundError:
            continue
        try:
            os.fsync(file)
        finally:
            os.close(file)


def sync_folder(folder: int) -> None:
    """Make the names in a folder durable."""
    try:
        os.fsync(folder)
    except OSError as problem:
        # EINVAL: this filesystem cannot sync a folder, so it has no guarantee to give and no error to report.
        if problem.errno != errno.EINVAL:
            raise


def discard(folder: int, name: str) -> None:
    """Remove a hidden file if possible. What stays is swept when its owner is gone."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _regular_size(file: int) -> int:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return status.st_size


def _read_all(file: int) -> bytes:
    size = os.fstat(file).st_size
    if size > LARGEST_FILE:
        raise OSError(errno.EFBIG, f"{size:,} bytes are more than any record has")
    pieces = []
    while piece := os.read(file, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _tail(sealed: int) -> bytes:
    """Return the last seals. A line that its writer could not finish is removed first: its append did not begin."""
    end = _regular_size(sealed)
    whole = _end_of_last_line(sealed, end)
    if whole < end:
        os.ftruncate(sealed, whole)
    return os.pread(sealed, chain.TAIL_BYTES, max(0, whole - chain.TAIL_BYTES))


def _end_of_last_line(file: int, end: int) -> int:
    while end:
        start = max(0, end - _BLOCK)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _lock(file: int, kind: int, timeout_s: float) -> None:
    give_up = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise TimeoutError(
                    errno.ETIMEDOUT, f"another process held the lock for {timeout_s:g} s"
                ) from None
            time.sleep(_LOCK_PAUSE_S)
        else:
            return


def _rename_to_new(folder: int, hidden: str, name: str, refused: OSError) -> bool:
    """Keep the same promise on filesystems without hard links: rename without replacing (Linux only)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        raise refused from None
    if not rename(folder, os.fsencode(hidden), folder, os.fsencode(name), _NOT_REPLACING):
        return True
    if ctypes.get_errno() == errno.EEXIST:
        return False
    raise refused
