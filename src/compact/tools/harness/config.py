"""The settings of the harness, and its parts by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compact.errors import ConfigError
from compact.redaction import Redactor
from compact.tools.harness import checks as checks_
from compact.tools.harness import heuristics, masking
from compact.tools.harness.checks import Check
from compact.tools.harness.heuristics import Heuristic
from compact.tools.harness.masking import MaskingRule, from_redactor, rule_from_file
from compact.tools.harness.registry import Registry

DEFAULT_BUDGET = 8_000

RULES: Registry[MaskingRule] = Registry("masking rule", "compact.harness.rules", masking.BUILT_IN)
HEURISTICS: Registry[Heuristic] = Registry(
    "truncation heuristic", "compact.harness.heuristics", heuristics.BUILT_IN
)
CHECKS: Registry[Check] = Registry("check", "compact.harness.checks", checks_.BUILT_IN)

_RULE_FILES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessConfig:
    """How a session is stabilized.

    Raises:
        ConfigError: a value is not allowed, or a name is not known; says which and what is.
        RedactionError: a masking rule out of a file is refused.
    """

    budget: int = DEFAULT_BUDGET
    """The most tokens that the context may cost."""
    keep_messages: int = 2
    """How many of the newest messages always stay."""
    pii: str | Path | Redactor | MaskingRule = "digits"
    """A rule's name, a file of rules, a redactor, or a function like `re.subn` that takes a text."""
    pii_allow: Sequence[str] = ()
    """Kinds in which personal data is accepted by the check."""
    heuristic: str | Heuristic = "newest_first"
    checks: Sequence[str | Check] = ("pii", "budget", "order")
    model: str = "gpt-4o"
    """Whose tokens are counted."""
    every_turn: bool = False
    """Also assemble the context of every earlier turn, and hold its authority against the session's by hash."""

    def __post_init__(self) -> None:
        _require(
            _is_whole(self.budget) and self.budget > 0, "budget", "a whole number of tokens > 0", self.budget
        )
        _require(
            _is_whole(self.keep_messages) and self.keep_messages >= 0,
            "keep_messages",
            "a whole number >= 0",
            self.keep_messages,
        )
        _require(bool(self.model), "model", "a name", self.model)
        allowed: Any = self.pii_allow
        if isinstance(allowed, str):
            allowed = [kind.strip() for kind in allowed.split(",") if kind.strip()]
        object.__setattr__(self, "pii_allow", tuple(allowed))
        object.__setattr__(self, "checks", tuple(self.checks))
        # Resolved once here, so that a wrong name is an error before any work.
        self.masking_rule()
        self.chosen_heuristic()
        self.named_checks()

    def masking_rule(self) -> MaskingRule:
        """The rule that `pii` means."""
        if isinstance(self.pii, Redactor):
            return from_redactor(self.pii)
        if isinstance(self.pii, Path) or (
            isinstance(self.pii, str) and self.pii.lower().endswith(_RULE_FILES)
        ):
            return rule_from_file(Path(self.pii))
        return RULES.get(self.pii)

    def chosen_heuristic(self) -> Heuristic:
        """The function that `heuristic` means."""
        return HEURISTICS.get(self.heuristic)

    def named_checks(self) -> list[tuple[str, Check]]:
        """The checks with their names, in order."""
        return [
            (check if isinstance(check, str) else _name_of(check), CHECKS.get(check)) for check in self.checks
        ]


def register_rule(name: str, rule: MaskingRule) -> MaskingRule:
    """Makes a masking rule known under a name, for `HarnessConfig(pii=name)` and `--pii NAME`."""
    return RULES.register(name, rule)


def register_heuristic(name: str, heuristic: Heuristic) -> Heuristic:
    """Makes a truncation heuristic known under a name."""
    return HEURISTICS.register(name, heuristic)


def register_check(name: str, check: Check) -> Check:
    """Makes a check known under a name."""
    return CHECKS.register(name, check)


def _name_of(check: Callable[..., Any]) -> str:
    return getattr(check, "__name__", type(check).__name__)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(fine: bool, path: str, allowed: str, given: Any) -> None:
    if not fine:
        raise ConfigError(f"{path} must be {allowed}, got {given!r:.80}", path=path)
