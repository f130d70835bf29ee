"""The archive in an object store: encryption, lost answers, time limits, forks, a second server with signatures."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archive import (
    AWS,
    NoRedactor,
    add_step,
    archive_on,
    commit,
    conversation,
    make_bucket,
    moto_server,
    rclone_server,
    recorder,
    unsigned,
)
from support.s3 import Fault, Faults, faulty_server
from support.waiting import until

from compact.archive import MemoryStore, Record, Step, open_archive
from compact.archive.records import trust_stored
from compact.archive.stores.objects import ObjectStore, open_s3
from compact.errors import ArchiveError, ConfigError, MissingExtra

pytestmark = pytest.mark.usefixtures("aws")
_numbers = itertools.count(1)


@pytest.fixture
def bucket(moto: str) -> str:
    name = f"faulty-{next(_numbers)}"
    make_bucket(moto, name)
    return name


@pytest.fixture
def faults(moto: str) -> Iterator[Faults]:
    with faulty_server(moto) as found:
        yield found


@pytest.fixture
def opened(faults: Faults, bucket: str) -> Iterator[Callable[..., ObjectStore]]:
    stores: list[ObjectStore] = []

    def open_one(**options: float) -> ObjectStore:
        options = {"timeout_s": 3.0, "step_timeout_s": 5.0, **options}
        store = open_s3(bucket=bucket, endpoint_url=faults.address, retries=0, **options)  # type: ignore[arg-type]
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()


def record(text: str = "content") -> Record:
    return trust_stored(text.encode())


def test_keys_lie_under_the_prefix_and_carry_the_kms_key(moto: str, bucket: str) -> None:
    store = open_s3(
        bucket=bucket, prefix="team/archive", endpoint_url=moto, kms_key_id="arn:aws:kms:x:1:key/k"
    )
    archive = archive_on(store)
    add_step(archive, "s")
    keys = [blob.key for blob in store.blobs("s")]
    assert len(keys) == 6
    for key in keys:
        headers = unsigned(moto, f"/{bucket}/team/archive/{key}", "HEAD")
        assert headers["x-amz-server-side-encryption"] == "aws:kms"
        assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == "arn:aws:kms:x:1:key/k"
    assert store.address("s/state-001.json") == f"s3://{bucket}/team/archive/s/state-001.json"
    store.close()


def test_events_are_numbered_segments(moto: str, bucket: str) -> None:
    store = open_s3(bucket=bucket, endpoint_url=moto)
    for line in ("one\n", "two\n", "three\n"):
        store.append("s/events.jsonl", record(line))
    assert [blob.key for blob in store.blobs("s", "events/")] == [
        "s/events/00000001.jsonl",
        "s/events/00000002.jsonl",
        "s/events/00000003.jsonl",
    ]
    assert store.read_log("s/events.jsonl") == b"one\ntwo\nthree\n"
    store.close()


def test_a_large_transcript_goes_up_in_parts_and_is_still_exclusive(
    opened: Callable[..., ObjectStore], faults: Faults
) -> None:
    archive = archive_on(opened(step_timeout_s=30), redactor=NoRedactor())
    messages = [{"role": "user", "content": "x" * 12_000_000}]
    add_step(archive, "s", messages)
    assert sum("partNumber" in path for _, path in faults.seen) == 6, (
        "three parts of it, three of its readable form"
    )
    assert archive.restore("s").messages == messages
    with archive.begin("s", conversation(1), dialect="chat", after=0) as late:
        assert not isinstance(commit(late), Step)


@pytest.mark.parametrize(
    "part", ["state-001.json", ".attempt", "session.json", "transcript-pre-compact", "events/"]
)
def test_a_put_whose_answer_was_lost_counts_as_stored(
    opened: Callable[..., ObjectStore], faults: Faults, part: str
) -> None:
    faults.on("PUT", part, "lost", times=1)
    archive = archive_on(opened())
    step = add_step(archive, "s", mark=1)
    if part != "transcript-pre-compact":
        assert step.unfinished is None
    archive.begin("s", conversation(1), dialect="chat", after=1).abandon()
    assert archive.verify() == []
    assert archive.steps("s") == [1]
    assert len({e.span_id for e in archive.events("s")}) == len(archive.events("s")), "no event twice"


def test_a_lost_answer_does_not_turn_a_lost_race_into_a_won_one(
    opened: Callable[..., ObjectStore], faults: Faults
) -> None:
    one, two = archive_on(opened()), archive_on(opened())
    add_step(one, "s", who="one")
    with two.begin("s", conversation(1), dialect="chat", after=0) as attempt:
        faults.on("PUT", "state-001.json", "lost", times=1)
        with pytest.raises(ArchiveError):
            commit(attempt, who="two")
    latest = two.latest("s")
    assert latest is not None
    assert latest.state == {"who": "one"}


@pytest.mark.parametrize(
    ("part", "fault"),
    [("state-001.json", "hang"), ("state-001.json", "503"), ("-transcript", "403"), ("-summary", "hang")],
)
def test_a_step_that_the_store_does_not_confirm_did_not_happen(
    opened: Callable[..., ObjectStore], faults: Faults, unanswered: list[float], fault: Fault, part: str
) -> None:
    archive = archive_on(opened(step_timeout_s=1.2), redactor=NoRedactor())
    archive.append_events("s", [])
    faults.on("PUT", part, fault)
    with pytest.raises(ArchiveError) as caught:
        add_step(archive, "s")
    assert sum(unanswered) <= 1.2
    assert caught.value.hint
    faults.never()
    assert archive.steps("s") == []
    assert archive.latest("s") is None
    assert add_step(archive, "s").step == 1


def test_errors_say_what_to_check(opened: Callable[..., ObjectStore], faults: Faults) -> None:
    faults.always("403")
    with pytest.raises(ArchiveError, match=r"could not write s/x.*credentials") as caught:
        opened(step_timeout_s=10.0).create("s/x", record())
    assert caught.value.key == "s/x"
    assert "\n" not in caught.value.message
    faults.always("hang")
    store = opened(timeout_s=0.1, step_timeout_s=0.1)
    with pytest.raises(ArchiveError, match=r"no answer within 0\.1 s.*archive.timeout_s"):
        store.create("s/x", record())
    for read in (
        lambda: store.read("s/x"),
        lambda: store.blobs("s"),
        store.folders,
        lambda: store.delete(["s/x"]),
    ):
        with pytest.raises(ArchiveError, match=r"no answer within 0\.1 s"):
            read()


def test_a_bucket_that_does_not_exist_takes_nothing(moto: str) -> None:
    store = open_s3(bucket="no-such-bucket", endpoint_url=moto)
    for work in (
        lambda: store.create("s/x", record()),
        lambda: store.stage("s/.attempt-1-x", record()),
        lambda: store.replace("s/x", record()),
    ):
        with pytest.raises(ArchiveError, match="Check that the bucket exists"):
            work()
    for look in (lambda: store.append("s/events.jsonl", record()), lambda: store.blobs("s"), store.folders):
        with pytest.raises(ArchiveError, match="404 Not Found"):
            look()
    assert store.read("s/x") is None
    store.close()


def test_closing_ends_a_call_that_is_under_way(opened: Callable[..., ObjectStore], faults: Faults) -> None:
    store = opened(step_timeout_s=30.0)
    faults.always("hang")
    ended: list[str | None] = []

    def read() -> None:
        with pytest.raises(ArchiveError) as caught:
            store.read("s/x")
        ended.append(caught.value.reason)

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: bool(faults.seen))
    store.close()
    thread.join(5)
    assert ended == ["closed"]


def test_a_call_ends_within_its_limit_whatever_the_server_does(
    opened: Callable[..., ObjectStore], faults: Faults, unanswered: list[float]
) -> None:
    store = opened(timeout_s=0.5)
    faults.always("hang")
    with pytest.raises(ArchiveError):
        store.create("s/tool_outputs/x.txt", record())
    assert 0.3 < sum(unanswered) <= 0.5
    faults.always("slow")
    assert opened().create("s/tool_outputs/x.txt", record()) == "created"


def test_a_copy_whose_source_is_gone_is_fine_if_the_target_is_there(moto: str, bucket: str) -> None:
    store = open_s3(bucket=bucket, endpoint_url=moto)
    store.stage("s/.attempt-1-x", record("staged"))
    store.publish([("s/.attempt-1-x", "s/final")])
    store.publish([("s/.attempt-1-x", "s/final")])
    assert store.read("s/final") == b"staged"
    assert [blob.key for blob in store.blobs("s")] == ["s/final"]
    with pytest.raises(ArchiveError, match=r"neither s/\.attempt-2-x nor s/other is there"):
        store.publish([("s/.attempt-2-x", "s/other")])
    store.close()
    store.close()


def test_a_forked_child_gets_an_error_and_does_not_hang(moto: str, bucket: str) -> None:
    program = (
        "import os, sys\n"
        "from compact.archive.stores.objects import open_s3\n"
        "from compact.errors import ArchiveError\n"
        "store = open_s3(bucket=sys.argv[2], endpoint_url=sys.argv[1])\n"
        "store.blobs('s')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n"
        "        store.blobs('s')\n"
        "    except ArchiveError as problem:\n"
        "        os._exit(0 if problem.reason == 'forked' else 1)\n"
        "    os._exit(2)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, moto, bucket], timeout=20, check=False)
    assert done.returncode == 0


@pytest.mark.server
def test_a_server_with_signatures_takes_puts_and_refuses_wrong_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "bucket").mkdir(parents=True)
    with rclone_server(tmp_path / "data") as address:
        store = open_s3(bucket="bucket", prefix="deep/er", endpoint_url=address)
        archive = archive_on(store)
        add_step(archive, "s")
        add_step(archive, "s", conversation(3))
        archive.put_output("s", "text", tool_name="t", tool_call_id="c")
        assert archive.restore("s").messages == conversation(3)
        assert archive.verify() == []
        store.close()
        names = {path.name for path in (tmp_path / "data" / "bucket" / "deep" / "er" / "s").iterdir()}
        assert {"state-002.json", "transcript-pre-compact-002.jsonl", "tool_outputs"} <= names

        profile = tmp_path / "credentials"
        keys = (AWS["AWS_ACCESS_KEY_ID"], AWS["AWS_SECRET_ACCESS_KEY"])
        profile.write_text("[work]\naws_access_key_id={}\naws_secret_access_key={}\n".format(*keys))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
        monkeypatch.setenv("AWS_PROFILE", "work")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        by_profile = open_s3(bucket="bucket", prefix="deep/er", endpoint_url=address)
        assert archive_on(by_profile).restore("s").step == 2
        by_profile.close()

        monkeypatch.delenv("AWS_PROFILE")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        stranger = open_s3(bucket="bucket", endpoint_url=address, retries=0)
        with pytest.raises(ArchiveError, match="credentials"):
            stranger.create("s/x", record())
        stranger.close()


def test_a_profile_that_does_not_exist_is_a_config_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="AWS_PROFILE cannot be used"):
        open_s3(bucket="b")


@pytest.mark.server
def test_of_many_puts_of_a_new_key_the_server_takes_one() -> None:
    """What the tests of races rely on: the server itself is as strict as S3 is."""
    with moto_server("0.000001") as address:
        make_bucket(address, "strict")
        store = open_s3(bucket="strict", endpoint_url=address)
        gate = threading.Barrier(4)
        outcomes: list[tuple[int, str]] = []

        def put(worker: int) -> None:
            for number in range(80):
                gate.wait(20)
                outcomes.append((number, store.create(f"s/{number}", record(f"of {worker}"))))

        workers = [threading.Thread(target=put, args=(n,)) for n in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        store.close()
    assert sorted(number for number, outcome in outcomes if outcome == "created") == list(range(80))


def test_the_settings_choose_the_adapter(tmp_path: Path, moto: str, bucket: str) -> None:
    parts = (NoRedactor(), recorder())
    assert open_archive(*parts, root=tmp_path / "a").adapter == "fs"
    assert open_archive(*parts, adapter="memory").adapter == "memory"
    archive = open_archive(
        *parts, adapter="s3", bucket=bucket, prefix="p", endpoint_url=moto, spool_root=tmp_path / "spool"
    )
    add_step(archive, "s")
    (event, *_) = archive.events("s")
    assert archive.adapter == "s3"
    assert event.to_json()["properties"]["file_path"].startswith(f"s3://{bucket}/p/s/")
    archive.close()
    with pytest.raises(ConfigError, match=r"archive.bucket must be set"):
        open_archive(*parts, adapter="s3")
    with pytest.raises(
        ConfigError, match=r"archive\.adapter must be one of fs, s3, object_store, memory, got 'tape'"
    ):
        open_archive(*parts, adapter="tape")


def test_a_missing_extra_says_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtra, match=r"pip install 'compact-context\[s3\]'"):
        open_s3(bucket="b")


def test_the_object_store_is_imported_only_when_it_is_used() -> None:
    program = "import sys, compact.archive; sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, env=os.environ).returncode == 0
    assert MemoryStore().adapter == "memory"
