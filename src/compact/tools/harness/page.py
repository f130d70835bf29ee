"""One HTML page that opens offline anywhere: no script, nothing loaded, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape as _escape
from importlib.resources import files

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), 65533)


def document(title: str, body: Iterable[str]) -> str:
    """The whole page. Whatever stands in `body` must be escaped already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def escape(text: object) -> str:
    """Text for a page: nothing in it is markup, and no half character breaks the file."""
    words = str(text).translate(_CONTROLS).encode("utf-8", "replace").decode()
    return _escape(words, quote=True)


def badge(good: bool, words: str) -> str:
    """A verdict in a word or two."""
    return f'<span class="badge {"good" if good else "bad"}">{escape(words)}</span>'


def cards(shown: Iterable[tuple[str, str]]) -> str:
    """Big numbers with a line under each: (number, what it is)."""
    inner = "".join(
        f'<div class="card"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in shown
    )
    return f'<div class="cards">{inner}</div>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), style: str = ""
) -> str:
    """A table of cells that are escaped already; the columns in `numbers` stand to the right."""
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
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def folded(summary: str, inner: str) -> str:
    """Something that is shown when it is asked for."""
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


@cache
def _style() -> str:
    return (files("compact.tools.harness") / "page.css").read_text(encoding="utf-8")
