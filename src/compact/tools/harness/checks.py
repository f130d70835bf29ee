"""Checks: each takes a finished context and returns a sentence for every problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from compact.tools.harness.artifacts import AUTHORITY, check_artifact, describe
from compact.tools.harness.control import Fingerprint, differences, fingerprints, out_of_place
from compact.tools.harness.masking import MaskingRule, mask_artifact

if TYPE_CHECKING:
    from compact.tools.harness.config import HarnessConfig

_LARGEST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check may look at."""

    artifacts: Sequence[Mapping[str, Any]]
    """The context, in the order of sending."""
    tokens: int
    """Its size."""
    ids: Sequence[str]
    """The id of each artifact."""
    sizes: Sequence[int]
    """The size of each artifact."""
    config: HarnessConfig
    mask: MaskingRule
    authority: Sequence[Fingerprint] | None = None
    """The session's system and task artifacts; None if only the context itself is known."""


Check: TypeAlias = Callable[[Context], Sequence[str]]
"""Returns a sentence for each problem; none means passed."""


def pii(context: Context) -> list[str]:
    """Find personal data in any field of any artifact, system and task included."""
    problems = []
    for index, item in enumerate(context.artifacts):
        kind = check_artifact(item, index)
        if kind in context.config.pii_allow:
            continue
        spans = mask_artifact(item, context.mask)[1]
        if spans:
            advice = f"; rewrite it, or allow it: --pii-allow {kind}, pii_allow in Python"
            advice = advice if kind in AUTHORITY else ""
            times = "1 span" if spans == 1 else f"{spans} spans"
            problems.append(f"{describe(context.ids[index], kind)} holds personal data: {times}{advice}")
    return problems


def budget(context: Context) -> list[str]:
    """Check that the context fits the budget. If it does not, name the largest artifacts."""
    limit = context.config.budget
    if context.tokens <= limit:
        return []
    problems = [f"{context.tokens:,} tokens are {context.tokens - limit:,} more than the budget of {limit:,}"]
    order = sorted(range(len(context.sizes)), key=lambda place: (-context.sizes[place], place))
    for place in order[:_LARGEST_NAMED]:
        kind = check_artifact(context.artifacts[place], place)
        problems.append(f"{describe(context.ids[place], kind)} takes {context.sizes[place]:,}")
    return problems


def order(context: Context) -> list[str]:
    """Check that system comes first, then task, and that both are the session's own, unaltered and complete."""
    problems = out_of_place(context.artifacts, context.ids)
    if context.authority is not None:
        problems += differences(context.authority, fingerprints(context.artifacts, context.ids))
    return problems


BUILT_IN: Mapping[str, Check] = {"pii": pii, "budget": budget, "order": order}
