"""`compact config`: the effective settings, and whether a file is right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from compact.config import CompactConfig, Setting, yaml_text
from compact.errors import ConfigError
from compact.tools.cli.shared import (
    JsonOption,
    console,
    counted,
    label,
    print_json,
    print_table,
    prose,
    table,
)

app = typer.Typer(help="Show and check settings.", no_args_is_help=True, rich_markup_mode=None)

_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")
_DEFAULT = "default"


@app.command("show", epilog="Example: compact config show compact.yaml")
def show(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="compact.yaml, .yml or .json; else that of the current directory, if any."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show every setting, its effective value, and where that came from."""
    config = CompactConfig.load(file)
    ignored = config.ignored_variables()
    rows = [row._replace(value=_masked(row.value)) for row in config.explain()]
    if as_json:
        settings = {row.path: {"value": row.value, "source": row.source} for row in rows}
        print_json({"settings": settings, "ignored_variables": ignored})
        return
    out = console()
    made = table(label("setting"), prose("value"), prose("from"))
    for row in rows:
        made.add_row(row.path, yaml_text(row.value), "" if row.source == _DEFAULT else row.source)
    print_table(out, made)
    for variable in ignored:
        out.print(f"{variable} is ignored: it is not a setting")


@app.command("check", epilog="Example: compact config check compact.yaml")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="compact.yaml, .yml or .json")],
    as_json: JsonOption = False,
) -> None:
    """Check a configuration file. Exit code 1 and a list of what is wrong when it is not right."""
    problems: list[dict[str, str]] = []
    given: list[Setting] = []
    try:
        given = [row for row in CompactConfig.load(file).explain() if row.source.startswith("file ")]
    except ConfigError as error:
        if "problems" not in error.details:
            raise  # the file cannot be read at all
        problems = [{"setting": problem.path, "problem": problem.text} for problem in error.problems]
    if as_json:
        print_json({"file": str(file), "right": not problems, "settings": len(given), "problems": problems})
    elif problems:
        console().print(
            "\n".join([f"{file}: {len(problems)} wrong", *(f"  {p['problem']}" for p in problems)])
        )
    else:
        console().print(f"{file}: right, {counted(len(given), 'setting')}")
    if problems:
        raise typer.Exit(1)


def _masked(value: Any) -> Any:
    """A value without the password of an address, and asterisks for a token."""
    if isinstance(value, SecretStr):
        return str(value)
    return _PASSWORD.sub("***@", value) if isinstance(value, str) else value
