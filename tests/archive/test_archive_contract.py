"""What every store must do: the same tests run on a disk, in memory, and on an object store."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from support.archive import (
    SECRET,
    SettableClock,
    add_step,
    archive_on,
    commit,
    conversation,
    dead_attempt,
    recorder,
)

from compact.archive import Step, Store, Taken, keys
from compact.archive.log import LogWatcher
from compact.errors import ArchiveError
from compact.events import Archival, Started, Warned
from compact.redaction import Redactor
from compact.summaries.ledger import Entry, entry_id, to_json


def visible(store: Store, folder: str) -> list[str]:
    return [e.key.removeprefix(f"{folder}/") for e in store.blobs(folder) if "/." not in e.key]


def hidden(store: Store, folder: str) -> list[str]:
    return [e.key for e in store.blobs(folder) if "/." in e.key]


def test_a_committed_step_has_the_names_of_the_contract(store: Store) -> None:
    add_step(archive_on(store), "s1")
    names = set(visible(store, "s1"))
    assert {
        "transcript-pre-compact-001.jsonl",
        "summary-001.json",
        "state-001.json",
        "conversation_history/step-001.md",
    } <= names
    assert any(name.startswith("events") for name in names)
    assert not hidden(store, "s1")


def test_restore_gives_back_every_transcript(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    first, second = conversation(1), conversation(3)
    add_step(archive, "s1", first)
    add_step(archive, "s1", second)
    reader = archive_on(reopen())
    assert reader.restore("s1", 1).messages == first
    assert reader.restore("s1").messages == second
    assert reader.restore("s1").dialect == "chat"
    assert reader.steps("s1") == [1, 2]
    assert reader.verify() == []


def test_the_newest_state_is_the_state(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    assert archive.latest("s1") is None
    add_step(archive, "s1", position=10)
    add_step(archive, "s1", position=20)
    latest = archive_on(reopen()).latest("s1")
    assert latest is not None
    assert (latest.step, latest.state) == (2, {"position": 20})


def test_of_two_workers_one_gets_the_step_and_the_other_sees_it(
    store: Store, reopen: Callable[[], Store]
) -> None:
    one, two = archive_on(store), archive_on(reopen())
    with (
        one.begin("s1", conversation(1), dialect="chat", after=0) as first,
        two.begin("s1", conversation(2), dialect="chat", after=0) as second,
    ):
        won = commit(second, who="two")
        lost = commit(first, who="one")
    assert isinstance(won, Step)
    assert isinstance(lost, Taken)
    assert lost.winner.state == {"who": "two"}
    assert one.restore("s1").messages == conversation(2)
    assert one.steps("s1") == [1]
    assert not hidden(store, "s1")
    assert one.verify() == []


def test_an_attempt_survives_that_another_worker_begins_and_gives_up(
    store: Store, reopen: Callable[[], Store]
) -> None:
    one, two = archive_on(store), archive_on(reopen())
    with one.begin("s1", conversation(3), dialect="chat", after=0) as first:
        two.begin("s1", conversation(1), dialect="chat", after=0).abandon()
        assert isinstance(commit(first), Step)
    assert two.restore("s1").messages == conversation(3)
    assert two.verify() == []


def test_threads_on_one_session_leave_no_gap_and_overwrite_nothing(store: Store) -> None:
    archive = archive_on(store)
    won: list[tuple[int, int]] = []

    def work(worker: int) -> None:
        for _ in range(3):
            while True:
                latest = archive.latest("s1")
                after = latest.step if latest else 0
                with archive.begin("s1", conversation(1), dialect="chat", after=after) as attempt:
                    if isinstance(commit(attempt, worker=worker), Step):
                        won.append((after + 1, worker))
                        break

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(step for step, _ in won) == list(range(1, 10))
    assert {archive.step("s1", step).state["worker"] == worker for step, worker in won} == {True}
    assert archive.verify() == []


def test_an_abandoned_attempt_leaves_nothing(store: Store) -> None:
    archive = archive_on(store)
    with archive.begin("s1", conversation(), dialect="chat", after=0):
        assert hidden(store, "s1"), "the transcript is durable before anything is decided"
    assert not hidden(store, "s1")
    assert archive.steps("s1") == []
    assert add_step(archive, "s1").step == 1


def test_an_attempt_ends_with_its_commit(store: Store) -> None:
    archive = archive_on(store)
    with archive.begin("s1", conversation(), dialect="chat", after=0) as attempt:
        commit(attempt)
        with pytest.raises(ArchiveError, match="has ended"):
            commit(attempt)
    assert archive.steps("s1") == [1]


def test_every_save_is_audited(store: Store) -> None:
    archive = archive_on(store)
    step = add_step(archive, "s1")
    output = archive.put_output("s1", "result", tool_name="grep", tool_call_id="c1", step=1)
    saved = {e.properties.file_path: e for e in archive.events("s1") if isinstance(e.properties, Archival)}
    expected = [ref.name for ref in step.files.values()] + ["state-001.json", output.path[1:]]
    assert set(saved) == {store.address(f"s1/{name}") for name in expected}
    assert len({saved[store.address(f"s1/{name}")].trace_id for name in expected[:-1]}) == 1
    properties = saved[output.address].properties
    assert properties == Archival(
        session_id="s1", step=1, storage_adapter=store.adapter, file_path=output.address
    )


def test_events_come_back_in_order_and_from_any_place(store: Store, reopen: Callable[[], Store]) -> None:
    make = recorder()
    archive = archive_on(store)
    events = [make.event(Started(reason="manual", note=f"r{n}"), session_id="s1", step=0) for n in range(6)]
    archive.append_events("s1", events[:2])
    archive.append_events("s1", [])
    archive_on(reopen()).append_events("s1", events[2:5])
    archive.append_events("s1", events[5:])
    assert archive.events("s1") == events
    assert archive.events("s1", start=4) == events[4:]
    assert archive.events("other") == []


def test_concurrent_appends_do_not_mix(store: Store) -> None:
    archive = archive_on(store)

    def work(worker: int) -> None:
        make = recorder()
        for n in range(5):
            events = [
                make.event(
                    Started(reason="manual", note=f"{worker}.{n}.{i}"),
                    session_id="s1",
                    step=0,
                    payload={"padding": "x" * 3000},
                )
                for i in range(2)
            ]
            archive.append_events("s1", events)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notes = [e.properties.note for e in archive.events("s1") if isinstance(e.properties, Started)]
    assert len(notes) == 40
    for worker in range(4):
        own = [note for note in notes if note and note.startswith(f"{worker}.")]
        assert own == [f"{worker}.{n}.{i}" for n in range(5) for i in range(2)]
    batches = [notes[at : at + 2] for at in range(0, 40, 2)]
    assert all(a and b and a[:-1] == b[:-1] for a, b in batches), "a batch stays together"
    assert archive.verify() == []


def test_the_listener_gets_exactly_what_was_written(store: Store) -> None:
    heard: list[bytes] = []
    archive = archive_on(store, listener=lambda session_id, lines: heard.append(lines))
    add_step(archive, "s1")
    assert b"".join(heard) == store.read_log("s1/events.jsonl")


def test_the_same_output_is_stored_once(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    one = archive.put_output("s1", "same text", tool_name="read_file", tool_call_id="call_1")
    two = archive.put_output("s1", "same text", tool_name="read_file", tool_call_id="call_2")
    three = archive_on(reopen()).put_output("s1", "same text", tool_name="other", tool_call_id="call_3")
    assert (one.new, two.new, three.new) == (True, False, False)
    assert one.path == two.path == three.path
    assert one.path == f"/tool_outputs/read_file_call_1_{one.sha256[:12]}.txt"
    assert [info.path for info in archive.files("s1")] == [one.path]
    assert archive.read_text("s1", one.path) == "same text"


def test_messages_that_hygiene_removes_are_kept_once(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    gone = [
        {"role": "tool", "tool_call_id": "orphan", "content": f"key {SECRET}"},
        {"role": "user", "content": "b"},
    ]
    one = archive.put_removed("s1", gone)
    two = archive_on(reopen()).put_removed("s1", gone)
    assert (one.path, one.new, two.new) == (two.path, True, False)
    assert one.path == f"/conversation_history/removed_{one.sha256[:12]}.jsonl"
    lines = archive.read_text("s1", one.path).splitlines()
    assert [json.loads(line) for line in lines] == Redactor().redact_messages(gone)
    assert sum(isinstance(e.properties, Archival) for e in archive.events("s1")) == 1
    assert archive.verify() == []


def test_an_output_whose_short_hash_belongs_to_other_bytes_gets_a_long_name(store: Store) -> None:
    archive = archive_on(store)
    one = archive.put_output("s1", "text", tool_name="t", tool_call_id="c")
    archive.put_output("s2", "other bytes", tool_name="t", tool_call_id="c")
    spoil(store, f"s1{one.path}", f"s2{archive.files('s2')[0].path}")
    two = archive_on(store).put_output("s1", "text", tool_name="t", tool_call_id="c")
    assert two.path == f"/tool_outputs/t_c_{two.sha256}.txt"
    assert archive.read_text("s1", two.path) == "text"
    spoil(store, f"s1{two.path}", f"s1{one.path}")
    with pytest.raises(ArchiveError, match="holds other bytes than its name says"):
        archive.put_output("s1", "text", tool_name="t", tool_call_id="c")


def test_an_empty_transcript_is_a_transcript(store: Store) -> None:
    archive = archive_on(store)
    with archive.begin("s1", [], dialect="chat", after=0) as attempt:
        assert isinstance(commit(attempt), Step)
    assert archive.restore("s1").messages == []
    assert archive.verify() == []


def test_other_sessions_are_out_of_reach(store: Store) -> None:
    archive = archive_on(store)
    mine = archive.put_output("mine", "mine", tool_name="t", tool_call_id="c")
    archive.put_output("theirs", "theirs", tool_name="t", tool_call_id="c")
    assert archive.read_text("mine", mine.path) == "mine"
    for path in (
        "/tool_outputs/../../theirs/tool_outputs/x.txt",
        "/../theirs/session.json",
        "../theirs/session.json",
        "/session.json",
        "/state-001.json",
        "/tool_outputs/",
        "/tool_outputs/.hidden",
        "/tool_outputs/a\0b",
        "/tool_outputs//x",
        "tool_outputs/x.txt",
        "/etc/passwd",
        "",
    ):
        with pytest.raises(ArchiveError, match="there is no file"):
            archive.read_text("mine", path)
    with pytest.raises(ArchiveError, match="there is no file"):
        archive.read_text("mine", "/tool_outputs/unknown.txt")


def test_no_write_escapes_redaction(store: Store) -> None:
    archive = archive_on(store)
    session_id = f"user {SECRET}"
    messages = [*conversation(1), {"role": "user", "content": f"My key is {SECRET}, keep it."}]
    with archive.begin(session_id, messages, dialect="chat", after=0) as attempt:
        attempt.commit(
            summary={"text": f"key {SECRET}"}, state={"note": SECRET}, fingerprints={"prefix": "ab" * 32}
        )
    archive.put_output(session_id, f"out {SECRET}", tool_name=f"t-{SECRET}", tool_call_id=SECRET)
    event = recorder().event(
        Started(reason="manual", note=SECRET), session_id=session_id, step=1, payload={"deep": [SECRET]}
    )
    archive.append_events(session_id, [event])
    stored = [e.key for folder in store.folders() for e in store.blobs(folder)]
    assert len(stored) >= 6
    for key in stored:
        assert SECRET not in key
        assert SECRET.encode() not in (store.read(key) or b""), key
    restored = archive.restore(session_id).messages
    assert restored == Redactor().redact_messages(messages)
    assert archive.step(session_id, 1).fingerprints == {"prefix": "ab" * 32}
    assert messages[-1]["content"] == f"My key is {SECRET}, keep it.", "in memory nothing is changed"
    assert archive.verify() == []


def test_switched_off_redaction_is_reported_once_with_high_severity(store: Store) -> None:
    archive = archive_on(store, redactor=Redactor.disabled())
    add_step(archive, "s1")
    add_step(archive, "s1")
    warnings = [e for e in archive.events("s1") if isinstance(e.properties, Warned)]
    assert [(e.properties.code, e.properties.severity) for e in warnings] == [("redaction_disabled", "high")]  # type: ignore[attr-defined]
    assert archive.events("s1")[0] == warnings[0], "before anything is archived"


def test_sessions_lists_the_raw_ids(store: Store) -> None:
    archive = archive_on(store)
    ids = ["plain", "../../etc/passwd", "1731772800123456789", "", "日本", "x" * 10_000]
    for session_id in ids:
        archive.put_output(session_id, f"of {session_id[:20]}", tool_name="t", tool_call_id="c")
    assert archive.sessions() == sorted(ids)
    for session_id in ids:
        (info,) = archive.files(session_id)
        assert archive.read_text(session_id, info.path) == f"of {session_id[:20]}"


@pytest.mark.parametrize(
    ("session_id", "shown"),
    [
        ("user@example.org/7", "<REDACTED>/7-"),
        ("mail-ann.b@example.org", "<REDACTED>-"),
        ("tel:555-123-4567", "tel:<REDACTED>-"),
        ("run-AKIAQ3EGRIT7W5KXH2PL", "run-<REDACTED>-"),
    ],
)
def test_an_id_that_holds_a_secret_or_personal_data_is_shown_masked(
    store: Store, session_id: str, shown: str
) -> None:
    archive = archive_on(store)
    add_step(archive, session_id)
    (listed,) = archive.sessions()
    assert listed[:-8] == shown
    assert archive.steps(session_id) == [1]
    archive.put_output(f"{session_id}x", "text", tool_name="t", tool_call_id="c")
    assert len(set(archive.sessions())) == 2, "masked ids stay apart"
    for blob in store.blobs(archive.folder(session_id)):
        assert session_id not in blob.key
        assert session_id.encode() not in (store.read(blob.key) or store.read_log(blob.key))


def test_verify_sees_damage(store: Store) -> None:
    archive = archive_on(store)
    add_step(archive, "s1")
    add_step(archive, "s1")
    output = archive.put_output("s1", "text", tool_name="t", tool_call_id="c")
    other = archive_on(store)
    other.put_output("s2", "other", tool_name="t", tool_call_id="c")
    wrong = next(e.key for e in store.blobs("s2", "tool_outputs/"))
    spoil(store, "s1/transcript-pre-compact-001.jsonl", wrong)
    spoil(store, f"s1{output.path}", wrong)
    store.delete(["s1/summary-002.json", "s1/state-001.json"])
    found = {(p.key, p.code) for p in archive.verify("s1")}
    assert found == {
        ("s1/state-001.json", "gap"),
        ("s1/transcript-pre-compact-001.jsonl", "orphan"),
        ("s1/summary-001.json", "orphan"),
        ("s1/summary-002.json", "missing"),
        (f"s1{output.path}", "changed"),
    }
    assert archive.verify("s2") == []


def test_a_changed_transcript_is_not_restored(store: Store) -> None:
    archive = archive_on(store)
    add_step(archive, "s1")
    spoil(store, "s1/transcript-pre-compact-001.jsonl", "s1/summary-001.json")
    with pytest.raises(ArchiveError, match="is not what was written") as caught:
        archive.restore("s1")
    assert caught.value.reason == "changed"
    assert [(p.key, p.code) for p in archive.verify()] == [("s1/transcript-pre-compact-001.jsonl", "changed")]


def test_a_changed_state_is_refused(store: Store) -> None:
    archive = archive_on(store)
    add_step(archive, "s1")
    add_step(archive, "s1")
    spoil(store, "s1/state-002.json", "s1/state-001.json")
    with pytest.raises(ArchiveError, match="is the record of step 1"):
        archive.latest("s1")
    spoil(store, "s1/state-002.json", "s1/summary-001.json")
    with pytest.raises(ArchiveError, match="it is not a state record"):
        archive.latest("s1")
    assert [p.code for p in archive.verify()] == ["damaged"]


def spoil(store: Store, key: str, other: str) -> None:
    """Puts another record's bytes in the place of one."""
    from compact.archive.records import trust_stored

    store.replace(key, trust_stored(store.read(other) or b""))


