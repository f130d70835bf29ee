"""Replay many sessions: read as needed, played by an engine, summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from compact.errors import TranscriptError
from compact.tokens.prices import Prices, built_in
from compact.tools.replay.engines import Engine, local
from compact.tools.replay.playing import Job, Policy, play
from compact.tools.replay.results import Played, Run, Step
from compact.tools.transcripts import RecordedSession, Skipped, read_sessions

FORMAT = "compact.replay/1"

OnSkipped: TypeAlias = Callable[[str, Sequence[Skipped]], None]
"""Called with a session or file, and what was skipped of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All sessions under one policy."""

    policy: str
    sessions: int
    compacted: int
    """Sessions with at least one step."""
    failed: int
    """Sessions that stopped early, or had a request that was illegal, over the budget, or without its system prompt."""
    stopped: int
    """Sessions that stopped early."""
    calls: int
    """Calls that every policy finished. All figures below count these calls, except faults: those are counted in all."""
    steps: int
    input_tokens_without: int
    input_tokens: int
    saved: float | None
    """The share of input tokens that was saved; None if no call was finished."""
    saved_where_compacted: float | None
    """The same for compacted sessions only; None if there are none."""
    over_window_without: int
    """Requests that a provider would have refused as too long without compaction."""
    over_window: int
    """Requests that were over the budget all the same."""
    over_budget: int
    """The same, in all calls."""
    illegal: int
    control: int
    needed: int
    kept: int
    retention: float | None
    """The share of what was needed later that was still in the context; None if nothing was needed."""
    reused: float
    """The share of the sent tokens that a prompt cache can serve."""
    cost_without: float | None
    cost: float | None
    cost_without_cached: float | None
    cost_cached: float | None


def summary_cells(summaries: Sequence[Summary], columns: Sequence[str], unknown: str = "") -> list[list[str]]:
    """Write the rows of a table: one without compaction, one for each policy.

    Args:
        summaries: At least one.
        columns: The headings, of those below, in any order. A `>` in front or a `:60` behind is ignored.
        unknown: What to write where there is nothing to say.
    """
    first = summaries[0]
    without = {
        "policy": "without compaction",
        "input tokens": f"{first.input_tokens_without:,}",
        "over window": f"{first.over_window_without:,}",
        "cost": _money(first.cost_without, unknown),
        "with cache": _money(first.cost_without_cached, unknown),
        "requests": "refused" if first.over_window_without else "",
    }
    rows = [without, *(_policy_cells(summary, unknown) for summary in summaries)]
    names = [column.removeprefix(">").partition(":")[0] for column in columns]
    return [[row.get(name, unknown) for name in names] for row in rows]


def _policy_cells(summary: Summary, unknown: str) -> dict[str, str]:
    where, kept = summary.saved_where_compacted, summary.retention
    return {
        "policy": summary.policy,
        "input tokens": f"{summary.input_tokens:,}",
        "saved": unknown if summary.saved is None else f"{summary.saved:.1%}",
        "where compacted": unknown if where is None else f"{where:.1%}",
        "over window": f"{summary.over_window:,}",
        "steps": f"{summary.steps:,}",
        "failed": f"{summary.failed:,}",
        "needed, kept": unknown if kept is None else f"{summary.kept:,} of {summary.needed:,} ({kept:.0%})",
        "cost": _money(summary.cost, unknown),
        "with cache": _money(summary.cost_cached, unknown),
        "reused": f"{summary.reused:.0%}",
        "requests": _verdict(summary),
    }


def _verdict(summary: Summary) -> str:
    if not summary.failed:
        return "all legal"
    stopped = f", {summary.stopped:,} of them stopped early" if summary.stopped else ""
    return f"{summary.failed:,} failed{stopped}"


def _money(dollars: float | None, unknown: str) -> str:
    return unknown if dollars is None else f"${dollars:,.2f}"


def replay(
    files: Sequence[Path],
    policies: Sequence[Policy],
    *,
    prices: Prices | None = None,
    model: str | None = None,
    engine: Engine = local,
    workers: int | None = None,
    lenient: bool = False,
    keep_requests: bool = False,
    on_skipped: OnSkipped | None = None,
    on_played: Callable[[Played], None] | None = None,
) -> list[Played]:
    """Play every session of the files under each policy, in their order, on all cores.

    With more than one worker, a calling script needs `if __name__ == "__main__":`, as for any process pool.

    Args:
        files: Transcripts of any supported format, each of one or many sessions.
        policies: At least one. The first gives the model if neither `model` nor the session names one.
        prices: What tokens cost. Default: the built-in list.
        model: The model of every session, whatever the transcripts say.
        engine: Runs the work.
        workers: Number of processes. Default: one per core.
        lenient: Skip files and lines that cannot be read.
        keep_requests: Keep what would have been sent, in `Run.requests`.
        on_skipped: Called with what was skipped.
        on_played: Called with each session when it is done.

    Raises:
        TranscriptError: a file cannot be read; says which line.
    """

    def jobs() -> Iterator[Job]:
        for file in files:
            for session in _read(file, lenient, on_skipped):
                yield Job(
                    file=str(file),
                    session=session,
                    policies=policies,
                    prices=prices or built_in(),
                    model=model,
                    keep_requests=keep_requests,
                )

    found = []
    for played in engine(play, jobs(), workers):
        found.append(played)
        if on_played is not None:
            on_played(played)
    return found


def _read(file: Path, lenient: bool, on_skipped: OnSkipped | None) -> Iterator[RecordedSession]:
    try:
        for session in read_sessions(file, lenient):
            if session.skipped and on_skipped is not None:
                on_skipped(session.label, session.skipped)
            yield session
    except TranscriptError as error:
        if not lenient:
            raise
        if on_skipped is not None:
            on_skipped(str(file), [Skipped(error.details.get("line") or 0, error.message)])


def compared_steps(played: Played, run: Run) -> list[Step]:
    """The steps of a run in the calls that every policy finished."""
    return [step for step in run.steps if step.call < played.compared]


def saved_in(played: Played, run: Run) -> float | None:
    """The share of input tokens that a run saved, over the calls that every policy finished; None if there are none."""
    without, sent = _tokens([(played, run)])
    return _share(without - sent, without)


def compared_in_words(sessions: Sequence[Played]) -> str:
    """Say which calls the figures count: all of them, or those that every policy finished."""
    calls, compared = (sum(len(one.calls) for one in sessions), sum(one.compared for one in sessions))
    if calls == compared:
        return "Over all requests"
    return f"Over the {compared:,} of {calls:,} requests that every policy finished"


def summarize(sessions: Sequence[Played]) -> list[Summary]:
    """Sum up the sessions, policy by policy."""
    names = list(dict.fromkeys(run.policy for played in sessions for run in played.runs))
    return [
        _summary(name, [(played, run) for played in sessions for run in played.runs if run.policy == name])
        for name in names
    ]


def as_data(sessions: Sequence[Played], policies: Sequence[Policy]) -> dict[str, Any]:
    """The report for programs, without the requests."""
    data = [asdict(played) for played in sessions]
    for session in data:
        for run in session["runs"]:
            del run["requests"]
    chosen = [
        {one.path: one.value for one in policy.config.explain() if one.source != "default"}
        for policy in policies
    ]
    return {
        "format": FORMAT,
        "policies": [
            {"name": policy.name, "settings": settings}
            for policy, settings in zip(policies, chosen, strict=True)
        ],
        "summary": [asdict(summary) for summary in summarize(sessions)],
        "sessions": data,
    }


def _summary(name: str, runs: Sequence[tuple[Played, Run]]) -> Summary:
    without, sent = _tokens(runs)
    steps = [step for played, run in runs for step in compared_steps(played, run)]
    compacted = [(played, run) for played, run in runs if compared_steps(played, run)]
    without_there, sent_there = _tokens(compacted)
    needed, kept = sum(step.needed for step in steps), sum(step.kept for step in steps)
    costs = [(played.cost_without, run.cost) for played, run in runs if played.cost_without and run.cost]
    return Summary(
        policy=name,
        sessions=len(runs),
        compacted=len(compacted),
        failed=sum(not run.passed for _, run in runs),
        stopped=sum(run.stopped_at is not None for _, run in runs),
        calls=sum(played.compared for played, _ in runs),
        steps=len(steps),
        input_tokens_without=without,
        input_tokens=sent,
        saved=_share(without - sent, without),
        saved_where_compacted=_share(without_there - sent_there, without_there),
        over_window_without=sum(run.over_window_without for _, run in runs),
        over_window=sum(call < played.compared for played, run in runs for call in run.over_budget),
        over_budget=sum(len(run.over_budget) for _, run in runs),
        illegal=sum(len(run.illegal) for _, run in runs),
        control=sum(len(run.control) for _, run in runs),
        needed=needed,
        kept=kept,
        retention=_share(kept, needed),
        reused=_share(sum(sum(run.reused[: played.compared]) for played, run in runs), sent) or 0.0,
        cost_without=_dollars([a.plain for a, _ in costs]),
        cost=_dollars([b.plain for _, b in costs]),
        cost_without_cached=_dollars([a.cached for a, _ in costs]),
        cost_cached=_dollars([b.cached for _, b in costs]),
    )


def _tokens(runs: Sequence[tuple[Played, Run]]) -> tuple[int, int]:
    """Count tokens without and with compaction, over the calls that every policy finished."""
    without = sum(sum(played.without[: played.compared]) for played, _ in runs)
    return without, sum(sum(run.sent[: played.compared]) for played, run in runs)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _dollars(each: Sequence[float]) -> float | None:
    return round(sum(each), 6) if each else None
