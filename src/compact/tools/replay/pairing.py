"""Which session of one report is which of another, when their files may lie in different folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

Session = Mapping[str, Any]
Parts = tuple[str, ...]


def named(
    before: Sequence[Session], after: Sequence[Session]
) -> tuple[dict[str, Session], dict[str, Session]]:
    """The sessions of two reports by file and session; what is the same session has the same name.

    Of each report's paths the leading folders that all of them share may be left out: as few as let the most files agree.
    """
    old, new = [_parts(one) for one in before], [_parts(one) for one in after]
    old_files, new_files = set(old), set(new)
    best, chosen = -1, (0, 0)
    for cuts in sorted(_cuts(old_files, new_files), key=lambda cuts: (sum(cuts), cuts)):
        agreed = len({file[cuts[0] :] for file in old_files} & {file[cuts[1] :] for file in new_files})
        if agreed > best:
            best, chosen = agreed, cuts
    return _by_name(before, old, chosen[0]), _by_name(after, new, chosen[1])


def same_artifacts(wanted: Session, sessions: Sequence[Session]) -> int | None:
    """The place of the only session that is made of the same artifacts; the only one at all if there is but one."""
    if len(sessions) == 1:
        return 0
    found = [place for place, one in enumerate(sessions) if _artifacts(one) == _artifacts(wanted)]
    return found[0] if len(found) == 1 else None


def _parts(session: Session) -> Parts:
    return PurePath(session["file"]).parts


def _cuts(old: set[Parts], new: set[Parts]) -> Iterator[tuple[int, int]]:
    for a in range(_shared(old) + 1):
        for b in range(_shared(new) + 1):
            yield a, b


def _shared(files: set[Parts]) -> int:
    """How many leading folders all files have in common."""
    folders = [file[:-1] for file in files]
    count = 0
    for level in zip(*folders, strict=False):
        if len(set(level)) > 1:
            break
        count += 1
    return count


def _by_name(sessions: Sequence[Session], files: Sequence[Parts], cut: int) -> dict[str, Session]:
    found: dict[str, Session] = {}
    times: Counter[str] = Counter()
    for session, parts in zip(sessions, files, strict=True):
        name = f"{PurePath(*parts[cut:])}: {session['session']}"
        times[name] += 1
        found[name if times[name] == 1 else f"{name} ({times[name]})"] = session
    return found


def _artifacts(session: Session) -> list[str]:
    return sorted(str(line.get("id")) for line in (*session["kept"], *session["dropped"]))
