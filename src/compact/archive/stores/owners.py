"""Who made a temporary file, and whether that process still lives.

The file's name says so. It is valid only on the same machine, since the same boot, and in the same process namespace.
Anywhere else nobody can know, and the file's age decides.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path

_MARK = re.compile(r"\.(?:attempt|tmp)-(?P<attempt>(?P<owner>[0-9a-f]{8}-\d+-\d+)-\d+)(?:-|$)", re.ASCII)
_numbers = itertools.count(1)


def unique_id() -> str:
    """Return an id that no other process and no other call makes: machine, process, its start, a number."""
    return f"{current()}-{next(_numbers)}"


def current() -> str:
    """Return this process as an owner. A forked child gets another answer, because the process id is part of it."""
    return owner_of(os.getpid())


def attempt_in(name: str) -> str | None:
    """Return the attempt that made a hidden file, read from its name; None if the name carries none."""
    match = _MARK.match(name.rpartition("/")[2])
    return match["attempt"] if match else None


def is_gone(attempt: str) -> bool:
    """Return whether the process that made an attempt has certainly ended."""
    owner = attempt.rpartition("-")[0]
    machine, pid, start = owner.split("-")
    if machine != _machine():
        return False
    return _start_of(int(pid)) != start if start != "0" else not _exists(int(pid))


@cache
def owner_of(pid: int) -> str:
    """Return a process of this machine as an owner: machine, process, its start."""
    return f"{_machine()}-{pid}-{_start_of(pid) or 0}"


@cache
def _machine() -> str:
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii"))
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115  # not a path, but "pid:[4026531836]"
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def _start_of(pid: int) -> str | None:
    """Return when a process began, in kernel ticks; None if it does not run or there is no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("latin-1")
    except OSError:
        return None
    # The second field is the program's name in brackets, which may itself contain brackets and spaces.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return None if state in "ZX" else start


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it exists, but belongs to another user
    return True
