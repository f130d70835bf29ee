"""What an archive remembers about sessions it wrote to lately: bounded, since a server sees many."""

from __future__ import annotations

from typing import TypeVar

V = TypeVar("V")

SESSIONS = 1024


class Recent(dict[str, V]):
    """A dict that forgets its oldest entry when it gets too large. Forgetting costs a look at the store, no more."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > SESSIONS:
            for oldest in list(self)[: len(self) - SESSIONS]:
                self.pop(oldest, None)  # another thread may have been quicker
