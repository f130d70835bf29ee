"""What a session remembers between two calls, and how a host's list is recognised by it.

Hosts come in two kinds. One keeps the list that it was given and appends to it, so its list begins with what the last step
left. The other passes its full history every time, so its list begins with what the last step replaced. The state
remembers both beginnings, and neither host has to say which kind it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from compact.engine.context import Row
from compact.engine.effects import Loaded
from compact.engine.frames import is_frame, step_of
from compact.engine.intake import Working, find_places
from compact.engine.thinking import bare_item
from compact.errors import CompactError
from compact.messages import dialects
from compact.messages.cache_marks import as_unmarked, has_mark, keep_marks, mark_frame
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import begins_with, plain
from compact.messages.legality import MARKED
from compact.messages.message import GAP, is_cache_point, text_hash
from compact.summaries.ledger import Entry, from_json, to_json

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class SessionState:
    """What the newest step left behind."""

    step: int = 0
    replaced: Sequence[Any] | None = None
    """The host's messages that the step replaced; None if only their hash is known."""
    standing: Sequence[Any] | None = None
    """The messages that replace them."""
    sources: Sequence[int | None] = ()
    """For each of those its index among the replaced ones, or None if compact wrote it."""
    summaries: frozenset[str] = frozenset()
    tokens_after: int = 0
    ineffective: int = 0
    """Passes in a row that saved too little."""
    is_ambiguous: bool = False
    """Whether what stands is the beginning of what it replaced, so that both begin a full history."""
    asked: bool = False
    """Whether the archive was asked for the session's state."""
    written: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hashes of the pointers and recall answers that stand in it, as the step recorded them."""
    ledger: tuple[Entry, ...] | None = None
    """What people said up to the step; None: the step did not record it, and what it wrote into the context has to tell."""
    pins: int = 0
    """How many of the host's pins and unpins are in the ledger."""
    bare: frozenset[int] = frozenset()
    """Which of the replaced messages stand without their signed thinking."""
    dialect: str = ""
    """The dialect of the list, if any do."""
    extract: str = ""
    """The summary behind a block of the provider that stands in it."""
    readable: Sequence[int | Mapping[str, Any]] | None = None
    """What stands for a model that does not read that block: an index in `standing`, or `{"item": message}`. None: no block does."""
    is_marked: bool = field(init=False, default=False)
    """Whether a message that compact wrote carries a cache mark of what it replaces."""

    def __post_init__(self) -> None:
        written = zip(self.standing or (), self.sources, strict=False)
        found = any(source is None and has_mark(item) for item, source in written)
        object.__setattr__(self, "is_marked", found)


def without_block(state: SessionState, working: Working) -> tuple[Working, SessionState]:
    """The context and the state with the summary of compact's own in place of the provider's block."""
    assert state.readable is not None
    assert state.standing is not None
    places = [entry if isinstance(entry, int) else None for entry in state.readable]
    items = [working.items[e] if isinstance(e, int) else e["item"] for e in state.readable]
    standing = [state.standing[e] if isinstance(e, int) else e["item"] for e in state.readable]
    count = len(state.standing)
    sources = [None if place is None else working.sources[place] for place in places]
    own = [None if place is None else state.sources[place] for place in places]
    after = replace(state, standing=standing, sources=own, readable=None, extract="")
    return (
        Working([*items, *working.items[count:]], [*sources, *working.sources[count:]], working.bare),
        after,
    )


def resolve(state: SessionState, messages: Sequence[Any]) -> Working | None:
    """The context that a host's list represents, or None if the list does not continue the remembered one."""
    if not state.step:
        return Working(messages, range(len(messages)))
    is_whole = state.is_ambiguous and state.replaced is not None and continues(messages, state.replaced)
    if state.standing is not None and not is_whole and continues(messages, state.standing):
        return Working(messages, range(len(messages)))
    if state.replaced is not None and state.standing is not None and continues(messages, state.replaced):
        count = len(state.replaced)
        items = [
            item if source is None else _standing(state, messages, source, item)
            for item, source in zip(state.standing, state.sources, strict=True)
        ]
        if state.is_marked:  # the host may have moved its marks on
            items = keep_marks(messages[:count], items, state.sources)
        tail = range(count, len(messages))
        return Working([*items, *messages[count:]], [*state.sources, *tail], state.bare)
    return None


