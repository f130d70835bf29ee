"""Transcript files: recognised by what is in them, read session by session, plain or gzip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from compact.errors import TranscriptError
from compact.tools.transcripts import claude_code, openhands, pi, plain, swe_agent
from compact.tools.transcripts.records import FORMATS, FORMATS_HINT, Record, Records, fail
from compact.tools.transcripts.session import Marker, Session, Skipped

__all__ = ["FORMATS", "Marker", "Session", "Skipped", "TranscriptError", "read_sessions"]


def read_sessions(
    path: str | os.PathLike[str],
    lenient: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[Session]:
    """The sessions of a file, one at a time: a file of many sessions is never in memory as a whole.

    Args:
        path: The file. Its format is recognised by its content, gzip by its first bytes.
        lenient: Go on behind a line that cannot be read; `Session.skipped` says which lines are missing and why.
        on_progress: Told now and then how many bytes of the file are read, of how many.

    Raises:
        TranscriptError: the file is missing, a directory, empty, binary, of an unknown format, or, unless lenient, has
            a line that cannot be read. Carries `path` and `line`.
    """
    with Records(path, lenient, on_progress) as records:
        waiting: Session | None = None
        for session in _sessions(records):
            # A bad line is reported with the session behind it; one session is held back for those at the end.
            if waiting is not None:
                yield waiting
            waiting = replace(session, skipped=records.take_skipped())
        left_out = records.take_skipped()
        if waiting is not None:
            yield replace(waiting, skipped=[*waiting.skipped, *left_out])
        elif left_out:
            fail(
                records.path,
                f"all of its {len(left_out)} lines are bad; line {left_out[0].line}: {left_out[0].reason}",
            )


def _sessions(records: Records) -> Iterator[Session]:
    lines = iter(records)
    for place, line in enumerate(lines, 1):
        read_file, read_record = _readers(line.value)
        if read_file is not None:
            yield read_file(chain((line,), lines), records)
        elif read_record is not None:
            yield read_record(line.value, records.name if place == 1 else f"{records.name}-{place}")
        else:
            _refuse(line, records)


def _readers(value: Any) -> tuple[Callable[..., Session] | None, Callable[..., Session] | None]:
    """Who reads a file that begins with such a record as one session, or else such a record alone."""
    for form in (claude_code, pi):
        if form.recognises(value):
            return form.read, None
    for form in (swe_agent, openhands):
        if form.recognises(value):
            return None, form.read
    if plain.recognises_session(value):
        return None, plain.read_session
    return (plain.read_messages if plain.recognises_message(value) else None), None


def _refuse(line: Record, records: Records) -> None:
    value = line.value
    if isinstance(value, dict):
        keys = ", ".join(sorted(map(str, value))[:8]) or "none"
        what = f"it is no message and no session (keys: {keys})"
    else:
        what = f"it is a single {type(value).__name__}, no message and no session"
    if not records.lenient:
        fail(records.path, what, line=line.line, hint=FORMATS_HINT)
    records.note(line.line, what)
