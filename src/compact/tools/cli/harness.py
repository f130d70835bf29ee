"""`compact harness`: do sessions stay stable under a budget?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from compact.messages import to_json
from compact.tools.cli.inputs import report_skipped, transcripts_in
from compact.tools.cli.options import ForceOption, JsonOption, LenientOption, ReportOption, parse_tokens
from compact.tools.cli.outputs import check_endings, check_outputs, write_output, write_reports
from compact.tools.cli.printing import console, count_of, first_lines, one_line, print_line, print_table
from compact.tools.harness import HarnessConfig, Stabilized, stabilize, validate_turns
from compact.tools.harness.config import DEFAULT_BUDGET
from compact.tools.harness.requests import check_request_dialect
from compact.tools.harness.scenarios import run_scenarios
from compact.tools.harness.sources import sources_of
from compact.tools.harness.writing import WRITERS, SessionReport, as_json, dropped_in_words

EXAMPLE = "Example: compact harness session.jsonl --budget 8k --pii standard --report report.html"

DETAILS_SHOWN = 10
SESSIONS_SHOWN = 40
_DETAIL_CHARS = 300


def command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Artifacts, transcripts, or folders of them."),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TOKENS", help="Maximum size of the context: 8k, 8000.")
    ] = str(DEFAULT_BUDGET),
    keep_messages: Annotated[int, typer.Option(metavar="N", help="Newest messages that always stay.")] = 2,
    pii: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="digits (3 or more in a row), standard (personal data and secrets), none, a registered rule's name, "
            "or a YAML file of rules. System and task artifacts are never changed; a match in one fails the check.",
        ),
    ] = "digits",
    pii_allow: Annotated[str, typer.Option(metavar="KINDS", help="Kinds to skip, such as system,task.")] = "",
    heuristic: Annotated[
        str, typer.Option(metavar="NAME", help="conversation_first, newest_first, or a registered name.")
    ] = "conversation_first",
    check: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another registered check. Repeatable.")
    ] = None,
    every_turn: Annotated[
        bool, typer.Option("--every-turn", help="Also check system and task artifacts in every earlier turn.")
    ] = False,
    turns: Annotated[
        bool,
        typer.Option(
            "--turns",
            help="Treat the sessions of a file as the requests of one session, turn by turn: check them unchanged, and "
            "compare their system prompts with the first one's by hash.",
        ),
    ] = False,
    model: Annotated[str, typer.Option(metavar="NAME", help="Count tokens for this model.")] = "gpt-4o",
    report: ReportOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Write the stabilized artifacts.")
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="DIALECT",
            help="With -o: write a provider's request instead of artifacts: chat, responses, anthropic, ai_sdk, gemini or converse.",
        ),
    ] = None,
    scenarios: Annotated[bool, typer.Option("--scenarios", help="Run the four key scenarios.")] = False,
    force: ForceOption = False,
    as_json_: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Stabilize recorded sessions and check the result: masked, within the budget, system and task first.

    Exit code 0: every check of every session passed. 1: one failed. 2: bad input or usage.
    """
    if scenarios and (files or report or output or turns or every_turn):
        raise typer.BadParameter("--scenarios stands alone: it reads no FILE and writes no report")
    if request is not None:
        if output is None:
            raise typer.BadParameter("--request needs -o: it says what is written there")
        check_request_dialect(request)
    if turns and output:
        raise typer.BadParameter("--turns and -o exclude each other: requests are checked unchanged")
    if turns and every_turn:
        raise typer.BadParameter("--turns and --every-turn exclude each other: the turns are given")
    if scenarios:
        _run_scenarios()
        return
    if not files:
        raise typer.BadParameter("name a FILE, or use --scenarios")
    chosen = transcripts_in(files)
    check_endings(report or [], WRITERS)
    check_outputs({"--report": report or [], "-o": [output] if output else []}, chosen, force)
    settings = HarnessConfig(
        budget=parse_tokens(budget, "--budget"),
        keep_messages=keep_messages,
        pii=pii,
        pii_allow=pii_allow,
        heuristic=heuristic,
        checks=("pii", "budget", "order", *(check or [])),
        model=model,
        every_turn=every_turn,
    )
    written: list[Any] = []
    if turns:
        reports = [_check_turns(file, lenient, settings) for file in chosen]
    else:
        reports = []
        for one, done in _stabilize(chosen, lenient, settings):
            reports.append(one)
            if output is not None:
                written.append(done.to_request(request) if request else {"artifacts": done.artifacts})
    write_reports(report or [], WRITERS, reports, force)
    if output is not None:
        data = written[0] if len(written) == 1 else written
        write_output(output, (to_json(data) + "\n").encode("utf-8", "replace"), force)
    if as_json_:
        print_line(as_json(reports).rstrip("\n"))
    else:
        _print(reports)
    if not all(one.report.passed for one in reports):
        raise typer.Exit(1)


