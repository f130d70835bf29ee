"""Whether a list goes on from what another process has stored.

Inside an id that the host gave, the stored steps say which of its conversations a list is: sub-agents do not swap sessions with
their main agent, whoever calls first after a restart.

An unnamed conversation is continued only on the same filesystem of a host, by compact's own summary, which says in which session
it was made. Anybody can write such a text, so nothing of it is believed until the session's newest step has recorded the hash of
this very text, and the list begins with all that the step has left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from compact.archive import Archive, keys
from compact.archive.records import session_id_in
from compact.archive.stores.port import SharedPages
from compact.engine.effects import Loaded
from compact.engine.state import adopt, continues, restore_state
from compact.errors import ArchiveError
from compact.events.session_key import SessionKey
from compact.messages.dialects import detect
from compact.runtime.conversations import count_opening
from compact.runtime.services import Services

Belongs: TypeAlias = Callable[[str, Sequence[Any]], bool | None]
"""Whether a list belongs to a stored session; None: nothing says so, because no step of the session is stored."""
_PAGE = re.compile(
    r'\[Archived: read_file\("(?:/_tenants/[^/"]+)?/conversation_history/(?P<folder>[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})_step-\d{3,}_'
)


def make_belongs(services: Services, tenant: str | None = None) -> Belongs:
    """Return a function that compares lists with what the archive has stored."""

    def belongs(session_id: str, messages: Sequence[Any]) -> bool | None:
        archive = services.archive_of(tenant)
        try:
            latest = archive.latest(session_id)
            if latest is None or archive.is_forgotten(session_id, latest.step):
                return None
            if restore_state(Loaded(latest.step, latest.state, latest.fingerprints), messages) is not None:
                return True
            first = archive.restore(session_id, archive.steps(session_id)[0]).messages
        except ArchiveError:
            return None  # the call itself finds out whether it can do without the archive
        # Edited or regenerated: the same agent still has the same prompt and task.
        opening = list(messages[: count_opening(messages)])
        return continues(first, services.redactor(SessionKey(session_id, tenant)).redact_messages(opening))

    return belongs


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
