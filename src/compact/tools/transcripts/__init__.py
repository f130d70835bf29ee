"""Transcript files: formats are auto-detected; sessions are read one by one, plain or gzip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from compact.errors import TranscriptError
from compact.tools.transcripts import claude_code, openhands, pi, plain, swe_agent
from compact.tools.transcripts.recorded_session import Marker, RecordedSession, Skipped
from compact.tools.transcripts.transcript_file import FORMATS, FORMATS_HINT, JsonLine, TranscriptFile, fail

__all__ = ["FORMATS", "Marker", "RecordedSession", "Skipped", "TranscriptError", "fail", "read_sessions"]


def read_sessions(
    path: str | os.PathLike[str],
    lenient: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Iterator[RecordedSession]:
    """Read the sessions of a file one at a time, so that a large file is never in memory as a whole.

    Args:
        path: The file. Its format and gzip compression are auto-detected from the content.
        lenient: Skip lines that cannot be read; `RecordedSession.skipped` says which and why.
        on_progress: Called now and then with the bytes read so far and the size of the file.

    Raises:
        TranscriptError: the file is missing, a directory, empty, binary, of an unknown format, or, unless lenient, has
            a line that cannot be read. Carries `path` and `line`.
    """
    with TranscriptFile(path, lenient, on_progress) as file:
        waiting: RecordedSession | None = None
        for session in _sessions(file):
            # A bad line is reported with the session that follows it. One session is held back for bad lines at the end.
            if waiting is not None:
                yield waiting
            waiting = replace(session, skipped=file.take_skipped())
        left_out = file.take_skipped()
        if waiting is not None:
            yield replace(waiting, skipped=[*waiting.skipped, *left_out])
        elif left_out:
            fail(
                file.path,
                f"all of its {len(left_out)} lines are bad; line {left_out[0].line}: {left_out[0].reason}",
            )


def _sessions(file: TranscriptFile) -> Iterator[RecordedSession]:
    lines = iter(file)
    for place, line in enumerate(lines, 1):
        read_file, read_record = _readers(line.value)
        if read_file is not None:
            yield read_file(chain((line,), lines), file)
        elif read_record is not None:
            yield read_record(line.value, file.name if place == 1 else f"{file.name}-{place}")
        else:
            _refuse(line, file)


def _readers(
    value: Any,
) -> tuple[Callable[..., RecordedSession] | None, Callable[..., RecordedSession] | None]:
    """Find the reader of a whole file that starts with this value, or else the reader of this value alone."""
    for form in (claude_code, pi):
        if form.recognises(value):
            return form.read, None
    for form in (swe_agent, openhands):
        if form.recognises(value):
            return None, form.read
    if plain.recognises_session(value):
        return None, plain.read_session
    return (plain.read_messages if plain.recognises_message(value) else None), None


def _refuse(line: JsonLine, file: TranscriptFile) -> None:
    value = line.value
    if isinstance(value, dict):
        keys = ", ".join(sorted(map(str, value))[:8]) or "none"
        what = f"it is neither a message nor a session (keys: {keys})"
    else:
        what = f"it is a single {type(value).__name__}, neither a message nor a session"
    if not file.lenient:
        fail(file.path, what, line=line.line, hint=FORMATS_HINT)
    file.note(line.line, what)
