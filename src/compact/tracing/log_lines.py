"""The events that people look for first, as lines of the logger `compact`."""

from __future__ import annotations

import logging
from collections.abc import Callable

from compact.events import Failure, Finished, Properties, Recovery, Started, Warned

log = logging.getLogger("compact")
log.addHandler(logging.NullHandler())  # a host that configured no logging is not written to
LOGGED = (Started, Finished, Failure, Warned, Recovery)
"""The start and the end of a pass, failures, warnings and recoveries."""


def log_event(session_id: str, properties: Properties, redact: Callable[[str], str]) -> None:
    """A line for an event that is `LOGGED`, without secrets."""
    level, text = _line(properties)
    if log.isEnabledFor(level):
        log.log(level, "%s", redact(f"session {session_id}: {text}"))


def _line(told: Properties) -> tuple[int, str]:
    match told:
        case Started():
            return logging.INFO, f"compaction started ({told.reason})"
        case Finished():
            went_well = told.outcome not in ("failed", "timeout")
            size = f"{told.tokens_before:,} -> {told.tokens_after:,} tokens"
            text = f"compaction ended after {told.duration_ms:,.0f} ms: {told.outcome}, {size}"
            return logging.INFO if went_well else logging.WARNING, text
        case Failure():
            return logging.WARNING, f"{told.error_type}, fallback {told.fallback}: {told.message}"
        case Warned():
            return logging.INFO if told.severity == "low" else logging.WARNING, f"{told.code}: {told.message}"
        case Recovery():
            limit = "" if told.learned_limit is None else f", limit {told.learned_limit:,} tokens"
            return logging.WARNING, f"context overflow, attempt {told.attempt}: {told.action}{limit}"
    raise AssertionError(f"no line for {type(told).__name__}")
