"""The only way into the archive: everything that is written passes through a `Scribe`, and a `Scribe` redacts.

Stores take only a `Record`, and only this file can make one. Besides redacted content, a record holds what compact itself
made: step numbers, hashes, times, and the fixed words of the contract.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from compact.archive.pages import page_title, render_history
from compact.archive.seals import Seals
from compact.archive.stores.chain import LogHead
from compact.errors import ArchiveError
from compact.events import Archival, Event, Failure, LedgerChanged
from compact.messages.cache_marks import is_point
from compact.messages.dialects.objects import fields_of
from compact.messages.dialects.wire import dump_plain, encoded
from compact.messages.message import number_text, text_hash, with_known_numbers
from compact.redaction import OwnRedactor, SessionRedactor, as_redactor
from compact.summaries.ledger import Entry

FORMAT = 1
"""The version of the session and state records."""

_SEAL = object()
_HEX = re.compile(r"[0-9a-f]{8,128}", re.ASCII)
_OWN_ID = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}", re.ASCII)
_ENTRY_FIELDS = Entry.__dataclass_fields__.keys()
_ENTRY_ID = re.compile(r"e[0-9a-f]{8}", re.ASCII)
_ENTRY_NAMES = {
    "id": _ENTRY_ID,
    "replaced_by": _ENTRY_ID,
    "said_in": re.compile(r"(?:(?:v\d{1,9} )?m\d{1,9})?", re.ASCII),
}
_INT_BITS = 13_000  # Python refuses to read or write longer integers as text
_PATH_KEY = re.compile(r"[A-Za-z_]{1,32}", re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)

ArchiveRedactor: TypeAlias = OwnRedactor
"""Masks secrets: a `Redactor`, or an object of the host's own."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of a step: its name in the session's folder, its hash, its size in bytes and in lines."""

    name: str
    sha256: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class Step:
    """One committed compaction of a session."""

    session_id: str
    step: int
    committed_at: str
    dialect: str
    attempt: str
    files: Mapping[str, FileRef]
    """By kind: "transcript", "summary", "history"."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What the engine asked to remember, redacted."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Hashes that the engine asked to remember, stored as they are."""
    pruned_at: str | None = None
    """When its records were removed. A pruned step keeps its number and its hashes."""
    logs: Mapping[str, LogHead] = field(default_factory=dict)
    """How far the session's logs went when it was committed, by name. What they said then must still be in them."""
    unfinished: str | None = None
    """Why a step that was just committed lacks some of its file names. The next writer tries again."""


_STEP = TypeAdapter(Step)


