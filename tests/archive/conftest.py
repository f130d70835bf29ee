from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.archive import make_bucket

from compact.archive import MemoryStore, Store
from compact.archive.stores.files import FsStore
from compact.archive.stores.loop_thread import LoopThread
from compact.archive.stores.objects import open_s3
from compact.archive.stores.spool import SpooledStore

_numbers = itertools.count(1)


@pytest.fixture(params=["fs", "memory", pytest.param("s3", marks=pytest.mark.server)])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same store again and again, as several processes would."""
    opened: list[Store] = []
    memory = MemoryStore()
    bucket = f"bucket-{next(_numbers)}"
    if request.param == "s3":
        request.getfixturevalue("aws")
        make_bucket(request.getfixturevalue("moto"), bucket)

    def open_one() -> Store:
        store: Store
        if request.param == "fs":
            store = FsStore(tmp_path / "archive")
        elif request.param == "memory":
            store = memory
        else:
            remote = open_s3(bucket=bucket, prefix="some/where", endpoint_url=request.getfixturevalue("moto"))
            store = SpooledStore(remote, tmp_path / "spool")
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Callable[[], Store]) -> Store:
    return reopen()


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long, in seconds, the test's own thread waited for each request that got no answer."""
    waits: list[float] = []
    run = LoopThread.run

    def recording(self: LoopThread, work: Any, limit_s: float) -> Any:
        try:
            return run(self, work, limit_s)
        except TimeoutError:
            if threading.current_thread() is threading.main_thread():
                waits.append(limit_s)
            raise

    monkeypatch.setattr(LoopThread, "run", recording)
    return waits
