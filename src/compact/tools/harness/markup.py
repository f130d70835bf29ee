"""Building blocks of reports: an HTML page without script that opens offline, and Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape as _escape
from importlib.resources import files

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), 65533)


def document(title: str, body: Iterable[str]) -> str:
    """Write the whole page. `body` must be escaped already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def escape(text: object) -> str:
    """Escape text for a page. Control characters and lone surrogates are replaced."""
    words = str(text).translate(_CONTROLS).encode("utf-8", "replace").decode()
    return _escape(words, quote=True)


def badge(good: bool, words: str) -> str:
    """Show a verdict in a word or two."""
    return f'<span class="badge {"good" if good else "bad"}">{escape(words)}</span>'


def cards(shown: Iterable[tuple[str, str]]) -> str:
    """Show big numbers with a caption each: (number, caption)."""
    inner = "".join(
        f'<div class="card"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in shown
    )
    return f'<div class="cards">{inner}</div>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), style: str = ""
) -> str:
    """Show a table of escaped cells. The columns in `numbers` are right-aligned."""
    right = set(numbers)

    def cell(tag: str, place: int, inner: str) -> str:
        return f'<{tag} class="num">{inner}</{tag}>' if place in right else f"<{tag}>{inner}</{tag}>"

    top = "".join(cell("th", place, escape(name)) for place, name in enumerate(head))
    lines = (
        "<tr>" + "".join(cell("td", place, inner) for place, inner in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll {style}"><table><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def items(lines: Sequence[str]) -> str:
    """Show a list of sentences."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def fold(summary: str, inner: str) -> str:
    """Show something that is collapsed at first."""
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


@cache
def _style() -> str:
    return (files("compact.tools.harness") / "page.css").read_text(encoding="utf-8")


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write the lines of a Markdown table of escaped cells. `>` in front of a name right-aligns the column."""
    head = [name.removeprefix(">") for name in columns]
    rule = "|".join("--:" if name.startswith(">") else "---" for name in columns)
    return [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def markdown_text(text: object) -> str:
    """Escape text for a Markdown table or list item, on one line."""
    words = " ".join(str(text).encode("utf-8", "replace").decode().split())
    return "".join(f"\\{letter}" if letter in "|*_`<>[]\\" else letter for letter in words)
