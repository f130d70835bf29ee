"""The only door into the archive: what is written passes through a `Scribe`, and a `Scribe` redacts.

Stores take nothing but a `Record`, and only this file can make one. What a record holds besides redacted content is
what compact itself made: step numbers, hashes, times, the fixed words of the contract.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.archive.history import render
from compact.archive.protocol import FileRef, Redactor, Step
from compact.errors import ArchiveError
from compact.events import Archival, Event
from compact.messages.dialects.wire import dump_plain

FORMAT = 1
"""The version of the session and state records."""

_SEAL = object()
_HEX = re.compile(r"[0-9a-f]{8,128}", re.ASCII)
_OWN_ID = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}", re.ASCII)
_INT_BITS = 13_000  # Python refuses to read or write longer ones as text
_PATH_KEY = re.compile(r"[A-Za-z_]{1,32}", re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


class Record:
    """Bytes that went through the redactor, and their hash."""

    __slots__ = ("data", "sha256")

    def __init__(self, data: bytes, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("a Record is made by a Scribe, which redacts it")
        self.data = data
        self.sha256 = digest(data)

    def ref(self, name: str) -> FileRef:
        """How a state file refers to this record."""
        return FileRef(name, self.sha256, len(self.data), self.data.count(b"\n"))


def already_stored(data: bytes) -> Record:
    """The record of bytes that a store holds, to be moved to another store. They were redacted when first written."""
    return Record(data, _SEAL)


class CleanMessages:
    """Wire messages that went through the redactor."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any], seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("clean messages come from a Scribe, which redacts them")
        self.items = items


class Scribe:
    """Makes the records of one session, redacted. `session_label` is the session's id as records show it."""

    def __init__(self, redactor: Redactor, session_label: str) -> None:
        self._redactor = redactor
        self.session_label = session_label

    @property
    def redacts(self) -> bool:
        """False when redaction was switched off."""
        return self._redactor.enabled

    def label(self, text: str) -> str:
        """Redacted text, for names and messages."""
        return self._redactor.redact(text)

    def messages(self, messages: Sequence[Any]) -> CleanMessages:
        """Wire messages, redacted, one for one.

        Raises:
            ArchiveError: a message holds something that JSON cannot; says where.
        """
        wire = [to_wire(message, f"messages[{index}]") for index, message in enumerate(messages)]
        redacted = self._redactor.redact_messages(wire)
        if len(redacted) != len(wire):
            raise ArchiveError(
                f"the redactor gave back {len(redacted)} of {len(wire)} messages",
                hint="redact_messages must return one message for each",
                reason="redactor",
            )
        return CleanMessages(redacted, _SEAL)

    def transcript(self, messages: CleanMessages) -> Record:
        """One JSON line for each message."""
        return Record(b"".join(map(to_line, messages.items)), _SEAL)

    def history(self, messages: CleanMessages, dialect: str, step: int) -> Record:
        """The same as a page for people. It is made of clean messages, so it is not redacted once more."""
        title = f"{self.session_label}: the conversation before step {step}"
        return _text_record(render(messages.items, dialect, title))

    def text(self, text: str) -> Record:
        """A text file. Lone surrogates, which UTF-8 forbids, are kept as they are."""
        return _text_record(self._redactor.redact(text))

    def value(self, value: Mapping[str, Any], what: str) -> Record:
        """A JSON object as a file of one line."""
        return Record(to_line(self._redactor.redact_value(to_wire(value, what))), _SEAL)

    def note(self, note: Mapping[str, str]) -> Record:
        """Something that compact made itself, for its own use: ids, nothing that a host or a model wrote."""
        return Record(to_line(dict(note)), _SEAL)

    def session(self) -> Record:
        """The record that says whose folder it is in."""
        return Record(to_line({"format": FORMAT, "session_id": self.session_label}), _SEAL)

    def events(self, events: Iterable[Event]) -> Record:
        """One line for each event."""
        return Record(b"".join(to_line(self._event(event)) for event in events), _SEAL)

    def state(self, step: Step) -> Record:
        """The state file of a step: the commit record. It carries its own hash.

        Raises:
            ArchiveError: the dialect is no name, or a fingerprint no hash.
        """
        if not _WORD.fullmatch(step.dialect):
            raise ArchiveError(f"not the name of a dialect: {step.dialect!r:.40}", reason="unserialisable")
        for name, value in step.fingerprints.items():
            if not (_WORD.fullmatch(name) and _HEX.fullmatch(value)):
                raise ArchiveError(
                    f"fingerprints[{self.label(name)!r:.40}] is not a hash in hexadecimal",
                    hint="Fingerprints are stored as they are, so they must be hashes; put text into the state",
                    reason="unserialisable",
                )
        body = {
            "format": FORMAT,
            "session_id": self.session_label,
            "step": step.step,
            "committed_at": step.committed_at,
            "dialect": step.dialect,
            "attempt": step.attempt,
            "files": {
                kind: {"name": ref.name, "sha256": ref.sha256, "bytes": ref.bytes, "lines": ref.lines}
                for kind, ref in step.files.items()
            },
            "fingerprints": dict(step.fingerprints),
            "state": self._redactor.redact_value(to_wire(step.state, "state")),
            "pruned_at": step.pruned_at,
        }
        return Record(to_line({**body, "sha256": digest(to_line(body))}), _SEAL)

    def _event(self, event: Event) -> dict[str, Any]:
        plain = event.to_json()
        redacted = {
            "properties": self._own_words(to_wire(plain["properties"], f"{event.name}.properties")),
            "payload": plain["payload"]
            and self._redactor.redact_value(to_wire(plain["payload"], f"{event.name}.payload")),
        }
        if isinstance(event.properties, Archival):
            # Made of the operator's root and of names that are clean already; a masked path would be no audit.
            path = plain["properties"]["file_path"]
            redacted["properties"] = {
                **redacted["properties"],
                "session_id": self.session_label,
                "file_path": path,
            }
        ids = {key: self._id(plain[key]) for key in ("trace_id", "span_id", "parent_id")}
        return {**plain, "session_id": self.session_label, **ids, **redacted}

    def _own_words(self, value: Any) -> Any:
        """Properties of an event: their names are ours, their numbers are counts; what they say is masked."""
        if isinstance(value, str):
            return self._redactor.redact(value)
        if isinstance(value, dict):
            return {name: self._own_words(entry) for name, entry in value.items()}
        if isinstance(value, list):
            return [self._own_words(entry) for entry in value]
        return value

    def _id(self, value: str | None) -> str | None:
        return value if value is None or _OWN_ID.fullmatch(value) else self.label(value)


