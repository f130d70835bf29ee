"""What a manager is made of: its settings and the parts that a host brings, checked before anything is built."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from compact.config import ArchiveConfig, CompactConfig, SettingArguments
from compact.errors import ConfigError

_REDACTOR = ("redact", "redact_value", "redact_messages", "session")


def join_settings(config: Any, archive: Any, settings: SettingArguments) -> tuple[CompactConfig, Any]:
    """Return the configuration with the keyword settings over it, and the archive if it is a part and no settings.

    Raises:
        ConfigError: it is no configuration, or a setting is wrong.
    """
    if config is not None and not isinstance(config, CompactConfig):
        raise _not_a_config(config)
    is_settings = isinstance(archive, Mapping | ArchiveConfig)
    chosen: Any = {**settings, "archive": archive} if is_settings else settings
    if config is None:
        config = CompactConfig(**chosen)
    elif chosen:
        config = config.updated(**chosen)
    return config, None if is_settings else archive


def check_parts(
    *, summarizer: Any, archive: Any, exporters: Any, redactor: Any, clock: Any, new_id: Any = None
) -> None:
    """Check the parts that replace those of the configuration.

    Raises:
        ConfigError: a part cannot be what it should be; names it and says what to pass.
    """
    if summarizer is not None and not callable(summarizer):
        _refuse(
            "summarizer", "a function of a SummaryRequest", summarizer, "An agent goes to manual_compact(...)"
        )
    if isinstance(
        archive, str | bytes | int | float | os.PathLike
    ):  # what other objects lack is said when they are used
        hint = "A folder goes to archive={'root': ...}"
        _refuse(
            "archive",
            "an Archive, an object with write_file(path, content), or a mapping of settings",
            archive,
            hint,
        )
    if isinstance(exporters, str | bytes | Mapping) or not isinstance(exporters, Iterable):
        hint = "Pass a list: exporters=[exporter]. Names go to tracing={'exporters': [...]}"
        _refuse("exporters", "a list of exporters or functions", exporters, hint)
    is_redactor = all(callable(getattr(redactor, name, None)) for name in _REDACTOR)
    if redactor is not None and (isinstance(redactor, type) or not is_redactor):
        _refuse("redactor", "a Redactor", redactor, "Rules go to redaction={'rules': ...}")
    if clock is not None and not callable(clock):
        _refuse("clock", "a function that returns the time as a datetime", clock)
    if new_id is not None and not callable(new_id):
        _refuse("new_id", "a function that returns a text which nobody can guess", new_id)


def check_count(name: str, given: Any) -> int:
    """Return an argument that is a number of tokens.

    Raises:
        ConfigError: it is something else, or negative.
    """
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    shown = str(given) if type(given) is int else _kind(given)
    raise ConfigError(
        f"{name} must be a whole number of tokens, 0 or more, got {shown}",
        hint="Pass the number in the provider's usage, such as reply.usage.prompt_tokens",
        path=name,
    )


def _refuse(name: str, wanted: str, given: Any, hint: str = "") -> None:
    raise ConfigError(f"{name} must be {wanted}, got {_kind(given)}", hint=hint, path=name)


def _not_a_config(given: Any) -> ConfigError:
    hint = "Settings are keywords: CompactManager(model='gpt-4o'), or CompactManager(CompactConfig(...))"
    if isinstance(given, str):
        hint = f"Did you mean CompactManager(model={given!r:.60})? A file is read by CompactConfig.load(path)"
    elif isinstance(given, Mapping):
        hint = "Pass its entries as keywords: CompactManager(**settings)"
    return ConfigError(f"config must be a CompactConfig, got {_kind(given)}", hint=hint, path="config")


def _kind(given: Any) -> str:
    if given is None:
        return "None"
    return f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
