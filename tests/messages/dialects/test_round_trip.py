"""Reading then writing back gives equal messages; a message nobody changed is the very same object."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.data import all_sessions, claude_code_messages, responses_lists
from support.dialects import CONVERTERS, to_artifacts
from support.strategies import SESSIONS

from compact.messages import Text, dialects

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover


def assert_exact(items: list[Any], dialect: str | None) -> None:
    before = copy.deepcopy(items)
    known, messages = dialects.read(items, dialect)
    assert len(messages) == len(items)
    for item, written in zip(items, dialects.write(known, messages), strict=True):
        assert written is item
    for item, message in zip(items, messages, strict=True):
        rewritten = known.write(replace(message, edited=True))
        assert rewritten == item
        assert known.read(rewritten) == message
    assert items == before, "reading or writing changed the host's objects"


@pytest.mark.parametrize("dialect", dialects.NAMES)
@given(data=st.data())
def test_any_session_round_trips_in_its_dialect(dialect: str, data: st.DataObject) -> None:
    assert_exact(data.draw(SESSIONS[dialect]), dialect)


@pytest.mark.parametrize("dialect", dialects.NAMES)
@given(data=st.data())
def test_any_session_is_recognised(dialect: str, data: st.DataObject) -> None:
    items = data.draw(SESSIONS[dialect])
    known = dialects.detect(items)
    certain = any(dialects.get(dialect).claim(item) == 2 for item in items)
    if certain:
        assert dialect == known.NAME
    assert all(known.claim(item) for item in items)


@pytest.mark.sweep
def test_every_shared_transcript_round_trips() -> None:
    for session in all_sessions():
        assert_exact(session["messages"], None)


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_every_shared_transcript_round_trips_in_every_dialect(dialect: str) -> None:
    convert = to_artifacts if dialect == "harness" else CONVERTERS[dialect]
    for session in all_sessions():
        items = convert(session["messages"])
        assert_exact(items, dialect)


def test_recorded_responses_items_round_trip() -> None:
    assert len(responses_lists()) > 10
    for items in responses_lists():
        assert_exact(items, "responses")


def test_claude_code_messages_round_trip() -> None:
    assert len(claude_code_messages()) > 30
    assert_exact(list(claude_code_messages()), "anthropic")


@pytest.mark.parametrize("dialect", dialects.NAMES)
@given(data=st.data())
def test_a_changed_message_keeps_every_unknown_key(dialect: str, data: st.DataObject) -> None:
    items = data.draw(SESSIONS[dialect])
    known, messages = dialects.read(items, dialect)
    for item, message in zip(items, messages, strict=True):
        parts = tuple(
            replace(part, text="changed") if isinstance(part, Text) else part for part in message.parts
        )
        written = known.write(message.with_parts(parts))
        assert set(item) <= set(written)
        changed = {"content", "output", "parts"}
        assert {k: v for k, v in written.items() if k not in changed} == {
            k: v for k, v in item.items() if k not in changed
        }
        assert known.read(written).parts == parts