def test_what_is_not_there_is_said_clearly(store: Store) -> None:
    archive = archive_on(store)
    with pytest.raises(ArchiveError, match="has no step: it has none yet"):
        archive.restore("s1")
    add_step(archive, "s1")
    with pytest.raises(ArchiveError, match="has no step 7: it has 1 to 1"):
        archive.restore("s1", 7)


def test_prune_keeps_the_newest_step_and_what_it_points_to(store: Store) -> None:
    clock = SettableClock(datetime.now(UTC) - timedelta(days=20))
    archive = archive_on(store, recorder=recorder(clock))
    pointed = archive.put_output("s1", "needed", tool_name="t", tool_call_id="a")
    loose = archive.put_output("s1", "no longer needed", tool_name="t", tool_call_id="b")
    add_step(archive, "s1", [{"role": "user", "content": f"see {pointed.path} and {loose.path}"}])
    clock.advance(days=9)
    add_step(archive, "s1", conversation(1))
    clock.advance(days=20)
    # The store's own times are today's; so today must be old for the outputs to be.
    add_step(archive, "s1", [{"role": "user", "content": f"see {pointed.path}"}], keep=pointed.path)
    now = clock.now + timedelta(days=100)

    would = archive.prune(timedelta(days=30), now=now, dry_run=True)
    assert archive.restore("s1", 1).messages
    assert archive.prune(timedelta(days=30), now=now) == would
    assert archive.prune(timedelta(days=30), now=now) == []

    assert [(r.step, len(r.keys)) for r in would] == [(1, 3), (2, 3), (None, 1)]
    assert would[-1].keys == (f"s1{loose.path}",)
    assert all(r.bytes > 0 for r in would)
    assert archive.steps("s1") == [1, 2, 3]
    assert archive.restore("s1").messages == [{"role": "user", "content": f"see {pointed.path}"}]
    assert archive.read_text("s1", pointed.path) == "needed"
    with pytest.raises(ArchiveError, match="was pruned at"):
        archive.restore("s1", 1)
    assert archive.step("s1", 1).state == {}
    assert archive.verify() == []
    assert add_step(archive, "s1").step == 4


