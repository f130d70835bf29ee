"""Times as events and records write them: in UTC, of fixed width."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def timestamp(moment: datetime) -> str:
    """Format a time in UTC with fixed width: `2026-01-31T12:00:00.000000Z`.

    Raises:
        ValueError: the time has no timezone.
    """
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError(f"a clock must give times with a timezone, got {moment!r}")
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat('T', 'microseconds')[:-6]}Z"


def moment(text: str) -> datetime:
    """Read back what `timestamp` wrote.

    Raises:
        ValueError: the text has another form.
    """
    if not _TIME.fullmatch(text):
        raise ValueError(f"not a time like 2026-01-31T12:00:00.000000Z: {text!r}")
    return datetime.fromisoformat(text)
