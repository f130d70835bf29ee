"""Which session a call belongs to. One rule for passes, recall tools and restarts, in every integration.

    explicit   `session_id=` on an integration or on a call is the id, always
    given      else an id that the host gives (a thread, a conversation, a trace) is the id. Different conversations inside
               it, such as those of sub-agents, are told apart by their contents: `id`, `id.2`, `id.3`
    unnamed    with no id at all, conversations are told apart by their contents, each under a fresh name that no other
               process, restart or user can know. A warning says that a session id survives a restart

A list belongs to a conversation if it continues the newest list of it. Cache marks, and the words of a system prompt, may
have changed. Conversations are never compared across ids.

Inside a given id, a list that shares its opening with a known conversation but does not continue it was edited or
regenerated, and stays in the session. If the list that it replaced is continued too, these are two conversations, and the
longer one keeps the session.

Unnamed conversations may be those of different people, so nothing is merged on a guess. A list belongs to a known
conversation if it goes on from the newest list of that one alone, with a reply. If the host does not keep the message
objects, it must also have the same prompt, and every call that the model made since. Every other list is a new
conversation, even if it holds the very same message objects: many people may be sent one opening. A list is known to be
sent again only by what was said after the conversation's first list.

A tool reads what left a conversation by a right that its call got, and that right ends with the conversation's next list.
So people whose lists are still equal word for word never read each other, whoever goes on first. A first list that one task
sends again begins a new conversation too, but the tools of that task know which one is theirs.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, Literal, TypeAlias

from compact.errors import ConfigError
from compact.runtime.conversations import Conversation, Seen, Trail, choose_given, choose_unnamed
from compact.runtime.running import Right, RunningCall
from compact.runtime.session_cache import check_session_id

SessionId: TypeAlias = str | Callable[[Any], str] | None
"""A session's id, a function that finds it in what the host passes, or None to let the integration find one."""

_REMEMBERED = 512
"""Conversations that a manager tells apart at the same time."""
_ASKED = 4096
"""Tool calls, and sessions without seen replies, that are remembered."""
_ID_BYTES = 16
_STORED = 64
_GAPS = 2
"""Names without stored steps after which no more are looked up: an agent may have ended before its first step."""
_BY_FUNCTION = "\0function"
"""Where the lists of sessions are remembered that a function of the host has named. No id that a host gives has a NUL."""
_RANDOM = re.compile(r"(?=\w*[0-9])(?=\w*[A-Za-z])[A-Za-z0-9]{16}")
"""A call id with this in it is never given twice. Some models merely number their calls."""
_NOT_LISTED = -1
"""What a right says of a session whose lists are not compared, because its name is fixed."""
_UNNAMED = (
    "a list without a session id continues no known conversation, so it began a new one, which is known by its contents and "
    "only in this process; pass session_id= to continue it after a restart"
)


