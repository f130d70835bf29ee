"""Lines of the logger `compact` for the events that people look for first."""

from __future__ import annotations

import logging
from collections.abc import Callable

from compact.events import Failure, Finished, Properties, Recovery, Started, Warned

log = logging.getLogger("compact")
log.addHandler(logging.NullHandler())  # stay silent unless the host configures logging
_ID_CHARS = 120
LOGGED = (Started, Finished, Failure, Warned, Recovery)
"""The start and the end of a pass, failures, warnings and recoveries."""


def log_event(session_id: str, properties: Properties, redact: Callable[[str], str]) -> None:
    """Log a `LOGGED` event as one line, with secrets masked."""
    level, text = _line(properties)
    if log.isEnabledFor(level):
        log.log(level, "%s", _one_line(redact(f"session {_shortened(session_id)}: {text}")))


def _shortened(session_id: str) -> str:
    return session_id if len(session_id) <= _ID_CHARS else f"{session_id[:_ID_CHARS]}…"


def _one_line(text: str) -> str:
    """Escape what could control a terminal, forge another line, or not be encoded: ids and error texts come from outside."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _line(properties: Properties) -> tuple[int, str]:
    match properties:
        case Started():
            return logging.INFO, f"compaction started ({properties.reason})"
        case Finished():
            went_well = properties.outcome not in ("failed", "timeout")
            size = f"{properties.tokens_before:,} -> {properties.tokens_after:,} tokens"
            text = f"compaction ended after {properties.duration_ms:,.0f} ms: {properties.outcome}, {size}"
            return logging.INFO if went_well else logging.WARNING, text
        case Failure():
            return (
                logging.WARNING,
                f"{properties.error_type}, fallback {properties.fallback}: {properties.message}",
            )
        case Warned():
            return (
                logging.INFO if properties.severity == "low" else logging.WARNING,
                f"{properties.code}: {properties.message}",
            )
        case Recovery():
            limit = "" if properties.learned_limit is None else f", limit {properties.learned_limit:,} tokens"
            return (
                logging.WARNING,
                f"context overflow, attempt {properties.attempt}: {properties.action}{limit}",
            )
    raise AssertionError(f"no line for {type(properties).__name__}")
