"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

FileArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="A transcript, plain or gzip; - reads standard input.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LenientOption: TypeAlias = Annotated[
    bool, typer.Option("--lenient", help="Skip lines that cannot be read, and report them.")
]
DialectOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="chat, responses, anthropic, ai_sdk, harness, gemini or converse. Default: auto-detected.",
    ),
]
ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Model name. Default: the transcript's model, then the configured one."
    ),
]
WindowOption: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TOKENS", help="Context window, such as 32k or 32000. Default: the model's."),
]
ReportOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(metavar="OUT", help="Write a report: .html, .json or .md. Repeatable."),
]
ForceOption: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
RootOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--root", "--archive", metavar="FOLDER", help="Archive folder. Default: the configured one."
    ),
]
TenantOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="Whose sessions. Default: the configured tenant."),
]
SessionArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SESSION", help="Session id.")]
OptionalSession: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[SESSION]", help="Session id. Default: all sessions.")
]

ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings: compact.yaml, .yml or .json. A file that you name may set anything; one that is only found in "
        "the current folder may not name addresses, paths, prompts, exporters or redaction.",
    ),
]

_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9}


def parse_tokens(text: str, option: str) -> int:
    """Parse a number of tokens: 32k, 32000, 32_000.

    Raises:
        BadParameter: the text is not a positive number.
    """
    return parse_amount(text, option, "tokens like 32k or 32000")


def parse_amount(text: str, option: str, what: str) -> int:
    """Parse a number with an optional unit: 32k, 32_000, 8g.

    Raises:
        BadParameter: the text is not a positive number; says that it must be a number of `what`.
    """
    number, unit = text.strip().lower().replace("_", "").replace(",", ""), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    if not number.isascii() or not number.isdigit() or len(number) > 18 or int(number) == 0:
        raise typer.BadParameter(f"{option} must be a number of {what}, got {text!r:.40}")
    return int(number) * unit
