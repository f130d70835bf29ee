"""Checks: a finished context in, a sentence for everything that is wrong with it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from compact.tools.harness.artifacts import AUTHORITY
from compact.tools.harness.control import Fingerprint, differences, fingerprints, out_of_place
from compact.tools.harness.entries import checked
from compact.tools.harness.masking import MaskingRule

if TYPE_CHECKING:
    from compact.tools.harness.config import HarnessConfig

_LARGEST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check may look at."""

    artifacts: Sequence[Mapping[str, Any]]
    """The context, in the order in which it would be sent."""
    tokens: int
    """What it costs."""
    ids: Sequence[str]
    """What each of its artifacts is called."""
    sizes: Sequence[int]
    """What each of them costs."""
    config: HarnessConfig
    mask: MaskingRule
    authority: Sequence[Fingerprint] | None = None
    """What the session's system and task artifacts were; None when only the context itself is known."""


Check: TypeAlias = Callable[[Context], Sequence[str]]
"""Gives what is wrong, a sentence each; nothing means passed."""


def pii(context: Context) -> list[str]:
    """No personal data anywhere, system and task included; each artifact that holds some is named."""
    told = []
    for index, item in enumerate(context.artifacts):
        kind = checked(item, index)
        if kind in context.config.pii_allow:
            continue
        spans = sum(context.mask(text)[1] for text in (item["content"], item.get("title") or "") if text)
        if spans:
            advice = (
                f"; rewrite it, or allow it: --pii-allow {kind}, pii_allow in Python"
                if kind in AUTHORITY
                else ""
            )
            times = "1 span" if spans == 1 else f"{spans} spans"
            told.append(f"{context.ids[index]} ({kind}) holds personal data: {times}{advice}")
    return told


def budget(context: Context) -> list[str]:
    """The context costs no more than the budget; otherwise the largest artifacts are named."""
    limit = context.config.budget
    if context.tokens <= limit:
        return []
    told = [f"{context.tokens:,} tokens are {context.tokens - limit:,} more than the budget of {limit:,}"]
    order = sorted(range(len(context.sizes)), key=lambda place: (-context.sizes[place], place))
    for place in order[:_LARGEST_NAMED]:
        kind = checked(context.artifacts[place], place)
        told.append(f"{context.ids[place]} ({kind}) takes {context.sizes[place]:,}")
    return told


def order(context: Context) -> list[str]:
    """System, then task, then the rest; and the same ones as in the session, unaltered, each once, in their order."""
    told = out_of_place(context.artifacts, context.ids)
    if context.authority is not None:
        told += differences(context.authority, fingerprints(context.artifacts, context.ids))
    return told


BUILT_IN: Mapping[str, Check] = {"pii": pii, "budget": budget, "order": order}
