"""Secrets as people write them every day: in commands, in sentences, and under names of other languages."""

from __future__ import annotations

import json
from random import Random

import pytest

from bench.attack.passwords import draw
from compact.redaction import MASK, Redactor

REDACTOR = Redactor()


def _drawn(seed: str, alphabet: str = "letters and digits", size: int = 16) -> str:
    return draw(Random(seed), alphabet, size)


@pytest.mark.parametrize(
    "command",
    [
        "echo {} | sudo -S apt update",
        "echo '{}' | docker login -u bob --password-stdin",
        "printf '%s' {} | gh auth login --token-stdin",
        "sudo -S ls <<< {}",
        "net user bob {} /add",
        "zip -P {} out.zip in.txt",
        "7z a -p{} out.7z in",
        "keytool -list -storepass {} -keystore a.jks",
        "bcp db.t out f -U sa -P {}",
        "snmpwalk -v2c -c {} host",
        "vault kv put secret/app user=bob value={}",
        "kubectl create secret generic a --from-literal=first={}",
        'send "{}\\r"',
        'send -- "{}\\r"',
    ],
)
def test_passwords_of_commands_are_masked(command: str) -> None:
    password = _drawn(command)
    assert password not in REDACTOR.redact(command.format(password))


@pytest.mark.parametrize(
    "command",
    [
        "echo hello | sudo tee /etc/motd",
        "net user bob /delete",
        "The net user growth was modest",
        "snmpwalk -v2c -c public host",
        "vault kv put secret/app value=@file.txt",
        "kubectl create configmap a --from-literal=level=debug",
        'send "yes\\r"',
        'send "$password\\r"',
        "zip -r out.zip in",
    ],
)
def test_commands_without_a_password_stay(command: str) -> None:
    assert REDACTOR.redact(command) == command


NAMES = [
    *(
        "wachtwoord",
        "hasło",
        "lösenord",
        "parola",
        "şifre",
        "heslo",
        "salasana",
        "mật khẩu",
        "كلمة المرور",
        "סיסמה",
    ),
    *("पासवर्ड", "mot de passe", "contraseña", "senha", "пароль", "密码", "パスワード", "비밀번호"),
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_languages_are_names_of_passwords(name: str) -> None:
    value = _drawn(name)
    assert REDACTOR.redact_value({name: value}) == {name: MASK}
    for text in (
        json.dumps({name: value}),
        f"{name}: {value}",
        f"a note, {name.capitalize()} : {value} and more",
        f"{name}：{value}",
        f"{name.upper().replace(' ', '_')}={value}",
    ):
        assert value not in REDACTOR.redact(text)


def test_chinese_sentences_name_a_password() -> None:
    value = _drawn("chinese")
    assert REDACTOR.redact(f"密码是{value}") == f"密码是{MASK}"


@pytest.mark.parametrize(
    "text",
    [
        '{"pin": "4821"}',
        '{"otp": 482193}',
        "passcode = 4821",
        'psk="S3cr3t99x"',
        '{"bearer": "S3cr3t99xQ7"}',
        '<password value="S3cr3t99x"/>',
        '<string name="api_key">S3cr3t99x</string>',
    ],
)
def test_short_names_and_attributes_announce_a_secret(text: str) -> None:
    assert MASK in REDACTOR.redact(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"forgotPassword":"Afficher"}',
        '{"LABEL_NEW_PASSWORD":"Mostrar"}',
        '{"@password":{"type":"text","description":"Label"}}',
        '{"pin": 3, "otp": true}',
        "input[type=password]:focus{",
        '<input type="password" :value="x">',
        '<string name="password">Afficher</string>',
        "    case PASSWORD: do();",
        "password = var.db_password",
        'password: "{{ vault_db_password }}"',
        '{"password": "op://vault/item"}',
        "DB_PASSWORD=${DB_PASSWORD:-}",
        "UPDATE users SET password = $1 WHERE id = $2",
        "pub password: Option<String>,",
        "api_key: os.environ/OPENAI_API_KEY",
        '{"Key":"a/b/8d6f8a31b2c94c13a1b2c3d4e5f60718.json"}',
        '{"api_key_id": "8f3kq92xvb"}',
        "password_changed_at: 2026-01-02T10:00:00Z",
        "token: v1.2.3-beta.4",
        '{"AWS::ApiGateway::ApiKey": "b899a0d240b53d9d"}',
    ],
)
def test_references_types_and_texts_stay(text: str) -> None:
    assert REDACTOR.redact(text) == text


def test_a_default_in_a_reference_is_a_value() -> None:
    assert "hunter2" not in REDACTOR.redact("DB_PASSWORD=${DB_PASSWORD:-hunter2}")


@pytest.mark.parametrize("alphabet", ["letters and digits", "symbols"])
@pytest.mark.parametrize(
    "sentence",
    [
        "Login with user admin and password {}",
        "I set the password to {} today",
        "Use the admin login (password '{}')",
        "password\t{}",
        "PASSWORD {}",
        "Password -> {}",
        "Password — {}",
        "Password\n  {}",
        "Password (root): {}",
        "[sudo] password for bob: {}",
        'the password for root is "{}"',
        "The new password is {} and it works",
        "aws_secret_access_key\t{}",
    ],
)
def test_generated_values_are_masked_in_sentences(sentence: str, alphabet: str) -> None:
    values = [_drawn(f"{sentence}{number}", alphabet, 20) for number in range(10)]
    values = [value for value in values if not set(value) & set("\"'`<\\") and value[-1].isalnum()]
    left = [value for value in values if value in REDACTOR.redact(sentence.format(value))]
    assert len(left) <= 1, left  # some draws are regular expressions or templates to a reader


@pytest.mark.parametrize(
    "sentence",
    [
        "The password policy requires 12 characters.",
        "I set the password to something new.",
        "Password\n  is required",
        "Password - required",
        "the password for root is unknown",
        "set the password to utf8mb4 mode",
        "The password in PostgreSQL14 is hashed with SHA256",
        "I sent the password to bob.k7x9q@example.com",
        "reset the password at https://x.example/r/8f3kq92xvb",
    ],
)
def test_sentences_about_passwords_stay(sentence: str) -> None:
    assert REDACTOR.redact(sentence) == sentence