def test_prune_touches_nothing_that_is_young(store: Store) -> None:
    clock = SettableClock()
    archive = archive_on(store, recorder=recorder(clock))
    for _ in range(3):
        add_step(archive, "s1")
    before = visible(store, "s1")
    assert archive.prune(timedelta(days=1)) == []
    assert archive.prune(timedelta(days=1), session_id="unknown") == []
    assert visible(store, "s1") == before


def test_a_step_whose_process_died_after_the_commit_is_whole_and_gets_finished(
    store: Store, reopen: Callable[[], Store]
) -> None:
    """Between the commit point and the last name, every record is there, and the next writer sets the names."""
    dying = archive_on(broken(store, "publish"), attempt_ids=dead_attempt)
    step = add_step(dying, "s1", conversation(2), mark=1)
    assert step.unfinished
    assert "publish is broken" in step.unfinished

    other = archive_on(reopen())
    assert "transcript-pre-compact-001.jsonl" not in visible(store, "s1")
    assert other.restore("s1").messages == conversation(2)
    assert other.verify() == []
    with other.begin("s1", conversation(1), dialect="chat", after=1):
        assert "transcript-pre-compact-001.jsonl" in visible(store, "s1")
        assert "conversation_history/step-001.md" in visible(store, "s1")
    assert not hidden(store, "s1")
    saved = [e.properties.file_path for e in other.events("s1") if isinstance(e.properties, Archival)]
    assert len(saved) == len(set(saved)) == 4


