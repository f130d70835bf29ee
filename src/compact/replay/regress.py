"""What got worse between two runs: the reports of `compact replay`, or of `compact harness`, held side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.errors import TranscriptError
from compact.replay.running import FORMAT

_FAULTS = ("failed", "illegal", "over_budget", "control")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """How much worse a run may be."""

    tokens: float = 0.02
    """Growth of the input tokens, as a share."""
    cost: float = 0.02
    """Growth of the cost, as a share."""
    retention: float = 0.02
    """Loss of retention, in absolute terms."""
    steps: float = 0.25
    """Growth of the number of compactions, as a share."""


@dataclass(frozen=True, slots=True)
class Change:
    """One number that differs between two runs."""

    where: str
    what: str
    before: float | str
    after: float | str
    worse: bool
    """Whether it got worse by more than is allowed."""


def read_report(path: Path) -> dict[str, Any]:
    """A JSON report of either command.

    Raises:
        TranscriptError: the file cannot be read, or is no such report.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise TranscriptError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}, line {line}" if line else str(path)
        raise TranscriptError(
            f"cannot read {where}: it is not JSON: {error}", path=str(path), line=line
        ) from None
    if not isinstance(data, dict) or not (
        data.get("format") == FORMAT or "checks" in data or _is_harness(data)
    ):
        raise TranscriptError(
            f"cannot read {path}: it is no report",
            hint="Expected what `compact replay --report x.json` or `compact harness --report x.json` wrote",
            path=str(path),
        )
    return data


def changes(before: Mapping[str, Any], after: Mapping[str, Any], allowed: Thresholds) -> list[Change]:
    """Everything that differs, the worst first.

    Raises:
        TranscriptError: one is a report of replay, the other of the harness.
    """
    if (before.get("format") == FORMAT) != (after.get("format") == FORMAT):
        raise TranscriptError(
            "one report is of `compact replay`, the other of `compact harness`",
            hint="Compare two of the same kind",
        )
    found = (
        _replays(before, after, allowed)
        if before.get("format") == FORMAT
        else _harness(before, after, allowed)
    )
    return sorted(found, key=lambda change: not change.worse)


def _replays(before: Mapping[str, Any], after: Mapping[str, Any], allowed: Thresholds) -> Iterator[Change]:
    old = {summary["policy"]: summary for summary in before["summary"]}
    new = {summary["policy"]: summary for summary in after["summary"]}
    if len(old) == len(new) == 1:  # a policy that was renamed is still the same policy
        new = dict(zip(old, new.values(), strict=True))
    for policy in old.keys() - new.keys():
        yield Change(policy, "policy", "present", "missing", worse=True)
    for policy, was in old.items():
        if policy in new:
            yield from _summaries(policy, was, new[policy], allowed)
    yield from _sessions(before, after)


def _summaries(
    policy: str, was: Mapping[str, Any], now: Mapping[str, Any], allowed: Thresholds
) -> Iterator[Change]:
    for fault in _FAULTS:
        if was[fault] != now[fault]:
            yield Change(
                policy, fault.replace("_", " "), was[fault], now[fault], worse=now[fault] > was[fault]
            )
    limits = (
        ("input_tokens", allowed.tokens),
        ("cost", allowed.cost),
        ("cost_cached", allowed.cost),
        ("steps", allowed.steps),
    )
    for name, limit in limits:
        a, b = was[name], now[name]
        if a is not None and b is not None and a != b:
            yield Change(policy, name.replace("_", " "), a, b, worse=b > a * (1 + limit))
    a, b = was["retention"], now["retention"]
    if a is not None and b is not None and a != b:
        yield Change(policy, "retention", a, b, worse=a - b > allowed.retention)


def _sessions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Sessions that were fine and are not any more."""
    fine = {_name(one) for one in before["sessions"] if _is_fine(one)}
    present = {_name(one) for one in after["sessions"]}
    for one in after["sessions"]:
        if _name(one) in fine and not _is_fine(one):
            yield Change(_name(one), "session", "fine", "failed", worse=True)
    for name in sorted({_name(one) for one in before["sessions"]} - present):
        yield Change(name, "session", "present", "missing", worse=True)


def _harness(before: Mapping[str, Any], after: Mapping[str, Any], allowed: Thresholds) -> Iterator[Change]:
    old, new = _reports(before), _reports(after)
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            yield Change(name, "session", "present", "missing", worse=True)
            continue
        passed = {check["name"]: check["passed"] for check in now["checks"]}
        for check in was["checks"]:
            verdict = passed.get(check["name"])
            if verdict is not check["passed"]:
                words = {True: "passed", False: "failed", None: "missing"}
                worse = check["passed"] and not verdict
                yield Change(
                    name, f"check {check['name']}", words[check["passed"]], words[verdict], worse=worse
                )
        if was["tokens"] != now["tokens"]:
            worse = now["tokens"] > was["tokens"] * (1 + allowed.tokens)
            yield Change(name, "tokens", was["tokens"], now["tokens"], worse=worse)


def _reports(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    if "sessions" not in data:
        return {"session": data}
    return {f"{one['file']}: {one['session']}": one for one in data["sessions"]}


def _is_harness(data: Mapping[str, Any]) -> bool:
    sessions = data.get("sessions")
    return isinstance(sessions, list) and all(isinstance(one, dict) and "checks" in one for one in sessions)


def _name(session: Mapping[str, Any]) -> str:
    return str(session["session"])


def _is_fine(session: Mapping[str, Any]) -> bool:
    runs: Sequence[Mapping[str, Any]] = session["runs"]
    return not session["error"] and not any(
        run["illegal"] or run["over_budget"] or run["control"] or run["error"] for run in runs
    )
