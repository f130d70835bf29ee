"""What readers see: pages whose names are still missing, and wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.archive import SECRET, add_step, archive_on, conversation, dead_attempt

from compact.archive import Archive, FileInfo, MemoryStore, Store
from compact.archive.recall import recall_tools
from compact.archive.records import trust_stored
from compact.errors import ArchiveError

PAGE = "/conversation_history/step-001.md"


def dies_before_naming(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits step 1 as a process that is killed between the state file and the names."""

    def killed(moves: Any) -> None:
        raise ArchiveError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(store, "publish", killed)
        add_step(archive_on(store, attempt_ids=dead_attempt), "s1", conversation(2))


def test_the_page_of_a_step_whose_writer_died_can_be_read(
    store: Store, reopen: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_before_naming(store, monkeypatch)
    reader = archive_on(reopen())
    before = reader.files("s1")
    assert [info.path for info in before] == [PAGE]
    text = reader.read_text("s1", PAGE)
    assert "Read file number 1" in text
    tools = recall_tools(reader, "s1")
    assert f"{PAGE}:" in tools["grep"](pattern="number 1")
    assert PAGE in tools["search"](query="bitte")
    assert "Read file number 1" in tools["read_file"](path=PAGE)

    add_step(archive_on(reopen()), "s1", conversation(1))
    assert reader.read_text("s1", PAGE) == text
    assert reader.files("s1")[0] == before[0] == FileInfo(PAGE, len(text.encode()))


def test_a_page_that_no_state_names_is_not_shown(store: Store) -> None:
    archive = archive_on(store)
    with archive.begin("s1", conversation(1), dialect="chat", after=0) as attempt:
        attempt.stage("history", trust_stored(b"not committed"))
        assert archive.files("s1") == []
        with pytest.raises(ArchiveError, match="there is no file"):
            archive.read_text("s1", PAGE)


def test_a_damaged_state_hides_only_its_own_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dies_before_naming(store, monkeypatch)
    archive = archive_on(store)
    output = archive.put_output("s1", "text", tool_name="t", tool_call_id="c")
    store.replace("s1/state-001.json", trust_stored(b"{"))
    assert [info.path for info in archive.files("s1")] == [output.path]


@pytest.mark.parametrize("step", ["1", 1.0, True])
def test_a_step_that_is_no_number_is_refused_with_a_hint(step: Any) -> None:
    archive = archive_on(MemoryStore())
    add_step(archive, "a")
    with pytest.raises(ArchiveError, match=f"must be an int, got {type(step).__name__}") as problem:
        archive.restore("a", step)
    assert problem.value.hint


@pytest.mark.parametrize("session_id", [None, 7, b"a", ["a"]])
@pytest.mark.parametrize(
    "call",
    [
        lambda archive, who: archive.restore(who),
        lambda archive, who: archive.files(who),
        lambda archive, who: archive.read_text(who, PAGE),
        lambda archive, who: archive.append_events(who, []),
        lambda archive, who: archive.put_output(who, "x", tool_name="t", tool_call_id="c"),
        lambda archive, who: archive.begin(who, [], dialect="chat", after=0),
    ],
)
def test_a_session_id_that_is_no_text_is_refused_with_a_hint(
    call: Callable[[Archive, Any], Any], session_id: Any
) -> None:
    with pytest.raises(ArchiveError, match="session id must be a str, got") as problem:
        call(archive_on(MemoryStore()), session_id)
    assert problem.value.hint


@pytest.mark.parametrize("path", [f"/etc/{SECRET}", f"/tool_outputs/{SECRET}", f"{SECRET}"])
def test_the_error_about_a_path_holds_no_secret(path: str) -> None:
    with pytest.raises(ArchiveError, match="there is no file") as problem:
        archive_on(MemoryStore()).read_text("a", path)
    assert SECRET not in f"{problem.value} {problem.value!r} {problem.value.details}"


def test_a_path_that_is_no_text_is_refused() -> None:
    path: Any = None
    with pytest.raises(ArchiveError, match="a path must be a str, got NoneType"):
        archive_on(MemoryStore()).read_text("a", path)
