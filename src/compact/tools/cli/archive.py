"""`compact archive`: list, restore, search, verify and prune what an archive holds."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from compact.archive import Archive, Pruned, to_line
from compact.archive.recall import LinePattern, SearchIndex
from compact.errors import ArchiveError
from compact.summaries.ledger import to_json
from compact.tools.cli import archive_report as report
from compact.tools.cli.archives import folders_of, open_at
from compact.tools.cli.ledger import print_entries
from compact.tools.cli.options import (
    ConfigOption,
    ForceOption,
    JsonOption,
    OptionalSession,
    RootOption,
    SessionArgument,
    TenantOption,
)
from compact.tools.cli.outputs import check_outputs, write_output
from compact.tools.cli.printing import console, count_of, one_line, print_data, print_json, say_plainly

app = typer.Typer(
    help="Inspect an archive, restore from it, verify it, prune it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_NAME_CHARS = 200
_DURATION = re.compile(r"(\d{1,5})\s*([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@app.command("ls", epilog="Example: compact archive ls")
def list_sessions(
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the sessions with their steps, stored outputs and sizes."""
    with open_at(root, config, tenant=tenant) as archive:
        found = sorted(archive.sessions_by_folder().items(), key=lambda pair: pair[::-1])
        rows = [report.session_row(archive, folder, session_id) for folder, session_id in found]
    if as_json:
        print_json(rows)
    else:
        report.print_sessions(console(), rows)


@app.command("tenants", epilog="Example: compact archive tenants")
def list_tenants(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the tenants that have something in the archive. --tenant shows the sessions of one."""
    with open_at(root, of_all=True) as archive:
        names = archive.tenants()
    if as_json:
        print_json(names)
    else:
        for name in names:
            console().print(one_line(name, _NAME_CHARS), markup=False, soft_wrap=True)


@app.command("show", epilog="Example: compact archive show my-session")
def show(
    session: SessionArgument,
    message: Annotated[
        str | None,
        typer.Option(
            metavar="STEP:N", help="Show one message: the one that step STEP's summary cites as [mN]."
        ),
    ] = None,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one session: its steps, what each summary covers, and the files that its agent can read."""
    with open_at(root, config, tenant=tenant) as archive:
        folders_of(archive, session)
        if message is not None:
            print_json(_cited_message(archive, session, message))
            return
        found = report.session_details(archive, session)
    if as_json:
        print_json(found)
    else:
        report.print_details(console(), found)


def _cited_message(archive: Archive, session: str, wanted: str) -> Any:
    """Find the message that a citation names.

    Raises:
        BadParameter: this is not a citation, or the transcript has no such message.
    """
    step, _, number = wanted.lower().removeprefix("v").replace("m", "").replace(" ", ":").partition(":")
    if not (step.isdecimal() and number.isdecimal()):
        raise typer.BadParameter(f"{wanted!r} is not STEP:N, as in 4:12", param_hint="--message")
    found = archive.step(session, int(step))
    sides = archive.sides(session, found)  # citations count what stood, which repairs may have changed
    messages = archive.transcript(session, found) if sides is None else sides.before
    if not 1 <= int(number) <= len(messages):
        raise typer.BadParameter(
            f"the transcript of step {step} has messages 1 to {len(messages)}", param_hint="--message"
        )
    return messages[int(number) - 1]


@app.command("restore", epilog="Example: compact archive restore my-session --step 2 -o before.jsonl")
def restore(
    session: SessionArgument,
    step: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Restore the state before this step. Default: the newest."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file. Default: standard output."),
    ] = None,
    force: ForceOption = False,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore the messages that went into a step, redacted: one message per line, or one object with --json.

    Of a host that passes its full history each time, later steps begin with what the step before left.
    """
    if output is not None:
        check_outputs({"-o": [output]}, [], force)
    with open_at(root, config, tenant=tenant) as archive:
        folders_of(archive, session)
        restored = archive.restore(session, step)
    data = to_line(asdict(restored)) if as_json else b"".join(map(to_line, restored.messages))
    if output is None:
        print_data(data)
        return
    write_output(output, data, force)
    messages = count_of(len(restored.messages), "message")
    say_plainly(f"{messages} of {session} before step {restored.step}: {output}")


@app.command("grep", epilog="Example: compact archive grep 'timeout=\\d+' my-session")
def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression in RE2 syntax.")],
    session: OptionalSession = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Ignore case.")] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search outputs and conversations for lines. Exit code 1 if there are none."""
    try:
        compiled = LinePattern(pattern, ignore_case=ignore_case)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    with open_at(root, config, tenant=tenant) as archive:
        found = report.matching_lines(archive, folders_of(archive, session), compiled)
        if as_json:
            lines = list(found)
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
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number of passages.")] = 10,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search a session for passages by words, best first. Exit code 1 if there are none."""
    with open_at(root, config, tenant=tenant) as archive:
        folders_of(archive, session)
        hits = SearchIndex(archive, session).search(query, limit)
    if as_json:
        print_json(hits)
    else:
        report.print_hits(hits)
    if not hits:
        raise typer.Exit(1)


