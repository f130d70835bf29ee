"""Keys: which folder a session gets, which files a step has, what an output is called, who made a hidden file.

A key is a path relative to the archive's root, always `{folder}/{name}`, and both parts are made here. What a host or a
model wrote gets into a key only after it is reduced to characters that no filesystem interprets.

A tenant has a root of its own, `_tenants/{tenant}/`, and the same keys below it. In each root, `_models/` holds what was learned
of models. No session's folder is called `_tenants` or `_models`.

The name of a hidden file says which process made it. It is valid only on the same machine, since the same boot, and in the
same process namespace. Anywhere else nobody can know whether that process still lives, and the file's age decides.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from compact.errors import ArchiveError, ConfigError
from compact.events.session_key import problem_of

EVENTS = "events.jsonl"
SESSION = "session.json"
LISTED = "outputs.jsonl"
"""The log that lists every output and every file of removed messages, with its hash, before it is written."""
OUTPUTS = "tool_outputs"
HISTORY = "conversation_history"
PLACEHOLDERS = ".masks/placeholders.jsonl"
"""The log of what live masking has given out."""
TENANTS = "_tenants"
"""The folder of the tenants' roots."""
MODELS = "_models"
"""The folder for what was learned of models, in the root of each tenant."""
TENANT = ".tenant/tenant.json"
"""A tenant's own record, in a folder that no session can have."""
OWN_FOLDERS = frozenset({MODELS, TENANT.partition("/")[0]})
"""The folders of a root that belong to no session."""
LEARNED = ".masks/learned.jsonl"
"""The log of what a session's redactor has learned, as keyed hashes."""
PINS = "pins.jsonl"
"""The log of what the host pinned and unpinned in the ledger of the user's words."""
LOGS = (EVENTS, LISTED, LEARNED, PLACEHOLDERS, PINS)
"""The logs of a session. Each is chained."""
CACHES = ".index"
"""The folder for data that is derived from the records and may be removed at any time."""
PROBES = ".probe"
"""The folder in which an object store is asked whether it refuses to write over an object."""
VIRTUAL_FOLDERS = (f"/{OUTPUTS}", f"/{HISTORY}")
"""The folders that an agent's recall tools see."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", re.ASCII)
_HASHED = re.compile(r"h-[0-9a-f]{64}", re.ASCII | re.IGNORECASE)
# Windows opens a device for these names, whatever follows the first dot. An archive should survive a copy to Windows.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_OURS = re.compile(r"_(?:tenants|models)", re.IGNORECASE)
"""Folders of the archive itself. Some filesystems ignore case."""
_KEY = re.compile(rf"(?P<folder>(?:{TENANTS}/[^/]+/)?[^/]+)/(?P<name>.+)", re.DOTALL)
_STEP_FILE = re.compile(r"(?P<kind>state|summary|transcript-pre-compact)-(?P<step>\d{3,})\.jsonl?", re.ASCII)
_LOG_FILE = re.compile(r"(?:seals-)?(?:events|outputs|pins)\.jsonl", re.ASCII)
_FOLDERS = frozenset({"events", "outputs", "pins", ".masks", ".exports", CACHES})
"""Folders of a session whose names are not read by their form. In a bucket the first three hold segments."""
_RESET = re.compile(r"reset-(?P<step>\d{3,})\.json", re.ASCII)
_HISTORY_PAGE = re.compile(rf"{HISTORY}/(?:[^/]+_)?step-(?P<step>\d{{3,}})(?:_[0-9a-f]{{12}})?\.md", re.ASCII)
"""A page under its contract name, or under the one that it has in a filesystem which several sessions share."""
_BY_CONTENT = re.compile(
    rf"(?:{OUTPUTS}/[^/]+|{HISTORY}/removed)_(?P<sha12>[0-9a-f]{{12,64}})\.(?:txt|jsonl)", re.ASCII
)
_VIRTUAL_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_PART_CHARS = 48
_MARK = re.compile(r"\.(?:attempt|tmp)-(?P<attempt>(?P<owner>[0-9a-f]{8}-\d+-\d+)-\d+)(?:-|$)", re.ASCII)
LONGEST_LABEL = 16_384
"""Characters of a session id that records show. Every event carries it."""
_LABEL_START = 100
_numbers = itertools.count(1)


def check_session_id(session_id: str) -> None:
    """Check that a session id is text. Raises ArchiveError if it is not."""
    check_type(session_id, str, "a session id", hint="Pass str(id), the same in every call")


def check_tenant(tenant: Any) -> str:
    """Return a tenant's name.

    Raises:
        ConfigError: it is not a string of valid Unicode with more than blanks in it.
    """
    problem = problem_of(tenant)
    if problem is None:
        name: str = tenant
        return name
    raise ConfigError(
        f"tenant {problem}",
        hint="Pass the same text in every call for this customer, or leave it out where there are no tenants",
        path="tenant",
    )


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

    `cleaned_id` is the id with its secrets masked. Personal data in it changes nothing. An id that looks like a hashed name
    is hashed too, so that the two never clash. A session that is in the other folder already stays there; see `Places`.
    """
    return session_id if is_plain(session_id) and cleaned_id == session_id else hashed(session_id)


