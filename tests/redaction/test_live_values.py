"""What live masking remembers: values are found as whole tokens, and placeholders are turned back exactly."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compact.redaction import Redactor
from compact.redaction.live import LiveMasks
from compact.redaction.memory import ValueMemory, ends_token, starts_token
from compact.redaction.placeholders import Placeholders

words = st.text(st.sampled_from("ab1-+ é"), min_size=6, max_size=9).filter(lambda word: word.strip() == word)


@given(
    st.lists(words, max_size=4, unique=True),
    st.lists(
        words | st.sampled_from(["a", " ", "\n", "1", "\\n", "/", ".", "_", "%20", "\x1b[1m"]), max_size=6
    ),
)
def test_a_remembered_value_is_found_wherever_it_is_a_whole_token(
    values: list[str], pieces: list[str]
) -> None:
    memory, text = ValueMemory(), "".join([*pieces, *values])
    for value in values:
        memory.learn(value, 0)
    expected = {
        (start, start + len(value))
        for value in values
        for start in range(len(text))
        if text.startswith(value, start)
        and starts_token(text, start)
        and ends_token(text, start + len(value))
    }
    assert {(found.start, found.end) for found in memory.find(text)} == expected


def test_a_value_that_begins_like_a_longer_one_ends_where_it_ends() -> None:
    memory = ValueMemory()
    memory.learn("first-value", 0)
    memory.learn("first-value-and-more", 0)
    assert [(found.start, found.end) for found in memory.find("a first-value")] == [(2, 13)]


def test_what_was_learned_behind_a_place_can_be_forgotten() -> None:
    memory = ValueMemory()
    memory.learn("first-value", 1)
    memory.learn("first-other", 4)
    memory.rewind(4)
    assert len(memory.find("first-value first-other")) == 1


leaves = (
    st.text(st.sampled_from('aé"\\\n<>_1 '), max_size=12)
    | st.integers(-(10**18), 10**18)
    | st.none()
    | st.booleans()
)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
)


@given(
    st.lists(
        st.text(st.sampled_from('aé"\\\n<>_1 '), min_size=1, max_size=12) | st.integers(),
        min_size=1,
        max_size=5,
    )
)
def test_placeholders_come_back_in_text_in_data_and_in_json(values: list[str | int]) -> None:
    given_out = Placeholders()
    names = [given_out.give(value, "SECRET") for value in values]
    assert len(set(names)) == len({(type(value), value) for value in values})
    assert given_out.restore_value({"list": names}) == {"list": values}
    assert json.loads(given_out.restore_value(json.dumps({"list": names}))) == {"list": values}
    nested = json.dumps({"inner": json.dumps({"list": names})})
    assert json.loads(json.loads(given_out.restore_value(nested))["inner"]) == {"list": values}
    for name, value in zip(names, values, strict=True):
        assert given_out.restore_value(f"so {name}!") == f"so {value}!"


@given(trees)
def test_arguments_come_back_as_they_were(data: Any) -> None:
    masks, tree = (
        LiveMasks(Redactor(["default", "pii"])),
        {"password": data, "to": "ann.b@example.org", "more": data},
    )
    item = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": tree}]}
    masked = masks.mask(item, 0)
    assert "ann.b@example.org" not in str(masked)
    assert masks.placeholders.restore_value(masked) == item


def test_another_process_knows_a_value_by_its_seal() -> None:
    one, other = Placeholders(), Placeholders()
    one.adopt([], str.upper)
    name = one.give("hunter2", "SECRET")
    other.adopt(one.unsaved, str.upper)
    assert other.restore(name) == name
    assert other.give("letmein", "SECRET") == "<SECRET_2>"
    assert other.give("hunter2", "EMAIL") == name
    assert other.restore(name) == "hunter2"