def _text_record(text: str) -> Record:
    return Record(text.encode("utf-8", "surrogatepass"), _SEAL)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is being written to."""

    id: str
    folder: str
    scribe: Scribe


def read_state(data: bytes) -> Step:
    """The step that `Scribe.state` wrote.

    Raises:
        ValueError: it is not such a record, or not the one that was written.
    """
    body = json.loads(data)
    if not isinstance(body, dict) or "sha256" not in body:
        raise ValueError("it is not a state record")
    expected = body.pop("sha256")
    if digest(to_line(body)) != expected:
        raise ValueError("its content does not match its own hash")
    if body.get("format") != FORMAT:
        raise ValueError(f"its format is {body.get('format')!r}, this version reads {FORMAT}")
    return Step(
        session_id=body["session_id"],
        step=body["step"],
        committed_at=body["committed_at"],
        dialect=body["dialect"],
        attempt=body["attempt"],
        files={kind: FileRef(**ref) for kind, ref in body["files"].items()},
        state=body["state"],
        fingerprints=body["fingerprints"],
        pruned_at=body["pruned_at"],
    )


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def to_line(value: Any) -> bytes:
    """A JSON value as one line: UTF-8, or escaped where a lone surrogate makes that impossible."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def to_wire(value: Any, where: str) -> Any:
    """A JSON value as it goes over the wire: SDK objects by their `model_dump`, tuples as lists.

    Raises:
        ArchiveError: it holds something that JSON cannot give back as it was; says where.
    """
    try:
        return _wire(value, where)
    except RecursionError:
        raise _refused(where, "is nested too deeply, or contains itself") from None


def _wire(value: Any, where: str) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= _INT_BITS:
            return value
        raise _refused(where, "is an integer of more than 4,000 digits")
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise _refused(where, f"is {value}, which JSON does not know")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise _refused(where, f"has a key of type {type(key).__name__}")
        return {key: _wire(entry, f"{where}.{_named(key)}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_wire(entry, f"{where}[{place}]") for place, entry in enumerate(value)]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            data = dump_plain(dump)
        except ValueError as problem:
            raise _refused(where, str(problem)) from problem
        return _wire(data, where)
    raise _refused(where, f"is of type {type(value).__name__}")


def _named(key: str) -> str:
    # Errors are an exit too: a key that could hold something secret is not shown.
    return key if _PATH_KEY.fullmatch(key) else "..."


def _refused(where: str, why: str) -> ArchiveError:
    return ArchiveError(
        f"{where:.200} {why}",
        hint="The archive holds JSON only: turn the value into text, numbers, lists or objects before it is a message",
        key=where,
        reason="unserialisable",
    )
