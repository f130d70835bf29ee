"""Charts as inline SVG and plain boxes, so that a page needs no script and loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from compact.tools.harness.markup import escape

Style: TypeAlias = Literal["s0", "s1", "s2", "s3"]
"""A colour of the page."""

_WIDTH, _HEIGHT = 1000, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 16, 34
_TICKS = 4
_MOST_POINTS = 500


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart over the calls of a session."""

    name: str
    style: Style
    values: Sequence[int]
    marks: Sequence[int] = ()
    """Calls with a step; drawn as dots."""
    area: bool = False


def line_chart(lines: Sequence[Series], limit: int | None, label: str) -> str:
    """Draw tokens over calls, with a dashed line at the window."""
    calls = max((len(line.values) for line in lines), default=0)
    if not calls:
        return ""
    top = nice_ceiling(max([max(line.values, default=0) for line in lines] + ([limit] if limit else [])))
    parts = [_frame(top, calls)]
    if limit:
        y = _y(limit, top)
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT + 4}" y="{y - 6:.1f}">window {short(limit)}</text>')
    for line in lines:
        parts.append(_draw(line, calls, top))
    head = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
    return f"{head}{''.join(parts)}</svg>"


def bar_chart(bars: Sequence[tuple[str, Style, int]]) -> str:
    """Draw horizontal bars that shrink on a narrow screen: (name, style, tokens)."""
    most = max((value for _, _, value in bars), default=0) or 1
    rows = (
        f'<span>{escape(name)}</span><div class="bar"><i class="{style}" style="width:{value / most:.2%}"></i></div>'
        f"<b>{short(value)}</b>"
        for name, style, value in bars
    )
    return f'<div class="bars">{"".join(rows)}</div>'


def key(entries: Sequence[tuple[Style, str]]) -> str:
    """Explain the colours: (style, name)."""
    inner = "".join(f'<span><i class="{style}"></i>{escape(name)}</span>' for style, name in entries)
    return f'<div class="key">{inner}</div>'


def short(tokens: float) -> str:
    """Abbreviate a number: 950, 12k, 1.5M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size:
            value = tokens / size
            return f"{value:.0f}{unit}" if value >= 100 or value == int(value) else f"{value:.1f}{unit}"
    return f"{tokens:.0f}"


def nice_ceiling(value: int) -> int:
    """Round up, so that a quarter of the result is round too."""
    unit = 4
    while True:
        for step in (1, 2, 3, 4, 5, 6, 8, 10):
            if unit * step >= value:
                return unit * step
        unit *= 10


def _frame(top: int, calls: int) -> str:
    parts = []
    for tick in range(_TICKS + 1):
        value = top * tick // _TICKS
        y = _y(value, top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for call in sorted({0, calls // 2, calls - 1}):
        anchor = "start" if call == 0 else "end" if call == calls - 1 else "middle"
        x, name = _x(call, calls), f"call {call + 1:,}"
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 10}" text-anchor="{anchor}">{name}</text>')
    return "".join(parts)


def _draw(line: Series, calls: int, top: int) -> str:
    places = _places_drawn(line, calls)
    points = " ".join(f"{_x(at, calls):.1f},{_y(line.values[at], top):.1f}" for at in places)
    parts = []
    if line.area and places:
        floor = _y(0, top)
        corners = f"{_x(places[0], calls):.1f},{floor:.1f} {points} {_x(places[-1], calls):.1f},{floor:.1f}"
        parts.append(f'<polygon class="area {line.style}" points="{corners}"/>')
    parts.append(f'<polyline class="{line.style}" points="{points}"/>')
    for at in line.marks:
        x, y = _x(at, calls), _y(line.values[at], top)
        tip = f"<title>{escape(line.name)}: step at call {at + 1}, {line.values[at]:,} tokens</title>"
        parts.append(f'<circle class="dot {line.style}" cx="{x:.1f}" cy="{y:.1f}" r="4">{tip}</circle>')
    return "".join(parts)


def _places_drawn(line: Series, calls: int) -> list[int]:
    """Choose the calls to draw: all, or every n-th and those around each step, so that no step is lost."""
    every = max(1, calls // _MOST_POINTS)
    wanted = {*range(0, len(line.values), every), len(line.values) - 1}
    wanted |= {near for at in line.marks for near in (at - 1, at)}
    return sorted(at for at in wanted if 0 <= at < len(line.values))


def _x(call: int, calls: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (call / max(1, calls - 1))


def _y(value: float, top: int) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / max(1, top)
