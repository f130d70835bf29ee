"""The redactor: every exit of compact passes its text and its data through one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from compact.redaction.candidates import Span, merged
from compact.redaction.engine import Engine, LocatorName, engine_for
from compact.redaction.messages import mask_message
from compact.redaction.rules import Rule, RuleSource
from compact.redaction.sets import rules_of
from compact.redaction.structure import looks_like_json, mask_json, mask_value

T = TypeVar("T")

_DEEPEST_JSON_IN_STRINGS = 16
_PASSES = 4
"""Masking can bring two pieces together that form a new match; it is repeated until nothing changes."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets."""

    text: str
    count: int
    """How many spans were masked."""
    by_rule: Mapping[str, int] = field(default_factory=dict)
    """How many by each rule, by id."""


class Redactor:
    """Masks secrets in text, data and messages.

    Args:
        rules: `"default"`, `"pii"`, `"digits"`, the id of a built-in rule, a `Rule`, a rule as a mapping, or a list of
            these. Of two rules with one id the later one counts.
        locator: how candidates are found; the result is the same. `"auto"` takes Hyperscan where the extra `fast` is
            installed and there is enough text for it.

    Raises:
        RedactionError: a name is unknown, or a rule is refused; `rule` says which.
        MissingExtra: `locator="hyperscan"` without the extra `fast`.
    """

    enabled = True

    def __init__(
        self, rules: RuleSource | Iterable[RuleSource] = "default", *, locator: LocatorName = "auto"
    ) -> None:
        self._engine: Engine = engine_for(rules_of(rules), locator)
        self.fields = self._engine.fields

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return self._engine.rules

    def redact(self, text: str) -> str:
        """The text with every secret replaced; the very same object when there is none."""
        return self.scan(text).text

    def scan(self, text: str) -> Redacted:
        """As `redact`, with how many spans were masked and by which rules."""
        by_rule: dict[str, int] = {}
        masked, count = self._settled(text, 0, by_rule)
        return Redacted(masked, count, by_rule)

    def redact_value(self, value: T) -> T:
        """Data (dicts, lists, strings) with its leaves masked: a copy, or the same object when nothing is masked."""
        masked: T = mask_value(value, self)
        return masked

    def redact_message(self, item: Any) -> Any:
        """A message of any dialect, a dict or an SDK's object, masked; also a secret split over neighbouring blocks."""
        return mask_message(item, self)

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        """As `redact_message`, for each of a list."""
        return [self.redact_message(item) for item in items]

    def session(self) -> Redactor:
        """A redactor with the same rules that remembers: what was found once is masked wherever it stands again."""
        from compact.redaction.session import SessionRedactor

        return SessionRedactor(self._engine)

    @staticmethod
    def disabled() -> Redactor:
        """A redactor that gives everything back as it is; its `enabled` is False."""
        return _Disabled()

    def spans(self, text: str) -> list[Span]:
        """Every span that is to be masked in plain text, by start, none overlapping another."""
        return merged(self._engine.find(text))

    def mask_text(self, text: str, depth: int) -> tuple[str, int]:
        """Part of `Masker`: one leaf, once."""
        return self._masked(text, depth, None)

    def masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        """Part of `Masker`: a leaf under a telling name."""
        return self.fields.masks_leaf(rule, leaf)

    def _may_match(self, text: str) -> bool:
        return self._engine.may_match(text)

    def _settled(self, text: str, depth: int, by_rule: dict[str, int] | None) -> tuple[str, int]:
        total = 0
        for _ in range(_PASSES):
            text, count = self._masked(text, depth, by_rule)
            if not count:
                break
            total += count
        return text, total

    def _masked(self, text: str, depth: int, by_rule: dict[str, int] | None) -> tuple[str, int]:
        if depth < _DEEPEST_JSON_IN_STRINGS and looks_like_json(text):
            # An escape can hide a keyword; only then is a text without any worth reading.
            if not self._may_match(text) and "\\u" not in text and "\\/" not in text:
                return text, 0
            walked = mask_json(text, self, depth + 1)
            if walked is not None:
                if by_rule is not None and walked[1]:
                    by_rule["json"] = by_rule.get("json", 0) + walked[1]
                return walked
        spans = self.spans(text)
        if not spans:
            return text, 0
        for span in spans:
            if by_rule is not None:
                by_rule[span.rule] = by_rule.get(span.rule, 0) + 1
        return _replaced(text, spans), len(spans)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rules,))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.rules)} rules)"


class _Disabled(Redactor):
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

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        return list(items)

    def session(self) -> Redactor:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Disabled, ())


def _replaced(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for span in spans:
        pieces += [text[done : span.start], span.replacement]
        done = span.end
    pieces.append(text[done:])
    return "".join(pieces)
