"""The chain of a log: what a killed writer leaves is legal, everything else is noticed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archive import NoRedactor, add_step, archive_on, fs_archive, make_bucket, recorder
from support.s3 import Faults, faulty_server

from compact.archive import Archive, Defect, keys, open_archive
from compact.archive.records import trust_stored
from compact.archive.stores.files import FsStore
from compact.archive.stores.objects import open_s3
from compact.errors import ArchiveError
from compact.events import Event, Started
from compact.redaction import Redactor

LOG = "s/events.jsonl"


def started(note: str) -> Event:
    return recorder().event(Started(reason="manual", note=note), session_id="s", step=0)


def problems(archive: Archive) -> list[tuple[str, str]]:
    return [(found.key, found.code) for found in archive.verify()]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = fs_archive(tmp_path, redactor=NoRedactor())
    for note in ("one", "two", "three"):
        made.append_events("s", [started(note), started(f"{note} again")])
    assert made.verify() == []
    return made


def rewrite(log: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    log.write_bytes(b"".join(change(log.read_bytes().splitlines(keepends=True))))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [],
        lambda lines: lines[:-1],
        lambda lines: lines[:-2],
        lambda lines: lines[1:],
        lambda lines: lines[::-1],
        lambda lines: [*lines, lines[0]],
        lambda lines: [lines[0].replace(b"one", b"won"), *lines[1:]],
        lambda lines: [*lines[:2], *lines[4:]],
    ],
    ids=["emptied", "cut", "batch cut", "head cut", "reversed", "appended", "edited", "spliced"],
)
def test_a_changed_log_is_reported_and_stays_so(
    archive: Archive, tmp_path: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    rewrite(tmp_path / LOG, change)
    assert (LOG, "changed") in problems(archive)
    fs_archive(tmp_path, redactor=NoRedactor()).append_events("s", [started("later")])
    assert (LOG, "changed") in problems(archive), "the next writer does not cover it up"
    assert archive.events("s")[-1].properties == started("later").properties


@pytest.mark.parametrize("name", ["seals-events.jsonl", "events.jsonl"])
def test_a_log_without_its_seals_is_reported_and_so_are_seals_without_their_log(
    archive: Archive, tmp_path: Path, name: str
) -> None:
    (tmp_path / "s" / name).unlink()
    assert {key for key, _ in problems(archive)} == {LOG}


def test_the_log_of_another_session_does_not_pass_for_its_own(archive: Archive, tmp_path: Path) -> None:
    archive.append_events("t", [started("of t")])
    for name in ("events.jsonl", "seals-events.jsonl"):
        (tmp_path / "t" / name).write_bytes((tmp_path / "s" / name).read_bytes())
    assert ("t/events.jsonl", "changed") in problems(archive)


def test_a_state_knows_how_far_the_logs_went(archive: Archive, tmp_path: Path) -> None:
    """So that an older log with its own seals, which fit each other, is noticed."""
    older = {name: (tmp_path / "s" / name).read_bytes() for name in ("events.jsonl", "seals-events.jsonl")}
    archive.append_events("s", [started("four")])
    add_step(archive, "s")
    for name, data in older.items():
        (tmp_path / "s" / name).write_bytes(data)
    found = archive.verify()
    assert [(each.key, each.message) for each in found] == [(LOG, "it is not the log that step 1 has seen")]


@pytest.mark.parametrize("written", [0, 1, 60, 10**6])
@pytest.mark.parametrize("announced", [1.0, 0.5, 0.0])
def test_a_killed_writer_leaves_a_log_that_verifies_and_goes_on(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int, announced: float
) -> None:
    """Killed while it announced the append, or after so many bytes of it."""
    real, calls = os.write, 0

    class Killed(BaseException):
        pass

    def write(file: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1 and announced < 1:
            real(file, bytes(data)[: int(len(data) * announced)])
            raise Killed
        if calls == 2:
            real(file, bytes(data)[:written])
            raise Killed
        return real(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        patch.setattr(os, "ftruncate", lambda *_: None)
        with pytest.raises(Killed):
            archive.append_events("s", [started("killed"), started("killed too")])
    assert archive.verify() == []
    archive.append_events("s", [started("next")])
    assert archive.verify() == []
    notes = [event.properties.note for event in archive.events("s") if isinstance(event.properties, Started)]
    assert notes[:6] == ["one", "one again", "two", "two again", "three", "three again"]
    assert notes[-1] == "next"


def test_a_log_of_an_earlier_version_is_unchained_and_not_damaged(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path, redactor=NoRedactor())
    archive.append_events("s", [started("one")])
    archive.put_output("s", "an output", tool_name="t", tool_call_id="c")
    folder = tmp_path / "s"
    for name in ("seals-events.jsonl", "seals-outputs.jsonl", "outputs.jsonl"):
        (folder / name).unlink()
    (folder / "session.json").write_text('{"format":1,"session_id":"s"}\n')
    reopened = fs_archive(tmp_path, redactor=NoRedactor())
    assert reopened.verify() == []
    assert reopened.unchained() == ["s"]
    reopened.append_events("s", [started("two")])
    assert reopened.put_output("s", "an output", tool_name="t", tool_call_id="d").new is False
    add_step(reopened, "s")
    assert reopened.verify() == []
    rewrite(folder / "events.jsonl", lambda lines: [*lines[:2], *lines[3:]])
    assert (LOG, "changed") in problems(reopened), "what came since is chained"


# --- an object store


@pytest.fixture
def bucket(moto: str, aws: None, request: pytest.FixtureRequest) -> str:
    name = f"chain-{abs(hash(request.node.name)) % 10**9}"
    make_bucket(moto, name)
    return name


@pytest.fixture
def faults(moto: str) -> Iterator[Faults]:
    with faulty_server(moto) as found:
        yield found


@pytest.mark.server
def test_segments_are_chained(moto: str, bucket: str) -> None:
    stores = [open_s3(bucket=bucket, endpoint_url=moto) for _ in range(2)]
    one, other = (archive_on(store, redactor=NoRedactor()) for store in stores)
    for note in ("one", "two"):
        one.append_events("s", [started(note)])
        other.append_events("s", [started(f"{note} of the other")])
    add_step(one, "s")
    stores[0].close()
    store = open_s3(bucket=bucket, endpoint_url=moto)
    archive = archive_on(store, redactor=NoRedactor())
    assert archive.verify() == []
    kept = {blob.key: store.read(blob.key) or b"" for blob in store.blobs("s", "events/")}
    second, last = sorted(kept)[1], sorted(kept)[-1]

    def found_after(change: Callable[[], None]) -> set[str]:
        change()
        return {each.key for each in archive.verify()}

    assert found_after(lambda: store.delete([last])) == {LOG}, "its head was written when it was closed"
    assert found_after(lambda: store.replace(second, trust_stored(kept[last]))) == {LOG}
    assert found_after(lambda: store.delete(kept)) == {LOG}
    for each in (stores[1], store):
        each.close()


@pytest.mark.server
def test_a_bucket_that_writes_over_objects_is_refused_at_open(
    faults: Faults, bucket: str, tmp_path: Path
) -> None:
    settings = {"adapter": "s3", "bucket": bucket, "endpoint_url": faults.address, "spool_root": tmp_path}
    faults.ignored = frozenset({"if-none-match"})
    with pytest.raises(ArchiveError, match="does not honour If-None-Match") as caught:
        open_archive(Redactor(), recorder(), **settings, prefix="writer")  # type: ignore[arg-type]
    assert caught.value.reason == "unconditional"
    assert "conditional writes" in str(caught.value)
    faults.seen.clear()
    open_archive(Redactor(), recorder(), writes=False, **settings, prefix="reader").close()  # type: ignore[arg-type]
    assert not any(method == "PUT" for method, _ in faults.seen), "a reader writes nothing"

    faults.ignored = frozenset()
    for _ in range(2):
        archive = open_archive(Redactor(), recorder(), **settings, prefix="good")  # type: ignore[arg-type]
        archive.close()
    probes = [path for method, path in faults.seen if method == "PUT" and keys.PROBES in path]
    assert len(probes) == 2, "once in a process"
    assert archive.store.remote.folders() == [] if hasattr(archive.store, "remote") else True


@pytest.mark.server
def test_a_bucket_that_is_away_at_open_is_asked_before_the_first_record(
    faults: Faults, bucket: str, tmp_path: Path
) -> None:
    settings = {"adapter": "s3", "bucket": bucket, "endpoint_url": faults.address, "spool_root": tmp_path}
    faults.always("503")
    archive = open_archive(Redactor(), recorder(), **settings, prefix="away", retries=0)  # type: ignore[arg-type]
    faults.never()
    faults.ignored = frozenset({"if-none-match"})
    with pytest.raises(ArchiveError, match="does not honour If-None-Match"):
        archive.store.create("s/state-001.json", trust_stored(b"{}\n"))
    assert not any("state-001" in path for _, path in faults.seen)
    archive.close()


def test_defects_name_the_session_and_the_file(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(b"")
    (defect,) = archive.verify("s")
    assert defect == Defect("s", LOG, "changed", defect.message)
    assert json.dumps(defect.message)


def test_the_root_of_a_copy_may_lie_elsewhere(archive: Archive, tmp_path: Path) -> None:
    add_step(archive, "s")
    archive.put_output("s", "an output", tool_name="t", tool_call_id="c")
    (tmp_path / "s").rename(tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moved").rename(tmp_path / "elsewhere" / "s")
    moved = fs_archive(tmp_path / "elsewhere")
    assert moved.verify() == []
    assert FsStore(tmp_path / "elsewhere").check_log(LOG).is_chained