@app.command("ledger", epilog="Example: compact archive ledger my-session")
def ledger(
    session: SessionArgument,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what people said in a session and what stands of it, up to the newest step, and what was pinned since."""
    with open_at(root, config, tenant=tenant) as archive:
        folders_of(archive, session)
        entries = archive.ledger(session)
    if as_json:
        print_json({"entries": list(map(to_json, entries))})
    else:
        print_entries(console(), session, entries)


@app.command("verify", epilog="Example: compact archive verify")
def verify(
    session: OptionalSession = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First write anew the copies that the transcripts hold: outputs, pages."
        ),
    ] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read everything and list what differs from what was written. Exit code 1 if anything does.

    A session that cannot be read is listed, and the others are checked. Without a session and without a tenant, the sessions
    of all tenants are checked too.
    """
    checked, repaired, problems, unchained = 0, list[report.Found](), list[report.Found](), list[str]()
    with open_at(root, config, tenant=tenant, writes=repair) as archive:
        for part in [archive, *(archive.tenant_parts() if session is None else [])]:
            owner = part.tenant if part is not archive else None
            checked += len(folders_of(part, session))
            mended = part.repair(session) if repair else []
            repaired += [report.found_in(defect, owner) for defect in mended]
            problems += [report.found_in(defect, owner) for defect in part.verify(session)]
            unchained += [each for each in part.unchained() if session in (None, each)]
    if as_json:
        extra = {"repaired": repaired} if repair else {}
        more = {"unchained": unchained} if unchained else {}
        print_json({"sessions": checked, "problems": problems, **extra, **more})
    else:
        report.print_problems(console(), checked, problems, repaired, unchained)
    if problems:
        raise typer.Exit(1)


@app.command("prune", epilog="Example: compact archive prune --older-than 30d --dry-run")
def prune(
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="TIME", help="Remove records older than this: 30d, 12h, 2w."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be removed.")] = False,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove records of old steps, and outputs that nothing refers to. A session's newest step always stays.

    A session that cannot be read is left alone, and the exit code is 1.
    """
    age = _parse_duration(older_than)
    with open_at(root, config, tenant=tenant, writes=not dry_run) as archive:
        removed, refused = _prune(archive, age, dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "removed": removed, "refused": refused})
    else:
        report.print_removed(console(), removed, refused, dry_run)
    if refused:
        raise typer.Exit(1)


def _prune(archive: Archive, age: timedelta, dry_run: bool) -> tuple[list[Pruned], dict[str, str]]:
    """Prune; return what was removed, and the sessions that could not be read, with the reason."""
    try:
        planned = archive.prune(age, dry_run=True)
    except ArchiveError:
        pass  # A session is damaged: prune one by one, so that it does not stop the others.
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


def _parse_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r:.40} is not a duration: write 30d, 12h, 90m or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
