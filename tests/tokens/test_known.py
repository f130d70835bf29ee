from __future__ import annotations

from typing import Any

import pytest

from compact.tokens.memo import Known, snapshot


def messages(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"number {number}"} for number in range(count)]


def counted(known: Known, items: list[dict[str, Any]]) -> None:
    entries = [known.remember(item, 10, 0, "chat") for item in items]
    known.extend_prefix(known.find_prefix([], "chat"), items, entries, [10 * len(items), 0, 0])


def test_an_entry_is_known_until_it_changes() -> None:
    known, item = Known(10_000), {"role": "user", "content": ["a"]}
    assert known.find(item, "chat") is None
    entry = known.remember(item, 7, 1, "chat")
    assert known.find(item, "chat") is entry
    assert known.find(item, "anthropic") is None
    item["content"][0] = "b"  # type: ignore[index]
    assert known.find(item, "chat") is None


def test_a_list_that_grew_is_known_up_to_where_it_ended() -> None:
    known, items = Known(100_000), messages(5)
    counted(known, items)
    grown = [*items, *messages(2)]
    prefix = known.find_prefix(grown, "chat")
    assert (len(prefix.copies), prefix.shares) == (5, (50, 0, 0))
    entries = [known.remember(item, 10, 0, "chat") for item in grown[5:]]
    known.extend_prefix(prefix, grown, entries, [70, 0, 0])
    assert len(known.find_prefix(grown, "chat").copies) == 7
    assert len(prefix.copies) == 5  # another thread may still be reading it


@pytest.mark.parametrize("change", ["inside", "removed", "shorter", "dialect", "empty"])
def test_a_list_that_changed_is_not_known_as_one(change: str) -> None:
    known, items = Known(100_000), messages(5)
    counted(known, items)
    if change == "inside":
        items[2]["content"] += "!"
    elif change == "removed":
        del items[3]
    elif change == "shorter":
        items = items[:4]
    elif change == "empty":
        items = []
    found = known.find_prefix(items, "responses" if change == "dialect" else "chat")
    assert (found.copies, found.shares) == ([], (0, 0, 0))


def test_what_cannot_be_compared_is_not_remembered() -> None:
    known = Known(10_000)
    entry = known.remember(object(), 3, 0, "chat")
    assert (entry.raw, entry.size, len(known.memo)) == (3, 0, 0)
    item = object()
    known.extend_prefix(known.find_prefix([], "chat"), [item], [entry], [3, 0, 0])
    assert len(known.memo) == 0


def test_a_snapshot_notices_a_change_at_any_depth() -> None:
    value = {"a": [{"b": ["x", 1, None]}], "t": ("y", 2.5)}
    copy, size = snapshot(value)
    assert copy == value
    assert size > 0
    value["a"][0]["b"][0] = "z"  # type: ignore[index]
    assert copy != value


@pytest.mark.parametrize(
    "value",
    [object(), {"k": object()}, [bytearray(b"x")], {"k": {1, 2}}],
    ids=["object", "inside", "bytearray", "set"],
)
def test_no_snapshot_of_what_is_no_plain_data(value: object) -> None:
    assert snapshot(value) == (None, 0)


def test_no_snapshot_of_very_deep_data() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert snapshot(deep) == (None, 0)
    while deep:  # taken apart by hand: the interpreter would do it by recursion
        deep = deep.pop()  # type: ignore[assignment]


def test_a_snapshot_weighs_its_text() -> None:
    for unit in ("x", b"x"):  # bytes cannot change either, and stand in messages of Bedrock
        small, large = snapshot({"content": unit})[1], snapshot({"content": unit * 10_000})[1]
        assert large - small == 9_999


def test_of_a_list_that_is_too_large_for_its_entries_too_the_prefix_stays() -> None:
    items = [{"role": "user", "content": f"{n} " * 50} for n in range(40)]
    known = Known(sum(snapshot(item)[1] for item in items) * 5 // 4)
    for count in range(1, 41):
        prefix = known.find_prefix(items[:count], "chat")
        assert len(prefix.copies) == count - 1, "only the newest message is counted"
        entry = known.remember(items[count - 1], 1, 0, "chat")
        known.extend_prefix(prefix, items[:count], [entry], (count, 0, 0))
