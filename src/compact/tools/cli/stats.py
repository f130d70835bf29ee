"""`compact stats`: what compaction saved in each session, from the archive's events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from compact.archive import Archive
from compact.errors import ArchiveError
from compact.events import Event, Failure, Finished, Offload, PrunedMessages, TokenEstimate, Warned
from compact.tools.cli.archives import folders_of, open_at
from compact.tools.cli.options import ConfigOption, JsonOption, OptionalSession, RootOption, TenantOption
from compact.tools.cli.printing import Cell, console, one_line, print_json, print_table

EXAMPLE = "Example: compact stats"

_ID_CHARS = 48
_PEAK = 2
"""The column that has a maximum, not a sum."""


@dataclass(slots=True)
class SessionStats:
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
    """Time spent in passes."""
    errors: int = 0
    warnings: int = 0
    problem: str | None = None


def command(
    session: OptionalSession = None,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what compaction saved in each session: tokens by stage, steps, time, problems."""
    with open_at(root, config, tenant=tenant) as archive:
        folders = folders_of(archive, session)
        rows = sorted((_row(archive, *each) for each in folders.items()), key=lambda row: row.session_id)
    if as_json:
        print_json(rows)
    else:
        _print(console(), rows)


def _row(archive: Archive, folder: str, session_id: str) -> SessionStats:
    try:
        return stats_of(session_id, archive.events_in(folder))
    except ArchiveError as error:
        return SessionStats(session_id, problem=error.message)


def stats_of(session_id: str, events: Iterable[Event]) -> SessionStats:
    """Add up the events of a session."""
    found = SessionStats(session_id)
    for event in events:
        match event.properties:
            case TokenEstimate(t_est=tokens):
                found.calls += 1
                found.peak_tokens = max(found.peak_tokens, tokens)
            case Offload() as fact:  # counted as they happen: a step may never follow
                _credit(found, {"offload": fact.tokens_before - fact.tokens_after})
            case PrunedMessages():
                saved = (event.payload or {}).get("saved", {})
                _credit(found, {stage: tokens for stage, tokens in saved.items() if stage != "offload"})
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


def _credit(found: SessionStats, saved: dict[str, int]) -> None:
    """Count one pass or one offload."""
    for stage, tokens in saved.items():
        found.by_strategy[stage] = found.by_strategy.get(stage, 0) + tokens
    found.compaction_events += bool(saved)


def _print(out: Console, rows: Sequence[SessionStats]) -> None:
    if not rows:
        out.print("The archive is empty")
        return
    used = {stage for row in rows for stage in row.by_strategy}
    ours = ("offload", "compact", "summarize", "truncate")
    stages = [*(stage for stage in ours if stage in used), *sorted(used.difference(ours))]
    columns = (">calls", ">steps", ">peak", ">saved", *(f">{stage}" for stage in stages))
    columns += (">seconds", ">errors", ">warnings")
    numbers = [_numbers(row, stages) for row in rows]
    total = [sum(column) for column in zip(*numbers, strict=True)]
    total[_PEAK] = max(row.peak_tokens for row in rows)
    cells: list[list[Cell]] = [[row.session_id, *own] for row, own in zip(rows, numbers, strict=True)]
    print_table(out, ("session:48", *columns), cells, total=("all", *total) if len(rows) > 1 else None)
    for row in rows:
        if row.problem:
            out.print(f"{one_line(row.session_id, _ID_CHARS)} cannot be read: {row.problem}")


def _numbers(row: SessionStats, stages: Sequence[str]) -> list[float]:
    saved = [row.by_strategy.get(stage, 0) for stage in stages]
    sizes = [row.calls, row.steps, row.peak_tokens, row.total_tokens_saved]
    return [*sizes, *saved, float(row.seconds), row.errors, row.warnings]
