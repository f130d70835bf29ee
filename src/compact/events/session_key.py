"""What a session is known by: its id, and the tenant that it belongs to where there are several."""

from __future__ import annotations

from typing import Any, NamedTuple


class SessionKey(NamedTuple):
    """One session of one tenant. The same id under two tenants is two sessions."""

    session_id: str
    tenant: str | None = None
    """None: the session belongs to no tenant."""


def problem_of(name: Any) -> str | None:
    """Return why something cannot name a session or a tenant, as the end of a sentence; None if it can."""
    if not isinstance(name, str):
        return f"must be a string, got {type(name).__name__}"
    if not name.strip():
        return "must not be only blanks" if name else "must not be empty"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "must be valid Unicode, got a lone surrogate"
    return None
