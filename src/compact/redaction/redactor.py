"""The redactor: every exit of compact passes its text and its data through one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from compact.redaction.data import mask_value
from compact.redaction.json_text import looks_like_json, mask_json
from compact.redaction.message_lists import mask_message
from compact.redaction.rules.candidates import Span, merged
from compact.redaction.rules.rule import Rule, RuleSource
from compact.redaction.rules.sets import rules_of
from compact.redaction.scan import Engine, LocatorName, engine_for

T = TypeVar("T")

_DEEPEST_JSON_IN_STRINGS = 16
_SHORT = 100
"""Names and short leaves repeat in data; below this length a clean one is looked at once."""
_ROUNDS = 4
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
    _stateless = True

    def __init__(
        self, rules: RuleSource | Iterable[RuleSource] = "default", *, locator: LocatorName = "auto"
    ) -> None:
        self._engine: Engine = engine_for(rules_of(rules), locator)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force."""
        return self._engine.rules

    def redact(self, text: str) -> str:
        """The text with every secret replaced; the very same object when there is none."""
        return self.scan(text).text

    def scan(self, text: str) -> Redacted:
        """As `redact`, with how many spans were masked and by which rules."""
        work = _Pass(self)
        masked, _ = work.mask_text(text, 0)
        return Redacted(masked, sum(work.by_rule.values()), work.by_rule)

    def redact_value(self, value: T) -> T:
        """Data (dicts, lists, strings) with its leaves masked: a copy, or the same object when nothing is masked."""
        masked: T = mask_value(value, _Pass(self))
        return masked

    def redact_message(self, item: Any) -> Any:
        """A message of any dialect, a dict or an SDK's object, masked; also a secret split over neighbouring blocks."""
        return mask_message(item, _Pass(self))

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

    def _spans(self, text: str) -> list[Span]:
        """Every span to mask in plain text, by start, none touching another."""
        return merged(self._engine.find(text))

    def _masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        return self._engine.fields.masks_leaf(rule, leaf)

    def _may_match(self, text: str) -> bool:
        return self._engine.may_match(text)

    def _is_clean_json(self, text: str) -> bool:
        return self._engine.is_clean_json(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rules,))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.rules)} rules)"


class _Pass:
    """One pass of a redactor over one text or one piece of data, and its tally (see `structure.Masker`)."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.fields = redactor._engine.fields
        self.by_rule: dict[str, int] = {}
        self._clean: set[str] = set()

    def spans(self, text: str) -> list[Span]:
        return self._redactor._spans(text)

    def masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        masked = self._redactor._masks_leaf(rule, leaf)
        if masked:
            self._tally(rule.id)
        return masked

    def mask_text(self, text: str, depth: int) -> tuple[str, int]:
        if text in self._clean:
            return text, 0
        if depth < _DEEPEST_JSON_IN_STRINGS and looks_like_json(text):
            # An escape can hide a keyword; only then is a text without any worth reading.
            if "\\u" not in text and "\\/" not in text and not self._redactor._may_match(text):
                return text, 0
            if self._redactor._is_clean_json(text):
                return text, 0
            walked = mask_json(text, self, depth + 1)
            if walked is not None:
                if not depth and not walked[1]:
                    self._redactor._engine.remember_clean_json(text)
                return walked
        masked, count = self._mask_plain(text)
        if not count and len(text) < _SHORT and self._redactor._stateless:
            self._clean.add(text)
        return masked, count

    def _mask_plain(self, text: str) -> tuple[str, int]:
        total = 0
        for _ in range(_ROUNDS):
            spans = self.spans(text)
            if not spans:
                break
            for span in spans:
                self._tally(span.rule)
            text = _replaced(text, spans)
            total += len(spans)
        return text, total

    def _tally(self, rule_id: str) -> None:
        self.by_rule[rule_id] = self.by_rule.get(rule_id, 0) + 1


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
