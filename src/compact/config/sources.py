"""Where settings come from: a file, the environment, keyword arguments, a preset.

Every source is read into a flat mapping from dotted path to `Given`. Layering sources is then a dict union, and every
value keeps its origin. pydantic-settings does not serve here: it stops at the first malformed variable, ignores
misspelled sections, has no second spelling for nested fields, and does not record where a value came from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from compact.config.problems import Kind, kind_of
from compact.config.sections import SECTIONS, SETTINGS, ConfigSection, PolicyConfig
from compact.errors import ConfigError
from compact.messages.settings_text import SettingsProblem, load_json, load_yaml, read_settings

FILE_NAMES = ("compact.yaml", "compact.yml", "compact.json")
"""File names that are looked for in the current directory, in this order."""

PREFIX = "COMPACT_"


def variable_of(path: str) -> str:
    """Return the environment variable of a setting, by its path."""
    return PREFIX + path.replace(".", "__").upper()


VARIABLES: dict[str, str] = {
    **{variable_of(path): path for path in SETTINGS},
    **{PREFIX + field.upper(): f"policy.{field}" for field in PolicyConfig.model_fields},
}
"""Environment variables and the settings that they set. The fields of `policy` also have a short name."""

FILE_VARIABLE = f"{PREFIX}CONFIG"
"""The environment variable that names a settings file."""

BLOCK = "compact"
"""The key of the context compaction PRD's block."""

BLOCK_FIELDS: dict[str, str] = {
    "max_tokens": "summary.max_tokens",
    "token_threshold": "policy.token_threshold",
    "message_threshold": "policy.message_threshold",
    "turn_threshold": "policy.turn_threshold",
    "retention_window": "policy.retention_window",
    "model": "summary.model",
    "prompt": "summary.prompt",
    "summary_tag": "summary.summary_tag",
}
"""The block's parameters and the settings that they set. Its model is the one that writes summaries."""

BLOCK_DEFAULTS: dict[str, Any] = {
    "policy.layout": "selective",
    "policy.token_threshold": 60_000,
    "policy.economy": "off",
    "policy.background_pct": None,
}
"""What the block sets by being present."""

PRESETS: dict[str, dict[str, Any]] = {
    "layered": {"policy.economy": "off", "policy.background_pct": None, "summary.fallback": "pruning-only"},
    "selective": {
        **BLOCK_DEFAULTS,
        "policy.retention_window": 6,
        "summary.max_tokens": 2000,
    },
    "progressive": {
        "policy.economy": "off",
        "policy.background_pct": None,
        "policy.trigger_pct": 0.85,
        "policy.summarize_pct": 0.95,
        "policy.recent_share": 0.2,
        "offload.large_result_tokens": 20_000,
        "offload.preview_lines": 10,
    },
}
"""The behaviours of the compaction specification, the context compaction PRD and the progressive compaction addendum."""


class Given(NamedTuple):
    """A value and its origin: "file PATH", "environment NAME", "argument" or "preset NAME"."""

    value: Any
    origin: str


def from_settings(settings: Mapping[Any, Any], origin: str) -> dict[str, Given]:
    """Flatten a nested mapping. A section is a mapping or a section object; a key may be a dotted path.

    An empty section (`policy:` with only comments below it) sets nothing.

    Raises:
        ConfigError: a setting is given twice: in its section, and by its path.
    """
    block: dict[str, Given] = {}
    own: dict[str, Given] = {}

    def add(path: str, entry: Any) -> None:
        if path in own:
            raise ConfigError(
                f"{path} is given twice ({origin})", hint="In its section or by its path, not both", path=path
            )
        own[path] = Given(entry, origin)

    for key, value in settings.items():
        name = str(key)
        section = value.model_dump(exclude_unset=True) if isinstance(value, ConfigSection) else value
        if name == BLOCK and isinstance(section, Mapping | None):
            block = _from_block(section or {}, origin)
        elif name in SECTIONS and isinstance(section, Mapping | None):
            for field, entry in (section or {}).items():
                add(f"{name}.{field}", entry)
        else:
            add(name, value)
    return block | own


def _from_block(block: Mapping[Any, Any], origin: str) -> dict[str, Given]:
    found = {path: Given(value, f"{origin}, {BLOCK}") for path, value in BLOCK_DEFAULTS.items()}
    for name, value in block.items():
        if name in BLOCK_FIELDS:
            found[BLOCK_FIELDS[name]] = Given(value, f"{origin}, {BLOCK}.{name}")
        else:
            found[f"{BLOCK}.{name}"] = Given(value, origin)
    return found


