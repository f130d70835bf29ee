"""A JSON list read piece by piece gives what a parser gives that reads it at once."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.tools.harness.json_items import JsonItems

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def items(text: str, piece: int) -> list[Any]:
    """The items, read so many bytes at a time."""
    stream = io.BytesIO(text.encode("utf-8", "surrogatepass"))
    return [value for _, value in JsonItems(lambda _: stream.read(piece), "artifacts")]


@given(st.lists(values, max_size=6), st.sampled_from([None, 1]), st.integers(1, 40))
def test_items_are_those_of_the_whole(wanted: list[Any], indent: int | None, piece: int) -> None:
    assert items(json.dumps(wanted, indent=indent), piece) == wanted
    wrapped = {"meta": wanted, "artifacts": wanted, "more": {"n": 12}}
    assert items(json.dumps(wrapped, indent=indent), piece) == wanted


def test_a_number_is_not_taken_before_its_last_digit_is_read() -> None:
    assert items("[12345, 6789.25, -1e5]", 1) == [12345, 6789.25, -1e5]


def test_an_object_without_such_a_list_has_no_items() -> None:
    assert items('{"messages": [1], "artifacts": 5}', 7) == []
    assert items("{}", 7) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [("[1,\n2,\n x]", 3), ("[1,\n2", 2), ('[\n"abc', 2), ("[1] []", 1), ("[1\n2]", 2)],
)
@pytest.mark.parametrize("piece", [1, 1_000])
def test_what_is_no_json_is_named_with_its_line(text: str, line: int, piece: int) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        items(text, piece)
    assert caught.value.lineno == line


def test_a_mistake_at_the_beginning_is_found_without_reading_to_the_end() -> None:
    text = '[{"kind" 1}, ' + "0, " * 1_000_000 + "0]"
    stream = io.BytesIO(text.encode())
    with pytest.raises(json.JSONDecodeError):
        list(JsonItems(stream.read, "artifacts"))
    assert stream.tell() < len(text) / 2
