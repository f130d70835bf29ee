"""verify reports whatever was changed in an archive, and recall shows none of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from bench.attack import Attack, Trial
from compact import CompactConfig, CompactManager
from compact.archive import Archive
from compact.archive.recall import recall_tools
from compact.archive.records import trust_stored
from compact.archive.stores.files import FsStore
from compact.errors import ArchiveError
from compact.events import Ids, Recorder
from compact.redaction import Redactor

_WORDS = [
    "alpha",
    "bravo",
    "carbon",
    "delta",
    "ember",
    "flint",
    "garnet",
    "harbor",
    "indigo",
    "jasper",
    "kelvin",
    "lumen",
    "marble",
    "nickel",
    "onyx",
]
_MARK = "planted-by-an-attacker"
_KEY = b"a key that only the operator has"
_SESSIONS = 3
_SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Hundreds of copies of an archive: memory is kinder to a disk, where there is such a folder."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What was done to a session, and the files of which one must be named."""

    what: str
    session: str
    names: frozenset[str]


def _build(root: Path, random: Random, *, key: bytes | None = None) -> None:
    """Let a real agent loop make sessions with steps, offloaded outputs and events."""
    settings: dict[str, Any] = (
        {"root": str(root)} if key is None else {"root": str(root), "mac_key": lambda: key}
    )
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=4_000,
        archive=settings,
        policy={"hard_cap_buffer": 200, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        offload={"large_result_tokens": 150, "preview_tokens": 40},
        guard={"min_context_tokens": 1_000, "warn_context_tokens": 1_000},
    )
    with closing(CompactManager(config)) as manager:
        for number in range(_SESSIONS):
            messages: list[Any] = [{"role": "system", "content": "You are careful."}]
            name, turn = f"session-{number}", 0
            while len(manager.archive.steps(name)) < 2 and turn < 60:
                turn += 1
                messages = manager.preflight(name, [*messages, *_turn(random, number, turn)])
            manager.process_tool_result(_prose(random, 400), "fetch", f"late-{number}", session_id=name)


def _turn(random: Random, session: int, turn: int) -> list[dict[str, Any]]:
    call = {"id": f"c{turn}", "type": "function", "function": {"name": "read_page", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"Look at page {turn} of book {session}: {_prose(random, 20)}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{turn}", "content": _prose(random, random.choice((60, 300)))},
        {"role": "assistant", "content": _prose(random, 60)},
    ]


def _prose(random: Random, words: int) -> str:
    return " ".join(random.choice(_WORDS) + str(random.randrange(100)) for _ in range(words))


def _open(root: Path, key: bytes | None = None) -> Archive:
    recorder = Recorder(lambda: datetime.now(UTC), Ids("attack"))
    return Archive(FsStore(root), Redactor(), recorder, mac_key=None if key is None else lambda: key)


@contextmanager
def _template(random: Random, key: bytes | None = None) -> Iterator[tuple[Path, Path]]:
    """An archive, and the place for a copy of it that is attacked."""
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as folder:
        whole = Path(folder) / "whole"
        _build(whole, random, key=key)
        yield whole, Path(folder) / "attacked"


def _copy(whole: Path, attacked: Path) -> None:
    if attacked.exists():
        shutil.rmtree(attacked)
    shutil.copytree(whole, attacked)


def _files(session: Path) -> list[Path]:
    """The records of a session. Caches are made anew from them and are no records."""
    return sorted(
        path
        for path in session.rglob("*")
        if path.is_file() and not path.relative_to(session).parts[0].startswith(".")
    )


# --- what an attacker does to files


