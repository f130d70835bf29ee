"""The report of prices for people: a page, Markdown, or a chart as SVG. Nothing in it is a script or loads anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compact.tools.harness.markup import document, escape, markdown_table, table
from compact.tools.pricing.comparing import Priced, best_policy, dearer, settings_of, total
from compact.tools.pricing.policies import POLICIES, TRIGGER_85, UNCOMPACTED, Outcome

_COLUMNS = (
    "policy",
    ">cost",
    ">cache reads",
    ">cache writes",
    ">fresh",
    ">output",
    ">passes",
    ">against trigger_85",
)
_SEGMENTS = (("cache reads", "#3b82b8"), ("cache writes", "#d98a3a"), ("fresh and output", "#8a8f98"))
_ROW, _LEFT, _WIDTH, _BAR = 30, 120, 900, 640


@dataclass(frozen=True, slots=True)
class PriceReport:
    """What a report shows."""

    sessions: Sequence[Priced]
    cards: Sequence[str]
    window: int


def rows_of(report: PriceReport, card: str) -> list[list[str]]:
    """The cells of the table of a card: dollars for each part of the bill."""
    base = total(report.sessions, card, TRIGGER_85.name).bill.cost
    return [_cells(name, total(report.sessions, card, name), base) for name in POLICIES]


def columns() -> list[str]:
    """The headings of that table; `>` in front aligns to the right."""
    return list(_COLUMNS)


def as_html(report: PriceReport) -> str:
    """Write the page."""
    return document("Prices of recorded sessions", _body(report))


def as_markdown(report: PriceReport) -> str:
    """Write the tables."""
    lines = ["# Prices of recorded sessions", "", _lead(report)]
    for card in report.cards:
        lines += ["", f"## {card}", "", *markdown_table(_COLUMNS, rows_of(report, card))]
        lines += ["", verdict(report, card), *(f"- {line}" for line in dearer_in_words(report, card))]
    return "\n".join(lines) + "\n"


def as_svg(report: PriceReport) -> str:
    """Draw the bill of every policy, a chart for each card."""
    height = len(report.cards) * (len(POLICIES) + 2) * _ROW + _ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        'font-size="13" role="img" aria-label="Dollars of every policy by price card">'
    )
    parts = [_chart(report, card, n * (len(POLICIES) + 2) * _ROW) for n, card in enumerate(report.cards)]
    return f"{head}{''.join(parts)}{_key(height - _ROW)}</svg>\n"


def verdict(report: PriceReport, card: str) -> str:
    """Say which policy is best for these sessions, and what it saves."""
    best = best_policy(report.sessions, card)
    cost = total(report.sessions, card, best).bill.cost
    plain = total(report.sessions, card, UNCOMPACTED.name).bill.cost
    saved = f"{1 - cost / plain:.0%} below doing nothing" if plain else "nothing to save"
    return f"{card}: {best} costs {money(cost)}, {saved}."


def dearer_in_words(report: PriceReport, card: str) -> list[str]:
    """List the sessions that `auto` makes dearer than doing nothing does."""
    return [
        f"session {each.id}: {money(each.cost)} instead of {money(each.other_cost)} ({each.share:+.1%}), "
        f"{each.forced} passes forced by the window"
        for each in dearer(report.sessions, card)
    ]


def money(dollars: float) -> str:
    """Dollars, to the cent from a dollar on and finer below."""
    return f"${dollars:,.2f}" if abs(dollars) >= 1 else f"${dollars:.4f}"


def _cells(name: str, outcome: Outcome, base: float) -> list[str]:
    found = outcome.bill
    parts = (found.cost, found.read_cost, found.write_cost, found.fresh_cost, found.output_cost)
    against = f"{found.cost / base - 1:+.1%}" if base else ""
    return [name, *map(money, parts), f"{outcome.passes:,}", against]


def _lead(report: PriceReport) -> str:
    requests = sum(session.requests for session in report.sessions)
    return f"{len(report.sessions):,} sessions, {requests:,} requests, window {report.window:,}."


def _body(report: PriceReport) -> Iterator[str]:
    yield "<h1>Prices of recorded sessions</h1>"
    yield f'<p class="lead">{escape(_lead(report))}</p>'
    yield as_svg(report)
    heads = [name.removeprefix(">") for name in _COLUMNS]
    for card in report.cards:
        yield f"<h2>{escape(card)}</h2>"
        cells = [[escape(cell) for cell in row] for row in rows_of(report, card)]
        yield table(heads, cells, range(1, len(heads)))
        yield f"<p>{escape(verdict(report, card))}</p>"
        yield f"<pre>{escape(settings_of(best_policy(report.sessions, card), report.window))}</pre>"
        lines = dearer_in_words(report, card)
        if lines:
            yield f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _chart(report: PriceReport, card: str, top: int) -> str:
    outcomes = {name: total(report.sessions, card, name).bill for name in POLICIES}
    most = max((each.cost for each in outcomes.values()), default=0.0) or 1.0
    parts = [f'<text x="4" y="{top + 20}" font-weight="bold" fill="currentColor">{escape(card)}</text>']
    for n, (name, found) in enumerate(outcomes.items(), 1):
        y, x = top + n * _ROW, float(_LEFT)
        parts.append(f'<text x="4" y="{y + 18}" fill="currentColor">{escape(name)}</text>')
        costs = (found.read_cost, found.write_cost, found.fresh_cost + found.output_cost)
        for (what, colour), cost in zip(_SEGMENTS, costs, strict=True):
            width = cost / most * _BAR
            tip = f"<title>{escape(f'{name}: {what} {money(cost)}')}</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="20" fill="{colour}">{tip}</rect>'
            )
            x += width
        parts.append(f'<text x="{x + 6:.1f}" y="{y + 18}" fill="currentColor">{money(found.cost)}</text>')
    return "".join(parts)


def _key(y: int) -> str:
    parts = []
    for n, (what, colour) in enumerate(_SEGMENTS):
        x = _LEFT + n * 160
        parts.append(f'<rect x="{x}" y="{y + 4}" width="14" height="14" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="{y + 16}" fill="currentColor">{what}</text>')
    return "".join(parts)
