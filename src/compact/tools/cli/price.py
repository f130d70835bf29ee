"""`compact price`: what recorded sessions cost, and what each policy would have cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from compact.errors import TranscriptError
from compact.tokens.prices import card_named, card_names
from compact.tools.cli.inputs import transcripts_in
from compact.tools.cli.options import ForceOption, JsonOption, LenientOption, parse_tokens
from compact.tools.cli.outputs import check_endings, check_outputs, write_reports
from compact.tools.cli.printing import console, count_of, first_lines, print_json, print_table
from compact.tools.cli.settings import load_settings
from compact.tools.pricing import POLICIES, as_data, price, read_timelines, total
from compact.tools.pricing.comparing import best_policy, settings_of
from compact.tools.pricing.page import (
    PriceReport,
    as_html,
    as_markdown,
    as_svg,
    columns,
    dearer_in_words,
    rows_of,
    verdict,
)
from compact.tools.pricing.timelines import logs_in

EXAMPLE = "Example: compact price sessions/ --card anthropic-5m --report prices.html"

_WINDOW = "200k"
_BAR = 40
_DEARER_SHOWN = 10


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Timelines, session files of Claude Code, other transcripts, event logs, or folders of them: an archive "
            "is read by its event logs.",
        ),
    ],
    card: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"A price card: {', '.join(card_names())}. Repeatable. Default: all."
        ),
    ] = None,
    window: Annotated[
        str, typer.Option(metavar="TOKENS", help="Context window, such as 200k or 200000.")
    ] = _WINDOW,
    report: Annotated[
        list[Path] | None,
        typer.Option(metavar="OUT", help="Write a report: .html, .json, .md or .svg. Repeatable."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Price recorded sessions: what happened, and what each policy would have cost at the same times.

    `recorded` is the bill as the provider reported it. The other policies are simulated: the session grows as recorded, the
    cache forgets as the card says, and a pass keeps what the ladder keeps. Nothing is sent anywhere.
    """
    cards = [card_named(name) for name in dict.fromkeys(card or card_names())]
    size = parse_tokens(window, "--window")
    writers: dict[str, Callable[[PriceReport], str]] = {
        ".html": as_html,
        ".json": lambda made: json.dumps(as_data(made.sessions, cards, size), indent=1) + "\n",
        ".md": as_markdown,
        ".svg": as_svg,
    }
    files = _files(paths)
    check_endings(report or [], writers)
    check_outputs({"--report": report or []}, files, force)
    sessions = price(read_timelines(files, load_settings(None).model, lenient=lenient), cards, size)
    if not sessions:
        raise TranscriptError("there is no session with a request in what was read")
    made = PriceReport(sessions, [each.name for each in cards], size)
    write_reports(report or [], writers, made, force)
    if as_json:
        print_json(as_data(sessions, cards, size))
    else:
        _print(console(), made)


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files to read. Of an archive, only its event logs say what was sent, and when."""
    found: list[Path] = []
    for path in paths:
        logs = logs_in(path) if path.is_dir() else []
        found += logs or transcripts_in([path])
    return found


def _print(out: Console, made: PriceReport) -> None:
    requests = sum(session.requests for session in made.sessions)
    out.print(
        f"{count_of(len(made.sessions), 'session')}, {count_of(requests, 'request')}, window {made.window:,}"
    )
    untimed = sum(not session.is_timed for session in made.sessions)
    if untimed:
        out.print(f"{count_of(untimed, 'session')} without times: their caches stay warm in every policy")
    for card in made.cards:
        costs = [total(made.sessions, card, name).bill.cost for name in POLICIES]
        most = max(costs) or 1.0
        bars = ["\N{FULL BLOCK}" * round(cost / most * _BAR) for cost in costs]
        rows = [[*cells, bar] for cells, bar in zip(rows_of(made, card), bars, strict=True)]
        print_table(out, [*columns(), ""], rows, card)
        out.print(verdict(made, card))
        for line in first_lines(dearer_in_words(made, card), _DEARER_SHOWN):
            out.print(f"  auto is dearer than uncompacted: {line}")
    card = made.cards[0]
    out.print(f"\nThe best of trigger_85 and auto on {card}, for compact.yaml:", style="bold")
    out.print(settings_of(best_policy(made.sessions, card), made.window))
    out.print("\nA lower trigger costs less and remembers less: compact replay says how much.")
