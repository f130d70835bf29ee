"""Which session a call belongs to. One rule for passes, recall tools and restarts, in every integration.

    explicit   `session_id=` on an integration or on a call is the id, always
    given      else an id that the host gives (a thread, a conversation, a trace) is the id. Different conversations inside
               it, such as those of sub-agents, are told apart by their contents: `id`, `id.2`, `id.3`
    unnamed    with no id at all, conversations are told apart by their contents, each under a fresh name that no other
               process, restart or user can know. A warning says once that a session id survives a restart

A list belongs to a conversation if it continues the newest list of it. Cache marks, and the words of a system prompt, may
have changed. Conversations are never compared across ids.

Inside a given id, a list that shares its opening with a known conversation but does not continue it was edited or
regenerated, and stays in the session. If the list that it replaced is continued too, these are two conversations, and the
longer one keeps the session.

Unnamed conversations may be those of different people, so nothing is merged on a guess. A list belongs to a known
conversation if it goes on from the newest list of that one alone, with a reply. Every other list is a new conversation,
even if it holds the very same message objects: many people may be sent one opening. A list is known to be sent again only
by what was said after the conversation's first list. A list that begins with what compact wrote for a conversation belongs
to it, because nobody else has seen that.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Any, Literal, TypeAlias

from compact.engine.state import continues, is_same_message
from compact.errors import ConfigError
from compact.runtime.session_cache import check_session_id

SessionId: TypeAlias = str | Callable[[Any], str] | None
"""A session's id, a function that finds it in what the host passes, or None to let the integration find one."""

_REMEMBERED = 512
"""Conversations that a manager tells apart at the same time."""
_TELLING = 8
"""Two people's lists may be equal by chance, but not for this many messages."""
_ASKED = 4096
"""Tool calls whose session is remembered."""
_FORMS = 3
_REPLACED = 4
"""Edited lists of a conversation that are remembered, in case they are continued after all."""
_BY_FUNCTION = "\0function"
"""Where the lists of sessions are remembered that a function of the host has named. No id that a host gives has a NUL."""
_UNNAMED = (
    "a call has no session id, so its conversation is known by its contents and only in this process; pass session_id= to "
    "continue it after a restart"
)
_NAMES_BY_RESOLVER: ContextVar[Mapping[object, str]] = ContextVar("compact_running_session")


@dataclass(frozen=True, slots=True)
class _Seen:
    """A host's list, as it is compared."""

    items: Sequence[Any]
    objects: Sequence[Any]
    """The host's own objects, whose identity tells more than their contents."""
    system: Any

    def starts_with(self, known: Sequence[Any]) -> bool:
        """Whether the list continues `known`. Nothing continues an empty list."""
        try:
            return bool(known) and continues(self.items, known)
        except RecursionError:
            return False

    def shares(self, known: Sequence[Any]) -> int:
        """How many messages at the beginning are those of `known`."""
        found = 0
        try:
            for one, other in zip(self.items, known, strict=False):
                if not is_same_message(one, other):
                    break
                found += 1
        except RecursionError:
            pass
        return found

    def has_objects(self, known: Sequence[Any]) -> bool:
        """Whether the list begins with the very same messages. Prompts are shared by many and tell nothing."""
        told = [pair for pair in zip(self.objects, known, strict=False) if not _is_prompt(pair[1])]
        return bool(told) and all(one is other for one, other in told)

    @property
    def prompt(self) -> list[Any]:
        """What tells agents with the same task apart."""
        return [self.system, *takewhile(_is_prompt, self.items)]

    @property
    def opening(self) -> int:
        """How many messages there are up to the first that a person wrote, and with it."""
        return next((n for n, item in enumerate(self.items, 1) if _role(item) == "user"), len(self.items))


