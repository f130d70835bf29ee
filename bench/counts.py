"""Our count of a request against what its provider counted, on sessions that were recorded with their usage.

Each recorded request goes through `preflight` in a window that is never full, and the usage of its reply through `observe`.
What is judged is the estimate of each request but a session's first. What was learned of the model before comes from other
sessions than the judged one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import REPO, Figure, Skipped, recorded
from compact import CompactConfig, CompactManager
from compact.tokens import Meter
from compact.tools.transcripts import read_sessions

FILES = ("claude_code_small", "openhands_output", "pi_large_session")
EXCERPTS = ("claude_code_small", "openhands_one_run", "pi_session_start")
"""What the repository itself has of them."""
_FAILED = ("aborted", "error")
_PARTS = ("input", "cacheRead", "cacheWrite")
_ANTHROPIC = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True)
class Recording:
    """A session as it was recorded: what each reply answers, and how many tokens the provider counted in that request."""

    name: str
    model: str
    dialect: str
    messages: list[Any]
    tools: Any
    requests: list[tuple[int, int]]
    """How many of the messages were sent, and what was counted."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An estimate beside what was counted."""

    session: str
    estimate: int
    counted: int

    @property
    def is_under(self) -> bool:
        """Whether the request was larger than the estimate."""
        return self.estimate < self.counted

    @property
    def is_close(self) -> bool:
        """Whether the estimate is at most 3% above, and not below."""
        return self.counted <= self.estimate <= self.counted * 1.03


def bench_behind_the_first_reply() -> Iterator[Figure]:
    """Estimates of requests behind the first observed reply, against recorded usage; learned from other sessions."""
    found = judge(_recordings())
    yield Figure(
        f"% of {len(found):,} requests estimated too low", _share(one.is_under for one in found), "%", 1
    )
    close = _share(one.is_close for one in found)
    yield Figure("% of them estimated at most 3% too high", close, "%", 97, at_least=True)


def bench_claude_factor() -> Iterator[Figure]:
    """Tokens that Claude's provider counts for each of cl100k_base, over the growth of recorded sessions."""
    for recording in _recordings():
        if recording.model == "claude-sonnet-4-5":
            factor = growth_factor(recording)
            yield Figure(f"times cl100k_base, {recording.name}", factor, "x", 1.2)


def growth_factor(recording: Recording) -> float:
    """By how much requests grew by the provider's count, for each token by ours without its margin."""
    meter, raw, counted = Meter(recording.model), 0, 0
    sizes = [meter.count_item(message, recording.dialect) for message in recording.messages]
    for (start, before), (stop, after) in zip(recording.requests, recording.requests[1:], strict=False):
        if after > before:
            raw, counted = raw + sum(sizes[start:stop]), counted + after - before
    return counted / raw


def judge(recordings: list[Recording]) -> list[Judged]:
    """Estimate every request of each recording but the first, with what the others of its model teach."""
    found: list[Judged] = []
    for recording in recordings:
        config = CompactConfig(
            model=recording.model, max_context_tokens=10_000_000, archive={"adapter": "memory"}
        )
        with CompactManager(config) as manager:
            for other in recordings:
                if other is not recording and other.model == recording.model:
                    _play(manager, other)
            found += _play(manager, recording)[1:]
    return found


def _play(manager: CompactManager, recording: Recording) -> list[Judged]:
    for stop, counted in recording.requests:
        items = recording.messages[:stop]
        manager.preflight(recording.name, items, tools=recording.tools, dialect=recording.dialect)
        manager.observe(recording.name, input_tokens=counted)
    manager.flush()
    lines = (event.to_json() for event in manager.archive.events(recording.name))
    estimates = [line["properties"]["t_est"] for line in lines if line["name"] == "compact.token_estimate"]
    counts = (counted for _, counted in recording.requests)
    return [Judged(recording.name, *pair) for pair in zip(estimates, counts, strict=True)]


def _share(verdicts: Iterable[bool]) -> float:
    found = list(verdicts)
    return 100 * sum(found) / len(found)


def _recordings() -> list[Recording]:
    paths = [path for path in recorded("raw/*.jsonl.gz") if path.name.split(".")[0] in FILES]
    if len(paths) < len(FILES):
        raise Skipped.for_want_of_data(f"{len(paths)} of {len(FILES)} files in raw/")
    return list(read_recordings(paths))


def excerpts() -> list[Recording]:
    """The recordings of which the repository has the beginning."""
    folder = REPO / "tests" / "fixtures" / "raw"
    return list(read_recordings(folder / f"{name}.jsonl.gz" for name in EXCERPTS))


def read_recordings(paths: Iterable[Path]) -> Iterator[Recording]:
    """Read sessions together with the usage of their replies. Usage of aborted replies is left out."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            usages = _usages([json.loads(line) for line in lines])
        for session, counts in zip(read_sessions(path), usages, strict=True):
            places = [n for n, message in enumerate(session.messages) if message["role"] == "assistant"]
            requests = [
                (n, count)
                for n, count in zip(places, counts, strict=True)
                if count and not _is_failed(session.messages[n])
            ]
            # All Claude models up to 4.6 have one tokenizer.
            model = "claude-sonnet-4-5" if session.dialect == "anthropic" else "llama-4-maverick"
            yield Recording(
                session.id, model, str(session.dialect), session.messages, session.tools, requests
            )


def _is_failed(message: dict[str, Any]) -> bool:
    return message.get("stop_reason") in _FAILED


def _usages(lines: list[dict[str, Any]]) -> list[list[int]]:
    """What the provider counted for each reply, by session."""
    if "history" in lines[0]:
        return [_usages_of_run(line["history"]) for line in lines]
    found: dict[Any, int] = {}
    for place, line in enumerate(lines):
        message = line.get("message") or {}
        if message.get("role") == "assistant" and message["content"]:
            usage = message["usage"]
            names = _ANTHROPIC if "input_tokens" in usage else _PARTS
            found[message.get("id") or place] = sum(usage.get(name) or 0 for name in names)
    return [list(found.values())]


def _usages_of_run(history: list[dict[str, Any]]) -> list[int]:
    found: dict[Any, int] = {}
    for event in history:
        response = (event.get("tool_call_metadata") or {}).get("model_response")
        if response and "action" in event:
            found[response["id"]] = response["usage"]["prompt_tokens"]
        elif event.get("action") == "message" and event.get("source") != "user":
            found[event["id"]] = 0  # no usage is recorded
    return list(found.values())
