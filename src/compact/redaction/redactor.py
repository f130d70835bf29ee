"""The redactor: text, data and messages pass through one before they leave compact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from compact.redaction.data import mask_value, replace_findings
from compact.redaction.fields.value_judge import is_secret_leaf
from compact.redaction.json_text import looks_like_json, mask_json
from compact.redaction.memory import Origin, SecretMemory
from compact.redaction.origins import mask_message
from compact.redaction.rules.matches import MASK, Finding
from compact.redaction.rules.rule import Rule, RuleSource
from compact.redaction.rules.sets import rules_from_config
from compact.redaction.rules.validators import not_placeholder
from compact.redaction.scan import LocatorName, Scanner, scanner_for

T = TypeVar("T")
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


class OwnRedactor(Protocol):
    """A redactor that a host brings. It never raises because of what it finds, and never changes its argument."""

    @property
    def enabled(self) -> bool:
        """False if it lets everything through."""

    def redact(self, text: str) -> str:
        """Return the text with every secret masked."""

    def redact_value(self, value: Any) -> Any:
        """Return a copy of a JSON value with every secret in it masked."""

    def redact_messages(self, items: Sequence[Any]) -> list[Any]:
        """Return copies of wire messages, one for one, with every secret in them masked."""

    def session(self) -> OwnRedactor:
        """Return a redactor for one session. It may remember what it masked, to mask it again."""


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

    def redact(self, text: str, origin: Origin = "person") -> str:
        """Replace every secret in a text. A text without secrets is returned as the same object.

        `origin` says whose words they are, which matters to a session's redactor only.
        """
        return self.scan(text, origin).text

    def scan(self, text: str, origin: Origin = "person") -> Redacted:
        """Like `redact`, and also report how many spans were masked and by which rules."""
        return self._run(lambda: self._scan(text, origin))

    def redact_value(self, value: T, origin: Origin = "person") -> T:
        """Mask the leaves of data (dicts, lists, strings) in a copy. Clean data is returned as the same object."""
        masked: T = self._run(lambda: mask_value(value, self._begin(origin)))
        return masked

    def redact_message(self, item: Any, origin: Origin | None = None, *, for_model: bool = False) -> Any:
        """Mask a message of any dialect, a dict or an SDK's object, including secrets split over blocks of text.

        The message itself says whose words stand where, unless `origin` is `compact`. With `for_model` the copy goes back
        to the model, so blocks that their provider has signed stay whole, and tools keep their names.
        """
        return self._run(lambda: mask_message(item, self._begin(origin or "person"), for_model=for_model))

    def redact_messages(self, items: Sequence[Any], origin: Origin | None = None) -> list[Any]:
        """Call `redact_message` for every message of a list."""
        return self._run(lambda: [self.redact_message(item, origin) for item in items])

    def redact_id(self, session_id: str) -> str:
        """Mask the secrets and the personal data in a session's id, which stands in names, events and reports.

        A few digits of the id's hash keep masked ids apart. A bare number is an id, whatever else it could be.
        """
        masked = self.redact(session_id, "compact")
        for found in reversed(merge_findings(_personal().find(masked))):
            if not masked[found.start : found.end].isdigit():
                masked = masked[: found.start] + MASK + masked[found.end :]
        if masked == session_id:
            return session_id
        return f"{masked}-{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"

    def session(self) -> Redactor:
        """A redactor with the same rules that masks a secret again once it has found it; see `SessionRedactor`."""
        return SessionRedactor(self._scanner)

    @staticmethod
    def disabled() -> Redactor:
        """A redactor that returns everything unchanged; its `enabled` is False."""
        return _DisabledRedactor()

    def _scan(self, text: str, origin: Origin) -> Redacted:
        masking = self._begin(origin)
        masked, count = masking.mask_text(text)
        return Redacted(masked, count, dict(masking.by_rule))

    def _begin(self, origin: Origin) -> Masking:
        return Masking(self._scanner, origin)

    def _run(self, mask: Callable[[], T]) -> T:
        return mask()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rules,))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.rules)} rules)"


class SessionRedactor(Redactor):
    """A redactor that masks a secret again once it has found it in its session, as a whole token.

    A secret found late in a text, a value or a list of messages is masked in the earlier parts too. What a person or the
    host said masks everywhere; what a tool or a model said masks their words only. It is safe between threads. The memory
    lives in this object only and is left out of pickles; `seal` and `adopt` carry it over as keyed hashes.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._memory = SecretMemory()

    @property
    def has_learned(self) -> bool:
        """Whether it masks anything that a fresh redactor would not."""
        return self._memory.masks("tool")

    def seal(self) -> dict[str, str]:
        """What was learned since the last call, as keyed hashes; empty if nothing was."""
        return self._memory.seal()

    def adopt(self, notes: Iterable[Mapping[str, str]]) -> None:
        """Mask what redactors of the same session have learned before, by what their `seal` returned."""
        self._memory.adopt(notes)

    def _begin(self, origin: Origin) -> Masking:
        return Masking(self._scanner, origin, self._memory)

    def _run(self, mask: Callable[[], T]) -> T:
        known = self._memory.learned
        masked = mask()
        return masked if self._memory.learned == known else mask()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_new_session, (self.rules,))


