"""Stabilize a session: mask, choose, order, check. Artifacts are read twice, so that only what is kept is in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.errors import MessageError
from compact.messages.dialects import get
from compact.messages.dialects.harness import KINDS
from compact.tokens import Meter
from compact.tokens.meter import REPLY_TOKENS
from compact.tools.harness.artifacts import AUTHORITY, Entry, as_artifacts, check_artifact, digest_of, id_of
from compact.tools.harness.checks import Context
from compact.tools.harness.config import HarnessConfig
from compact.tools.harness.control import (
    Fingerprint,
    changes_over,
    differences,
    fingerprints,
    in_order,
    rank,
)
from compact.tools.harness.from_messages import MessageArtifact
from compact.tools.harness.masking import MaskingRule, mask_artifact
from compact.tools.harness.report import Report, artifact_line, check_lines
from compact.tools.harness.requests import to_request

_MEMO_BYTES = 8_000_000
"""Each artifact is counted once, so a larger memo would only grow with the file."""
_HARNESS = get("harness")


@dataclass(frozen=True, slots=True)
class Stabilized:
    """A context that may be sent, and the report on it. Artifacts that were not masked are the given objects."""

    artifacts: list[Mapping[str, Any]]
    report: Report

    def to_request(self, dialect: str = "chat") -> dict[str, Any]:
        """Turn the context into a provider's request: `{"messages": [...]}`, for anthropic with `"system"` (`to_request`)."""
        return to_request(self.artifacts, dialect)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The indices to keep, in context order, and a reason for each artifact."""

    kept: list[int]
    reasons: dict[int, str]


def stabilize(artifacts: Any, config: HarnessConfig | None = None, *, system: Any = None) -> Stabilized:
    """Make a session's context: masked, within the budget if possible, in a fixed order, and checked.

    Args:
        artifacts: A list of artifacts, `{"artifacts": [...]}`, messages of any dialect, or an `ArtifactStream`.
        config: Budget, rules, heuristic and checks.
        system: A system prompt beside messages.

    Returns:
        The context and its report. What must stay stays even if it does not fit; then the budget check fails.

    Raises:
        MessageError: an entry is not an artifact; names its index.
    """
    settings = config or HarnessConfig()
    source = as_artifacts(artifacts, system=system)
    assembler = _Assembler(settings)
    entries = [assembler.entry(item, index) for index, item in enumerate(source)]
    plan = _plan(entries, assembler, settings)
    wanted = set(plan.kept)
    by_index = {index: assembler.mask(item, index)[0] for index, item in enumerate(source) if index in wanted}
    context = [by_index[index] for index in plan.kept]
    size = assembler.total(context)
    chosen = [entries[index] for index in plan.kept]
    checks = assembler.check(context, chosen, in_order(_authority(entries)), size)
    if settings.every_turn and "order" in checks:
        checks["order"] = [*_over_turns(entries, assembler, settings), *checks["order"]]
    kept = [(entries[index], plan.reasons[index]) for index in plan.kept]
    dropped = [(entry, plan.reasons[entry.index]) for entry in entries if entry.index not in by_index]
    return Stabilized(context, assembler.report(size, checks, kept, dropped))


def validate(
    artifacts: Any,
    config: HarnessConfig | None = None,
    *,
    source: Any = None,
    system: Any = None,
    tokens: int | None = None,
) -> Report:
    """Run only the checks on a context. Nothing is masked, dropped or moved.

    With `source`, the session that the context was made from, system and task artifacts are also compared by hash. `tokens`
    is the size of the context, where more than the artifacts is sent; otherwise they are counted.

    Raises:
        MessageError: an entry is not an artifact; names its index.
    """
    settings = config or HarnessConfig()
    context = list(as_artifacts(artifacts, system=system))
    assembler = _Assembler(settings)
    entries = [assembler.entry(item, index, mask=False) for index, item in enumerate(context)]
    authority = None
    if source is not None:
        origin = list(as_artifacts(source, system=system))
        authority = in_order(fingerprints(origin, _Assembler(settings).names(origin)))
    size = assembler.total(context) if tokens is None else tokens
    checks = assembler.check(context, entries, authority, size)
    return assembler.report(size, checks, [(entry, "as it is") for entry in entries], [])


class _Assembler:
    """Masks, counts and checks with the parts of one configuration."""

    def __init__(self, config: HarnessConfig) -> None:
        self._config = config
        self._mask: MaskingRule = config.masking_rule()
        self._meter = Meter(config.model, memo_bytes=_MEMO_BYTES, count=config.count_tokens)
        self.reply = self._meter.scale(REPLY_TOKENS)
        self._names: Counter[str] = Counter()

    def entry(self, item: Mapping[str, Any], index: int, mask: bool = True) -> Entry:
        kind = check_artifact(item, index)
        sent, masked = self.mask(item, index) if mask else (item, 0)
        authority = item.get("authority")
        if authority is not None:
            authority = mask_artifact({"authority": authority}, self._mask)[0]["authority"]
        return Entry(
            index=index,
            id=self._name(item, index, kind),
            kind=kind if kind in KINDS else self._mask(kind)[0],
            tokens=self.size(sent),
            digest=digest_of(item, kind),
            role=item.get("role"),
            priority=item.get("priority") or 0,
            authority=authority,
            masked=masked,
            is_empty=kind == "message" and not item["content"].strip(),
        )

    def names(self, artifacts: Iterable[Mapping[str, Any]]) -> list[str]:
        """Name every artifact for reports."""
        return [self._name(item, index, check_artifact(item, index)) for index, item in enumerate(artifacts)]

    def _name(self, item: Mapping[str, Any], index: int, kind: str) -> str:
        """Name an artifact for reports: by its id, or by kind and index if there is none that may be shown."""
        name = id_of(item, index, kind)
        if not isinstance(item, MessageArtifact):
            own = item.get("id") is not None and name and not self._mask(name)[1]
            shown = kind in KINDS or not self._mask(kind)[1]
            name = name if own else f"{kind if shown else 'artifact'}-{index}"
        self._names[name] += 1
        count = self._names[name]
        return name if count == 1 else f"{name}#{count}"

    def size(self, item: Mapping[str, Any]) -> int:
        return self._meter.scale(self._meter.count_item(item, _HARNESS))

    def total(self, context: Sequence[Mapping[str, Any]]) -> int:
        return self._meter.estimate(context, dialect=_HARNESS, max_tokens=self._config.budget).total

    def check(
        self,
        context: list[Mapping[str, Any]],
        entries: list[Entry],
        authority: list[Fingerprint] | None,
        tokens: int,
    ) -> dict[str, Sequence[str]]:
        seen = Context(
            artifacts=context,
            tokens=tokens,
            ids=[entry.id for entry in entries],
            sizes=[entry.tokens for entry in entries],
            config=self._config,
            mask=self._mask,
            authority=authority,
        )
        return {name: list(check(seen)) for name, check in self._config.named_checks()}

    def report(
        self,
        tokens: int,
        checks: Mapping[str, Sequence[str]],
        kept: Sequence[tuple[Entry, str]],
        dropped: Sequence[tuple[Entry, str]],
    ) -> Report:
        return Report(
            passed=not any(checks.values()),
            tokens=tokens,
            budget=self._config.budget,
            checks=check_lines(checks),
            kept=[artifact_line(entry, reason, full=True) for entry, reason in kept],
            dropped=[artifact_line(entry, reason, full=False) for entry, reason in dropped],
            masked=sum(entry.masked for entry, _ in kept),
        )

    def mask(self, item: Mapping[str, Any], index: int) -> tuple[Mapping[str, Any], int]:
        """Mask an artifact. System and task are the operator's own words: they are checked, not changed."""
        if check_artifact(item, index) in AUTHORITY:
            return item, 0
        return mask_artifact(item, self._mask)


