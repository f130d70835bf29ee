"""`compact check`: would a provider accept it?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from compact.messages.legality import violations
from compact.tools.cli.inputs import errors_named, sessions_of
from compact.tools.cli.options import DialectOption, FileArgument, JsonOption, LenientOption
from compact.tools.cli.printing import console, count_of, one_line, print_json, print_table

EXAMPLE = "Example: compact check session.jsonl --no-in-flight"


def command(
    file: FileArgument,
    in_flight: Annotated[
        bool,
        typer.Option(help="Whether the newest calls may lack results: fine in a history, not in a request."),
    ] = True,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Check whether a provider would accept a transcript. Exit code 1 and a list of reasons if not."""
    out = console()
    legal = True
    records: list[dict[str, Any]] = []
    for session in sessions_of(file, lenient):
        with errors_named(session):
            found = violations(session.messages, dialect or session.dialect, in_flight)
        is_legal = bool(session.messages) and not found  # no provider takes a request without messages
        legal = legal and is_legal
        if as_json:
            record = {"session": session.label, "messages": len(session.messages), "legal": is_legal}
            record |= {"skipped": session.skipped, "left_out": session.left_out}
            records.append(record | {"violations": [asdict(violation) for violation in found]})
            continue
        verdict = count_of(len(found), "violation") if found else "legal" if is_legal else "nothing to check"
        out.print(
            f"Session {one_line(session.label, 60)}: {count_of(len(session.messages), 'message')}, {verdict}"
        )
        if found:
            rows = [(str(each.index), each.rule, each.message) for each in found]
            print_table(out, (">message", "rule", "~why:400"), rows)
    if as_json:
        print_json({"file": str(file), "legal": legal, "sessions": records})
    if not legal:
        raise typer.Exit(1)
