"""Conversations as they are told apart: by their lists, by the objects in these, and by what compact wrote for them."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Any

from compact.engine.state import digest
from compact.messages.dialects.wire import plain

_TELLING = 8
"""Two lists of one person may be equal by chance, but not for this many messages."""
_FORMS = 3
_REPLACED = 4
"""Edited lists of a conversation that are remembered, in case they are continued after all."""
_ID_BYTES = array("Q").itemsize
_PROMPTS = {"system": 1, "developer": 2}
"""What stands for a prompt among the ids of objects. No object has such an id."""
_PROMPT_IDS = frozenset(_PROMPTS.values())
_NUMBERS = count()


class Objects:
    """The message objects of a list. A prompt counts as any other prompt: many lists share one, or make a new one for each call."""

    __slots__ = ("_held", "_ids")

    def __init__(self, items: Sequence[Any]) -> None:
        self._held = items
        """While an object is held, no other one gets its id."""
        self._ids = array("Q", map(_identify, items)).tobytes()

    def begin_with(self, known: Objects, count: int) -> bool:
        """Whether these begin with the first ones of `known`."""
        return self._ids.startswith(known._ids[: count * _ID_BYTES])

    def are_told_by(self, known: Objects) -> bool:
        """Whether both begin with the very same messages, as far as both go, and not with prompts alone."""
        size = min(len(self._ids), len(known._ids))
        ids = known._ids[:size]
        return self._ids.startswith(ids) and any(
            each not in _PROMPT_IDS for each in memoryview(ids).cast("Q")
        )


class Trail:
    """A list of messages as it is compared: by the hash of each of its beginnings, and by its objects.

    Each message is hashed once, when its list arrives. Two lists are then compared in one step, however long they are, so
    that nobody who sends long lists makes others wait.
    """

    __slots__ = ("_beginnings", "_digests", "items", "objects")
    items: Sequence[Any]
    _digests: Sequence[bytes]

    def __init__(self, items: Sequence[Any], known: Trail | None = None) -> None:
        """`known` has hashed some of these very objects already."""
        hashed: dict[int, bytes] = (
            {} if known is None else dict(zip(map(id, known.items), known._digests, strict=True))
        )
        self.items = items
        self.objects = Objects(items)
        self._digests = [hashed.get(id(item)) or _hash(item) for item in items]
        self._beginnings = [b""]
        for each in self._digests:
            self._beginnings.append(hashlib.sha256(self._beginnings[-1] + each).digest())

    def __len__(self) -> int:
        return len(self.items)

    def starts_with(self, known: Trail, count: int | None = None) -> bool:
        """Whether the list continues `known`, or only its first messages. Nothing continues an empty list."""
        count = len(known) if count is None else count
        return 0 < count <= len(self) and self._has_first(known, count)

    def shares(self, known: Trail) -> int:
        """How many messages at the beginning are those of `known`."""
        counts = range(1, min(len(self), len(known)) + 1)
        return bisect_left(counts, True, key=lambda count: not self._has_first(known, count))

    def has_words(self, known: Trail) -> bool:
        """Whether the list begins with what `known` said, word for word but for its prompts."""
        return len(known) <= len(self) and self._beginnings[len(known)] == known._beginnings[-1]

    def _has_first(self, known: Trail, count: int) -> bool:
        # A message that the host has changed in place is still the same one.
        return self._beginnings[count] == known._beginnings[count] or self.objects.begin_with(
            known.objects, count
        )


class Seen:
    """A host's list, with what else tells it apart. Making one takes time, so no lock is held meanwhile."""

    __slots__ = ("objects", "prompt", "trail")

    def __init__(
        self,
        items: Sequence[Any],
        objects: Sequence[Any] | None,
        system: Any,
        known: Sequence[Conversation] = (),
    ) -> None:
        """`objects` are the host's own, whose identity tells more than their contents; None: they are the items.

        What `known` conversations have hashed is not hashed again.
        """
        self.trail = Trail(list(items), _hashed_before(known, items))
        self.objects = self.trail.objects if objects is None else Objects(list(objects))
        self.prompt = _hash_prompt(system, items)
        """What tells agents with the same task apart, and people with prompts of their own."""

    @property
    def items(self) -> Sequence[Any]:
        """The messages as they are passed to the manager."""
        return self.trail.items

    def names_all(self, marks: Collection[str], start: int) -> bool:
        """Whether every one of these ids and paths stands in the list, from a place on."""
        left = set(marks)
        try:
            for text in texts_of(self.items[start:]):
                left -= {mark for mark in left if mark in text}
        except RecursionError:
            return False
        return not left

    @property
    def opening(self) -> int:
        """See `count_opening`."""
        return count_opening(self.items)


