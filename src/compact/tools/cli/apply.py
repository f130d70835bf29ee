"""`compact apply`: a transcript compacted, and what that did."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from compact.archive import to_line
from compact.config import CompactConfig
from compact.errors import CompactError, ConfigError, MessageError, MissingExtra, TranscriptError
from compact.runtime.manager import CompactManager
from compact.tools.cli.compaction import Compaction, compact_session
from compact.tools.cli.files import check_outputs, tokens_of, write_output
from compact.tools.cli.report import compaction_json, print_compaction
from compact.tools.cli.shared import (
    FileArgument,
    JsonOption,
    LenientOption,
    console,
    named,
    print_json,
    sessions_of,
)
from compact.tools.transcripts import Session

EXAMPLE = "Example: compact apply session.jsonl -o shorter.json --window 32k"

_NAMES_SHOWN = 5


def command(
    file: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Where the result goes: .json, .jsonl, and .gz of each."
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Which session, if the file has several.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="The context window: 32k, 32000. Else the model's.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For this model. Else: the transcript's, the configured one."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="compact.yaml, .yml or .json with the settings.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="layered, selective or progressive, instead of a file.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The archive's folder. Else: the configured archive."),
    ] = None,
    manual: Annotated[
        bool, typer.Option("--manual", help="Fold everything that may be folded, whatever the size.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Compact a session of a transcript, and say what went where.

    Without -o it is a trial: nothing is written, neither a result nor an archive. Exit code 1 when the session cannot be
    made to fit.
    """
    if output is not None:
        check_outputs({"-o": [output]}, [each for each in (file, config) if each], force)
    chosen = _chosen(file, session, lenient)
    settings: dict[str, Any] = {}
    if model or chosen.model:
        settings["model"] = model or chosen.model
    if window is not None:
        settings["max_context_tokens"] = tokens_of(window, "--window")
    if output is None:
        settings["archive"] = {"adapter": "memory"}
    elif root is not None:
        settings["archive"] = {"adapter": "fs", "root": str(root)}
    done = _compacted(_config(config, preset, settings), chosen, manual)
    if output is not None:
        write_output(output, _encoded(done.messages, output), force)
    _report(done, file, output, as_json)


def _compacted(config: CompactConfig, session: Session, manual: bool) -> Compaction:
    with CompactManager(config) as manager:
        try:
            return compact_session(manager, session, manual)
        except MessageError as error:
            raise named(session, error) from error
        except (ConfigError, MissingExtra):
            raise
        except CompactError as error:
            sys.stderr.write(f"compact: session {session.id}: {error}\n")
            raise typer.Exit(1) from error


def _report(done: Compaction, file: Path, output: Path | None, as_json: bool) -> None:
    if as_json:
        out = None if output is None else str(output)
        print_json({"file": str(file), "output": out, **compaction_json(done)})
        return
    print_compaction(console(), done)
    if output is not None:
        console().print(f"\nWritten to {output}", soft_wrap=True)
    elif done.changed:
        console().print("\nThis was a trial: nothing was written. Add -o OUT to write the result.")


def _chosen(file: Path, wanted: str | None, lenient: bool) -> Session:
    """The session of that id, or the only one.

    Raises:
        TranscriptError: the file has no such session, or several and none was named.
    """
    ids: list[str] = []
    only: Session | None = None
    for found in sessions_of(file, lenient):
        if found.id == wanted:
            return found
        ids.append(found.id)
        only = found if len(ids) == 1 else None
    if wanted is None and only is not None:
        return only
    names = ", ".join(ids[:_NAMES_SHOWN])
    more = f" and {len(ids) - _NAMES_SHOWN} more" if len(ids) > _NAMES_SHOWN else ""
    if wanted is None:
        what, hint = f"{file} has {len(ids)} sessions", f"Choose one with --session: {names}{more}"
    else:
        what, hint = f"{file} has no session {wanted!r:.100}", f"It has: {names}{more}"
    raise TranscriptError(what, hint=hint, path=str(file))


def _config(file: Path | None, preset: str | None, settings: dict[str, Any]) -> CompactConfig:
    if file is not None and preset is not None:
        raise typer.BadParameter("--config and --preset cannot stand together: give one of them")
    return (
        CompactConfig.load(file, **settings) if preset is None else CompactConfig.preset(preset, **settings)
    )


def _encoded(messages: Sequence[Any], file: Path) -> bytes:
    """A JSON list with one message a line, or bare lines; packed if the name says so."""
    lines = [to_line(message) for message in messages]
    name = file.name.lower()
    if name.removesuffix(".gz").endswith(".jsonl"):
        data = b"".join(lines)
    else:
        data = b"[\n" + b",\n".join(line.rstrip(b"\n") for line in lines) + b"\n]\n"
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data
