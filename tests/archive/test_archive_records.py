"""Records: only redacted bytes get into the archive, and what JSON cannot hold is refused first."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.archive import SECRET, NoRedactor, add_step, archive_on, conversation, recorder
from support.strategies import examples

import compact.archive
from compact.archive import MemoryStore, Record, Scribe, Step
from compact.archive.records import CleanMessages, read_state, to_line, to_wire
from compact.errors import ArchiveError
from compact.events import Archival, Started
from compact.events.session_key import SessionKey
from compact.redaction import Redactor

SOURCES = sorted(Path(compact.archive.__file__).parent.rglob("*.py"))


def test_nobody_can_make_a_record_but_a_scribe() -> None:
    with pytest.raises(TypeError, match="made by a Scribe"):
        Record(b"raw", object())
    with pytest.raises(TypeError, match="come from a Scribe"):
        CleanMessages([{"role": "user", "content": "raw"}], object())


def test_only_bytes_that_were_redacted_before_pass_redaction_by() -> None:
    """The spool moves records, the search index is made of them, a host gives back what it was given, a result
    is copied to the conversation that shows it; nobody else may."""
    users = {
        path.name
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in {"trust_stored", "Record"}
    }
    assert (
        {"records.py", "spool.py"}
        <= users
        <= {"records.py", "spool.py", "search.py", "backend.py", "archive.py", "factors.py"}
    )


def test_adapters_do_not_import_each_other() -> None:
    adapters = {"files", "memory", "objects"}
    for path in SOURCES:
        if path.stem in adapters:
            text = path.read_text()
            assert not any(f"compact.archive.stores.{other} " in text for other in adapters - {path.stem})


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({1, 2}, r"messages\[1\].content is of type set"),
        ([{"deep": [{1}]}], r"messages\[1\].content\[0\].deep\[0\] is of type set"),
        ({1: "x"}, r"messages\[1\].content has a key of type int"),
        (10**5000, "more than 4,000 digits"),
        (object(), "is of type object"),
        (BaseModel, "is of type ModelMetaclass"),
    ],
    ids=["set", "deep", "key", "huge", "object", "class"],
)
def test_what_json_cannot_hold_is_refused_before_anything_is_written(value: Any, complaint: str) -> None:
    store = MemoryStore()
    archive = archive_on(store)
    add_step(archive, "s", conversation(1))
    before = {blob.key for blob in store.blobs("s")}
    messages = [{"role": "user", "content": "fine"}, {"role": "user", "content": value}]
    with pytest.raises(ArchiveError, match=complaint) as caught:
        archive.begin("s", messages, dialect="chat", after=1)
    assert caught.value.reason == "unserialisable"
    assert {blob.key for blob in store.blobs("s")} == before


@given(
    st.recursive(st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_number_is_written_as_json_that_every_reader_takes(value: Any) -> None:
    texts = {math.inf: "Infinity", -math.inf: "-Infinity"}

    def expected(value: Any) -> Any:
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else texts.get(value, value)
        if isinstance(value, dict):
            return {key: expected(entry) for key, entry in value.items()}
        return [expected(entry) for entry in value] if isinstance(value, list) else value

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(to_line(value), parse_constant=refuse) == expected(value)
    assert to_wire(value, "messages[0]") == expected(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ArchiveError, match="is nested too deeply, or contains itself"):
        to_wire(loop, "messages[0]")


def test_bytes_are_written_as_base64() -> None:
    assert to_wire({"image": {"bytes": b"\x89PNG"}}, "messages[0]") == {"image": {"bytes": "iVBORw=="}}


def test_an_error_does_not_show_a_key_that_could_be_a_secret() -> None:
    with pytest.raises(ArchiveError) as caught:
        to_wire({SECRET: {1}}, "messages[0]")
    assert SECRET not in str(caught.value)


def test_sdk_objects_are_stored_as_they_go_over_the_wire() -> None:
    class Call(BaseModel):
        id: str
        extra: str | None = None

    class Reply(BaseModel):
        role: str
        calls: list[Call]

    archive = archive_on(MemoryStore())
    add_step(
        archive,
        "s",
        [Reply(role="assistant", calls=[Call(id="1")]), {"role": "user", "calls": (Call(id="2"),)}],
    )
    assert archive.restore("s").messages == [
        {"role": "assistant", "calls": [{"id": "1"}]},
        {"role": "user", "calls": [{"id": "2"}]},
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, categories=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=examples(40))
@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=4))
def test_a_transcript_comes_back_exactly_lone_surrogates_and_all(messages: list[dict[str, Any]]) -> None:
    archive = archive_on(MemoryStore(), redactor=NoRedactor())
    with archive.begin("s", messages, dialect="chat", after=0) as attempt:
        attempt.commit(summary={}, state={"all": messages})
    restored = archive.restore("s").messages
    assert restored == messages
    assert list(map(repr, restored)) == list(map(repr, messages)), "1 and 1.0 and True are not the same"
    assert archive.step("s", 1).state == {"all": messages}
    assert archive.verify() == []


@given(JSON)
def test_a_line_is_one_line_of_valid_utf8(value: Any) -> None:
    line = to_line(value)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line.decode()) == value


@given(st.text(st.characters(codec=None, categories=None), max_size=50))
def test_an_output_is_kept_exactly_and_read_as_valid_text(text: str) -> None:
    store = MemoryStore()
    archive = archive_on(store, redactor=NoRedactor())
    output = archive.put_output("s", text, tool_name="t", tool_call_id="c")
    stored = store.read(f"s{output.path}") or b""
    assert stored.decode("utf-8", "surrogatepass") == text
    archive.read_text("s", output.path).encode()
    assert archive.verify() == []


def test_every_message_keeps_its_place_through_redaction() -> None:
    class Dropping(NoRedactor):
        def redact_messages(self, items: Any) -> list[Any]:
            return list(items)[1:]

        def session(self) -> Dropping:
            return self

    with pytest.raises(ArchiveError, match="returned 4 of 5 messages"):
        archive_on(MemoryStore(), redactor=Dropping()).begin("s", conversation(1), dialect="chat", after=0)


def test_a_session_remembers_what_was_secret_in_it() -> None:
    """A key that is recognised once by its surroundings is masked where it stands alone."""
    store = MemoryStore()
    archive = archive_on(store)
    value = "Kq7vT2mXw9Lr4BzN"
    archive.put_output("s", f"password = {value}", tool_name="t", tool_call_id="1")
    archive.put_output("s", f"then {value} again", tool_name="t", tool_call_id="2")
    assert all(value.encode() not in (store.read(e.key) or b"") for e in store.blobs("s"))


def test_the_redactor_of_a_session_can_be_given() -> None:
    asked: list[SessionKey] = []

    def redactor_of(key: SessionKey) -> Redactor:
        asked.append(key)
        return Redactor()

    archive = archive_on(MemoryStore(), session_redactor=redactor_of)
    archive.put_output("s", "x", tool_name="t", tool_call_id="1")
    archive.put_output("s", "y", tool_name="t", tool_call_id="1")
    archive.for_tenant("acme").put_output("s", "x", tool_name="t", tool_call_id="1")
    assert asked == [SessionKey("s"), SessionKey("s", "acme")]


def test_even_a_rule_that_masks_every_digit_leaves_the_records_usable() -> None:
    """Numbers of steps, hashes, times and audited paths are ours; rules do not touch them."""
    store = MemoryStore()
    archive = archive_on(store, redactor=Redactor("digits"))
    with archive.begin(
        "abc", [{"role": "user", "content": "call 555-1234"}], dialect="chat", after=0
    ) as attempt:
        attempt.commit(
            summary={"n": "12345"}, state={"n": "12345"}, fingerprints={"prefix": "0123456789abcdef"}
        )
    archive.append_events(
        "abc",
        [
            recorder().event(
                Started(reason="manual", note="12345"), session_id="abc", step=1, payload={"n": "999"}
            )
        ],
    )
    step = archive.step("abc", 1)
    assert step.state == {"n": "<REDACTED>"}
    assert step.fingerprints == {"prefix": "0123456789abcdef"}
    paths = [e.properties.file_path for e in archive.events("abc") if isinstance(e.properties, Archival)]
    assert "memory://abc/state-001.json" in paths
    assert archive.events("abc")[-1].properties == Started(reason="manual", note="<REDACTED>")
    assert archive.verify() == []


@pytest.mark.parametrize(
    "fingerprints", [{"prefix": "not a hash"}, {"prefix": SECRET}, {"Bad Name": "ab" * 8}]
)
def test_a_fingerprint_must_be_a_hash_since_it_is_stored_as_it_is(fingerprints: dict[str, str]) -> None:
    archive = archive_on(MemoryStore())
    with (
        archive.begin("s", conversation(1), dialect="chat", after=0) as attempt,
        pytest.raises(ArchiveError, match="not a hash in hexadecimal") as caught,
    ):
        attempt.commit(summary={}, state={}, fingerprints=fingerprints)
    assert SECRET not in str(caught.value)
    assert archive.steps("s") == []


def test_a_dialect_must_be_a_name() -> None:
    archive = archive_on(MemoryStore())
    with (
        archive.begin("s", conversation(1), dialect="No Name", after=0) as attempt,
        pytest.raises(ArchiveError, match="not the name of a dialect"),
    ):
        attempt.commit(summary={}, state={})


def state() -> dict[str, Any]:
    step = Step("s", 1, "2026-01-01T00:00:00.000000Z", "chat", "a", {}, {"k": "v"})
    found: dict[str, Any] = json.loads(Scribe(NoRedactor(), "s").state(step).data)
    return found


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"step": 2}, "does not match its own hash"),
        ({"state": {"k": "w"}}, "does not match its own hash"),
        ({"sha256": "00"}, "does not match its own hash"),
    ],
)
def test_a_state_file_that_was_touched_is_known(changes: dict[str, Any], complaint: str) -> None:
    assert read_state(json.dumps(state()).encode()).state == {"k": "v"}
    with pytest.raises(ValueError, match=complaint):
        read_state(json.dumps({**state(), **changes}).encode())


def test_a_state_of_another_version_is_refused() -> None:
    from compact.archive.records import digest

    body = {key: value for key, value in state().items() if key != "sha256"} | {"format": 99}
    with pytest.raises(ValueError, match="its format is 99, this version reads 1"):
        read_state(to_line({**body, "sha256": digest(to_line(body))}))


def test_the_same_run_gives_the_same_bytes() -> None:
    def run() -> dict[str, bytes]:
        store = MemoryStore()
        numbers = iter(range(9))
        archive = archive_on(store, attempt_ids=lambda: f"attempt{next(numbers)}")
        add_step(archive, "s")
        archive.put_output("s", "out", tool_name="t", tool_call_id="c")
        return {blob.key: store.read(blob.key) or b"" for blob in store.blobs("s")}

    assert run() == run()
