"""A session's memory of what was secret in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import re2  # type: ignore[import-untyped]

from compact.redaction.fields.shapes import looks_random, surprise
from compact.redaction.redactor import Redacted, Redactor
from compact.redaction.rules.candidates import MASK, Span, merged
from compact.redaction.rules.patterns import Pattern, one_byte_per_character
from compact.redaction.rules.rule import Rule
from compact.redaction.scan import Engine

T = TypeVar("T")

MAX_LITERALS = 2_000
_PER_PATTERN = 250
_SHORTEST = 8
_LONGEST = 500
_SHORTEST_PHRASE = 16
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_ESCAPED_BREAK = re.compile(r"\\+[nr]")
_RULE = "seen-before"


class SessionRedactor(Redactor):
    """A redactor that masks a secret everywhere once it has been found anywhere in its session.

    The memory lives in this object only: it is bounded, never written, never printed, and left out of pickles.
    """

    _stateless = False

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._literals: dict[str, None] = {}
        self._patterns: list[Pattern] = []
        self._stale = False
        self._learned = 0

    def session(self) -> Redactor:
        """A fresh one: memories do not mix."""
        return SessionRedactor(self._engine)

    @property
    def has_learned(self) -> bool:
        """Whether it masks anything that a fresh one would not."""
        return bool(self._literals)

    def scan(self, text: str) -> Redacted:
        """As for any redactor; what is found at the end of the text is masked at its beginning too."""
        return self._twice_if_learned(lambda: super(SessionRedactor, self).scan(text))

    def redact_value(self, value: T) -> T:
        """As for any redactor, and likewise."""
        return self._twice_if_learned(lambda: super(SessionRedactor, self).redact_value(value))

    def redact_message(self, item: Any) -> Any:
        """As for any redactor, and likewise."""
        return self._twice_if_learned(lambda: super(SessionRedactor, self).redact_message(item))

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        """As for any redactor; what is found in a later message is masked in the earlier ones too."""
        return self._twice_if_learned(lambda: super(SessionRedactor, self).redact_messages(items))

    def _twice_if_learned(self, mask: Callable[[], T]) -> T:
        known = self._learned
        masked = mask()
        return masked if self._learned == known else mask()

    def _spans(self, text: str) -> list[Span]:
        found = self._engine.find(text)
        for span in found:
            self._remember(text[span.start : span.end])
        return merged(sorted(found + self._seen_in(text)))

    def _masks_leaf(self, rule: Rule, leaf: Any) -> bool:
        masked = super()._masks_leaf(rule, leaf)
        if masked and (isinstance(leaf, str) or abs(leaf) < 10**_LONGEST):
            self._remember(str(leaf))
        return masked

    def _remember(self, literal: str) -> None:
        literal = literal.strip()
        if len(literal) > _LONGEST or "\n" in literal or literal.startswith("-----BEGIN"):
            # A key block is quoted by its lines; a very long value by what it is made of.
            for line in _KEY_LINE.findall(_ESCAPED_BREAK.sub("\n", literal)):
                for at in range(0, len(line), _LONGEST):
                    self._remember_one(line[at : at + _LONGEST])
        self._remember_one(literal)

    def _remember_one(self, literal: str) -> None:
        if not _SHORTEST <= len(literal) <= _LONGEST or literal in self._literals or MASK in literal:
            return
        if not (looks_random(literal) or surprise(literal) >= 0.3 or _is_phrase(literal)):
            return
        if len(self._literals) >= MAX_LITERALS:
            self._literals.pop(next(iter(self._literals)))
        self._literals[literal] = None
        self._stale = True
        self._learned += 1

    def _seen_in(self, text: str) -> list[Span]:
        if self._stale:
            self._compile()
        if not self._patterns:
            return []
        shadow = one_byte_per_character(text)
        return [
            Span(start, end, _RULE, MASK)
            for pattern in self._patterns
            for start, end, *_ in pattern.spans(text, shadow)
        ]

    def _compile(self) -> None:
        literals = list(self._literals)
        self._patterns = [
            Pattern(
                "|".join(re2.escape(literal) for literal in literals[at : at + _PER_PATTERN]), longest=True
            )
            for at in range(0, len(literals), _PER_PATTERN)
        ]
        self._stale = False

    def _may_match(self, text: str) -> bool:
        return bool(self._literals) or super()._may_match(text)

    def _is_clean_json(self, text: str) -> bool:
        return not self._literals and super()._is_clean_json(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_forgetful, (self.rules,))


def _is_phrase(literal: str) -> bool:
    """Whether it is a passphrase: nobody writes several words in that order by chance."""
    return len(literal) >= _SHORTEST_PHRASE and len(literal.split()) >= 3


def _forgetful(rules: tuple[Rule, ...]) -> Redactor:
    return Redactor(rules).session()
