"""Where settings come from: a file, the environment, keyword arguments, a preset.

Each source is read into one flat mapping, path to `Given`. Laying one source over another is then a dict update, and
every value remembers who gave it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from compact.config.kinds import from_text, kind_of, shown
from compact.config.problems import Problem, config_error, unknown
from compact.config.sections import SECTIONS, Section
from compact.errors import ConfigError

FieldPath: TypeAlias = tuple[str, ...]
"""A setting's place: ("model",) or ("policy", "trigger_pct")."""

FILE_NAMES = ("compact.yaml", "compact.yml", "compact.json")
"""Looked for in the current directory, in this order."""

PREFIX = "COMPACT_"
"""How the name of every environment variable of ours starts."""

SHORT_SECTION = "policy"
"""The section whose fields have a variable of their own name, too: COMPACT_TRIGGER_PCT."""

BLOCK = "compact"
"""The key of the context compaction PRD's block."""

BLOCK_FIELDS: dict[str, FieldPath] = {
    "max_tokens": ("summary", "max_tokens"),
    "token_threshold": ("policy", "token_threshold"),
    "message_threshold": ("policy", "message_threshold"),
    "turn_threshold": ("policy", "turn_threshold"),
    "retention_window": ("policy", "retention_window"),
    "model": ("summary", "model"),
    "prompt": ("summary", "prompt"),
    "summary_tag": ("summary", "summary_tag"),
}
"""The block's parameters and the settings that they mean. Its model is the one that writes summaries."""

BLOCK_MEANS: dict[FieldPath, Any] = {("policy", "layout"): "selective", ("policy", "token_threshold"): 60_000}
"""What the block means by merely being there."""

PRESETS: dict[str, dict[FieldPath, Any]] = {
    "layered": {},
    "selective": {
        **BLOCK_MEANS,
        ("policy", "retention_window"): 6,
        ("summary", "max_tokens"): 2000,
    },
    "progressive": {
        ("policy", "trigger_pct"): 0.85,
        ("policy", "summarize_pct"): 0.95,
        ("policy", "recent_share"): 0.2,
        ("offload", "large_result_tokens"): 20_000,
        ("offload", "preview_lines"): 10,
    },
}
"""The compaction specification's behaviour, the context compaction PRD's, and the progressive compaction addendum's."""


class Given(NamedTuple):
    """A value and where it came from: "file PATH", "environment NAME", "argument", "preset NAME"."""

    value: Any
    origin: str


def from_settings(settings: Mapping[Any, Any], origin: str) -> dict[FieldPath, Given]:
    """A nested mapping, as files and callers give it. Sections may be mappings or section objects; a key may be a path.

    An empty section (`policy:` with everything below it commented out) gives nothing.
    """
    block: dict[FieldPath, Given] = {}
    own: dict[FieldPath, Given] = {}
    for key, value in settings.items():
        name = str(key)
        if name == BLOCK:
            block = _from_block(value, origin)
        elif name not in SECTIONS:
            own[tuple(name.split(".", 1))] = Given(value, origin)
        elif isinstance(value, Section):
            own |= {
                (name, field): Given(getattr(value, field), origin)
                for field in type(value).model_fields
                if field in value.model_fields_set
            }
        elif isinstance(value, Mapping):
            own |= {(name, str(field)): Given(entry, origin) for field, entry in value.items()}
        elif value is not None:
            own[(name,)] = Given(value, origin)
    return block | own


def _from_block(block: Any, origin: str) -> dict[FieldPath, Given]:
    if block is None:
        block = {}
    if not isinstance(block, Mapping):
        text = f"{BLOCK} must be a mapping of settings, got {shown(block)} ({origin})"
        raise config_error([Problem(BLOCK, text)])
    wrong = [str(name) for name in block if name not in BLOCK_FIELDS]
    if wrong:
        known = [f"{BLOCK}.{name}" for name in BLOCK_FIELDS]
        raise config_error(
            [Problem(f"{BLOCK}.{name}", unknown(f"{BLOCK}.{name}", known) + f" ({origin})") for name in wrong]
        )
    found = {path: Given(value, f"{origin}, {BLOCK}") for path, value in BLOCK_MEANS.items()}
    for name, value in block.items():
        found[BLOCK_FIELDS[name]] = Given(value, f"{origin}, {BLOCK}.{name}")
    return found


def from_preset(name: str) -> dict[FieldPath, Given]:
    """A preset's values.

    Raises:
        ConfigError: there is no preset of that name; the error lists them.
    """
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}", path="preset")
    return {path: Given(value, f"preset {name}") for path, value in PRESETS[name].items()}


