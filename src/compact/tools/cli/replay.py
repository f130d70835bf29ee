"""`compact replay`: play recorded sessions again under one policy, or several side by side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn

from compact.archive import to_line
from compact.config import CompactConfig
from compact.errors import TranscriptError
from compact.tokens.prices import built_in
from compact.tools.cli.inputs import progress_bar, report_left_out, report_skipped, transcripts_in
from compact.tools.cli.options import (
    ForceOption,
    JsonOption,
    LenientOption,
    ModelOption,
    ReportOption,
    WindowOption,
    parse_tokens,
)
from compact.tools.cli.outputs import check_endings, check_outputs, write_output, write_reports
from compact.tools.cli.printing import console, count_of, first_lines, one_line, print_json, print_table
from compact.tools.cli.settings import load_settings
from compact.tools.replay import Played, Policy, Run, as_data, read_prices, replay, summarize, summary_cells
from compact.tools.replay.engines import ENGINES
from compact.tools.replay.page import as_html, as_markdown
from compact.tools.replay.running import compared_in_words

EXAMPLE = "Example: compact replay sessions/ --window 32k --compare selective --report report.html"

PRESETS = ("layered", "selective", "progressive")
PROBLEMS_SHOWN = 10
STEPS_SHOWN = 30
_WORTH_A_PROCESS_BYTES = 400_000


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Transcripts of any supported format, or folders of them."),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "--config",
            metavar="POLICY",
            help="A settings file, or a preset: layered, selective, progressive. Default: compact.yaml in the current "
            "folder, then the built-in defaults.",
        ),
    ] = None,
    compare: Annotated[
        list[str] | None, typer.Option(metavar="POLICY", help="Another policy to compare with. Repeatable.")
    ] = None,
    window: WindowOption = None,
    model: ModelOption = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="YAML with dollars per million tokens, by model.")
    ] = None,
    report: ReportOption = None,
    requests: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write what would have been sent, as JSONL: the request after each change of the context, and the last.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of processes. Default: one per core.")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Engine that runs the work: local, dask, or an installed one.")
    ] = "local",
    force: ForceOption = False,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Play recorded sessions call by call, with and without compaction.

    Reports tokens over time, every step, whether each request is legal and within its budget, how much of what the
    session needed later was kept, and the cost. Nothing is sent anywhere and no archive is written. Exit code 0: every
    request was fine. 1: one was not. 2: bad input or usage.
    """
    chosen = transcripts_in(files)
    policies = _policies(policy, compare or [], window)
    data = partial(as_data, policies=policies)
    writers: dict[str, Callable[[Sequence[Played]], str]] = {
        ".html": as_html,
        ".json": lambda played: json.dumps(data(played), indent=1) + "\n",
        ".md": as_markdown,
    }
    check_endings(report or [], writers)
    read = [*chosen, *(Path(each) for each in (policy, *(compare or []), prices) if each)]
    check_outputs({"--report": report or [], "--requests": [requests] if requests else []}, read, force)
    with _progress(len(chosen)) as on_played:
        played = replay(
            chosen,
            policies,
            prices=built_in() if prices is None else read_prices(prices),
            model=model,
            engine=ENGINES.get(engine),
            workers=_useful_workers(workers, chosen),
            lenient=lenient,
            keep_requests=requests is not None,
            on_skipped=report_skipped,
            on_played=on_played,
        )
    report_left_out("", sum((Counter(one.left_out) for one in played), Counter()))
    for one in played:
        if one.error and not lenient:
            raise TranscriptError(
                f"cannot read {one.file}: session {one.session}: {one.error}", path=one.file
            )
    write_reports(report or [], writers, played, force)
    if requests is not None:
        write_output(requests, b"".join(_request_lines(played)), force)
    if as_json:
        print_json(data(played))
    else:
        _print(console(), played)
    if any(one.problems for one in played):
        raise typer.Exit(1)


