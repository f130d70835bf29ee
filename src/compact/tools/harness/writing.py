"""Write reports on sessions as JSON, Markdown or a page. The same input gives the same bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.tools.harness.markup import badge, cards, document, escape, fold, items, markdown_table, table
from compact.tools.harness.markup import markdown_text as md
from compact.tools.harness.report import Report

ROWS_SHOWN = 200
"""Artifacts listed per session in Markdown and HTML. JSON has all of them."""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A report, with the session and file that it is about."""

    file: str
    session: str
    report: Report

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """Tokens, budget, artifacts kept and dropped, spans masked."""
        found = self.report
        return found.tokens, found.budget, len(found["kept"]), len(found["dropped"]), found.masked

    @property
    def failed_checks(self) -> str:
        """The names of the checks that failed."""
        return ", ".join(check["name"] for check in self.report.checks if not check["passed"])


def dropped_in_words(reports: Sequence[SessionReport]) -> str:
    """Say how much was dropped to pass, by kind: a verdict without it would hide that hardly anything is left."""
    dropped = Counter(line["kind"] for one in reports for line in one.report["dropped"])
    if not dropped:
        return "nothing dropped"
    total = sum(len(one.report["kept"]) + len(one.report["dropped"]) for one in reports)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in dropped.most_common())
    return f"{dropped.total():,} of {total:,} artifacts dropped ({kinds})"


def as_json(reports: Sequence[SessionReport]) -> str:
    """Write the report of a single session as it is; several under `sessions`, each with its file and session."""
    sessions = [{"file": one.file, "session": one.session, **one.report} for one in reports]
    many = {"passed": all(one.report.passed for one in reports), "sessions": sessions}
    return json.dumps(reports[0].report if len(reports) == 1 else many, indent=2) + "\n"


def as_markdown(reports: Sequence[SessionReport]) -> str:
    """Write a report for a pull request or a job's summary."""
    passed = sum(one.report.passed for one in reports)
    lines = [
        "# Stability report",
        "",
        f"{passed} of {len(reports)} sessions passed, {md(dropped_in_words(reports))}.",
        "",
    ]
    columns = ("session", "passed", ">tokens", ">budget", ">kept", ">dropped", ">masked")
    rows = [
        (md(one.session), "yes" if one.report.passed else "**no**", *(f"{each:,}" for each in one.numbers))
        for one in reports
    ]
    lines += markdown_table(columns, rows)
    for one in reports:
        lines += ["", f"## {md(one.session)}", "", f"`{md(one.file)}`", ""]
        for check in one.report.checks:
            lines.append(f"- {check['name']}: {'passed' if check['passed'] else '**failed**'}")
            lines += [f"  - {md(detail)}" for detail in check["details"][:ROWS_SHOWN]]
        dropped = one.report.dropped
        if dropped:
            cells = [
                (md(line["id"]), md(line["kind"]), f"{line['tokens']:,}", md(line["reason"]))
                for line in dropped
            ]
            head = ("artifact", "kind", ">tokens", "why")
            lines += ["", f"{len(dropped):,} dropped:", "", *markdown_table(head, cells[:ROWS_SHOWN])]
        if len(dropped) > ROWS_SHOWN:
            lines.append(f"\nand {len(dropped) - ROWS_SHOWN:,} more")
    return "\n".join(lines) + "\n"


def as_html(reports: Sequence[SessionReport]) -> str:
    """Write a page."""
    return document("Stability report", _body(reports))


WRITERS: Mapping[str, Callable[[Sequence[SessionReport]], str]] = {
    ".json": as_json,
    ".md": as_markdown,
    ".html": as_html,
}
"""Writers by the ending of the file name."""


def _body(reports: Sequence[SessionReport]) -> Iterator[str]:
    passed = sum(one.report.passed for one in reports)
    yield f"<h1>Stability report {_verdict(passed == len(reports))}</h1>"
    yield f'<p class="lead">Masking, truncation, order and budget of recorded sessions: {escape(dropped_in_words(reports))}.</p>'
    yield cards(
        [
            (f"{passed:,} of {len(reports):,}", "sessions passed"),
            (f"{sum(one.report.tokens for one in reports):,}", "tokens kept"),
            (f"{sum(len(one.report['dropped']) for one in reports):,}", "artifacts dropped"),
            (f"{sum(one.report.masked for one in reports):,}", "spans masked"),
        ]
    )
    for one in reports[:ROWS_SHOWN]:
        yield from _session(one)
    if len(reports) > ROWS_SHOWN:
        yield f'<p class="note">{len(reports) - ROWS_SHOWN:,} more sessions are in the JSON report.</p>'


def _session(one: SessionReport) -> Iterator[str]:
    found = one.report
    share = found.tokens / found.budget
    yield '<section class="panel">'
    yield f"<h3>{escape(one.session)} {_verdict(found.passed)}</h3>"
    yield f'<p class="note">{escape(one.file)}</p>'
    yield f"<div>{found.tokens:,} of {found.budget:,} tokens ({share:.1%})</div>"
    over = ' class="over"' if share > 1 else ""
    yield f'<div class="bar"><i{over} style="width:{min(1.0, share):.2%}"></i></div>'
    checks = [(escape(check["name"]), _verdict(check["passed"]), _details(check)) for check in found.checks]
    yield table(("check", "", "what is wrong"), checks, style="checks")
    kept, dropped = found["kept"], found["dropped"]
    yield fold(f"{len(kept):,} kept, {found.masked:,} spans masked in them", _artifacts(kept))
    yield fold(f"{len(dropped):,} dropped", _artifacts(dropped))
    yield "</section>"


def _verdict(passed: bool) -> str:
    return badge(passed, "passed" if passed else "failed")


def _details(check: Mapping[str, Any]) -> str:
    return items(check["details"][:ROWS_SHOWN]) + _more(check["details"])


def _artifacts(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return '<p class="note">None.</p>'
    rows = [
        (escape(line["id"]), escape(line["kind"]), f"{line['tokens']:,}", escape(line["reason"]))
        for line in lines[:ROWS_SHOWN]
    ]
    return table(("artifact", "kind", "tokens", "why"), rows, numbers=(2,)) + _more(lines)


def _more(lines: Sequence[Any]) -> str:
    left = len(lines) - ROWS_SHOWN
    return f'<p class="note">and {left:,} more</p>' if left > 0 else ""
