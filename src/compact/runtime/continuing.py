"""How an unnamed conversation is continued by another process: on the same filesystem of a host, by compact's own summary.

The summary says in which session it was made. Anybody can write such a text, so nothing of it is believed until the session's
newest step has recorded the hash of this very text, and the list begins with all that the step has left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compact.archive import Archive, keys
from compact.archive.records import session_id_in
from compact.archive.stores.port import SharedPages
from compact.engine.effects import Loaded
from compact.engine.state import adopt, restore_state
from compact.messages.dialects import detect

_PAGE = re.compile(
    r'\[Archived: read_file\("/conversation_history/(?P<folder>[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})_step-\d{3,}_'
)


def find_continued(archive: Archive, messages: Sequence[Any]) -> str | None:
    """Return the session whose newest step has left what a list begins with; None if there is none.

    Only on a host's filesystem: everywhere else, only a session that has a name is continued by another process.

    Raises:
        ArchiveError: the host did not answer, so that nobody knows.
    """
    if not isinstance(archive.store, SharedPages) or archive.store.forgets:
        return None
    told = adopt(messages)
    if told is None:
        return None
    frame = messages[len(told.state["recipe"]) - 1]
    pages = _PAGE.findall(detect([frame]).read(frame).text)
    if not pages:
        return None
    session_id = session_id_in(archive.store.read(f"{pages[-1]}/{keys.SESSION}"))
    if session_id is None or archive.folder(session_id) != pages[-1]:
        return None
    latest = archive.latest(session_id)
    if latest is None or not set(told.state["summaries"]) <= set(latest.state.get("summaries", ())):
        return None
    left = Loaded(latest.step, latest.state, latest.fingerprints)
    return session_id if restore_state(left, messages) is not None else None
