"""The same value under the same name is masked alike, however it is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.redaction import letters

from compact.redaction import Redactor

REDACTOR = Redactor(["default", "pii"])
GENERATED = letters("alike", 24)

NAMES = [
    "password",
    "apiKey",
    "DB_PASSWORD",
    "x-api-key",
    "client_secret",
    "auth_token",
    "token",
    "passphrase",
    "note",
    "phone",
    "customer_phone",
    "ssn",
    "social_security_number",
    "credit_card",
    "passport",
    "driver_license",
    "email",
    "Authorization",
    "cookie",
    "order",
]
VALUES = [
    *("changeme", "hunter2", "letmein", "password", "S3cr3t99", GENERATED, f"ghp_{GENERATED}{GENERATED}"),
    *("correct horse battery staple", "postgres://bob:S3cr3t99@db/x", f"Bearer {GENERATED}", "abc;def&ghi"),
    *("ann.b@example.org", "+49 170 1234567", "4111 1111 1111 1111", "GB82 WEST 1234 5698 7654 32"),
    *("5551234567", "555 1234567", "123456789", "123-45-6789", "X12345678", "4222222222222", "1234567"),
    *(f"sid={GENERATED}; theme=dark", "Basic dXNlcjpwYXNzd29yZDEyMw=="),
]
JUDGED_BY_KIND = ("client_secret", "auth_token", "token", "passphrase")
"""Unquoted, a value under such a name ends at its first blank."""
FORMS: dict[str, Callable[[str, str], Any]] = {
    "data": lambda name, value: REDACTOR.redact_value({name: value}),
    "data inside data": lambda name, value: REDACTOR.redact_value({"a": {"b": [{name: value}]}}),
    "JSON": lambda name, value: REDACTOR.redact(json.dumps({name: value})),
    "indented JSON": lambda name, value: REDACTOR.redact(json.dumps({"a": [{name: value}]}, indent=2)),
    "JSON in JSON": lambda name, value: REDACTOR.redact(json.dumps({"args": json.dumps({name: value})})),
    "JSON in data": lambda name, value: REDACTOR.redact_value({"args": json.dumps({name: value})}),
    "JSON in prose": lambda name, value: REDACTOR.redact(f"Result: {json.dumps({'u': 1, name: value})} done"),
    "escaped JSON in prose": lambda name, value: REDACTOR.redact(
        f"Result: {json.dumps({'args': json.dumps({name: value})})} done"
    ),
    "a repr": lambda name, value: REDACTOR.redact(f"Result { ({'u': 1, name: value, 'z': 'w'})!r}"),
    "YAML": lambda name, value: REDACTOR.redact(yaml.safe_dump({name: value, "zz": 1})),
    "nested YAML": lambda name, value: REDACTOR.redact(yaml.safe_dump({"a": {"b": {name: value}}})),
    "an environment file": lambda name, value: REDACTOR.redact(
        f'A=1\n{name}="{value}"\nB=2\n' if " " in value else f"A=1\n{name}={value}\nB=2\n"
    ),
    "a quoted environment file": lambda name, value: REDACTOR.redact(f'A=1\n{name}="{value}"\nB=2\n'),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_masked_alike_in_every_form(name: str) -> None:
    for value in VALUES:
        if value == name or (" " in value and name in JUDGED_BY_KIND):
            continue
        masked = {form: value not in str(write(name, value)) for form, write in FORMS.items()}
        assert len(set(masked.values())) == 1, (name, value, masked)


LEAVES = [
    *(
        "hunter2",
        "changeme",
        GENERATED,
        "DB_PASSWORD",
        "string",
        "ann@example.org",
        "--password",
        "5551234567",
    ),
    *('{"password": "x9"}', "password=abc", "", "[1]", 12345, 1.5, 12345678901, 4111111111111111, None, True),
]
KEYS = [
    "password",
    "api_key",
    "token",
    "name",
    "value",
    "note",
    "phone",
    "ssn",
    "type",
    "key",
    "secret",
    "a",
    "call_id",
    "--password",
]
trees = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYS), trees, min_size=1, max_size=4))
def test_json_text_is_masked_like_the_data_that_it_holds(data: dict[str, Any]) -> None:
    assert json.loads(REDACTOR.redact(json.dumps(data))) == REDACTOR.redact_value(data)


@pytest.mark.parametrize("name", ["tool_call_id", "id", "callId", "index"])
def test_references_are_not_taken_for_numbers_of_people(name: str) -> None:
    data = {name: "5551234567"}
    assert REDACTOR.redact_value(data) is data
    assert REDACTOR.redact(json.dumps(data)) == json.dumps(data)
