"""`compact tail`: a session's events in the terminal, as they come."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from compact.archive import Archive
from compact.archive.watching import LogWatcher
from compact.cli.opening import RootOption, SessionArgument, check_known, opened
from compact.cli.shared import console, one_line
from compact.viewer.live import LOCAL_PAUSE_S, REMOTE_PAUSE_S
from compact.viewer.sessions import read_line

EXAMPLE = "Example: compact tail my-session"

_STYLES = {
    "compact.token_estimate": "cyan",
    "compact.trigger_decision": "yellow",
    "compact.archival": "green",
    "compact.offload": "blue",
    "compact.calls_shrunk": "blue",
    "compact.summary_created": "magenta",
    "compact.pruned_messages": "magenta",
    "compact.finished": "bold",
    "compact.error": "bold red",
    "compact.warning": "yellow",
}
_NAME_WIDTH = 18
_VALUE_CHARS = 160


def command(
    session: SessionArgument,
    root: RootOption = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")] = True,
    last: Annotated[
        int | None, typer.Option("--last", "-n", metavar="N", min=0, help="Begin with the last N events.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the lines of the log as they are.")] = False,
) -> None:
    """Follow a session's events: one line each, with what it says."""
    with opened(root) as archive:
        check_known(archive, session)
        logs = LogWatcher(archive, [archive.folder(session)])
        out = console()
        lines = _new_lines(logs)
        _print(out, lines if last is None else lines[max(0, len(lines) - last) :], as_json)
        while follow:
            time.sleep(_pause(archive))
            _print(out, _new_lines(logs), as_json)


def _new_lines(logs: LogWatcher) -> list[bytes]:
    return [line for news in logs.look() for line in news.lines]


def _pause(archive: Archive) -> float:
    return LOCAL_PAUSE_S if archive.adapter in ("fs", "memory") else REMOTE_PAUSE_S


def _print(out: Console, lines: list[bytes], as_json: bool) -> None:
    for line in lines:
        if as_json:
            sys.stdout.write(line.decode("utf-8", "replace") + "\n")
        else:
            out.print(
                event_line(read_line(line)),
                overflow="ellipsis",
                no_wrap=out.is_terminal,
                soft_wrap=not out.is_terminal,
            )
    if as_json and lines:
        sys.stdout.flush()


def event_line(event: Mapping[str, Any]) -> Text:
    """An event on one line: when, which step, what, and its properties."""
    name = str(event.get("name"))
    style = "bold red" if event.get("status") == "error" else _STYLES.get(name, "")
    ended = one_line(str(event.get("ended_at") or ""), 40)
    line = Text(f"{ended[11:23]:12} ", style="dim", end="")
    line.append(f"{event.get('step') or '':>3} ", style="dim")
    line.append(f"{one_line(name.removeprefix('compact.'), 40):{_NAME_WIDTH}}", style=style)
    properties = event.get("properties")
    for key, value in _flat(properties if isinstance(properties, Mapping) else {}):
        line.append(f" {key}=", style="dim")
        line.append(value)
    return line


def _flat(properties: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found = []
    for key, value in properties.items():
        name = one_line(f"{prefix}{key}", 60)
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{key}.")
        elif value is not None:
            words = value if isinstance(value, str) else json.dumps(value)
            found.append((name, one_line(words, _VALUE_CHARS)))
    return found