@dataclass(slots=True, eq=False)
class Conversation:
    """What is remembered of one."""

    name: str
    scope: str | None
    """The id that the host gave; None for an unnamed conversation. Only conversations of one scope are compared."""
    forms: list[Seen]
    """The newest list in each form that the host has of it: in full, and as compact shortened it before. Newest last."""
    sent: Trail
    """What was sent for the newest list."""
    own: int = 0
    """How many messages `sent` has up to the last one that compact wrote, and with it."""
    begun: int = 0
    """How many messages its first list had. Others may begin with the same ones, even with the same objects."""
    replaced: list[Trail] = field(default_factory=list)
    """Lists that an edit replaced."""
    taken: int = 0
    """How many lists it has had. The right to read what left it ends with its next list."""
    tried: frozenset[str] = frozenset()
    """Conversations of the same task or main thread that had only sent the beginning of its first list before."""
    owed: set[str] = field(default_factory=set)
    """What its next list has to show: the ids of calls that the model made since, and the paths of results stored since."""

    @classmethod
    def begin(cls, name: str, scope: str | None, seen: Seen) -> Conversation:
        """Begin with a conversation's first list."""
        return cls(name, scope, [seen], seen.trail, begun=len(seen.items))

    def continued_by(self, seen: Seen) -> int:
        """The length of what the list continues: a list of the host's, or what was sent for one. 0: neither."""
        known = (*(form.trail for form in self.forms), self.sent)
        return max((len(trail) for trail in known if seen.trail.starts_with(trail)), default=0)

    def shared_by(self, seen: Seen) -> int:
        """How many messages a list has in common with this conversation, from the beginning."""
        return max(seen.trail.shares(form.trail) for form in self.forms)

    def descends_to(self, seen: Seen) -> bool:
        """Whether a list begins with what compact wrote for this conversation."""
        return seen.trail.starts_with(self.sent, self.own)

    def is_known_by_objects(self, seen: Seen) -> bool:
        """Whether a list begins with the host's own message objects."""
        known = (self.sent.objects, *(form.objects for form in self.forms))
        return any(map(seen.objects.are_told_by, known))

    def has_prompt(self, seen: Seen) -> bool:
        """Whether a list comes with the same prompt, word for word."""
        return any(form.prompt == seen.prompt for form in self.forms)

    @property
    def is_bare(self) -> bool:
        """Whether it has only sent its first list, and neither the model nor compact has done anything for it."""
        return not (self.taken or self.owed or self.own)

    def is_tried_by(self, seen: Seen) -> bool:
        """Whether a list begins with the only list of this one: the same objects and words, under the same prompt."""
        first = self.forms[-1]
        return (
            self.is_bare
            and first.prompt == seen.prompt
            and seen.trail.has_words(first.trail)
            and seen.objects.are_told_by(first.objects)
        )

    def take(self, seen: Seen) -> None:
        """Remember the newest list."""
        self._count()
        others = [form for form in self.forms if not seen.trail.starts_with(form.trail)]
        self.forms = [*others[-_FORMS + 1 :], seen]
        if seen.trail.starts_with(self.sent):
            self.sent = seen.trail

    def edit(self, seen: Seen) -> None:
        """The host has changed what it had said before."""
        self._count()
        before = [form.trail for form in self.forms]
        self.replaced = [*self.replaced, *before][-_REPLACED:]
        self.forms, self.sent, self.own = [seen], seen.trail, 0

    def _count(self) -> None:
        self.taken += 1
        self.owed.clear()

    def note_sent(self, items: Sequence[Any], sent: Trail) -> None:
        """Remember what was sent for a list, and how far it is compact's own."""
        theirs = set(map(id, items))
        written = max((n for n, item in enumerate(sent.items, 1) if id(item) not in theirs), default=0)
        stands = self.own if sent.starts_with(self.sent, self.own) else 0
        self.sent, self.own = sent, max(written, stands)


def choose_given(known: Sequence[Conversation], seen: Seen) -> Conversation | None:
    """The conversation inside one id that a list belongs to; None: it is a new one."""
    best = _longest(known, seen)
    if best is not None:
        length = best.continued_by(seen)
        # Another agent that is given the same task has another prompt.
        if length < len(seen.items) or length >= _TELLING or best.has_prompt(seen):
            return best
    for each in known:
        if each.descends_to(seen):
            return each
    for each in known:
        if any(len(before) < len(seen.items) and seen.trail.starts_with(before) for before in each.replaced):
            # It was no edit: both are continued. The longer one keeps the name, a short one may have been an aside.
            return each if len(seen.items) > max(len(form.items) for form in each.forms) else None
    edited = max(known, key=lambda each: each.shared_by(seen), default=None)
    if edited is None:
        return None
    shared, opening = edited.shared_by(seen), seen.opening
    return edited if shared > opening or (shared == opening and edited.has_prompt(seen)) else None


