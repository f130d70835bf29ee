"""The words by which compact knows its own writing again. They are part of what a model sees: they never change."""

from __future__ import annotations

import hashlib

SUMMARY_OPENS = "<COMPACT-SUMMARY v"
"""How a summary message begins, followed by the number of its step."""
POINTER_OPENS = "[compact: "
"""How a pointer to something in the archive begins."""
RECOVERY_OPENS = "[compact recovery] "
"""How the answer of a recovery tool begins."""
GAP = "[earlier messages are not shown]"
"""Stands between two messages of one role where a dialect wants roles to alternate."""
RECOVERY_CHARS = 100_000
"""No answer of a recovery tool is longer, whatever its limits."""


def is_pointer(text: str) -> bool:
    """Whether a text is a pointer that compact left in the place of something."""
    return text.startswith(POINTER_OPENS)


def is_recovery_output(text: str) -> bool:
    """Whether a text is the answer of a recovery tool: it is never moved to the archive again.

    Anybody can write the opening; only the tools keep their answers short.
    """
    return text.startswith(RECOVERY_OPENS) and len(text) <= RECOVERY_CHARS


def text_hash(text: str) -> str:
    """The hash by which a summary of ours is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
