"""A bounded memory of the sessions that an archive has served."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
MOST_SESSIONS = 1024


class Recent(dict[K, V]):
    """A dict that forgets its oldest entry when it gets too large, because a server sees many sessions.

    What the store knows is looked up again, and so is what the session's redactor has learned.
    """

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        for oldest in list(self)[: max(0, len(self) - MOST_SESSIONS)]:
            self.pop(oldest, None)  # another thread may have been quicker
