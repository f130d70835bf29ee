"""Notes: records of one line with few words, which say that a step is forgotten, or whose a tenant's root is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compact.archive.records import FORMAT, to_line
from compact.archive.seals import Seals


def reset_note(step: int) -> dict[str, str]:
    """Return what says that the state after a step is forgotten."""
    return {"forgets_step": str(step)}


def tenant_note(label: str) -> dict[str, Any]:
    """Return what says whose root it is. `label` is the tenant's name as records show it."""
    return {"format": FORMAT, "tenant": label}


def problem_in(data: bytes, note: Mapping[str, Any], place: str, seals: Seals) -> str | None:
    """Say why bytes are not this note, written for this place; None if they are."""
    try:
        body = json.loads(data)
        mac = body.pop("mac", None) if isinstance(body, dict) else None
        if body != note or data != to_line(body if mac is None else {**body, "mac": mac}):
            return "it is not one that this version writes"
        if seals.is_keyed:
            seals.check_mac(mac, place, to_line(body))
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as problem:
        return f"it cannot be read: {problem!s:.200}"
    return None
