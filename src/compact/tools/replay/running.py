"""Many sessions: read as they are needed, played by an engine, summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compact.errors import TranscriptError
from compact.tokens.prices import Prices, built_in
from compact.tools.replay.engines import Engine, local
from compact.tools.replay.playing import Job, Policy, play
from compact.tools.replay.results import Played, Run
from compact.tools.transcripts import Skipped, read_sessions

FORMAT = "compact.tools.replay/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All sessions under one policy."""

    policy: str
    sessions: int
    compacted: int
    """Sessions with at least one step."""
    failed: int
    """Sessions that ended early, or had a request that is illegal, over the budget, or without its system prompt."""
    calls: int
    steps: int
    input_tokens_without: int
    input_tokens: int
    saved: float
    """The share of input tokens that was not sent."""
    saved_where_compacted: float | None
    """The same over the sessions that were compacted; None when none was."""
    over_window_without: int
    """Requests that a provider would have refused as too long without compaction."""
    over_budget: int
    illegal: int
    control: int
    needed: int
    kept: int
    retention: float | None
    """The share of what was needed later and stood in the context; None when nothing was."""
    reused: float
    """The share of the sent tokens that a prompt cache can serve."""
    cost_without: float | None
    cost: float | None
    cost_without_cached: float | None
    cost_cached: float | None


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
    on_skipped: Callable[[str, Sequence[Skipped]], None] | None = None,
    on_played: Callable[[Played], None] | None = None,
) -> list[Played]:
    """Plays every session of the files under each policy, in their order, on all cores.

    With more than one worker, a script that calls it needs `if __name__ == "__main__":`, as for any pool of processes.

    Args:
        files: Transcripts of any known format, each of one or many sessions.
        policies: At least one; the first gives the model where neither `model` nor a session names it.
        prices: What tokens cost; the built-in list when left out.
        model: The model of every session, whatever the transcripts say.
        engine: Who does the work.
        workers: How many processes; None: one for each core.
        lenient: Leave out files and lines that cannot be read.
        keep_requests: Keep what would have been sent, in `Run.requests`.
        on_skipped: Told what was left out.
        on_played: Told of each session when it is done.

    Raises:
        TranscriptError: a file cannot be read; says which line.
    """
    found = []
    jobs = _jobs(files, policies, prices or built_in(), model, lenient, keep_requests, on_skipped)
    for played in engine(play, jobs, workers):
        found.append(played)
        if on_played is not None:
            on_played(played)
    return found


def _jobs(
    files: Iterable[Path],
    policies: Sequence[Policy],
    prices: Prices,
    model: str | None,
    lenient: bool,
    keep_requests: bool,
    on_skipped: Callable[[str, Sequence[Skipped]], None] | None,
) -> Iterator[Job]:
    for file in files:
        try:
            for session in read_sessions(file, lenient):
                if session.skipped and on_skipped is not None:
                    on_skipped(session.id, session.skipped)
                yield Job(
                    file=str(file),
                    session=session,
                    policies=policies,
                    prices=prices,
                    model=model,
                    keep_requests=keep_requests,
                )
        except TranscriptError as error:
            if not lenient:
                raise
            if on_skipped is not None:
                on_skipped(str(file), [Skipped(error.details.get("line") or 0, error.message)])


def summarize(sessions: Sequence[Played]) -> list[Summary]:
    """One line per policy, in the order of the policies."""
    names = list(dict.fromkeys(run.policy for played in sessions for run in played.runs))
    return [
        _summary(name, [(played, run) for played in sessions for run in played.runs if run.policy == name])
        for name in names
    ]


def as_data(sessions: Sequence[Played], policies: Sequence[Policy]) -> dict[str, Any]:
    """Everything for programs, without the requests."""
    return {
        "format": FORMAT,
        "policies": [{"name": policy.name, "settings": _chosen_settings(policy)} for policy in policies],
        "summary": [asdict(summary) for summary in summarize(sessions)],
        "sessions": [_session_data(played) for played in sessions],
    }


def _session_data(played: Played) -> dict[str, Any]:
    data = asdict(played)
    for run in data["runs"]:
        del run["requests"]
    return data


def _chosen_settings(policy: Policy) -> dict[str, Any]:
    """The settings that are not the defaults."""
    return {one.path: one.value for one in policy.config.explain() if one.source != "default"}


def _summary(name: str, runs: Sequence[tuple[Played, Run]]) -> Summary:
    sent = sum(sum(run.sent) for _, run in runs)
    without = sum(_played_part(played.without, run) for played, run in runs)
    compacted = [(played, run) for played, run in runs if run.steps]
    needed = sum(step.needed for _, run in runs for step in run.steps)
    kept = sum(step.kept for _, run in runs for step in run.steps)
    priced = [(played.cost_without, run.cost) for played, run in runs]
    costs = [(a, b) for a, b in priced if a is not None and b is not None]
    return Summary(
        policy=name,
        sessions=len(runs),
        compacted=len(compacted),
        failed=sum(not run.passed for _, run in runs),
        calls=sum(len(run.sent) for _, run in runs),
        steps=sum(len(run.steps) for _, run in runs),
        input_tokens_without=without,
        input_tokens=sent,
        saved=_share(without - sent, without) or 0.0,
        saved_where_compacted=_saved_in(compacted),
        over_window_without=sum(run.over_window_without for _, run in runs),
        over_budget=sum(len(run.over_budget) for _, run in runs),
        illegal=sum(len(run.illegal) for _, run in runs),
        control=sum(len(run.control) for _, run in runs),
        needed=needed,
        kept=kept,
        retention=_share(kept, needed),
        reused=_share(sum(sum(run.reused) for _, run in runs), sent) or 0.0,
        cost_without=_dollars([a.plain for a, _ in costs]),
        cost=_dollars([b.plain for _, b in costs]),
        cost_without_cached=_dollars([a.cached for a, _ in costs]),
        cost_cached=_dollars([b.cached for _, b in costs]),
    )


def _played_part(tokens: Sequence[int], run: Run) -> int:
    """A run that ended early is compared with the same calls without compaction."""
    return sum(tokens[: len(run.sent)])


def _saved_in(runs: Sequence[tuple[Played, Run]]) -> float | None:
    without = sum(_played_part(played.without, run) for played, run in runs)
    return _share(without - sum(sum(run.sent) for _, run in runs), without)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _dollars(each: Sequence[float]) -> float | None:
    return round(sum(each), 6) if each else None
