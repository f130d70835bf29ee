"""`stabilize`: mask, choose, order, check. Two readings of the artifacts, so that only what is kept is ever held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.messages.dialects import get
from compact.tokens import Meter
from compact.tokens.meter import REPLY_TOKENS
from compact.tools.harness.artifacts import AUTHORITY, as_artifacts
from compact.tools.harness.checks import Context
from compact.tools.harness.config import HarnessConfig
from compact.tools.harness.control import Fingerprint, differences, fingerprints, in_order
from compact.tools.harness.entries import Entry, checked, digest_of, id_of
from compact.tools.harness.masking import MaskingRule
from compact.tools.harness.report import Report, report_of

_MEMO_BYTES = 8_000_000
"""Artifacts are counted once; remembering more of them would only grow with the file."""
_HARNESS = get("harness")


@dataclass(frozen=True, slots=True)
class Stabilized:
    """A context that may be sent, and the report about it. Artifacts that were not masked are the given objects."""

    artifacts: list[Mapping[str, Any]]
    report: Report


@dataclass(frozen=True, slots=True)
class _Plan:
    """The indices that are kept, in the order of the context, and a reason for each artifact."""

    kept: list[int]
    reasons: dict[int, str]


def stabilize(artifacts: Any, config: HarnessConfig | None = None, *, system: Any = None) -> Stabilized:
    """The context of a session: masked, within the budget if it can be, in a fixed order, and checked.

    Args:
        artifacts: a list of artifacts, `{"artifacts": [...]}`, messages of any dialect, or an `ArtifactStream`.
        config: budget, rules, heuristic and checks.
        system: a system prompt that stands beside messages.

    Returns:
        The context and its report. What must stay and does not fit stays, and the budget check says so.

    Raises:
        MessageError: an entry is not an artifact; names its index.
    """
    settings = config or HarnessConfig()
    source = as_artifacts(artifacts, system=system)
    reader = _Reader(settings)
    entries = [reader.entry(item, index) for index, item in enumerate(source)]
    plan = _plan(entries, reader, settings)
    kept = list(reader.masked_again(source, set(plan.kept)))
    by_index = dict(zip(sorted(set(plan.kept)), kept, strict=True))
    context = [by_index[index] for index in plan.kept]
    authority = in_order([_fingerprint(entry) for entry in entries if entry.kind in AUTHORITY])
    told = reader.checked(context, [entries[index] for index in plan.kept], authority)
    if settings.every_turn and "order" in told:
        told["order"] = [*_over_turns(entries, reader, settings), *told["order"]]
    gone = [entry for entry in entries if entry.index not in by_index]
    report = report_of(
        tokens=reader.total(context),
        budget=settings.budget,
        checks=told,
        kept=[(entries[index], plan.reasons[index]) for index in plan.kept],
        dropped=[(entry, plan.reasons[entry.index]) for entry in gone],
    )
    return Stabilized(context, report)


def validate(
    artifacts: Any, config: HarnessConfig | None = None, *, source: Any = None, system: Any = None
) -> Report:
    """The checks alone, on a context as it is: nothing is masked, dropped or moved.

    With `source`, the session it was made from, its system and task artifacts are compared by hash too.

    Raises:
        MessageError: an entry is not an artifact; names its index.
    """
    settings = config or HarnessConfig()
    context = list(as_artifacts(artifacts, system=system))
    reader = _Reader(settings)
    entries = [reader.entry(item, index, mask=False) for index, item in enumerate(context)]
    authority = None
    if source is not None:
        authority = in_order(fingerprints(as_artifacts(source, system=system)))
    return report_of(
        tokens=reader.total(context),
        budget=settings.budget,
        checks=reader.checked(context, entries, authority),
        kept=[(entry, "as it is") for entry in entries],
        dropped=[],
    )


class _Reader:
    """Masks, counts and checks with the parts of one configuration."""

    def __init__(self, config: HarnessConfig) -> None:
        self._config = config
        self._mask: MaskingRule = config.masking_rule()
        self._meter = Meter(config.model, memo_bytes=_MEMO_BYTES)
        self.reply = self._meter.scale(REPLY_TOKENS)

    def entry(self, item: Mapping[str, Any], index: int, mask: bool = True) -> Entry:
        kind = checked(item, index)
        sent, masked = self._masked(item, kind) if mask else (item, 0)
        return Entry(
            index=index,
            id=id_of(item, index, kind),
            kind=kind,
            tokens=self.size(sent),
            digest=digest_of(item, kind),
            role=item.get("role"),
            priority=item.get("priority") or 0,
            authority=item.get("authority"),
            masked=masked,
        )

    def masked_again(
        self, source: Iterable[Mapping[str, Any]], wanted: set[int]
    ) -> Iterator[Mapping[str, Any]]:
        for index, item in enumerate(source):
            if index in wanted:
                yield self._masked(item, checked(item, index))[0]

    def size(self, item: Mapping[str, Any]) -> int:
        return self._meter.scale(self._meter.count_item(item, _HARNESS))

    def total(self, context: Sequence[Mapping[str, Any]]) -> int:
        found = self._meter.estimate(context, dialect=_HARNESS, max_tokens=self._config.budget)
        return found.total

    def checked(
        self, context: list[Mapping[str, Any]], entries: list[Entry], authority: list[Fingerprint] | None
    ) -> dict[str, Sequence[str]]:
        seen = Context(
            artifacts=context,
            tokens=self.total(context),
            ids=[entry.id for entry in entries],
            sizes=[entry.tokens for entry in entries],
            config=self._config,
            mask=self._mask,
            authority=authority,
        )
        return {name: list(check(seen)) for name, check in self._config.named_checks()}

    def _masked(self, item: Mapping[str, Any], kind: str) -> tuple[Mapping[str, Any], int]:
        """System and task are the operator's own words: they are checked, not changed."""
        if kind in AUTHORITY:
            return item, 0
        changed: dict[str, Any] = {}
        spans = 0
        for field in ("content", "title"):
            text = item.get(field)
            if text:
                masked, found = self._mask(text)
                if found:
                    changed[field] = masked
                    spans += found
        return ({**item, **changed}, spans) if changed else (item, 0)


