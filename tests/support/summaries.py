"""Summaries of real sessions, and what stands under their headings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.data import bundled_sessions

from compact.messages import Message, dialects
from compact.summaries import extractive
from compact.summaries.request import SummaryRequest
from compact.tokens import Meter

GOLDEN = Path(__file__).resolve().parents[1] / "fixtures" / "golden"
count = Meter("gpt-4o").count_text


def session(name: str) -> list[Message]:
    """A bundled session whose id begins like this."""
    found = next(s for s in bundled_sessions() if s["id"].startswith(name))
    return dialects.read(found["messages"])[1]


def neutral(items: list[dict[str, Any]]) -> list[Message]:
    return dialects.read(items, "chat")[1]


def summary(
    messages: list[Message],
    strategy: str = "task_state",
    tokens: int = 2000,
    previous: str = "",
    previous_step: int = 0,
) -> str:
    """The extractive summary."""
    request = SummaryRequest(messages, "chat", strategy, tokens, previous, previous_step=previous_step)
    return extractive.summarize(request, count)


def under(text: str, heading: str) -> list[str]:
    """The lines of the section whose heading begins like this."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"## {heading}"):
            break
    found = []
    for line in lines:
        if line.startswith("## "):
            break
        found.append(line)
    return found
