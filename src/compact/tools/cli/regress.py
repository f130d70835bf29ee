"""`compact regress`: did anything get worse since an earlier run?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compact.tools.cli.options import JsonOption
from compact.tools.cli.printing import console, count_of, print_json, print_table
from compact.tools.replay.regress import Allowance, Change, changes, read_report

EXAMPLE = "Example: compact regress baseline.json new.json --max-tokens-growth 5"

_DEFAULTS = Allowance()


def command(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="The JSON report of an earlier run.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The JSON report of this run.")],
    max_tokens_growth: Annotated[
        float, typer.Option(metavar="PERCENT", min=0, help="Allowed growth of the input tokens.")
    ] = _DEFAULTS.tokens * 100,
    max_cost_growth: Annotated[
        float, typer.Option(metavar="PERCENT", min=0, help="Allowed growth of the cost.")
    ] = _DEFAULTS.cost * 100,
    max_retention_loss: Annotated[
        float, typer.Option(metavar="POINTS", min=0, help="Allowed loss of retention, in percentage points.")
    ] = _DEFAULTS.retention * 100,
    max_steps_growth: Annotated[
        float, typer.Option(metavar="PERCENT", min=0, help="Allowed growth of the number of compactions.")
    ] = _DEFAULTS.steps * 100,
    as_json: JsonOption = False,
) -> None:
    """Compare two reports of `compact replay` or `compact harness`.

    More failures of a session, check or request than before are always worse. Tokens, cost, retention and steps may change
    within the given limits. Exit code 0: nothing got worse. 1: something did. 2: bad input or usage.
    """
    allowed = Allowance(
        tokens=max_tokens_growth / 100,
        cost=max_cost_growth / 100,
        retention=max_retention_loss / 100,
        steps=max_steps_growth / 100,
    )
    found = changes(read_report(baseline), read_report(new), allowed)
    worse = [change for change in found if change.worse]
    if as_json:
        print_json({"passed": not worse, "changes": found})
    else:
        _print(found, len(worse))
    if worse:
        raise typer.Exit(1)


def _print(found: list[Change], worse: int) -> None:
    out = console()
    if not found:
        out.print("Nothing changed")
        return
    out.print(f"{count_of(worse, 'change')} for the worse" if worse else "Nothing got worse")
    rows = [("WORSE" if each.worse else "", each.where, each.what, *_numbers(each)) for each in found]
    print_table(out, ("", "~where:60", "what", ">before", ">after", ">change"), rows)


def _numbers(change: Change) -> tuple[str, str, str]:
    before, after = change.before, change.after
    if isinstance(before, str) or isinstance(after, str):
        return str(before), str(after), ""
    if change.what == "retention":
        return f"{before:.1%}", f"{after:.1%}", f"{(after - before) * 100:+.1f} points"
    return f"{before:,}", f"{after:,}", f"{after / before - 1:+.1%}" if before else ""
