"""`compact config`: show the effective settings, and check a settings file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from compact.config import CompactConfig, Setting, yaml_text
from compact.errors import ConfigError
from compact.tools.cli.options import JsonOption
from compact.tools.cli.printing import console, count_of, print_json, print_table
from compact.tools.cli.settings import load_settings

app = typer.Typer(help="Show and check settings.", no_args_is_help=True, rich_markup_mode=None)

_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


@app.command("show", epilog="Example: compact config show compact.yaml")
def show(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Settings file. Default: what COMPACT_CONFIG names, then compact.yaml in the current directory.",
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="One of the file's agents.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show every setting, its effective value, and where that came from."""
    config = load_settings(file, agent=agent)
    ignored = config.ignored_variables()
    rows = [row._replace(value=_mask(row.value)) for row in config.explain()]
    if as_json:
        settings = {row.path: {"value": row.value, "source": row.source} for row in rows}
        print_json({"settings": settings, "ignored_variables": ignored})
        return
    out = console()
    cells = [(row.path, yaml_text(row.value), "" if row.source == "default" else row.source) for row in rows]
    print_table(out, ("setting", "~value", "~from"), cells)
    for variable in ignored:
        out.print(f"{variable} is ignored: it is not a setting")


@app.command("check", epilog="Example: compact config check compact.yaml")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="compact.yaml, .yml or .json")],
    as_json: JsonOption = False,
) -> None:
    """Check a settings file. Exit code 1 and a list of problems if it has any."""
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
        console().print(f"{file}: right, {count_of(len(given), 'setting')}")
    if problems:
        raise typer.Exit(1)


def _mask(value: Any) -> Any:
    """Hide tokens, and passwords in addresses."""
    if isinstance(value, SecretStr):
        return str(value)
    return _PASSWORD.sub("***@", value) if isinstance(value, str) else value