def _plan(entries: Sequence[Entry], reader: _Reader, config: HarnessConfig) -> _Plan:
    """What is kept: all that must stay, then, in the heuristic's order, whatever still fits."""
    choices = list(config.chosen_heuristic()(entries, config))
    reasons = {entry.index: "the heuristic did not ask for it" for entry in entries}
    chosen: set[int] = set()
    used = reader.reply
    for choice in choices:
        if choice.must and choice.entry.index not in chosen:
            chosen.add(choice.entry.index)
            used += choice.entry.tokens
            reasons[choice.entry.index] = choice.reason
    for choice in choices:
        entry = choice.entry
        if choice.must or entry.index in chosen:
            continue
        room = config.budget - used
        if entry.tokens <= room:
            chosen.add(entry.index)
            used += entry.tokens
            reasons[entry.index] = choice.reason
        else:
            reasons[entry.index] = f"it needs {entry.tokens:,} tokens, {max(0, room):,} were left"
    return _Plan(sorted(chosen, key=lambda index: (_rank(entries[index]), index)), reasons)


def _over_turns(entries: Sequence[Entry], reader: _Reader, config: HarnessConfig) -> list[str]:
    """What each earlier turn's context would have lost of the authority that the session had by then."""
    told = []
    turn = 0
    for end, entry in enumerate(entries, 1):
        if entry.kind != "message" or entry.role == "assistant":
            continue
        turn += 1
        seen = entries[:end]
        kept = [entries[index] for index in _plan(seen, reader, config).kept]
        expected = in_order([_fingerprint(one) for one in seen if one.kind in AUTHORITY])
        found = differences(expected, [_fingerprint(one) for one in kept if one.kind in AUTHORITY])
        told += [f"turn {turn}: {what}" for what in found]
    return told


def _rank(entry: Entry) -> int:
    return AUTHORITY.index(entry.kind) if entry.kind in AUTHORITY else len(AUTHORITY)


def _fingerprint(entry: Entry) -> Fingerprint:
    return Fingerprint(entry.kind, entry.id, entry.digest)
