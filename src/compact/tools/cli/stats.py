"""`compact stats`: what compaction saved, session by session, from the archive's events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from compact.archive import Archive
from compact.errors import ArchiveError
from compact.events import Event, Failure, Finished, Offload, PrunedMessages, TokenEstimate, Warned
from compact.tools.cli.opening import MaybeSession, RootOption, check_known, opened
from compact.tools.cli.shared import (
    JsonOption,
    console,
    label,
    number,
    one_line,
    print_json,
    print_table,
    table,
)

EXAMPLE = "Example: compact stats"

_ID_CHARS = 48


@dataclass(slots=True)
class Stats:
    """The metrics of a session. The first three are those of `CompactManager.get_compaction_stats`."""

    session_id: str
    total_tokens_saved: int = 0
    compaction_events: int = 0
    by_strategy: dict[str, int] = field(default_factory=dict)
    """Tokens by stage: offload, compact, summarize, truncate."""
    calls: int = 0
    steps: int = 0
    peak_tokens: int = 0
    seconds: float = 0.0
    """Spent in passes."""
    errors: int = 0
    warnings: int = 0
    problem: str | None = None


def command(session: MaybeSession = None, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Show what compaction saved in each session: tokens by stage, steps, time, problems."""
    with opened(root) as archive:
        if session is not None:
            check_known(archive, session)
        folders = archive.sessions_by_folder() if session is None else {archive.folder(session): session}
        rows = sorted((_row(archive, *each) for each in folders.items()), key=lambda row: row.session_id)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        print_stats(console(), rows)


def _row(archive: Archive, folder: str, session_id: str) -> Stats:
    try:
        return stats_of(session_id, archive.events_in(folder))
    except ArchiveError as error:
        return Stats(session_id, problem=error.message)


def stats_of(session_id: str, events: Iterable[Event]) -> Stats:
    """What the events of a session add up to."""
    found = Stats(session_id)
    for event in events:
        match event.properties:
            case TokenEstimate(t_est=tokens):
                found.calls += 1
                found.peak_tokens = max(found.peak_tokens, tokens)
            case Offload() as fact:  # counted one by one, as they happen; a step may never come
                _credit(found, "offload", fact.tokens_before - fact.tokens_after)
            case PrunedMessages():
                for stage, tokens in (event.payload or {}).get("saved", {}).items():
                    if stage != "offload":
                        _credit(found, stage, tokens)
            case Finished() as fact:
                found.seconds += fact.duration_ms / 1000
                found.steps += fact.outcome == "compacted"
            case Failure():
                found.errors += 1
            case Warned():
                found.warnings += 1
    found.total_tokens_saved = sum(found.by_strategy.values())
    found.seconds = round(found.seconds, 3)
    return found


def _credit(found: Stats, stage: str, tokens: int) -> None:
    found.by_strategy[stage] = found.by_strategy.get(stage, 0) + tokens
    found.compaction_events += 1


def print_stats(out: Console, rows: Sequence[Stats]) -> None:
    """The table."""
    if not rows:
        out.print("The archive is empty")
        return
    stages = [
        stage
        for stage in ("offload", "compact", "summarize", "truncate")
        if any(stage in row.by_strategy for row in rows)
    ]
    made = table(
        label("session"),
        number("calls"),
        number("steps"),
        number("peak"),
        number("saved"),
        *map(number, stages),
        number("seconds"),
        number("errors"),
        number("warnings"),
    )
    for row in rows:
        made.add_row(*_cells(row, stages))
    if len(rows) > 1:
        made.add_row(*_cells(_sum(rows), stages), style="bold")
    print_table(out, made)
    for row in rows:
        if row.problem:
            out.print(f"{one_line(row.session_id, _ID_CHARS)} cannot be read: {row.problem}")


def _cells(row: Stats, stages: Sequence[str]) -> list[str]:
    numbers: list[Any] = [row.calls, row.steps, row.peak_tokens, row.total_tokens_saved]
    numbers += [row.by_strategy.get(stage, 0) for stage in stages]
    return [
        one_line(row.session_id, _ID_CHARS),
        *(f"{each:,}" for each in numbers),
        f"{row.seconds:,.2f}",
        f"{row.errors:,}",
        f"{row.warnings:,}",
    ]


def _sum(rows: Sequence[Stats]) -> Stats:
    found = Stats("all", peak_tokens=max(row.peak_tokens for row in rows))
    for row in rows:
        for name in (
            "total_tokens_saved",
            "compaction_events",
            "calls",
            "steps",
            "seconds",
            "errors",
            "warnings",
        ):
            setattr(found, name, getattr(found, name) + getattr(row, name))
        for stage, tokens in row.by_strategy.items():
            found.by_strategy[stage] = found.by_strategy.get(stage, 0) + tokens
    return found
