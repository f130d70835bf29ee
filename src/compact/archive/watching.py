"""What is new in the event logs, look by look. For whoever watches sessions while they run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from compact.archive.reading import Reader
from compact.errors import ArchiveError

_MANY = 50
"""In an archive of more sessions than this, those that have been quiet for a while are looked at less often."""
_QUIET_LOOKS = 300
_SELDOM = 10


@dataclass(frozen=True, slots=True)
class News:
    """Lines that a session's log did not have at the last look. `first` is the number of the first one, from 0."""

    folder: str
    session_id: str
    first: int
    lines: list[bytes]


@dataclass(slots=True)
class _Known:
    session_id: str
    size: int = 0
    lines: int = 0
    quiet: int = 0
    """Looks in a row that found nothing new."""


class LogWatcher:
    """Looks at the logs of an archive again and again, and tells what is new. For one thread."""

    def __init__(self, archive: Reader, folders: Iterable[str] | None = None) -> None:
        self._archive = archive
        self._only = None if folders is None else list(folders)
        self._known: dict[str, _Known] = {}
        self._looks = 0

    def look(self) -> list[News]:
        """What came since the last look, folder by folder. A log that cannot be read now is looked at the next time.

        Raises:
            ArchiveError: the archive cannot be listed.
        """
        folders = self._archive.folders() if self._only is None else self._only
        found = []
        self._looks += 1
        for place, folder in enumerate(folders):
            if len(folders) > _MANY and self._may_wait(folder, place):
                continue
            with suppress(ArchiveError):
                news = self._news(folder)
                if news is not None:
                    found.append(news)
        return found

    def _may_wait(self, folder: str, place: int) -> bool:
        known = self._known.get(folder)
        return known is not None and known.quiet > _QUIET_LOOKS and (self._looks + place) % _SELDOM != 0

    def _news(self, folder: str) -> News | None:
        known = self._known.get(folder)
        if known is None:
            session_id = self._archive.session_in(folder)
            if session_id is None:
                return None
            known = self._known[folder] = _Known(session_id)
            is_new = True
        else:
            is_new = False
        size = self._archive.log_size(folder)
        if size == known.size and not is_new:
            known.quiet += 1
            return None
        known.quiet = 0
        lines = self._archive.event_lines(folder)
        first = known.lines
        if len(lines) < first:
            first = 0  # the folder was removed and made anew: it is another log
        known.size, known.lines = size, len(lines)
        # The first look tells of a session even if it has no event yet.
        return News(folder, known.session_id, first, lines[first:]) if is_new or lines[first:] else None
