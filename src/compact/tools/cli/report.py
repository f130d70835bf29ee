"""A measured session, and what a compaction did to one, on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from compact.messages.legality import Violation
from compact.tools.cli.compaction import LEVELS, Compaction, Size
from compact.tools.cli.measure import Measured, ToolShare
from compact.tools.cli.shared import counted, label, number, one_line, print_table, prose, table

TOOLS_SHOWN = 12
BEGINNING_CHARS = 44
ID_CHARS = 40
TOOL_CHARS = 32
MOVED_SHOWN = 5
FILES = {
    "transcript-": "the session as it was, message for message",
    "conversation_history/": "the same as a page, for reading and grep",
    "summary-": "what was folded, and into which words",
    "state-": "what the next call needs",
}
"""What a step writes, by how the names begin."""
STAGES = {
    "offload": "large tool outputs moved to files",
    "compact": "old tool outputs and written texts became pointers",
    "summarize": "the oldest part became a summary",
    "truncate": "oversized messages cut, the oldest left out",
    "other": "repairs, markers, steps that were made earlier",
}
"""What each stage of a compaction does."""


def print_measured(out: Console, measured: Measured) -> None:
    """The whole report of one session: total, roles, tools, largest messages."""
    out.print(
        f"Session {one_line(measured.session, 60)}: {counted(measured.messages, 'message')}, {measured.dialect}"
    )
    estimated = "" if measured.exact else " (an estimate, rounded up)"
    out.print(f"{measured.tokens:,} tokens for {measured.model}{estimated}")
    out.print(usage_words(measured))
    _print_roles(out, measured)
    _print_tools(out, measured)
    _print_largest(out, measured)


def usage_words(measured: Measured) -> str:
    """How full the window is, and whether compaction would start."""
    origin = "" if measured.window_known else " (assumed: the model is unknown)"
    reached = "reached" if measured.tokens >= measured.trigger else "not reached"
    share = f"{measured.usage:.1%} of its window of {measured.window:,}{origin}"
    return f"{share}; compaction starts at {measured.trigger:,}: {reached}"


def print_totals(out: Console, sessions: Sequence[Measured]) -> None:
    """One row per session, and their sum."""
    rows = table(prose("session"), number("messages"), number("tokens"), number("of window"))
    for measured in sessions:
        rows.add_row(
            one_line(measured.session, ID_CHARS),
            f"{measured.messages:,}",
            f"{measured.tokens:,}",
            f"{measured.usage:.1%}",
        )
    rows.add_row(
        counted(len(sessions), "session"),
        f"{sum(m.messages for m in sessions):,}",
        f"{sum(m.tokens for m in sessions):,}",
        "",
    )
    print_table(out, rows)


def print_violations(out: Console, session: str, messages: int, found: Sequence[Violation]) -> None:
    """Whether a session is legal, and every reason why not."""
    name = one_line(session, 60)
    if not found:
        out.print(f"Session {name}: {counted(messages, 'message')}, legal")
        return
    out.print(f"Session {name}: {counted(messages, 'message')}, {counted(len(found), 'violation')}")
    rows = table(number("message"), label("rule"), prose("why"))
    for violation in found:
        rows.add_row(str(violation.index), violation.rule, one_line(violation.message, 400))
    print_table(out, rows)


def measured_json(measured: Measured) -> dict[str, Any]:
    """The report for programs."""
    return {**asdict(measured), "usage_pct": round(measured.usage, 6)}


def print_compaction(out: Console, done: Compaction) -> None:
    """What was done: before and after, what each stage saved, what stands now, and what went where."""
    out.print(f"Session {one_line(done.session, 60)}: {done.dialect}, for {done.model}")
    out.print(outcome_words(done) + "\n")
    print_sizes(out, {"before": done.before, "after": done.after} if done.changed else {"": done.before})
    if done.changed:
        print_stages(out, done)
        print_levels(out, done)
        print_places(out, done)


def outcome_words(done: Compaction) -> str:
    """In a sentence: what happened, or why nothing did."""
    start = f"compaction starts at {done.trigger:,} of {done.window:,} tokens"
    if done.applied_again:
        return f"Step {done.step} in the archive is about this session: it was applied again"
    if done.step is not None:
        return f"Compacted, as step {done.step}; {start}"
    if done.changed:
        return f"Put in order, not compacted; {start}"
    if done.before.tokens < done.trigger:
        return f"Nothing to do: {start}"
    return "Nothing could be saved: all of it is recent or protected"


def print_sizes(out: Console, sizes: Mapping[str, Size]) -> None:
    """A row for each state of a session."""
    rows = table(label(""), *map(number, ("messages", "tokens", "of window")), label("a provider would"))
    for name, size in sizes.items():
        numbers = (f"{size.messages:,}", f"{size.tokens:,}", f"{size.usage_pct:.1%}")
        rows.add_row(name, *numbers, _verdict(size))
    print_table(out, rows)


def _verdict(size: Size) -> str:
    reasons = ["too long"] if size.usage_pct > 1 else []
    if size.violations:
        reasons.append(counted(size.violations, "violation"))
    return f"refuse it: {', '.join(reasons)}" if reasons else "take it"


def print_stages(out: Console, done: Compaction) -> None:
    """What each stage saved."""
    if not done.saved:
        return
    rows = table(label("stage"), number("saved"), prose("how"))
    for stage, tokens in done.saved.items():
        rows.add_row(stage, f"{tokens:,}", STAGES.get(stage, ""))
    print_table(out, rows, "What each stage saved, in tokens")


def print_levels(out: Console, done: Compaction) -> None:
    """How much of the messages still stands."""
    rows = table(label("level"), *map(number, ("messages", "tokens")), prose("what stands"))
    for share in done.levels:
        rows.add_row(share.level, f"{share.messages:,}", f"{share.tokens:,}", LEVELS[share.level])
    standing = sum(share.messages for share in done.levels if share.level not in ("summary", "marker"))
    if standing < done.before.messages:
        gone = done.before.messages - standing
        rows.add_row("gone", f"{gone:,}", "0", "nothing: in the summary, or only in the archive")
    print_table(out, rows, "What stands in the context")


def print_places(out: Console, done: Compaction) -> None:
    """Where everything lies that left the context."""
    if not done.files:
        return
    where = "" if done.archive.startswith("memory:") else f", in {done.archive}"
    rows = table(label("file"), prose("what"))
    for start, what in FILES.items():
        for name in done.files:
            if name.startswith(start):
                rows.add_row(name, what)
    if done.moved:
        tokens = sum(moved.tokens_before for moved in done.moved)
        largest = "" if len(done.moved) <= MOVED_SHOWN else "; the largest:"
        rows.add_row("tool_outputs/", f"{counted(len(done.moved), 'text')}, {tokens:,} tokens{largest}")
    print_table(out, rows, f"What went where{where}")
    rows = table(number(""), prose(""))
    for moved in sorted(done.moved, key=lambda moved: (-moved.tokens_before, moved.path))[:MOVED_SHOWN]:
        rows.add_row(f"{moved.tokens_before:,}", moved.path)
    rows.show_header = False
    print_table(out, rows)


def compaction_json(done: Compaction) -> dict[str, Any]:
    """The report for programs, without the messages."""
    found = {key: value for key, value in asdict(done).items() if key != "messages"}
    return {**found, "saved": dict(done.saved)}


def _print_roles(out: Console, measured: Measured) -> None:
    rows = table(label("role"), number("messages"), number("tokens"), number("share"))
    shares = [(row.role, f"{row.messages:,}" if row.messages else "", row.tokens) for row in measured.roles]
    shares.append(("tools schema", "", measured.tools_schema))
    rest = measured.tokens - sum(tokens for _, _, tokens in shares)
    shares.append(("request" if measured.exact else "request, rounding", "", rest))
    for name, messages, tokens in shares:
        if tokens or messages:
            rows.add_row(name, messages, f"{tokens:,}", _share(tokens, measured))
    rows.add_row("total", f"{measured.messages:,}", f"{measured.tokens:,}", "")
    print_table(out, rows, "By role")


def _print_tools(out: Console, measured: Measured) -> None:
    shown, rest = list(measured.tools[:TOOLS_SHOWN]), measured.tools[TOOLS_SHOWN:]
    if not shown:
        return
    if rest:
        sums = (
            sum(row.calls for row in rest),
            sum(row.call_tokens for row in rest),
            sum(row.result_tokens for row in rest),
        )
        shown.append(ToolShare(f"{len(rest)} others", *sums))
    rows = table(label("tool"), *map(number, ("calls", "in calls", "in results", "tokens", "share")))
    for row in shown:
        numbers = (row.calls, row.call_tokens, row.result_tokens, row.tokens)
        rows.add_row(
            one_line(row.tool, TOOL_CHARS), *(f"{each:,}" for each in numbers), _share(row.tokens, measured)
        )
    print_table(out, rows, "By tool")


def _print_largest(out: Console, measured: Measured) -> None:
    if not measured.largest:
        return
    rows = table(number("message"), label("role"), number("tokens"), number("share"), prose("begins"))
    for row in measured.largest:
        share, beginning = _share(row.tokens, measured), one_line(row.begins, BEGINNING_CHARS)
        rows.add_row(str(row.index), one_line(row.role, TOOL_CHARS), f"{row.tokens:,}", share, beginning)
    print_table(out, rows, "Largest messages")


def _share(tokens: int, measured: Measured) -> str:
    return f"{tokens / measured.tokens:.1%}" if measured.tokens else ""
