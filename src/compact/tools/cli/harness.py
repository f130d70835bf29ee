"""`compact harness`: do sessions stay stable under a budget?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from compact.messages import to_json
from compact.tools.cli.files import check_endings, check_outputs, tokens_of, transcripts_in, write_output
from compact.tools.cli.shared import (
    JsonOption,
    LenientOption,
    console,
    counted,
    label,
    number,
    one_line,
    print_table,
    prose,
    report_skipped,
    table,
)
from compact.tools.harness import HarnessConfig, stabilize, validate_turns
from compact.tools.harness.config import DEFAULT_BUDGET
from compact.tools.harness.files import sources_of
from compact.tools.harness.scenarios import run_scenarios
from compact.tools.harness.writing import WRITERS, SessionReport, as_json

EXAMPLE = "Example: compact harness session.jsonl --budget 8k --pii standard --report report.html"

DETAILS_SHOWN = 10
SESSIONS_SHOWN = 40
_WORDS = 300


def command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...", help="Artifacts, transcripts of any known format, or folders of them."
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TOKENS", help="The most the context may cost: 8k, 8000.")
    ] = str(DEFAULT_BUDGET),
    keep_messages: Annotated[
        int, typer.Option(metavar="N", help="How many of the newest messages always stay.")
    ] = 2,
    pii: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="digits (3 or more in a row), standard (personal data and secrets), none, a registered rule's name, "
            "or a YAML file of rules. System and task artifacts are never changed: a hit in one fails the check.",
        ),
    ] = "digits",
    pii_allow: Annotated[
        str, typer.Option(metavar="KINDS", help="Kinds that the check leaves out, for example system,task.")
    ] = "",
    heuristic: Annotated[
        str, typer.Option(metavar="NAME", help="newest_first, conversation_first, or a registered one.")
    ] = "newest_first",
    check: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="One more check, registered by name. Repeatable.")
    ] = None,
    every_turn: Annotated[
        bool,
        typer.Option(
            "--every-turn", help="Assemble every earlier turn too, and compare its authority by hash."
        ),
    ] = False,
    turns: Annotated[
        bool,
        typer.Option(
            "--turns",
            help="The sessions of a file are the requests of one session as they were sent, turn by turn: check them "
            "as they are, and compare their system prompts with the first one's by hash.",
        ),
    ] = False,
    model: Annotated[str, typer.Option(metavar="NAME", help="Whose tokens are counted.")] = "gpt-4o",
    report: Annotated[
        list[Path] | None,
        typer.Option(metavar="OUT", help="Write the report: .json, .md or .html. Repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Write the stabilized artifacts, as JSON."),
    ] = None,
    scenarios: Annotated[
        bool, typer.Option("--scenarios", help="Run the four key scenarios instead of files.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    as_json_: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Stabilize recorded sessions and check the result: masked, within the budget, system and task first.

    Exit code 0: every check of every session passed. 1: one failed. 2: bad input or usage.
    """
    _check_usage(files, scenarios=scenarios, turns=turns, every_turn=every_turn, report=report, output=output)
    if scenarios or not files:
        _run_scenarios()
        return
    chosen = transcripts_in(files)
    check_endings(report or [], WRITERS)
    check_outputs({"--report": report or [], "-o": [output] if output else []}, chosen, force)
    settings = HarnessConfig(
        budget=tokens_of(budget, "--budget"),
        keep_messages=keep_messages,
        pii=pii,
        pii_allow=pii_allow,
        heuristic=heuristic,
        checks=("pii", "budget", "order", *(check or [])),
        model=model,
        every_turn=every_turn,
    )
    kept: list[Any] = []
    if turns:
        reports = [_turns(file, lenient, settings) for file in chosen]
    else:
        reports = list(_stabilized(chosen, lenient, settings, kept if output else None))
    _write(reports, kept, report or [], output, force)
    if as_json_:
        sys.stdout.write(as_json(reports))
    else:
        _print(reports)
    if not all(one.report.passed for one in reports):
        raise typer.Exit(1)


