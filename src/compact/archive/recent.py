"""What an archive remembers about sessions it wrote to lately: bounded, since a server sees many."""

from __future__ import annotations

from typing import TypeVar

V = TypeVar("V")

SESSIONS = 1024


class Recent(dict[str, V]):
    """A dict that forgets its oldest entry when it gets too large.

    What the store knows is looked up there again. What only the entry knew is lost: an archive that makes the sessions'
    redactors itself starts a forgotten session with a fresh one, which has yet to learn the values that the old one
    had seen as secrets. A host that needs them for longer keeps the redactors and gives them by `session_redactor`.
    """

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > SESSIONS:
            for oldest in list(self)[: len(self) - SESSIONS]:
                self.pop(oldest, None)  # another thread may have been quicker
