"""What `compact archive` prints, and the facts behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Console

from compact.archive import Archive, Defect, FileInfo, Pruned
from compact.archive.recall import Hit, LinePattern
from compact.errors import ArchiveError
from compact.tools.cli.printing import count_of, flat, one_line, print_line, print_table
from compact.tools.viewer.steps import StepRow, step_row

_ID_CHARS = 60
_LINE_CHARS = 500
_BEFORE_MATCH = 100


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in the list."""

    session_id: str
    folder: str
    """Its folder in the archive. Ids that contain a secret are masked, so only this tells such sessions apart."""
    steps: int
    newest_step_at: str | None
    outputs: int
    bytes: int
    """Total size of its outputs and conversations."""
    problem: str | None


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A summary, and what it replaces."""

    step: int
    first: int
    last: int
    """The range of the step's messages that it covers, counted from 1. Kept messages may lie in between."""
    messages: int
    tokens: int
    strategy: str
    writer: str
    transcript: str


@dataclass(frozen=True, slots=True)
class SessionDetails:
    """Everything about a session."""

    session_id: str
    steps: list[StepRow]
    summaries: list[SummaryRow]
    files: list[FileInfo]
    events: int


@dataclass(frozen=True, slots=True)
class MatchingLine:
    """A line that matches a pattern."""

    session_id: str
    path: str
    line: int
    """Counted from 1."""
    column: int
    """Where the match starts, counted from 0."""
    text: str
    """The line, or the text around the match if the line is long."""


@dataclass(frozen=True, slots=True)
class TenantDefect(Defect):
    """A defect in the part of a tenant."""

    tenant: str


Found: TypeAlias = Defect | TenantDefect


def found_in(defect: Defect, tenant: str | None) -> Found:
    """Say in whose part a defect is, where all are checked."""
    return (
        defect
        if tenant is None
        else TenantDefect(defect.session_id, defect.key, defect.code, defect.message, tenant)
    )


def session_row(archive: Archive, folder: str, session_id: str) -> SessionRow:
    """Describe a session for the list. If it cannot be read, `problem` says why."""
    steps: list[int] = []
    files: list[FileInfo] = []
    newest = problem = None
    try:
        steps, files = archive.steps_in(folder), archive.listing_in(folder).files
        latest = archive.latest_in(folder)
        newest = latest.committed_at if latest else None
    except ArchiveError as error:
        problem = error.message
    outputs = sum(info.path.startswith("/tool_outputs/") for info in files)
    size = sum(info.size for info in files)
    return SessionRow(session_id, folder, len(steps), newest, outputs, size, problem)


def session_details(archive: Archive, session_id: str) -> SessionDetails:
    """Describe a session in full."""
    folder = archive.folder(session_id)
    label = archive.session_in(folder) or folder
    steps = [step_row(archive, folder, step) for step in archive.steps(session_id)]
    summaries = [row for step in steps for row in _summary_rows(archive, session_id, step)]
    return SessionDetails(label, steps, summaries, archive.files(session_id), len(archive.events(session_id)))


def _summary_rows(archive: Archive, session_id: str, row: StepRow) -> Iterator[SummaryRow]:
    if row.problem or row.pruned_at:
        return
    for entry in archive.summary(session_id, archive.step(session_id, row.step)).get("summaries", []):
        first, last = entry["positions"]
        yield SummaryRow(
            step=row.step,
            first=first + 1,
            last=last + 1,
            messages=entry["input_messages"],
            tokens=entry["summary_tokens"],
            strategy=entry["strategy"],
            writer=entry["writer"],
            transcript=entry["transcript"],
        )


def matching_lines(
    archive: Archive, sessions: Mapping[str, str], pattern: LinePattern
) -> Iterator[MatchingLine]:
    """Search all readable files of some sessions, whose ids are given by folder."""
    for folder, session_id in sessions.items():
        for info in archive.listing_in(folder).files:
            text = archive.read_text_in(folder, info.path)
            lines: list[str] = []
            for match in pattern.matches(text):
                lines = lines or text.split("\n")
                shown = _around(lines[match.line], match.column)
                yield MatchingLine(session_id, info.path, match.line + 1, match.column, shown)


