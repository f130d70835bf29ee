"""Many workers on one archive: what the compare-and-set of a step costs, on a disk and on an object store."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import Figure
from compact.archive import Archive, Step, Store
from compact.archive.stores.files import FsStore
from compact.archive.stores.objects import open_s3
from compact.archive.stores.spool import SpooledStore
from compact.errors import MissingExtra
from compact.events import Ids, Recorder
from compact.redaction import Redactor

WORKERS = (1, 2, 4, 8)
STEPS = 24
"""Steps for all workers together, so that every row does the same work."""
_MESSAGES = [{"role": "user", "content": f"message {n} of a session"} for n in range(20)]
_BUCKET = "bench"
_SERVER = Path(__file__).resolve().parents[1] / "tests" / "support" / "moto_server.py"
"""By itself, moto occasionally lets two workers win the same step."""
_KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True, slots=True)
class Place:
    """The location of the archive, so that another process can open it."""

    folder: str
    endpoint: str | None = None

    def open(self, name: str) -> Archive:
        """The archive, for one worker."""
        store: Store = FsStore(Path(self.folder) / "archive")
        if self.endpoint:
            os.environ |= _KEYS
            remote = open_s3(bucket=_BUCKET, prefix=Path(self.folder).name, endpoint_url=self.endpoint)
            store = SpooledStore(remote, Path(self.folder) / f"spool-{name}")
        return Archive(store, Redactor.disabled(), Recorder(lambda: datetime.now(UTC), Ids(name)))


def bench_workers_on_disk() -> Iterator[Figure]:
    """Processes that commit steps to one session, or each to its own, on a filesystem."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _table(lambda name: Place(f"{folder}/{name}"))


def bench_workers_on_s3() -> Iterator[Figure]:
    """The same on an object store (moto, a server in one Python process, so its speed is not that of S3)."""
    with _moto() as endpoint, tempfile.TemporaryDirectory() as folder:
        yield from _table(lambda name: Place(f"{folder}/{name}", endpoint))


def _table(place: Callable[[str], Place]) -> Iterator[Figure]:
    for shared in (True, False):
        for workers in WORKERS:
            where = place(f"{'one' if shared else 'own'}-{workers}")
            won, lost, seconds = _run(where, workers, shared)
            wrong = _wrong(where, won, shared)
            what = "one session" if shared else "own sessions"
            about = f"{workers} workers, {what}: {STEPS / seconds:.1f} steps/s, {lost / STEPS:.2f} lost races a step"
            yield Figure(f"{about}; gaps or overwritten", wrong, "", 0)


def _run(where: Place, workers: int, shared: bool) -> tuple[dict[str, list[int]], int, float]:
    context = multiprocessing.get_context("spawn")
    gate, answers = context.Event(), context.Queue()
    ready = context.Semaphore(0)
    made = [
        context.Process(target=_commit, args=(where, n, shared, STEPS // workers, ready, gate, answers))
        for n in range(workers)
    ]
    for process in made:
        process.start()
    for _ in made:
        ready.acquire()
    began = time.monotonic()
    gate.set()
    found = [answers.get(timeout=600) for _ in made]
    seconds = time.monotonic() - began
    for process in made:
        process.join()
    return {name: won for name, won, _ in found}, sum(lost for _, _, lost in found), seconds


def _commit(
    where: Place, number: int, shared: bool, wanted: int, ready: object, gate: object, answers: object
) -> None:
    """One worker: take the newest step, work on it, and try to commit the next one."""
    name = f"worker-{number}"
    archive = where.open(name)
    session = "shared" if shared else name
    ready.release()  # type: ignore[attr-defined]
    gate.wait()  # type: ignore[attr-defined]
    won: list[int] = []
    lost = 0
    while len(won) < wanted:
        latest = archive.latest(session)
        after = latest.step if latest else 0
        with archive.begin(session, _MESSAGES, dialect="chat", after=after) as attempt:
            done = attempt.commit(summary={"text": "so far"}, state={"worker": name})
        if isinstance(done, Step):
            won.append(done.step)
        else:
            lost += 1
    archive.close()
    answers.put((name, won, lost))  # type: ignore[attr-defined]


def _wrong(where: Place, won: dict[str, list[int]], shared: bool) -> int:
    """Steps that are missing, that two workers won, or that hold another worker's state."""
    archive = where.open("reader")
    sessions = {"shared": won} if shared else {name: {name: steps} for name, steps in won.items()}
    wrong = 0
    for session, owners in sessions.items():
        owned = [(step, name) for name, steps in owners.items() for step in steps]
        wrong += sorted(step for step, _ in owned) != list(range(1, len(owned) + 1))
        wrong += sum(archive.step(session, step).state["worker"] != name for step, name in owned)
        wrong += len(archive.verify(session))
    archive.close()
    return wrong


@contextmanager
def _moto() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        import moto  # noqa: F401
    except ModuleNotFoundError as problem:
        raise MissingExtra("moto[server] is not installed", hint="make setup", extra="test") from problem
    server = subprocess.Popen(
        [sys.executable, str(_SERVER), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with suppress(OSError):
                urllib.request.urlopen(
                    urllib.request.Request(f"{address}/{_BUCKET}", method="PUT"), timeout=30
                )
                break
            time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()
