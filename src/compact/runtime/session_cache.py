"""The sessions that a manager has in memory, and what was saved and sent for them.

A server sees many sessions, and most of them never come back.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from compact.archive.keys import check_tenant
from compact.engine.context import Written
from compact.engine.corrections import Correction, Observed, correction_of
from compact.engine.intake import Intake
from compact.engine.outcome import Outcome
from compact.engine.state import SessionState
from compact.errors import ConfigError
from compact.events import Trace, session_trace
from compact.events.session_key import SessionKey, problem_of
from compact.messages.dialects.wire import begins_with
from compact.redaction import Redactor
from compact.runtime.economy.cache_state import CacheState
from compact.runtime.lanes import Lane
from compact.runtime.masked_session import MaskedSession
from compact.tokens import Meter

if TYPE_CHECKING:
    from compact.runtime.background import BackgroundPass
    from compact.runtime.tenants import Tenant

_PREPARED = 4
"""As many times the sessions that are kept in memory are kept while a pass is made for them in the background."""
_MOST_TIMES = 3
"""A larger count than this many times ours is one of another request, unless there is a system prompt that we do not see: one
of up to half of the window."""


class Statistics:
    """What was saved, by stage, and what was sent. Thread-safe.

    What is counted for a tenant is counted for the `whole` too.
    """

    def __init__(self, whole: Statistics | None = None) -> None:
        self._counts = (self,) if whole is None else (self, whole)
        self._lock: threading.Lock = threading.Lock() if whole is None else whole._lock
        self.operations = 0
        self.saved: dict[str, int] = {}
        self.sent_tokens = 0
        """Tokens of all requests."""
        self.repeated_tokens = 0
        """Those of them that repeated the request before, so that a prompt cache could serve them."""

    def credit_offload(self, tokens: int) -> None:
        """Count a tool result that was moved to the archive, in a pass or when it arrived, and what that saved."""
        self._credit({"offload": tokens}, 1)

    def credit_pass(self, saved: Mapping[str, int]) -> None:
        """Count a pass once, however many stages took part. Its offloads are counted one by one, as they happen."""
        stages = {stage: tokens for stage, tokens in saved.items() if stage != "offload"}
        self._credit(stages, int(bool(stages)))

    def note_sent(self, tokens: int, repeated: int) -> None:
        """Count a request, and how much of it repeated the one before."""
        with self._lock:
            for each in self._counts:
                each.sent_tokens += tokens
                each.repeated_tokens += repeated

    def _credit(self, saved: Mapping[str, int], operations: int) -> None:
        with self._lock:
            for each in self._counts:
                each.operations += operations
                for stage, tokens in saved.items():
                    each.saved[stage] = each.saved.get(stage, 0) + tokens


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it was prepared, for comparing our count of it with the provider's."""

    meter: Meter
    step: int
    """The session's newest step."""
    ours: int
    """Its tokens by our own count."""
    window: int
    """Of the model."""


@dataclass(slots=True)
class Session:
    """What this process keeps of one session. Only the run that holds its lane changes it."""

    key: SessionKey
    tenant: Tenant
    trace: Trace
    lane: Lane[Any] = field(default_factory=Lane)
    state: SessionState = field(default_factory=SessionState)
    intake: Intake = field(default_factory=Intake)
    written: Written = field(default_factory=Written)
    """What compact wrote into its results and arguments. Recall tools add their answers from any thread."""
    background: BackgroundPass | None = None
    """The pass that is made, or was prepared, while the session goes on."""
    came_to_nothing: int = 0
    """The size at which the last one came to nothing since the newest step; 0: none did."""
    outcome: Outcome | None = None
    warned: set[str] = field(default_factory=set)
    """Codes of the warnings that were recorded already."""
    prepared: Prepared | None = None
    """The request that the last call made."""
    given: Sequence[Any] = ()
    """What the host passed with the last call."""
    sent: Sequence[Any] = ()
    """What the last call returned. The next one should begin with it."""
    sent_tokens: int = 0
    observed: dict[str, Observed] = field(default_factory=dict)
    """By model: what its provider counted last."""
    rates: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By model: the rate that holds for the session, and the step behind which it does."""
    request: Any = None
    """The messages that the newest reply of a model call answers."""
    reads_archive: bool = True
    """Whether the agent can read what is moved to the archive. If not, a huge result is not moved when it arrives."""
    masked: MaskedSession | None = None
    """What live masking remembers; None while it is off."""
    cache: CacheState = field(default_factory=CacheState)
    """What the provider's prompt cache probably holds of it."""
    economy: tuple[Any, Any] | None = None
    """The model for which passes were weighed last, and what weighs them."""
    redactor: Redactor | None = None
    """Masks what leaves the process. What it has learned is freed with the session, and sealed in the archive."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.key.session_id

    def observe(self, request: Prepared, counted: int, *, refused: bool = False) -> tuple[int, int] | None:
        """Take the provider's count of a request. Returns by how much it grew since the one before: by our count, and by its.

        An exact count of ours is never relaxed, others by no more than the margin of their model. Ignored are the count of a
        request from before the newest step, which says nothing of the context that stands, and one that is so far beyond ours
        that it cannot be of this request.
        """
        ours, meter = request.ours, request.meter
        if counted <= 0 or ours <= 0 or request.step < self.state.step:
            return None
        if counted > ours * _MOST_TIMES and (refused or counted - ours > request.window // 2):
            return None
        before = self.observed.get(meter.model)
        believed = max(counted, math.ceil(ours / meter.factor))
        self.observed[meter.model] = Observed(request.step, believed, ours, refused)
        if (
            refused
            or before is None
            or before.step != request.step
            or ours <= before.ours
            or counted <= before.counted
        ):
            return None
        return ours - before.ours, counted - before.counted

    def correction(self, meter: Meter, ours: int, step: int, learned: float = 1.0) -> Correction:
        """What turns our count of a request behind `step` into its provider's, as far as that is known.

        `learned` is the model's rate as other sessions taught it. The session keeps the first one until its next step.
        """
        since, rate = self.rates.get(meter.model, (-1, 1.0))
        if since != step:
            rate = learned
            self.rates[meter.model] = step, rate
        observed, is_exact = self.observed.get(meter.model), meter.factor == 1.0
        return correction_of(ours, step, observed, rate=rate, is_exact=is_exact)

    def ask_again(self) -> None:
        """The archive may know of newer steps than this process, so the next call asks it."""
        self.state = replace(self.state, asked=False)

    def begin_anew(self, step: int) -> None:
        """Forget everything but what the session's models count and which warnings were given. Nothing of `step` stands."""
        self.state = SessionState(step=step, standing=[] if step else None, asked=True)
        self.given = self.sent = ()
        self.sent_tokens = 0
        self.outcome = self.request = None
        self.came_to_nothing = 0
        self.renew_intake()

    def renew_intake(self) -> None:
        """A run that lost the lane may still use the intake, so the next run gets its own."""
        self.intake = self.intake.renew()