def _standing(state: SessionState, messages: Sequence[Any], source: int, item: Any) -> Any:
    """What stands for a message that the host still has: that message, or what is left of it without its thinking."""
    if source not in state.bare:
        return messages[source]
    assert state.replaced is not None
    if messages[source] is state.replaced[source]:
        return item
    return bare_item(messages[source], dialects.get(state.dialect))  # the host may have moved its marks on


def continues(messages: Sequence[Any], prefix: Sequence[Any]) -> bool:
    """Whether a list begins with messages that are essentially these."""
    if begins_with(messages, prefix):
        return True
    return len(messages) >= len(prefix) and all(map(is_same_message, messages, prefix))


def is_same_message(one: Any, other: Any) -> bool:
    """Whether two entries are essentially the same message, whatever marks and prompts a host has put into them."""
    return one is other or _essence(one) == _essence(other)


def _essence(item: Any) -> Any:
    """What makes a message the same one on the next call: not its cache marks, and not the words of a prompt.

    Hosts move cache marks to their newest message, for which a text becomes a block, and put the time or a to-do list
    into their system prompt.
    """
    try:
        data = plain(item)
    except ValueError:
        return item
    if data.get("role") in ("system", "developer"):
        return data["role"]
    return as_unmarked(data)


def digest(value: Any) -> bytes | None:
    """Hash a message by its essence, or any other value: the same for equal ones. None: it is too deep or too odd for that."""
    try:
        essence = _essence(value)
        text = _dump(essence)
        if ".0" in text or "e+" in text:  # 1.0 equals 1, and some hosts store the one as the other
            text = _dump(_with_whole_numbers(essence))
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _dump(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, default=lambda odd: {str(type(odd)): repr(odd)}
    )


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_whole_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_whole_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def restore_state(loaded: Loaded, messages: Sequence[Any]) -> SessionState | None:
    """The state in the archive, if this list continues it; None otherwise."""
    record = loaded.state
    if record.get("version") != STATE_VERSION:
        return None
    recipe: list[Any] = record["recipe"]
    common = {
        "step": loaded.step,
        "asked": True,
        "summaries": frozenset(record["summaries"]),
        "tokens_after": record["tokens_after"],
        "ineffective": record["ineffective"],
        "written": record.get("written", {}),
        "ledger": read_ledger(record),
        "pins": record.get("pins", 0),
        "dialect": record.get("dialect", ""),
        "extract": record.get("extract", ""),
        "readable": record.get("readable"),
    }
    bare = frozenset(record.get("bare", ()))
    count = record["replaced"]
    is_whole = _hashes_to(messages, count, loaded.fingerprints.get("replaced"))
    is_standing = _hashes_to(messages, len(recipe), loaded.fingerprints.get("standing"))
    common["is_ambiguous"] = is_whole and is_standing and len(recipe) < count
    readable = record.get("readable") or ()
    if readable and _hashes_to(messages, len(readable), loaded.fingerprints.get("readable")):
        common |= {"extract": "", "readable": None}
        standing = list(messages[: len(readable)])
        return SessionState(**common, standing=standing, sources=[None] * len(standing))
    if is_standing and not common["is_ambiguous"]:
        return SessionState(**common, standing=list(messages[: len(recipe)]), sources=[None] * len(recipe))
    if is_whole:
        sources = [entry if isinstance(entry, int) else None for entry in recipe]
        dialect = dialects.get(record["dialect"]) if bare else None
        standing = [
            entry["item"]
            if not isinstance(entry, int)
            else bare_item(messages[entry], dialect)
            if dialect is not None and entry in bare
            else messages[entry]
            for entry in recipe
        ]
        return SessionState(
            **common,
            replaced=list(messages[:count]),
            standing=standing,
            sources=sources,
            bare=bare,
        )
    return None


def write_rows(rows: Sequence[Row], dialect: Dialect, *beside: Any) -> list[Any]:
    """The messages of a pass's result, in the host's dialect. `beside` is what is sent beside them: system prompt and tools."""
    items = [dialect.write(row.message) for row in rows]
    if dialect.NAME not in MARKED:
        return items
    return mark_frame(items, [row.source for row in rows], *beside)


