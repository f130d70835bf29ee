"""`compact check`: would a provider take it?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from compact.errors import MessageError
from compact.messages.legality import violations
from compact.tools.cli.report import print_violations
from compact.tools.cli.shared import (
    DialectOption,
    FileArgument,
    JsonOption,
    LenientOption,
    console,
    named,
    print_json,
    sessions_of,
)

EXAMPLE = "Example: compact check session.jsonl --no-in-flight"


def command(
    file: FileArgument,
    in_flight: Annotated[
        bool,
        typer.Option(
            help="Whether the newest calls may still wait for their results: fine in a history, not in a request."
        ),
    ] = True,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Check that a provider would take a transcript. Exit code 1 and a list of reasons when not."""
    out = console()
    legal = True
    records: list[dict[str, Any]] = []
    for session in sessions_of(file, lenient):
        try:
            found = violations(session.messages, dialect or session.dialect, in_flight)
        except MessageError as error:
            raise named(session, error) from error
        legal = legal and not found
        if as_json:
            record = {"session": session.id, "messages": len(session.messages), "legal": not found}
            records.append(record | {"violations": [asdict(violation) for violation in found]})
        else:
            print_violations(out, session.id, len(session.messages), found)
    if as_json:
        print_json({"file": str(file), "legal": legal, "sessions": records})
    if not legal:
        raise typer.Exit(1)
