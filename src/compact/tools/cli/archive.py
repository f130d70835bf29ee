"""`compact archive`: what lies in an archive, reading it back, checking it, thinning it out."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from compact.archive import Archive, Pruned, to_line
from compact.archive.recall import LinePattern, SearchIndex
from compact.errors import ArchiveError
from compact.tools.cli import archive_report as report
from compact.tools.cli.opening import MaybeSession, RootOption, SessionArgument, check_known, opened
from compact.tools.cli.shared import JsonOption, console, counted, print_json

app = typer.Typer(
    help="Look into an archive, restore from it, check it, thin it out.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_DURATION = re.compile(r"(\d{1,5})\s*([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@app.command("ls", epilog="Example: compact archive ls")
def list_sessions(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the sessions: their steps, their stored outputs, how much that is."""
    with opened(root) as archive:
        found = sorted(archive.sessions_by_folder().items(), key=lambda pair: pair[::-1])
        rows = [report.session_row(archive, folder, session_id) for folder, session_id in found]
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        report.print_sessions(console(), rows)


@app.command("show", epilog="Example: compact archive show my-session")
def show(
    session: SessionArgument,
    message: Annotated[
        str | None,
        typer.Option(metavar="STEP:N", help="Show one message: what a summary of step STEP cites as [mN]."),
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one session: every step, what each summary covers, and every file that its agent can read."""
    with opened(root) as archive:
        check_known(archive, session)
        if message is not None:
            print_json(_cited(archive, session, message))
            return
        found = report.session_details(archive, session)
    if as_json:
        print_json(asdict(found))
    else:
        report.print_details(console(), found)


def _cited(archive: Archive, session: str, wanted: str) -> Any:
    """The message that a citation names.

    Raises:
        BadParameter: it is no citation, or the transcript has no such message.
    """
    step, _, number = wanted.lower().removeprefix("v").replace("m", "").replace(" ", ":").partition(":")
    if not (step.isdecimal() and number.isdecimal()):
        raise typer.BadParameter(f"{wanted!r} is not STEP:N, as in 4:12", param_hint="--message")
    messages = archive.restore(session, int(step)).messages
    if not 1 <= int(number) <= len(messages):
        raise typer.BadParameter(
            f"the transcript of step {step} has messages 1 to {len(messages)}", param_hint="--message"
        )
    return messages[int(number) - 1]


@app.command("restore", epilog="Example: compact archive restore my-session --step 2 -o before.jsonl")
def restore(
    session: SessionArgument,
    step: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="As it was before this step; else the newest.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there; else print it.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give back the transcript as it was before a step, redacted: one message a line, or one object with --json."""
    with opened(root) as archive:
        check_known(archive, session)
        restored = archive.restore(session, step)
    data = to_line(asdict(restored)) if as_json else b"".join(map(to_line, restored.messages))
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    _write(output, data, force)
    messages = counted(len(restored.messages), "message")
    sys.stderr.write(f"{messages} of {session} before step {restored.step}: {output}\n")


@app.command("grep", epilog="Example: compact archive grep 'timeout=\\d+' my-session")
def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression in RE2 syntax.")],
    session: MaybeSession = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Capital letters do not matter.")
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find lines in outputs and conversations. Exit code 1 when there are none."""
    try:
        compiled = LinePattern(pattern, ignore_case=ignore_case)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    with opened(root) as archive:
        if session is not None:
            check_known(archive, session)
        sessions = archive.sessions_by_folder() if session is None else {archive.folder(session): session}
        found = report.matching_lines(archive, sessions, compiled)
        if as_json:
            lines = [asdict(line) for line in found]
            print_json(lines)
            any_found = bool(lines)
        else:
            any_found = report.print_lines(found)
    if not any_found:
        raise typer.Exit(1)


@app.command("search", epilog="Example: compact archive search 'why the login failed' my-session")
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words, in any order.")],
    session: SessionArgument,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Passages at most.")] = 5,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find passages of a session by words, best first. Exit code 1 when there are none."""
    with opened(root) as archive:
        check_known(archive, session)
        hits = SearchIndex(archive, session).search(query, limit)
    if as_json:
        print_json([asdict(hit) for hit in hits])
    else:
        report.print_hits(hits)
    if not hits:
        raise typer.Exit(1)


@app.command("verify", epilog="Example: compact archive verify")
def verify(session: MaybeSession = None, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Read everything and list what is not as it was written. Exit code 1 when something is not."""
    with opened(root) as archive:
        if session is not None:
            check_known(archive, session)
        checked = len(archive.sessions()) if session is None else 1
        problems = archive.verify(session)
    if as_json:
        print_json({"sessions": checked, "problems": [asdict(problem) for problem in problems]})
    else:
        report.print_problems(console(), checked, problems)
    if problems:
        raise typer.Exit(1)


@app.command("prune", epilog="Example: compact archive prune --older-than 30d --dry-run")
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="30d, 12h, 2w: older records are removed.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the records of old steps and outputs that nothing refers to; never a session's newest step.

    A session that cannot be read is left as it is, and the exit code is 1.
    """
    age = _duration(older_than)
    with opened(root) as archive:
        removed, refused = _pruned(archive, age, dry_run)
    if as_json:
        rows = [asdict(each) for each in removed]
        print_json({"dry_run": dry_run, "removed": rows, "refused": refused})
    else:
        report.print_removed(console(), removed, refused, dry_run)
    if refused:
        raise typer.Exit(1)


def _pruned(archive: Archive, age: timedelta, dry_run: bool) -> tuple[list[Pruned], dict[str, str]]:
    """What was removed, and the sessions that could not be read, with the reason."""
    try:
        planned = archive.prune(age, dry_run=True)
    except ArchiveError:
        pass  # a session is damaged: one by one, so that it does not stop the others
    else:
        return (planned if dry_run else archive.prune(age)), {}
    removed: list[Pruned] = []
    refused: dict[str, str] = {}
    for session in archive.sessions():
        try:
            removed += archive.prune(age, dry_run=dry_run, session_id=session)
        except ArchiveError as problem:
            refused[session] = str(problem)
    return removed, refused


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r:.40} is no time: write 30d, 12h, 90m or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _write(file: Path, data: bytes, force: bool) -> None:
    """A file that only its owner can read, whole or not at all; an old one is replaced only by force."""
    if file.exists() and not force:
        raise ArchiveError(
            f"{file} exists already", hint="Name another file, or overwrite it with --force", reason="taken"
        )
    new = file.with_name(f".{file.name}.{os.getpid()}") if force else file
    # Exclusive: what stands there is not even opened.
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        try:
            stream.write(data)
            stream.flush()
            new.replace(file)
        except BaseException:
            new.unlink()
            raise