def test_audit_events_lost_in_a_crash_are_written_when_the_step_is_finished(store: Store) -> None:
    dying = archive_on(broken(store, "publish", "append"), attempt_ids=dead_attempt)
    assert add_step(dying, "s1").unfinished
    other = archive_on(store)
    assert other.events("s1") == []
    other.begin("s1", conversation(1), dialect="chat", after=1).abandon()
    saved = [e.properties.file_path for e in other.events("s1") if isinstance(e.properties, Archival)]
    assert sorted(saved) == sorted(
        store.address(f"s1/{name}")
        for name in (
            "transcript-pre-compact-001.jsonl",
            "summary-001.json",
            "conversation_history/step-001.md",
            "state-001.json",
        )
    )


class Broken:
    """A store of which some methods fail; all others are the real ones."""

    def __init__(self, store: Store, *methods: str) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> object:
        if name in self._methods:

            def fail(*_: object) -> None:
                raise ArchiveError(f"{name} is broken", key=name)

            return fail
        return getattr(self._store, name)


def broken(store: Store, *methods: str) -> Store:
    return cast("Store", Broken(store, *methods))


def test_a_step_that_cannot_be_finished_keeps_its_staged_files(store: Store) -> None:
    """They are the only copy of the transcript, however dead their owner is."""
    stuck = broken(store, "publish")
    add_step(archive_on(stuck, attempt_ids=dead_attempt), "s1", conversation(2))
    archive = archive_on(stuck)
    archive.begin("s1", conversation(1), dialect="chat", after=1).abandon()
    assert len(hidden(store, "s1")) == 3
    assert archive.restore("s1").messages == conversation(2)