class SessionResolver:
    """Names the sessions of one manager. Thread-safe.

    `new_id` gives the unguessable part of a fresh name: 128 random bits, unless a test needs the same names again.
    `warn(name, code, message)` records a warning in a session. `belongs(name, items)` tells whether a list goes on from what
    another process has stored under a name; None: nothing is stored.
    """

    def __init__(
        self,
        *,
        new_id: Callable[[], str] | None = None,
        warn: Callable[[str, Literal["new_conversation"], str], None] | None = None,
        belongs: Callable[[str, Sequence[Any]], bool | None] = lambda _name, _items: None,
    ) -> None:
        self.new_id = new_id or (lambda: secrets.token_hex(_ID_BYTES))
        self._warn = warn
        self._belongs = belongs
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        """By name, the one that was used last at the end."""
        self._scopes: dict[str | None, list[Conversation]] = {}
        self._asked: OrderedDict[str, frozenset[Right]] = OrderedDict()
        """The sessions of tool calls, by the ids of these."""
        self._calling: OrderedDict[str, None] = OrderedDict()
        """Sessions whose newest reply asked for tools."""
        self._unseen: OrderedDict[str, None] = OrderedDict()
        """Sessions whose replies nobody shows us, so that their calls may have any ids."""
        self._defaults: OrderedDict[str, None] = OrderedDict()
        """Sessions with the results of conversations that nobody has shown yet."""
        self._unclaimed: OrderedDict[str, None] = OrderedDict()
        """Those of them that no conversation has taken anything from."""
        self._lock = threading.Lock()
        self._running = RunningCall()
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
        fresh: Callable[[], str | None] = lambda: None,
        frozen: bool = False,
    ) -> str:
        """Return the session of a call, and remember its list.

        `session_id` is explicit: a name, or a function of `call`. `given` is the host's own id. `items` is the
        conversation as it is passed to the manager, `objects` the host's messages where those are others, and `system` a
        prompt outside the list. `kind` begins a fresh name; `fresh()` returns a name that was given out already. Objects
        that are `frozen` are never changed in place, so they are hashed once.

        Raises:
            ConfigError: an id is not a non-empty string.
        """
        if session_id is not None and not callable(session_id):
            return check_session_id(session_id)
        scope = None if session_id is not None else _scope(given)
        seen = Seen(items, objects, system, tuple(self._scopes.get(scope, ())) if frozen else ())
        if session_id is not None:
            name = _ask(session_id, call)
            with self._lock:
                self._keep_named(name, seen)
            return name
        if not seen.items:
            return scope or self.nobody
        here = self._valid(self._running.certain)
        with self._lock:
            known = self._go_on(scope, seen, here)
        if known is not None:
            return known
        # The archive is asked without the lock, and another thread may begin the conversation meanwhile.
        free = self._find_stored(scope, seen)[0] if scope is not None else fresh()
        with self._lock:
            known = self._go_on(scope, seen, here)
            name = known or self._add(scope, seen, kind, free).name
        if known is None and scope is None and self._warn is not None:
            self._warn(name, "new_conversation", _UNNAMED)
        return name

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

        The arguments are those of `resolve`. A list that belongs to no known conversation reads nothing, even if a call
        of another one runs. An id that the host gave is good for reading before its first call in this process, and then
        for its known conversations. Where a function names the sessions, the list decides, because a tool has no call to
        pass to it.

        Raises:
            ConfigError: an id is not a non-empty string.
        """
        if session_id is not None and not callable(session_id):
            return check_session_id(session_id)
        scope = _BY_FUNCTION if session_id is not None else _scope(given)
        seen = Seen(items, objects, system)
        with self._lock:
            found = self._choose(scope, seen) if seen.items else None
            if found is not None:
                return found.name
            neighbours = [each.name for each in self._scopes.get(scope, ())]
        if scope is None or scope is _BY_FUNCTION:
            return None
        if seen.items:
            stored, is_certain = self._find_stored(scope, seen)
            return stored if is_certain or (stored == scope and not neighbours) else None
        return self.running if self.running in neighbours else scope

    def fresh_name(self, kind: str) -> str:
        """Return a name that nobody else can know."""
        return f"{kind}-{self.new_id()}"

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
            newest = None if found is None else found.forms[-1].trail
        if newest is None:
            return
        trail = Trail(list(sent), newest)  # this takes time, so the lock is not held
        with self._lock:
            found = self._known.get(name)
            if found is not None:
                found.note_sent(items, trail)

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
        with self._lock:
            right = None if name == self._nobody else self._right(name)
            self._calling.pop(name, None)
        self._running.enter(right)

    @property
    def running(self) -> str | None:
        """The session of the newest call in this task or main thread, for frameworks that run their own tools."""
        return self._valid(self._running.newest)

    @property
    def certain(self) -> str | None:
        """The session of the running call, if no other session had a call in this task or main thread.

        A first request that was tried before counts as one session, as long as no earlier try is known to have asked for
        tools, stored a result or gone on.
        """
        right, others = self._running.here
        name = self._valid(right)
        if name is None or not others:
            return name
        with self._lock:
            known = self._known.get(name)
            is_only = known is not None and others <= known.tried and all(map(self._is_bare, others))
        return name if is_only else None

    # --- tool calls and their results

    def note_calls(self, name: str, call_ids: Iterable[str], message_id: str | None = None) -> None:
        """Remember in which session a model asked for tools. The session's reply is seen, even if it asks for none.

        `message_id` is that of the message with the calls, where a framework gives it one.
        """
        call_ids = tuple(call_ids)
        with self._lock:
            self._unseen.pop(name, None)
            known = self._known.get(name)
            for call_id in call_ids:
                key = _call_key(call_id, message_id)
                others = (right for right in self._asked.pop(key, ()) if right.name != name)
                self._asked[key] = frozenset((*others, self._right(name)))
                _remember(self._calling, name)
                if known is not None:
                    known.owed.add(call_id)
            while len(self._asked) > _ASKED:
                self._asked.popitem(last=False)

    def note_unseen(self, name: str) -> None:
        """Remember that nobody shows us a session's reply."""
        with self._lock:
            _remember(self._unseen, name)

    def note_stored(self, name: str, path: str) -> None:
        """Remember that a result was stored for a conversation. Its next list shows where."""
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                known.owed.add(path)

    def find_asked(self, call_id: str, *, inherited: bool = False) -> str | None:
        """Return the session in which a model asked for a tool. None: it is not certain, and nothing may be read.

        A call that no reply contained is of the running call's session, if no other session had a call in this task or
        main thread, and if its newest reply asked for no tools. `inherited`: a framework runs the tool, so that the
        running call is that of its run.
        """
        here = self.running if inherited else self.certain
        with self._lock:
            rights = self._asked.get(call_id, frozenset())
            names = {right.name for right in rights if self._holds(right)}
            if here in names:
                return here
            if names:
                is_sure = len(names) == 1 and (_is_random(call_id) or not self._unseen.keys() - names)
                return names.pop() if is_sure else None
            is_theirs = here is not None and (inherited or here not in self._calling)
        return here if is_theirs and not rights else None

    def find_noted(self, call_id: str, message_id: str | None) -> str | None:
        """Return the only session in which a model asked for a tool, as `note_calls` was told. None: it is not certain."""
        if message_id is None:
            return None
        with self._lock:
            rights = self._asked.get(_call_key(call_id, message_id), ())
            names = {right.name for right in rights if self._holds(right)}
        return names.pop() if len(names) == 1 else None

    def place_result(self, call_id: str) -> str:
        """Return the session for a tool's result that came without an id: that of its call, else a default session.

        In a task or main thread without any call that is the running session from now on. Its first list, which shows
        the result, may take it over (`is_unclaimed`).
        """
        found = self.find_asked(call_id)
        if found is not None:
            return found
        name = self.fresh_name("default")
        with self._lock:
            _remember(self._defaults, name)
            _remember(self._unclaimed, name)
        if not self._running.is_known_here:
            self.enter(name)
        return name

    def is_default(self, name: str) -> bool:
        """Whether a session holds results of conversations that nobody has shown yet."""
        with self._lock:
            return name in self._defaults

    def is_unclaimed(self, name: str) -> bool:
        """Whether a default session may become that of the one conversation whose results it holds."""
        with self._lock:
            return name in self._unclaimed

    def share_default(self, name: str) -> None:
        """Note that a default session held the result of some other conversation, so that none may take it over."""
        with self._lock:
            self._unclaimed.pop(name, None)

    # --- rights

    def _right(self, name: str) -> Right:
        known = self._known.get(name)
        return Right(name, _NOT_LISTED if known is None else known.taken)

    def _holds(self, right: Right) -> bool:
        """Whether a right still stands. Sessions that a host names itself keep theirs."""
        known = self._known.get(right.name)
        if known is None:
            return right.taken == _NOT_LISTED
        return known.scope is not None or known.taken == right.taken

    def _valid(self, right: Right | None) -> str | None:
        if right is None:
            return None
        with self._lock:
            return right.name if self._holds(right) else None

    def _is_bare(self, name: str) -> bool:
        """Whether nothing came of a conversation's only list, as far as its replies are seen."""
        known = self._known.get(name)
        return known is not None and known.is_bare and name not in self._unseen and name not in self._calling

    # --- choosing

    def _choose(self, scope: str | None, seen: Seen, here: str | None = None) -> Conversation | None:
        known = list(reversed(self._scopes.get(scope, ())))
        if scope in (None, _BY_FUNCTION):
            return choose_unnamed(known, seen, here)
        return choose_given(known, seen)

    def _find_stored(self, scope: str, seen: Seen) -> tuple[str, bool]:
        """The name for a list inside an id that is new here, and whether that name's stored steps are this list's.

        Otherwise it is the first name that no known conversation has, and no other one in the archive.
        """
        free, gaps = "", 0
        for name in (scope, *(f"{scope}.{number}" for number in range(2, _STORED))):
            with self._lock:
                is_taken = self._is_taken(scope, name)
            verdict = False if is_taken else self._belongs(name, seen.items)
            if verdict:
                return name, True
            if verdict is None:
                free, gaps = free or name, gaps + 1
            if gaps == _GAPS:
                break
        with self._lock:
            return free or self._name_inside(scope), False

    def _keep_named(self, name: str, seen: Seen) -> None:
        """Remember the list of a session that a function has named, so that its tools find it."""
        found = self._known.get(name)
        if found is None or found.scope != _BY_FUNCTION:
            self._drop(name)
            found = self._keep(Conversation.begin(name, _BY_FUNCTION, seen))
        found.take(seen)
        self._use(found)

    def _go_on(self, scope: str | None, seen: Seen, here: str | None) -> str | None:
        """Take a list for the conversation that it belongs to. None: it is a new one."""
        found = self._choose(scope, seen, here)
        if found is None:
            return None
        if found.continued_by(seen) or found.descends_to(seen):
            found.take(seen)
        else:
            found.edit(seen)
        self._use(found)
        return found.name

    def _add(self, scope: str | None, seen: Seen, kind: str, free: str | None) -> Conversation:
        if scope is not None:
            name = free if free and not self._is_taken(scope, free) else self._name_inside(scope)
        else:
            name = self.fresh_name(kind) if free is None or free in self._known else free
        for names in (self._defaults, self._unclaimed):
            names.pop(name, None)
        self._drop(name)
        for each in self._scopes.get(scope, ()):
            each.replaced = [before for before in each.replaced if not seen.trail.starts_with(before)]
        begun = self._keep(Conversation.begin(name, scope, seen))
        if scope is None:
            before = (self._known.get(each) for each in self._running.names)
            tries = (each.name for each in before if each and each.scope is None and each.is_tried_by(seen))
            begun.tried = frozenset(tries)
        return begun

    def _keep(self, conversation: Conversation) -> Conversation:
        self._known[conversation.name] = conversation
        self._scopes.setdefault(conversation.scope, []).append(conversation)
        while len(self._known) > _REMEMBERED:
            self._drop(next(iter(self._known)))
        return conversation

    def _name_inside(self, scope: str) -> str:
        names = chain([scope], (f"{scope}.{number}" for number in count(2)))
        return next(name for name in names if not self._is_taken(scope, name))

    def _is_taken(self, scope: str, name: str) -> bool:
        """Whether a name inside an id is in use. The id itself is its own, even if one inside another id was called so."""
        if name == scope:
            return any(each.name == scope for each in self._scopes.get(scope, ()))
        return name in self._known or name in self._scopes

    def _use(self, conversation: Conversation) -> None:
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


def check_session_choice(session_id: Any) -> SessionId:
    """Return what names an integration's sessions: a name, a function or None. Raises ConfigError for anything else."""
    return session_id if session_id is None or callable(session_id) else check_session_id(session_id)


def _remember(names: OrderedDict[str, None], name: str) -> None:
    names[name] = None
    names.move_to_end(name)
    while len(names) > _ASKED:
        names.popitem(last=False)


def _call_key(call_id: str, message_id: str | None) -> str:
    return call_id if message_id is None else f"{message_id}\0{call_id}"


def _is_random(call_id: str) -> bool:
    return _RANDOM.search(call_id.replace("-", "")) is not None


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
