"""How commands print: tables, JSON, numbers and short texts. Nothing else in this folder writes to the terminal.

Transcripts, file names, session ids and the words of errors come from outside. Whatever is printed for people passes through
`printable`, so that none of it can move the cursor, change the title or hide a line. JSON escapes instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

Cell: TypeAlias = str | float | None

PIPED_WIDTH = 240
"""Columns when the output is not a terminal: a pipe has room for everything."""


class _PrintableConsole(Console):
    """A console whose texts cannot control the terminal, in cells, titles and plain lines alike."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def console(*, stderr: bool = False) -> Console:
    """Make the console that a command prints to. Colours and line lengths follow the terminal; a pipe gets plain text."""
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else PIPED_WIDTH
    return _PrintableConsole(width=width, highlight=False, markup=False, emoji=False, stderr=stderr)


def say(message: str) -> None:
    """Write a remark or an error to stderr, behind the name of the command."""
    say_plainly(f"compact: {message.rstrip()}")


def say_plainly(text: str) -> None:
    """Write to stderr as it is, but printable."""
    sys.stderr.write(f"{printable(text)}\n")


def print_line(text: str) -> None:
    """Print a line as it is, but printable, however wide the terminal is."""
    sys.stdout.write(f"{printable(text)}\n")


def print_coloured(line: str) -> None:
    """Print a line that is printable already, but for colours that we put there ourselves."""
    sys.stdout.write(f"{line}\n")


def print_data(data: bytes) -> None:
    """Write JSON to standard output, byte for byte; on a terminal, with escapes for what could control it."""
    if sys.stdout.isatty():
        data = escaped(data.decode("utf-8", "replace")).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def escaped(json_text: str) -> str:
    """Escape in a JSON text what could control a terminal. The result is the same JSON."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in json_text)


def print_json(value: Any) -> None:
    """Print a value, or dataclasses in it, as JSON. ASCII only, so that a lone surrogate cannot break the output."""
    sys.stdout.write(json.dumps(value, indent=2, default=asdict) + "\n")


def print_table(
    out: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    title: str = "",
    total: Sequence[Cell] | None = None,
) -> None:
    """Print a table without a frame, and without trailing blanks.

    Args:
        out: Where to print.
        columns: Their names. `>` in front aligns a column to the right; `~` lets it wrap on a narrow terminal. `:60` behind
            shortens its texts to 60 characters. Without any names there is no header.
        rows: Their cells. Numbers get thousands separators, fractions two decimals; None is empty.
        title: A line above the table.
        total: A last row in bold.
    """
    names, limits = zip(*(name.partition(":")[::2] for name in columns), strict=True)
    made = Table(*map(_column, names), box=None, pad_edge=False, header_style="dim")
    made.show_header = any(name.strip(">~") for name in names)
    for row in rows:
        made.add_row(*map(_cell, row, limits))
    if total is not None:
        made.add_row(*map(_cell, total, limits), style="bold")
    if title:
        out.print(f"\n{title}", style="bold")
    with out.capture() as captured:
        out.print(made)
    out.file.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def _column(name: str) -> Column:
    if name.startswith("~"):
        return Column(name[1:], overflow="fold")
    return Column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", no_wrap=True)


def _cell(value: Cell, limit: str) -> str:
    if isinstance(value, str):
        return one_line(value, int(limit)) if limit else value
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def one_line(words: str, limit: int) -> str:
    """Shorten a text to one line without control characters."""
    flat = printable(" ".join(words[: limit * 4].split()))
    return flat if len(flat) <= limit else flat[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def printable(text: str) -> str:
    """Replace the characters of a text that could control a terminal. Tabs and line breaks stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def flat(text: str) -> str:
    """Put a text on one line, whatever its length."""
    return " ".join(text.split("\n"))


def count_of(number: int, noun: str) -> str:
    """Name a number of things: "1 message", "2,000 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_lines(lines: Sequence[str], most: int) -> list[str]:
    """Take the first lines, and say how many more there are."""
    return [*lines[:most], f"and {len(lines) - most:,} more"] if len(lines) > most else list(lines)