def test_one_damaged_state_stops_neither_the_session_nor_removes_what_it_may_need(store: Store) -> None:
    add_step(archive_on(broken(store, "publish"), attempt_ids=dead_attempt), "s1")
    spoil(store, "s1/state-001.json", "s1/session.json")
    archive = archive_on(store)
    with archive.begin("s1", conversation(1), dialect="chat", after=1) as attempt:
        assert isinstance(commit(attempt), Step)
    assert len(hidden(store, "s1")) == 3
    assert archive.restore("s1").step == 2
    assert [(p.key, p.code) for p in archive.verify()] == [("s1/state-001.json", "damaged")]


def test_a_step_that_stays_unfinished_elsewhere_is_finished_after_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can know whether a process on another machine still lives, so time decides."""
    add_step(archive_on(broken(store, "publish"), attempt_ids=lambda: "00000000-1-1-1"), "s1")
    archive = archive_on(store)
    archive.begin("s1", conversation(1), dialect="chat", after=1).abandon()
    assert "summary-001.json" not in visible(store, "s1")
    monkeypatch.setattr("compact.archive.steps.STUCK_S", -1.0)
    archive_on(store).begin("s1", conversation(1), dialect="chat", after=1).abandon()
    assert "summary-001.json" in visible(store, "s1")


def test_a_commit_whose_answer_is_lost_is_found_by_the_next_writer(store: Store) -> None:
    """An error while the state is created may hide a success: then the attempt's files must survive it."""

    class AnswerLost(Broken):
        def create(self, key: str, record: object) -> object:
            outcome = self._store.create(key, record)  # type: ignore[arg-type]
            if "state-" in key:
                raise ArchiveError("the answer was lost", key=key)
            return outcome

    archive = archive_on(cast("Store", AnswerLost(store)))
    with (
        pytest.raises(ArchiveError, match="the answer was lost"),
        archive.begin("s1", conversation(2), dialect="chat", after=0) as attempt,
    ):
        commit(attempt, mark=1)
    latest = archive.latest("s1")
    assert latest is not None
    assert latest.state == {"mark": 1}
    assert archive.restore("s1").messages == conversation(2)
    archive.begin("s1", conversation(1), dialect="chat", after=1).abandon()
    assert archive.verify() == []
    assert not hidden(store, "s1")