@dataclass(slots=True, eq=False)
class _Conversation:
    """What is remembered of one."""

    name: str
    scope: str | None
    """The id that the host gave; None for an unnamed conversation. Only conversations of one scope are compared."""
    forms: list[_Seen]
    """The newest list in each form that the host has of it: in full, and as compact shortened it before. Newest last."""
    sent: Sequence[Any]
    """What was sent for the newest list."""
    own: int = 0
    """How many messages `sent` has up to the last one that compact wrote, and with it."""
    begun: int = 0
    """How many messages its first list had. Others may begin with the same ones, even with the same objects."""
    replaced: list[Sequence[Any]] = field(default_factory=list)
    """Lists that an edit replaced."""

    @classmethod
    def begin(cls, name: str, scope: str | None, seen: _Seen) -> _Conversation:
        return cls(name, scope, [seen], seen.items, begun=len(seen.items))

    def continued_by(self, seen: _Seen) -> int:
        """The length of what the list continues: a list of the host's, or what was sent for one. 0: neither."""
        known = (*(form.items for form in self.forms), self.sent)
        return max((len(items) for items in known if seen.starts_with(items)), default=0)

    def shared_by(self, seen: _Seen) -> int:
        """How many messages a list has in common with this conversation, from the beginning."""
        return max(seen.shares(form.items) for form in self.forms)

    def descends_to(self, seen: _Seen) -> bool:
        """Whether a list begins with what compact wrote for this conversation."""
        return bool(self.own) and seen.starts_with(self.sent[: self.own])

    def is_known_by_objects(self, seen: _Seen) -> bool:
        return seen.has_objects(self.sent) or any(seen.has_objects(form.objects) for form in self.forms)

    def has_prompt(self, seen: _Seen) -> bool:
        try:
            return any(form.prompt == seen.prompt for form in self.forms)
        except RecursionError:
            return False

    def take(self, seen: _Seen) -> None:
        """Remember the newest list."""
        others = [form for form in self.forms if not seen.starts_with(form.items)]
        self.forms = [*others[-_FORMS + 1 :], seen]
        if seen.starts_with(self.sent):
            self.sent = seen.items

    def edit(self, seen: _Seen) -> None:
        """The host has changed what it had said before."""
        before = [form.items for form in self.forms]
        self.replaced = [*self.replaced, *before][-_REPLACED:]
        self.forms, self.sent, self.own = [seen], seen.items, 0

    def note_sent(self, items: Sequence[Any], sent: Sequence[Any]) -> None:
        """Remember what was sent for a list, and how far it is compact's own."""
        theirs = set(map(id, items))
        written = max((n for n, item in enumerate(sent, 1) if id(item) not in theirs), default=0)
        stands = self.own if _Seen(sent, sent, None).starts_with(self.sent[: self.own]) else 0
        self.sent, self.own = list(sent), max(written, stands)


