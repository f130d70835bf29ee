"""What a summary is made of. A strategy names its sections; both the summarizer without a model and the prompt follow it.

task_state     goals, constraints, decisions, progress, state, entities: for work that goes on
decision_log   [step] decision :: rationale :: inputs :: outputs, in the order of time: for troubleshooting
code_delta     file by file what changed, why, and what follows: for code
brief          the next step, the state, the decisions: for people
"""

from __future__ import annotations

from dataclasses import dataclass

from compact.errors import ConfigError
from compact.summarizers import prompts
from compact.summarizers.extracting.sections import EXTRACTORS

DETAILS = "details"
"""The section that takes what names things, and all room that the others leave."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and where its facts come from."""

    heading: str
    extractors: tuple[str, ...]
    """Names in `extracting.sections.EXTRACTORS`, taken in turn; `("details",)` is the section of names and lines."""
    share: float
    """Its part of the room. What a section does not need goes to the others."""
    in_time: bool = True
    """Facts are printed in the order of time; else the most important stands first."""
    keeps: bool = True
    """Facts of the summary before are carried over; else only the newest state counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A kind of summary."""

    name: str
    sections: tuple[Section, ...]
    prompt: str
    """What a model is told to write, with an example."""
    required: tuple[str, ...] = ()
    """First words of the headings that a model's summary is rejected without."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Its headings, in their order."""
        return tuple(section.heading for section in self.sections)


_NEXT = Section("## Next step", ("next_steps",), 0.1, in_time=False, keeps=False)
_ENTITIES = Section("## Entities: important details, identifiers, files", (DETAILS,), 0.3)

TASK_STATE = Strategy(
    name="task_state",
    sections=(
        _NEXT,
        Section("## Goals: intent and success criteria", ("goals",), 0.08, in_time=False),
        Section("## Constraints", ("constraints",), 0.08),
        Section("## Decisions: made, not open", ("decisions",), 0.12),
        Section("## Progress: files changed and commands run", ("changes", "commands", "reads"), 0.2),
        Section("## Current state", ("state",), 0.07, in_time=False, keeps=False),
        Section("## Outstanding: problems and blockers", ("problems",), 0.1, in_time=False, keeps=False),
        _ENTITIES,
    ),
    prompt=prompts.TASK_STATE,
    required=("Next step", "Goals", "Constraints", "Decisions", "Outstanding", "Entities"),
)
DECISION_LOG = Strategy(
    name="decision_log",
    sections=(
        _NEXT,
        Section("## Decisions: decision :: rationale :: inputs :: outputs", ("ledger",), 0.65),
        _ENTITIES,
    ),
    prompt=prompts.DECISION_LOG,
    required=("Decisions",),
)
CODE_DELTA = Strategy(
    name="code_delta",
    sections=(
        _NEXT,
        Section("## Changes: file by file, and why", ("changes",), 0.3),
        Section("## Diff", ("edits",), 0.25),
        Section(
            "## Follow-up: failing commands and open problems",
            ("problems",),
            0.12,
            in_time=False,
            keeps=False,
        ),
        Section("## Commands", ("commands",), 0.08),
        _ENTITIES,
    ),
    prompt=prompts.CODE_DELTA,
    required=("Changes", "Follow-up"),
)
BRIEF = Strategy(
    name="brief",
    sections=(
        _NEXT,
        Section("## Now", ("state", "problems"), 0.2, in_time=False, keeps=False),
        Section("## Decided", ("decisions",), 0.2),
        Section("## Done", ("changes", "commands"), 0.25),
        Section("## Facts", (DETAILS,), 0.25),
    ),
    prompt=prompts.BRIEF,
)

_known: dict[str, Strategy] = {s.name: s for s in (TASK_STATE, DECISION_LOG, CODE_DELTA, BRIEF)}


def get(name: str) -> Strategy:
    """The strategy of this name.

    Raises:
        ConfigError: there is none; says which there are.
    """
    found = _known.get(name)
    if found is None:
        choices = ", ".join(_known)
        raise ConfigError(
            f"policy.strategy must be one of {choices}, got {name!r:.60}",
            hint="Name one of them, or add your own with compact.summarizers.strategies.register",
            path="policy.strategy",
        )
    return found


def register(strategy: Strategy) -> None:
    """Makes a strategy known under its name; one of the same name is replaced.

    Raises:
        ConfigError: it has no sections, or a section names an extractor that does not exist.
    """
    if not strategy.sections:
        raise ConfigError(f"strategy {strategy.name!r} has no sections", hint="Give it at least one Section")
    for section in strategy.sections:
        for name in section.extractors:
            if name != DETAILS and name not in EXTRACTORS:
                choices = ", ".join([*EXTRACTORS, DETAILS])
                raise ConfigError(
                    f"strategy {strategy.name!r}: section {section.heading!r} names the extractor {name!r}",
                    hint=f"Name one of {choices}",
                )
    _known[strategy.name] = strategy
