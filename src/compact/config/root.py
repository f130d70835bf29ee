"""`CompactConfig`: all settings of one manager, each with its origin."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from operator import ge, le
from typing import Any, NamedTuple, Self, TypedDict, Unpack

from pydantic import BaseModel, PrivateAttr, ValidationError

from compact.config import sources
from compact.config.agents import AGENTS, of_agent, settings_of_agents
from compact.config.problems import WrongSetting, config_error, field_problems, show, unknown_setting
from compact.config.rights import refused_settings
from compact.config.sections import (
    SECTIONS,
    SETTINGS,
    AllSettings,
    ArchiveConfig,
    ConfigSection,
    EconomyConfig,
    GuardConfig,
    MeterConfig,
    OffloadConfig,
    PolicyConfig,
    ProxyConfig,
    RecoveryConfig,
    RedactionConfig,
    SummaryConfig,
    TracingConfig,
)
from compact.config.sources import Given, SettingsFile
from compact.errors import ConfigError

log = logging.getLogger("compact")

_ARGUMENT = "argument"
_DEFAULT = "default"
_RESERVES = ("policy.hard_cap_buffer", "policy.reserve_output_tokens")
_HOLDS = {"<=": le, ">=": ge}
_ORDER = (
    ("policy.target_pct", "<=", "policy.trigger_pct"),
    ("policy.summarize_pct", ">=", "policy.trigger_pct"),
    ("guard.warn_context_tokens", ">=", "guard.min_context_tokens"),
)
"""How settings must compare: if the first one was chosen, it must stand in this relation to the second."""


class SettingArguments(TypedDict, total=False):
    """The settings that `CompactManager` takes as keywords too. A section is a section object or a mapping of its fields."""

    model: str
    tenant: str | None
    max_context_tokens: int | None
    windows: Mapping[str, int]
    models: Mapping[str, Mapping[str, Any]]
    policy: PolicyConfig | Mapping[str, Any]
    summary: SummaryConfig | Mapping[str, Any]
    offload: OffloadConfig | Mapping[str, Any]
    redaction: RedactionConfig | Mapping[str, Any]
    tracing: TracingConfig | Mapping[str, Any]
    guard: GuardConfig | Mapping[str, Any]
    recovery: RecoveryConfig | Mapping[str, Any]
    meter: MeterConfig | Mapping[str, Any]
    economy: EconomyConfig | Mapping[str, Any]
    proxy: ProxyConfig | Mapping[str, Any]
    compact: Mapping[str, Any]


class ConfigArguments(SettingArguments, total=False):
    """The keyword arguments of `CompactConfig`."""

    archive: ArchiveConfig | Mapping[str, Any]


class Setting(NamedTuple):
    """One setting: its dotted path, its effective value, and its origin."""

    path: str
    value: Any
    source: str


class CompactConfig(AllSettings):
    """All settings. Keyword arguments win over environment variables, which win over the defaults.

    `CompactConfig.load` also reads a file; `CompactConfig.preset` starts from one of three named behaviours.

    Raises:
        ConfigError: a name is not a setting, or a value is not allowed. Lists all problems at once.
    """

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)
    _file: SettingsFile | None = PrivateAttr(default=None)

    def __init__(self, **settings: Unpack[ConfigArguments]) -> None:
        self._fill({}, settings)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        **overrides: Unpack[ConfigArguments],
    ) -> Self:
        """Read a file, then the environment, then keyword arguments; later ones win.

        Without a path, the file that `COMPACT_CONFIG` names is read, else compact.yaml, compact.yml or compact.json of the
        current directory if there is one. A file that was only found there may set numbers, booleans outside `redaction`,
        and closed choices such as `model`; any other key in it is an error. `source` says which file was read.
        `agent` names one of the file's `agents`, whose own settings win over those that all agents share.

        Raises:
            ConfigError: the file cannot be read, a setting is wrong, of this agent or another, or there is no such agent;
                or a file that nobody named sets what it may not. Names the file and the field.
        """
        file = sources.choose_file(path, os.environ)
        content = {} if file is None else sources.read_file(file.path)
        origin = "the configuration: no file was found" if file is None else file.origin
        agents = settings_of_agents(content.get(AGENTS), origin)
        shared = sources.from_settings({name: content[name] for name in content if name != AGENTS}, origin)
        if file is not None and not file.was_named:
            problems = [
                problem
                for own in (shared, *agents.values())
                for problem in refused_settings(own, str(file.path))
            ]
            if problems:
                raise config_error(problems)
            log.info("settings are read from %s, found in the current folder", file.path)
        for name, own in agents.items():
            if name != agent:
                cls._over(shared | own, {})  # a wrong setting is found before its agent runs
        config = cls._over(shared if agent is None else shared | of_agent(agents, agent, origin), overrides)
        config._file = file
        return config

    @classmethod
    def preset(cls, name: str, **overrides: Unpack[ConfigArguments]) -> Self:
        """Start from a named behaviour, then apply the environment, then keyword arguments.

        `layered` follows the compaction specification, `selective` the context compaction PRD, and `progressive` the
        progressive compaction addendum.

        Raises:
            ConfigError: there is no such preset, or a setting is wrong.
        """
        return cls._over(sources.from_preset(name), overrides)

    def updated(self, **settings: Unpack[ConfigArguments]) -> Self:
        """Return these settings with others over them. Settings that are not named stay, whatever the environment says.

        Raises:
            ConfigError: a setting is wrong.
        """
        config = type(self).__new__(type(self))
        chosen = {path: Given(self._value(path), origin) for path, origin in self._sources.items()}
        config._build({**chosen, **sources.from_settings(settings, _ARGUMENT)})
        config._file = self._file
        return config

    @property
    def sources(self) -> Mapping[str, str]:
        """The origin of each setting, by dotted path.

        One of "default", "file PATH", "environment NAME", "argument", "preset NAME". For a value from the `compact:`
        block, the origin also names the key.
        """
        return {path: self._sources.get(path, _DEFAULT) for path in SETTINGS}

    @property
    def source(self) -> SettingsFile | None:
        """The file that `load` read: its `path`, and in `was_named` whether somebody named it. None if there was none."""
        return self._file

    def explain(self) -> list[Setting]:
        """Return every setting with its value and origin, in the order of the reference."""
        return [Setting(path, self._value(path), source) for path, source in self.sources.items()]

    @staticmethod
    def ignored_variables() -> list[str]:
        """Return the environment variables named COMPACT_... that set nothing."""
        return sources.ignored_variables(os.environ)

    def budget(self, window: int) -> int:
        """Return how many tokens of a window a request may take. Not positive if the reserves exceed the window."""
        return window - self.policy.hard_cap_buffer - self.policy.reserve_output_tokens

    def trigger_tokens(self, window: int) -> int:
        """Return the number of tokens at which compaction starts. Never above the budget."""
        limits = [share_of(window, self.policy.trigger_pct), self.budget(window)]
        if self.policy.token_threshold is not None:
            limits.append(self.policy.token_threshold)
        return min(limits)

    def summarize_tokens(self, window: int) -> int | None:
        """Return the number of tokens from which history may be summarized. None: whenever other stages do not suffice."""
        if self.policy.summarize_pct is None:
            return None
        return min(share_of(window, self.policy.summarize_pct), self.budget(window))

    def __eq__(self, other: object) -> bool:
        """Compare settings only, not their origins."""
        return isinstance(other, CompactConfig) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # contains lists and mappings

    @classmethod
    def _over(cls, base: Mapping[str, Given], arguments: ConfigArguments) -> Self:
        config = cls.__new__(cls)
        config._fill(base, arguments)
        return config

    def _fill(self, base: Mapping[str, Given], arguments: ConfigArguments) -> None:
        """Layer the environment and the arguments over `base`."""
        self._build(
            {
                **base,
                **sources.from_environment(os.environ),
                **sources.from_settings(arguments, _ARGUMENT),
            }
        )

    def _build(self, given: Mapping[str, Given]) -> None:
        """Build and check all sections."""
        problems: list[WrongSetting] = []
        values: dict[str, dict[str, Any]] = {}
        for path, item in given.items():
            section, _, field = path.rpartition(".")
            if path in SETTINGS:
                values.setdefault(section, {})[field] = item.value
            else:
                problems.append(_stray(path, item.value))
        top = values.pop("", {})
        built: dict[str, ConfigSection] = {}
        for name, fields in values.items():
            try:
                built[name] = SECTIONS[name](**fields)
            except ConfigError as error:
                problems.extend(error.problems)
        try:
            BaseModel.__init__(self, **top, **built)
        except ValidationError as error:
            problems.extend(field_problems(AllSettings, "", error, top))
        self._sources = {path: item.origin for path, item in given.items()}
        problems = problems or _conflicts(self)
        if problems:
            raise config_error([_add_origin(problem, self._sources) for problem in problems])

    def _value(self, path: str) -> Any:
        section, _, field = path.rpartition(".")
        return getattr(getattr(self, section) if section else self, field)


def share_of(window: int, share: float) -> int:
    """Return a share of a window in tokens, rounded up. Exact: 0.07 of 100 is 7, despite binary fractions."""
    return ceil(Fraction(str(share)) * window)


def yaml_text(value: Any) -> str:
    """Return a setting's value as a YAML file would hold it."""
    import yaml  # slow to import

    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _stray(path: str, value: Any) -> WrongSetting:
    if path in SECTIONS or path == sources.BLOCK:
        return WrongSetting(path, f"{path} must be a mapping of settings, got {show(value)}")
    if path == AGENTS:
        text = f"{AGENTS} stands at the top of a file, and CompactConfig.load(path, agent=...) chooses one"
        return WrongSetting(path, text)
    known = [*SETTINGS, *SECTIONS, *(f"{sources.BLOCK}.{name}" for name in sources.BLOCK_FIELDS)]
    return WrongSetting(path, unknown_setting(path, known))


