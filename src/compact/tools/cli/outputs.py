"""Files that commands write. Nothing is overwritten by accident."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import typer

from compact.errors import TranscriptError

_Content = TypeVar("_Content")


def check_outputs(outputs: Mapping[str, Iterable[Path]], inputs: Iterable[Path], force: bool) -> None:
    """Check, before any work is done, that every output may be written.

    Args:
        outputs: The files by the option that names them.
        inputs: The files that the command reads. None of them is ever overwritten.
        force: Existing files may be overwritten.

    Raises:
        TranscriptError: a file exists and may not be overwritten, its folder does not exist, it is one of the inputs, or
            two outputs are the same file.
    """
    sources = list(inputs)
    seen: dict[Path, str] = {}
    for option, files in outputs.items():
        for file in files:
            if str(file) == "-":
                raise typer.BadParameter(
                    f"{option} needs the name of a file: the report goes to standard output"
                )
            if file.is_dir():
                raise _unwritable(file, "it is a directory")
            if not file.parent.is_dir():
                raise _unwritable(file, f"there is no folder {file.parent}")
            if (place := file.resolve()) in seen:
                raise _unwritable(file, f"{seen[place]} and {option} name the same file", "Name another file")
            seen[place] = option
            if any(_is_same(file, source) for source in sources):
                raise _unwritable(file, "it is one of the files that are read", "Name another file")
            if file.exists() and not force:
                raise _taken(file)


def check_endings(files: Iterable[Path], endings: Iterable[str]) -> None:
    """Check that each file's name ends in one of the endings that reports have.

    Raises:
        TranscriptError: a name has another ending.
    """
    known = list(endings)
    for file in files:
        if file.suffix.lower() not in known:
            raise _unwritable(file, f"a report ends in {', '.join(known)}, not {file.suffix!r}")


def write_output(file: Path, data: bytes, force: bool) -> None:
    """Write a whole file or nothing. Only its owner can read it.

    Raises:
        TranscriptError: the file exists, perhaps only since it was checked, and `force` is off.
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


def write_reports(
    files: Iterable[Path], writers: Mapping[str, Callable[[_Content], str]], content: _Content, force: bool
) -> None:
    """Write a report to each file, in the format that its ending names."""
    for file in files:
        text = writers[file.suffix.lower()](content)
        write_output(file, text.encode("utf-8", "replace"), force)


def _is_same(file: Path, source: Path) -> bool:
    """Whether both are the same file, even by another name or link."""
    try:
        return file.samefile(source)
    except OSError:
        return False


def _unwritable(file: Path, why: str, hint: str = "") -> TranscriptError:
    return TranscriptError(f"cannot write {file}: {why}", hint=hint, path=str(file))


def _taken(file: Path) -> TranscriptError:
    hint = "Name another file, or overwrite it with --force"
    return TranscriptError(f"{file} exists already", hint=hint, path=str(file))
