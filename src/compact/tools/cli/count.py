"""`compact count`: how many tokens, and what takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compact.config import CompactConfig
from compact.errors import MessageError
from compact.tools.cli.measure import Measured, Measurer
from compact.tools.cli.report import measured_json, print_measured, print_totals
from compact.tools.cli.shared import (
    DialectOption,
    FileArgument,
    JsonOption,
    LenientOption,
    console,
    named,
    print_json,
    read_tools,
    sessions_of,
)

EXAMPLE = "Example: compact count session.jsonl --model gpt-4o"


def command(
    file: FileArgument,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Count for this model. Else: the transcript's, the configured one."
        ),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON file with the tool schemas that are sent along.")
    ] = None,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Count the tokens of a transcript.

    One session: in total, per role and per tool, and its largest messages. Several: a row each, and their sum.
    """
    schemas = None if tools is None else read_tools(tools)
    measurer = Measurer(CompactConfig.load(), model)
    found: list[Measured] = []
    for session in sessions_of(file, lenient):
        try:
            found.append(measurer.measure(session, schemas, dialect))
        except MessageError as error:
            raise named(session, error) from error
    if as_json:
        print_json(
            {
                "file": str(file),
                "sessions": [measured_json(measured) for measured in found],
                "tokens": sum(measured.tokens for measured in found),
            }
        )
    elif len(found) == 1:
        print_measured(console(), found[0])
    else:
        print_totals(console(), found)
