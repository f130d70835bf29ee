"""The reports of one or many sessions, as JSON, Markdown or a page. No clock: the same input gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.tools.harness import page
from compact.tools.harness.page import badge, cards, document, escape, folded, items, table
from compact.tools.harness.report import Report

ROWS_SHOWN = 200
"""Artifacts listed per session in what people read; JSON has them all."""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A report, and which session of which file it is about."""

    file: str
    session: str
    report: Report


def as_json(reports: Sequence[SessionReport]) -> str:
    """The report of a single session as it is; several under `sessions`, each with its file and session."""
    data: dict[str, Any]
    if len(reports) == 1:
        data = reports[0].report
    else:
        data = {
            "passed": all(one.report.passed for one in reports),
            "sessions": [{"file": one.file, "session": one.session, **one.report} for one in reports],
        }
    return json.dumps(data, indent=2) + "\n"


def as_markdown(reports: Sequence[SessionReport]) -> str:
    """For a pull request or a job's summary."""
    passed = sum(one.report.passed for one in reports)
    lines = ["# Stability report", "", f"{passed} of {len(reports)} sessions passed.", ""]
    lines += [
        "| session | passed | tokens | budget | kept | dropped | masked |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for one in reports:
        found = one.report
        verdict = "yes" if found.passed else "**no**"
        numbers = (found.tokens, found.budget, len(found["kept"]), len(found["dropped"]), found.masked)
        lines.append(
            f"| {_md(one.session)} | {verdict} | " + " | ".join(f"{each:,}" for each in numbers) + " |"
        )
    for one in reports:
        lines += ["", f"## {_md(one.session)}", "", f"`{_md(one.file)}`", ""]
        for check in one.report.checks:
            lines.append(f"- {check['name']}: {'passed' if check['passed'] else '**failed**'}")
            lines += [f"  - {_md(detail)}" for detail in check["details"][:ROWS_SHOWN]]
        lines += _md_dropped(one.report)
    return "\n".join(lines) + "\n"


def as_html(reports: Sequence[SessionReport]) -> str:
    """One page for people."""
    return document("Stability report", _body(reports))


WRITERS: Mapping[str, Callable[[Sequence[SessionReport]], str]] = {
    ".json": as_json,
    ".md": as_markdown,
    ".html": as_html,
}
"""By the ending of the file's name."""


def _body(reports: Sequence[SessionReport]) -> Iterator[str]:
    passed = sum(one.report.passed for one in reports)
    good = passed == len(reports)
    yield f"<h1>Stability report {badge(good, 'passed' if good else 'failed')}</h1>"
    yield '<p class="lead">Masking, truncation, order and budget of recorded sessions.</p>'
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
    yield f"<h3>{escape(one.session)} {badge(found.passed, 'passed' if found.passed else 'failed')}</h3>"
    yield f'<p class="note">{escape(one.file)}</p>'
    yield f"<div>{found.tokens:,} of {found.budget:,} tokens ({share:.1%})</div>"
    over = ' class="over"' if share > 1 else ""
    yield f'<div class="bar"><i{over} style="width:{min(1.0, share):.2%}"></i></div>'
    rows = [
        (
            escape(check["name"]),
            badge(check["passed"], "passed" if check["passed"] else "failed"),
            _details(check),
        )
        for check in found.checks
    ]
    yield table(("check", "", "what is wrong"), rows, style="checks")
    kept, dropped = found["kept"], found["dropped"]
    yield folded(f"{len(kept):,} kept, {found.masked:,} spans masked in them", _artifacts(kept))
    yield folded(f"{len(dropped):,} dropped", _artifacts(dropped))
    yield "</section>"


def _details(check: Mapping[str, Any]) -> str:
    shown = items(check["details"][:ROWS_SHOWN])
    more = len(check["details"]) - ROWS_SHOWN
    return shown + (f'<p class="note">and {more:,} more</p>' if more > 0 else "")


def _artifacts(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return '<p class="note">None.</p>'
    rows = [
        (escape(line["id"]), escape(line["kind"]), f"{line['tokens']:,}", escape(line["reason"]))
        for line in lines[:ROWS_SHOWN]
    ]
    more = f'<p class="note">and {len(lines) - ROWS_SHOWN:,} more</p>' if len(lines) > ROWS_SHOWN else ""
    return page.table(("artifact", "kind", "tokens", "why"), rows, numbers=(2,)) + more


def _md_dropped(report: Report) -> list[str]:
    dropped = report["dropped"]
    if not dropped:
        return []
    lines = ["", f"{len(dropped):,} dropped:", "", "| artifact | kind | tokens | why |", "|---|---|--:|---|"]
    for line in dropped[:ROWS_SHOWN]:
        lines.append(
            f"| {_md(line['id'])} | {_md(line['kind'])} | {line['tokens']:,} | {_md(line['reason'])} |"
        )
    more = len(dropped) - ROWS_SHOWN
    return [*lines, f"\nand {more:,} more"] if more > 0 else lines


def _md(text: object) -> str:
    """Text inside a table or a list item: one line, no markup of its own."""
    words = " ".join(str(text).encode("utf-8", "replace").decode().split())
    return "".join(f"\\{letter}" if letter in "|*_`<>[]\\" else letter for letter in words)
