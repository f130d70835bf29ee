"""A text that was found clean is not scanned again, and every other text is."""

from __future__ import annotations

import sys

import pytest

from compact.redaction import Redactor, rules_from_config, scan
from compact.redaction.json_text import mask_json
from compact.redaction.redactor import Masking
from compact.redaction.rules.patterns import one_byte_per_character
from compact.redaction.scan import Scanner, scanner_for

KEY = "AKIAQ3EGRIT7W5KXH2PL"
CLEAN = "a plain line of text, nothing else\n" * 20


@pytest.fixture
def scanner() -> Scanner:
    return Scanner(rules_from_config("default"))


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that scanners prepare for matching."""
    texts: list[str] = []

    def note(text: str) -> bytes:
        texts.append(text)
        return one_byte_per_character(text)

    monkeypatch.setattr(scan, "one_byte_per_character", note)
    return texts


def test_clean_text_is_scanned_once(scanner: Scanner, scanned: list[str]) -> None:
    for _ in range(3):
        assert scanner.find("".join(list(CLEAN))) == [], "an equal text, another object"
    assert len(scanned) == 1


def test_text_with_a_secret_is_scanned_every_time(scanner: Scanner, scanned: list[str]) -> None:
    for _ in range(3):
        assert scanner.find(f"{CLEAN}{KEY}") != []
    assert len(scanned) == 3


def test_no_text_is_kept(scanner: Scanner) -> None:
    text = "".join(list(CLEAN))
    references = sys.getrefcount(text)
    scanner.find(text)
    scanner.may_match(text)
    scanner.remember_clean_json(text)
    assert sys.getrefcount(text) == references


def test_what_a_session_learns_later_is_masked_in_a_text_that_was_clean() -> None:
    session = Redactor().session()
    word = "Zx81kQpL0vB2"
    assert session.redact(f"here is the word {word}") == f"here is the word {word}"
    session.redact(f"password: {word}")
    assert word not in session.redact(f"here is the word {word}")
    assert word in Redactor().session().redact(f"here is the word {word}"), "the memory of another session"


def test_rules_do_not_share_what_is_clean() -> None:
    digits = "12345678901234"
    assert Redactor().redact(f"number {digits}") == f"number {digits}"
    assert digits not in Redactor("digits").redact(f"number {digits}")
    assert scanner_for(rules_from_config("default")) is not scanner_for(rules_from_config("digits"))


def test_lone_surrogates_and_empty_texts_can_be_remembered(scanner: Scanner) -> None:
    for text in ("", "ab", "\ud800 alone", "é" * 5, "\x00" * 9):
        assert scanner.find(text) == scanner.find(text) == []


def test_clean_json_is_not_read_again_until_the_session_learns_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def note(text: str, masker: Masking, depth: int) -> tuple[str, int] | None:
        read.append(text)
        return mask_json(text, masker, depth)

    monkeypatch.setattr("compact.redaction.redactor.mask_json", note)
    session, word = Redactor().session(), "Zx81kQpL0vB2"
    text = f'{{"token_count": 7, "note": "the word {word} is only read once"}}'
    assert session.redact(text) is text
    assert session.redact(text) is text
    assert len(read) == 1
    session.redact(f"password: {word}")
    assert word not in session.redact(text)
    assert Redactor().redact(text) is text


def test_json_with_a_secret_is_never_taken_for_clean() -> None:
    text = '{"password": "Zx81kQpL0vB2", "token": "abc"}'
    for redactor in (Redactor(), Redactor().session()):
        for _ in range(2):
            assert "Zx81kQpL0vB2" not in redactor.redact(text)