class SessionCache:
    """Sessions by id and tenant; thread-safe. Beyond `most` sessions, the least recently used ones are forgotten.

    A forgotten session loses nothing, because its next call loads its state from the archive. A session with a run is
    not forgotten, and one with a pass in the background only if there are very many of these.
    """

    def __init__(
        self,
        most: int,
        forget: Callable[[SessionKey], None],
        tenant_of: Callable[[str | None], Tenant],
    ) -> None:
        self._most = most
        self._forget = forget
        self._tenant_of = tenant_of
        self._sessions: dict[SessionKey, Session] = {}
        self._begun = 0
        self._lock = threading.Lock()

    def get(self, session_id: str, tenant: str | None = None) -> Session:
        """Return the session, which is now the most recently used one.

        Raises:
            ConfigError: the id, or the tenant, is not a non-empty string.
        """
        if type(session_id) is not str:
            check_session_id(session_id)
        if tenant is not None and type(tenant) is not str:
            check_tenant(tenant)
        key = SessionKey(session_id, tenant)
        with self._lock:
            found = self._sessions.pop(key, None) or self._begin(key)
            self._sessions[key] = found
            gone = self._make_room() if len(self._sessions) > self._most else ()
        for name in gone:
            self._forget(name)
        return found

    def note_sent(self, session: Session, messages: Sequence[Any], tokens: int) -> int:
        """Record what a call returned. Returns how many tokens of it a provider's prompt cache can use again."""
        repeats = bool(session.sent) and begins_with(messages, session.sent)
        repeated = session.sent_tokens if repeats else 0
        session.tenant.statistics.note_sent(tokens, repeated)
        # The copy of the host's list is ours. Any other list now belongs to the host.
        session.sent = session.given if messages is session.given else list(messages)
        session.sent_tokens = tokens
        return repeated

    @property
    def sole(self) -> str | None:
        """The only session that there ever was in this process; None: there was none, or another one."""
        found = next(iter(self._sessions), None) if self._begun == 1 else None
        return None if found is None else found.session_id

    def __len__(self) -> int:
        return len(self._sessions)

    def _begin(self, key: SessionKey) -> Session:
        check_session_id(key.session_id)
        self._begun += 1
        return Session(key, self._tenant_of(key.tenant), session_trace(*key))

    def _make_room(self) -> list[SessionKey]:
        """Forget the oldest idle sessions, never the newest, and return what they are known by."""
        excess = len(self._sessions) - self._most
        idle = [each for each in list(self._sessions.items())[:-1] if each[1].lane.run is None]
        gone = [name for name, session in idle if session.background is None][:excess]
        for name, session in idle[: max(0, len(self._sessions) - _PREPARED * self._most)]:
            if session.background is not None:
                session.background.drop("the session was forgotten")
                gone.append(name)
        for name in gone:
            del self._sessions[name]
        return gone


def check_session_id(session_id: Any) -> str:
    """Return a session's id.

    Raises:
        ConfigError: it is not a string of valid Unicode with more than blanks in it.
    """
    problem = problem_of(session_id)
    if problem is None:
        name: str = session_id
        return name
    raise ConfigError(
        f"session_id {problem}",
        hint="Pass the same text in every call of a conversation, such as the id of its thread",
        path="session_id",
    )
