"""The paths that a model may name. What it names is looked up in the list of what there is, never opened as it stands."""

from __future__ import annotations

from difflib import get_close_matches

from compact.archive import keys
from compact.archive.protocol import FileInfo, Listing
from compact.archive.recall.answers import counted, quoted

ROOT = "/"
_SHOWN = 20
_PROBLEM_CHARS = 300


class Refused(Exception):
    """A request that cannot be answered. Its text tells the model why, and `lines` what it could ask instead."""

    def __init__(self, why: str, lines: list[str] | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.lines = lines or []


def one_file(listing: Listing, path: str) -> FileInfo:
    """The file of that path.

    Raises:
        Refused: it is a folder, or there is no such file.
    """
    files = listing.files
    wanted = _normal(path)
    if wanted in {ROOT, *keys.VIRTUAL_FOLDERS}:
        raise Refused(f"{wanted} is a folder; name a file in it", _listing(_below(files, wanted)))
    for info in files:
        if info.path == wanted:
            return info
    raise _nothing_at(path, listing)


def files_at(listing: Listing, path: str) -> list[FileInfo]:
    """The file of that path, or all files of that folder.

    Raises:
        Refused: there is neither.
    """
    files = listing.files
    wanted = _normal(path)
    if wanted in {ROOT, *keys.VIRTUAL_FOLDERS}:
        return _below(files, wanted)
    found = [info for info in files if info.path == wanted]
    if not found:
        raise _nothing_at(path, listing)
    return found


def described(info: FileInfo) -> str:
    """A file in a list: its size and its path."""
    return f"{info.size:>12,} bytes  {info.path}"


def _normal(path: str) -> str | None:
    """A path as `files` writes it; None for one that leaves the session's folders."""
    parts = [part for part in path.strip().split("/") if part not in {"", "."}]
    return None if ".." in parts else f"/{'/'.join(parts)}"


def _below(files: list[FileInfo], folder: str) -> list[FileInfo]:
    start = ROOT if folder == ROOT else f"{folder}/"
    return [info for info in files if info.path.startswith(start)]


def about_gaps(listing: Listing) -> list[str]:
    """What a model must know about a list that may lack files."""
    if listing.problem is None:
        return []
    here = (
        f"only {counted(len(listing.files), 'file')} on this machine can be read now; more may be there later"
    )
    return [f"{quoted(listing.problem, _PROBLEM_CHARS)}: {here}"]


def _nothing_at(path: str, listing: Listing) -> Refused:
    files = listing.files
    if listing.problem is not None:
        why = f"{quoted(path)} cannot be read now. {about_gaps(listing)[0]}"
        return Refused(why, _listing(files))
    why = f"there is no {quoted(path)} in this session's archive"
    if not files:
        return Refused(f"{why}: nothing was archived yet")
    by_name = {info.path.rpartition("/")[2]: info for info in files}
    near = [by_name[name] for name in get_close_matches(path.rpartition("/")[2][:200], by_name)]
    return Refused(f"{why}. It holds", _listing([*near, *(info for info in files if info not in near)]))


def _listing(files: list[FileInfo]) -> list[str]:
    lines = [described(info) for info in files[:_SHOWN]]
    if len(files) > _SHOWN:
        lines.append(f"and {counted(len(files) - _SHOWN, 'other file')}: ls shows them")
    return lines or ["(no files)"]
