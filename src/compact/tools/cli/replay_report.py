"""A replay on the screen, and as Markdown for a job's summary."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from compact.tools.cli.shared import counted, label, number, one_line, print_table, prose, table
from compact.tools.replay import Played, Run, Summary, summarize

PROBLEMS_SHOWN = 10
STEPS_SHOWN = 30
_NAME = 24


def print_replay(out: Console, sessions: Sequence[Played]) -> None:
    """One session with its steps, or the sums of many; and everything that went wrong."""
    summaries = summarize(sessions)
    calls = sum(len(played.calls) for played in sessions)
    what = (
        f"Session {one_line(sessions[0].session, 60)}"
        if len(sessions) == 1
        else counted(len(sessions), "session")
    )
    out.print(f"{what}: {counted(calls, 'model call')}, played again")
    if summaries:
        print_comparison(out, summaries)
    if len(sessions) == 1:
        for run in sessions[0].runs:
            print_steps(out, run)
    _print_problems(out, sessions)


def print_comparison(out: Console, summaries: Sequence[Summary]) -> None:
    """What was sent and what it costs, without compaction and under each policy."""
    rows = table(
        label("policy"),
        *map(number, ("input tokens", "saved", "over window", "steps", "cost", "with cache", "needed, kept")),
        label("requests"),
    )
    first = summaries[0]
    rows.add_row(
        "without",
        f"{first.input_tokens_without:,}",
        "",
        f"{first.over_window_without:,}",
        "",
        _money(first.cost_without),
        _money(first.cost_without_cached),
        "",
        "refused" if first.over_window_without else "",
    )
    for summary in summaries:
        kept = (
            "" if summary.retention is None else f"{summary.kept}/{summary.needed} ({summary.retention:.0%})"
        )
        rows.add_row(
            one_line(summary.policy, _NAME),
            f"{summary.input_tokens:,}",
            f"{summary.saved:.1%}",
            f"{summary.over_budget:,}",
            f"{summary.steps:,}",
            _money(summary.cost),
            _money(summary.cost_cached),
            kept,
            "all legal" if not summary.failed else f"{summary.failed} failed",
        )
    print_table(out, rows, "Over all requests")


def print_steps(out: Console, run: Run) -> None:
    """Every compaction of a run."""
    if not run.steps:
        out.print(f"\n{run.policy}: nothing had to be compacted in a window of {run.window:,} tokens")
        return
    rows = table(
        number("step"), number("call"), label("why"), number("before"), number("after"), prose("saved by")
    )
    for step in run.steps[:STEPS_SHOWN]:
        saved = ", ".join(f"{stage} {tokens:,}" for stage, tokens in step.saved.items())
        numbers = (f"{step.tokens_before:,}", f"{step.tokens_after:,}")
        rows.add_row(str(step.number), str(step.call + 1), step.reason, *numbers, saved)
    print_table(out, rows, f"{run.policy}: steps, in tokens")
    if len(run.steps) > STEPS_SHOWN:
        out.print(f"and {len(run.steps) - STEPS_SHOWN} more")


def as_markdown(sessions: Sequence[Played]) -> str:
    """A table of the policies and a list of what went wrong."""
    lines = ["# Replay report", "", f"{len(sessions):,} sessions.", ""]
    lines += [
        "| policy | input tokens without | with | saved | steps | failed | needed later, kept | cost without | cost |"
    ]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for summary in summarize(sessions):
        kept = "" if summary.retention is None else f"{summary.retention:.0%}"
        cells = (
            summary.policy.replace("|", "\\|"),
            f"{summary.input_tokens_without:,}",
            f"{summary.input_tokens:,}",
            f"{summary.saved:.1%}",
            f"{summary.steps:,}",
            f"{summary.failed:,}",
            kept,
            _money(summary.cost_without),
            _money(summary.cost),
        )
        lines.append(f"| {' | '.join(cells)} |")
    found = problems(sessions)
    if found:
        lines += ["", "## What went wrong", "", *(f"- {_flat(line)}" for line in found[:100])]
    return "\n".join(lines) + "\n"


def problems(sessions: Sequence[Played]) -> list[str]:
    """Everything that is wrong with any request, a line each."""
    found = []
    for played in sessions:
        told = [played.error] if played.error else []
        for run in played.runs:
            told += [f"{run.policy}: {what}" for what in (*run.illegal, *run.control)]
            told += [
                f"{run.policy}: call {call}: over the budget of {run.budget:,}" for call in run.over_budget
            ]
            told += [f"{run.policy}: {run.error}"] if run.error else []
        found += [f"{played.session}: {what}" for what in told]
    return found


def _print_problems(out: Console, sessions: Sequence[Played]) -> None:
    found = problems(sessions)
    if not found:
        return
    out.print(f"\n{counted(len(found), 'problem')}", style="bold")
    for line in found[:PROBLEMS_SHOWN]:
        out.print(f"  {one_line(line, 300)}")
    if len(found) > PROBLEMS_SHOWN:
        out.print(f"  and {len(found) - PROBLEMS_SHOWN:,} more")


def _money(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:,.2f}"


def _flat(words: str) -> str:
    return one_line(words, 300).replace("|", "\\|").replace("<", "\\<")
