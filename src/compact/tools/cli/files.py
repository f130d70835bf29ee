"""Files that commands read and write: which ones are meant, and nothing written over by accident."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import typer

from compact.errors import TranscriptError

_UNITS = {"k": 1_000, "m": 1_000_000}
_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj")


def tokens_of(text: str, option: str) -> int:
    """A number of tokens: 32k, 32000, 32_000."""
    number, unit = text.strip().lower().replace("_", "").replace(",", ""), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    if not number.isascii() or not number.isdigit() or int(number) == 0:
        raise typer.BadParameter(f"{option} must be a number of tokens like 32k or 32000, got {text!r:.40}")
    return int(number) * unit


def transcripts_in(paths: Iterable[Path]) -> list[Path]:
    """The files that are meant: a folder stands for every transcript below it, by name.

    Raises:
        TranscriptError: a folder has none, or does not exist.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(Path("/dev/stdin") if str(path) == "-" else path)
            continue
        inside = sorted(each for each in path.rglob("*") if each.is_file() and _is_transcript(each))
        if not inside:
            ending = ", ".join(_ENDINGS)
            raise TranscriptError(
                f"{path} has no transcripts: no file ends in {ending}, or one of these and .gz"
            )
        found += inside
    return found


def check_outputs(outputs: Mapping[str, Iterable[Path]], inputs: Iterable[Path], force: bool) -> None:
    """Nothing, if all files that a command writes may be written; asked before any work is done.

    Args:
        outputs: The files by the option that names them.
        inputs: The files that the command reads; none of them is ever written over.
        force: Files that exist may be overwritten.

    Raises:
        TranscriptError: one exists and is not to be overwritten, its folder does not exist, it is one of the inputs, or
            two outputs are the same file.
    """
    sources = list(inputs)
    seen: dict[Path, str] = {}
    for option, files in outputs.items():
        for file in files:
            _check_output(file, option)
            if (place := file.resolve()) in seen:
                what = f"cannot write {file}: {seen[place]} and {option} name the same file"
                raise TranscriptError(what, hint="Name another file", path=str(file))
            seen[place] = option
            if any(_is_same(file, source) for source in sources):
                what = f"cannot write {file}: it is one of the files that are read"
                raise TranscriptError(what, hint="Name another file", path=str(file))
            if file.exists() and not force:
                raise _taken(file)


def check_endings(files: Iterable[Path], endings: Iterable[str]) -> None:
    """Nothing, if reports of these names can be written.

    Raises:
        TranscriptError: a name has another ending than a report can have.
    """
    known = list(endings)
    for file in files:
        if file.suffix.lower() not in known:
            what = f"cannot write {file}: a report ends in {', '.join(known)}, not {file.suffix!r}"
            raise TranscriptError(what, path=str(file))


def write_output(file: Path, data: bytes, force: bool) -> None:
    """The whole file or none; what came into its place meanwhile is overwritten only by force.

    Raises:
        TranscriptError: it exists and is not to be overwritten.
    """
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
        if force:
            new.replace(file)
        else:
            file.hardlink_to(new)
    except FileExistsError:
        raise _taken(file) from None
    finally:
        new.unlink(missing_ok=True)


def _check_output(file: Path, option: str) -> None:
    if str(file) == "-":
        raise typer.BadParameter(f"{option} needs the name of a file: the report goes to standard output")
    if file.is_dir():
        raise TranscriptError(f"cannot write {file}: it is a directory", path=str(file))
    if not file.parent.is_dir():
        raise TranscriptError(f"cannot write {file}: there is no folder {file.parent}", path=str(file))


def _is_same(file: Path, source: Path) -> bool:
    """Whether it is the same file, by another name or link too."""
    try:
        return file.samefile(source)
    except OSError:
        return False


def _is_transcript(file: Path) -> bool:
    return not file.name.startswith(".") and file.name.lower().removesuffix(".gz").endswith(_ENDINGS)


def _taken(file: Path) -> TranscriptError:
    hint = "Name another file, or overwrite it with --force"
    return TranscriptError(f"{file} exists already", hint=hint, path=str(file))
