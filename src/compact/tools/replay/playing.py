"""Plays a recorded session through the engine, call by call, as a host would.

The host calls the model before every recorded reply. It keeps the list that `preflight` returned, appends the reply and what
followed, and calls again. No model is asked: the replies are the recorded ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

from compact.archive import Archive
from compact.config import CompactConfig
from compact.engine.intake import Intake
from compact.errors import CompactError
from compact.events import Started
from compact.messages import Message, dialects, to_json
from compact.messages.legality import violations_in
from compact.messages.message import SUMMARY_OPENS
from compact.redaction import Redactor
from compact.runtime.manager import CompactManager
from compact.tokens import Meter
from compact.tokens.meter import REPLY_TOKENS
from compact.tokens.models import model_table
from compact.tokens.prices import Card, Prices
from compact.tokens.windows import window_of
from compact.tools.harness.control import Fingerprint, differences
from compact.tools.pricing.billing import Sent, bill
from compact.tools.replay.results import Cost, Outlined, Played, Run, Step
from compact.tools.replay.retention import IdentifierIndex, is_kept, spoken
from compact.tools.transcripts import RecordedSession
from compact.tools.transcripts.model_calls import model_calls

_START = datetime(2000, 1, 1, tzinfo=UTC)
_AUTHORITY = ("system", "developer")
_MOST_REASONS = 20
_LOOKED_AT, _SHOWN = 2_000, 90
"""How many characters of a message are masked, and how many of them are shown."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A named configuration. Its archive is only used if `play` is given one."""

    name: str
    config: CompactConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One session to play under each policy. Can be sent to another process."""

    file: str
    session: RecordedSession
    policies: Sequence[Policy]
    prices: Prices
    model: str | None = None
    keep_requests: bool = False


def play(job: Job, archive: Callable[[], Archive] | None = None) -> Played:
    """Play a session under each policy.

    Never raises for what is in the session: `error` says if it cannot be read, or if a pass failed.

    Args:
        job: The session and the policies.
        archive: Makes the archive of each run. Default: in memory.
    """
    session = job.session
    model = job.model or session.model or job.policies[0].config.model
    played = Played(
        file=job.file,
        session=session.label,
        dialect=session.dialect or "",
        model=model,
        messages=len(session.messages),
        left_out=session.left_out,
    )
    try:
        recording = Recording(session, model, job.prices.card(model))
    except CompactError as error:
        return replace(played, error=str(error))
    without = [recording.tokens_before(place) for place in recording.calls]
    runs = [_Player(recording, policy, job.keep_requests, archive).play() for policy in job.policies]
    compared = min(len(run.sent) for run in runs)
    return replace(
        played,
        dialect=recording.dialect.NAME,
        calls=recording.calls,
        without=without,
        reused_without=recording.reused_before,
        compared=compared,
        output_tokens=recording.output_tokens(compared),
        cost_without=recording.cost(without, recording.reused_before, compared),
        runs=[
            replace(
                run,
                over_window_without=sum(tokens > run.window for tokens in without[:compared]),
                cost=recording.cost(run.sent, run.reused, compared),
            )
            for run in runs
        ],
    )


class Recording:
    """A session, read and counted once for all policies.

    Raises:
        MessageError: an entry is not a message.
    """

    def __init__(self, session: RecordedSession, model: str, card: Card | None) -> None:
        self.model = model
        self.dialect, self.neutral = dialects.read(session.messages, session.dialect)
        self.session = replace(session, dialect=self.dialect.NAME)
        self._card = card
        self.meter = _meter(model)
        self.fixed = self.meter.estimate([], session.tools, system=session.system).total
        self._raw = [0]
        for item in session.messages:
            self._raw.append(self._raw[-1] + self.count([item]))
        self.calls = model_calls(self.neutral)
        self.called_s = _call_times(session.times, self.calls)
        self.authority = [
            (place, _fingerprint(message, place))
            for place, message in enumerate(self.neutral)
            if message.role in _AUTHORITY
        ]
        self.index = IdentifierIndex(map(spoken, self.neutral))

    def count(self, items: Iterable[Any]) -> int:
        """Count the raw tokens of messages."""
        return sum(self.meter.count_item(item, self.dialect) for item in items)

    def cost(self, tokens: Sequence[int], reused: Sequence[int], calls: int) -> Cost | None:
        """Price the first `calls` requests and their replies; None if there are none, or the model has no price."""
        card = self._card
        if card is None or not calls:
            return None
        outputs = self._outputs(calls)
        sent = [
            Sent(tokens=size, unchanged=same, output=output, at_s=at_s)
            for size, same, output, at_s in zip(tokens, reused, outputs, self.called_s, strict=False)
        ][:calls]
        plain = sum(bill([replace(each, fresh=each.tokens)], card).cost for each in sent)
        return Cost(plain=round(plain, 6), cached=round(bill(sent, card).cost, 6))

    def tokens_before(self, place: int) -> int:
        """Count a request with all messages before a place."""
        return self.tokens_of(self._raw[place])

    def tokens_of(self, raw: int) -> int:
        """Count a request whose messages have this many raw tokens."""
        return self.meter.scale(raw + REPLY_TOKENS) + self.fixed

    @property
    def reused_before(self) -> list[int]:
        """For each request without compaction, the tokens that it shares with the one before."""
        shared = [self.meter.scale(self._raw[place]) + self.fixed for place in self.calls[:-1]]
        return [0, *shared] if self.calls else []

    def output_tokens(self, calls: int) -> int:
        """Count the tokens that the model wrote in its first `calls` replies."""
        return sum(self._outputs(calls))

    def _outputs(self, calls: int) -> list[int]:
        """Count what the model wrote in each of its first `calls` replies. Rounded up once, so that the sum is exact."""
        ends = [*self.calls[1:], len(self.neutral)]
        raw, sums = 0, [0]
        for start, stop in list(zip(self.calls, ends, strict=False))[:calls]:
            raw += self.count(m.origin for m in self.neutral[start:stop] if m.role == "assistant")
            sums.append(self.meter.scale(raw))
        return [after - before for before, after in pairwise(sums)]

    def newest_names(self, place: int, tokens: int) -> set[str]:
        """Collect the identifiers of the newest messages before a place that fit this many tokens."""
        found: set[str] = set()
        while place and self._raw[place] - self._raw[place - 1] <= tokens:
            place -= 1
            tokens -= self._raw[place + 1] - self._raw[place]
            found.update(name for name, _, _ in self.index.names_in(place))
        return found


class _Player:
    """One run of one session under one policy."""

    def __init__(
        self,
        recording: Recording,
        policy: Policy,
        keep_requests: bool,
        archive: Callable[[], Archive] | None,
    ) -> None:
        self._recording = recording
        self._policy = policy
        self._keep_requests = keep_requests
        # A replay knows no time between calls, in which a pass could be made.
        in_calls = policy.config.policy.model_copy(update={"background_pct": None})
        config = policy.config.model_copy(update={"model": recording.model, "policy": in_calls})
        if archive is None:
            config = config.model_copy(update={"archive": type(config.archive)(adapter="memory")})
        window = window_of(
            recording.model,
            configured=config.max_context_tokens,
            windows=config.windows,
            table=model_table().with_rows(config.models),
        )
        self._window, self._budget = window.tokens, config.budget(window.tokens)
        self._now = _time(next((each for each in recording.called_s if each is not None), None))
        self._manager = CompactManager(
            config, archive=None if archive is None else archive(), clock=lambda: self._now
        )
        self._before: list[Any] = []
        self._raw = 0
        self._authority: list[tuple[Any, int]] = []
        self._intake = Intake()
        self._outcome: Any = None
        self._events = 0
        self.sent: list[int] = []
        self.reused: list[int] = []
        self.steps: list[Step] = []
        self.illegal: list[str] = []
        self.control: list[str] = []
        self.requests: list[dict[str, Any]] = []

    def play(self) -> Run:
        recording, error, done = self._recording, None, 0
        session = recording.session
        with self._manager:
            for call, place in enumerate(recording.calls):
                if recording.called_s[call] is not None:
                    self._now = max(self._now, _time(recording.called_s[call]))
                given = [*self._before, *session.messages[done:place]]
                try:
                    sent = list(self._manager.preflight(session.id, given, **session.request))
                except CompactError as problem:
                    error = f"call {call + 1}: {problem.code}: {problem}"
                    break
                self._measure(call, place, given, sent)
                done = place
            last = len(self.sent) - 1
            if self._keep_requests and self.sent and (not self.requests or self.requests[-1]["call"] != last):
                self._keep(last)
        return self._run(error)

    def _measure(self, call: int, place: int, given: list[Any], sent: list[Any]) -> None:
        recording = self._recording
        same = _shared_start(self._before, sent)
        extends = same == len(self._before)
        prefix = self._raw if extends else recording.count(sent[:same])
        self._raw = prefix + recording.count(sent[same:])
        self.sent.append(recording.tokens_of(self._raw))
        self.reused.append(recording.meter.scale(prefix) + recording.fixed if call else 0)
        self._check_legal(call, sent)
        self._check_control(call, place, sent, same if extends else 0)
        self._before = sent
        outcome = self._manager.last_outcome(recording.session.id)
        if outcome is not None and outcome is not self._outcome and outcome.step is not None:
            self.steps.append(self._step(call, place, given, sent, outcome))
        self._outcome = outcome
        if self._keep_requests and not extends:
            self._keep(call)

    def _check_legal(self, call: int, sent: list[Any]) -> None:
        dialect = self._recording.dialect
        if dialect.NAME == "harness" or self._intake.is_legal(sent, dialect):
            return
        for one in violations_in([dialect.read(item) for item in sent], dialect):
            if len(self.illegal) < _MOST_REASONS:
                self.illegal.append(f"call {call + 1}: message {one.index}: {one.rule}: {one.message}")

    def _check_control(self, call: int, place: int, sent: list[Any], known: int) -> None:
        """Check that system messages are complete, unaltered, in order, and in front if they were in front."""
        if not known:
            self._authority = []
        read = self._recording.dialect.read
        new = enumerate(sent[known:], known)
        self._authority += [(item, index) for index, item in new if read(item).role in _AUTHORITY]
        found = [_fingerprint(read(item), index) for item, index in self._authority]
        expected = [one for at, one in self._recording.authority if at < place]
        problems = differences(expected, found)
        if not problems and _leading(found) < _leading(expected):
            problems = [f"{found[_leading(found)].id} no longer stands in front"]
        self.control += [f"call {call + 1}: {what}" for what in problems]

    def _step(self, call: int, place: int, given: list[Any], sent: list[Any], outcome: Any) -> Step:
        recording = self._recording
        recent = recording.newest_names(place, self.sent[-1])
        needs = recording.index.needed(place, recent)
        text = "\n".join(spoken(recording.dialect.read(item)).text for item in sent)
        return Step(
            call=call,
            number=outcome.step,
            reason=self._reason(),
            tokens_before=recording.tokens_of(recording.count(given)),
            tokens_after=self.sent[-1],
            messages_before=len(given),
            messages_after=len(sent),
            saved=dict(outcome.saved),
            needed=len(needs),
            kept=sum(is_kept(one, text) for one in needs),
        )

    def _reason(self) -> str:
        """Read from its event why the newest pass was made."""
        self._manager.flush()
        events = self._manager.archive.events(self._recording.session.id, self._events)
        self._events += len(events)
        return next((e.properties.reason for e in reversed(events) if isinstance(e.properties, Started)), "")

    def _keep(self, call: int) -> None:
        self.requests.append({"call": call, "tokens": self.sent[call], "messages": self._before})

    def _run(self, error: str | None) -> Run:
        recording = self._recording
        over = [call for call, tokens in enumerate(self.sent) if tokens > self._budget]
        last = [recording.dialect.read(item) for item in self._before]
        return Run(
            policy=self._policy.name,
            window=self._window,
            budget=self._budget,
            sent=self.sent,
            reused=self.reused,
            steps=self.steps,
            illegal=self.illegal,
            over_budget=over,
            control=self.control,
            over_window_without=0,
            cost=None,
            stopped_at=len(self.sent) if error else None,
            error=error,
            summary=next((m.text for m in last if m.text.startswith(SUMMARY_OPENS)), None),
            outline=[
                Outlined(each.role, recording.meter.scale(recording.count([each.origin])), _beginning(each))
                for each in last
            ],
            requests=self.requests,
        )


def _call_times(times: Sequence[float | None], calls: Sequence[int]) -> list[float | None]:
    """When the model was called: at the time of the message before its reply; None where the recording does not say."""
    return [times[place - 1] if 0 < place <= len(times) else None for place in calls]


def _time(seconds: float | None) -> datetime:
    """A time of the recording. Where it has none, the clock stands, so that every cache stays warm."""
    return _START if seconds is None else datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)


def _shared_start(before: Sequence[Any], after: Sequence[Any]) -> int:
    """Count the messages that two requests share at the start."""
    pairs = zip(before, after, strict=False)
    differ = (n for n, (one, other) in enumerate(pairs) if one is not other and one != other)
    return next(differ, min(len(before), len(after)))


def _fingerprint(message: Message, place: int) -> Fingerprint:
    words = f"{message.role}\x00{message.text or to_json(message.origin)}"
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
    return Fingerprint(message.role, f"m{place}", digest)


def _leading(found: Sequence[Fingerprint]) -> int:
    """Count those in front of everything else."""
    return next((n for n, one in enumerate(found) if one.id != f"m{n}"), len(found))


def _beginning(message: Message) -> str:
    """Take the first words of a message, masked before they are cut."""
    words = message.text or "; ".join(f"{call.name} {call.arguments_text}" for call in message.calls)
    words = words or "; ".join(result.text for result in message.results)
    flat = " ".join(_redactor().redact(words[:_LOOKED_AT]).split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "\N{HORIZONTAL ELLIPSIS}"


@lru_cache(maxsize=1)
def _redactor() -> Redactor:
    return Redactor()


@lru_cache(maxsize=4)
def _meter(model: str) -> Meter:
    return Meter(model)
