"""Telling a list apart takes as long as the list is, however many conversations begin with the same messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compact.runtime.resolver import SessionResolver

KNOWN = (8, 64)
SHARED = 40


class Counted(dict[str, Any]):
    """A message that counts how often somebody reads or compares it."""

    looks = 0

    def items(self) -> Any:
        Counted.looks += 1
        return super().items()

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return super().__eq__(other)

    __hash__ = None


def listed(end: str, shared: int = SHARED) -> list[Any]:
    head = [Counted(role=("user", "assistant")[n % 2], content="a") for n in range(shared)]
    return [*head, Counted(role="user", content=end)]


def rebuilt(items: list[Any]) -> list[Any]:
    return [Counted(each) for each in json.loads(json.dumps(items))]


def count_looks(names: SessionResolver, items: list[Any], **where: Any) -> int:
    before = Counted.looks
    names.resolve(items, **where)
    return Counted.looks - before


@pytest.mark.parametrize("kind", ["new", "continued", "sent again"])
@pytest.mark.parametrize("where", [{}, {"given": "thread"}], ids=["unnamed", "given"])
def test_what_a_list_costs_grows_with_the_list_alone(kind: str, where: dict[str, Any]) -> None:
    found = {}
    for known in KNOWN:
        for shared in (SHARED, 4 * SHARED):
            names = SessionResolver()
            for n in range(known):
                names.resolve(listed(f"person {n}", shared), **where)
            items = rebuilt(listed("person 3" if kind != "new" else "somebody new", shared))
            if kind == "continued":
                items += [Counted(role="assistant", content="yes"), Counted(role="user", content="go on")]
            found[known, shared] = count_looks(names, items, **where)
    assert found[KNOWN[0], SHARED] == found[KNOWN[1], SHARED] <= 2 * (SHARED + 3)
    assert found[KNOWN[0], 4 * SHARED] == found[KNOWN[1], 4 * SHARED] <= 2 * (4 * SHARED + 3)


def test_equal_lists_of_many_people_cost_no_more() -> None:
    """Each of the known lists could be meant, and none of them is compared message by message."""
    found = []
    for known in KNOWN:
        names = SessionResolver()
        for _ in range(known):
            names.resolve(listed("Hi"))
        more = [
            *listed("Hi"),
            Counted(role="assistant", content="yes"),
            Counted(role="user", content="go on"),
        ]
        found.append(count_looks(names, more))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1.0, "big": 1e16}, {"n": 1, "big": 10**16}),
        ({"at": b"bytes"}, {"at": b"bytes"}),
        ({"text": "version 1.0"}, {"text": "version 1.0"}),
    ],
)
def test_equal_messages_are_known_however_they_are_written(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    names = SessionResolver()
    ask = {"role": "user", "content": "start"}
    first = names.resolve([ask, {"role": "assistant", "content": "", "input": one}])
    more = [dict(ask), {"role": "assistant", "content": "", "input": other}, {"role": "tool", "content": "x"}]
    assert names.resolve(more) == first


def test_a_message_that_was_changed_in_place_is_the_same_one() -> None:
    names = SessionResolver()
    result = {"role": "tool", "content": "long " * 50}
    items = [{"role": "user", "content": "start"}, {"role": "assistant", "content": "calling"}, result]
    first = names.resolve([{"role": "system", "content": "Monday"}, *items])
    result["content"] = "cut"
    items += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}]
    assert names.resolve([{"role": "system", "content": "Tuesday"}, *items]) == first


@pytest.mark.parametrize("odd", [{1: 2}, {"n": 10**5000}], ids=["mixed keys", "a number of 5,000 digits"])
def test_what_cannot_be_hashed_is_known_by_its_object_alone(odd: dict[Any, Any]) -> None:
    names = SessionResolver()
    ask = {"role": "user", "content": "x", **odd}
    reply = {"role": "assistant", "content": "yes"}
    first = names.resolve([ask])
    assert names.resolve([dict(ask), reply]) != first
    assert names.resolve([ask, reply]) == first


def test_a_role_of_any_kind_is_no_error() -> None:
    assert SessionResolver().resolve([{"role": ["user"], "content": "x"}])
