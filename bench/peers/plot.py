"""Two plots as one SVG, without a library: what is kept, and what the call before a model call costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_COLOURS = ("#0b6e4f", "#c8553d", "#e0a458", "#6d597a", "#2a6f97", "#8d99ae", "#b56576", "#588157")
_WIDTH, _HEIGHT = 860, 400
_LEFT, _TOP, _PLOT_W, _PLOT_H = 60, 40, 330, 250
_FONT = 'font-family="system-ui, sans-serif" font-size="11"'


def plot(kept: Mapping[str, Sequence[float]], cost: Mapping[str, Mapping[int, float]]) -> str:
    """`kept`: for each tool its retention at 25% and at 50%; `cost`: for each its milliseconds by messages."""
    names = list(dict.fromkeys([*kept, *cost]))
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(names)}
    body = [*_bars(kept, colours), *_lines(cost, colours, _LEFT + _PLOT_W + 90), *_legend(names, colours)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" {_FONT}>'
        f'<title>Retention and preflight cost of compact and its peers</title><rect width="100%" height="100%" fill="#fff"/>'
    )
    return "\n".join([head, *body, "</svg>\n"])


def _bars(kept: Mapping[str, Sequence[float]], colours: Mapping[str, str]) -> list[str]:
    top = max([0.1, *(value for values in kept.values() for value in values)]) * 1.1
    found = [_text(_LEFT, 24, "Older needed facts that still stand, with their meaning", bold=True)]
    for tick in range(5):
        value = top * tick / 4
        y = _TOP + _PLOT_H * (1 - tick / 4)
        found += [_line(_LEFT, y, _LEFT + _PLOT_W, y), _text(_LEFT - 6, y + 4, f"{value:.2f}", anchor="end")]
    group = _PLOT_W / 2
    width = group * 0.85 / max(1, len(kept))
    for place, share in enumerate(("25% of the tokens", "50% of the tokens")):
        start = _LEFT + place * group + group * 0.07
        found.append(_text(start + group * 0.42, _TOP + _PLOT_H + 16, share, anchor="middle"))
        for n, (name, values) in enumerate(kept.items()):
            height = _PLOT_H * values[place] / top
            found.append(
                f'<rect x="{start + n * width:.1f}" y="{_TOP + _PLOT_H - height:.1f}" width="{width * 0.9:.1f}" '
                f'height="{max(height, 0.5):.1f}" fill="{colours[name]}"><title>{escape(name)}: {values[place]:.3f}</title></rect>'
            )
    return found


def _lines(cost: Mapping[str, Mapping[int, float]], colours: Mapping[str, str], left: int) -> list[str]:
    values = [value for points in cost.values() for value in points.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    lengths = sorted({length for points in cost.values() for length in points})
    found = [_text(left, 24, "Preflight without a change, ms by messages", bold=True)]

    def place(length: int, value: float) -> tuple[float, float]:
        x = left + _PLOT_W * lengths.index(length) / (len(lengths) - 1)
        return x, _TOP + _PLOT_H * (1 - (math.log10(value) - low) / (high - low))

    for power in range(low, high + 1):
        y = place(lengths[0], 10**power)[1]
        found += [
            _line(left, y, left + _PLOT_W, y),
            _text(left - 6, y + 4, f"{10.0**power:g}", anchor="end"),
        ]
    for length in lengths:
        found.append(_text(place(length, 1)[0], _TOP + _PLOT_H + 16, f"{length:,}", anchor="middle"))
    for name, points in cost.items():
        spots = [place(length, value) for length, value in points.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        found.append(
            f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"><title>{escape(name)}</title></polyline>'
        )
        found += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[name]}"/>' for x, y in spots]
    return found


def _legend(names: Sequence[str], colours: Mapping[str, str]) -> list[str]:
    found = []
    for n, name in enumerate(names):
        x, y = _LEFT + (n % 3) * 260, _TOP + _PLOT_H + 44 + (n // 3) * 20
        found += [
            f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colours[name]}"/>',
            _text(x + 15, y, name),
        ]
    return found


def _text(x: float, y: float, text: str, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#e5e5e5"/>'
