"""Reading and editing a request's text: what is not replaced keeps its bytes."""

from __future__ import annotations

import gzip
import json
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from compact.integrations.proxy.codings import TooLarge, decode
from compact.integrations.proxy.endpoints import find_route, join_url
from compact.integrations.proxy.splicing import Unreadable, read_body

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(st.text(), VALUES, max_size=4)
LISTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=5)


@given(fields=BODIES, items=LISTS, indent=st.sampled_from([None, 0, 2]), ascii_only=st.booleans())
def test_a_body_is_read_as_json_is_and_an_edit_changes_nothing_else(
    fields: dict[str, Any], items: list[Any], indent: int | None, ascii_only: bool
) -> None:
    whole = {**fields, "messages": items}
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
    body = read_body(text, "messages")
    assert list(body.items) == items
    assert {name: each.value for name, each in body.fields.items()} == whole
    assert all(
        said in text and json.loads(said) == item for said, item in zip(body.texts, items, strict=True)
    )
    written = {"role": "user", "content": "new"}
    edited = body.with_changes([*body.items[:1], written, *body.items[2:]])
    assert json.loads(edited) == {**whole, "messages": [*items[:1], written, *items[2:]]}
    assert edited[: body.list_start] == text[: body.list_start]
    assert edited.endswith(text[body.list_end :])


@given(items=LISTS, more=LISTS, moved=st.booleans())
def test_a_body_read_with_the_one_before_is_the_same_and_shares_what_did_not_change(
    items: list[Any], more: list[Any], moved: bool
) -> None:
    known = read_body(json.dumps({"a": [1], "messages": items}), "messages")
    later = json.dumps({**({"n": 1} if moved else {}), "a": [1], "messages": [*items, *more]})
    body = read_body(later, "messages", known)
    fresh = read_body(later, "messages")
    assert (list(body.items), list(body.texts)) == (list(fresh.items), list(fresh.texts))
    assert all(one is other for one, other in zip(body.items, known.items, strict=False))
    assert body.fields["a"].value is known.fields["a"].value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        '{"a":1,}',
        '{"a":1}x',
        '{"messages":[{},]}',
        '{"a":1,"a":2}',
        '{"a"',
        '{"messages":[',
        "{1:2}",
        '{"a":' * 5000,
    ],
)
def test_what_is_not_the_json_of_a_request_is_not_edited(text: str) -> None:
    with pytest.raises(Unreadable):
        read_body(text, "messages")


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstandard.ZstdCompressor().compress)],
)
def test_a_bomb_is_noticed_before_it_fills_the_memory(coding: str, pack: Any) -> None:
    with pytest.raises(TooLarge):
        decode(pack(b"\0" * 20_000_000), coding, 1_000_000)


@pytest.mark.parametrize(
    ("upstream", "path", "wanted"),
    [
        ("https://a.test", "/v1/messages", "https://a.test/v1/messages"),
        ("https://a.test/v1/", "/v1/messages", "https://a.test/v1/messages"),
        ("https://a.test", "/messages", "https://a.test/v1/messages"),
        ("https://a.test/v1", "/chat/completions", "https://a.test/v1/chat/completions"),
        ("https://a.test/api/v2", "/v1/responses", "https://a.test/api/v2/responses"),
        ("https://a.test", "/openai/v1/responses", "https://a.test/v1/responses"),
        (
            "https://a.test",
            "/v1beta/models/g:generateContent",
            "https://a.test/v1beta/models/g:generateContent",
        ),
        (
            "https://a.test",
            "/models/g:streamGenerateContent",
            "https://a.test/v1beta/models/g:streamGenerateContent",
        ),
        ("https://a.test", "/other", "https://a.test/other"),
    ],
)
def test_the_version_stands_in_an_address_once(upstream: str, path: str, wanted: str) -> None:
    assert join_url(upstream, find_route("POST", path, {}), "") == wanted
