"""What a summary consists of. A strategy names the sections, for the extractive summarizer and for a model's prompt.

task_state     goals, constraints, decisions, findings, progress, state, entities: for ongoing work
decision_log   [step] decision :: rationale :: inputs :: outputs, in chronological order: for troubleshooting
code_delta     what changed, file by file, why, what was found, and what follows: for code
brief          the next step, the state, the decisions, the findings: for people
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from compact.errors import ConfigError

DETAILS = "details"
"""The extractor of lines that name things. Its section gets all room that the others leave."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and the source of its facts."""

    heading: str
    extractors: tuple[str, ...]
    """Names in `extracting.extractors.EXTRACTORS`, used in turn, or `("details",)`."""
    share: float
    """Its share of the room. What a section does not need goes to the others."""
    in_time: bool = True
    """Facts are listed chronologically; otherwise the most important comes first."""
    keeps: bool = True
    """Facts of the previous summary are carried over; otherwise only the newest state counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A kind of summary."""

    name: str
    sections: tuple[Section, ...]
    prompt: str
    """What a model is told to write, with an example."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Its headings, in order."""
        return tuple(section.heading for section in self.sections)


def _prompt(name: str) -> str:
    return (
        (files("compact.summaries") / "templates" / f"strategy-{name}.txt")
        .read_text(encoding="utf-8")
        .strip()
    )


_NEXT = Section("## Next step", ("next_steps",), 0.1, in_time=False, keeps=False)
_FINDINGS = "## Findings: what was established"
_OUTSTANDING = Section(
    "## Outstanding: problems and blockers", ("problems",), 0.1, in_time=False, keeps=False
)
_ENTITIES = Section("## Entities: important details, identifiers, files", (DETAILS,), 0.3)

TASK_STATE = Strategy(
    name="task_state",
    sections=(
        _NEXT,
        Section("## Goals: intent and success criteria", ("goals",), 0.08, in_time=False),
        Section("## Constraints", ("constraints",), 0.08),
        Section("## Decisions: made, not open", ("decisions",), 0.12),
        Section(_FINDINGS, ("findings",), 0.12),
        Section("## Progress: files changed and commands run", ("changes", "commands", "reads"), 0.2),
        Section("## Current state", ("state",), 0.07, in_time=False, keeps=False),
        _OUTSTANDING,
        _ENTITIES,
    ),
    prompt=_prompt("task_state"),
)
DECISION_LOG = Strategy(
    name="decision_log",
    sections=(
        _NEXT,
        Section("## Decisions: decision :: rationale :: inputs :: outputs", ("ledger",), 0.45),
        Section(_FINDINGS, ("findings",), 0.12),
        _OUTSTANDING,
        _ENTITIES,
    ),
    prompt=_prompt("decision_log"),
)
CODE_DELTA = Strategy(
    name="code_delta",
    sections=(
        _NEXT,
        Section("## Changes: file by file, and why", ("changes",), 0.3),
        Section("## Diff", ("edits",), 0.25),
        Section(_FINDINGS, ("findings",), 0.12),
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
    prompt=_prompt("code_delta"),
)
BRIEF = Strategy(
    name="brief",
    sections=(
        _NEXT,
        Section("## Now", ("state", "problems"), 0.2, in_time=False, keeps=False),
        Section("## Decided", ("decisions",), 0.2),
        Section("## Found", ("findings",), 0.15),
        Section("## Done", ("changes", "commands"), 0.25),
        Section("## Facts", (DETAILS,), 0.25),
    ),
    prompt=_prompt("brief"),
)

_BUILT_IN = {s.name: s for s in (TASK_STATE, DECISION_LOG, CODE_DELTA, BRIEF)}
REGISTERED: dict[str, Strategy] = dict(_BUILT_IN)
"""Every strategy that can be asked for, by name."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""What `policy.strategy` accepts."""
_HEADING = re.compile(r"#{1,6} \S(?:.*\S)?")


def get(name: str) -> Strategy:
    """Return the strategy of this name.

    Raises:
        ConfigError: there is none; lists those that exist.
    """
    found = REGISTERED.get(name)
    if found is None:
        choices = ", ".join(REGISTERED)
        raise ConfigError(
            f"policy.strategy must be one of {choices}, got {name!r:.60}",
            hint="Name one of them, or add your own with compact.summaries.strategies.register",
            path="policy.strategy",
        )
    return found


def register(strategy: Strategy, *, replace_built_in: bool = False) -> None:
    """Register a strategy under its name, replacing an earlier one of the same name.

    A built-in strategy is replaced only with `replace_built_in`.

    Raises:
        ConfigError: it is not a `Strategy`, its name is built in or malformed, or a part of it is wrong; says which.
    """
    given: Any = strategy  # dataclasses do not check types
    if not isinstance(given, Strategy):
        raise ConfigError(
            f"a strategy must be a Strategy, got {type(given).__name__}",
            hint="Make one with Strategy(name=..., sections=(Section(...),), prompt=...)",
        )
    if not _is_name(strategy.name):
        raise ConfigError(
            f"a strategy's name must be letters, digits, _ and -, got {strategy.name!r:.60}",
            hint="policy.strategy names it, and takes no other names",
        )
    if strategy.name in _BUILT_IN and not replace_built_in:
        raise ConfigError(
            f"{strategy.name!r} is a built-in strategy",
            hint="Choose another name, or pass replace_built_in=True",
        )
    wrong = next(_wrong_in(strategy), None)
    if wrong is not None:
        raise ConfigError(f"strategy {strategy.name!r} {wrong[0]}", hint=wrong[1])
    REGISTERED[strategy.name] = strategy


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _wrong_in(strategy: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the parts of a strategy, each with a hint."""
    sections = strategy.sections
    if not isinstance(strategy.prompt, str):
        yield (
            f"has a prompt that is not text but {type(strategy.prompt).__name__}",
            "Write what a model is told",
        )
    if not isinstance(sections, tuple) or not all(isinstance(section, Section) for section in sections):
        yield f"has sections that are not a tuple of Section: {sections!r:.80}", "Write (Section(...), )"
        return
    if not sections:
        yield "has no sections", "Give it at least one Section"
    for section in sections:
        for what, hint in _wrong_in_section(section):
            yield f"has a section {section.heading!r:.60} {what}", hint
    headings = strategy.headings
    if len(set(headings)) < len(headings):
        yield f"has a heading twice: {', '.join(headings)}", "Give each section its own heading"


def _wrong_in_section(section: Any) -> Iterator[tuple[str, str]]:
    from compact.summaries.extracting.extractors import (
        EXTRACTORS,
    )  # a name in the configuration needs none of them

    heading, names, share = section.heading, section.extractors, section.share
    if not isinstance(heading, str) or not _HEADING.fullmatch(heading):
        yield "whose heading is not a line like ## Words", "It is printed as it is"
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        yield f"whose share is {share!r:.40}", "Give it a number above 0, up to 1"
    choices = ", ".join([*EXTRACTORS, DETAILS])
    if not isinstance(names, tuple) or not names:
        yield (
            f"whose extractors are not a tuple of names: {names!r:.60}",
            f'Write ("name", ); names are {choices}',
        )
        return
    for name in names:
        if not isinstance(name, str) or name not in (*EXTRACTORS, DETAILS):
            yield f"that names the extractor {name!r:.60}", f"Name one of {choices}"
    if DETAILS in names and len(names) > 1:
        yield f"that mixes {DETAILS!r} with other extractors", "It needs its own section"
