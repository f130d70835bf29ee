"""What got worse between two runs: the reports of `compact replay`, or of `compact harness`, held side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.errors import TranscriptError
from compact.tools.replay.pairing import Session, named, same_artifacts
from compact.tools.replay.reports import FAULTS, is_replay, read_report

__all__ = ["Change", "Thresholds", "changes", "read_report"]

_VERDICTS = {True: "passed", False: "failed", None: "missing"}
_BARE = "session"


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


def changes(before: Mapping[str, Any], after: Mapping[str, Any], allowed: Thresholds) -> list[Change]:
    """Everything that differs, the worst first.

    Raises:
        TranscriptError: one is a report of replay, the other of the harness.
    """
    if is_replay(before) != is_replay(after):
        raise TranscriptError(
            "one report is of `compact replay`, the other of `compact harness`",
            hint="Compare two of the same kind",
        )
    compare = _replays if is_replay(before) else _harness
    return sorted(compare(before, after, allowed), key=lambda change: not change.worse)


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
    for fault in FAULTS:
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
    """Sessions that are not fine and were, or were not there."""
    old, new = named(before["sessions"], after["sessions"])
    for name, now in new.items():
        was = old.get(name)
        if not _is_fine(now) and (was is None or _is_fine(was)):
            yield Change(name, "session", "missing" if was is None else "fine", "failed", worse=True)
    for name in sorted(old.keys() - new.keys()):
        yield Change(name, "session", "present", "missing", worse=True)


def _is_fine(session: Session) -> bool:
    runs: Sequence[Mapping[str, Any]] = session["runs"]
    return not session["error"] and not any(
        run["illegal"] or run["over_budget"] or run["control"] or run["error"] for run in runs
    )


def _harness(before: Mapping[str, Any], after: Mapping[str, Any], allowed: Thresholds) -> Iterator[Change]:
    old, new = _stability(before, after)
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            yield Change(name, "session", "present", "missing", worse=True)
            continue
        yield from _checks(name, was, now)
        if was["tokens"] != now["tokens"]:
            worse = now["tokens"] > was["tokens"] * (1 + allowed.tokens)
            yield Change(name, "tokens", was["tokens"], now["tokens"], worse=worse)
    for name, now in new.items():
        if name not in old:
            passed = all(check["passed"] for check in now["checks"])
            yield Change(name, "session", "missing", _VERDICTS[passed], worse=not passed)


def _checks(name: str, was: Session, now: Session) -> Iterator[Change]:
    """The checks whose result differs; one that is missing now is worse if it passed, a new one if it failed."""
    old = {check["name"]: check["passed"] for check in was["checks"]}
    new = {check["name"]: check["passed"] for check in now["checks"]}
    for check in {**old, **new}:
        before, after = old.get(check), new.get(check)
        if before is not after:
            worse = after is False or (before is True and after is None)
            yield Change(name, f"check {check}", _VERDICTS[before], _VERDICTS[after], worse=worse)


def _stability(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Session], dict[str, Session]]:
    """The sessions of two reports of the harness by name. The report of a single session does not say which it is."""
    if "sessions" in before and "sessions" in after:
        return named(before["sessions"], after["sessions"])
    if "sessions" in before:
        new, old = _bare_beside(after, before["sessions"])
        return old, new
    if "sessions" in after:
        return _bare_beside(before, after["sessions"])
    return {_BARE: before}, {_BARE: after}


def _bare_beside(bare: Session, many: Sequence[Session]) -> tuple[dict[str, Session], dict[str, Session]]:
    by_name, _ = named(many, many)
    place = same_artifacts(bare, many)
    return {_BARE if place is None else list(by_name)[place]: bare}, by_name