class Record:
    """Redacted bytes and their hash."""

    __slots__ = ("data", "sha256")

    def __init__(self, data: bytes, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("a Record is made by a Scribe, which redacts it")
        self.data = data
        self.sha256 = digest(data)

    def ref(self, name: str) -> FileRef:
        """Return how a state file refers to this record."""
        return FileRef(name, self.sha256, len(self.data), self.data.count(b"\n"))


def trust_stored(data: bytes) -> Record:
    """Return the record of bytes that came out of a store: they were redacted when first written."""
    return Record(data, _SEAL)


def as_written(data: bytes, sha256: str) -> Record:
    """Return the record of bytes whose hash the archive has, because they were written before. Raises ValueError for others."""
    record = Record(data, _SEAL)
    if not record.sha256.startswith(sha256):
        raise ValueError("these bytes were never written")
    return record


class CleanMessages:
    """Redacted wire messages."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any], seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("clean messages come from a Scribe, which redacts them")
        self.items = items


class Scribe:
    """Makes the redacted records of one session. `session_label` is the session's id as records show it."""

    def __init__(
        self, redactor: ArchiveRedactor, session_label: str, folder: str = "", seals: Seals | None = None
    ) -> None:
        self._redactor = as_redactor(redactor)
        self.session_label = session_label
        self._folder = folder
        self._seals = seals or Seals()

    def seal(self) -> dict[str, str]:
        """Return what the redactor has learned since the last call, as keyed hashes; empty if nothing."""
        return self._redactor.seal() if isinstance(self._redactor, SessionRedactor) else {}

    def adopt(self, notes: Iterable[Mapping[str, str]]) -> None:
        """Mask what redactors of this session have learned before."""
        if isinstance(self._redactor, SessionRedactor):
            self._redactor.adopt(notes)

    @property
    def redacts(self) -> bool:
        """False if redaction is switched off."""
        return self._redactor.enabled

    def label(self, text: str) -> str:
        """Redact a text for use in names and messages, by rules alone: what a tool taught changes no name."""
        return self._redactor.redact(text, "compact")

    def messages(self, messages: Sequence[Any], own: Collection[str] = ()) -> CleanMessages:
        """Redact wire messages, one for one, by the origin of their words.

        `own` are the hashes of texts that compact wrote. They are made of masked texts and quote people, so nothing that a
        tool taught masks them.

        Raises:
            ArchiveError: a message contains something that JSON cannot hold. Says where.
        """
        wire = [to_wire(message, f"messages[{index}]") for index, message in enumerate(messages)]
        redacted = self._redactor.redact_messages(wire)
        for place, item in enumerate(wire if own else ()):
            if text_hash(_only_text(item)) in own and len(redacted) == len(wire):
                redacted[place] = self._redactor.redact_message(item, "compact")
        if len(redacted) != len(wire):
            raise ArchiveError(
                f"the redactor returned {len(redacted)} of {len(wire)} messages",
                hint="redact_messages must return one message for each",
                reason="redactor",
            )
        return CleanMessages(redacted, _SEAL)

    def transcript(self, messages: CleanMessages) -> Record:
        """Make the transcript: one JSON line for each message."""
        return Record(b"".join(map(to_line, messages.items)), _SEAL)

    def history(self, messages: CleanMessages, dialect: str, step: int) -> Record:
        """Make the transcript's page for people. The messages are clean already, so it is not redacted again."""
        return _text_record(render_history(messages.items, dialect, page_title(self.session_label, step)))

    def text(self, text: str) -> Record:
        """Make a text file of what a tool said. Lone surrogates, which UTF-8 forbids, are kept as they are."""
        return _text_record(self._redactor.redact(text, "tool"))

    def value(self, value: Mapping[str, Any], what: str) -> Record:
        """Make a file of one line from a JSON object that compact wrote from masked texts."""
        return Record(to_line(self._redactor.redact_value(to_wire(value, what), "compact")), _SEAL)

    def note(self, note: Mapping[str, Any]) -> Record:
        """Make a note of ids that compact made for its own use. It must hold nothing that a host or a model wrote."""
        return Record(to_line(dict(note)), _SEAL)

    def pin(self, change: Mapping[str, Any]) -> Record:
        """Make a line about what the host pinned, masked like a state."""
        return Record(to_line(self._state(to_wire(change, "pin"))), _SEAL)

    def session(self) -> Record:
        """Make the record that says whose folder it is in."""
        return self.sealed({"format": FORMAT, "session_id": self.session_label, "lists_outputs": True})

    def sealed(self, note: Mapping[str, Any]) -> Record:
        """Make a note like `note`. With a key it carries a MAC."""
        mac = {"mac": self._seals.mac(self._folder, to_line(note))} if self._seals.is_keyed else {}
        return Record(to_line({**note, **mac}), _SEAL)

    def listing(self, name: str, sha256: str, size: int, pruned_at: str | None = None) -> Record:
        """Make an entry of the list of outputs: what a file holds, or that it was pruned."""
        entry = {"name": name, "sha256": sha256, "bytes": size}
        return self.note(entry if pruned_at is None else {**entry, "pruned_at": pruned_at})

    def events(self, events: Iterable[Event]) -> Record:
        """Make one line for each event."""
        return Record(b"".join(to_line(self._event(event)) for event in events), _SEAL)

    def state(self, step: Step) -> Record:
        """Make the state file of a step, which is its commit record and carries its own hash.

        Raises:
            ArchiveError: the dialect is not a name, or a fingerprint is not a hash.
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
            "folder": self._folder,
            "step": step.step,
            "committed_at": step.committed_at,
            "dialect": step.dialect,
            "attempt": step.attempt,
            "files": {kind: asdict(ref) for kind, ref in step.files.items()},
            "fingerprints": dict(step.fingerprints),
            "state": self._state(to_wire(step.state, "state")),
            "pruned_at": step.pruned_at,
            "logs": {name: head._asdict() for name, head in step.logs.items()},
        }
        return self.sealed({**body, "sha256": digest(to_line(body))})

    def _state(self, value: Any) -> Any:
        """Mask what the engine remembers. Messages in it were masked when they were written, so rules are enough."""
        if isinstance(value, str):
            return self.label(value)
        if isinstance(value, list):
            return [self._state(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"item"}:
            return {"item": self._redactor.redact_message(value["item"], "compact")}
        # The ids and places in an entry of the ledger are compact's own, and a rule for digits must not break them.
        own = _ENTRY_NAMES if _ENTRY_NAMES.keys() <= value.keys() <= _ENTRY_FIELDS else {}
        return {
            name: entry if name in own and own[name].fullmatch(str(entry)) else self._state(entry)
            for name, entry in value.items()
        }

    def _event(self, event: Event) -> dict[str, Any]:
        plain = event.to_json()
        redacted = {
            "properties": self._own_words(to_wire(plain["properties"], f"{event.name}.properties")),
            "payload": plain["payload"]
            and self._redactor.redact_value(to_wire(plain["payload"], f"{event.name}.payload"), "compact"),
        }
        if isinstance(event.properties, Failure):
            # An error may quote anything, so all that was learned masks it.
            message = self._redactor.redact(plain["properties"]["message"], "tool")
            redacted["properties"] = {**redacted["properties"], "message": message}
        if isinstance(event.properties, LedgerChanged) and _ENTRY_ID.fullmatch(event.properties.entry_id):
            redacted["properties"] = {**redacted["properties"], "entry_id": event.properties.entry_id}
        if isinstance(event.properties, Archival):
            # The path consists of the operator's root and of clean names; a masked path would be useless for an audit.
            path = plain["properties"]["file_path"]
            redacted["properties"] = {
                **redacted["properties"],
                "session_id": self.session_label,
                "file_path": path,
            }
        ids = {key: self._id(plain[key]) for key in ("trace_id", "span_id", "parent_id")}
        return {**plain, "session_id": self.session_label, **ids, **redacted}

    def _own_words(self, value: Any) -> Any:
        """Mask the texts in an event's properties. Their names are ours and their numbers are counts."""
        if isinstance(value, str):
            return self._redactor.redact(value, "compact")
        if isinstance(value, dict):
            return {name: self._own_words(entry) for name, entry in value.items()}
        if isinstance(value, list):
            return [self._own_words(entry) for entry in value]
        return value

    def _id(self, value: str | None) -> str | None:
        return value if value is None or _OWN_ID.fullmatch(value) else self.label(value)


def _only_text(item: Any) -> str:
    """The text of a wire message that holds nothing else; empty if there is none."""
    content = item.get("content", item.get("parts")) if isinstance(item, dict) else None
    blocks = [block for block in content if not is_point(block)] if isinstance(content, list) else []
    if len(blocks) == 1 and isinstance(blocks[0], dict):
        content = blocks[0].get("text")
    return content if isinstance(content, str) else ""


def _text_record(text: str) -> Record:
    return Record(as_bytes(text), _SEAL)


def session_id_in(data: bytes | None) -> str | None:
    """Return the session id in the bytes of a `session.json`; None if it cannot be read."""
    return _field_in(data, "session_id")


def tenant_in(data: bytes | None) -> str | None:
    """Return the tenant in the bytes of a `tenant.json`; None if it cannot be read."""
    return _field_in(data, "tenant")


def _field_in(data: bytes | None, name: str) -> str | None:
    try:
        return str(json.loads(data or b"")[name])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class Misplaced(ValueError):
    """A record of another session."""


def read_state(data: bytes, folder: str = "", seals: Seals | None = None) -> Step:
    """Read back the step that `Scribe.state` wrote. With a `folder` it must be a record of that folder.

    Raises:
        ValueError: the bytes are not such a record, or not the one that was written.
    """
    try:
        body = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(body, dict) or "sha256" not in body:
        raise ValueError("it is not a state record")
    mac = body.pop("mac", None)
    if seals is not None and seals.is_keyed:
        seals.check_mac(mac, folder, to_line(body))
    expected = body.pop("sha256")
    if digest(to_line(body)) != expected:
        raise ValueError("its content does not match its own hash")
    if body.get("format") != FORMAT:
        raise ValueError(f"its format is {body.get('format')!r}, this version reads {FORMAT}")
    if folder and body.get("folder", folder) not in ("", folder):
        raise Misplaced(f"it is a record of {body['folder']!r:.80}")
    try:
        return _STEP.validate_python(body)
    except ValidationError as problem:
        first = problem.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def as_bytes(text: str) -> bytes:
    """Return a text as files hold it. Lone surrogates, which UTF-8 forbids, are kept as they are."""
    return text.encode("utf-8", "surrogatepass")


def digest(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def to_line(value: Any) -> bytes:
    """Write a JSON value as one line: UTF-8, or escaped ASCII if it contains a lone surrogate.

    NaN and the infinities, which JSON does not know, are written as text.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        value = with_known_numbers(value)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def to_wire(value: Any, where: str) -> Any:
    """Turn a value into JSON values as they go over the wire: SDK objects by `model_dump`, messages that are plain objects by their attributes,
    bytes as base64, tuples as lists, NaN and the infinities as text.

    Raises:
        ArchiveError: it contains something that JSON cannot give back unchanged. Says where.
    """
    try:
        return _wire(value, where)
    except RecursionError:
        raise _refusal(where, "is nested too deeply, or contains itself") from None


def _wire(value: Any, where: str) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= _INT_BITS:
            return value
        raise _refusal(where, "is an integer of more than 4,000 digits")
    if isinstance(value, float):
        return value if math.isfinite(value) else number_text(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise _refusal(where, f"has a key of type {type(key).__name__}")
        return {key: _wire(entry, f"{where}.{_shown_key(key)}") for key, entry in value.items()}
    if type(value) is list or type(value) is tuple:
        return [_wire(entry, f"{where}[{place}]") for place, entry in enumerate(value)]
    if isinstance(value, bytes | bytearray):
        return encoded(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        try:
            data = dump_plain(dump)
        except ValueError as problem:
            raise _refusal(where, str(problem)) from problem
        return _wire(data, where)
    attributes = fields_of(value)
    if attributes is not None:
        return _wire(attributes, where)
    if isinstance(value, list | tuple):
        return _wire(list(value), where)
    raise _refusal(where, f"is of type {type(value).__name__}")


def _shown_key(key: str) -> str:
    # An error text can leak too, so a key that could hold a secret is not shown.
    return key if _PATH_KEY.fullmatch(key) else "..."


def _refusal(where: str, why: str) -> ArchiveError:
    return ArchiveError(
        f"{where:.200} {why}",
        hint="The archive holds JSON only: turn the value into text, numbers, lists or objects first",
        key=where,
        reason="unserialisable",
    )
