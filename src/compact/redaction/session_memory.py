"""A session's memory of its secrets: what was found once is found wherever it occurs again."""

from __future__ import annotations

import re

import re2  # type: ignore[import-untyped]

from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.rules.patterns import RulePattern, one_byte_per_character
from compact.redaction.shapes import looks_random, surprise

MAX_SECRETS = 2_000
_PER_PATTERN = 250
_SHORTEST = 8
_LONGEST = 500
_SHORTEST_PHRASE = 16
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_ESCAPED_BREAK = re.compile(r"\\+[nr]")
_RULE_ID = "seen-before"


class SecretMemory:
    """The secrets of one session. The memory is bounded, and is never written or printed."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}
        self._patterns: list[RulePattern] = []
        self._is_stale = False
        self.learned = 0
        """How many secrets were learned so far, including those forgotten since."""

    def __len__(self) -> int:
        return len(self._secrets)

    def learn(self, secret: str | float) -> None:
        """Remember a secret, unless it is short or a common word."""
        if not isinstance(secret, str):
            if abs(secret) >= 10**_LONGEST:
                return
            secret = str(secret)
        secret = secret.strip()
        if len(secret) > _LONGEST or "\n" in secret or secret.startswith("-----BEGIN"):
            # A key block may be quoted line by line, and a very long value in part.
            for line in _KEY_LINE.findall(_ESCAPED_BREAK.sub("\n", secret)):
                for at in range(0, len(line), _LONGEST):
                    self._remember(line[at : at + _LONGEST])
        self._remember(secret)

    def find(self, text: str) -> list[Finding]:
        """Find the remembered secrets in a text, in no particular order."""
        if self._is_stale:
            self._compile()
        if not self._patterns:
            return []
        shadow = one_byte_per_character(text)
        return [
            Finding(match.start, match.end, _RULE_ID, MASK)
            for pattern in self._patterns
            for match in pattern.candidates(text, shadow)
        ]

    def _remember(self, secret: str) -> None:
        if not _SHORTEST <= len(secret) <= _LONGEST or secret in self._secrets or MASK in secret:
            return
        if not (looks_random(secret) or surprise(secret) >= 0.3 or _is_phrase(secret)):
            return
        if len(self._secrets) >= MAX_SECRETS:
            self._secrets.pop(next(iter(self._secrets)))
        self._secrets[secret] = None
        self._is_stale = True
        self.learned += 1

    def _compile(self) -> None:
        escaped = [re2.escape(secret) for secret in self._secrets]
        self._patterns = [
            RulePattern("|".join(escaped[at : at + _PER_PATTERN]), longest=True)
            for at in range(0, len(escaped), _PER_PATTERN)
        ]
        self._is_stale = False


def _is_phrase(secret: str) -> bool:
    """Whether it is a passphrase: nobody writes these words in this order by chance."""
    return len(secret) >= _SHORTEST_PHRASE and len(secret.split()) >= 3
