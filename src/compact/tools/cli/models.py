"""`compact models`: what is known about models, and where each number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from compact.tokens.models import FIELDS, UNKNOWN, ModelTable, model_table
from compact.tokens.windows import DEFAULT_TOKENS
from compact.tools.cli.options import ConfigOption, JsonOption
from compact.tools.cli.printing import Cell, console, print_json, print_table
from compact.tools.cli.settings import load_settings

EXAMPLE = "Example: compact models claude-opus-5-5"


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Models, under any of their names. Default: every row."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is known about models, with the settings of `models`, and where each number comes from."""
    table = model_table().with_rows(load_settings(config).models)
    found = {name: describe(table, name) for name in names or table.rows}
    if as_json:
        print_json({"models": found})
        return
    out = console()
    if not names:
        rows = [(name, *(_cell(fields, field) for field in _SHOWN)) for name, fields in found.items()]
        print_table(
            out, ("model", ">window", ">output", "counted with", "thinking", "native", ">price"), rows
        )
        out.print("compact models NAME shows one model with the source of each number")
        return
    for name, fields in found.items():
        if not fields:
            safe = f"a window of {DEFAULT_TOKENS:,} tokens, counted with {UNKNOWN.encoding} x {UNKNOWN.percent / 100:g}"
            out.print(f"{name}: no row of the table describes it; it gets {safe}")
            continue
        out.print(f"{name}:")
        cells = [
            (field, _words(known["value"]), known["row"], known["from"]) for field, known in fields.items()
        ]
        print_table(out, ("field", "~value", "row", "~from"), cells)


def describe(table: ModelTable, model: str) -> dict[str, dict[str, Any]]:
    """Every field that holds for a model, with the row that has it and the source of its value."""
    known = {field: table.find(model, field) for field in FIELDS}
    return {
        field: {"value": found.value, "row": found.row, "from": found.source}
        for field, found in known.items()
        if found is not None
    }


_SHOWN = ("window", "output", "encoding", "thinking", "native", "price")


def _cell(fields: Mapping[str, Mapping[str, Any]], field: str) -> Cell:
    value = fields.get(field, {}).get("value")
    if value is None:
        return None
    if field == "encoding" and "percent" in fields:
        return f"{value} x {fields['percent']['value'] / 100:g}"
    if field == "thinking":
        return "preserved" if value.get("preserved") else ""
    if field == "price":
        return f"{value['input']:g} / {value['output']:g}"
    return value if isinstance(value, str) else f"{value:,}"


def _words(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(_words, value)) if value else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
    )