def _plan(entries: Sequence[Entry], assembler: _Assembler, config: HarnessConfig) -> _Plan:
    """Keep everything that must stay, then, in the heuristic's order, whatever still fits."""
    choices = list(config.chosen_heuristic()(entries, config))
    reasons = {
        entry.index: "it is empty" if entry.is_empty else "the heuristic did not ask for it"
        for entry in entries
    }
    chosen: set[int] = set()
    room = config.budget - assembler.reply
    for choice in sorted(choices, key=lambda choice: not choice.must):
        entry = choice.entry
        if entry.index in chosen:
            continue
        if choice.must or entry.tokens <= room:
            chosen.add(entry.index)
            room -= entry.tokens
            reasons[entry.index] = choice.reason
        else:
            reasons[entry.index] = f"it needs {entry.tokens:,} tokens, {max(0, room):,} were left"
    return _Plan(sorted(chosen, key=lambda index: (rank(entries[index].kind), index)), reasons)


def _over_turns(entries: Sequence[Entry], assembler: _Assembler, config: HarnessConfig) -> list[str]:
    """Describe what each earlier turn's context would have lost of the authority that the session had by then."""
    problems = []
    turn = 0
    for end, entry in enumerate(entries, 1):
        if entry.kind != "message" or entry.role == "assistant":
            continue
        turn += 1
        seen = entries[:end]
        kept = [entries[index] for index in _plan(seen, assembler, config).kept]
        found = differences(in_order(_authority(seen)), _authority(kept))
        problems += [f"turn {turn}: {what}" for what in found]
    return problems


def _authority(entries: Iterable[Entry]) -> list[Fingerprint]:
    return [Fingerprint(each.kind, each.id, each.digest) for each in entries if each.kind in AUTHORITY]


def validate_turns(turns: Iterable[Any], config: HarnessConfig | None = None) -> Report:
    """Check the requests of one session as they were sent, and compare their authority. One turn at a time is in memory.

    Args:
        turns: The contexts as sent: lists of artifacts, or of messages of any dialect.
        config: Budget, rules and checks.

    Returns:
        The report of the largest turn, with the problems of all turns, and one more check: `control`.

    Raises:
        MessageError: there are no turns, or one contains something that is not a message.
    """
    settings = config or HarnessConfig()
    problems: dict[str, list[str]] = {name: [] for name, _ in settings.named_checks()}
    largest: Report | None = None

    def check_each() -> Iterator[tuple[list[Mapping[str, Any]], list[str]]]:
        nonlocal largest
        for number, turn in enumerate(turns, 1):
            context = list(as_artifacts(turn))
            report = validate(context, settings)
            for check in report.checks:
                problems[check["name"]] += [f"turn {number}: {detail}" for detail in check["details"]]
            if largest is None or report.tokens > largest.tokens:
                largest = report
            yield context, [line["id"] for line in report.kept]

    problems["control"] = changes_over(check_each())
    if largest is None:
        raise MessageError("there are no turns to check", hint="Give one context for each request")
    return Report({**largest, "passed": not any(problems.values()), "checks": check_lines(problems)})