def test_lines_of_the_log_are_the_contract_form(store: Store) -> None:
    archive = archive_on(store)
    add_step(archive, "s1")
    for line in store.read_log("s1/events.jsonl").splitlines():
        assert list(json.loads(line)) == [
            "name", "session_id", "step", "trace_id", "span_id", "parent_id",
            "started_at", "ended_at", "status", "properties", "payload",
        ]  # fmt: skip


def test_whoever_watches_the_logs_is_told_what_is_new(store: Store, reopen: Callable[[], Store]) -> None:
    archive, logs = archive_on(store), LogWatcher(archive_on(reopen()))
    assert logs.look() == []
    add_step(archive, "s1")
    (news,) = logs.look()
    assert (news.session_id, news.first) == ("s1", 0)
    assert news.lines == archive.event_lines("s1")
    assert logs.look() == []
    started = recorder().event(Started(reason="manual", note="again"), session_id="s1", step=1)
    archive.append_events("s1", [started])
    (news,) = logs.look()
    assert [json.loads(line) for line in news.lines] == [started.to_json()]
    assert news.first == len(archive.event_lines("s1")) - 1
    assert archive.address()


def test_how_far_an_exporter_came_is_remembered(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    assert archive.cursor("s1", "ariadne") is None
    archive.set_cursor("s1", "ariadne", "a" * 16)
    archive.set_cursor("s1", "ariadne", "b" * 16)
    add_step(archive, "s1")
    again = archive_on(reopen())
    assert again.cursor("s1", "ariadne") == "b" * 16
    assert again.cursor("s1", "otlp") is None
    assert again.cursor("s2", "ariadne") is None
    again.prune(timedelta(0))
    assert again.cursor("s1", "ariadne") == "b" * 16
    assert again.verify() == []
    assert again.files("s1") == archive.files("s1"), "an agent does not see it"


def test_a_living_process_keeps_its_own_cursor(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_on(store)
    with monkeypatch.context() as patched:
        patched.setattr(keys, "this_process", lambda: keys.owner_of(os.getppid()))
        archive.set_cursor("s1", "ariadne", "a" * 16)
    assert archive.cursor("s1", "ariadne") is None, "that process sends the rest itself"
    with monkeypatch.context() as patched:
        patched.setattr(keys, "is_gone", lambda attempt: True)
        assert archive.cursor("s1", "ariadne") == "a" * 16


def test_pins_are_read_back_in_order_by_everybody(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    assert archive.pins("s1") == []
    entry = {"id": "e0123abcd", "kind": "rule", "text": f"Use {SECRET}.", "said_in": ""}
    archive.add_pin("s1", {"pin": entry})
    archive_on(reopen()).add_pin("s1", {"unpin": "e0123abcd"})
    first, second = archive_on(reopen()).pins("s1")
    assert first["pin"]["id"] == "e0123abcd"
    assert SECRET not in str(first)
    assert second == {"unpin": "e0123abcd"}
    assert archive_on(reopen()).verify() == []


def test_a_reset_takes_pins_back(store: Store, reopen: Callable[[], Store]) -> None:
    archive = archive_on(store)
    archive.forget_state("s1")
    assert archive.pins("s1") == []
    archive.add_pin("s1", {"unpin": "e0123abcd"})
    add_step(archive, "s1")
    archive.forget_state("s1")
    assert archive_on(reopen()).pins("s1")[-1] == {"reset": 1}
    assert archive.verify() == []


def test_the_ledger_is_that_of_the_newest_step_and_the_pins_since(
    store: Store, reopen: Callable[[], Store]
) -> None:
    archive = archive_on(store)
    assert archive.ledger("s1") == []
    rule, pinned = (
        Entry(id=entry_id("rule", text, place), kind="rule", text=text, said_in=place)
        for text, place in (("Be brief.", "m1"), ("Be kind.", ""))
    )
    with archive.begin("s1", conversation(1), dialect="chat", after=0) as attempt:
        attempt.commit(summary={}, state={"ledger": [to_json(rule)], "pins": 0})
    archive.add_pin("s1", {"pin": to_json(pinned)})
    assert archive_on(reopen()).ledger("s1") == [rule, pinned]
    archive.forget_state("s1")
    assert archive_on(reopen()).ledger("s1") == []
