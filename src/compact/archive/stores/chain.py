"""The chain of a log: every append is sealed together with everything before it.

Beside a log `events.jsonl` lies `seals-events.jsonl`. For each append it has two lines, and the append lies between them:

    {"at": 512, "bytes": 340, "after": SEAL, "seal": SEAL}     before: these bytes are going to follow
    +                                                          after: they are all there

A process that is killed in between leaves the first line alone, and then the bytes may be missing. Nothing else may. So an
emptied, shortened, edited or reordered log is noticed, and so are lines that no append wrote. Whoever appends next goes on
after what is there and leaves the seals as they are: what was lost stays noticed.

A log that is older than its chain is called unchained up to the first seal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compact.archive.seals import Seals

TAIL_BYTES = 4096
"""Enough for several seals."""
DONE = b"+\n"


class LogHead(NamedTuple):
    """How far a log went at some moment: its length (in an object store: its segments), and the seal of all of it."""

    place: int
    seal: str


@dataclass(slots=True)
class LogCheck:
    """What a chain says about its log."""

    is_chained: bool = True
    problems: list[str] = field(default_factory=list)
    heads: dict[int, str] = field(default_factory=dict)
    """The seals by the places where they end."""

    def lacks(self, head: LogHead) -> bool:
        """Return whether a state has seen the log at a place where it never was."""
        return self.heads.get(head.place) != head.seal


class _Seal(NamedTuple):
    at: int
    bytes: int
    after: str
    seal: str
    is_done: bool

    @property
    def end(self) -> int:
        return self.at + self.bytes

    def is_given_up_for(self, follower: _Seal) -> bool:
        """Whether its writer died before the log had its bytes, so that another append took its place."""
        return not self.is_done and (self.at, self.after) == (follower.at, follower.after)


def seals_name(log: str) -> str:
    """Return the name of the file with the seals of a log."""
    folder, slash, name = log.rpartition("/")
    return f"{folder}{slash}seals-{name}"


def origin(seals: Seals, log: str) -> str:
    """Return what the first seal of a log comes after. It names the log, so that no other log can take its place."""
    return seals.seal(b"compact log", log.encode("utf-8", "surrogatepass"))


def continue_from(tail: bytes, size: int, first: str) -> tuple[int, str]:
    """Return where the next append begins and which seal it comes after.

    `tail` is the end of the file of seals, `size` the length of the log in whole lines. A batch that was not acknowledged
    and is not whole begins again.
    """
    found = list(_read(tail))
    if not found:
        return size, first
    last = found[-1]
    if last.is_done or size >= last.end:
        return size, last.seal
    return (last.at, last.after) if size >= last.at else (size, last.after)


def seal_line(seals: Seals, at: int, after: str, data: bytes) -> bytes:
    """Return the line that announces an append."""
    return _line(at, len(data), after, seals.seal(after.encode(), data))


def _line(at: int, size: int, after: str, seal: str) -> bytes:
    return json.dumps({"at": at, "bytes": size, "after": after, "seal": seal}).encode() + b"\n"


def head_of(tail: bytes) -> LogHead | None:
    """Return how far a log certainly goes by its last seals; None if they do not say it."""
    found = [seal for seal in _read(tail) if seal.is_done]
    return LogHead(found[-1].end, found[-1].seal) if found else None


def check(seals: Seals, first: str, log: bytes, chain: bytes | None) -> LogCheck:
    """Compare a log with its seals."""
    found = LogCheck(is_chained=chain is not None)
    if chain is None:
        return found
    place, head = 0, first
    made = list(_read(chain, found.problems))
    for number, seal in enumerate(made):
        if number + 1 < len(made) and seal.is_given_up_for(made[number + 1]):
            continue
        if seal.after != head:
            found.problems.append(f"the seals at byte {seal.at:,} do not follow those before")
        if seal.at < place:
            found.problems.append(f"bytes {seal.at:,} to {place:,} were written and are gone")
        elif seal.at > place and number:
            found.problems.append(f"no append wrote bytes {place:,} to {seal.at:,}")
        is_torn = number + 1 == len(made) and not seal.is_done and len(log) < seal.end
        if is_torn and len(log) >= seal.at:
            # Its writer was killed. Nobody was told that these bytes are there, and the next append removes the rest.
            place = len(log)
            break
        if len(log) < seal.end:
            found.problems.append(f"it ends at byte {len(log):,}: bytes up to {made[-1].end:,} were written")
            break
        if not seals.is_seal(seal.seal, seal.after.encode(), log[seal.at : seal.end]):
            found.problems.append(f"bytes {seal.at:,} to {seal.end:,} are not as they were written")
        place, head = seal.end, seal.seal
        found.heads[place] = head
    if not made and log:
        found.problems.append("its seals are gone")
    elif len(log) > max(place, made[-1].end if made else 0):
        found.problems.append(f"no append wrote what follows byte {place:,}")
    return found


def _read(lines: bytes, problems: list[str] | None = None) -> Iterator[_Seal]:
    """Read seals. A torn last line is left out, and so is the first one of a tail, which may begin anywhere."""
    whole = lines.split(b"\n")[:-1]
    for number, line in enumerate(whole):
        if line + b"\n" == DONE:
            continue
        seal = _parse(line, is_done=number + 1 < len(whole) and whole[number + 1] + b"\n" == DONE)
        if seal is not None:
            yield seal
        elif problems is not None:
            problems.append(f"line {number + 1} of its seals cannot be read")


def _parse(line: bytes, *, is_done: bool) -> _Seal | None:
    try:
        given: Any = json.loads(line)
        at, size, after, seal = (given[name] for name in ("at", "bytes", "after", "seal"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if (
        type(at) is int
        and type(size) is int
        and min(at, size) >= 0
        and isinstance(after, str)
        and isinstance(seal, str)
    ):
        return _Seal(at, size, after, seal, is_done)
    return None