def _policies(first: str | None, others: Sequence[str], window: str | None) -> list[Policy]:
    """Load the policies. If two have the same name, the later one gets a number."""
    settings: dict[str, Any] = (
        {} if window is None else {"max_context_tokens": parse_tokens(window, "--window")}
    )
    found: list[Policy] = []
    for given in (first, *others):
        if given in PRESETS:
            config, name = CompactConfig.preset(given, **settings), given
        else:
            config = load_settings(None if given is None else Path(given), **settings)
            name = "default" if given is None else Path(given).stem
        taken = {policy.name for policy in found}
        numbered = (f"{name} {number}" for number in count(2))
        free = name if name not in taken else next(each for each in numbered if each not in taken)
        found.append(Policy(free, config))
    return found


def _useful_workers(workers: int | None, files: Sequence[Path]) -> int | None:
    """Stay in this process for one small file, which is done before a second process has started."""
    if workers is not None or len(files) > 1:
        return workers
    try:
        return 1 if files[0].stat().st_size < _WORTH_A_PROCESS_BYTES else None
    except OSError:
        return 1


def _request_lines(played: Sequence[Played]) -> Iterator[bytes]:
    for one in played:
        for run in one.runs:
            for request in run.requests:
                yield to_line({"session": one.session, "policy": run.policy, **request})


@contextmanager
def _progress(files: int) -> Iterator[Callable[[Played], None] | None]:
    """Show on stderr how many sessions are done."""
    with progress_bar("replaying", MofNCompleteColumn(), TextColumn("files"), total=files) as update:
        if update is None:
            yield None
            return
        seen: dict[str, int] = {}

        def on_played(one: Played) -> None:
            seen[one.file] = seen.get(one.file, 0) + 1
            update(completed=len(seen) - 1, description=f"{sum(seen.values()):,} sessions replayed")

        yield on_played


def _print(out: Console, sessions: Sequence[Played]) -> None:
    """Print one session with its steps, or the sums of many, and everything that went wrong."""
    summaries = summarize(sessions)
    calls = sum(len(played.calls) for played in sessions)
    only = sessions[0] if len(sessions) == 1 else None
    what = f"Session {one_line(only.session, 60)}" if only else count_of(len(sessions), "session")
    out.print(f"{what}: {count_of(calls, 'model call')}, played again")
    if summaries:
        columns = ["policy:24", ">input tokens", ">saved", ">over window", ">steps", ">cost", ">with cache"]
        columns += [">needed, kept", "requests"]
        print_table(out, columns, summary_cells(summaries, columns), compared_in_words(sessions))
    for run in only.runs if only else ():
        if only and run.stopped_at is not None:
            out.print(
                f"\n{run.policy}: stopped at call {run.stopped_at + 1:,} of {len(only.calls):,}", style="bold"
            )
        _print_steps(out, run)
    problems = [f"{played.session}: {problem}" for played in sessions for problem in played.problems]
    if problems:
        out.print(f"\n{count_of(len(problems), 'problem')}", style="bold")
    for problem in first_lines(problems, PROBLEMS_SHOWN):
        out.print(f"  {one_line(problem, 300)}")


def _print_steps(out: Console, run: Run) -> None:
    if not run.steps and run.stopped_at is None:
        out.print(f"\n{run.policy}: nothing had to be compacted in a window of {run.window:,} tokens")
    if not run.steps:
        return
    rows = [
        (
            str(step.number),
            str(step.call + 1),
            step.reason,
            step.tokens_before,
            step.tokens_after,
            step.saved_by,
        )
        for step in run.steps[:STEPS_SHOWN]
    ]
    columns = (">step", ">call", "why", ">before", ">after", "~saved by")
    print_table(out, columns, rows, f"{run.policy}: steps, in tokens")
    if len(run.steps) > STEPS_SHOWN:
        out.print(f"and {len(run.steps) - STEPS_SHOWN} more")
