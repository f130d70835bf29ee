"""`compact apply`: compact a transcript, and report what that did."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from compact.archive import to_line
from compact.config import CompactConfig
from compact.errors import CompactError, ConfigError, MessageError, MissingExtra, TranscriptError
from compact.runtime.manager import CompactManager
from compact.tools.cli.compaction import Compaction, compact_session, print_compaction
from compact.tools.cli.inputs import errors_named, sessions_of
from compact.tools.cli.options import (
    ConfigOption,
    FileArgument,
    ForceOption,
    JsonOption,
    LenientOption,
    ModelOption,
    RootOption,
    TenantOption,
    WindowOption,
    parse_tokens,
)
from compact.tools.cli.outputs import check_outputs, write_output
from compact.tools.cli.printing import console, count_of, print_json, say
from compact.tools.cli.settings import load_settings
from compact.tools.transcripts import RecordedSession

EXAMPLE = "Example: compact apply session.jsonl -o shorter.json --window 32k"

_NAMES_SHOWN = 5
_HASH_SIGNS = 8


def command(
    file: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Result file: .json or .jsonl, also with .gz."),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Session id, if the file has several sessions.")
    ] = None,
    window: WindowOption = None,
    model: ModelOption = None,
    config: ConfigOption = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="layered, selective or progressive, instead of a file.")
    ] = None,
    root: RootOption = None,
    tenant: TenantOption = None,
    manual: Annotated[
        bool, typer.Option("--manual", help="Fold everything that is eligible, whatever the size.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Compact a session of a transcript, and report what went where.

    Without -o this is a dry run: neither a result nor an archive is written. In the archive the session has the name that
    it has in the file, and a short hash of the file's path: another file never shares it, and the same file, applied again,
    continues it. Exit code 1 if the session cannot be made to fit.
    """
    if config is not None and preset is not None:
        raise typer.BadParameter("--config and --preset exclude each other: give one of them")
    if output is not None:
        room = file.stat().st_size if file.is_file() else 0
        check_outputs({"-o": [output]}, [each for each in (file, config) if each], force, room)
    chosen = _choose(file, session, lenient)
    settings: dict[str, Any] = {}
    if model or chosen.model:
        settings["model"] = model or chosen.model
    if window is not None:
        settings["max_context_tokens"] = parse_tokens(window, "--window")
    if tenant is not None:
        settings["tenant"] = tenant
    if output is None:
        settings["archive"] = {"adapter": "memory"}
    elif root is not None:
        settings["archive"] = {"adapter": "fs", "root": str(root)}
    loaded = load_settings(config, **settings) if preset is None else CompactConfig.preset(preset, **settings)
    archived = replace(chosen, id=archive_name(chosen, file))
    done = _compact(loaded, chosen, archived, manual)
    if output is not None:
        write_output(output, _encode(done.messages, output), force)
    if as_json:
        read = {"id": chosen.label, "skipped": chosen.skipped, "left_out": chosen.left_out}
        out = None if output is None else str(output)
        print_json({"file": str(file), "output": out, **read, **done.to_json()})
        return
    print_compaction(console(), done)
    if output is not None:
        count = count_of(len(done.messages), "message")
        console().print(f"\nWritten to {output}: {count}, {done.dialect}", soft_wrap=True)
    elif done.changed:
        console().print("\nThis was a dry run: nothing was written. Add -o OUT to write the result.")


def archive_name(session: RecordedSession, file: Path) -> str:
    """Name a session of a file in the archive: its id, and a short hash of where the file is.

    What comes through a pipe has no place; there the hash is of the messages.
    """
    source = os.fsencode(file.resolve()) if file.is_file() else b"".join(map(to_line, session.messages))
    key = hashlib.sha256(source + b"\0" + session.id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{session.id}-{key[:_HASH_SIGNS]}"


def _compact(
    config: CompactConfig, session: RecordedSession, archived: RecordedSession, manual: bool
) -> Compaction:
    with CompactManager(config.updated(policy={"background_pct": None})) as manager:  # no later call follows
        try:
            with errors_named(session):
                return compact_session(manager, archived, manual)
        except (ConfigError, MessageError, MissingExtra):
            raise
        except CompactError as error:
            say(f"session {session.label}: {error}")
            raise typer.Exit(1) from error


def _choose(file: Path, wanted: str | None, lenient: bool) -> RecordedSession:
    """Find the session of that id, or the only one.

    Raises:
        TranscriptError: the file has no such session, or has several and no id was given.
    """
    ids: list[str] = []
    for found in sessions_of(file, lenient):
        if found.id == wanted:
            return found
        ids.append(found.label)
    if wanted is None and len(ids) == 1:
        return found
    names = ", ".join(ids[:_NAMES_SHOWN])
    more = f" and {len(ids) - _NAMES_SHOWN} more" if len(ids) > _NAMES_SHOWN else ""
    if wanted is None:
        what, hint = f"{file} has {len(ids)} sessions", f"Choose one with --session: {names}{more}"
    else:
        what, hint = f"{file} has no session {wanted!r:.100}", f"It has: {names}{more}"
    raise TranscriptError(what, hint=hint, path=str(file))


def _encode(messages: Sequence[Any], file: Path) -> bytes:
    """Write messages as a JSON list or as JSON lines, gzipped if the file name says so."""
    lines = [to_line(message) for message in messages]
    name = file.name.lower()
    if name.removesuffix(".gz").endswith(".jsonl"):
        data = b"".join(lines)
    else:
        data = b"[\n" + b",\n".join(line.rstrip(b"\n") for line in lines) + b"\n]\n"
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data
