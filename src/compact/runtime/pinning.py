"""The ledger of a session for its host: what stands in it now, and what the host adds or takes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from compact.archive import UNTRUSTED, Archive
from compact.engine.context import Row
from compact.engine.effects import Loaded
from compact.engine.state import SessionState, forget, read_ledger, resolve, restore_state
from compact.engine.user_words import apply_pins, list_heard, read_frames, room_for
from compact.errors import ArchiveError, CompactError, ConfigError
from compact.messages import Message, dialects
from compact.messages.hygiene.sanitizing import valid_text
from compact.messages.message import text_hash
from compact.redaction import Redactor
from compact.runtime.services import Services
from compact.runtime.session_cache import Session
from compact.summaries import ledger
from compact.summaries.ledger import Entry, Heard, Kind, entry_id

_PINNED_BY = ("host", "model")


def pin(services: Services, session: Session, text: Any, kind: Any, source: Any) -> Entry:
    """Add an entry, durable on return.

    Raises:
        ConfigError: an argument is wrong, the text can never fit into the ledger, or a model's is not in a person's words.
        ArchiveError: the archive did not take it.
    """
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(
            f"a pin must be a text that is not empty, got {text!r:.60}",
            hint="Pass the words that the agent must not lose",
            path="text",
        )
    for name, value, allowed in (("kind", kind, get_args(Kind)), ("source", source, _PINNED_BY)):
        if value not in allowed:
            raise ConfigError(
                f"{name} must be one of {', '.join(allowed)}, got {value!r:.60}",
                hint="See docs/SUMMARIES.md for what each means",
                path=name,
            )
    masked = services.redactor_of(session).scan(valid_text(text.strip()), "person")
    said_in = "" if source == "host" else _find_said(services, session, masked.text)
    found = Entry(
        id=entry_id(kind, masked.text, said_in),
        kind=kind,
        text=masked.text,
        source=source,
        said_in=said_in,
        masked=masked.count,
    )
    known = [entry for entry in entries_of(services, session) if entry.status == "stands"]
    same = next((entry for entry in known if entry.id == found.id), None)
    if same is None and source == "model":
        # The words of a person that stand already need no second entry, whatever kind a model takes them for.
        same = next((entry for entry in known if _flat(entry.text) == _flat(found.text)), None)
    if same is not None:
        return same
    _check_size(session, found)
    services.archive_of(session.tenant.name).add_pin(session.id, {"pin": ledger.to_json(found)})
    return found


def _check_size(session: Session, entry: Entry) -> None:
    """Refuse what fits into the ledger of no model that the session may call.

    Raises:
        ConfigError: it is too long.
    """
    models = session.tenant.models
    known = [models.look_up(None), *models.known.values()]
    text = ledger.text_of([entry])
    sizes = [
        (room_for(each.rules, 0), each.meter.scale(each.meter.count_text(text)), each.name) for each in known
    ]
    if all(size > room for room, size, _ in sizes):
        room, size, name = max(sizes)
        raise ConfigError(
            f"the pin takes {size:,} tokens, and the ledger of {name} has room for {room:,}",
            hint="Pin fewer words, raise policy.ledger_share, or put a long text into the system prompt",
            path="text",
        )


def unpin(services: Services, session: Session, wanted: Any) -> None:
    """Withdraw an entry, durable on return. A no-op if it does not stand any more.

    Raises:
        ConfigError: the session has no such entry.
        ArchiveError: the archive did not take it.
    """
    same = next((entry for entry in entries_of(services, session) if entry.id == wanted), None)
    if same is None:
        raise ConfigError(
            f"the session has no ledger entry {wanted!r:.60}",
            hint="manager.ledger(session_id) lists the entries with their ids",
            path="entry_id",
        )
    if same.status == "stands":
        services.archive_of(session.tenant.name).add_pin(session.id, {"unpin": same.id})


def entries_of(services: Services, session: Session) -> list[Entry]:
    """Return the ledger as the next step will find it, in the order of time.

    It holds what the newest step recorded, what people said since in the list that this process saw last, and the host's pins.

    Raises:
        ArchiveError: the archive does not answer.
    """
    archive = services.archive_of(session.tenant.name)
    redactor = services.redactor_of(session)
    state, given = session.state, list(session.given)
    if not state.step:
        loaded = _load(archive, session.id)
        if loaded is not None:
            found = restore_state(loaded, given) if given else None
            state = found or SessionState(
                step=loaded.step, ledger=read_ledger(loaded.state) or (), pins=loaded.state.get("pins", 0)
            )
            given = given if found is not None else []
    known, said = state.ledger, list[Heard]()
    working = resolve(state, given) if given else None
    if working is not None:
        rows = list(_read_rows(working.items, redactor))
        if known is None:
            known = read_frames(
                [row.message for row in rows if text_hash(row.message.text) in state.summaries]
            )
        said = list_heard(rows, len(state.standing or ()), state.step + 1, state.summaries)
    entries, _ = apply_pins(ledger.extend(known or (), said), archive.pins(session.id), state.pins)
    return list(entries)


def _load(archive: Archive, session_id: str) -> Loaded | None:
    """The newest step's state; None before the first. A forgotten one, and one that cannot be trusted, says nothing."""
    try:
        latest = archive.latest(session_id)
    except ArchiveError as problem:
        if problem.reason not in UNTRUSTED:
            raise
        return forget(max(archive.steps(session_id)))
    if latest is None:
        return None
    if archive.is_forgotten(session_id, latest.step):
        return forget(latest.step)
    return Loaded(latest.step, latest.state, latest.fingerprints)


def _read_rows(items: Sequence[Any], redactor: Redactor) -> Iterator[Row]:
    """Read messages as a pass hears them: masked. An entry that is not a message says nothing."""
    try:
        _, messages = dialects.read(redactor.redact_messages(items))
    except CompactError:
        messages = []
    for message in messages:
        yield Row(message, 0, None)


def _find_said(services: Services, session: Session, text: str) -> str:
    """Find the message of a person that holds these words, in the newest list or in what the archive has.

    Raises:
        ConfigError: no person said them.
    """
    redactor = services.redactor_of(session)
    archive, state = services.archive_of(session.tenant.name), session.state
    working = resolve(state, list(session.given))
    items = () if working is None else working.items
    rows = list(_read_rows(items, redactor))
    found = ledger.find_said(text, list_heard(rows, 0, state.step + 1, state.summaries))
    if found is not None:
        return found
    for number in reversed(archive.steps(session.id)):
        step = archive.step(session.id, number)
        if step.pruned_at is None:
            sides = archive.sides(session.id, step)
            stored = archive.transcript(session.id, step) if sides is None else sides.before
            rows = [Row(message, 0, None) for message in _read(stored, step.dialect)]
            found = ledger.find_said(text, list_heard(rows, 0, number))
            if found is not None:
                return found
    raise ConfigError(
        "a model may pin only words that stand in a message of a person, and these do not",
        hint="Pass the person's own words, as a part of one message; a host pins with source='host'",
        path="text",
    )


def _read(items: Sequence[Any], dialect: str) -> list[Message]:
    try:
        return list(dialects.read(items, dialect)[1])
    except CompactError:
        return []


def _flat(text: str) -> str:
    return " ".join(text.split())