class SessionResolver:
    """Names the sessions of one manager. Thread-safe.

    `new_token` gives the unguessable part of a fresh name. `warn(name, code, message)` records a warning in a session.
    """

    def __init__(
        self,
        *,
        new_token: Callable[[], str] = lambda: secrets.token_hex(8),
        warn: Callable[[str, Literal["new_conversation"], str], None] | None = None,
    ) -> None:
        self.new_token = new_token
        self._warn = warn
        self._known: OrderedDict[str, _Conversation] = OrderedDict()
        """By name, the one that was used last at the end."""
        self._scopes: dict[str | None, list[_Conversation]] = {}
        self._asked: OrderedDict[str, frozenset[str]] = OrderedDict()
        """The sessions of tool calls, by the ids of these."""
        self._lock = threading.Lock()
        self._key = object()
        self._nobody = ""

    # --- names

    def resolve(
        self,
        items: Sequence[Any],
        *,
        session_id: SessionId = None,
        call: Any = None,
        given: Any = None,
        objects: Sequence[Any] | None = None,
        system: Any = None,
        kind: str = "conversation",
    ) -> str:
        """Return the session of a call, and remember its list.

        `session_id` is explicit: a name, or a function of `call`. `given` is the host's own id. `items` is the
        conversation as it is passed to the manager, `objects` the host's messages where those are others, and `system` a
        prompt outside the list. `kind` begins a fresh name.

        Raises:
            ConfigError: an id is not a non-empty string.
        """
        if session_id is not None and not callable(session_id):
            return check_session_id(session_id)
        seen = _Seen(list(items), list(items if objects is None else objects), system)
        if session_id is not None:
            name = _ask(session_id, call)
            with self._lock:
                self._keep_named(name, seen)
            return name
        scope, warn = _scope(given), None
        if not seen.items:
            return scope or self.nobody
        with self._lock:
            found = self._choose(scope, seen)
            if found is None:
                found = self._add(scope, seen, kind)
            elif found.continued_by(seen) or found.descends_to(seen):
                found.take(seen)
            else:
                found.edit(seen)
            self._use(found)
            if scope is None:
                warn, self._warn = self._warn, None  # once is enough
        if warn is not None:
            warn(found.name, "new_conversation", _UNNAMED)
        return found.name

    def find(
        self,
        items: Sequence[Any] = (),
        *,
        session_id: SessionId = None,
        given: Any = None,
        objects: Sequence[Any] | None = None,
        system: Any = None,
    ) -> str | None:
        """Return the session that a tool reads, without making one. None: it is not known, and nothing may be read.

        The arguments are those of `resolve`. A tool that knows no list gets the session of the running call. An id that
        the host gave is good for reading, even before its first call in this process. Where a function names the
        sessions, the list decides, because a tool has no call to pass to it.

        Raises:
            ConfigError: an id is not a non-empty string.
        """
        if session_id is not None and not callable(session_id):
            return check_session_id(session_id)
        scope = _BY_FUNCTION if session_id is not None else _scope(given)
        seen = _Seen(list(items), list(items if objects is None else objects), system)
        running = self.running
        with self._lock:
            found = self._choose(scope, seen) if seen.items else None
            if found is not None:
                return found.name
            current = None if running is None else self._known.get(running)
        if scope is None or scope is _BY_FUNCTION or (current is not None and current.scope == scope):
            return running
        return scope

    def fresh_name(self, kind: str) -> str:
        """Return a name that nobody else can know."""
        return f"{kind}-{self.new_token()}"

    @property
    def nobody(self) -> str:
        """The session of calls that have no id, and no list by which they could be told apart."""
        with self._lock:
            self._nobody = self._nobody or self.fresh_name("unnamed")
            return self._nobody

    def note_sent(self, name: str, items: Sequence[Any], sent: Sequence[Any]) -> None:
        """Remember what was sent for a list. Nothing is remembered of a session whose name is fixed."""
        with self._lock:
            found = self._known.get(name)
            if found is not None:
                found.note_sent(items, sent)

    def forget(self, name: str) -> None:
        """Forget what is known of a conversation."""
        with self._lock:
            self._drop(name)

    # --- the running call

    def enter(self, name: str) -> None:
        """Make a session that of the running call, in this task or main thread and in those that copy its context.

        The next job of a worker thread may be somebody else's, so no call is known there. The session of calls without
        an id is that of several people, so none is known after such a call either.
        """
        known = dict(list(_NAMES_BY_RESOLVER.get({}).items())[-_REMEMBERED:])
        known.pop(self._key, None)
        if name != self._nobody and _ends_with_its_work():
            known[self._key] = name
        _NAMES_BY_RESOLVER.set(known)

    @property
    def running(self) -> str | None:
        """The session of the newest call in this task or main thread."""
        return _NAMES_BY_RESOLVER.get({}).get(self._key)

    # --- tool calls

    def note_calls(self, name: str, call_ids: Iterable[str]) -> None:
        """Remember in which session a model asked for tools."""
        with self._lock:
            for call_id in call_ids:
                self._asked[call_id] = self._asked.pop(call_id, frozenset()) | {name}
            while len(self._asked) > _ASKED:
                self._asked.popitem(last=False)

    def find_asked(self, call_id: str) -> str | None:
        """Return the session in which a model asked for a tool, else that of the running call.

        None: it is not known. Some models number their calls, so that an id means several sessions.
        """
        with self._lock:
            names = self._asked.get(call_id, frozenset())
        if not names:
            return self.running
        return next(iter(names)) if len(names) == 1 else None

    # --- choosing

    def _choose(self, scope: str | None, seen: _Seen) -> _Conversation | None:
        known = list(reversed(self._scopes.get(scope, ())))
        return _choose_unnamed(known, seen) if scope in (None, _BY_FUNCTION) else _choose_given(known, seen)

    def _keep_named(self, name: str, seen: _Seen) -> None:
        """Remember the list of a session that a function has named, so that its tools find it."""
        found = self._known.get(name)
        if found is None or found.scope != _BY_FUNCTION:
            self._drop(name)
            found = self._keep(_Conversation.begin(name, _BY_FUNCTION, seen))
        found.take(seen)
        self._use(found)

    def _add(self, scope: str | None, seen: _Seen, kind: str) -> _Conversation:
        name = self.fresh_name(kind) if scope is None else self._name_inside(scope)
        self._drop(name)
        for each in self._scopes.get(scope, ()):
            each.replaced = [before for before in each.replaced if not seen.starts_with(before)]
        return self._keep(_Conversation.begin(name, scope, seen))

    def _keep(self, conversation: _Conversation) -> _Conversation:
        self._known[conversation.name] = conversation
        self._scopes.setdefault(conversation.scope, []).append(conversation)
        while len(self._known) > _REMEMBERED:
            self._drop(next(iter(self._known)))
        return conversation

    def _name_inside(self, scope: str) -> str:
        if all(each.name != scope for each in self._scopes.get(scope, ())):
            return scope  # even if a conversation inside another id was called so
        names = (f"{scope}.{number}" for number in count(2))
        return next(name for name in names if name not in self._known and name not in self._scopes)

    def _use(self, conversation: _Conversation) -> None:
        self._known.move_to_end(conversation.name)
        neighbours = self._scopes[conversation.scope]
        neighbours.remove(conversation)
        neighbours.append(conversation)

    def _drop(self, name: str) -> None:
        found = self._known.pop(name, None)
        if found is not None:
            self._scopes[found.scope].remove(found)
            if not self._scopes[found.scope]:
                del self._scopes[found.scope]


