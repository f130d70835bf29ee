"""The settings of the harness, and its replaceable parts by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from compact.errors import ConfigError
from compact.messages.dialects import harness as dialect
from compact.redaction import Redactor
from compact.tokens.counter import HostCounter
from compact.tools.harness import checks as checks_
from compact.tools.harness import heuristics, masking
from compact.tools.harness.checks import Check
from compact.tools.harness.heuristics import Heuristic
from compact.tools.harness.masking import MaskingRule, from_redactor, rule_from_file

DEFAULT_BUDGET = 8_000

Part = TypeVar("Part", bound=Callable[..., Any])


class Registry(Generic[Part]):
    """Parts of one kind by name: built in, registered in Python, or offered by the entry points of `group`."""

    def __init__(self, what: str, group: str, built_in: Mapping[str, Part]) -> None:
        self._what = what
        self._group = group
        self.parts = dict(built_in)

    def register(self, name: str, part: Part) -> Part:
        """Register a part under a name, and replace any other of that name."""
        self.parts[name] = part
        return part

    def get(self, wanted: str | Part) -> Part:
        """Look a part up by name; a part itself is returned as it is.

        Raises:
            ConfigError: there is none of that name; lists the known names.
        """
        if not isinstance(wanted, str):
            return wanted
        if wanted not in self.parts:
            offered = {point.name: point for point in entry_points(group=self._group)}
            if wanted not in offered:
                known = ", ".join(sorted({*self.parts, *offered}))
                raise ConfigError(f"there is no {self._what} {wanted!r}", hint=f"Known: {known}")
            self.parts[wanted] = offered[wanted].load()
        return self.parts[wanted]


RULES: Registry[MaskingRule] = Registry("masking rule", "compact.harness.rules", masking.BUILT_IN)
HEURISTICS: Registry[Heuristic] = Registry(
    "truncation heuristic", "compact.harness.heuristics", heuristics.BUILT_IN
)
CHECKS: Registry[Check] = Registry("check", "compact.harness.checks", checks_.BUILT_IN)

_TYPO = 0.8
"""How similar to a known kind another one may be before it is taken for a typo."""
_RULE_FILES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessConfig:
    """How to stabilize a session.

    Raises:
        ConfigError: a value is not allowed, or a name is unknown; says what is allowed.
        RedactionError: a masking rule in a file is refused.
    """

    budget: int = DEFAULT_BUDGET
    """Maximum number of tokens in the context."""
    keep_messages: int = 2
    """Number of newest messages that always stay."""
    pii: str | Path | Redactor | MaskingRule = "digits"
    """The name of a rule, a file of rules, a redactor, or a function from text to (masked text, spans)."""
    pii_allow: Sequence[str] = ()
    """Kinds in which the check accepts personal data."""
    heuristic: str | Heuristic = "conversation_first"
    """The name of a heuristic, or a function from entries and settings to choices."""
    checks: Sequence[str | Check] = ("pii", "budget", "order")
    model: str = "gpt-4o"
    """The model that tokens are counted for."""
    count_tokens: Callable[[str], int] | None = None
    """A function that counts a text's tokens instead of the model's tokenizer."""
    every_turn: bool = False
    """Also assemble the context of every earlier turn, and compare its system and task artifacts by hash."""

    def __post_init__(self) -> None:
        check_whole("budget", self.budget, 1, "a whole number of tokens > 0")
        check_whole("keep_messages", self.keep_messages, 0, "a whole number >= 0")
        if not self.model:
            raise ConfigError(f"model must be a name, got {self.model!r:.80}", path="model")
        object.__setattr__(self, "pii_allow", _names("pii_allow", self.pii_allow))
        object.__setattr__(self, "checks", _names("checks", self.checks))
        for kind in self.pii_allow:
            _check_kind(kind)
        # Resolve every name now, so that a wrong one fails before any work.
        if self.count_tokens is not None:
            HostCounter(self.count_tokens).count("")
        self.masking_rule()
        self.chosen_heuristic()
        self.named_checks()

    def masking_rule(self) -> MaskingRule:
        """Resolve `pii`."""
        if isinstance(self.pii, Redactor):
            return from_redactor(self.pii)
        if isinstance(self.pii, Path) or (
            isinstance(self.pii, str) and self.pii.lower().endswith(_RULE_FILES)
        ):
            return rule_from_file(Path(self.pii))
        return RULES.get(self.pii)

    def chosen_heuristic(self) -> Heuristic:
        """Resolve `heuristic`."""
        return HEURISTICS.get(self.heuristic)

    def named_checks(self) -> list[tuple[str, Check]]:
        """Resolve `checks`, with their names, in order."""
        return [
            (check if isinstance(check, str) else _name_of(check), CHECKS.get(check)) for check in self.checks
        ]


def register_rule(name: str, rule: MaskingRule) -> MaskingRule:
    """Register a masking rule under a name, for `HarnessConfig(pii=name)` and `--pii NAME`."""
    return RULES.register(name, rule)


def register_heuristic(name: str, heuristic: Heuristic) -> Heuristic:
    """Register a truncation heuristic under a name."""
    return HEURISTICS.register(name, heuristic)


def register_check(name: str, check: Check) -> Check:
    """Register a check under a name."""
    return CHECKS.register(name, check)


def _name_of(check: Callable[..., Any]) -> str:
    return getattr(check, "__name__", type(check).__name__)


def _names(path: str, given: Any) -> tuple[Any, ...]:
    """A list of names; one text names several between commas."""
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ConfigError(f"{path} must be a list of names, got {given!r:.80}", path=path)
    return tuple(given)


def _check_kind(kind: Any) -> None:
    """Check a kind that is allowed to hold personal data. A misspelled one would allow nothing.

    Raises:
        ConfigError: it is not a kind, or looks like a misspelled one.
    """
    try:
        dialect.kind_of({"kind": kind})
    except ValueError as problem:
        raise ConfigError(f"pii_allow must be a list of kinds: {problem}", path="pii_allow") from None
    near = get_close_matches(kind.lower(), dialect.KINDS, n=1, cutoff=_TYPO)
    if near and kind not in dialect.KINDS:
        raise ConfigError(
            f"pii_allow must be a list of kinds, got {kind!r:.40}; did you mean {near[0]}?", path="pii_allow"
        )


def check_whole(path: str, value: Any, least: int, allowed: str) -> None:
    """Check a setting that is a whole number.

    Raises:
        ConfigError: the value is not a whole number, or too small.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{path} must be {allowed}, got {value!r:.80}", path=path)
