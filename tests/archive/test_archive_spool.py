"""The local spool: an outage of the object store costs an agent one short wait and no record."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archive import NoRedactor, add_step, archive_on, dead_attempt, make_bucket, recorder
from support.s3 import Fault, Faults, faulty_server
from support.waiting import until

from compact.archive import Archive
from compact.archive.recall import SearchIndex, recall_tools
from compact.archive.records import trust_stored
from compact.archive.stores.objects import open_s3
from compact.archive.stores.spool import SpooledStore
from compact.errors import ArchiveError
from compact.events import Event, Started, Warned

pytestmark = pytest.mark.usefixtures("aws")
_numbers = itertools.count(1)


@pytest.fixture
def faults(moto: str) -> Iterator[Faults]:
    with faulty_server(moto) as found:
        yield found


@pytest.fixture
def spooled(faults: Faults, moto: str, tmp_path: Path) -> Iterator[Callable[..., SpooledStore]]:
    """Stores on one bucket with one spool, as several processes would have; `retry_s` long enough to look around."""
    bucket = f"spool-{next(_numbers)}"
    make_bucket(moto, bucket)
    opened: list[SpooledStore] = []

    def open_one(retry_s: float = 60.0) -> SpooledStore:
        remote = open_s3(
            bucket=bucket, endpoint_url=faults.address, timeout_s=1.0, step_timeout_s=2.0, retries=0
        )
        opened.append(SpooledStore(remote, tmp_path / "spool", retry_s=retry_s, close_s=0.5))
        return opened[-1]

    yield open_one
    faults.never()
    for store in opened:
        store.close()


def quiet(store: SpooledStore) -> Archive:
    return archive_on(store, redactor=NoRedactor())


def started(note: str) -> Event:
    return recorder().event(Started(reason="manual", note=note), session_id="s", step=0)


def notes(archive: Archive) -> list[str | None]:
    return [e.properties.note for e in archive.events("s") if isinstance(e.properties, Started)]


def codes(archive: Archive) -> list[str]:
    return [e.properties.code for e in archive.events("s") if isinstance(e.properties, Warned)]


@pytest.mark.parametrize("fault", ["403", "503", "hang"])
def test_an_outage_costs_one_wait_and_no_record(
    spooled: Callable[..., SpooledStore], faults: Faults, unanswered: list[float], fault: Fault
) -> None:
    store = spooled()
    archive = quiet(store)
    faults.always(fault)
    outputs = [archive.put_output("s", f"text {n}", tool_name="t", tool_call_id=str(n)) for n in range(5)]
    archive.append_events("s", [started("a"), started("b")])
    assert sum(unanswered) <= 1.0, "the limit, once"
    assert [archive.read_text("s", output.path) for output in outputs] == [f"text {n}" for n in range(5)]

    faults.never()
    assert store.drain()
    assert store.waiting() == []
    fresh = quiet(spooled())
    assert len(fresh.files("s")) == 5
    assert fresh.read_text("s", outputs[3].path) == "text 3"
    assert notes(fresh) == ["a", "b"]
    assert codes(fresh) == ["spooled"], "one warning for one outage"
    assert fresh.verify() == []


def test_a_step_is_never_spooled(spooled: Callable[..., SpooledStore], faults: Faults) -> None:
    store = spooled()
    archive = quiet(store)
    archive.append_events("s", [started("before")])
    faults.always("503")
    with pytest.raises(ArchiveError):
        add_step(archive, "s")
    assert store.waiting() == []
    faults.never()
    assert add_step(archive, "s").step == 1


def test_the_background_sends_what_waits_without_being_asked(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    store = spooled(retry_s=0.05)
    archive = quiet(store)
    faults.always("503")
    archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    assert store.waiting()
    faults.never()
    until(lambda: not store.waiting())
    assert [info.path for info in quiet(spooled()).files("s")] != []


def test_another_process_sends_what_a_dead_one_left(
    spooled: Callable[..., SpooledStore], faults: Faults, tmp_path: Path
) -> None:
    store = spooled()
    archive = quiet(store)
    faults.always("503")
    output = archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    (place,) = (tmp_path / "spool").iterdir()
    (place / "s" / f".tmp-{dead_attempt()}").write_text("half")
    faults.never()
    later = spooled(retry_s=0.05)
    until(lambda: not later.waiting())
    assert not (place / "s" / f".tmp-{dead_attempt()}").exists()
    assert quiet(later).read_text("s", output.path) == "text"


def test_an_event_whose_answer_was_lost_is_not_sent_twice(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    store = spooled()
    archive = quiet(store)
    archive.append_events("s", [started("first")])
    gone_dark = False

    def choose(method: str, path: str) -> Fault | None:
        nonlocal gone_dark
        if gone_dark:
            return "hang"
        if method == "PUT" and "events/00000002" in path:
            gone_dark = True  # stored, and from now on the server says nothing at all
            return "lost"
        return None

    faults.chosen = choose
    archive.append_events("s", [started("second")])
    assert "s/events/00000002.jsonl" in store.waiting()
    faults.never()
    assert store.drain()
    assert notes(quiet(spooled())) == ["first", "second"]


def test_a_segment_number_that_somebody_took_meanwhile_is_no_obstacle(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    store = spooled()
    archive = quiet(store)
    archive.append_events("s", [started("first")])
    faults.always("503")
    archive.append_events("s", [started("mine")])
    faults.never()
    quiet(spooled()).append_events("s", [started("theirs")])
    store.drain()
    until(lambda: not store.waiting())  # the other store drains the same spool
    assert sorted(map(str, notes(quiet(spooled())))) == ["first", "mine", "theirs"]


def test_what_waits_is_seen_by_readers(spooled: Callable[..., SpooledStore], faults: Faults) -> None:
    store = spooled()
    archive = quiet(store)
    faults.on("PUT", "", "503")
    output = archive.put_output("s", "text", tool_name="t", tool_call_id="c")
    archive.append_events("s", [started("a")])
    assert notes(archive) == ["a"]
    assert store.folders() == ["s"]
    assert f"s{output.path}" in [blob.key for blob in store.blobs("s")]
    with pytest.raises(ArchiveError, match="has just failed"):
        store.blobs("s", "tool_outputs/")
    store.delete([f"s{output.path}"])
    assert store.read(f"s{output.path}") is None


def test_only_one_process_drains_at_a_time(spooled: Callable[..., SpooledStore], faults: Faults) -> None:
    store, other = spooled(), spooled()
    faults.always("503")
    quiet(store).append_events("s", [started("a")])
    faults.never()
    with store.drain_lock() as is_ours:
        assert is_ours
        assert other.drain() is False
    assert other.drain()
    assert notes(quiet(other)) == ["a"]


def test_closing_does_not_wait_for_a_store_that_is_away(
    spooled: Callable[..., SpooledStore], faults: Faults, unanswered: list[float]
) -> None:
    store = spooled()
    faults.always("hang")
    quiet(store).append_events("s", [started("a")])
    unanswered.clear()
    store.close()
    assert unanswered == []
    assert store.waiting()


def test_closing_sends_what_is_left_if_the_store_is_back(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    store = spooled(retry_s=0.0)
    faults.always("503")
    quiet(store).append_events("s", [started("a")])
    faults.never()
    store.close()
    assert store.waiting() == []


def test_when_the_local_disk_fails_too_the_caller_is_told(
    spooled: Callable[..., SpooledStore], faults: Faults, tmp_path: Path
) -> None:
    archive = quiet(spooled())
    faults.always("503")
    (tmp_path / "spool").write_text("a file where the spool should be")
    with pytest.raises(ArchiveError, match="ENOTDIR"):
        archive.put_output("s", "text", tool_name="t", tool_call_id="c")


def test_archives_that_share_a_spool_root_do_not_mix(tmp_path: Path, moto: str) -> None:
    one = SpooledStore(open_s3(bucket="one", endpoint_url=moto), tmp_path)
    two = SpooledStore(open_s3(bucket="two", endpoint_url=moto), tmp_path)
    assert one.local.root != two.local.root
    one.close()
    two.close()


def test_a_record_that_cannot_be_delivered_stays_readable_and_stops_no_other(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    """Other bytes hold its name in the store."""
    store = spooled()
    other = trust_stored(b"other bytes")
    store.remote.create("s/tool_outputs/t_1_000000000000.txt", other)
    faults.always("503")
    mine = trust_stored(b"mine")
    assert store.create("s/tool_outputs/t_1_000000000000.txt", mine) == "spooled"
    assert store.create("s/tool_outputs/t_1_000000000000.txt", mine) == "spooled"
    assert store.create("s/tool_outputs/t_1_000000000000.txt", other) == "taken"
    assert store.create("s/tool_outputs/t_2_000000000000.txt", mine) == "spooled"
    faults.never()
    assert store.drain() is False
    assert store.waiting() == ["s/tool_outputs/t_1_000000000000.txt"]
    assert store.read("s/tool_outputs/t_1_000000000000.txt") == b"mine"
    assert store.remote.read("s/tool_outputs/t_2_000000000000.txt") == b"mine"


def test_draining_stops_when_its_time_is_up_or_the_store_fails_again(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    store = spooled()
    assert store.drain() is False, "nothing was ever spooled"
    faults.always("503")
    quiet(store).append_events("s", [started("a")])
    assert store.drain(limit_s=-1.0) is False
    assert store.drain() is False
    assert store.waiting()


# --- reading, and the longest wait, while the store says nothing


def test_an_agent_reads_what_waits_while_the_store_is_away(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    store = spooled()
    archive = quiet(store)
    sent = archive.put_output("s", "sent before", tool_name="t", tool_call_id="a")
    faults.always("503")
    kept = archive.put_output("s", "the zebra waits", tool_name="t", tool_call_id="b")
    tools = recall_tools(archive, "s")
    assert "the zebra waits" in tools["read_file"](path=kept.path)
    for answer in (tools["ls"](), tools["grep"](pattern="zebra"), tools["search"](query="zebra")):
        assert kept.path in answer
        assert "only 1 file on this machine can be read now" in answer
    assert [info.path for info in archive.files("s")] == [kept.path]
    assert "cannot be read now" in tools["read_file"](path=sent.path)
    faults.never()
    assert store.drain()
    assert [info.path for info in archive.files("s")] == sorted([sent.path, kept.path])
    assert "this machine" not in tools["ls"]()
    assert sent.path in tools["search"](query="before")


def test_the_index_of_the_whole_session_outlives_an_outage(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    archive = quiet(spooled(retry_s=0.0))
    archive.put_output("s", "the horse", tool_name="t", tool_call_id="a")
    index = SearchIndex(archive, "s")
    assert len(index.search("horse")) == 1
    faults.always("503")
    assert index.search("horse") == []
    faults.never()
    del faults.seen[:]
    assert len(index.search("horse")) == 1
    assert len([path for method, path in faults.seen if method == "GET" and "tool_outputs/t_a" in path]) == 1


def test_the_first_listing_that_gets_no_answer_is_the_last_for_a_while(
    spooled: Callable[..., SpooledStore], faults: Faults, unanswered: list[float]
) -> None:
    archive = quiet(spooled())
    faults.always("hang")
    listings = [archive.listing("s") for _ in range(5)]
    assert len(unanswered) == 1
    assert sum(unanswered) <= 1.0
    assert all(listing.problem and not listing.files for listing in listings)


def test_an_output_waits_for_one_limit_in_all(
    spooled: Callable[..., SpooledStore], faults: Faults, unanswered: list[float]
) -> None:
    """Not once for the list of what is there and once more for the output."""
    archive = quiet(spooled(retry_s=0.0))
    archive.append_events("s", [started("a")])
    faults.always("hang")
    for number in range(2):
        unanswered.clear()
        archive.put_output("s", f"text {number}", tool_name="t", tool_call_id="c")
        assert 0 < sum(unanswered) <= 1.0
    unanswered.clear()
    quiet(spooled(retry_s=0.0)).append_events("other", [started("b")])
    assert 0 < sum(unanswered) <= 1.0, "the session's own record, the listing and the segment"


def test_a_step_waits_for_one_limit_in_all(
    spooled: Callable[..., SpooledStore], faults: Faults, unanswered: list[float]
) -> None:
    """From begin to the end of commit and the cleaning up; what the caller does in between does not count."""
    archive = quiet(spooled())
    archive.append_events("s", [started("a")])
    faults.on("PUT", "attempt", "hang")
    with pytest.raises(ArchiveError, match="no answer"):
        archive.begin("s", [], dialect="chat", after=0)
    assert 0 < sum(unanswered) <= 2.0

    faults.never()
    unanswered.clear()
    with archive.begin("s", [], dialect="chat", after=0) as attempt:
        faults.always("hang")
        with pytest.raises(ArchiveError, match="no answer"):
            attempt.commit(summary={}, state={})
    assert 0 < sum(unanswered) <= 2.0


def test_a_pause_between_begin_and_commit_uses_up_no_limit(
    spooled: Callable[..., SpooledStore], faults: Faults
) -> None:
    archive = quiet(spooled())
    with archive.begin("s", [], dialect="chat", after=0) as attempt:
        time.sleep(2.1)
        attempt.commit(summary={}, state={})
    assert archive.steps("s") == [1]
