"""A session remembers its secrets, and its memory never leaves it."""

from __future__ import annotations

import pickle

import pytest
from support.redaction import letters

from compact.redaction import MASK, Redactor, SessionRedactor

SECRET = letters("session", 24)


def test_secret_is_masked_everywhere_once_it_was_found() -> None:
    redactor = Redactor()
    session = redactor.session()
    assert session.redact(f"see {SECRET}") == f"see {SECRET}"
    assert session.redact(f"api_key={SECRET}") == f"api_key={MASK}"
    assert session.redact(f"see {SECRET}!") == f"see {MASK}!"
    assert session.scan(f"see {SECRET}!").by_rule == {"seen-before": 1}
    assert redactor.redact(f"see {SECRET}!") == f"see {SECRET}!"
    assert redactor.session().redact(f"see {SECRET}!") == f"see {SECRET}!"


def test_secret_found_late_is_masked_earlier_in_the_same_text_value_or_list() -> None:
    assert Redactor().session().redact(f"{SECRET} password={SECRET}") == f"{MASK} password={MASK}"
    assert Redactor().session().redact_value([SECRET, {"password": SECRET}]) == [MASK, {"password": MASK}]
    first, second = {"role": "user", "content": SECRET}, {"role": "user", "content": f"token: {SECRET}"}
    masked = Redactor().session().redact_messages([first, second])
    assert [message["content"] for message in masked] == [MASK, f"token: {MASK}"]


def test_remembered_secret_is_found_in_json_and_data() -> None:
    session = Redactor().session()
    session.redact(f"api_key={SECRET}")
    assert session.redact(f'{{"note": "{SECRET}"}}') == f'{{"note": "{MASK}"}}'
    assert session.redact_value({"note": [f"a {SECRET} b"]}) == {"note": [f"a {MASK} b"]}
    message = {"role": "user", "content": f"a {SECRET}"}
    assert session.redact_message(message) == {"role": "user", "content": f"a {MASK}"}


@pytest.mark.parametrize("word", ["test", "password1", "letmein", "opensesame"])
def test_common_words_are_masked_in_place_but_not_remembered(word: str) -> None:
    session = Redactor().session()
    assert session.redact(f"password={word}") == f"password={MASK}"
    assert session.redact(f"a {word} run") == f"a {word} run"


def test_non_ascii_secret_is_remembered() -> None:
    session = Redactor().session()
    secret = "Zx9é8Qw7ü6Er5"
    session.redact(f'password="{secret}"')
    assert session.redact(f"é {secret} é") == f"é {MASK} é"


@pytest.mark.parametrize("newline", ["\n", "\\n"])
def test_single_line_of_a_key_is_masked_where_it_is_quoted(newline: str) -> None:
    lines = [letters(f"key line {number}", 64) for number in range(20)]
    key = newline.join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    session = Redactor().session()
    assert session.redact(key) == MASK
    assert session.redact(f"line 7 is {lines[7]}.") == f"line 7 is {MASK}."


def test_very_long_value_is_remembered() -> None:
    value = letters("very long", 900)
    session = Redactor().session()
    assert session.redact(f'api_key="{value}"') == f'api_key="{MASK}"'
    assert session.redact(f"it was {value}, yes") == f"it was {MASK}, yes"


@pytest.mark.parametrize("text", ['password: "{}"', "password: {}\nuser: bob", '{{"password": "{}"}}'])
def test_passphrase_is_remembered_as_a_whole(text: str) -> None:
    phrase = "correct horse battery staple"
    session = Redactor().session()
    assert session.redact(text.format(phrase)) == text.format(MASK)
    assert session.redact(f"so {phrase} it is") == f"so {MASK} it is"
    assert session.redact("a correct answer about a horse") == "a correct answer about a horse"


def test_a_full_memory_learns_no_more_and_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compact.redaction.memory.MAX_BYTES", 2_000)
    session = Redactor().session()
    secrets = [letters(f"s{n}", 20) for n in range(30)]
    for secret in secrets:
        assert session.redact(f"api_key={secret}") == f"api_key={MASK}"
    assert 10 <= session.scan(" ".join(secrets)).count < 20
    assert session.redact(secrets[0]) == MASK


def test_memory_is_not_shown_and_not_stored() -> None:
    session = Redactor().session()
    session.redact(f"api_key={SECRET}")
    stored = pickle.dumps(session)
    assert SECRET not in repr(session) + str(session)
    assert SECRET.encode() not in stored
    woken = pickle.loads(stored)
    assert isinstance(woken, SessionRedactor)
    assert woken.redact(SECRET) == SECRET
    assert woken.redact(f"api_key={SECRET}") == f"api_key={MASK}"


def test_redactors_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(Redactor())).redact("password=hunter2") == f"password={MASK}"
    assert pickle.loads(pickle.dumps(Redactor.disabled())).enabled is False
