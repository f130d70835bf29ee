"""How far each exporter came in a session's event log, so that the next process goes on there."""

from __future__ import annotations

import json

from compact.archive.protocol import Store
from compact.archive.records import Session
from compact.archive.stores import owners


def _key(folder: str, exporter: str) -> str:
    return f"{folder}/.exports/{exporter}.json"


def read(store: Store, folder: str, exporter: str) -> str | None:
    """The last event that an exporter got, by its span; None when there is no note, or a living process keeps it."""
    data = store.read(_key(folder, exporter))
    try:
        note = json.loads(data or b"")
        span_id, owner = str(note["span_id"]), str(note["owner"])
        own = owner.rpartition("-")[0] == owners.current()
        return span_id if own or owners.is_gone(owner) else None
    except (ValueError, KeyError, TypeError):
        return None


def write(store: Store, session: Session, exporter: str, span_id: str) -> None:
    """Notes the last event that an exporter got."""
    note = {"span_id": span_id, "owner": owners.unique_id()}
    store.replace(_key(session.folder, exporter), session.scribe.note(note))