def _check_usage(
    files: Sequence[Path] | None,
    *,
    scenarios: bool,
    turns: bool,
    every_turn: bool,
    report: Sequence[Path] | None,
    output: Path | None,
) -> None:
    """Nothing, if the options go together: none is left aside without a word.

    Raises:
        BadParameter: they do not.
    """
    if scenarios and (files or report or output or turns or every_turn):
        raise typer.BadParameter("--scenarios stands alone: it reads no FILE and writes no report")
    if not scenarios and not files:
        raise typer.BadParameter("name a FILE, or use --scenarios")
    if turns and output:
        raise typer.BadParameter("--turns and -o cannot stand together: requests are checked as they are")
    if turns and every_turn:
        raise typer.BadParameter("--turns and --every-turn cannot stand together: the turns are given")


def _stabilized(
    files: Sequence[Path], lenient: bool, settings: HarnessConfig, kept: list[Any] | None
) -> Iterator[SessionReport]:
    for file in files:
        for source in sources_of(file, lenient, report_skipped):
            done = stabilize(source.artifacts, settings)
            if kept is not None:
                kept.append(done.artifacts)
            yield SessionReport(source.file, source.session, done.report)


def _turns(file: Path, lenient: bool, settings: HarnessConfig) -> SessionReport:
    """The requests of one session, in one report."""
    turns = 0

    def requests() -> Iterator[Any]:
        nonlocal turns
        for source in sources_of(file, lenient, report_skipped):
            turns += 1
            yield source.artifacts

    report = validate_turns(requests(), settings)
    return SessionReport(str(file), f"{file.name}: {counted(turns, 'turn')}", report)


def _write(
    reports: Sequence[SessionReport], kept: list[Any], outs: Sequence[Path], output: Path | None, force: bool
) -> None:
    for out in outs:
        words = WRITERS[out.suffix.lower()](reports)
        write_output(out, words.encode("utf-8", "replace"), force)
    if output is not None:
        data = {"artifacts": kept[0]} if len(kept) == 1 else [{"artifacts": each} for each in kept]
        write_output(output, (to_json(data) + "\n").encode("utf-8", "replace"), force)


def _print(reports: Sequence[SessionReport]) -> None:
    out = console()
    if len(reports) == 1:
        _print_one(reports[0])
        return
    rows = table(
        prose("session"), *map(number, ("tokens", "budget", "kept", "dropped", "masked")), label("failed")
    )
    for one in [one for one in reports if not one.report.passed][:SESSIONS_SHOWN]:
        found = one.report
        numbers = (found.tokens, found.budget, len(found["kept"]), len(found["dropped"]), found.masked)
        failed = ", ".join(check["name"] for check in found.checks if not check["passed"])
        rows.add_row(one_line(one.session, 60), *(f"{each:,}" for each in numbers), failed)
    passed = sum(one.report.passed for one in reports)
    out.print(f"{passed:,} of {counted(len(reports), 'session')} passed")
    if passed < len(reports):
        print_table(out, rows, "Failed")


def _print_one(one: SessionReport) -> None:
    out, found = console(), one.report
    verdict = "passed" if found.passed else "failed"
    out.print(f"Session {one_line(one.session, 60)}: {verdict}, {found.tokens:,} of {found.budget:,} tokens")
    rows = table(label("check"), label("result"), prose("what is wrong"))
    for check in found.checks:
        shown = [one_line(detail, _WORDS) for detail in check["details"][:DETAILS_SHOWN]]
        if len(check["details"]) > DETAILS_SHOWN:
            shown.append(f"and {len(check['details']) - DETAILS_SHOWN:,} more")
        rows.add_row(check["name"], "passed" if check["passed"] else "FAILED", "\n".join(shown))
    print_table(out, rows)
    kept, dropped = found["kept"], found["dropped"]
    out.print(f"\n{len(kept):,} kept, {len(dropped):,} dropped, {counted(found.masked, 'span')} masked")
    if dropped:
        rows = table(prose("dropped"), label("kind"), number("tokens"), prose("why"))
        for line in sorted(dropped, key=lambda line: -line["tokens"])[:DETAILS_SHOWN]:
            rows.add_row(one_line(line["id"], 40), line["kind"], f"{line['tokens']:,}", line["reason"])
        print_table(out, rows, "The largest that were dropped" if len(dropped) > DETAILS_SHOWN else "")


def _run_scenarios() -> None:
    out = console()
    outcomes = run_scenarios()
    for outcome in outcomes:
        out.print(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.name}", style="bold")
        for expectation, held in outcome.held.items():
            out.print(f"  {'yes' if held else 'NO '}  {expectation}")
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)
