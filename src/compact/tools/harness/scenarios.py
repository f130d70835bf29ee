"""The four key scenarios of the stability harness PRD, as runnable cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compact.tools.harness.config import HarnessConfig
from compact.tools.harness.control import control_changes
from compact.tools.harness.report import Report
from compact.tools.harness.stabilizing import stabilize

Artifact = dict[str, Any]

_SYSTEM: Artifact = {
    "kind": "system",
    "id": "system",
    "content": "You book trains. Never book without asking for consent.",
}
_TASK: Artifact = {"kind": "task", "id": "task", "content": "Help Ms. Okafor travel from Leeds to Bath."}
_FIVE_HUNDRED = 500
_OUTPUT_SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.5, 3.0)
"""Sizes of a tool's output, as shares of the budget."""


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The expectations of a scenario, and whether each held."""

    name: str
    held: Mapping[str, bool]

    @property
    def passed(self) -> bool:
        """Whether all held."""
        return all(self.held.values())


def run_scenarios() -> list[ScenarioResult]:
    """Run all four, in the order of the PRD."""
    return [ScenarioResult(name, dict(run())) for name, run in SCENARIOS.items()]


def long_conversation_history() -> Iterator[tuple[str, bool]]:
    """Hundreds of turns become a small context with the newest intent and the core instructions."""
    talk = [
        {"kind": "message", "role": role, "content": f"{role} speaks in turn {_words(turn)} about the fare."}
        for turn in range(_FIVE_HUNDRED)
        for role in ("user", "assistant")
    ]
    intent: Artifact = {"kind": "message", "role": "user", "content": "Take the early one after all."}
    done = stabilize([_SYSTEM, _TASK, *talk, intent], HarnessConfig(budget=1_000, every_turn=True))
    yield "1,003 artifacts fit 1,000 tokens", done.report.tokens <= done.report.budget
    yield "system and task stand first", done.artifacts[:2] == [_SYSTEM, _TASK]
    yield "the newest intent stands last", done.artifacts[-1] == intent
    yield "every check passed", done.report.passed


def pii_leakage() -> Iterator[tuple[str, bool]]:
    """A pasted phone number and id card number are masked before a model reads them."""
    pasted: Artifact = {
        "kind": "message",
        "role": "user",
        "content": "Call me on +44 113 496 0000, my id card is 123-45-6789.",
    }
    done = stabilize([_SYSTEM, _TASK, pasted], HarnessConfig(budget=1_000))
    said = done.artifacts[-1]["content"]
    yield "no digit is left", not any(character.isdigit() for character in said)
    yield "both numbers are counted", done.report.masked == 2
    yield "the words around them stay", said.startswith("Call me on ") and "my id card is" in said
    yield "the check passed", done.report.passed


def verbose_tool_output() -> Iterator[tuple[str, bool]]:
    """A tool's very long output is dropped, and the conversation stays, whatever the output's size and place."""
    budget = 2_000
    talk: list[Artifact] = [
        {"kind": "message", "role": "user", "content": f"Question {_words(turn)} about seats. " * 12}
        for turn in range(20)
    ]
    alone = stabilize([_SYSTEM, _TASK, *talk], HarnessConfig(budget=budget))
    line = "Leeds departs, Bath arrives. "
    tokens = stabilize([{"kind": "tool_output", "content": line * 100}]).report.tokens / 100
    conversation: list[bool] = []
    dropped: list[tuple[float, Report]] = []
    kept: list[tuple[float, Report]] = []
    for share in _OUTPUT_SHARES:
        words = line * max(1, round(budget * share / tokens))
        output: Artifact = {"kind": "tool_output", "id": "timetable", "content": words}
        for place in range(0, len(talk) + 1, 5):
            done = stabilize(
                [_SYSTEM, _TASK, *talk[:place], output, *talk[place:]], HarnessConfig(budget=budget)
            )
            conversation.append([one for one in done.artifacts if one is not output] == alone.artifacts)
            (dropped if done.report.dropped else kept).append((share, done.report))
    room = 1 - alone.report.tokens / budget
    yield "the whole conversation stays at every size and place", all(conversation)
    yield "an output without room is dropped", all(share > room - 0.01 for share, _ in dropped)
    yield "an output with room stays", all(share < room + 0.01 for share, _ in kept) and bool(kept)
    yield (
        "the report says why, and every check passed",
        bool(dropped)
        and all("were left" in report.dropped[0]["reason"] and report.passed for _, report in dropped),
    )


def control_degradation() -> Iterator[tuple[str, bool]]:
    """A system prompt that is pushed out, moved or altered mid-session is found, and the turn is named."""
    talk: Artifact = {"kind": "message", "content": "And to Oxford?"}
    whole = [_SYSTEM, _TASK, talk]
    altered = [{**_SYSTEM, "content": "You book trains."}, _TASK, talk]
    moved, gone = [_TASK, talk, _SYSTEM], [_TASK, talk]
    yield "an unchanged session passes", control_changes([whole] * 3) == []
    for what, turn in {"pushed out": gone, "moved": moved, "altered": altered}.items():
        problems = control_changes([whole, whole, turn, whole])
        found = bool(problems) and all(line.startswith("turn 3: ") for line in problems)
        word = "behind" if what == "moved" else what
        yield f"{what} in turn 3: found", found and any(word in line for line in problems)


SCENARIOS: Mapping[str, Callable[[], Iterator[tuple[str, bool]]]] = {
    "long conversation history": long_conversation_history,
    "PII leakage": pii_leakage,
    "verbose tool output": verbose_tool_output,
    "control degradation": control_degradation,
}


def _words(number: int) -> str:
    """Spell a number without digits, so that no rule masks it."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))
