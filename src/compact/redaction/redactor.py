"""The redactor: text, data and messages pass through one before they leave compact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from compact.redaction.masking import Masking
from compact.redaction.rules.rule import Rule, RuleSource
from compact.redaction.rules.sets import rules_from_config
from compact.redaction.scan import LocatorName, Scanner, scanner_for
from compact.redaction.session_memory import SecretMemory
from compact.redaction.structure.data import mask_value
from compact.redaction.structure.message_blocks import mask_message

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets."""

    text: str
    count: int
    """How many spans were masked."""
    by_rule: Mapping[str, int] = field(default_factory=dict)
    """How many spans each rule masked, by the rule's id."""


class Redactor:
    """Masks secrets in text, data and messages.

    Args:
        rules: `"default"`, `"pii"`, `"digits"`, the id of a built-in rule, a `Rule`, a rule as a mapping, or a list of
            these. The last rule with an id wins.
        locator: how candidates are found, which does not change the result. `"auto"` switches to Hyperscan after
            16 MB of text if the extra `fast` is installed.

    Raises:
        RedactionError: a name is unknown, or a rule is refused; `rule` says which.
        MissingExtra: `locator="hyperscan"` without the extra `fast`.
    """

    enabled = True

    def __init__(
        self, rules: RuleSource | Iterable[RuleSource] = "default", *, locator: LocatorName = "auto"
    ) -> None:
        self._scanner = scanner_for(rules_from_config(rules), locator)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return self._scanner.rules

    def redact(self, text: str) -> str:
        """Replace every secret in a text. A text without secrets is returned as the same object."""
        return self.scan(text).text

    def scan(self, text: str) -> Redacted:
        """Like `redact`, and also report how many spans were masked and by which rules."""
        return self._run(lambda: self._scan(text))

    def redact_value(self, value: T) -> T:
        """Mask the leaves of data (dicts, lists, strings) in a copy. Clean data is returned as the same object."""
        masked: T = self._run(lambda: mask_value(value, self._begin()))
        return masked

    def redact_message(self, item: Any) -> Any:
        """Mask a message of any dialect, a dict or an SDK's object, including secrets split over blocks of text."""
        return self._run(lambda: mask_message(item, self._begin()))

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        """Call `redact_message` for every message of a list."""
        return self._run(lambda: [self.redact_message(item) for item in items])

    def session(self) -> Redactor:
        """A redactor with the same rules that masks a secret everywhere once it has found it anywhere."""
        return SessionRedactor(self._scanner)

    @staticmethod
    def disabled() -> Redactor:
        """A redactor that returns everything unchanged; its `enabled` is False."""
        return _DisabledRedactor()

    def _scan(self, text: str) -> Redacted:
        masking = self._begin()
        masked, count = masking.mask_text(text)
        return Redacted(masked, count, dict(masking.by_rule))

    def _begin(self) -> Masking:
        return Masking(self._scanner)

    def _run(self, mask: Callable[[], T]) -> T:
        return mask()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rules,))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.rules)} rules)"


class SessionRedactor(Redactor):
    """A redactor that masks a secret everywhere once it has found it anywhere in its session.

    A secret found late in a text, a value or a list of messages is masked in the earlier parts too. The memory lives in
    this object only and is left out of pickles.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._memory = SecretMemory()

    @property
    def has_learned(self) -> bool:
        """Whether it masks anything that a fresh redactor would not."""
        return len(self._memory) > 0

    def _begin(self) -> Masking:
        return Masking(self._scanner, self._memory)

    def _run(self, mask: Callable[[], T]) -> T:
        known = self._memory.learned
        masked = mask()
        return masked if self._memory.learned == known else mask()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_new_session, (self.rules,))


def _new_session(rules: tuple[Rule, ...]) -> Redactor:
    return Redactor(rules).session()


class _DisabledRedactor(Redactor):
    """Masks nothing."""

    enabled = False

    def __init__(self) -> None:
        super().__init__([])

    def scan(self, text: str) -> Redacted:
        return Redacted(text, 0)

    def redact_value(self, value: T) -> T:
        return value

    def redact_message(self, item: Any) -> Any:
        return item

    def session(self) -> Redactor:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_DisabledRedactor, ())
