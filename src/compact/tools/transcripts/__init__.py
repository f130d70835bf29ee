"""Transcript files: formats are auto-detected; sessions are read one by one, plain or gzip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from compact.errors import TranscriptError
from compact.tools.transcripts import (
    chatgpt_exports,
    claude_code,
    cline_tasks,
    codex_rollouts,
    gemini_cli,
    gemini_contents,
    langchain_dumps,
    opencode_sessions,
    openhands,
    pi,
    plain,
    swe_agent,
)
from compact.tools.transcripts.recorded_session import Marker, RecordedSession, Skipped
from compact.tools.transcripts.transcript_file import (
    FORMATS,
    FORMATS_HINT,
    JsonLine,
    TranscriptFile,
    fail,
    keys_in_words,
)

__all__ = [
    "FORMATS",
    "Marker",
    "RecordedSession",
    "Skipped",
    "TranscriptError",
    "fail",
    "is_line_of_a_program",
    "read_sessions",
]

_FileReader: TypeAlias = Callable[[Iterator[JsonLine], TranscriptFile], Iterator[RecordedSession]]
_RecordReader: TypeAlias = Callable[[JsonLine, str, TranscriptFile], Iterator[RecordedSession]]

_FILE_READERS: tuple[tuple[Callable[[Any], bool], _FileReader], ...] = (
    (gemini_cli.recognises, gemini_cli.read),
    (codex_rollouts.recognises, codex_rollouts.read),
    (claude_code.recognises, claude_code.read),
    (pi.recognises, pi.read),
    (langchain_dumps.recognises, langchain_dumps.read),
    (gemini_contents.recognises_line, gemini_contents.read_lines),
)
"""Whether a file begins with this value, and what reads such a file. The first that recognises it counts."""
_RECORD_READERS: tuple[tuple[Callable[[Any], bool], _RecordReader], ...] = (
    (swe_agent.recognises, swe_agent.read),
    (openhands.recognises, openhands.read),
    (gemini_cli.recognises_record, gemini_cli.read_record),
    (codex_rollouts.recognises_record, codex_rollouts.read_record),
    (opencode_sessions.recognises, opencode_sessions.read),
    (chatgpt_exports.recognises, chatgpt_exports.read),
    (langchain_dumps.recognises_record, langchain_dumps.read_record),
    (gemini_contents.recognises, gemini_contents.read),
    (cline_tasks.recognises, cline_tasks.read),
    (plain.recognises_session, plain.read_session),
)
"""Whether a value holds whole sessions, and what reads them."""


def is_line_of_a_program(value: Any) -> bool:
    """Whether a value is a line of a file that some program writes, and so neither a message nor an artifact itself."""
    return any(recognises(value) for recognises, _ in _FILE_READERS)


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
        TranscriptError: the file is missing, a directory, empty, binary, of an unknown format, without messages, or,
            unless lenient, has a line that cannot be read. Carries `path` and `line`.
    """
    with TranscriptFile(path, lenient, on_progress) as file:
        waiting: RecordedSession | None = None
        messages = 0
        for session in _sessions(file):
            # A bad line is reported with the session that follows it. One session is held back for bad lines at the end.
            if waiting is not None:
                yield waiting
            skipped = sorted(file.take_skipped(), key=lambda each: each.line)
            waiting = replace(session, skipped=skipped, left_out=file.take_left_out())
            messages += len(session.messages)
        skipped = [*(waiting.skipped if waiting else ()), *file.take_skipped()]
        if waiting is None and skipped:
            first = skipped[0]
            fail(file.path, f"all of its {len(skipped)} lines are bad; line {first.line}: {first.reason}")
        if waiting is None or not messages:
            fail(file.path, _nothing_found(file, waiting, skipped), hint=FORMATS_HINT)
        yield replace(waiting, skipped=skipped)


def _sessions(file: TranscriptFile) -> Iterator[RecordedSession]:
    lines = iter(file)
    for place, line in enumerate(lines, 1):
        value = line.value
        read_file = next((read for recognises, read in _FILE_READERS if recognises(value)), None)
        read_record = next((read for recognises, read in _RECORD_READERS if recognises(value)), None)
        if read_file is not None:
            yield from read_file(chain((line,), lines), file)
        elif read_record is not None:
            yield from read_record(line, file.name if place == 1 else f"{file.name}-{place}", file)
        elif plain.recognises_message(value):
            yield from plain.read_messages(chain((line,), lines), file)
        else:
            _refuse(line, file)


def _refuse(line: JsonLine, file: TranscriptFile) -> None:
    what, hint = plain.refusal(line.value) or (_stranger(line.value), FORMATS_HINT)
    if not file.lenient:
        fail(file.path, what, line=line.line, hint=hint)
    file.note(line.line, what)


def _stranger(value: Any) -> str:
    if isinstance(value, dict):
        return f"it is neither a message nor a session: it has {keys_in_words(value)}"
    return f"it is a single {type(value).__name__}, neither a message nor a session"


def _nothing_found(file: TranscriptFile, last: RecordedSession | None, skipped: list[Skipped]) -> str:
    """Say what a file without any message has instead."""
    words = [f"it has no messages: it is {file.seen}" if file.seen else "it has no messages"]
    counts = ", ".join(f"{count:,} {kind}" for kind, count in (last.left_out if last else {}).items())
    if counts:
        words.append(f"left out as no part of the conversation: {counts}")
    if skipped:
        words.append(f"not understood: line {skipped[0].line}: {skipped[0].reason}")
    return "; ".join(words)