def _new_session(rules: tuple[Rule, ...]) -> Redactor:
    return Redactor(rules).session()


class HostRedactor(Redactor):
    """A redactor that a host brings, which masks every text alike, whatever its origin."""

    def __init__(self, own: OwnRedactor) -> None:
        self._own = own

    @property
    def enabled(self) -> bool:  # type: ignore[override]
        """Whether it masks anything."""
        return self._own.enabled

    @property
    def rules(self) -> tuple[Rule, ...]:
        """None: how a host's redactor works is not known."""
        return ()

    def scan(self, text: str, *_: Any, **__: Any) -> Redacted:
        """Mask a text, and count the masks that are new in it."""
        masked = self._own.redact(text)
        return Redacted(masked, max(0, masked.count(MASK) - text.count(MASK)))

    def redact_value(self, value: T, *_: Any, **__: Any) -> T:
        """See `Redactor.redact_value`."""
        masked: T = self._own.redact_value(value)
        return masked

    def redact_message(self, item: Any, *_: Any, **__: Any) -> Any:
        """See `Redactor.redact_message`."""
        return self._own.redact_messages([item])[0]

    def redact_messages(self, items: Sequence[Any], *_: Any, **__: Any) -> list[Any]:
        """See `Redactor.redact_messages`."""
        return self._own.redact_messages(items)

    def session(self) -> Redactor:
        """See `Redactor.session`."""
        return HostRedactor(self._own.session())

    def __reduce__(self) -> tuple[Any, ...]:
        return (HostRedactor, (self._own,))

    def __repr__(self) -> str:
        return f"HostRedactor({type(self._own).__name__})"


def as_redactor(redactor: OwnRedactor) -> Redactor:
    """The redactor itself, or a wrapper around the host's own."""
    return redactor if isinstance(redactor, Redactor) else HostRedactor(redactor)


@lru_cache(maxsize=1)
def _personal() -> Scanner:
    return scanner_for(rules_from_config("pii"))


class _DisabledRedactor(Redactor):
    """Masks nothing."""

    enabled = False

    def __init__(self) -> None:
        super().__init__([])

    def scan(self, text: str, *_: Any, **__: Any) -> Redacted:
        return Redacted(text, 0)

    def redact_value(self, value: T, *_: Any, **__: Any) -> T:
        return value

    def redact_message(self, item: Any, *_: Any, **__: Any) -> Any:
        return item

    def redact_id(self, session_id: str) -> str:
        return session_id

    def session(self) -> Redactor:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_DisabledRedactor, ())


class Masking:
    """Masks with a scanner, and with a session's memory if there is one; see `data.Masker`."""

    def __init__(
        self, scanner: Scanner, origin: Origin = "person", memory: SecretMemory | None = None
    ) -> None:
        self.field_names = scanner.field_names
        self.by_rule: defaultdict[str, int] = defaultdict(int)
        self.origin: Origin = origin
        self.escapes = False
        """See `origins.MessageMasker`; only live masking writes placeholders."""
        self._scanner = scanner
        self._memory = memory
        self._clean: set[str] = set()

    def find(self, text: str) -> list[Finding]:
        """Everything to mask in a plain text, sorted by start, without overlaps."""
        found = self._scanner.find(text)
        if self._memory is not None and self.origin != "compact":
            for finding in found:
                if finding.rule not in UNPROVEN_RULES:
                    self._memory.learn(text[finding.start : finding.end], self.origin)
            found = sorted(found + self._memory.find(text, self.origin))
        return merge_findings(found)

    def mask_name(self, text: str, depth: int = 0) -> tuple[str, int]:
        """Mask a name, an id or a path by rules alone; see `data.Masker`."""
        before, self.origin = self.origin, "compact"
        try:
            return self.mask_text(text, depth)
        finally:
            self.origin = before

    def masks_leaf(self, rule: Rule, leaf: str | float) -> bool:
        """Whether a leaf is masked whole, because its name falls under `rule`."""
        masked = is_secret_leaf(rule, leaf)
        if masked:
            self.by_rule[rule.id] += 1
            if self._memory is not None and (not isinstance(leaf, str) or not_placeholder(leaf)):
                self._memory.learn(leaf, self.origin)
        return masked

    def stand_in(self, _value: str | float, _rule_id: str, mask: str, /) -> str:
        """What replaces a value; see `data.Masker`."""
        return mask

    def mask_text(self, text: str, depth: int = 0) -> tuple[str, int]:
        """Mask a text, and count what was masked. `depth` is the level of JSON inside strings."""
        if text in self._clean:
            return text, 0
        if depth < _MAX_JSON_LEVELS and looks_like_json(text):
            if not self._remembers() and self._is_clean_json(text):
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

    def _remembers(self) -> bool:
        return self._memory is not None and self._memory.masks(self.origin)

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
