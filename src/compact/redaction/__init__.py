"""Redaction: masks secrets and personal data in text, data and messages before they leave compact."""

from __future__ import annotations

from compact.redaction.memory import Origin
from compact.redaction.redactor import OwnRedactor, Redacted, Redactor, SessionRedactor, as_redactor
from compact.redaction.rules.matches import MASK
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.sets import rules_from_config

__all__ = [
    "MASK",
    "Origin",
    "OwnRedactor",
    "Redacted",
    "Redactor",
    "Rule",
    "SessionRedactor",
    "as_redactor",
    "rules_from_config",
]
