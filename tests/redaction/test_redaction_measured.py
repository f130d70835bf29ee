"""Recall and false positives, on labelled samples of other projects and on real transcripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.data import all_sessions
from support.redaction import is_found, labelled

from compact.redaction import Redactor

# These tests are long, and shorter tests cover the same lines. Tracing would double their time.
pytestmark = pytest.mark.no_cover

REDACTOR = Redactor()


def _rows(*names: str) -> list[dict[str, Any]]:
    rows = [row for name in names for row in labelled(name)]
    if not rows:
        pytest.skip("the shared redaction samples are not beside the repo")
    return rows


def test_secrets_in_the_samples_of_other_projects_are_found() -> None:
    rows = _rows("gitleaks", "detect_secrets", "secretlint")
    with_secrets = [row for row in rows if row["secrets"]]
    found = sum(is_found(row["text"], REDACTOR.redact(row["text"]), row["secrets"]) for row in with_secrets)
    mistaken = sum(REDACTOR.redact(row["text"]) != row["text"] for row in rows if not row["secrets"])
    assert found / len(with_secrets) >= 0.93
    assert found / (found + mistaken) >= 0.85


def test_personal_data_in_the_samples_is_found() -> None:
    pii = Redactor("pii")
    covered = {"PHONE_NUMBER", "CREDIT_CARD", "US_SSN", "EMAIL_ADDRESS"}
    rows = _rows("pii")
    ours = [row for row in rows if row["secrets"] and set(row["types"]) <= covered]
    clean = [row for row in rows if not row["secrets"]]
    found = sum(is_found(row["text"], pii.redact(row["text"]), row["secrets"]) for row in ours)
    mistaken = sum(pii.redact(row["text"]) != row["text"] for row in clean)
    assert found / len(ours) >= 0.97
    assert mistaken / len(clean) <= 0.08


@pytest.mark.sweep
def test_real_transcripts_have_few_false_positives() -> None:
    """Agent sessions full of code about tokens and passwords get fewer than two masks per megabyte.

    The two patterns of the specification, which take bare words too, add fewer than two.
    """
    size, plain, judged = 0, 0, 0
    for session in all_sessions()[::6]:
        text = json.dumps(session["messages"])
        size += len(text)
        for rule, count in REDACTOR.scan(text).by_rule.items():
            if rule.startswith("plain-"):
                plain += count
            else:
                judged += count
    assert judged / size * 1_000_000 < 2
    assert plain / size * 1_000_000 < 2
