"""`compact doctor`: what would keep compact from working on this machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import typer

from compact.archive import open_archive
from compact.config import CompactConfig
from compact.errors import CompactError
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.tools.cli.options import ConfigOption, JsonOption
from compact.tools.cli.printing import print_json, print_line
from compact.tools.cli.settings import load_settings

EXAMPLE = "Example: compact doctor"

Verdict: TypeAlias = Literal["ok", "missing", "wrong"]
_EXTRAS = {
    "proxy": ("uvicorn", "httpx", "brotli", "zstandard"),
    "viewer": ("starlette", "uvicorn"),
    "fast": ("splintr", "hyperscan"),
    "s3": ("obstore",),
    "llm": ("openai",),
    "otlp": ("opentelemetry.sdk",),
}
_TIMEOUT_S = 5.0


class Finding(NamedTuple):
    """One thing that was looked at."""

    verdict: Verdict
    what: str
    said: str


def command(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check the settings, the archive, the providers' addresses and the extras. Exit code 1: something is wrong.

    Nothing is sent to a provider but a request without a key, and nothing is changed.
    """
    findings = list(examine(config))
    wrong = any(each.verdict == "wrong" for each in findings)
    if as_json:
        print_json([each._asdict() for each in findings])
        raise typer.Exit(int(wrong))
    width = max(len(each.what) for each in findings)
    for each in findings:
        print_line(f"{each.verdict:8} {each.what:{width}}  {each.said}")
    raise typer.Exit(int(wrong))


def examine(file: Path | None) -> Iterator[Finding]:
    """Look at one thing after the other. Without settings there is nothing more to look at."""
    from compact import __version__  # read on demand: looking it up is slow

    yield Finding("ok", "version", f"compact {__version__}, Python {platform.python_version()}")
    try:
        config = load_settings(file)
    except CompactError as problem:
        yield Finding("wrong", "settings", str(problem))
        return
    origin = "defaults and environment" if config.source is None else str(config.source.path)
    yield Finding("ok", "settings", f"from {origin}")
    for name in config.ignored_variables():
        yield Finding("wrong", name, "is no setting, so it sets nothing")
    yield _archive(config)
    for extra, modules in _EXTRAS.items():
        missing = [module for module in modules if not _is_installed(module)]
        install = f"pip install 'compact-context[{extra}]'"
        yield (
            Finding("missing", f"extra {extra}", install) if missing else Finding("ok", f"extra {extra}", "")
        )
    if all(map(_is_installed, _EXTRAS["proxy"])):
        for name in ("anthropic", "openai", "gemini"):
            yield _provider(name, getattr(config.proxy, f"{name}_url"))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def _archive(config: CompactConfig) -> Finding:
    settings = config.archive
    if settings.adapter == "fs":
        root = Path(settings.root).absolute()
        existing = next(each for each in (root, *root.parents) if each.exists())
        if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
            return Finding("wrong", "archive", f"{existing} cannot be written to")
        if existing != root:
            return Finding("ok", "archive", f"{root} will be made when it is needed")
    recorder = Recorder(lambda: datetime.now(UTC), Ids("compact doctor"))
    try:
        with closing(open_archive(Redactor.disabled(), recorder, **settings.model_dump())) as archive:
            return Finding("ok", "archive", f"{archive.address()}, {len(archive.sessions()):,} sessions")
    except (CompactError, OSError) as problem:
        return Finding("wrong", "archive", str(problem))


def _provider(name: str, url: str) -> Finding:
    """Whether anybody answers at an address. Any status will do: a request without a key is refused."""
    import httpx

    try:
        status = httpx.get(url, timeout=_TIMEOUT_S).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        return Finding("wrong", name, f"{httpx.URL(url).host} does not answer ({type(problem).__name__})")
    return Finding("ok", name, f"{httpx.URL(url).host} answers ({status})")
