"""Secrets as people write them every day: in commands, in sentences, and under names of other languages."""

from __future__ import annotations

from random import Random

import pytest

from bench.attack.passwords import draw
from compact.redaction import Redactor

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
        "SENTRY=https://8d6f8a31b2c94c13a1b2{}@o1.ingest.sentry.io/456",
    ],
)
def test_passwords_of_commands_are_masked(command: str) -> None:
    password = _drawn(command, "hex", 12) if "sentry" in command else _drawn(command)
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
