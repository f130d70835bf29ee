"""Compare two runs: what got worse between two reports of `compact replay`, or of `compact harness`?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from pathlib import PurePath
from typing import TypeVar

from compact.errors import TranscriptError
from compact.tools.replay.reports import (
    AnyReport,
    HarnessReport,
    NamedStability,
    PolicyNumbers,
    ReplayedSession,
    ReplayReport,
    Stability,
    read_report,
)

__all__ = ["Allowance", "Change", "changes", "read_report"]

_FAULTS = ("failed", "illegal", "over_budget", "control")
_SUMS = ("input_tokens", "cost", "cost_cached", "steps")
_VERDICTS = {True: "passed", False: "failed", None: "missing"}
_UNNAMED = "session"

_S = TypeVar("_S", ReplayedSession, NamedStability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
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


def changes(before: AnyReport, after: AnyReport, allowed: Allowance) -> list[Change]:
    """List everything that differs, changes for the worse first.

    Raises:
        TranscriptError: one report is of replay, the other of the harness.
    """
    if isinstance(before, ReplayReport) and isinstance(after, ReplayReport):
        found = _compare_replays(before, after, allowed)
    elif isinstance(before, ReplayReport) or isinstance(after, ReplayReport):
        raise TranscriptError(
            "one report is of `compact replay`, the other of `compact harness`",
            hint="Compare two of the same kind",
        )
    else:
        found = _compare_stability(*_by_name(before, after), allowed)
    return sorted(found, key=lambda change: not change.worse)


def _compare_replays(before: ReplayReport, after: ReplayReport, allowed: Allowance) -> Iterator[Change]:
    old = {summary.policy: summary for summary in before.summary}
    new = {summary.policy: summary for summary in after.summary}
    if len(old) == len(new) == 1:  # a renamed policy is still the same policy
        new = dict(zip(old, new.values(), strict=True))
    for policy in old.keys() - new.keys():
        yield Change(policy, "policy", "present", "missing", worse=True)
    for policy, was in old.items():
        if policy in new:
            yield from _compare_numbers(policy, was, new[policy], allowed)
    was_sessions, now_sessions = pair_sessions(before.sessions, after.sessions)
    for name, now in now_sessions.items():
        earlier = was_sessions.get(name)
        if not now.is_fine and (earlier is None or earlier.is_fine):
            yield Change(name, "session", "missing" if earlier is None else "fine", "failed", worse=True)
    for name in sorted(was_sessions.keys() - now_sessions.keys()):
        yield Change(name, "session", "present", "missing", worse=True)


def _compare_numbers(
    policy: str, was: PolicyNumbers, now: PolicyNumbers, allowed: Allowance
) -> Iterator[Change]:
    growth = {
        **dict.fromkeys(_FAULTS, 0.0),
        "input_tokens": allowed.tokens,
        "cost": allowed.cost,
        "cost_cached": allowed.cost,
        "steps": allowed.steps,
    }
    sums: Sequence[str] = ()
    if was.calls is not None and now.calls is not None and was.calls != now.calls:
        yield Change(policy, "calls", was.calls, now.calls, worse=now.calls < was.calls)
        sums = _SUMS
    for name in (*growth, "retention"):
        if name in sums:  # sums over different calls say nothing about each other
            continue
        a, b = getattr(was, name), getattr(now, name)
        if a is None or b is None or a == b:
            continue
        worse = a - b > allowed.retention if name == "retention" else b > a * (1 + growth[name])
        yield Change(policy, name.replace("_", " "), a, b, worse=worse)


def _compare_stability(
    old: Mapping[str, Stability], new: Mapping[str, Stability], allowed: Allowance
) -> Iterator[Change]:
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            yield Change(name, "session", "present", "missing", worse=True)
            continue
        yield from _compare_checks(name, was, now)
        if was.tokens != now.tokens:
            worse = now.tokens > was.tokens * (1 + allowed.tokens)
            yield Change(name, "tokens", was.tokens, now.tokens, worse=worse)
    for name, now in new.items():
        if name not in old:
            passed = all(check.passed for check in now.checks)
            yield Change(name, "session", "missing", _VERDICTS[passed], worse=not passed)


def _compare_checks(name: str, was: Stability, now: Stability) -> Iterator[Change]:
    """Compare checks. A missing check is worse if it passed before, a new one if it fails."""
    old = {check.name: check.passed for check in was.checks}
    new = {check.name: check.passed for check in now.checks}
    for check in {**old, **new}:
        before, after = old.get(check), new.get(check)
        if before is not after:
            worse = after is False or (before is True and after is None)
            yield Change(name, f"check {check}", _VERDICTS[before], _VERDICTS[after], worse=worse)


def _by_name(
    before: HarnessReport | Stability, after: HarnessReport | Stability
) -> tuple[Mapping[str, Stability], Mapping[str, Stability]]:
    """Name the sessions of two reports of the harness. The report on a single session does not say which it is."""
    if isinstance(before, Stability) and isinstance(after, Stability):
        return {_UNNAMED: before}, {_UNNAMED: after}
    if isinstance(before, Stability):
        new, old = _by_name(after, before)
        return old, new
    many, others = pair_sessions(before.sessions, getattr(after, "sessions", before.sessions))
    return many, {_find(after, many): after} if isinstance(after, Stability) else others


def _find(wanted: Stability, sessions: Mapping[str, Stability]) -> str:
    """Name the only session, or the only one with the same artifacts."""
    same = [name for name, one in sessions.items() if one.artifacts == wanted.artifacts]
    found = list(sessions) if len(sessions) == 1 else same
    return found[0] if len(found) == 1 else _UNNAMED


def pair_sessions(before: Sequence[_S], after: Sequence[_S]) -> tuple[dict[str, _S], dict[str, _S]]:
    """Name the sessions of two reports by file and session, so that the same session has the same name in both.

    The reports' files may lie in different folders: leading folders that all paths of a report share are dropped, as few as
    let the most files agree.
    """
    old, new = ({PurePath(one.file).parts for one in sessions} for sessions in (before, after))
    cuts = product(range(_shared_folders(old) + 1), range(_shared_folders(new) + 1))

    def agreement(cut: tuple[int, int]) -> int:
        return len({file[cut[0] :] for file in old} & {file[cut[1] :] for file in new})

    best = max(sorted(cuts, key=lambda cut: (sum(cut), cut)), key=agreement)
    return _name_all(before, best[0]), _name_all(after, best[1])


def _shared_folders(files: set[tuple[str, ...]]) -> int:
    levels = zip(*(file[:-1] for file in files), strict=False)
    return sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, levels))


def _name_all(sessions: Sequence[_S], cut: int) -> dict[str, _S]:
    found: dict[str, _S] = {}
    times: Counter[str] = Counter()
    for session in sessions:
        name = f"{PurePath(*PurePath(session.file).parts[cut:])}: {session.session}"
        times[name] += 1
        found[name if times[name] == 1 else f"{name} ({times[name]})"] = session
    return found