def from_environment(environment: Mapping[str, str], top: type[Section]) -> dict[FieldPath, Given]:
    """The settings that variables give. A name by path wins over a short one; an empty variable counts as not set.

    Raises:
        ConfigError: COMPACT_SECTION__NAME names no setting.
    """
    short: dict[FieldPath, Given] = {}
    by_path: dict[FieldPath, Given] = {}
    problems: list[Problem] = []
    for variable in sorted(environment):
        text = environment[variable]
        if not variable.startswith(PREFIX) or not text.strip():
            continue
        name = variable.removeprefix(PREFIX).lower()
        section, separator, field = name.partition("__")
        if not separator:
            path = _short_path(name, top)
            if path is not None:
                short[path] = _given(variable, text, path, top)
        elif section in SECTIONS and field in SECTIONS[section].model_fields:
            by_path[section, field] = _given(variable, text, (section, field), top)
        else:
            problems.append(_unknown_variable(variable, section, field, top))
    if problems:
        raise config_error(problems)
    return short | by_path


def ignored_variables(environment: Mapping[str, str], top: type[Section]) -> list[str]:
    """Variables that start with COMPACT_ and set nothing: another program's, or a slip."""
    return [
        variable
        for variable in sorted(environment)
        if variable.startswith(PREFIX)
        and "__" not in variable
        and _short_path(variable.removeprefix(PREFIX).lower(), top) is None
    ]


def variables_of(path: FieldPath) -> list[str]:
    """The names of the variables that set a field, the one that wins first."""
    names = [PREFIX + "__".join(path).upper()]
    if path[0] == SHORT_SECTION:
        names.append(PREFIX + path[-1].upper())
    return names


def _short_path(name: str, top: type[Section]) -> FieldPath | None:
    if name in SECTIONS[SHORT_SECTION].model_fields:
        return (SHORT_SECTION, name)
    return (name,) if name in top.model_fields and name not in SECTIONS else None


def _given(variable: str, text: str, path: FieldPath, top: type[Section]) -> Given:
    owner = SECTIONS[path[0]] if len(path) == 2 else top
    return Given(from_text(text, kind_of(owner, path[-1])), f"environment {variable}")


def _unknown_variable(variable: str, section: str, field: str, top: type[Section]) -> Problem:
    path = f"{section}.{field}"
    if section in SECTIONS:
        return Problem(path, unknown(path, known_paths(top)) + f" (environment {variable})")
    return Problem(path, unknown(section, SECTIONS) + f" (environment {variable})")


def known_paths(top: type[Section]) -> list[str]:
    """The dotted path of every setting, in the order of the reference."""
    fields = [name for name in top.model_fields if name not in SECTIONS]
    return fields + [
        f"{name}.{field}" for name, section in SECTIONS.items() for field in section.model_fields
    ]


def find_file() -> Path | None:
    """The configuration file of the current directory, if there is one."""
    return next((path for path in map(Path, FILE_NAMES) if path.is_file()), None)


def read_file(path: str | os.PathLike[str]) -> dict[FieldPath, Given]:
    """A YAML or JSON file's settings.

    Raises:
        ConfigError: it is missing, no file, not UTF-8, not YAML or JSON, or no mapping; says which line.
    """
    file = Path(path)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _file_error(
            file, f"is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
        ) from None
    except FileNotFoundError:
        raise _file_error(file, "does not exist") from None
    except IsADirectoryError:
        raise _file_error(file, "is a directory, not a file") from None
    except OSError as error:
        raise _file_error(file, f"cannot be read: {error.strerror or error}") from None
    content = _parse_json(file, text) if file.suffix == ".json" else _parse_yaml(file, text)
    if content is None:
        content = {}
    if not isinstance(content, Mapping):
        raise _file_error(file, f"must hold a mapping of settings, got a {type(content).__name__}")
    return from_settings(content, f"file {file}")


def _parse_json(file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _file_error(
            file, f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise _file_error(file, f"is not JSON that can be read: {error}") from None


def _parse_yaml(file: Path, text: str) -> Any:
    import yaml  # slow to import, and only files need it

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _file_error(file, f"is not YAML: {where}{error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _file_error(file, f"is not YAML: line {line}: {error.reason}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _file_error(file, f"is not YAML that can be read: {error}") from None


def _file_error(file: Path, what: str) -> ConfigError:
    return ConfigError(f"config file {file} {what}", path=str(file))
