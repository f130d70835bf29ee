"""Leaves of JSON text and Python data are judged by their names, and everything else stays as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel
from support.redaction import letters

from compact.redaction import MASK, Redactor

REDACTOR = Redactor()
TOKEN = f"ghp_{letters('structure', 36)}"


def test_only_the_leaf_changes_in_json_text() -> None:
    text = '{ "user" : "bob",\n\t"password":"hunter2" , "n": [1,  2.50, true, null] }\n'
    assert REDACTOR.redact(text) == text.replace("hunter2", MASK)


def test_clean_json_text_comes_back_as_the_same_object() -> None:
    text = json.dumps({"name": "token", "max_tokens": 5, "key": "value"})
    assert REDACTOR.redact(text) is text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"password": 12345}', f'{{"password": "{MASK}"}}'),
        ('{"api_key": 1.5e3}', f'{{"api_key": "{MASK}"}}'),
        ('{"passwords": ["a", "b"]}', f'{{"passwords": ["{MASK}", "{MASK}"]}}'),
        ('{"password": {"value": "x"}}', f'{{"password": {{"value": "{MASK}"}}}}'),
        ('{"password": null, "api_key": "", "secret": true}', None),
        ('{"password": {"type": "string", "default": "x"}}', None),
        ('{"token": "Hello", "logprob": -0.1}', None),
        ('{"pass\\u0077ord": "hunter2"}', f'{{"pass\\u0077ord": "{MASK}"}}'),
        ('{"url": "https:\\/\\/u:pw12345@h"}', f'{{"url": "https://u:{MASK}@h"}}'),
        (
            '{"env": {"name": "DB_PASSWORD", "value": "x"}}',
            f'{{"env": {{"name": "DB_PASSWORD", "value": "{MASK}"}}}}',
        ),
        ('[{"value": "x9", "name": "API_KEY"}]', f'[{{"value": "{MASK}", "name": "API_KEY"}}]'),
        ('{"é": "password=hunter2"}', f'{{"é": "password={MASK}"}}'),
        ('{"a": "\\u00e9 password=hunter2"}', f'{{"a": "\\u00e9 password={MASK}"}}'),
        ('{"a": 1}\n{"password": "x"}\n', f'{{"a": 1}}\n{{"password": "{MASK}"}}\n'),
    ],
)
def test_json_leaves(text: str, masked: str | None) -> None:
    assert REDACTOR.redact(text) == (masked or text)


def test_json_inside_a_string_is_walked_too() -> None:
    inner = json.dumps({"api_key": "sk-abc123", "n": 1})
    text = json.dumps({"arguments": inner, "again": json.dumps({"arguments": inner})})
    masked = json.loads(REDACTOR.redact(text))
    assert json.loads(masked["arguments"]) == {"api_key": MASK, "n": 1}
    assert json.loads(json.loads(masked["again"])["arguments"]) == {"api_key": MASK, "n": 1}


def test_masked_names_do_not_overwrite_each_other() -> None:
    other = f"ghp_{letters('other', 36)}"
    data = {TOKEN: 1, other: 2, MASK: 3}
    expected = {f"{MASK}-2": 1, f"{MASK}-3": 2, MASK: 3}
    assert REDACTOR.redact_value(data) == expected
    assert json.loads(REDACTOR.redact(json.dumps(data))) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2"',
        '{"password": "hunter2",}',
        "{'password': 'hunter2'}",
        '{"password" "hunter2"}',
        '[1, : "password=hunter2"]',
        '{"a": 1 "password": "hunter2"}',
        '{"password": "hunter2"]}',
        '[1, "password=hunter2", 01]',
        '["password=hunter2" ["x"]]',
        '{"password=hunter2"}',
        "{password: hunter2}",
    ],
)
def test_broken_json_is_masked_as_text(text: str) -> None:
    assert "hunter2" not in REDACTOR.redact(text)


@pytest.mark.sweep
@pytest.mark.no_cover
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_of_100_000_levels_is_masked(opening: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]
    text = opening * 100_000 + '{"password":"hunter2"}' + closing * 100_000
    assert REDACTOR.redact(text) == text.replace("hunter2", MASK)
    value: Any = {"password": "hunter2"}
    for _ in range(100_000):
        value = [value]
    masked = REDACTOR.redact_value(value)
    while isinstance(masked, list):
        masked = masked[0]
    assert masked == {"password": MASK}


def test_data_is_copied_and_the_original_unchanged() -> None:
    """Compaction specification, "Redaction applied before export": redaction is copy-on-export."""
    data = {"clean": {"a": [1, 2]}, "dirty": ["api_key=sk-abc123"], "password": 5}
    before = json.dumps(data)
    masked = REDACTOR.redact_value(data)
    assert masked == {"clean": {"a": [1, 2]}, "dirty": [f"api_key={MASK}"], "password": MASK}
    assert json.dumps(data) == before
    assert masked["clean"] is data["clean"]


def test_clean_data_comes_back_as_the_same_object() -> None:
    data = {"a": [1, {"b": ("x", None, 2.5, b"bytes")}], "key": "value"}
    assert REDACTOR.redact_value(data) is data


class Pair(NamedTuple):
    user: str
    note: str


@dataclass(frozen=True)
class Settings:
    user: str
    password: str


class Model(BaseModel):
    user: str
    password: str


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (["--password", "S3cr3t99", "-v"], ["--password", MASK, "-v"]),
        (("password=hunter2", 1), (f"password={MASK}", 1)),
        (Pair("bob", "password=hunter2"), Pair("bob", f"password={MASK}")),
        (Settings("bob", "hunter2"), Settings("bob", MASK)),
        ([Model(user="bob", password="hunter2")], [Model(user="bob", password=MASK)]),
        (b"password=hunter2", f"password={MASK}".encode()),
        (b"\xff\xfe", b"\xff\xfe"),
        ({1: "password=hunter2"}, {1: f"password={MASK}"}),
        ({"credentials": {"inner": {"code": letters("c", 32)}}}, {"credentials": {"inner": {"code": MASK}}}),
    ],
)
def test_other_kinds_of_data(value: Any, masked: Any) -> None:
    result = REDACTOR.redact_value(value)
    assert result == masked
    assert type(result) is type(value)


def test_object_that_is_nested_too_deeply_is_masked_whole() -> None:
    @dataclass
    class Chain:
        rest: Any

    chain = Chain("password=hunter2")
    for _ in range(5_000):
        chain = Chain(chain)
    assert "hunter2" not in repr(REDACTOR.redact_value([chain]))[:10_000]


def test_data_that_contains_itself_is_masked() -> None:
    loop: dict[str, Any] = {"password": "hunter2"}
    loop["self"] = loop
    assert REDACTOR.redact_value(loop)["password"] == MASK


def test_signatures_and_images_are_left_alone() -> None:
    blob = letters("blob", 2_000)
    part = {"type": "thinking", "thinking": "hm", "signature": letters("signature", 200)}
    assert REDACTOR.redact_value(part) is part
    image = {"type": "image", "source": {"type": "base64", "data": blob + TOKEN[4:]}}
    assert REDACTOR.redact_value(image) is image
    assert REDACTOR.redact_value({"password": blob}) == {"password": MASK}


def test_masked_number_becomes_a_string() -> None:
    digits = Redactor("digits")
    assert digits.redact('{"phone": 5551234567, "n": 12}') == f'{{"phone": "{MASK}", "n": 12}}'
    assert digits.redact_value({"phone": 5551234567, "n": 12}) == {"phone": MASK, "n": 12}


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff{{"password": {}}}',
        '{{"password": {}, "a": NaN, "b": -Infinity}}',
        '{{"n": [{{"api_key": {}}}]}}',
    ],
)
@pytest.mark.parametrize("number", ["12345", "-7", "7351" * 1_250])
def test_number_is_masked_in_json_that_is_not_strict(text: str, number: str) -> None:
    """JSON with a byte order mark, NaN, or an integer longer than Python reads."""
    assert REDACTOR.redact(text.format(number)) == text.format(f'"{MASK}"')


def test_integer_that_python_does_not_write_is_masked_only_by_its_name() -> None:
    number = 10**5_000
    for redactor in (REDACTOR, REDACTOR.session()):
        assert redactor.redact_value({"password": number, "n": number}) == {"password": MASK, "n": number}
