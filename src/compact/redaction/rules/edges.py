"""Where a token may start and end in a text that has escapes, codes and encodings in it."""

from __future__ import annotations

import re

_ESCAPES = "|".join(
    (
        r"\\[abefnrtv]",
        r"\\[0-7]{1,3}",
        r"\\x[0-9A-Fa-f]{2}",
        r"\\u[0-9A-Fa-f]{4}",
        r"\\U[0-9A-Fa-f]{8}",
        r"%(?:25)?[0-9A-Fa-f]{2}",
        r"%u[0-9A-Fa-f]{4}",
        r"=[0-9A-F]{2}",
        r"&(?:#x?[0-9A-Fa-f]{1,6}|quot|apos|lt|gt|amp|nbsp)",
        r"\[(?:[0-9;:?]{1,24}[A-Za-z]|[mK])",
    )
)
"""Ways to write a character that end in a letter or a digit: escapes of strings, addresses, mail and HTML, colour codes."""
WORD_START = rf"(?:\b|_|{_ESCAPES})"
"""RE2 syntax. A plain word boundary would miss a word behind `\\n`, `%20` or `_`."""
WORD_END = r"(?:\b|_)"
_ENDS_IN_ESCAPE = re.compile(rf"(?:{_ESCAPES})\Z")
_LONGEST_ESCAPE = 27
_RUN_BEFORE = re.compile(r"[A-Za-z0-9+/]{15,63}[A-Za-z0-9+]\Z")
_RUN_CHARS = 64
_RUN_AFTER = re.compile(r"[A-Za-z0-9_-]*")


def is_glued(text: str, start: int) -> bool:
    """Whether the character at `start` continues a word. A word does not go on behind an escape."""
    before = text[start - 1 : start]
    if not (before.isascii() and before.isalnum()):
        return False
    return _ENDS_IN_ESCAPE.search(text, max(0, start - _LONGEST_ESCAPE), start) is None


def run_before(text: str, start: int) -> str:
    """The end of the base64 data that leads up to `start`; empty if it is short. A slash may part two pieces of a path."""
    run = _RUN_BEFORE.search(text, max(0, start - _RUN_CHARS), start)
    return run.group() if run else ""


def end_of_run(text: str, end: int) -> int:
    """Where the letters, digits, underscores and hyphens that follow directly come to an end."""
    run = _RUN_AFTER.match(text, end)
    return run.end() if run else end
