"""Where events go besides the archive. One file per exporter, imported only when it is used."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, get_args

from pydantic import SecretStr

from compact.errors import ConfigError
from compact.tracing.exporters.exporter import (
    CallableExporter,
    EventDict,
    Exporter,
    ExporterLike,
    Sent,
    Unavailable,
    as_exporter,
)

__all__ = [
    "CHOICES",
    "CallableExporter",
    "EventDict",
    "Exporter",
    "ExporterLike",
    "ExporterName",
    "Sent",
    "Unavailable",
    "as_exporter",
    "open_exporter",
]

ExporterName: TypeAlias = Literal["jsonl", "console", "ariadne", "agents_sdk", "otlp"]
"""A choice of `tracing.exporters`."""
CHOICES: tuple[ExporterName, ...] = get_args(ExporterName)


class ExporterSettings(Protocol):
    """The settings that exporters read. The section `tracing` of the configuration has them."""

    @property
    def ariadne_url(self) -> str | None:
        """Address of Ariadne. None means its default on this machine."""
        ...

    @property
    def ariadne_token(self) -> SecretStr | None:
        """Bearer token for Ariadne."""
        ...

    @property
    def otlp_endpoint(self) -> str | None:
        """Address of an OpenTelemetry collector. None means that OpenTelemetry's own variables decide."""
        ...


def open_exporter(name: str, settings: ExporterSettings) -> Exporter | None:
    """Open an exporter by name. Returns None for `jsonl`, the archive's own events file, which is always written.

    Raises:
        ConfigError: the name is unknown. The error lists the choices.
        MissingExtra: the exporter needs a package that is not installed.
    """
    match name:
        case "jsonl":
            return None
        case "console":
            from compact.tracing.exporters.console import ConsoleExporter

            return ConsoleExporter()
        case "ariadne":
            from compact.tracing.exporters.ariadne import AriadneExporter

            return AriadneExporter(settings.ariadne_url, token=settings.ariadne_token)
        case "agents_sdk":
            from compact.tracing.exporters.agents_sdk import AgentsSdkExporter

            return AgentsSdkExporter()
        case "otlp":
            from compact.tracing.exporters.otlp import OtlpExporter

            return OtlpExporter(settings.otlp_endpoint)
    raise ConfigError(
        f"tracing.exporters must be one of {', '.join(CHOICES)}, got {name!r:.40}", path="tracing.exporters"
    )
