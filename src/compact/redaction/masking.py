"""One masking of a text or a piece of data: JSON is read, plain text is scanned, and what is masked is counted."""

from __future__ import annotations

from collections import defaultdict

from compact.redaction.fields.value_judge import is_secret_leaf
from compact.redaction.rules.matches import Finding, merge
from compact.redaction.rules.rule import Rule
from compact.redaction.scan import Scanner
from compact.redaction.session_memory import SecretMemory
from compact.redaction.structure.json_text import looks_like_json, mask_json

_MAX_JSON_LEVELS = 16
"""Levels of JSON inside strings."""
_SHORT_CHARS = 100
"""Names and short leaves repeat in data. Below this length, a clean one is scanned only once."""
_MAX_ROUNDS = 4
"""Masking can join two pieces into a new match, so it is repeated until nothing changes."""


class Masking:
    """Masks with a scanner, and with a session's memory if there is one; see `leaves.Masker`."""

    def __init__(self, scanner: Scanner, memory: SecretMemory | None = None) -> None:
        self.field_names = scanner.field_names
        self.by_rule: defaultdict[str, int] = defaultdict(int)
        self._scanner = scanner
        self._memory = memory
        self._clean: set[str] = set()

    def find(self, text: str) -> list[Finding]:
        """Everything to mask in a plain text, sorted by start, without overlaps."""
        found = self._scanner.find(text)
        if self._memory is not None:
            for finding in found:
                self._memory.learn(text[finding.start : finding.end])
            found = sorted(found + self._memory.find(text))
        return merge(found)

    def masks_leaf(self, rule: Rule, leaf: str | float) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        masked = is_secret_leaf(rule, leaf)
        if masked:
            self.by_rule[rule.id] += 1
            if self._memory is not None:
                self._memory.learn(leaf)
        return masked

    def mask_text(self, text: str, depth: int = 0) -> tuple[str, int]:
        """Mask a text, and count what was masked. `depth` is the level of JSON inside strings."""
        if text in self._clean:
            return text, 0
        if depth < _MAX_JSON_LEVELS and looks_like_json(text):
            if not self._memory and self._is_clean_json(text):
                return text, 0
            masked = mask_json(text, self, depth + 1)
            if masked is not None:
                if not depth and not masked[1]:
                    self._scanner.remember_clean_json(text)
                return masked
        new, count = self._mask_plain(text)
        if not count and len(text) < _SHORT_CHARS and self._memory is None:
            self._clean.add(text)
        return new, count

    def _is_clean_json(self, text: str) -> bool:
        # An escape can hide a keyword, so a text without keywords is clean only if it has no escapes.
        has_escapes = "\\u" in text or "\\/" in text
        return (not has_escapes and not self._scanner.may_match(text)) or self._scanner.is_clean_json(text)

    def _mask_plain(self, text: str) -> tuple[str, int]:
        total = 0
        for _ in range(_MAX_ROUNDS):
            found = self.find(text)
            if not found:
                break
            for finding in found:
                self.by_rule[finding.rule] += 1
            text = _replace(text, found)
            total += len(found)
        return text, total


def _replace(text: str, findings: list[Finding]) -> str:
    pieces: list[str] = []
    done = 0
    for finding in findings:
        pieces += [text[done : finding.start], finding.replacement]
        done = finding.end
    return "".join([*pieces, text[done:]])
