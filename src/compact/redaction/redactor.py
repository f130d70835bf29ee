"""The redactor: text, data and messages pass through one before they leave compact."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import re2  # type: ignore[import-untyped]

from compact.redaction.data import mask_message, mask_value, replace_findings
from compact.redaction.fields.value_judge import is_secret_leaf
from compact.redaction.json_text import looks_like_json, mask_json
from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.rules.patterns import RulePattern, one_byte_per_character
from compact.redaction.rules.rule import Rule, RuleSource
from compact.redaction.rules.sets import rules_from_config
from compact.redaction.rules.validators import not_placeholder
from compact.redaction.scan import LocatorName, Scanner, scanner_for
from compact.redaction.shapes import looks_random, surprise

T = TypeVar("T")
MAX_SECRETS = 2_000
"""Secrets that a session remembers."""
_SECRETS_PER_PATTERN = 250
_SHORTEST_SECRET = 8
_LONGEST_SECRET = 500
_SHORTEST_PHRASE = 16
_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_ESCAPED_BREAK = re.compile(r"\\+[nr]")
_SEEN_BEFORE = "seen-before"
UNPROVEN_RULES = frozenset({"plain-password", "plain-api-key"})
"""They mask whatever stands after a name, so what they mask may be an ordinary word. A secret is found by other rules too."""
_MAX_JSON_LEVELS = 16
"""Levels of JSON inside strings."""
_SHORT_CHARS = 100
"""Names and short leaves repeat in data. Below this length, a clean one is scanned only once."""
_MAX_ROUNDS = 4
"""Masking can join two pieces into a new match, so it is repeated until nothing changes."""


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
        rules: `"default"`, `"pii"`, `"digits"`, the id of a built-in rule, a pattern in RE2 syntax, a `Rule`, a rule as
            a mapping, a file of rules as `{"file": path}`, or a list of these. The last rule with an id wins.
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


class Masking:
    """Masks with a scanner, and with a session's memory if there is one; see `data.Masker`."""

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
                if finding.rule not in UNPROVEN_RULES:
                    self._memory.learn(text[finding.start : finding.end])
            found = sorted(found + self._memory.find(text))
        return merge_findings(found)

    def masks_leaf(self, rule: Rule, leaf: str | float) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        masked = is_secret_leaf(rule, leaf)
        if masked:
            self.by_rule[rule.id] += 1
            if self._memory is not None and (not isinstance(leaf, str) or not_placeholder(leaf)):
                self._memory.learn(leaf)
        return masked

    def stand_in(self, _value: str | float, _rule_id: str, mask: str, /) -> str:
        """What replaces a value; see `data.Masker`."""
        return mask

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

    def _is_clean_json(self, text: str, /) -> bool:
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
            text = replace_findings(text, found, self)
            total += len(found)
        return text, total


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Join findings that touch or overlap. They must be sorted by start."""
    joined: list[Finding] = []
    for finding in findings:
        if joined and finding.start <= joined[-1].end:
            last = joined[-1]
            mask = last.replacement if last.replacement == finding.replacement else MASK
            joined[-1] = Finding(last.start, max(last.end, finding.end), last.rule, mask)
        else:
            joined.append(finding)
    return joined


class SecretMemory:
    """The secrets of one session: what was found once is found wherever it occurs again.

    The memory is bounded, and is never written or printed.
    """

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
            if abs(secret) >= 10**_LONGEST_SECRET:
                return
            secret = str(secret)
        secret = secret.strip()
        if len(secret) > _LONGEST_SECRET or "\n" in secret or secret.startswith("-----BEGIN"):
            # A key block may be quoted line by line, and a very long value in part.
            for line in _KEY_LINE.findall(_ESCAPED_BREAK.sub("\n", secret)):
                for at in range(0, len(line), _LONGEST_SECRET):
                    self._remember(line[at : at + _LONGEST_SECRET])
        self._remember(secret)

    def find(self, text: str) -> list[Finding]:
        """Find the remembered secrets in a text, in no particular order."""
        if self._is_stale:
            self._compile()
        if not self._patterns:
            return []
        shadow = one_byte_per_character(text)
        return [
            Finding(match.start, match.end, _SEEN_BEFORE, MASK)
            for pattern in self._patterns
            for match in pattern.candidates(text, shadow)
        ]

    def _remember(self, secret: str) -> None:
        if secret in self._secrets or MASK in secret:
            return
        if not is_memorable(secret):
            return
        if len(self._secrets) >= MAX_SECRETS:
            self._secrets.pop(next(iter(self._secrets)))
        self._secrets[secret] = None
        self._is_stale = True
        self.learned += 1

    def _compile(self) -> None:
        escaped = [re2.escape(secret) for secret in self._secrets]
        self._patterns = [
            RulePattern("|".join(escaped[at : at + _SECRETS_PER_PATTERN]), longest=True)
            for at in range(0, len(escaped), _SECRETS_PER_PATTERN)
        ]
        self._is_stale = False


def is_memorable(secret: str) -> bool:
    """Whether a secret is masked wherever it occurs again: it is neither short nor a common word."""
    if not _SHORTEST_SECRET <= len(secret) <= _LONGEST_SECRET:
        return False
    return looks_random(secret) or surprise(secret) >= 0.3 or _is_phrase(secret)


def _is_phrase(secret: str) -> bool:
    """Whether it is a passphrase: nobody writes these words in this order by chance."""
    return len(secret) >= _SHORTEST_PHRASE and len(secret.split()) >= 3
