"""Whatever a list looks like: it is refused, or every entry of it still stands, or the archive holds what left."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import manager
from support.strategies import SESSIONS, examples

from compact import CompactManager, hygiene
from compact.checks import violations
from compact.errors import MessageError
from compact.tokens import Meter

METER = Meter("gpt-4o")

KEYS = [
    "role", "content", "type", "kind", "parts", "text", "message", "tool_calls", "tool_call_id", "id", "name", "function",
    "arguments", "input", "output", "call_id", "blocks", "data", "toolUse", "metadata", "refusal", "tool_use_id",
]  # fmt: skip
VALUES = [
    "user", "assistant", "system", "tool", "model", "human", "message", "text", "tool_use", "tool_result", "function_call",
    "function_call_output", "reasoning", "task", "input_text", "{}", "", " ", "read",
]  # fmt: skip

leaves = (
    st.sampled_from(VALUES)
    | st.sampled_from([f"word{n}word" for n in range(30)])
    | st.none()
    | st.integers(0, 9)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(VALUES[:6]), "content": values, "type": st.sampled_from(VALUES)}
).flatmap(
    lambda base: st.dictionaries(st.sampled_from(KEYS), values, max_size=3).map(lambda more: {**more, **base})
)


def words_of(value: Any) -> set[str]:
    """The words of a value that nothing else in the list says."""
    if isinstance(value, str):
        return {value} if value.startswith("word") else set()
    if isinstance(value, dict):
        return set().union(*map(words_of, value.values()))
    return set().union(*map(words_of, value)) if isinstance(value, list) else set()


def check(items: list[Any]) -> None:
    before, host = copy.deepcopy(items), manager()
    with suppress(MessageError):  # it is refused
        out = host.preflight("s", items)
        check_kept(before, out, host)
    assert items == before
    host.close()


def check_kept(before: list[Any], out: Any, host: CompactManager) -> None:
    host.flush()
    store = host.archive.store
    kept = "".join(
        (store.read(blob.key) or b"").decode() for folder in store.folders() for blob in store.blobs(folder)
    )
    said = json.dumps(out) + kept
    for item in before:
        missing = {word for word in words_of(item) if word not in said}
        assert not missing, (missing, item, out)


@settings(max_examples=examples(300))
@given(st.lists(entries, max_size=5))
def test_entries_of_any_shape(items: list[Any]) -> None:
    check(items)


@settings(max_examples=examples(150))
@given(st.sampled_from(sorted(SESSIONS)).flatmap(lambda name: SESSIONS[name]), entries, st.data())
def test_an_entry_of_any_shape_inside_a_session(
    session: list[Any], stranger: Any, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(session)))
    check([*session[:place], stranger, *session[place:]])


@settings(max_examples=examples(200))
@given(
    st.lists(entries, max_size=3), st.sampled_from(["chat", "responses", "anthropic", "ai_sdk", "harness"])
)
def test_entries_of_any_shape_in_a_dialect_that_is_named(items: list[Any], dialect: str) -> None:
    for work in (lambda: violations(items, dialect), lambda: METER.estimate(items, dialect=dialect)):
        with suppress(MessageError):
            work()
    with suppress(MessageError):
        report = hygiene.clean_report(items, dialect=dialect)
        standing = {id(item) for item in report.messages} | {
            id(removed.message) for removed in report.removed
        }
        assert {id(item) for item in items} <= standing
        assert violations(report.messages, dialect) == []