def _choose_given(known: Sequence[_Conversation], seen: _Seen) -> _Conversation | None:
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
        if any(len(before) < len(seen.items) and seen.starts_with(before) for before in each.replaced):
            # It was no edit: both are continued. The longer one keeps the name, a short one may have been an aside.
            return each if len(seen.items) > max(len(form.items) for form in each.forms) else None
    edited = max(known, key=lambda each: each.shared_by(seen), default=None)
    if edited is None:
        return None
    shared, opening = edited.shared_by(seen), seen.opening
    return edited if shared > opening or (shared == opening and edited.has_prompt(seen)) else None


def _choose_unnamed(known: Sequence[_Conversation], seen: _Seen) -> _Conversation | None:
    """The unnamed conversation that a list certainly belongs to; None: it is a new one."""
    size = len(seen.items)
    lengths = {each: each.continued_by(seen) for each in known}
    again = [each for each, length in lengths.items() if length == size > each.begun]
    for each in again:
        if size - each.begun >= _TELLING:
            return each
    continued = {
        each: length
        for each, length in lengths.items()
        if 0 < length < size and (length > each.begun or not _is_asked(seen.items[length]))
    }
    if continued:
        return _only_one(continued, seen)
    for each in known:
        if each.descends_to(seen):
            return each
    return next((each for each in again if each.is_known_by_objects(seen)), None)


def _only_one(continued: Mapping[_Conversation, int], seen: _Seen) -> _Conversation | None:
    """The one conversation that a list goes on from; None: several could be meant."""
    most = max(continued.values())
    longest = [each for each, length in continued.items() if length == most]
    by_objects = [each for each in continued if each.is_known_by_objects(seen)]
    if len(longest) > 1 or (most < _TELLING and by_objects):
        longest = [each for each in by_objects if continued[each] == most]
    if len(longest) != 1:
        return None
    (best,) = longest
    return best if most >= _TELLING or best in by_objects or best.has_prompt(seen) else None


def _longest(known: Sequence[_Conversation], seen: _Seen) -> _Conversation | None:
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


def _role(item: Any) -> Any:
    return item.get("role") if isinstance(item, Mapping) else getattr(item, "role", None)


def _is_asked(item: Any) -> bool:
    """Whether a message is one that is sent to a model, and no reply of it."""
    return _role(item) in ("user", "system", "developer")


def _is_prompt(item: Any) -> bool:
    return _role(item) in ("system", "developer")


def check_session_choice(session_id: Any) -> SessionId:
    """Return what names an integration's sessions: a name, a function or None. Raises ConfigError for anything else."""
    return session_id if session_id is None or callable(session_id) else check_session_id(session_id)


def _ends_with_its_work() -> bool:
    """Whether what is set in this context is gone when the work of its caller is done, or the caller is the program."""
    try:
        if asyncio.current_task() is not None:
            return True
    except RuntimeError:  # no loop runs here
        pass
    return threading.current_thread() is threading.main_thread()


def _ask(session_id: Callable[[Any], str], call: Any) -> str:
    found = session_id(call)
    try:
        return check_session_id(found)
    except ConfigError as problem:
        problem.add_note(f"session_id is a function here, and it returned {type(found).__name__}")
        raise


def _scope(given: Any) -> str | None:
    """A host's own id as text. Frameworks allow numbers and UUIDs too."""
    if given is None or given == "":
        return None
    if isinstance(given, bool | float | bytes | Mapping | Sequence) and not isinstance(given, str):
        raise ConfigError(
            f"the host's id of the conversation must be text, a number or a UUID, got {type(given).__name__}",
            hint="Pass session_id=, a name or a function that finds one",
            path="session_id",
        )
    return check_session_id(str(given))
