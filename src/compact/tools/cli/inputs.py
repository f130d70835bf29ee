"""What commands read: transcripts, folders of them, and tool schemas."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn

from compact.errors import MessageError, TranscriptError
from compact.tools.cli.printing import console, count_of, first_lines, flat, printable, say
from compact.tools.transcripts import RecordedSession, Skipped, fail, read_sessions
from compact.tools.transcripts.recorded_session import masked
from compact.tools.transcripts.transcript_file import STANDARD_INPUT, read_whole

PROGRESS_FROM_BYTES = 4_000_000
SKIPPED_SHOWN = 5
KINDS_SHOWN = 12
_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj")


def transcripts_in(paths: Iterable[Path]) -> list[Path]:
    """List the files to read. A folder stands for every transcript below it, in the order of their names.

    What begins with a dot in it is left out: `.compact` is an archive, and its events are no transcripts.

    Raises:
        TranscriptError: a folder has none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(_real(path))
            continue
        inside = sorted(each for each in path.rglob("*") if each.is_file() and _is_transcript(each, path))
        if not inside:
            ending = ", ".join(_ENDINGS)
            raise TranscriptError(
                f"{path} has no transcripts: no file ends in {ending}, or one of these and .gz"
            )
        found += inside
    return found


def sessions_of(file: Path, lenient: bool) -> Iterator[RecordedSession]:
    """Read the sessions of a file. Progress of a large file and skipped lines go to stderr."""
    path = _real(file)
    with progress_bar(path.name, DownloadColumn(), shown=_is_large(path)) as update:
        on_progress = None if update is None else lambda read, size: update(completed=read, total=size)
        for session in read_sessions(path, lenient, on_progress):
            report_skipped(session.label, session.skipped)
            report_left_out(session.label, session.left_out)
            yield session


@contextmanager
def errors_named(session: RecordedSession) -> Iterator[None]:
    """Say in a `MessageError` which session of the file it is about."""
    try:
        yield
    except MessageError as error:
        if "index" not in error.details:
            raise
        what = f"session {session.label}: {error.message}"
        raise MessageError(what, hint=error.hint, **error.details) from error


def read_tools(file: Path) -> list[Any]:
    """Read a JSON file with a list of tool schemas, or with an object that has one under "tools".

    Raises:
        TranscriptError: the file cannot be read, or has no such list.
    """
    try:
        found = json.loads(read_whole(file))
    except (ValueError, RecursionError) as error:
        fail(file, f"it is not JSON: {error}")
    tools = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(tools, list):
        fail(file, "expected a list of tool schemas, or an object with one under 'tools'")
    return tools


def report_skipped(session_id: str, skipped: Sequence[Skipped]) -> None:
    """Say on stderr which lines of a session were skipped."""
    if not skipped:
        return
    lines = first_lines([f"line {each.line}: {each.reason}" for each in skipped], SKIPPED_SHOWN)
    count = count_of(len(skipped), "line")
    say(f"session {flat(masked(session_id))}: {count} left out: {flat('; '.join(lines))}")


def report_left_out(session_id: str, left_out: Mapping[str, int]) -> None:
    """Say on stderr which known entries of a session, or of all of them, are no part of the conversation."""
    if left_out:
        kinds = first_lines([f"{count:,} {kind}" for kind, count in left_out.items()], KINDS_SHOWN)
        name = f"session {flat(masked(session_id))}: " if session_id else ""
        say(f"{name}not part of the conversation: {flat(', '.join(kinds))}")


@contextmanager
def progress_bar(
    description: str, *columns: ProgressColumn, total: int | None = None, shown: bool = True
) -> Iterator[Callable[..., None] | None]:
    """Show a progress bar on stderr, and yield what updates it; None if it is not shown, or stderr is not a terminal."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    parts = (TextColumn("{task.description}", markup=False), BarColumn(), *columns)
    with Progress(*parts, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(flat(printable(description)), total=total)
        yield lambda **news: bar.update(task, **news)


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size >= PROGRESS_FROM_BYTES
    except OSError:
        return False


def _real(path: Path) -> Path:
    return STANDARD_INPUT if str(path) == "-" else path


def _is_transcript(file: Path, folder: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not is_hidden and file.name.lower().removesuffix(".gz").endswith(_ENDINGS)
