"""Redaction: masks secrets and personal data in text, data and messages before they leave compact."""

from __future__ import annotations

from compact.redaction.redactor import Redacted, Redactor, SessionRedactor
from compact.redaction.rules.matches import MASK
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.sets import rules_from_config

__all__ = ["MASK", "Redacted", "Redactor", "Rule", "SessionRedactor", "rules_from_config"]
