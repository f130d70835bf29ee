"""Values: a leaf under a secret's name is judged as a value, in every format that people keep passwords in."""

from __future__ import annotations

import json
import sys
from random import Random

import pytest
from support.redaction import letters

from bench.attack.passwords import ALPHABETS, draw, is_left
from bench.attack.shown import DAILY
from bench.attack.surroundings import STORED, Place, name_of
from compact.redaction import MASK, Redactor
from compact.redaction.letter_pairs import resemble_words
from compact.redaction.shapes import is_generated, is_reference

REDACTOR = Redactor()
GENERATED = letters("a value", 14)


@pytest.mark.parametrize("place", [*STORED, *DAILY], ids=lambda place: place.name)
def test_generated_passwords_are_masked_in_every_format(place: Place) -> None:
    """Symbols, hexadecimal digits and base64: nothing of a password stays."""
    seed = Random(f"values {place.name}")
    left = []
    for alphabet in ("letters and digits", "hex", "base64url", "symbols"):
        for _ in range(5):
            password = draw(seed, alphabet, 12)
            text, written = place.write(seed, name_of(seed), password)
            if is_left(REDACTOR.redact(text), written):
                left.append(text)
    assert len(left) <= 1, left


@pytest.mark.parametrize("name", ["client_secret", "db.password", "apiToken", "MASTER-KEY"])
@pytest.mark.parametrize(
    "value", ["qzjxwvkhpt", "+NTUV+%cZCma1", "(Z0Gi()Oi,q*[", "$9fKq!x{2}", "<h9suf:mH-D>"]
)
def test_randomness_is_judged_before_anything_that_looks_like_code(name: str, value: str) -> None:
    assert REDACTOR.redact_value({name: value}) == {name: MASK}
    assert value not in REDACTOR.redact(f"log: {json.dumps({name: value})} done")


def test_declared_secrets_are_masked_whatever_their_names() -> None:
    output = {"endpoint": {"sensitive": True, "type": "string", "value": "plain words here"}}
    assert REDACTOR.redact_value(output)["endpoint"]["value"] == MASK
    manifest = {"kind": "Secret", "data": {"user": "Ym9i"}, "metadata": {"name": "app"}}
    assert REDACTOR.redact_value(manifest) == {**manifest, "data": {"user": MASK}}
    assert json.loads(REDACTOR.redact(json.dumps(manifest))) == {**manifest, "data": {"user": MASK}}
    settings = {"kind": "ConfigMap", "data": {"user": "Ym9i"}}
    assert REDACTOR.redact_value(settings) is settings


def test_only_the_secret_of_several_documents_is_masked() -> None:
    text = (
        "kind: ConfigMap\ndata:\n  level: debug\n---\n"
        "data:\n  first: Ym9i\n  key: |\n    line one\n    line two\nkind: Secret\n---\n"
        "items:\n- kind: ConfigMap\n  data:\n    a: b\n- kind: Secret\n  stringData:\n    c: d\n"
    )
    masked = REDACTOR.redact(text)
    assert [word in masked for word in ("debug", "Ym9i", "line", "a: b", "c: d")] == [
        True,
        False,
        False,
        True,
        False,
    ]


TABLES = {
    "markdown": "| user | password |\n|---|---|\n| bob | {} |\n",
    "psql": " user | password\n------+------------\n bob  | {}\n(1 row)\n",
    "mysql": "+------+------+\n| user | pwd |\n+------+------+\n| bob | {} |\n+------+------+\n",
    "csv": "user,api key,role\nbob,{},admin\n",
    "tsv": "user\ttoken\nbob\t{}\n",
    "columns": "USER  SECRET\nbob   {}\n",
    "html": "<table><tr><th>User</th><th>Password</th></tr>\n<tr><td>bob</td><td>{}</td></tr></table>",
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_cells_under_a_telling_header_are_masked(table: str) -> None:
    assert REDACTOR.redact(table.format(GENERATED)) == table.format(MASK)


@pytest.mark.parametrize(
    "text",
    [
        "The password, token and key of each user\nare stored, hashed and salted, never shown\n",
        "| field | meaning |\n|---|---|\n| password | what the user types |\n",
        "name  type    key\nid    uuid    primary\n",
        "def login(user, password, token):\n    return user, password, token\n",
    ],
)
def test_what_only_resembles_a_table_is_left(text: str) -> None:
    assert REDACTOR.redact(text) == text


@pytest.mark.parametrize(
    "unit", ["| password |\n|---|\n", "user,password\nbob,x\n", "<th>password</th>", "kind: Secret\ndata:\n"]
)
def test_repeated_headers_are_read_once(unit: str) -> None:
    """The work grows with the text and not with its square, counted in calls."""
    few, many = _count_calls(unit * 200), _count_calls(unit * 800)
    assert many <= 5 * few


def _count_calls(text: str) -> int:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        REDACTOR.redact(text)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "Passwort vergessen?", "passwordHint": "Mot de passe oublié ?"}',
        '{"LABEL_NEW_PASSWORD": "Neues Passwort", "password": "パスワード"}',
        "login.password=Новый пароль\n",
        'msgid "New password:"\nmsgstr "Nowe hasło:"\n',
        '"password" = "Contraseña";',
        "export default {\n  password: 'Nieuw wachtwoord',\n};\n",
        '{"key": "9f86d081884c7d659a2feaa0c55ad015", "cache_key": "550e8400-e29b-41d4-a716-446655440000"}',
        "import os\n\ndef connect(password, api_key=None):\n    return Client(password=password, api_key=api_key)\n",
        "const apiKey = await loadKey();\nconst password = form.password;\n",
        "Args:\n    password: The password of the user.\n    api_key: Optional key, see `login()`.\n",
    ],
)
def test_texts_ids_and_code_are_left(text: str) -> None:
    assert REDACTOR.redact(text) == text


def test_the_same_words_without_code_around_them_are_masked() -> None:
    for text in ("password=password", "api_key: key", "password = letmein"):
        assert MASK in REDACTOR.redact(text)


@pytest.mark.parametrize("word", ["production", "kubernetes", "identifier", "geburtstag", "contrasena"])
def test_words_resemble_words_and_random_letters_do_not(word: str) -> None:
    seed = Random(word)
    assert resemble_words(word) > 0
    assert not is_generated(word)
    made = ["".join(seed.choice(ALPHABETS["lower"]) for _ in range(16)) for _ in range(50)]
    assert sum(map(is_generated, made)) >= 45


@pytest.mark.parametrize(
    ("value", "reference"), [("${DB_PASSWORD}", True), ("{{ vault.pw }}", True), ("$Kq9!xZ2mW7", False)]
)
def test_a_password_that_starts_like_a_reference_is_none(value: str, reference: bool) -> None:
    assert is_reference(value) is reference
