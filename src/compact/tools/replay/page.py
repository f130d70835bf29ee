"""The report of a replay for people, as a page or as Markdown: what was saved, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compact.tools.harness.markup import (
    badge,
    cards,
    document,
    escape,
    fold,
    items,
    markdown_table,
    markdown_text,
    table,
)
from compact.tools.replay.charts import Series, Style, bar_chart, key, line_chart, short
from compact.tools.replay.results import Played, Run
from compact.tools.replay.running import (
    Summary,
    compared_in_words,
    compared_steps,
    saved_in,
    summarize,
    summary_cells,
)

CHARTS_SHOWN = 40
"""Only the longest sessions get a panel. All of them are in the table."""
ROWS_SHOWN = 1_000
MESSAGES_SHOWN = 300
_STYLES: tuple[Style, ...] = ("s1", "s2", "s3")
_PROBLEMS_SHOWN = 100
_NOTHING = "\N{EN DASH}"


def as_html(sessions: Sequence[Played]) -> str:
    """Write the page. It has no script and loads nothing; the same sessions give the same bytes."""
    return document("Replay report", _body(sessions, summarize(sessions)))


def as_markdown(sessions: Sequence[Played]) -> str:
    """Write a table of the policies and a list of what went wrong, for a job's summary."""
    lines = ["# Replay report", "", f"{len(sessions):,} sessions. {compared_in_words(sessions)}:", ""]
    summaries = summarize(sessions)
    columns = ["policy", ">input tokens", ">saved", ">steps", ">failed"]
    columns += [">needed, kept", ">cost", ">with cache"]
    rows = summary_cells(summaries, columns) if summaries else []
    lines += markdown_table(columns, [[cell.replace("|", "\\|") for cell in row] for row in rows])
    problems = [f"{played.session}: {problem}" for played in sessions for problem in played.problems]
    if problems:
        lines += ["", "## What went wrong", ""]
        lines += [f"- {markdown_text(problem)}" for problem in problems[:_PROBLEMS_SHOWN]]
    return "\n".join(lines) + "\n"


def _style(place: int) -> Style:
    """The colour of the n-th policy."""
    return _STYLES[place % len(_STYLES)]


def _body(sessions: Sequence[Played], summaries: Sequence[Summary]) -> Iterator[str]:
    good = all(not summary.failed for summary in summaries) and not any(played.error for played in sessions)
    calls = sum(len(played.calls) for played in sessions)
    yield f"<h1>Replay report {badge(good, 'all requests fine' if good else 'problems found')}</h1>"
    yield (
        f'<p class="lead">{len(sessions):,} recorded session{"" if len(sessions) == 1 else "s"}, {calls:,} model calls, '
        "played again as a host would.</p>"
    )
    if summaries:
        yield cards(_big_numbers(summaries[0]))
        yield from _overview(summaries, compared_in_words(sessions))
    yield from _session_table(sessions)
    yield from _panels(sessions)


def _big_numbers(summary: Summary) -> Iterator[tuple[str, str]]:
    yield _NOTHING if summary.saved is None else f"{summary.saved:.0%}", "fewer input tokens"
    yield short(summary.input_tokens), f"tokens sent, {short(summary.input_tokens_without)} without"
    yield f"{summary.steps:,}", f"compactions in {summary.compacted:,} of {summary.sessions:,} sessions"
    yield f"{summary.calls - summary.over_window:,} of {summary.calls:,}", "requests within the budget"
    yield f"{summary.illegal:,}", "reasons to refuse a request"
    if summary.retention is not None:
        yield f"{summary.kept:,} of {summary.needed:,}", "needed later, and still there"


def _overview(summaries: Sequence[Summary], over: str) -> Iterator[str]:
    yield "<h2>With and without</h2>"
    yield '<section class="panel">'
    bars: list[tuple[str, Style, int]] = [("without compaction", "s0", summaries[0].input_tokens_without)]
    bars += [(summary.policy, _style(n), summary.input_tokens) for n, summary in enumerate(summaries)]
    yield f"<figure>{bar_chart(bars)}"
    yield f"<figcaption>Input tokens. {over} of all sessions.</figcaption></figure></section>"
    columns = ["policy", "saved", "where compacted", "steps", "failed"]
    columns += ["needed, kept", "cost", "with cache", "reused"]
    rows = summary_cells(summaries, columns, _NOTHING)
    for place, (summary, row) in enumerate(zip(summaries, rows[1:], strict=True)):
        row[0] = key([(_style(place), summary.policy)])
        if summary.failed:
            row[columns.index("failed")] = badge(False, f"{summary.failed:,}")
    yield f'<section class="panel">{table(columns, rows, numbers=range(1, len(columns)))}'
    yield (
        '<p class="note">Cost in dollars by the price list: without a prompt cache, and with one that serves every unchanged '
        "prefix of a request.</p></section>"
    )