def choose_unnamed(known: Sequence[Conversation], seen: Seen, here: str | None = None) -> Conversation | None:
    """The unnamed conversation that a list certainly belongs to; None: it is a new one.

    `here` is the only session that had a call in this task or main thread. Of several conversations that are equal word
    for word, it is that one.

    Another person's list may have the same words. So a list by its words alone joins a conversation only if it holds all
    that was said there, under the same prompt, with every call that the model has made since.
    """
    size = len(seen.items)
    lengths = {each: each.continued_by(seen) for each in known}
    continued = {
        each: length
        for each, length in lengths.items()
        if 0 < length < size and (length > each.begun or not _is_asked(seen.items[length]))
    }
    if continued:
        return _only_one(continued, seen, here)
    again = [each for each, length in lengths.items() if length == size > each.begun]
    by_objects = [each for each in again if each.is_known_by_objects(seen)]
    if by_objects:
        return by_objects[0]
    told = [each for each in again if size - each.begun >= _TELLING and not each.owed]
    written = [each for each in known if each.descends_to(seen)]
    same = [each for each in told or written if each.has_prompt(seen)]
    return same[0] if len(same) == 1 else None


def _only_one(continued: Mapping[Conversation, int], seen: Seen, here: str | None) -> Conversation | None:
    """The one conversation that a list goes on from; None: several could be meant."""
    most = max(continued.values())
    longest = [each for each, length in continued.items() if length == most]
    by_objects = [each for each in continued if each.is_known_by_objects(seen)]
    if len(longest) > 1 or (most < _TELLING and by_objects):
        equal = longest
        longest = [each for each in by_objects if continued[each] == most]
        longest = longest or [each for each in equal if each.name == here and not by_objects]
    if len(longest) != 1:
        return None
    (best,) = longest
    if best in by_objects:
        return best
    return best if best.has_prompt(seen) and seen.names_all(best.owed, most) else None


def _longest(known: Sequence[Conversation], seen: Seen) -> Conversation | None:
    """Of the conversations that a list continues, the best known one."""
    lengths = [(each, each.continued_by(seen)) for each in known]
    continued = [(each, length) for each, length in lengths if length]
    if not continued:
        return None
    # The first of equals, and so the newest, wins.
    best, _ = max(
        continued, key=lambda pair: (pair[0].is_known_by_objects(seen), pair[0].has_prompt(seen), pair[1])
    )
    return best


def _hashed_before(known: Sequence[Conversation], items: Sequence[Any]) -> Trail | None:
    """The newest list that begins with the very same object, whose messages need not be hashed again."""
    trails = (each.forms[-1].trail for each in reversed(known))
    return next((trail for trail in trails if items and trail.items and trail.items[0] is items[0]), None)


def count_opening(items: Sequence[Any]) -> int:
    """Count the messages up to the first that a person wrote, and with it."""
    return next((n for n, item in enumerate(items, 1) if _role(item) == "user"), len(items))


def texts_of(value: Any) -> Iterator[str]:
    """Find every text in a value. An object is read as its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each)
    elif hasattr(value, "__dict__"):
        yield from texts_of(vars(value))


def _identify(item: Any) -> int:
    role = item.get("role") if type(item) is dict else _role(item)
    return _PROMPTS[role] if role in ("system", "developer") else id(item)


def _hash(value: Any) -> bytes:
    return digest(value) or _unequal()


def _unequal() -> bytes:
    """Stands for what cannot be hashed. It equals nothing."""
    return next(_NUMBERS).to_bytes(_ID_BYTES, "big")


def _hash_prompt(system: Any, items: Sequence[Any]) -> bytes:
    try:
        return _hash({"prompt": _bare([system, *map(_as_said, takewhile(_is_prompt, items))])})
    except RecursionError:
        return _unequal()


def _as_said(item: Any) -> Any:
    """A prompt as it is compared, in every form that a host may give it on the next call."""
    try:
        return plain(item)
    except ValueError:
        return item


def _bare(value: Any) -> Any:
    """A value without cache marks, which hosts move from call to call."""
    if isinstance(value, Mapping):
        return {key: _bare(each) for key, each in value.items() if key != "cache_control"}
    return [_bare(each) for each in value] if isinstance(value, list | tuple) else value


def _role(item: Any) -> Any:
    return item.get("role") if isinstance(item, Mapping) else getattr(item, "role", None)


def _is_asked(item: Any) -> bool:
    """Whether a message is one that is sent to a model, and no reply of it."""
    return _role(item) in ("user", "system", "developer")


def _is_prompt(item: Any) -> bool:
    return _role(item) in ("system", "developer")
