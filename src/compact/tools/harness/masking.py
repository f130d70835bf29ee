"""Masking rules: each takes a text and returns the masked text and the number of masked spans, like `re.subn`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import yaml

from compact.errors import ConfigError
from compact.redaction import Redactor

MaskingRule: TypeAlias = Callable[[str], tuple[str, int]]
"""A rule must find nothing in its own output."""


def digits(text: str) -> tuple[str, int]:
    """Mask three or more digits in a row, with the groups that belong to the same number."""
    return _scan(_redactor("digits"), text)


def standard(text: str) -> tuple[str, int]:
    """Mask personal data, verified by check digits, and secrets."""
    return _scan(_redactor("standard"), text)


def none(text: str) -> tuple[str, int]:
    """Mask nothing."""
    return text, 0


BUILT_IN: Mapping[str, MaskingRule] = {"digits": digits, "standard": standard, "none": none}


def rule_from_file(path: Path) -> MaskingRule:
    """Load a YAML or JSON file: a list, or one under `rules`, of rules, rule ids, or names of rule sets.

    Raises:
        ConfigError: the file cannot be read or has no list.
        RedactionError: a rule is refused; says which and why.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        words = " ".join(str(error).split())[:200]
        raise ConfigError(f"cannot read {path}: it is not YAML: {words}", path=str(path)) from None
    rules = data.get("rules") if isinstance(data, Mapping) else data
    if not isinstance(rules, list) or not rules:
        raise ConfigError(
            f"cannot read {path}: expected a list of rules, or one under 'rules'",
            hint="A rule is {id: ..., pattern: ...}; a name like `digits` or `pii` takes a built-in set",
            path=str(path),
        )
    return from_redactor(Redactor(rules))


def from_redactor(redactor: Redactor) -> MaskingRule:
    """Make a masking rule of a redactor."""
    return lambda text: _scan(redactor, text)


@lru_cache(maxsize=4)
def _redactor(name: str) -> Redactor:
    return Redactor(["default", "pii"] if name == "standard" else name)


def _scan(redactor: Redactor, text: str) -> tuple[str, int]:
    found = redactor.scan(text)
    return found.text, found.count
