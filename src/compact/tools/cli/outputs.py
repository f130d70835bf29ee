"""Files that commands write. Nothing is overwritten by accident."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import typer

from compact.errors import TranscriptError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_Content = TypeVar("_Content")


def check_outputs(
    outputs: Mapping[str, Iterable[Path]], inputs: Iterable[Path], force: bool, room: int = 0
) -> None:
    """Check, before any work is done, that every output may be written.

    Args:
        outputs: The files by the option that names them.
        inputs: The files that the command reads. None of them is ever overwritten.
        force: Existing files may be overwritten.
        room: The bytes that the disk must have free.

    Raises:
        TranscriptError: a file exists and may not be overwritten, is no regular file, or is one of the inputs; its folder
            does not exist or takes no new file; its name is too long; or two outputs are the same file.
    """
    sources = list(inputs)
    seen: dict[Path, str] = {}
    for option, files in outputs.items():
        for file in files:
            if str(file) == "-":
                raise typer.BadParameter(
                    f"{option} needs the name of a file: the report goes to standard output"
                )
            if problem := _problem(file):
                raise _unwritable(file, problem)
            if (place := file.resolve()) in seen:
                raise _unwritable(file, f"{seen[place]} and {option} name the same file", "Name another file")
            seen[place] = option
            if any(_is_same(file, source) for source in sources):
                raise _unwritable(file, "it is one of the files that are read", "Name another file")
            if os.path.lexists(file) and not force:
                raise _taken(file)
            _try_folder(file, room)


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
        TranscriptError: the file cannot be written, or exists, perhaps only since it was checked, and `force` is off.
    """
    new = _beside(file)
    try:
        with os.fdopen(os.open(new, _NEW_FILE, 0o600), "wb") as stream:
            stream.write(data)
        if force:
            new.replace(file)
        else:
            _take_name(new, file)
    except FileExistsError:
        raise _taken(file) from None
    except OSError as error:
        raise _unwritable(file, error.strerror or str(error)) from error
    finally:
        new.unlink(missing_ok=True)


def write_reports(
    files: Iterable[Path], writers: Mapping[str, Callable[[_Content], str]], content: _Content, force: bool
) -> None:
    """Write a report to each file, in the format that its ending names."""
    for file in files:
        text = writers[file.suffix.lower()](content)
        write_output(file, text.encode("utf-8", "replace"), force)


def _problem(file: Path) -> str | None:
    """Why a path cannot become a file, as far as its name and its folder tell."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return None if file.parent.is_dir() else f"there is no folder {file.parent}"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if stat.S_ISDIR(mode):
        return "it is a directory"
    return None if stat.S_ISREG(mode) else "it is not a regular file"


def _try_folder(file: Path, room: int) -> None:
    """Make a file in the folder and remove it, so that a folder without room or rights is found before any work."""
    new = _beside(file)
    try:
        with os.fdopen(os.open(new, _NEW_FILE, 0o600), "wb") as stream:
            if room and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(stream.fileno(), 0, room)
    except OSError as error:
        raise _unwritable(file, f"{error.strerror or error}, in {file.parent}") from error
    finally:
        new.unlink(missing_ok=True)


def _beside(file: Path) -> Path:
    """A name for the file while it is written. It is short, whatever the file's own name."""
    return file.with_name(f".compact-{os.getpid()}-{zlib.crc32(os.fsencode(file.name)):08x}")


def _take_name(new: Path, file: Path) -> None:
    """Give a finished file its name, unless there is a file of that name."""
    try:
        file.hardlink_to(new)
    except FileExistsError:
        raise
    except OSError:  # not every file system has hard links
        os.close(os.open(file, _NEW_FILE, 0o600))
        new.replace(file)


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