def _session_table(sessions: Sequence[Played]) -> Iterator[str]:
    yield "<h2>Sessions</h2>"
    head = ["session", "messages", "calls", "tokens without"]
    names = [run.policy for run in sessions[0].runs] if sessions else []
    head += [f"{name}: saved" for name in names] + [f"{name}: steps" for name in names] + [""]
    rows = [_session_row(played, len(names)) for played in sessions[:ROWS_SHOWN]]
    yield f'<section class="panel">{table(head, rows, numbers=range(1, len(head) - 1))}'
    if len(sessions) > ROWS_SHOWN:
        yield f'<p class="note">{len(sessions) - ROWS_SHOWN:,} more are in the JSON report.</p>'
    yield "</section>"


def _session_row(played: Played, policies: int) -> tuple[str, ...]:
    name = escape(played.session)
    if played.error:
        return (name, f"{played.messages:,}", *[_NOTHING] * (2 + 2 * policies), badge(False, "not played"))
    total, calls = sum(played.without[: played.compared]), len(played.calls)
    shares = [saved_in(played, run) for run in played.runs]
    saved = [_NOTHING if share is None else f"{share:.1%}" for share in shares]
    steps = [f"{len(compared_steps(played, run)):,}" for run in played.runs]
    stopped = [
        f"{run.policy} stopped at call {run.stopped_at + 1:,}"
        for run in played.runs
        if run.stopped_at is not None
    ]
    good = all(run.passed for run in played.runs)
    verdict = badge(good, "fine" if good else "; ".join(stopped) or "failed")
    counted = f"{calls:,}" if played.compared == calls else f"{played.compared:,} of {calls:,}"
    return (name, f"{played.messages:,}", counted, f"{total:,}", *saved, *steps, verdict)


def _panels(sessions: Sequence[Played]) -> Iterator[str]:
    wanted = [
        played
        for played in sessions
        if played.error or any(run.steps or not run.passed for run in played.runs)
    ]
    longest = sorted(wanted, key=lambda played: (-sum(played.without), played.session))[:CHARTS_SHOWN]
    if not longest:
        return
    yield "<h2>Tokens over time</h2>"
    if len(wanted) > len(longest):
        yield f'<p class="note">The {len(longest)} longest of {len(wanted):,} sessions that were compacted.</p>'
    for played in longest:
        yield from _panel(played)


def _panel(played: Played) -> Iterator[str]:
    yield f'<section class="panel"><h3>{escape(played.session)}</h3>'
    yield f'<p class="note">{escape(played.file)}, {played.dialect}, {escape(played.model)}</p>'
    if played.error:
        yield items([played.error]) + "</section>"
        return
    lines = [Series("without compaction", "s0", played.without, area=True)]
    for place, run in enumerate(played.runs):
        lines.append(Series(run.policy, _style(place), run.sent, [step.call for step in run.steps]))
    window = min(run.window for run in played.runs)
    shown = window if window <= 3 * max(played.without) else None
    yield f"<figure>{line_chart(lines, shown, f'Tokens of each request of {played.session}')}</figure>"
    yield key([(line.style, line.name) for line in lines])
    for run in played.runs:
        yield from _run(run)
    yield "</section>"


def _run(run: Run) -> Iterator[str]:
    if run.problems:
        yield f"<p>{badge(False, run.policy)}</p>{items(run.problems)}"
    if run.steps:
        head = ("step", "call", "why", "tokens before", "after", "messages", "saved by", "needed later, kept")
        rows = [
            (
                f"{step.number}",
                f"{step.call + 1:,}",
                escape(step.reason),
                f"{step.tokens_before:,}",
                f"{step.tokens_after:,}",
                f"{step.messages_before:,} \N{RIGHTWARDS ARROW} {step.messages_after:,}",
                escape(step.saved_by),
                f"{step.kept:,} of {step.needed:,}",
            )
            for step in run.steps
        ]
        steps = f"{len(run.steps)} step{'' if len(run.steps) == 1 else 's'}"
        yield fold(f"{run.policy}: {steps}", table(head, rows, numbers=(0, 1, 3, 4, 5, 7)))
    if run.outline:
        last = [
            (escape(one.role), f"{one.tokens:,}", escape(one.begins)) for one in run.outline[:MESSAGES_SHOWN]
        ]
        outline = table(("role", "tokens", "begins"), last, numbers=(1,))
        yield fold(f"{run.policy}: the last request, {len(run.outline):,} messages", outline)
    if run.summary:
        yield fold(f"{run.policy}: the newest summary", f"<pre>{escape(run.summary)}</pre>")
