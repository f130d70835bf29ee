"""Redaction: masks secrets and personal data in text, data and messages. Every exit of compact passes through it."""

from __future__ import annotations

from compact.redaction.redactor import Redacted, Redactor
from compact.redaction.rules.candidates import MASK
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.sets import rules_from_config
from compact.redaction.session import SessionRedactor

__all__ = ["MASK", "Redacted", "Redactor", "Rule", "SessionRedactor", "rules_from_config"]