def _delete(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    path.unlink()
    return _changed("delete", session, path)


def _overwrite(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    path.write_bytes(random.randbytes(path.stat().st_size))
    return _changed("overwrite by as many bytes", session, path)


def _flip(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    return _changed("flip a bit", session, path)


def _truncate(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    # The last mark of the seals alone is what a killed writer leaves: the log is whole.
    least = 3 if path.name.startswith("seals-") else 1
    with path.open("r+b") as file:
        file.truncate(random.randrange(path.stat().st_size - least + 1))
    return _changed("truncate", session, path)


def _extend(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    tail = random.choice((b"\n", b"{}\n", b"0", random.randbytes(9) + b"\n", b"[" * 50_000 + b"\n"))
    with path.open("ab") as file:
        file.write(tail)
    return _changed("append bytes", session, path)


def _swap(random: Random, _: Path, session: Path) -> _Change:
    one, other = random.sample(_files(session), 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return _changed("swap two files", session, one, other)


def _exchange(random: Random, root: Path, session: Path) -> _Change:
    """A file of another session in the place of this one's."""
    path = random.choice(_files(session))
    stranger = random.choice([each for each in root.iterdir() if each != session])
    given = stranger / path.relative_to(session)
    if not given.exists():
        given = random.choice(_files(stranger))
    path.write_bytes(given.read_bytes())
    return _changed("copy from another session", session, path)


def _roll_back(random: Random, _: Path, session: Path) -> _Change:
    """The newest step disappears, alone or with all of its files."""
    newest = max(session.glob("state-*.json"))
    number = newest.stem.rpartition("-")[2]
    newest.unlink()
    if random.random() < 0.7:
        for path in [
            *session.glob(f"*-{number}.json*"),
            *session.glob(f"conversation_history/step-{number}.md"),
        ]:
            path.unlink()
    return _changed("roll back the newest step", session, newest)


def _forge_event(random: Random, _: Path, session: Path) -> _Change:
    log = session / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    act = random.choice(("append", "insert", "drop", "reorder", "edit", "empty", "repeat"))
    place = random.randrange(len(lines))
    if act in ("append", "insert"):
        forged = json.loads(lines[place]) | {"span_id": f"{random.getrandbits(64):016x}"}
        line = json.dumps(forged, separators=(",", ":")).encode() + b"\n"
        lines.insert(len(lines) if act == "append" else place, line)
    elif act == "drop":
        del lines[place]
    elif act == "reorder":
        other = random.choice([n for n in range(len(lines)) if lines[n] != lines[place]])
        lines[place], lines[other] = lines[other], lines[place]
    elif act == "edit":
        event = json.loads(lines[place])
        event["step"] += 1 + random.randrange(9)
        lines[place] = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    elif act == "repeat":
        lines.insert(place, lines[place])
    else:
        lines = []
    log.write_bytes(b"".join(lines))
    return _changed(f"events: {act}", session, log)


def _add_output(random: Random, _: Path, session: Path) -> _Change:
    """A file whose name carries the right hash, as the archive would name it."""
    data = f"{_MARK} {_prose(random, 40)}".encode()
    folder = session / random.choice(("tool_outputs", "conversation_history"))
    folder.mkdir(exist_ok=True)
    digits = hashlib.sha256(data).hexdigest()[: random.choice((12, 64))]
    steps = len(list(session.glob("state-*.json")))
    names = (
        (f"fetch_call_{digits}.txt",)
        if folder.name == "tool_outputs"
        else (
            f"removed_{digits}.jsonl",
            f"step-{steps + 1 + random.randrange(5):03d}.md",
        )
    )
    path = folder / random.choice(names)
    path.write_bytes(data)
    return _changed("add a file", session, path)


def _rename(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    target = path.with_name(
        f"{random.choice(('x', 'fetch_other_', ''))}{random.getrandbits(40):x}{path.suffix}"
    )
    path.rename(target)
    return _changed("rename", session, path, target)


def _replace_by_no_file(random: Random, root: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    copy = path.read_bytes()
    path.unlink()
    act = random.choice(("link", "folder", "pipe", "dangling link"))
    if act == "link":
        # To the very same bytes, outside of the archive.
        outside = root.with_name("outside")
        outside.write_bytes(copy)
        path.symlink_to(outside)
    elif act == "dangling link":
        path.symlink_to("nowhere")
    elif act == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    return _changed(f"replace by a {act}", session, path)


def _bloat(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    with path.open("r+b") as file:
        file.truncate(1 << 34)  # a hole, which takes no room
    return _changed("make it huge", session, path)


def _nest(random: Random, _: Path, session: Path) -> _Change:
    path = random.choice(_files(session))
    path.write_bytes(b"[" * random.randrange(2_000, 200_000) + b"\n")
    return _changed("nest deeply", session, path)


def _changed(what: str, session: Path, *paths: Path) -> _Change:
    names = {path.relative_to(session).as_posix() for path in paths}
    # A log and its seals say the same: either may be named.
    names |= {name.replace("seals-", "") for name in names}
    return _Change(f"{what}: {paths[0].relative_to(session)}", session.name, frozenset(names))


_CHANGES: tuple[Callable[[Random, Path, Path], _Change], ...] = (
    _delete, _overwrite, _flip, _truncate, _extend, _swap, _exchange, _roll_back, _forge_event, _forge_event, _add_output,
    _rename, _replace_by_no_file, _bloat, _nest,
)  # fmt: skip


def _snapshot(session: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(session).as_posix(): path.read_bytes()
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 30
        else None
        for path in session.rglob("*")
    }


def _make_changes(random: Random, size: int) -> Iterator[Trial]:
    """Change one session at random: it is reported by its name, and the others are clean."""
    with _template(random) as (whole, attacked):
        if _open(whole).verify():
            yield Trial("the archive was damaged before anybody touched it", False)
        for number in range(size):
            _copy(whole, attacked)
            session = attacked / f"session-{random.randrange(_SESSIONS)}"
            before = _snapshot(session)
            change = _CHANGES[number % len(_CHANGES)](random, attacked, session)
            if _snapshot(session) == before:
                continue
            found = _open(attacked).verify()
            named = {each.key.partition("/")[2] for each in found if each.session_id == change.session}
            others = {each.session_id for each in found} - {change.session}
            yield Trial(
                f"{change.what}: named {sorted(named)[:3]}, others {sorted(others)}",
                bool(named & change.names) and not others,
            )


def _spoil_copies(random: Random, size: int) -> Iterator[Trial]:
    """Spoil a copy that an agent can read: no tool shows what was put there, and a text that the transcript holds is served."""
    with _template(random) as (whole, attacked):
        clean = _open(whole)
        for _ in range(size):
            _copy(whole, attacked)
            name = f"session-{random.randrange(_SESSIONS)}"
            info = random.choice(clean.files(name))
            path = attacked / name / info.path[1:]
            data = path.read_bytes()
            planted = f"{_MARK} {_prose(random, 30)}\n".encode()
            act = random.choice(("whole", "start", "end", "same length", "link"))
            if act == "link":
                path.unlink()
                outside = attacked.with_name("outside")
                outside.write_bytes(planted)
                path.symlink_to(outside)
            else:
                spoilt = {"whole": planted, "start": planted + data, "end": data + planted}
                path.write_bytes(spoilt.get(act, (planted * (len(data) // len(planted) + 1))[: len(data)]))
            archive = _open(attacked)
            tools = recall_tools(archive, name)
            answers = [
                tools["read_file"](path=info.path),
                tools["grep"](pattern=_MARK),
                tools["search"](query=_MARK),
            ]
            is_shown = any(_MARK in answer.replace(f"{_MARK!r}", "") for answer in answers)
            yield Trial(
                f"{act}: {name}{info.path}",
                not is_shown and _is_served_or_refused(archive, name, info.path, data),
            )


def _is_served_or_refused(archive: Archive, name: str, path: str, data: bytes) -> bool:
    try:
        return archive.read_text(name, path).encode() == data
    except ArchiveError as problem:
        return str(problem.reason) == "changed"


def _reseal(random: Random, size: int) -> Iterator[Trial]:
    """With a key: whoever changes records and computes every hash anew without it is found, and no such state is used."""
    with _template(random, _KEY) as (whole, attacked):
        if _open(whole, _KEY).verify():
            yield Trial("the archive was damaged before anybody touched it", False)
        for number in range(size):
            _copy(whole, attacked)
            name = f"session-{random.randrange(_SESSIONS)}"
            session = attacked / name
            change = (_forge_state, _forge_log, _forge_output, _strip_macs)[number % 4](random, session)
            archive = _open(attacked, _KEY)
            named = {each.key.partition("/")[2] for each in archive.verify() if each.session_id == name}
            yield Trial(
                f"{change.what}: named {sorted(named)[:3]}",
                bool(named & change.names) and _refuses(archive, change),
            )


def _refuses(archive: Archive, change: _Change) -> bool:
    """Whether no state is read whose MAC is wrong."""
    steps: list[int] = archive.steps(change.session)
    for step in steps:
        if f"state-{step:03d}.json" in change.names:
            try:
                archive.step(change.session, step)
            except ArchiveError:
                continue
            return False
    return True


def _forge_state(random: Random, session: Path) -> _Change:
    path = random.choice(sorted(session.glob("state-*.json")))
    body = json.loads(path.read_bytes())
    mac = body.pop("mac")
    body.pop("sha256")
    body["state"][f"forged_{random.randrange(99)}"] = _prose(random, 5)
    body["sha256"] = hashlib.sha256(_line(body)).hexdigest()
    body["mac"] = random.choice((mac, hashlib.sha256(_line(body)).hexdigest(), ""))
    path.write_bytes(_line(body))
    return _changed("forge a state and its hash", session, path)


def _forge_log(random: Random, session: Path) -> _Change:
    log = session / random.choice(("events.jsonl", "outputs.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    keep = random.randrange(1, len(lines))
    log.write_bytes(b"".join(random.sample(lines, keep)))
    _seal_without_key(session, log)
    return _changed("forge a log and its seals", session, log)


def _forge_output(random: Random, session: Path) -> _Change:
    path = random.choice(sorted((session / "tool_outputs").iterdir()))
    data = f"{_MARK} {_prose(random, 50)}".encode()
    path.write_bytes(data)
    log = session / "outputs.jsonl"
    entries = [json.loads(line) for line in log.read_bytes().splitlines()]
    for entry in entries:
        if entry["name"].endswith(path.name):
            entry |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    log.write_bytes(b"".join(map(_line, entries)))
    _seal_without_key(session, log)
    return _changed("forge an output and its entry", session, log)


def _strip_macs(_: Random, session: Path) -> _Change:
    """As if the archive had never had a key."""
    paths = [session / "session.json", *sorted(session.glob("state-*.json"))]
    for path in paths:
        body = json.loads(path.read_bytes())
        del body["mac"]
        path.write_bytes(_line(body))
    for log in (session / "events.jsonl", session / "outputs.jsonl"):
        _seal_without_key(session, log)
    return _changed("strip every MAC", session, *paths)


def _seal_without_key(session: Path, log: Path) -> None:
    """Write the chain of a log as a store without a key does."""
    data = log.read_bytes()
    (session / f"seals-{log.name}").unlink()
    log.unlink()
    FsStore(session.parent).append(f"{session.name}/{log.name}", trust_stored(data))


def _line(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "changes", "Whatever was changed in an archive is reported with its session and file.", _make_changes
    ),
    Attack("copies", "Recall shows no copy that is not what was written.", _spoil_copies),
    Attack("resealed", "With a key, changes are found even if every hash was computed anew.", _reseal),
)
