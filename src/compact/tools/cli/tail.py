"""`compact tail`: print a session's events as they arrive."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from compact.archive import LogWatcher
from compact.events import parse
from compact.tools.cli.archives import folders_of, open_at
from compact.tools.cli.options import ConfigOption, RootOption, SessionArgument, TenantOption
from compact.tools.cli.printing import escaped, one_line, print_coloured
from compact.tools.viewer.live import pause_between_looks
from compact.tracing.exporters.console import line, wants_colour

EXAMPLE = "Example: compact tail my-session"

_BROKEN_CHARS = 80


def command(
    session: SessionArgument,
    root: RootOption = None,
    config: ConfigOption = None,
    tenant: TenantOption = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more events until Ctrl-C.")
    ] = True,
    last: Annotated[
        int | None, typer.Option("--last", "-n", metavar="N", min=0, help="Start with the last N events.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the raw lines of the log.")] = False,
) -> None:
    """Follow a session's events: one line each, with what happened and how long it took."""
    with open_at(root, config, tenant=tenant) as archive:
        logs = LogWatcher(archive, list(folders_of(archive, session)))
        lines = _new_lines(logs)
        _print(lines if last is None else lines[max(0, len(lines) - last) :], as_json)
        while follow:
            time.sleep(pause_between_looks(archive))
            _print(_new_lines(logs), as_json)


def _new_lines(logs: LogWatcher) -> list[bytes]:
    return [each for news in logs.look() for each in news.lines]


def _print(lines: Sequence[bytes], as_json: bool) -> None:
    colour = wants_colour(sys.stdout)
    for each in lines:
        text = each.decode("utf-8", "replace")
        print_coloured(escaped(text) if as_json else _format(text, colour))
    sys.stdout.flush()


def _format(text: str, colour: bool) -> str:
    try:
        return line(parse(json.loads(text)).to_json(), colour)
    except (ValueError, RecursionError):
        return f"not an event: {one_line(text, _BROKEN_CHARS)}"