def print_sessions(out: Console, rows: list[SessionRow]) -> None:
    """Print the list of sessions."""
    if not rows:
        out.print("The archive is empty")
        return
    columns = ("session:60", ">steps", "newest step", ">outputs", ">bytes", "~")
    cells = [
        (row.session_id, row.steps, row.newest_step_at or "-", row.outputs, row.bytes, row.problem)
        for row in rows
    ]
    print_table(out, columns, cells)


def print_details(out: Console, details: SessionDetails) -> None:
    """Print one session."""
    sizes = {"step": len(details.steps), "file": len(details.files), "event": details.events}
    counts = ", ".join(count_of(number, noun) for noun, number in sizes.items())
    out.print(f"Session {one_line(details.session_id, _ID_CHARS)}: {counts}")
    if details.steps:
        columns = (">step", "committed", "dialect", ">messages", ">bytes", "~")
        print_table(out, columns, map(_step_cells, details.steps), "Steps")
    if details.summaries:
        columns = (">step", "covers", ">messages", ">tokens", "by", "~in")
        summaries = [(each, f"m{each.first} to m{each.last}") for each in details.summaries]
        cells = [
            (str(s.step), covers, s.messages, s.tokens, f"{s.writer}, {s.strategy}", s.transcript)
            for s, covers in summaries
        ]
        print_table(out, columns, cells, "Summaries")
    if details.files:
        print_table(out, (">bytes", "file"), [(info.size, info.path) for info in details.files], "Files")


def _step_cells(row: StepRow) -> tuple[str | int | None, ...]:
    remark = row.problem or (f"pruned {row.pruned_at}" if row.pruned_at else "")
    facts = (row.committed_at, row.dialect, row.messages, row.bytes)
    return (str(row.step), *("-" if fact is None else fact for fact in facts), remark)


def print_lines(lines: Iterable[MatchingLine]) -> bool:
    """Print matching lines as `grep -n` does; return False if there are none."""
    found = False
    for line in lines:
        found = True
        place = f"{one_line(line.session_id, _ID_CHARS)}{line.path}:{line.line}"
        print_line(f"{place}:{flat(line.text)}")
    return found


def print_hits(hits: list[Hit]) -> None:
    """Print passages, best first."""
    for rank, hit in enumerate(hits, 1):
        message = "" if hit.message is None else f", message {hit.message}"
        who = f", {hit.who}" if hit.who else ""
        print_line(f"{rank}. {hit.path}:{hit.first_line}-{hit.last_line}{message}{who}")
        for row in hit.text.strip("\n").split("\n"):
            print_line(f"   {row}")
    if not hits:
        print_line("No passage has any of these words")


def print_problems(
    out: Console, sessions: int, problems: list[Found], repaired: list[Found], unchained: list[str]
) -> None:
    """Print what differs from what was written."""
    if repaired:
        out.print(f"{count_of(len(repaired), 'file')} written anew from the transcripts")
    found = count_of(len(problems), "problem") if problems else "everything is as it was written"
    out.print(f"{count_of(sessions, 'session')}: {found}")
    if problems:
        rows = [(each.code, _place(each), each.message) for each in problems]
        print_table(out, ("what", "where:120", "~why:500"), rows)
    if unchained:
        out.print(
            f"{count_of(len(unchained), 'session')} unchained: an earlier version began them, so that lost events and outputs "
            "are not noticed there"
        )


def _place(found: Found) -> str:
    return f"tenant {found.tenant}: {found.key}" if isinstance(found, TenantDefect) else found.key


def print_removed(out: Console, removed: list[Pruned], refused: dict[str, str], dry_run: bool) -> None:
    """Print what was removed, or would be."""
    records = count_of(sum(len(each.keys) for each in removed), "record")
    size = sum(each.bytes for each in removed)
    out.print(f"{'Would remove' if dry_run else 'Removed'} {records}, {size:,} bytes")
    for each in removed:
        what = "outputs" if each.step is None else f"step {each.step}"
        out.print(f"  {one_line(each.session_id, _ID_CHARS)}: {what}, {count_of(len(each.keys), 'record')}")
    for session_id, why in refused.items():
        out.print(f"  {one_line(session_id, _ID_CHARS)} was left as it is: {one_line(why, _LINE_CHARS)}")


def _around(line: str, column: int) -> str:
    start = max(0, column - _BEFORE_MATCH) if len(line) > _LINE_CHARS else 0
    return line[start : start + _LINE_CHARS]
