"""Detectors: rules made ready to run."""

from __future__ import annotations

from dataclasses import dataclass

from compact.redaction.rules.judges import JUDGES, SIGNS
from compact.redaction.rules.matches import Candidate, Find, FindAll, Finding, Judge
from compact.redaction.rules.patterns import RulePattern
from compact.redaction.rules.rule import Rule
from compact.redaction.rules.validators import CHECKS


@dataclass(frozen=True, slots=True)
class Detector:
    """A compiled pattern, the keywords without which it cannot match, and the judge of its matches."""

    id: str
    source: str
    pattern: RulePattern
    keywords: tuple[str, ...]
    ignores_case: bool
    find: Find
    is_field: bool = False
    """Whether it looks for names of fields. JSON and data hold these apart from their values."""
    sign: str | None = None
    """A simple pattern that takes the place of keywords: without a match of it there is none of `pattern`."""
    find_all: FindAll | None = None
    """Reads a whole document, such as a table, if the pattern matches in it. It replaces `find`."""
    is_dense: bool = False
    """Whether a text may hold very many of its matches, with equal surroundings: judgements are worth remembering."""

    @property
    def is_anchored(self) -> bool:
        """Whether it may match at the edge of a leaf but not inside a longer text."""
        return any(anchor in self.source for anchor in ("^", "$", r"\A", r"\z"))


def detector_for(rule: Rule) -> Detector:
    """The detector of a rule of scope `text`."""
    judge = _judge_for(rule)

    def find(candidate: Candidate) -> Finding | None:
        bounds = judge(candidate)
        return None if bounds is None else Finding(*bounds, rule.id, rule.replacement)

    sign = None if rule.keywords or callable(rule.validator) else SIGNS.get(rule.validator or "")
    is_dense = rule.validator == "any_value"
    return Detector(
        rule.id,
        rule.pattern,
        rule.regex,
        rule.keywords,
        rule.ignores_case,
        find,
        sign=sign,
        is_dense=is_dense,
    )


def _judge_for(rule: Rule) -> Judge:
    check = rule.validator
    if check is None:
        return lambda candidate: candidate.bounds
    if isinstance(check, str):
        if check in JUDGES:
            return JUDGES[check]
        check = CHECKS[check]
    accepts = check
    return lambda candidate: candidate.bounds if accepts(candidate.value) else None
