"""A measured session on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from compact.checks import Violation
from compact.cli.measure import Measured, ToolShare
from compact.cli.shared import counted, label, number, one_line, print_table, prose, table

TOOLS_SHOWN = 12
BEGINNING_CHARS = 44
ID_CHARS = 40
TOOL_CHARS = 32


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