def is_plain(session_id: str) -> bool:
    """Return whether an id is a safe file name."""
    return bool(
        _PLAIN_ID.fullmatch(session_id)
        and not session_id.endswith(".")
        and not _HASHED.fullmatch(session_id)
        and not _RESERVED.fullmatch(session_id)
        and not _OURS.fullmatch(session_id)
    )


def label_for(session_id: str, cleaned_id: str) -> str:
    """Return a session's id as records, events and errors show it: after redaction, and shortened if it is very long."""
    if len(session_id) <= LONGEST_LABEL:
        return cleaned_id
    return f"{cleaned_id[:_LABEL_START]}… ({len(session_id):,} characters, {hashed(session_id)})"


def is_label_of(label: str, folder: str) -> bool:
    """Return whether records of the session in a folder may show this id, whatever rules masked it.

    A masked id ends with digits of the id's hash, and a very long one with all of them.
    """
    name = folder if _HASHED.fullmatch(folder) else hashed(folder)
    return label == folder or hashed(label) == name or label.endswith((f"-{name[2:10]}", f" {name})"))


def hashed(session_id: str) -> str:
    """Return the folder of a session whose id is not a safe file name."""
    return f"h-{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()}"


def model_key(model: str, cleaned: str) -> str:
    """Return the key of what was learned of a model. `cleaned` is its name with secrets masked."""
    return f"{MODELS}/{folder_for(model, cleaned)}.json"


def is_model_file(name: str) -> bool:
    """Return whether a file of this name can hold what was learned of a model."""
    return name.endswith(".json") and is_folder(name.removesuffix(".json"))


def is_folder(name: str) -> bool:
    """Return whether a session's folder can have this name."""
    return bool(_HASHED.fullmatch(name)) or is_plain(name)


def split_key(key: str) -> tuple[str, str]:
    """Return the folder of a key, with the tenant's root if it has one, and the name in it.

    Raises:
        ArchiveError: it is not a key.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        raise ArchiveError(f"not a key of the archive: {key!r:.200}", key=key, reason="outside")
    return match["folder"], match["name"]


def state_name(step: int) -> str:
    """Return the name of the file whose existence makes a step."""
    return f"state-{step:03d}.json"


def reset_name(step: int) -> str:
    """Return the name of the file that says that the state after a step is forgotten."""
    return f"reset-{step:03d}.json"


def reset_step(name: str) -> int | None:
    """Return the step that a file says is forgotten; None for other names."""
    match = _RESET.fullmatch(name)
    return int(match["step"]) if match else None


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


def is_known(name: str) -> bool:
    """Return whether a name is one that the archive gives."""
    found = step_of(name)
    if found is not None:
        return name in {state_name(found[1]), *file_names(found[1]).values()}
    folder, slash, _ = name.partition("/")
    if folder in {OUTPUTS, HISTORY}:
        return content_hash(name) is not None or history_step(name) is not None
    return (
        folder in _FOLDERS
        if slash
        else bool(_LOG_FILE.fullmatch(name)) or name == SESSION or bool(reset_step(name))
    )


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


def unique_id() -> str:
    """Return an id that no other process and no other call makes: machine, process, its start, a number."""
    return f"{this_process()}-{next(_numbers)}"


def this_process() -> str:
    """Return this process as an owner. A forked child gets another answer, because the process id is part of it."""
    return owner_of(os.getpid())


def attempt_in(name: str) -> str | None:
    """Return the attempt that made a hidden file, read from its name; None if the name carries none."""
    match = _MARK.match(name.rpartition("/")[2])
    return match["attempt"] if match else None


def is_gone(attempt: str) -> bool:
    """Return whether the process that made an attempt has certainly ended."""
    owner = attempt.rpartition("-")[0]
    machine, pid, start = owner.split("-")
    if machine != _machine():
        return False
    return _start_of(int(pid)) != start if start != "0" else not _exists(int(pid))


@cache
def owner_of(pid: int) -> str:
    """Return a process of this machine as an owner: machine, process, its start."""
    return f"{_machine()}-{pid}-{_start_of(pid) or 0}"


@cache
def _machine() -> str:
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii"))
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115  # not a path, but "pid:[4026531836]"
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def _start_of(pid: int) -> str | None:
    """Return when a process began, in kernel ticks; None if it does not run or there is no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("latin-1")
    except OSError:
        return None
    # The second field is the program's name in brackets, which may itself contain brackets and spaces.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return None if state in "ZX" else start


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it exists, but belongs to another user
    return True


def _part(text: str, instead: str) -> str:
    # Markers like <REDACTED> lose their brackets here but stay readable.
    cleaned = _UNSAFE.sub("-", text[: 4 * _PART_CHARS]).strip("-.")[:_PART_CHARS].strip("-.")
    return cleaned or instead
