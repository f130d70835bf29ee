"""`CompactConfig`: all settings of one manager, each with its origin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias, TypedDict, Unpack

from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from compact.config import sources
from compact.config.kinds import Allowed, Count, Words, shown
from compact.config.problems import Problem, config_error, field_problems, unknown
from compact.config.sections import (
    SECTIONS,
    ArchiveConfig,
    GuardConfig,
    MeterConfig,
    OffloadConfig,
    PolicyConfig,
    RecoveryConfig,
    RedactionConfig,
    Section,
    SummaryConfig,
    TracingConfig,
)
from compact.config.sources import FieldPath, Given
from compact.errors import ConfigError

_ARGUMENT = "argument"
_DEFAULT = "default"


Windows: TypeAlias = Annotated[
    dict[str, Count], Allowed("a mapping of model names to tokens, each a whole number >= 1")
]


class Settings(TypedDict, total=False):
    """The keyword arguments of `CompactConfig`. A section is a section object or a mapping of its fields."""

    model: str
    max_context_tokens: int | None
    windows: Mapping[str, int]
    policy: PolicyConfig | Mapping[str, Any]
    summary: SummaryConfig | Mapping[str, Any]
    offload: OffloadConfig | Mapping[str, Any]
    archive: ArchiveConfig | Mapping[str, Any]
    redaction: RedactionConfig | Mapping[str, Any]
    tracing: TracingConfig | Mapping[str, Any]
    guard: GuardConfig | Mapping[str, Any]
    recovery: RecoveryConfig | Mapping[str, Any]
    meter: MeterConfig | Mapping[str, Any]
    compact: Mapping[str, Any]


class Setting(NamedTuple):
    """One setting: its dotted path, its effective value, and where that came from."""

    path: str
    value: Any
    source: str


class CompactConfig(Section):
    """All settings. Keyword arguments win over environment variables, and those over the defaults.

    `CompactConfig.load` reads a file too; `CompactConfig.preset` starts from one of three known behaviours.

    Raises:
        ConfigError: a name is no setting, or a value is not allowed. Lists everything that is wrong.
    """

    NAME: ClassVar[str] = ""

    model: Words = "gpt-4o"
    """The agent's model. It decides the tokenizer and the window."""
    max_context_tokens: Count | None = None
    """The window; null: from the window table. An unknown model has 128000, and a warning."""
    windows: Windows = Field(default_factory=dict)
    """Windows by model, over the built-in table."""
    policy: PolicyConfig = PolicyConfig()
    summary: SummaryConfig = SummaryConfig()
    offload: OffloadConfig = OffloadConfig()
    archive: ArchiveConfig = ArchiveConfig()
    redaction: RedactionConfig = RedactionConfig()
    tracing: TracingConfig = TracingConfig()
    guard: GuardConfig = GuardConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    meter: MeterConfig = MeterConfig()

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, **settings: Unpack[Settings]) -> None:
        self._fill(_environment() | sources.from_settings(settings, _ARGUMENT))

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None, **overrides: Unpack[Settings]) -> Self:
        """A file, over it the environment, over that keyword arguments.

        Without a path, compact.yaml, compact.yml or compact.json of the current directory is read if there is one.

        Raises:
            ConfigError: the file cannot be read, or a setting is wrong; names the file and the field.
        """
        file = sources.find_file() if path is None else path
        given = {} if file is None else sources.read_file(file)
        return cls._from(given | _environment() | sources.from_settings(overrides, _ARGUMENT))

    @classmethod
    def preset(cls, name: str, **overrides: Unpack[Settings]) -> Self:
        """A known behaviour in one word, over it the environment, over that keyword arguments.

        `layered` is the compaction specification's, `selective` the context compaction PRD's, `progressive` the
        progressive compaction addendum's.

        Raises:
            ConfigError: there is no such preset, or a setting is wrong.
        """
        given = sources.from_preset(name)
        return cls._from(given | _environment() | sources.from_settings(overrides, _ARGUMENT))

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each setting came from, by dotted path.

        One of "default", "file PATH", "environment NAME", "argument", "preset NAME"; a value out of the `compact:`
        block names its key too.
        """
        return {path: self._sources.get(path, _DEFAULT) for path in sources.known_paths(CompactConfig)}

    def explain(self) -> list[Setting]:
        """Every setting with its value and source, in the order of the reference."""
        return [Setting(path, self._value(path), source) for path, source in self.sources.items()]

    @staticmethod
    def ignored_variables() -> list[str]:
        """Environment variables named COMPACT_... that set nothing."""
        return sources.ignored_variables(os.environ, CompactConfig)

    def budget(self, window: int) -> int:
        """What a request may take of a window. Not positive when the window is smaller than what is kept free."""
        return window - self.policy.hard_cap_buffer - self.policy.reserve_output_tokens

    def trigger_tokens(self, window: int) -> int:
        """The number of tokens at which compaction starts: never above the budget."""
        limits = [share_of(window, self.policy.trigger_pct), self.budget(window)]
        if self.policy.token_threshold is not None:
            limits.append(self.policy.token_threshold)
        return min(limits)

    def summarize_tokens(self, window: int) -> int | None:
        """The number of tokens from which history may be summarized; None: whenever the other stages are not enough."""
        if self.policy.summarize_pct is None:
            return None
        return min(share_of(window, self.policy.summarize_pct), self.budget(window))

    def __eq__(self, other: object) -> bool:
        """Equal settings are equal, wherever they came from."""
        return isinstance(other, CompactConfig) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # lists and mappings inside

    @classmethod
    def _from(cls, given: Mapping[FieldPath, Given]) -> Self:
        config = cls.__new__(cls)
        config._fill(given)
        return config

    def _fill(self, given: Mapping[FieldPath, Given]) -> None:
        origins = {".".join(path): item.origin for path, item in given.items()}
        top, by_section, problems = _sorted_out(given)
        built: dict[str, Section] = {}
        for name, values in by_section.items():
            try:
                built[name] = SECTIONS[name](**values)
            except ConfigError as error:
                problems.extend(error.problems)
        try:
            BaseModel.__init__(self, **top, **built)
        except ValidationError as error:
            problems.extend(field_problems(CompactConfig, "", error, top))
        self._sources = origins
        problems = problems or _conflicts(self)
        if problems:
            raise config_error([_with_origin(problem, origins) for problem in problems])

    def _value(self, path: str) -> Any:
        section, _, field = path.rpartition(".")
        return getattr(getattr(self, section) if section else self, field)


def share_of(window: int, share: float) -> int:
    """A share of a window in tokens, rounded up. Exact: 0.07 of 100 is 7, whatever binary fractions say."""
    return ceil(Fraction(str(share)) * window)


def _environment() -> dict[FieldPath, Given]:
    return sources.from_environment(os.environ, CompactConfig)


def _sorted_out(
    given: Mapping[FieldPath, Given],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], list[Problem]]:
    """The top fields, the fields of each section, and a problem for every name that is neither."""
    known = sources.known_paths(CompactConfig)
    top: dict[str, Any] = {}
    by_section: dict[str, dict[str, Any]] = {}
    problems = []
    for path, item in given.items():
        dotted = ".".join(path)
        if len(path) == 1 and dotted in SECTIONS:
            text = f"{dotted} must be a mapping of settings, got {shown(item.value)}"
            problems.append(Problem(dotted, text))
        elif dotted not in known:
            problems.append(Problem(dotted, unknown(dotted, [*known, *SECTIONS])))
        elif len(path) == 1:
            top[dotted] = item.value
        else:
            by_section.setdefault(path[0], {})[path[1]] = item.value
    return top, by_section, problems


def _conflicts(config: CompactConfig) -> list[Problem]:
    """Settings that are fine alone and cannot stand together. A default gives way to what was chosen."""
    policy, guard = config.policy, config.guard
    chosen = config._sources
    found = [_no_room(config)]
    if "policy.target_pct" in chosen and policy.target_pct > policy.trigger_pct:
        found.append(_disagree(config, "policy.target_pct", "<=", "policy.trigger_pct"))
    if policy.summarize_pct is not None and policy.summarize_pct < policy.trigger_pct:
        found.append(_disagree(config, "policy.summarize_pct", ">=", "policy.trigger_pct"))
    if "guard.warn_context_tokens" in chosen and guard.warn_context_tokens < guard.min_context_tokens:
        found.append(_disagree(config, "guard.warn_context_tokens", ">=", "guard.min_context_tokens"))
    if config.archive.adapter == "s3" and config.archive.bucket is None:
        text = "archive.bucket must be set when archive.adapter is s3, got null"
        found.append(Problem("archive.bucket", text, ("archive.adapter",)))
    return [problem for problem in found if problem is not None]


def _disagree(config: CompactConfig, path: str, relation: str, other: str) -> Problem:
    limit, value = shown(config._value(other)), shown(config._value(path))
    return Problem(path, f"{path} must be {relation} {other} ({limit}), got {value}", (other,))


def _no_room(config: CompactConfig) -> Problem | None:
    window = config.max_context_tokens
    if window is None or config.budget(window) > 0:
        return None
    parts = ("policy.hard_cap_buffer", "policy.reserve_output_tokens")
    if window < config.guard.min_context_tokens and not config._sources.keys() & set(parts):
        return None  # the guard refuses such a window, in its own words
    values = " + ".join(shown(config._value(part)) for part in parts)
    text = f"{' + '.join(parts)} must be smaller than max_context_tokens ({window}), got {values}"
    return Problem(parts[0], text, (parts[1], "max_context_tokens"))


def _with_origin(problem: Problem, origins: Mapping[str, str]) -> Problem:
    named = dict.fromkeys(origins.get(path, _ARGUMENT) for path in (problem.path, *problem.involves))
    where = ", ".join(origin for origin in named if origin != _ARGUMENT)
    return Problem(problem.path, f"{problem.text} ({where})") if where else problem
