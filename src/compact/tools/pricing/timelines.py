"""Timelines: the requests of a session with their times, sizes and usage. Read from whatever recorded them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from compact.errors import CompactError
from compact.events import moment
from compact.messages import dialects
from compact.tokens import Meter
from compact.tokens.meter import REPLY_TOKENS
from compact.tools.transcripts import RecordedSession, claude_code, fail, read_sessions
from compact.tools.transcripts.model_calls import model_calls, seconds_of
from compact.tools.transcripts.recorded_session import masked
from compact.tools.transcripts.transcript_file import TranscriptFile

HOUR_S, FIVE_MINUTES_S = 3600.0, 300.0
USUAL_HEAD = 20_000
"""Tokens of system prompt and tools, where a recording does not show how large they are: the median of those that do."""
_SHRUNK = 0.9
"""A request that is smaller than this share of the one before follows a compaction of the host's own."""
_SERVED = 0.9
"""A request within the cache's life that reads less than this share of the one before has lost its cache."""
_EVENTS = "events.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a provider reported of a request's input."""

    fresh: int
    cache_read: int
    cache_write: int
    life_s: float
    """For how long it was put into the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One recorded request."""

    tokens: int
    output: int = 0
    start_s: float | None = None
    usage: Usage | None = None


@dataclass(frozen=True)
class Timeline:
    """One recorded session."""

    id: str
    requests: Sequence[Request]

    @cached_property
    def shrunk(self) -> frozenset[int]:
        """The requests before which the host compacted."""
        pairs = zip(self.requests, self.requests[1:], strict=False)
        return frozenset(n for n, (one, two) in enumerate(pairs, 1) if two.tokens < one.tokens * _SHRUNK)

    @cached_property
    def lost(self) -> frozenset[int]:
        """The requests before which the cache was lost within its life: the host changed its prompt, or the provider dropped it."""
        found = set()
        for n, (one, two) in enumerate(zip(self.requests, self.requests[1:], strict=False), 1):
            if n in self.shrunk or one.usage is None or two.usage is None:
                continue
            gap_s = _gap(one, two)
            life_s = max(one.usage.life_s, two.usage.life_s)
            if gap_s is not None and gap_s <= life_s and two.usage.cache_read < one.tokens * _SERVED:
                found.add(n)
        return frozenset(found)

    @cached_property
    def head(self) -> int:
        """The tokens of system prompt and tools, which no pass touches: the least that was read after a change of the prefix."""
        if not self.requests:
            return 0
        usages = (self.requests[n].usage for n in self.shrunk | self.lost)
        reads = [usage.cache_read for usage in usages if usage is not None and usage.cache_read]
        return min(min(reads, default=USUAL_HEAD), self.requests[0].tokens)


def _gap(one: Request, two: Request) -> float | None:
    if one.start_s is None or two.start_s is None:
        return None
    return two.start_s - one.start_s


def read_timelines(paths: Iterable[Path], model: str, *, lenient: bool = False) -> Iterator[Timeline]:
    """Read the sessions of files: timelines, Claude Code's session files, event logs, and every other transcript.

    A transcript without usage is counted for `model`, and no time passes in it.

    Raises:
        TranscriptError: a file cannot be read; says which line.
    """
    for path in paths:
        with TranscriptFile(path, lenient, None) as file:
            lines = iter(file)
            first = next(lines, None)
            value = None if first is None else first.value
        if _is_timeline(value):
            yield from _read(path, lenient, _from_line)
        elif _is_event(value):
            yield from _from_events(path, lenient)
        elif claude_code.recognises(value):
            yield from _from_claude_code(path, lenient, model)
        else:
            yield from _from_transcript(path, lenient, model)


def logs_in(folder: Path) -> list[Path]:
    """The event logs of an archive below a folder, in the order of their names; none if there is no archive."""
    return sorted(folder.rglob(_EVENTS))


# --- timelines


def _is_timeline(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("requests"), list) and "messages" not in value


def _read(path: Path, lenient: bool, read: Any) -> Iterator[Timeline]:
    with TranscriptFile(path, lenient, None) as file:
        for line in file:
            try:
                found = read(line.value)
            except (KeyError, TypeError, ValueError) as problem:
                file.reject(line.line, f"it is not a timeline: {type(problem).__name__} at {problem}")
                continue
            if found.requests:
                yield found


def _from_line(value: Mapping[str, Any]) -> Timeline:
    return Timeline(masked(str(value["id"])), [_request(each) for each in value["requests"]])


