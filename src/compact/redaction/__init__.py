"""Redaction: masks secrets and personal data in text, data and messages. Every exit of compact passes through it."""

from __future__ import annotations

from compact.redaction.candidates import MASK
from compact.redaction.redactor import Redacted, Redactor
from compact.redaction.rules import Rule
from compact.redaction.session import SessionRedactor
from compact.redaction.sets import rules_from_config

__all__ = ["MASK", "Redacted", "Redactor", "Rule", "SessionRedactor", "rules_from_config"]