def _stabilize(
    files: Sequence[Path], lenient: bool, settings: HarnessConfig
) -> Iterator[tuple[SessionReport, Stabilized]]:
    for file in files:
        for source in sources_of(file, lenient, report_skipped):
            done = stabilize(source.artifacts, settings)
            yield SessionReport(source.file, source.session, done.report), done


def _check_turns(file: Path, lenient: bool, settings: HarnessConfig) -> SessionReport:
    """Check the requests of one session, in one report."""
    turns = 0

    def requests() -> Iterator[Any]:
        nonlocal turns
        for source in sources_of(file, lenient, report_skipped):
            turns += 1
            yield source.artifacts

    report = validate_turns(requests(), settings)
    return SessionReport(str(file), f"{file.name}: {count_of(turns, 'turn')}", report)


def _print(reports: Sequence[SessionReport]) -> None:
    if len(reports) == 1:
        _print_one(reports[0])
        return
    out = console()
    failed = [one for one in reports if not one.report.passed]
    passed = f"{len(reports) - len(failed):,} of {count_of(len(reports), 'session')} passed"
    out.print(f"{passed}, {dropped_in_words(reports)}")
    if failed:
        columns = ("~session:60", ">tokens", ">budget", ">kept", ">dropped", ">masked", "failed")
        rows = [(one.session, *one.numbers, one.failed_checks) for one in failed[:SESSIONS_SHOWN]]
        print_table(out, columns, rows, "Failed")


def _print_one(one: SessionReport) -> None:
    out, found = console(), one.report
    verdict = "passed" if found.passed else "failed"
    size = f"{found.tokens:,} of {found.budget:,} tokens"
    out.print(f"Session {one_line(one.session, 60)}: {verdict}, {size}, {dropped_in_words([one])}")
    checks = [
        (check["name"], "passed" if check["passed"] else "FAILED", _details(check["details"]))
        for check in found.checks
    ]
    print_table(out, ("check", "result", "~what is wrong"), checks)
    kept, dropped = found.kept, found.dropped
    out.print(f"\n{len(kept):,} kept, {len(dropped):,} dropped, {count_of(found.masked, 'span')} masked")
    if dropped:
        largest = sorted(dropped, key=lambda line: -line["tokens"])[:DETAILS_SHOWN]
        rows = [(line["id"], line["kind"], line["tokens"], line["reason"]) for line in largest]
        title = "The largest that were dropped" if len(dropped) > DETAILS_SHOWN else ""
        print_table(out, ("~dropped:40", "kind", ">tokens", "~why"), rows, title)


def _details(details: Sequence[str]) -> str:
    return "\n".join(one_line(line, _DETAIL_CHARS) for line in first_lines(details, DETAILS_SHOWN))


def _run_scenarios() -> None:
    out = console()
    outcomes = run_scenarios()
    for outcome in outcomes:
        out.print(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.name}", style="bold")
        for expectation, held in outcome.held.items():
            out.print(f"  {'yes' if held else 'NO '}  {expectation}")
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)