def _request(entry: Mapping[str, Any]) -> Request:
    usage = Usage(
        fresh=_count(entry["fresh"]),
        cache_read=_count(entry["cache_read"]),
        cache_write=_count(entry["cache_write"]),
        life_s=HOUR_S if _count(entry.get("write_1h", 0)) else FIVE_MINUTES_S,
    )
    return _with_usage(usage, _count(entry["output"]), float(entry["start"]))


def _with_usage(usage: Usage, output: int, start_s: float | None) -> Request:
    tokens = usage.fresh + usage.cache_read + usage.cache_write
    return Request(tokens=tokens, output=output, start_s=start_s, usage=usage)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r:.40} is not a number of tokens")
    return value


# --- event logs


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("name")).startswith("compact.")


def _from_events(path: Path, lenient: bool) -> Iterator[Timeline]:
    """Each decision sends one request: of the size that was counted, or that the pass left."""
    sizes: dict[str, int] = {}
    requests: dict[str, list[Request]] = {}
    with TranscriptFile(path, lenient, None) as file:
        for line in file:
            try:
                event = line.value
                name, session, properties = event["name"], str(event["session_id"]), event["properties"]
                if name == "compact.token_estimate":
                    sizes[session] = _count(properties["t_est"])
                    continue
                if name == "compact.finished":
                    tokens = _count(properties["tokens_after"])
                elif name == "compact.trigger_decision" and not properties["triggered"]:
                    tokens = sizes[session]
                else:
                    continue
                start_s = moment(event["started_at"]).timestamp()
            except (KeyError, TypeError, ValueError) as problem:
                file.reject(line.line, f"it is not an event: {type(problem).__name__} at {problem}")
                continue
            requests.setdefault(session, []).append(Request(tokens=tokens, start_s=start_s))
    for session, found in requests.items():
        yield Timeline(masked(session), found)


# --- transcripts


def _from_claude_code(path: Path, lenient: bool, model: str) -> Iterator[Timeline]:
    """Each reply reports its usage; the line before it says when it was asked for."""
    found: dict[str, Request] = {}
    session, before_s = "", None
    with TranscriptFile(path, lenient, None) as file:
        for line in file:
            value = line.value
            if not isinstance(value, dict) or value.get("isSidechain"):
                continue
            session = session or str(value.get("sessionId") or "")
            at_s = seconds_of(value.get("timestamp"))
            message = value.get("message")
            if value.get("type") == "assistant" and isinstance(message, dict):
                request = _of_reply(message, before_s if before_s is not None else at_s)
                key = str(message.get("id") or f"line {line.line}")
                if request is not None:  # the lines of one reply repeat its usage
                    start_s = found[key].start_s if key in found else request.start_s
                    found[key] = replace(request, start_s=start_s)
            before_s = before_s if at_s is None else at_s
    if found:
        yield Timeline(masked(session or path.name), list(found.values()))
    else:
        yield from _from_transcript(path, lenient, model)


def _of_reply(message: Mapping[str, Any], start_s: float | None) -> Request | None:
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    kinds = usage.get("cache_creation")
    for_an_hour = isinstance(kinds, dict) and bool(kinds.get("ephemeral_1h_input_tokens"))
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    try:
        fresh, read, write, output = (_count(usage.get(name) or 0) for name in names)
    except ValueError:
        return None
    if not fresh + read + write:
        return None  # a line that Claude Code wrote itself
    life_s = HOUR_S if for_an_hour else FIVE_MINUTES_S
    return _with_usage(Usage(fresh=fresh, cache_read=read, cache_write=write, life_s=life_s), output, start_s)


def _from_transcript(path: Path, lenient: bool, model: str) -> Iterator[Timeline]:
    for session in read_sessions(path, lenient):
        try:
            requests = _counted(session, model)
        except CompactError as problem:
            if not lenient:
                fail(path, f"session {session.label}: {problem}")
            continue
        if requests:
            yield Timeline(session.label, requests)


def _counted(session: RecordedSession, model: str) -> list[Request]:
    """The requests of a transcript that reports no usage, by our own count."""
    dialect, messages = dialects.read(session.messages, session.dialect)
    meter = Meter(session.model or model)
    fixed = meter.estimate([], session.tools, system=session.system).total
    raw = [0]
    for item in session.messages:
        raw.append(raw[-1] + meter.count_item(item, dialect))
    calls = model_calls(messages)
    found = []
    for place, end in zip(calls, [*calls[1:], len(messages)], strict=True):
        replies = (n for n in range(place, end) if messages[n].role == "assistant")
        written = sum(raw[n + 1] - raw[n] for n in replies)
        at_s = session.times[place - 1] if 0 < place <= len(session.times) else None
        size = meter.scale(raw[place] + REPLY_TOKENS) + fixed
        found.append(Request(tokens=size, output=meter.scale(written), start_s=at_s))
    return found
