"""A finished session lived through again: call by call, as its agent grew it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from compact.messages import dialects
from compact.runtime.manager import CompactManager
from compact.tools.transcripts import Session


def relive(manager: CompactManager, session: Session, *, pause_s: float = 0.0) -> list[Any]:
    """Sends a session through a manager with one preflight before each of the model's messages; gives what stands last."""
    context: list[Any] = []
    for arrived in calls(session):
        context = list(
            manager.preflight(
                session.id,
                [*context, *arrived],
                session.tools,
                system=session.system,
                dialect=session.dialect,
            )
        )
        if pause_s:
            time.sleep(pause_s)
    return context


def calls(session: Session) -> Iterator[Sequence[Any]]:
    """What is new before each call of the model: the message that it wrote last, and all that came after it."""
    known = dialects.detect(session.messages) if session.dialect is None else dialects.get(session.dialect)
    waiting: list[Any] = []
    answered = True
    for item in session.messages:
        is_model = known.read(item).role == "assistant"
        if is_model and answered and waiting:
            yield waiting
            waiting = []
        waiting.append(item)
        answered = not is_model
    if waiting:
        yield waiting
