"""Prompt templates without logic: `{{name}}` is a value, `{{> file}}` includes another template, `{{! ...}}` is a comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from compact.errors import ConfigError
from compact.summaries.strategies import Strategy

SUMMARIZE = "{{> system-prompt-context-summarizer.hbs }}"
UPDATE = "{{> system-prompt-context-updater.hbs }}"
NAMES = ("strategy", "form", "sections", "max_tokens", "summary_tag")
"""The values that a template may use."""
_BRACES = re.compile(r"\{\{\{?(.*?)\}?\}\}", re.DOTALL)
_PARTIAL = re.compile(r">\s*([\w.-]+)\s*")
_MAX_DEPTH = 8
_SUFFIXES = (".hbs", ".txt", ".md")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template with its partials in place."""

    text: str

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the prompt with its values filled in. Braces inside a value have no meaning."""
        return _BRACES.sub(lambda match: values[match.group(1).strip()], self.text).strip()


def load(prompt: str) -> Prompt:
    """Load the prompt that a setting names: the text itself, or the path of a file.

    Partials are looked up beside that file, then among those that compact ships.

    Raises:
        ConfigError: a file is missing or is not text, a partial is unknown or includes itself, or the template contains
            logic or an unknown name.
    """
    folder = None
    if prompt.strip().endswith(_SUFFIXES) and "\n" not in prompt:
        path = Path(prompt.strip()).expanduser()
        if not path.is_file():
            raise _refused(f"names a file that does not exist: {path}")
        folder, prompt = path.parent, _read(path)
    return Prompt(_expand(prompt, folder, 0))


def _expand(text: str, folder: Path | None, depth: int) -> str:
    if depth > _MAX_DEPTH:
        raise _refused(f"includes partials more than {_MAX_DEPTH} deep: one of them includes itself")

    def put(match: re.Match[str]) -> str:
        inner = match.group(1)
        if inner.startswith("!"):
            return ""
        if partial := _PARTIAL.fullmatch(inner):
            return _expand(_partial(partial.group(1), folder), folder, depth + 1).strip()
        if inner.strip() in NAMES:
            return match.group()
        raise _refused(f"has {match.group()!r}; allowed are a comment, a partial, and {', '.join(NAMES)}")

    return _BRACES.sub(put, text)


def _partial(name: str, folder: Path | None) -> str:
    if folder is not None and (folder / name).is_file():
        return _read(folder / name)
    shipped = files("compact.summaries").joinpath("templates", name)
    if name.startswith(".") or not shipped.is_file():
        raise _refused(f"includes an unknown partial {name!r}")
    return shipped.read_text(encoding="utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise _refused(f"names a file that is not UTF-8 at byte {problem.start:,}: {path}") from None
    except OSError as problem:
        raise _refused(f"names a file that cannot be read ({problem.strerror}): {path}") from None


def _refused(what: str) -> ConfigError:
    return ConfigError(f"summary.prompt {what}", path="summary.prompt")


def values_for(strategy: Strategy, max_tokens: int, tag: str) -> dict[str, str]:
    """The values for a template."""
    sections = "\n".join(strategy.headings)
    return {
        "strategy": strategy.prompt,
        "form": f"Use these headings, in this order; leave out one that would be empty:\n{sections}",
        "sections": sections,
        "max_tokens": str(max_tokens),
        "summary_tag": tag,
    }