def read_ledger(record: Mapping[str, Any]) -> tuple[Entry, ...] | None:
    """The ledger in a step's record; None if an earlier version wrote it."""
    entries = record.get("ledger")
    return None if entries is None else tuple(map(from_json, entries))


def adopt(messages: Sequence[Any]) -> Loaded | None:
    """The state that a list tells by itself, for an archive that remembers nothing of an earlier process.

    A frame is taken for compact's own only where compact puts it: an assistant's whole message, in front of everything
    that is not pinned. A person's message, a tool's output and a later reply of the model never stand there.
    """
    for place, item in enumerate(messages):
        try:
            message = dialects.detect([item]).read(item)
        except (CompactError, ValueError):
            return None
        if message.protected or message.role in ("system", "developer") or message.text == GAP:
            continue
        said = [part for part in message.parts if not is_cache_point(part)]
        if message.role != "assistant" or len(said) != 1 or not is_frame(message.text):
            return None
        standing = messages[: place + 1]
        record = {
            "version": STATE_VERSION,
            "replaced": 0,
            "recipe": list(range(len(standing))),
            "summaries": [text_hash(message.text)],
            "tokens_after": 0,
            "ineffective": 0,
        }
        prints = {"standing": fingerprint(standing), "replaced": ""}
        return Loaded(step_of(message.text), record, prints)
    return None


def _hashes_to(messages: Sequence[Any], count: int, expected: str | None) -> bool:
    try:
        return len(messages) >= count and fingerprint(messages[:count]) == expected
    except ValueError:
        return False  # an entry is not a message; reading the list raises an error that names its index


def forget(step: int) -> Loaded:
    """What is loaded of a step whose state was forgotten: nothing stands, so everything in the host's list is new."""
    return Loaded(step, *describe_state([], [], [], frozenset(), 0, 0, ledger=()))