def from_preset(name: str) -> dict[str, Given]:
    """Return a preset's values.

    Raises:
        ConfigError: there is no preset of that name. Lists the presets.
    """
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}", path="preset")
    return {path: Given(value, f"preset {name}") for path, value in PRESETS[name].items()}


def from_environment(environment: Mapping[str, str]) -> dict[str, Given]:
    """Return what variables set. A long name wins over a short one; an empty variable counts as not set."""
    found: dict[str, Given] = {}
    for variable in sorted(environment, key=lambda name: ("__" in name, name)):
        text = environment[variable].strip()
        if not variable.startswith(PREFIX) or not text:
            continue
        origin = f"environment {variable}"
        path = VARIABLES.get(variable.upper())
        if path is not None:
            kind = kind_of(SETTINGS[path], path.rpartition(".")[2])
            found[path] = Given(_parse(text, kind), origin)
        elif "__" in variable:
            section, _, field = variable.removeprefix(PREFIX).lower().partition("__")
            found[f"{section}.{field}" if section in SECTIONS else section] = Given(text, origin)
    return found


def ignored_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the variables that start with COMPACT_ and set nothing: another program's, or a typo."""
    return [
        name
        for name in sorted(environment)
        if name.startswith(PREFIX)
        and "__" not in name
        and name.upper() not in VARIABLES
        and name != FILE_VARIABLE
    ]


_SCALARS: dict[str, Callable[[str], Any]] = {
    "boolean": TypeAdapter(bool).validate_python,
    "integer": int,
    "number": float,
}


def _parse(text: str, kind: Kind) -> Any:
    """Read a variable as its field expects it. Unreadable text is returned unchanged, and rejected later."""
    if "null" in kind.types and text.lower() in ("null", "none", "~"):
        return None
    try:
        for name, read in _SCALARS.items():
            if name in kind.types:
                return read(text)
        if "object" in kind.types or ("array" in kind.types and text.startswith("[")):
            return load_yaml(text)
    except ValueError:
        return text
    if "array" in kind.types and ("," in text or "string" not in kind.types):
        # A pattern may contain commas, a name does not.
        return [item.strip() for item in text.split(",") if item.strip()] if kind.has_plain_items else [text]
    return text


class SettingsFile(NamedTuple):
    """A settings file: where it is, how messages call it, and whether somebody named it."""

    path: Path
    origin: str
    was_named: bool
    """False: it was found in the current directory, so what it may set is limited (`compact.config.rights`)."""


def choose_file(path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> SettingsFile | None:
    """Return the file to read: the given one, else the one that `COMPACT_CONFIG` names, else one of the current directory."""
    named = path if path is not None else environment.get(FILE_VARIABLE, "").strip() or None
    if named is not None:
        return SettingsFile(Path(named), f"file {Path(named)}", was_named=True)
    found = next((file for file in map(Path, FILE_NAMES) if file.is_file()), None)
    return None if found is None else SettingsFile(found, f"file {found}", was_named=False)


def read_file(path: str | os.PathLike[str]) -> Mapping[Any, Any]:
    """Return the mapping that a YAML or JSON file holds.

    Raises:
        ConfigError: the file is missing, unreadable, too large, not UTF-8, not YAML or JSON, or not a mapping; it has
            aliases, tags, merges or a key twice, or is nested too deeply. Names the line.
    """
    file = Path(path)

    def refuse(what: str) -> ConfigError:
        return ConfigError(f"config file {file} {what}", path=str(file))

    try:
        text = read_settings(file)
    except SettingsProblem as problem:
        raise refuse(str(problem)) from None
    except FileNotFoundError:
        raise refuse("does not exist") from None
    except IsADirectoryError:
        raise refuse("is a directory, not a file") from None
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror or error}") from None
    name, load = ("JSON", load_json) if file.suffix == ".json" else ("YAML", load_yaml)
    try:
        content = load(text)
    except SettingsProblem as problem:
        raise refuse(f"is not {name}: {problem}") from None
    if not isinstance(content, Mapping | None):
        raise refuse(f"must hold a mapping of settings, got a {type(content).__name__}")
    return content or {}
