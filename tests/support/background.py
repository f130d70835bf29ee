"""Sessions that grow call by call, past the size from which passes are made in the background."""

from __future__ import annotations

from typing import Any

from support.engine import Item, manager, says, user
from support.running import GOOD, long_session
from support.waiting import until

from compact import CompactManager

WINDOW = 8_000
START, TRIGGER = 6_000, 6_500
"""Three quarters of the window, and the budget, which here is below 85% of it."""


def grown(made: CompactManager, tokens: int = START, first: list[Item] | None = None) -> list[Item]:
    """A session that has just reached a size."""
    items = long_session(6) if first is None else list(first)
    while made.estimate(items).total < tokens:
        number = len(items)
        text = " ".join(f"word{number}x{k}" for k in range(8))
        items += [user(f"Question {number}: {text}?"), says(f"Answer {number}: {text}.")]
    return items


def reply_to(items: list[Item], text: str = "Done.", question: str = "And now?") -> list[Item]:
    """The list with a reply, and with what the user says to that."""
    return [*items, says(text), user(question)]


def is_ready(made: CompactManager, session: str = "s") -> bool:
    """Whether a pass in the background waits for its swap."""
    background = made.sessions.get(session).background
    return background is not None and background.is_ready


def await_ready(made: CompactManager, session: str = "s") -> None:
    """Wait until a pass in the background is ready."""
    until(lambda: is_ready(made, session))


def await_ended(made: CompactManager, session: str = "s") -> None:
    """Wait until a session has no pass in the background any more."""
    until(lambda: made.sessions.get(session).background is None)


def blocking(**settings: Any) -> CompactManager:
    """A manager whose passes are made in the call, at the size where others begin them in the background."""
    policy = {"background_pct": None, "trigger_pct": 0.75, **settings.pop("policy", {})}
    settings.setdefault("summarizer", lambda _: GOOD)
    return manager(WINDOW, policy=policy, **settings)


def decisions(found: list[Item]) -> list[tuple[str, bool]]:
    """What the calls decided, in order."""
    return [
        (event["properties"]["reason"], event["properties"]["triggered"])
        for event in found
        if event["name"] == "compact.trigger_decision"
    ]


def outcomes(found: list[Item]) -> list[str]:
    """How the passes ended, in order."""
    return [event["properties"]["outcome"] for event in found if event["name"] == "compact.finished"]


def reasons_of_drops(found: list[Item]) -> list[str]:
    """Why passes were dropped, in order."""
    finished = [event for event in found if event["name"] == "compact.finished"]
    return [event["payload"]["why"] for event in finished if event["properties"]["outcome"] == "dropped"]