def describe_state(
    messages: Sequence[Any],
    rows: Sequence[Row],
    items: Sequence[Any],
    summaries: frozenset[str],
    tokens_after: int,
    ineffective: int,
    sides: Mapping[str, Any] | None = None,
    written: Mapping[str, Sequence[str]] | None = None,
    ledger: Sequence[Entry] | None = None,
    pins: int = 0,
    bare: frozenset[int] = frozenset(),
    dialect: str = "",
    extract: str = "",
    readable: Sequence[Any] | None = None,
    made_from: int | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A step's state as it is archived: how to make the context from the host's messages, and both hashes.

    `sides` is what `describe_sides` returned, `written` what `Written.describe` did. Records of earlier versions have neither,
    and no ledger. `bare` are the messages of the recipe that stand without their signed thinking, `readable` the context for a
    model that does not read the provider's block in it. A pass that was made in the background from the first `made_from` messages
    was swapped in when there were as many as `replaced` says.
    """
    recipe = [
        {"item": plain(item)} if row.source is None else row.source
        for row, item in zip(rows, items, strict=True)
    ]
    state = {
        "version": STATE_VERSION,
        "replaced": len(messages),
        "recipe": recipe,
        "summaries": sorted(summaries),
        "tokens_after": tokens_after,
        "ineffective": ineffective,
    }
    if sides is not None:
        state["sides"] = sides
    if written is not None:
        state["written"] = written
    if ledger is not None:
        state["ledger"] = list(map(to_json, ledger))
        state["pins"] = pins
    if bare:
        state["bare"], state["dialect"] = sorted(bare), dialect
    if made_from is not None:
        state["made_from"] = made_from
    known: dict[int, bytes] = {}
    prints = {"replaced": fingerprint(messages, known), "standing": fingerprint(items, known)}
    if readable is not None:
        state["extract"], state["readable"] = extract, places_in(items, readable)
        state["dialect"], prints["readable"] = dialect, fingerprint(readable, known)
    return state, prints


def places_in(items: Sequence[Any], others: Sequence[Any]) -> list[int | dict[str, Any]]:
    """Each of the `others` as its index in `items`, or as itself if it is none of them."""
    known = {id(item): n for n, item in enumerate(items)}
    return [known[id(item)] if id(item) in known else {"item": plain(item)} for item in others]


def fingerprint(messages: Sequence[Any], known: dict[int, bytes] | None = None) -> str:
    """Hash messages, the same for equal ones in any process. `known` caches the digests of objects by id."""
    known = {} if known is None else known
    found = hashlib.sha256()
    for item in messages:
        digest = known.get(id(item))
        if digest is None:
            text = json.dumps(_essence(plain(item)), sort_keys=True, ensure_ascii=False, default=str)
            digest = known[id(item)] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        found.update(digest)
    return found.hexdigest()


# --- both sides of a step, for readers
#
# The archive stores the transcript once, as the host gave it. Repairs and offloads come between that list and what the pass worked
# on, and the pass itself comes before what was sent. So the record says, for either side, where each message stands in the list
# before it, or what it is if compact wrote it. Neither side has to be guessed.

Place: TypeAlias = int | Mapping[str, Any]
"""The place of a message in the list before, `{"item": message}`, or `{"bare": place}` for one without its signed thinking."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The messages before and after a step, redacted, with what each cost in the model's own tokens."""

    before: list[Any]
    after: list[Any]
    places: list[int | None]
    """For each message after the step its place before it; None if compact wrote it."""
    levels: list[str | None]
    """For each message after the step how much of it is left; None if that is not known."""
    tokens_before: list[int]
    tokens_after: list[int]
    """Like `tokens_before`, these add up to the figure in the step's `compact.pruned_messages`."""


def describe_sides(
    given: Sequence[Any],
    stood: Sequence[Any],
    before: Sequence[Row],
    after: Sequence[Row],
    items: Sequence[Any],
    scale: Callable[[int], int],
) -> dict[str, Any]:
    """Describe a step for its record.

    Args:
        given: The host's messages before any repair. The archive's transcript holds these.
        stood: What the pass worked on.
        before: The rows of `stood`.
        after: The rows that stand after the pass.
        items: The messages of `after`.
        scale: Turns raw tokens into the model's own.
    """
    places = find_places((row.own for row in before), (row.own for row in after))
    entries = [
        {"bare": entry} if row.bare_of is not None and isinstance(entry, int) else entry
        for row, entry in zip(after, _entries(places, items), strict=True)
    ]
    return {
        "before": None if stood is given else _entries(find_places(given, stood), stood),
        "after": entries,
        "levels": [row.level for row in after],
        "tokens_before": _scaled(before, scale),
        "tokens_after": _scaled(after, scale),
    }


def rebuild_sides(record: Mapping[str, Any], transcript: Sequence[Any]) -> Sides:
    """Rebuild both sides from what `describe_sides` returned and the archived transcript."""
    described: Sequence[Place] | None = record["before"]
    before = list(transcript) if described is None else _resolved(described, transcript)
    after: Sequence[Place] = record["after"]
    is_bare = any(isinstance(entry, Mapping) and "bare" in entry for entry in after)
    dialect = dialects.detect(before) if is_bare else None
    return Sides(
        before=before,
        after=_resolved(after, before, dialect),
        places=[entry if isinstance(entry, int) else entry.get("bare") for entry in after],
        levels=list(record["levels"]),
        tokens_before=list(record["tokens_before"]),
        tokens_after=list(record["tokens_after"]),
    )


def _entries(places: Sequence[int | None], items: Sequence[Any]) -> list[Place]:
    return [
        {"item": plain(item)} if place is None else place for place, item in zip(places, items, strict=True)
    ]


def _resolved(entries: Sequence[Place], items: Sequence[Any], dialect: Dialect | None = None) -> list[Any]:
    found = []
    for entry in entries:
        if isinstance(entry, int):
            found.append(items[entry])
        elif dialect is not None and "bare" in entry:
            found.append(bare_item(items[entry["bare"]], dialect))
        else:
            found.append(entry["item"])
    return found


def _scaled(rows: Sequence[Row], scale: Callable[[int], int]) -> list[int]:
    """What each row costs. Each is what the sum grows by, so that rounding does not add up."""
    sizes, raw, so_far = [], 0, 0
    for row in rows:
        raw += row.tokens
        sizes.append(scale(raw) - so_far)
        so_far += sizes[-1]
    return sizes
