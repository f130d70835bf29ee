"""The four key scenarios of the stability harness PRD, as runnable cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compact.tools.harness.config import HarnessConfig
from compact.tools.harness.control import control_changes
from compact.tools.harness.stabilizing import stabilize

Artifact = dict[str, Any]

_SYSTEM: Artifact = {
    "kind": "system",
    "id": "system",
    "content": "You book trains. Never book without asking for consent.",
}
_TASK: Artifact = {"kind": "task", "id": "task", "content": "Help Ms. Okafor travel from Leeds to Bath."}
_FIVE_HUNDRED = 500


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
    """A tool's very long output is dropped, and the conversation stays."""
    talk: list[Artifact] = [
        {"kind": "message", "role": "user", "content": f"Question {_words(turn)} about seats."}
        for turn in range(20)
    ]
    output: Artifact = {
        "kind": "tool_output",
        "id": "timetable",
        "content": "Leeds departs, Bath arrives. " * 2_000,
    }
    done = stabilize([_SYSTEM, _TASK, *talk[:19], output, talk[19]], HarnessConfig(budget=2_000))
    yield "the output is dropped", [entry["id"] for entry in done.report.dropped] == ["timetable"]
    yield "the report says why", "were left" in done.report.dropped[0]["reason"]
    yield "the whole conversation stays", done.artifacts == [_SYSTEM, _TASK, *talk]
    yield "every check passed", done.report.passed


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
