"""`manager.reset`: the next call starts from the host's list as it is given, and the archive keeps everything."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support.engine import pair, says, user

from compact import CompactManager
from compact.archive import Archive
from compact.testing import CapturingExporter, ScriptedSummarizer


def session(turns: int = 40) -> list[Any]:
    found = [user("Read the reports, and never change their units.")]
    for n in range(turns):
        found += pair(f"c{n}", f"report {n}: " + f"row {n} has value {n}. " * 60)
    return [*found, says("Read."), user("What now?")]


def a_manager(root: Path, **more: Any) -> CompactManager:
    return CompactManager(model="gpt-4o", max_context_tokens=16_000, archive={"root": str(root)}, **more)


def reset(manager: CompactManager, session_id: str, way: str) -> None:
    if way == "sync":
        manager.reset(session_id)
    else:
        asyncio.run(manager.areset(session_id))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("where", ["here", "another process"])
def test_after_a_reset_the_list_is_taken_as_it_is(tmp_path: Path, way: str, where: str) -> None:
    items = session()
    with a_manager(tmp_path) as manager:
        shorter = manager.preflight("s", items)
        assert shorter != items
        before = manager.archive.restore("s")
        reset(manager, "s", way)
        assert manager.archive.steps("s") == [1]
        assert manager.archive.restore("s") == before
        assert manager.archive.verify("s") == []
        fresh = [user("A new task."), says("Yes?"), user("Begin.")]
        if where == "here":
            assert manager.preflight("s", fresh) is fresh
    seen = CapturingExporter()
    with a_manager(tmp_path, exporters=[seen]) as manager:
        small = items[:5]
        assert manager.preflight("s", small) is small
        assert seen.named("warning") == [], "nothing was edited: the session begins anew"
        again = manager.preflight("s", items)
        assert manager.archive.steps("s") == [1, 2], (
            "the list is compacted again instead of taking the old step"
        )
        assert again != items
        assert manager.preflight("s", items) == again
    with a_manager(tmp_path) as manager:
        assert manager.preflight("s", items) == again, "what came after the reset stands"
        assert manager.archive.verify() == []


def test_a_reset_forgets_pointers_but_not_files(tmp_path: Path) -> None:
    with a_manager(tmp_path) as manager:
        items = session()
        manager.preflight("s", items)
        files = len(manager.archive.files("s"))
        manager.reset("s")
        manager.reset("s")
        assert len(manager.archive.files("s")) == files > 0
        assert "report 3" in manager.recall_tools("s")["grep"](pattern="report 3")


def test_a_session_that_never_made_a_step_can_be_reset(tmp_path: Path) -> None:
    with a_manager(tmp_path) as manager:
        items = session(2)
        manager.reset("s")
        assert manager.preflight("s", items) is items
        manager.reset("s")
        assert manager.preflight("s", items) is items
        assert manager.archive.steps("s") == []


def test_a_reset_waits_for_the_pass_that_is_under_way(tmp_path: Path) -> None:
    """The step of a pass that began before the reset is forgotten with the others."""
    asked, go_on = threading.Event(), threading.Event()

    def summarize(request: Any) -> str:
        asked.set()
        assert go_on.wait(20)
        return str(ScriptedSummarizer()(request))

    items = session()
    with a_manager(tmp_path, summarizer=summarize) as manager:
        worker = threading.Thread(target=manager.manual_compact, args=("s", items))
        worker.start()
        assert asked.wait(20)
        resetting = threading.Thread(target=manager.reset, args=("s",))
        resetting.start()
        go_on.set()
        worker.join(20)
        resetting.join(20)
        assert manager.archive.steps("s") == [1]
        small = items[:5]
        assert manager.preflight("s", small) is small


def test_a_host_that_gives_an_id_begins_anew_under_the_same_name(tmp_path: Path) -> None:
    with a_manager(tmp_path) as manager:
        names = manager.resolver
        assert names.resolve([user("one")], given="t") == "t"
        assert names.resolve([user("another")], given="t") == "t.2"
        manager.reset("t")
        assert names.resolve([user("a new list")], given="t") == "t"


def test_an_archive_that_fails_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compact.errors import ArchiveError

    items = session()
    with a_manager(tmp_path) as manager:
        shorter = manager.preflight("s", items)

        def fail(self: Archive, session_id: str) -> int:
            raise ArchiveError("no space left")

        monkeypatch.setattr(Archive, "forget_state", fail)
        with pytest.raises(ArchiveError, match="no space"):
            manager.reset("s")
        assert manager.preflight("s", items) == shorter
