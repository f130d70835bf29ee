"""Where events go besides the archive: one file each, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from pydantic import SecretStr

from compact.errors import ConfigError
from compact.tracing.exporters.protocol import Calling, Exporter, Given, Sent, Told, Unavailable, as_exporter

__all__ = [
    "CHOICES",
    "Calling",
    "Exporter",
    "Given",
    "Sent",
    "Told",
    "Unavailable",
    "as_exporter",
    "open_exporter",
]

CHOICES = ("jsonl", "console", "ariadne", "agents_sdk", "otlp")
"""The names that `tracing.exporters` knows."""


class Settings(Protocol):
    """The part of the configuration that exporters read: the section `tracing`."""

    @property
    def ariadne_url(self) -> str | None:
        """Where Ariadne listens."""
        ...

    @property
    def ariadne_token(self) -> SecretStr | None:
        """What it asks of everybody who connects."""
        ...

    @property
    def otlp_endpoint(self) -> str | None:
        """Where an OpenTelemetry collector listens."""
        ...


def open_exporter(name: str, settings: Settings) -> Exporter | None:
    """The exporter of that name; None for `jsonl`, which is the archive's own events file and always written.

    Raises:
        ConfigError: there is none of that name; lists the choices.
        MissingExtra: it needs a package that is not installed.
    """
    if name == "jsonl":
        return None
    if name not in CHOICES:
        raise ConfigError(
            f"tracing.exporters must be one of {', '.join(CHOICES)}, got {name!r:.40}",
            path="tracing.exporters",
        )
    opened: Any = import_module(f"compact.tracing.exporters.{name}").from_settings(settings)
    assert isinstance(opened, Exporter)
    return opened