def _conflicts(config: CompactConfig) -> list[WrongSetting]:
    """Return settings that are right alone but conflict with each other. A default never conflicts with a choice."""
    chosen, window = config._sources, config.max_context_tokens
    found = []
    # Without chosen reserves, a window below the guard's minimum is left to the guard, which explains more.
    is_checked = not chosen.keys().isdisjoint(_RESERVES)
    if window and config.budget(window) <= 0 and (is_checked or window >= config.guard.min_context_tokens):
        values = " + ".join(show(config._value(path)) for path in _RESERVES)
        text = f"{' + '.join(_RESERVES)} must be smaller than max_context_tokens ({window}), got {values}"
        found.append(WrongSetting(_RESERVES[0], text, (_RESERVES[1], "max_context_tokens")))
    for path, relation, other in _ORDER:
        value, limit = config._value(path), config._value(other)
        if path in chosen and value is not None and not _HOLDS[relation](value, limit):
            text = f"{path} must be {relation} {other} ({show(limit)}), got {show(value)}"
            found.append(WrongSetting(path, text, (other,)))
    if config.archive.adapter == "s3" and config.archive.bucket is None:
        text = "archive.bucket must be set when archive.adapter is s3, got null"
        found.append(WrongSetting("archive.bucket", text, ("archive.adapter",)))
    return found


def _add_origin(problem: WrongSetting, origins: Mapping[str, str]) -> WrongSetting:
    paths = (problem.path, *problem.involves)
    named = dict.fromkeys(origins.get(path, _ARGUMENT) for path in paths)
    where = ", ".join(origin for origin in named if origin != _ARGUMENT)
    return WrongSetting(problem.path, f"{problem.text} ({where})") if where else problem
