"""The markers by which compact recognises its own text. Models see them, so they never change."""

from __future__ import annotations

import hashlib

SUMMARY_OPENS = "<COMPACT-SUMMARY v"
"""The start of a summary message, followed by the number of its step."""
POINTER_OPENS = "[compact: "
"""The start of a pointer into the archive."""
RECALL_OPENS = "[compact recovery] "
"""The start of a recall tool's answer."""
GAP = "[earlier messages are not shown]"
"""The text between two messages of the same role, in dialects where roles must alternate."""
RECALL_CHARS = 100_000
"""The maximum length of a recall tool's answer, whatever its limits."""


def is_pointer(text: str) -> bool:
    """Whether a text is a pointer that compact put in place of something."""
    return text.startswith(POINTER_OPENS)


def is_recall_output(text: str) -> bool:
    """Whether a text is a recall tool's answer, which is never moved to the archive again.

    Any text can begin like one, so the length is checked too.
    """
    return text.startswith(RECALL_OPENS) and len(text) <= RECALL_CHARS


def text_hash(text: str) -> str:
    """The hash by which compact recognises its own summaries."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
