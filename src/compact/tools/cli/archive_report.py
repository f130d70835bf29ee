"""What `compact archive` prints, and the facts it prints them from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console

from compact.archive import Archive, Defect, FileInfo, Pruned
from compact.archive.recall import Hit, LinePattern
from compact.errors import ArchiveError
from compact.tools.cli.shared import counted, label, number, one_line, print_table, prose, table

_ID_CHARS = 60
_LINE_CHARS = 500
_BEFORE_MATCH = 100


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in the list."""

    session_id: str
    folder: str
    """Where it lies in the archive. An id that holds a secret is masked, so only this tells such sessions apart."""
    steps: int
    newest_step_at: str | None
    outputs: int
    bytes: int
    """Of its outputs and conversations."""
    problem: str | None


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a session."""

    step: int
    committed_at: str | None
    dialect: str | None
    messages: int | None
    bytes: int | None
    """Of the transcript."""
    pruned_at: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A summary, and what it stands for."""

    step: int
    first: int
    last: int
    """The messages of the step's transcript that it covers, counted from 1; what was kept may stand between."""
    messages: int
    tokens: int
    strategy: str
    writer: str
    transcript: str


@dataclass(frozen=True, slots=True)
class Details:
    """All about a session."""

    session_id: str
    steps: list[StepRow]
    summaries: list[SummaryRow]
    files: list[FileInfo]
    events: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line that matches."""

    session_id: str
    path: str
    line: int
    """Counted from 1."""
    column: int
    """Where the match starts, counted from 0."""
    text: str
    """The line, or what surrounds the match in a long one."""


def session_row(archive: Archive, folder: str, session_id: str) -> SessionRow:
    """A session in the list; what cannot be read is said, not raised."""
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


def session_details(archive: Archive, session_id: str) -> Details:
    """All about a session."""
    steps = [_step_row(archive, session_id, step) for step in archive.steps(session_id)]
    summaries = [row for step in steps for row in _summary_rows(archive, session_id, step)]
    return Details(session_id, steps, summaries, archive.files(session_id), len(archive.events(session_id)))


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


def matching_lines(archive: Archive, sessions: Mapping[str, str], pattern: LinePattern) -> Iterator[Line]:
    """The matching lines of all readable files of some sessions, whose ids are given by folder."""
    for folder, session_id in sessions.items():
        for info in archive.listing_in(folder).files:
            text = archive.read_text_in(folder, info.path)
            lines: list[str] = []
            for match in pattern.matches(text):
                lines = lines or text.split("\n")
                shown = _around(lines[match.line], match.column)
                yield Line(session_id, info.path, match.line + 1, match.column, shown)


def print_sessions(out: Console, rows: list[SessionRow]) -> None:
    """The list of sessions."""
    if not rows:
        out.print("The archive is empty")
        return
    made = table(
        label("session"), number("steps"), label("newest step"), number("outputs"), number("bytes"), prose("")
    )
    for row in rows:
        made.add_row(
            one_line(row.session_id, _ID_CHARS),
            f"{row.steps:,}",
            row.newest_step_at or "-",
            f"{row.outputs:,}",
            f"{row.bytes:,}",
            row.problem or "",
        )
    print_table(out, made)


def print_details(out: Console, details: Details) -> None:
    """One session."""
    counts = ", ".join(
        [
            counted(len(details.steps), "step"),
            counted(len(details.files), "file"),
            counted(details.events, "event"),
        ]
    )
    out.print(f"Session {one_line(details.session_id, _ID_CHARS)}: {counts}")
    if details.steps:
        made = table(
            number("step"),
            label("committed"),
            label("dialect"),
            number("messages"),
            number("bytes"),
            prose(""),
        )
        for row in details.steps:
            remark = row.problem or (f"pruned {row.pruned_at}" if row.pruned_at else "")
            messages = "-" if row.messages is None else f"{row.messages:,}"
            size = "-" if row.bytes is None else f"{row.bytes:,}"
            made.add_row(str(row.step), row.committed_at or "-", row.dialect or "-", messages, size, remark)
        print_table(out, made, "Steps")
    if details.summaries:
        made = table(
            number("step"), label("covers"), number("messages"), number("tokens"), label("by"), prose("in")
        )
        for found in details.summaries:
            covers = f"m{found.first} to m{found.last}"
            made.add_row(
                str(found.step),
                covers,
                f"{found.messages:,}",
                f"{found.tokens:,}",
                f"{found.writer}, {found.strategy}",
                found.transcript,
            )
        print_table(out, made, "Summaries")
    if details.files:
        made = table(number("bytes"), label("file"))
        for info in details.files:
            made.add_row(f"{info.size:,}", info.path)
        print_table(out, made, "Files")


def print_lines(lines: Iterable[Line]) -> bool:
    """Matching lines as `grep -n` prints them; False when there are none."""
    found = False
    for line in lines:
        found = True
        place = f"{one_line(line.session_id, _ID_CHARS)}{line.path}:{line.line}"
        sys.stdout.write(f"{place}:{_printable(line.text)}\n")
    return found


def print_hits(hits: list[Hit]) -> None:
    """Passages, best first."""
    for rank, hit in enumerate(hits, 1):
        message = "" if hit.message is None else f", message {hit.message}"
        sys.stdout.write(f"{rank}. {hit.path}:{hit.first_line}-{hit.last_line}{message}\n")
        for row in hit.text.removesuffix("\n").split("\n"):
            sys.stdout.write(f"   {_printable(row)}\n")
    if not hits:
        sys.stdout.write("Nothing holds any of these words\n")


def print_problems(out: Console, sessions: int, problems: list[Defect]) -> None:
    """What is not as it was written."""
    if not problems:
        out.print(f"{counted(sessions, 'session')}: everything is as it was written")
        return
    out.print(f"{counted(sessions, 'session')}: {counted(len(problems), 'problem')}")
    made = table(label("what"), label("where"), prose("why"))
    for problem in problems:
        made.add_row(
            problem.code, one_line(problem.key, 2 * _ID_CHARS), one_line(problem.message, _LINE_CHARS)
        )
    print_table(out, made)


def print_removed(out: Console, removed: list[Pruned], refused: dict[str, str], dry_run: bool) -> None:
    """What was removed, or would be."""
    records = counted(sum(len(each.keys) for each in removed), "record")
    size = sum(each.bytes for each in removed)
    out.print(f"{'Would remove' if dry_run else 'Removed'} {records}, {size:,} bytes")
    for each in removed:
        what = "outputs" if each.step is None else f"step {each.step}"
        out.print(f"  {one_line(each.session_id, _ID_CHARS)}: {what}, {counted(len(each.keys), 'record')}")
    for session_id, why in refused.items():
        out.print(f"  {one_line(session_id, _ID_CHARS)} was left as it is: {one_line(why, _LINE_CHARS)}")


def _step_row(archive: Archive, session_id: str, step: int) -> StepRow:
    try:
        found = archive.step(session_id, step)
    except ArchiveError as error:
        return StepRow(step, None, None, None, None, None, error.message)
    transcript = found.files["transcript"]
    return StepRow(
        step=step,
        committed_at=found.committed_at,
        dialect=found.dialect,
        messages=transcript.lines,
        bytes=transcript.bytes,
        pruned_at=found.pruned_at,
        problem=None,
    )


def _around(line: str, column: int) -> str:
    start = max(0, column - _BEFORE_MATCH) if len(line) > _LINE_CHARS else 0
    return line[start : start + _LINE_CHARS]


def _printable(line: str) -> str:
    """A line without characters that could steer a terminal."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
