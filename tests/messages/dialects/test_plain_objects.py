"""Messages that are plain objects of the host: read like dicts, returned as the same objects, never as something else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from support.engine import manager

from compact import MessageError
from compact.checks import violations
from compact.hygiene import clean
from compact.messages.dialects import detect, read, write
from compact.tokens import estimate


@dataclass
class Said:
    role: str
    content: str
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frozen:
    role: str
    content: str
    meta: Any = None


class Tuple(NamedTuple):
    role: str
    content: str
    meta: Any = None


class Parts(NamedTuple):
    role: str
    parts: list[str]


class Moody:
    role = "user"

    @property
    def content(self) -> str:
        raise RuntimeError("not now")


class Slotted:
    __slots__ = ("content", "meta", "role")

    def __init__(self, role: str, content: str, meta: Any = None) -> None:
        self.role, self.content, self.meta = role, content, meta


class Bare:
    def __init__(self, role: str, content: str, meta: Any = None) -> None:
        self.role, self.content, self._hidden = role, content, "not sent"
        if meta:
            self.meta = meta


class Role(Enum):
    system = "system"
    user = "user"
    assistant = "assistant"


@dataclass
class Typed:
    role: Role
    content: str
    meta: Any = None


FORMS: dict[str, Callable[..., Any]] = {
    "dataclass": Said,
    "frozen dataclass": Frozen,
    "named tuple": Tuple,
    "slots": Slotted,
    "attributes": Bare,
    "namespace": lambda role, content, meta=None: SimpleNamespace(role=role, content=content, meta=meta),
    "enum for a role": lambda role, content, meta=None: Typed(Role(role), content, meta),
}


def said(item: Any) -> tuple[str, str]:
    role = item.role
    return (role.value if isinstance(role, Enum) else role, item.content)


def talk(make: Callable[..., Any], turns: int, words: int = 300) -> list[Any]:
    found = [make("system", "Obey.")]
    for n in range(turns):
        found += [make("user", f"question {n}"), make("assistant", f"answer {n} " + "word " * words)]
    return [*found, make("user", "and now?")]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_read_like_a_dict_and_written_as_the_same_object(form: str) -> None:
    items = talk(FORMS[form], 3)
    dicts = [{"role": role, "content": words} for role, words in map(said, items)]
    dialect, messages = read(items)
    assert dialect.NAME == "chat"
    assert messages == read(dicts)[1]
    assert all(one is other for one, other in zip(write(dialect, messages), items, strict=True))
    assert violations(items) == []
    assert clean(items) is items
    assert estimate(items).total == estimate(dicts).total


@pytest.mark.parametrize("form", FORMS)
def test_a_session_of_objects_is_compacted_like_one_of_dicts(form: str) -> None:
    items = talk(FORMS[form], 60)
    dicts = [{"role": role, "content": words} for role, words in map(said, items)]
    made = manager(16_000)
    found, same = made.preflight("objects", items), made.preflight("dicts", dicts)
    assert len(found) < len(items)
    assert list(map(said, found)) == [(one["role"], one["content"]) for one in same]
    assert {type(one) for one in found} == {type(items[0])}, "the summary is one of them too"
    assert found[0] is items[0]
    assert found[-1] is items[-1]
    again = made.preflight("objects", items)
    assert list(map(said, again)) == list(map(said, found)), "a host that keeps its whole history"
    assert made.preflight("objects", found) is found, "a host that keeps what it was given"
    (restored,) = [made.archive.restore("objects", step) for step in made.archive.steps("objects")]
    assert [(one["role"], one["content"]) for one in restored.messages] == list(map(said, items))


@pytest.mark.parametrize("form", FORMS)
def test_a_protected_object_is_never_pruned(form: str) -> None:
    rule = FORMS[form]("user", "Never push.", {"protected": True})
    items = talk(FORMS[form], 60)
    items.insert(3, rule)
    assert any(one is rule for one in manager(16_000).preflight("s", items))


@pytest.mark.parametrize(
    "stranger",
    [
        object(),
        SimpleNamespace(role="user"),
        SimpleNamespace(content="hi"),
        SimpleNamespace(role=5, content="hi"),
        SimpleNamespace(role="user", content=5),
        Parts("user", ["hi"]),
        Moody(),
        Said,
    ],
)
def test_another_object_is_refused_by_its_type(stranger: Any) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\] is not a message: got"):
        detect([{"role": "user", "content": "hi"}, stranger])


def test_an_async_host_gets_its_own_objects_too() -> None:
    found = asyncio.run(manager(16_000).apreflight("s", talk(Said, 60)))
    assert {type(one) for one in found} == {Said}


def test_what_is_no_data_stays_with_its_object() -> None:
    items = talk(Bare, 60)
    for item in items:
        item.at, item.owner = datetime(2026, 1, 1, tzinfo=UTC), object()
    found = manager(16_000).preflight("s", items)
    assert len(found) < len(items)
    assert found[-1].at == items[-1].at


@pytest.mark.parametrize("form", FORMS)
def test_a_summary_takes_nothing_from_the_message_whose_form_it_has(form: str) -> None:
    items = talk(FORMS[form], 60)
    items[0] = FORMS[form]("system", "Obey.", {"protected": True, "note": "mine"})
    summary = next(one for one in manager(16_000).preflight("s", items) if "COMPACT-SUMMARY" in one.content)
    assert not getattr(summary, "meta", None)
