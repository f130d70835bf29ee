"""What was found clean is not looked at again, and nothing else is."""

from __future__ import annotations

import pytest

from compact.redaction import Redactor
from compact.redaction.rules.sets import rules_of
from compact.redaction.scan import Engine, engine_for

KEY = "AKIAQ3EGRIT7W5KXH2PL"
CLEAN = "a plain line of text, nothing else\n" * 20


@pytest.fixture
def engine() -> Engine:
    return Engine(rules_of("default"))


def looked_at(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    search = engine._search

    def noted(text: str) -> object:
        texts.append(text)
        return search(text)

    monkeypatch.setattr(engine, "_search", noted)
    return texts


def test_a_clean_text_is_looked_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = looked_at(engine, monkeypatch)
    for _ in range(3):
        assert engine.find("".join(list(CLEAN))) == [], "an equal text, another object"
    assert len(texts) == 1


def test_a_text_with_a_secret_is_looked_at_every_time(engine: Engine) -> None:
    for _ in range(3):
        assert engine.find(f"{CLEAN}{KEY}") != []


def test_no_text_is_kept(engine: Engine) -> None:
    engine.find(CLEAN)
    engine.may_match(CLEAN)
    for memo in (engine._clean, engine._may_match):
        assert [len(digest) for digest in memo._entries] == [16]


def test_what_a_session_learns_later_is_masked_in_a_text_that_was_clean() -> None:
    session = Redactor().session()
    word = "Zx81kQpL0vB2"
    assert session.redact(f"the word {word} stands here") == f"the word {word} stands here"
    session.redact(f"password: {word}")
    assert word not in session.redact(f"the word {word} stands here")
    assert word in Redactor().session().redact(f"the word {word} stands here"), "another session's"


def test_rules_do_not_share_what_is_clean() -> None:
    digits = "12345678901234"
    assert Redactor().redact(f"number {digits}") == f"number {digits}"
    assert digits not in Redactor("digits").redact(f"number {digits}")
    assert engine_for(rules_of("default"), "auto") is not engine_for(rules_of("digits"), "auto")


def test_half_characters_and_empty_texts_have_a_digest(engine: Engine) -> None:
    for text in ("", "ab", "\ud800 alone", "é" * 5, "\x00" * 9):
        assert engine.find(text) == engine.find(text) == []


def test_json_that_was_clean_is_not_read_again_until_a_session_learns_something() -> None:
    session, word = Redactor().session(), "Zx81kQpL0vB2"
    text = f'{{"token_count": 7, "note": "the word {word} stands here"}}'
    assert session.redact(text) is text
    assert session.redact(text) is text
    assert session._is_clean_json(text)
    session.redact(f"password: {word}")
    assert word not in session.redact(text)
    assert Redactor().redact(text) is text


def test_json_with_a_secret_is_never_taken_for_clean() -> None:
    text = '{"password": "Zx81kQpL0vB2", "token": "abc"}'
    for redactor in (Redactor(), Redactor().session()):
        for _ in range(2):
            assert "Zx81kQpL0vB2" not in redactor.redact(text)
