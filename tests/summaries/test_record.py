"""The record: lines of a session in its own words, with who said them and where, within its room."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import pair, says, user
from support.strategies import examples
from support.summaries import count, neutral, session

from compact.summaries.record import carried_sources, sources_of, write

NONE: frozenset[str] = frozenset()


def record(items: list[dict[str, Any]], room: int, carried: tuple[str, ...] = (), **more: Any) -> list[str]:
    """The record of these messages."""
    messages = neutral(items)
    sources = [*carried_sources(carried), *sources_of(messages, range(1, len(messages) + 1), NONE)]
    return write(sources, (), (), room, count, **more)


def test_everybody_is_quoted_by_name_and_the_agents_own_words_stand_as_they_are() -> None:
    items = [user("Look at conf_v2."), says("The port is in conf_v2."), *pair("c", "port = 8437")]
    assert record(items, 300) == [
        '- user said: "Look at conf_v2." [m1]',
        "- The port is in conf_v2. [m2]",
        "- read_file path: a.py [m3]",
        '- read_file said: "port = 8437" [m4]',
    ]


@pytest.mark.parametrize("room", [0, 7, 30, 100, 500, 2000])
def test_it_fills_its_room_and_never_more(room: int) -> None:
    messages = session("openhands")
    sources = list(sources_of(messages, range(1, len(messages) + 1), NONE))
    used = count("\n".join(write(sources, (), (), room, count)))
    assert used <= room
    assert used >= 0.97 * room - 10 or room < 500, "in a small room hardly a line fits what is left"


def test_the_same_bytes_every_time() -> None:
    messages = session("tau-gem2")
    sources = list(sources_of(messages, range(1, len(messages) + 1), NONE))
    assert write(sources, (), (), 400, count) == write(list(sources), (), (), 400, count)


def test_lines_of_the_previous_record_are_written_as_they_were() -> None:
    lines = ['user said: "Use a_1." "Keep b_2." [v1 m1]', "The key is in c_3 ... or in d_4 [v1 m2]"]
    assert record([says("So a_1, b_2, c_3 and d_4 stay.")], 300, tuple(lines))[:2] == [
        f"- {line}" for line in lines
    ]


def test_what_lasts_elsewhere_is_not_said_again_but_outputs_are() -> None:
    items = [says("The port is 8437."), *pair("c", "The port is 8437.")]
    lines = record(items, 300, lasting=("The port is 8437.",))
    assert lines == ["- read_file path: a.py [m2]", '- read_file said: "The port is 8437." [m3]']


def test_a_json_output_is_quoted_without_the_signs_of_json() -> None:
    data = {"orders": [{"order_id": f"#W{n}", "status": "pending"} for n in range(60)]}
    (quoted,) = [line for line in record([*pair("c", json.dumps(data))], 80) if " said: " in line]
    assert "order_id: #W" in quoted
    assert not set(quoted) & set("{}")


def test_the_words_that_introduced_a_name_stay_while_the_name_is_in_use() -> None:
    why = "We keep ledger_v7 because DK-4471-A is bound to it."
    noise = "\n".join(f"record_{k} = value_{k * 7}" for k in range(200))

    def stands(words: str) -> bool:
        return any(why in line for line in record([says(words), *pair("c", noise)], 150, (f"{why} [v1 m1]",)))

    assert stands("Checking ledger_v7 with DK-4471-A again.")
    assert not stands("Checking nothing of that again.")


@given(st.lists(st.text(max_size=200), max_size=8), st.integers(0, 200))
@settings(max_examples=examples(40), deadline=None)
def test_any_words_at_all_stay_within_the_room(said: list[str], room: int) -> None:
    items = [says(text) for text in said] + [item for text in said for item in pair("c", text)]
    assert count("\n".join(record(items, room))) <= room
