"""What the commands have in common: options, files, numbers, and how things are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.table import Column, Table

from compact.errors import MessageError, TranscriptError
from compact.tools.transcripts import Session, Skipped, read_sessions

FileArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="A transcript, plain or gzip; - reads standard input.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
LenientOption: TypeAlias = Annotated[
    bool, typer.Option("--lenient", help="Skip lines that cannot be read, and say which.")
]
DialectOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="chat, responses, anthropic, ai_sdk or harness; recognised when left out.",
    ),
]

PIPED_WIDTH = 240
"""Columns when the output is no terminal: nothing has to be cut off for a pipe."""
PROGRESS_FROM_BYTES = 4_000_000
SKIPPED_SHOWN = 5


def console() -> Console:
    """Where a command prints. Colours and line lengths follow the terminal; a pipe gets plain text."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_json(value: Any) -> None:
    """Print a value for programs. ASCII only, so that no half character of a transcript can break it."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def table(*columns: Column) -> Table:
    """A table without a frame."""
    return Table(*columns, box=None, pad_edge=False, header_style="dim")


def print_table(out: Console, made: Table, title: str = "") -> None:
    """Print a table under its title, without the blanks that fill its lines up."""
    if title:
        out.print(f"\n{title}", style="bold")
    with out.capture() as captured:
        out.print(made)
    lines = captured.get().splitlines()
    out.file.write("".join(line.rstrip() + "\n" for line in lines))


def label(name: str) -> Column:
    """A column of short words that are never broken."""
    return Column(name, no_wrap=True)


def number(name: str) -> Column:
    """A column of numbers, which are never cut."""
    return Column(name, justify="right", no_wrap=True)


def prose(name: str) -> Column:
    """A column that gives way when the terminal is narrow."""
    return Column(name, overflow="fold")


def one_line(words: str, limit: int) -> str:
    """Words on one line, without control characters, shortened."""
    flat = " ".join(words[: limit * 4].split())
    flat = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in flat
    )
    return flat if len(flat) <= limit else flat[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def counted(number: int, noun: str) -> str:
    """A number and what it counts: "1 message", "2,000 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sessions_of(file: Path, lenient: bool) -> Iterator[Session]:
    """The sessions of a file, with progress on stderr for a large one, and a note about lines that were left out."""
    path = Path("/dev/stdin") if str(file) == "-" else file
    with _progress(path) as on_progress:
        for session in read_sessions(path, lenient, on_progress):
            report_skipped(session.id, session.skipped)
            yield session


def named(session: Session, error: MessageError) -> MessageError:
    """The same error, saying which session of the file it is about."""
    if "index" not in error.details:
        return error
    return MessageError(f"session {session.id}: {error.message}", hint=error.hint, **error.details)


def read_tools(file: Path) -> list[Any]:
    """A JSON file with a list of tool schemas, or an object that has one under "tools".

    Raises:
        TranscriptError: the file cannot be read, or holds no such list.
    """
    try:
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise TranscriptError(f"cannot read {file}: {error.strerror or error}", path=str(file)) from None
    except (ValueError, RecursionError) as error:
        raise TranscriptError(f"cannot read {file}: it is not JSON: {error}", path=str(file)) from None
    tools = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(tools, list):
        what = "expected a list of tool schemas, or an object with one under 'tools'"
        raise TranscriptError(f"cannot read {file}: {what}", path=str(file))
    return tools


def report_skipped(session_id: str, left_out: Sequence[Skipped]) -> None:
    """Says on stderr which lines of a session were left out."""
    lines = [f"line {skipped.line}: {skipped.reason}" for skipped in left_out]
    if not lines:
        return
    shown = "; ".join(lines[:SKIPPED_SHOWN])
    more = f"; and {len(lines) - SKIPPED_SHOWN} more" if len(lines) > SKIPPED_SHOWN else ""
    sys.stderr.write(
        f"compact: session {session_id}: {counted(len(lines), 'line')} left out: {shown}{more}\n"
    )


@contextmanager
def _progress(path: Path) -> Iterator[Callable[[int, int], None] | None]:
    try:
        large = path.stat().st_size >= PROGRESS_FROM_BYTES
    except OSError:
        large = False
    if not large or not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(path.name, total=None)
        yield lambda read, total: bar.update(task, completed=read, total=total)
