"""Keys: which folder a session gets, which files a step has, what an output is called.

A key is a path relative to the archive's root, always `{folder}/{name}`, and both parts are made here. What a host or a
model wrote gets into a key only after it is reduced to characters that no filesystem interprets.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from compact.errors import ArchiveError

EVENTS = "events.jsonl"
SESSION = "session.json"
OUTPUTS = "tool_outputs"
HISTORY = "conversation_history"
CACHES = ".index"
"""The folder for data that is derived from the records and may be removed at any time."""
VIRTUAL_FOLDERS = (f"/{OUTPUTS}", f"/{HISTORY}")
"""The folders that an agent's recall tools see."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", re.ASCII)
_HASHED = re.compile(r"h-[0-9a-f]{64}", re.ASCII | re.IGNORECASE)
# Windows opens a device for these names, whatever follows the first dot. An archive should survive a copy to Windows.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_STEP_FILE = re.compile(r"(?P<kind>state|summary|transcript-pre-compact)-(?P<step>\d{3,})\.jsonl?", re.ASCII)
_HISTORY_PAGE = re.compile(rf"{HISTORY}/step-(?P<step>\d{{3,}})\.md", re.ASCII)
_BY_CONTENT = re.compile(
    rf"(?:{OUTPUTS}/[^/]+|{HISTORY}/removed)_(?P<sha12>[0-9a-f]{{12,64}})\.(?:txt|jsonl)", re.ASCII
)
_VIRTUAL_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_PART_CHARS = 48


def check_session_id(session_id: str) -> None:
    """Check that a session id is text. Raises ArchiveError if it is not."""
    check_type(session_id, str, "a session id", hint="Pass str(id), the same in every call")


def check_type(value: object, kind: type, what: str, **details: str) -> None:
    """Check the type of an argument. A bool is not an int.

    Raises:
        ArchiveError: it is of another type.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        message = f"{what} must be {'an int' if kind is int else 'a str'}, got {type(value).__name__}"
        raise ArchiveError(message, reason="argument", **details)


def folder_for(session_id: str, cleaned_id: str) -> str:
    """Return the folder of a session: its id, or a hash of it if the id is not a safe file name or holds a secret.

    `cleaned_id` is the id after redaction. An id that looks like a hashed name is hashed too, so that the two never clash.
    """
    plain = (
        _PLAIN_ID.fullmatch(session_id)
        and cleaned_id == session_id
        and not session_id.endswith(".")
        and not _HASHED.fullmatch(session_id)
        and not _RESERVED.fullmatch(session_id)
    )
    if plain:
        return session_id
    return f"h-{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def is_folder(name: str) -> bool:
    """Return whether a session's folder can have this name."""
    return bool(_HASHED.fullmatch(name)) or folder_for(name, name) == name


def state_name(step: int) -> str:
    """Return the name of the file whose existence makes a step."""
    return f"state-{step:03d}.json"


def file_names(step: int) -> dict[str, str]:
    """Return the names of a step's other files by kind."""
    return {
        "transcript": f"transcript-pre-compact-{step:03d}.jsonl",
        "summary": f"summary-{step:03d}.json",
        "history": f"{HISTORY}/step-{step:03d}.md",
    }


def history_path(step: int) -> str:
    """Return the virtual path of the conversation before a step."""
    return f"/{file_names(step)['history']}"


def staged_name(attempt: str, kind: str) -> str:
    """Return the hidden name, beside the final one, under which an attempt keeps a file until its step is committed."""
    name = f".attempt-{attempt}-{kind}"
    return f"{HISTORY}/{name}" if kind == "history" else name


def step_of(name: str) -> tuple[str, int] | None:
    """Return the kind ("state", "summary", "transcript-pre-compact") and the step number of a step's file."""
    match = _STEP_FILE.fullmatch(name)
    return (match["kind"], int(match["step"])) if match else None


def state_steps(names: Iterable[str]) -> list[int]:
    """Return the steps whose state files are among these names, sorted."""
    return sorted(step for kind, step in filter(None, map(step_of, names)) if kind == "state")


def history_step(name: str) -> int | None:
    """Return the step whose conversation a page holds; None for other names."""
    match = _HISTORY_PAGE.fullmatch(name)
    return int(match["step"]) if match else None


def is_hidden(name: str) -> bool:
    """Return whether a name belongs to an attempt or a temporary file, which are never shown and never counted."""
    return name.rpartition("/")[2].startswith(".")


def output_name(tool: str, call: str, sha256: str, digits: int = 12) -> str:
    """Return the name of a stored output: `tool_outputs/{tool}_{call}_{sha12}.txt`."""
    return f"{OUTPUTS}/{_part(tool, 'tool')}_{_part(call, 'call')}_{sha256[:digits]}.txt"


def removed_name(sha256: str, digits: int = 12) -> str:
    """Return the name of messages that left the context outside of a step: `conversation_history/removed_{sha12}.jsonl`."""
    return f"{HISTORY}/removed_{sha256[:digits]}.jsonl"


def content_hash(name: str) -> str | None:
    """Return the part of the content's hash in the name of an output or of removed messages; None for other names."""
    match = _BY_CONTENT.fullmatch(name)
    return match["sha12"] if match else None


def virtual_name(path: str, shown: str | None = None) -> str:
    """Return the name in the session's folder for a path that an agent may read. Errors show the path as `shown`.

    Raises:
        ArchiveError: the path is outside `/tool_outputs/` and `/conversation_history/`.
    """
    shown = path if shown is None else shown
    folder, _, name = path.rpartition("/")
    if folder in VIRTUAL_FOLDERS and _VIRTUAL_NAME.fullmatch(name):
        return f"{folder[1:]}/{name}"
    raise ArchiveError(
        f"there is no file {shown!r:.200}",
        hint=f"Only the files directly in {' and '.join(VIRTUAL_FOLDERS)} can be read",
        key=shown,
        reason="outside",
    )


def _part(text: str, instead: str) -> str:
    # Markers like <REDACTED> lose their brackets here but stay readable.
    cleaned = _UNSAFE.sub("-", text[: 4 * _PART_CHARS]).strip("-.")[:_PART_CHARS].strip("-.")
    return cleaned or instead
