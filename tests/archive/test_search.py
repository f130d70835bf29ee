"""Ranked search: what it finds, how the index is saved, and that a damaged index does no harm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.archive import (
    NoRedactor,
    SettableClock,
    add_step,
    archive_on,
    conversation,
    fs_archive,
    recorder,
)
from support.data import bundled_sessions

from bench.search import archive_first_halves, pick, share_found
from compact.archive import Archive, MemoryStore, Store
from compact.archive.recall import search
from compact.archive.recall.passages import OVERLAP_CHARS, PASSAGE_CHARS, split
from compact.archive.recall.search import INDEX, SearchIndex
from compact.archive.recall.terms import terms
from compact.archive.records import digest
from compact.archive.stores.files import FsStore
from compact.errors import ArchiveError

OUTPUT = "/tool_outputs/x.txt"
HISTORY = "/conversation_history/step-001.md"


class CountingArchive(Archive):
    """Notes which files are read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, NoRedactor(), recorder())
        self.texts_read: list[str] = []

    def read_text(self, session_id: str, path: str) -> str:
        self.texts_read.append(path)
        return super().read_text(session_id, path)


def put(archive: Archive, text: str, session_id: str = "s") -> str:
    return archive.put_output(session_id, text, tool_name="bash", tool_call_id="c").path


def found(archive: Archive, query: str, session_id: str = "s") -> list[str]:
    return [hit.text for hit in SearchIndex(archive, session_id).search(query)]


@pytest.fixture
def archive() -> Archive:
    return archive_on(MemoryStore(), redactor=NoRedactor())


# --- terms


@pytest.mark.parametrize(
    "spelling", ["readFileNow", "read_file_now", "read-file-now", "ReadFileNow", "READ_FILE_NOW"]
)
def test_every_spelling_of_a_name_gives_its_parts_and_one_whole(spelling: str) -> None:
    assert sorted(terms(spelling)) == ["file", "now", "read", "readfilenow"]


def test_a_path_gives_its_parts_the_names_in_it_and_the_whole() -> None:
    assert terms("src/myApp/fs_store.py") == [
        *("src", "my", "app", "myapp", "fs", "store", "fsstore", "py"),
        "srcmyappfsstorepy",
    ]


def test_acronyms_and_digits_stay_with_their_word() -> None:
    assert terms("HTTPServerError sha256 3f2a9bc") == [
        *("http", "server", "error", "httpservererror"),
        *("sha256", "3f2a9bc"),
    ]


def test_scripts_without_spaces_give_characters_and_pairs() -> None:
    assert terms("数据库x") == ["数", "据", "库", "数据", "据库", "x"]
    assert terms("naïve_Käse") == ["naïve", "käse"]


def test_a_word_behind_an_escaped_line_break_is_found() -> None:
    assert "cat" in terms('{"command": "ls\\ncat notes"}')


def test_a_coloured_word_is_found() -> None:
    assert terms("\x1b[1;31mFAILED\x1b[0m test") == ["failed", "test"]


def test_encoded_data_is_not_taken_apart() -> None:
    assert terms("aB3dE9fGhI7kLmN0pQ") == ["ab3de9fghi7klmn0pq"]


@given(st.text())
def test_terms_hold_nothing_that_a_query_language_could_read(text: str) -> None:
    for term in terms(text):
        assert term
        assert not [c for c in term if c.isascii() and not c.isalnum()]


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", ["a", "aB", "a-", "数", "_", "\\n", "a/"])
def test_a_long_text_has_its_terms_at_once(unit: str) -> None:
    """With quadratic time, a million repetitions would run into the time limit of a test."""
    assert len(terms(unit * 1_000_000)) <= 2_000_000


# --- passages


@given(
    st.lists(st.text(alphabet="ab 数\t.,", max_size=400), max_size=60).map("\n".join),
    st.sampled_from([OUTPUT, HISTORY]),
)
@example("x" * 5000, OUTPUT)
@example("\n" * 3000, OUTPUT)
@example("## 1. user\n\nhello\n\n## 2. assistant\n\nthere\n", HISTORY)
def test_passages_hold_the_whole_text_and_know_their_places(text: str, path: str) -> None:
    covered = 0
    lines = text.split("\n")
    for passage in split(text, path):
        assert covered - OVERLAP_CHARS <= passage.start <= covered < passage.end or passage.start == covered
        assert passage.end - passage.start <= PASSAGE_CHARS
        assert passage.first_line == text.count("\n", 0, passage.start) + 1
        assert passage.last_line == text.count("\n", 0, passage.end - 1) + 1
        assert lines[passage.first_line - 1][passage.column :].startswith(
            text[passage.start : passage.end].split("\n")[0]
        )
        covered = passage.end
    assert covered == len(text)


def test_what_stands_at_a_border_is_whole_in_one_of_the_passages() -> None:
    text = " ".join(f"name_{number:05d}" for number in range(2000))
    passages = [text[passage.start : passage.end] for passage in split(text, OUTPUT)]
    for number in range(1, 1999):
        around = f"name_{number - 1:05d} name_{number:05d} name_{number + 1:05d}"
        assert any(around in passage for passage in passages)


def test_passages_of_a_conversation_belong_to_one_message_each() -> None:
    text = "# title\n\n## 1. user\n\nhello\n\n## 2. assistant\n\nquoted:\n\n## 7. user\n\nbye\n\n## 3. tool\n\nend\n"
    places = [(part.message, text[part.start : part.end].split("\n")[0]) for part in split(text, HISTORY)]
    assert places == [(None, "# title"), (1, "## 1. user"), (2, "## 2. assistant"), (3, "## 3. tool")]


# --- what is found


def test_a_passage_is_found_by_parts_of_a_name_other_spellings_and_inflections(archive: Archive) -> None:
    put(archive, "def retry_limit_exceeded(): ...")
    put(archive, "the migration failed")
    put(archive, "something else altogether")
    for query in ("limit", "retryLimitExceeded", "RETRY-LIMIT", "exceeding retries"):
        assert found(archive, query)[0] == "def retry_limit_exceeded(): ...", query
    assert found(archive, "failing migrations") == ["the migration failed"]
    assert found(archive, "zebra") == []


def test_unspaced_scripts_are_found_by_a_piece_of_a_sentence(archive: Archive) -> None:
    put(archive, "错误：数据库连接失败，请重试")
    put(archive, "すべてのテストが成功しました")
    put(archive, "모든 테스트가 통과했습니다")
    assert found(archive, "数据库连接")[0].startswith("错误")
    assert found(archive, "テスト")[0].startswith("すべて")
    assert found(archive, "테스트")[0].startswith("모든")


def test_a_hit_says_where_it_stands(archive: Archive) -> None:
    messages = conversation(3)
    messages[5]["content"] = "Please look at the zebra enclosure."
    add_step(archive, "s", messages)
    (hit,) = SearchIndex(archive, "s").search("zebra")
    lines = archive.read_text("s", hit.path).split("\n")
    assert (hit.path, hit.step, hit.message) == (HISTORY, 1, 6)
    assert "zebra" in "\n".join(lines[hit.first_line - 1 : hit.last_line])


def test_a_message_that_later_steps_archive_again_is_one_hit_at_its_oldest_place(archive: Archive) -> None:
    messages = [{"role": "user", "content": "The zebra eats at noon."}]
    for step in range(3):
        messages.append({"role": "assistant", "content": f"Noted, {step}."})
        add_step(archive, "s", messages)
    hits = SearchIndex(archive, "s").search("zebra")
    assert [(hit.path, hit.step) for hit in hits] == [(HISTORY, 1)]


def test_sessions_do_not_see_each_other(archive: Archive) -> None:
    put(archive, "the zebra", "one")
    put(archive, "the horse", "two")
    assert found(archive, "zebra", "two") == []


def test_identifiers_are_found_by_the_words_around_them() -> None:
    archive = archive_first_halves(bundled_sessions())
    sessions = sorted(archive.sessions(), key=lambda each: -sum(info.size for info in archive.files(each)))[
        :5
    ]
    wanted = pick(archive, sessions, 100)
    assert len(wanted) == 100
    assert all(each.name.lower() not in each.query.lower().split() for each in wanted)
    assert share_found(archive, wanted) >= 0.75


HOSTILE = [
    '"',
    '" OR 1=1 --',
    "AND OR NOT NEAR",
    "NEAR(a b, 5)",
    "body: x",
    "{a b} : c",
    "^a* + b - c",
    "words MATCH 'x'); DROP TABLE files; --",
    "\0zebra\0",
    "\ud800 half \udfff",
    "(" * 500,
    "",
    " \n\t ",
    "…“”🙂",
    "a" * 100_000,
    "word " * 100_000,
    "\\n\\n\\" * 1000,
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_is_a_query(archive: Archive, query: str) -> None:
    put(archive, "the zebra is here: AND OR NOT")
    index = SearchIndex(archive, "s")
    index.search(query)
    assert index.search("zebra")


@given(st.text())
def test_no_query_is_an_error(query: str) -> None:
    SearchIndex(_ONE_OUTPUT, "s").search(query)


_ONE_OUTPUT = archive_on(MemoryStore(), redactor=NoRedactor())
put(_ONE_OUTPUT, "the zebra is here")


# --- what is read, and when


@pytest.mark.parametrize("kind", ["fs", "memory"])
def test_only_new_records_are_read(kind: str, tmp_path: Path) -> None:
    archive = CountingArchive(FsStore(tmp_path) if kind == "fs" else MemoryStore())
    paths = [put(archive, f"output number {number} about horses") for number in range(20)]
    index = SearchIndex(archive, "s")
    assert index.search("nothing-like-it") == []
    assert sorted(archive.texts_read) == sorted(paths)
    archive.texts_read.clear()

    assert index.search("nothing-like-it") == []
    assert archive.texts_read == []

    new = put(archive, "the zebra")
    assert len(index.search("zebra")) == 1
    assert archive.texts_read == [new, new]  # once for the index, once to show the passage
    archive.texts_read.clear()

    another_process = SearchIndex(archive, "s")
    assert len(another_process.search("zebra")) == 1
    assert archive.texts_read == [new]  # to show it


def test_the_index_is_kept_privately_and_verify_and_the_layout_do_not_mind(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    add_step(archive, "s")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert found(archive, "file number")
    (new,) = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert new == tmp_path / "s" / INDEX
    assert (new.stat().st_mode & 0o777, new.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert archive.verify() == []
    assert archive.sessions() == ["s"]
    add_step(archive, "s")
    assert archive.steps("s") == [1, 2]


def test_the_index_holds_no_text_of_the_records(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    put(archive, "the zebra eats at noon")
    assert found(archive, "zebra")
    assert b"zebra eats" not in (tmp_path / "s" / INDEX).read_bytes()


def test_a_session_that_is_not_there_gets_no_folder(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    put(archive, "the zebra")
    assert found(archive, "zebra", "nobody") == []
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_an_object_store_is_searched_and_keeps_no_index(store: Store) -> None:
    archive = archive_on(store)
    path = put(archive, "the zebra")
    assert [hit.path for hit in SearchIndex(archive, "s").search("zebra")] == [path]
    kept = [blob.key for blob in store.blobs("s") if INDEX in blob.key]
    assert kept == ([f"s/{INDEX}"] if store.adapter in {"fs", "memory"} else [])


def test_pruned_records_are_forgotten(tmp_path: Path) -> None:
    clock = SettableClock()
    archive = fs_archive(tmp_path, recorder=recorder(clock))
    add_step(archive, "s", [{"role": "user", "content": "the zebra"}])
    clock.advance(days=40)
    add_step(archive, "s", [{"role": "user", "content": "the horse"}])
    index = SearchIndex(archive, "s")
    assert len(index.search("zebra")) == 1
    assert archive.prune(timedelta(days=30))
    assert not (tmp_path / "s" / INDEX).exists()
    assert index.search("zebra") == []
    assert len(index.search("horse")) == 1
    assert b"zebra" not in (tmp_path / "s" / INDEX).read_bytes()
    assert archive.verify() == []


# --- a kept index that is wrong


def _sealed(image: bytes) -> bytes:
    return f"compact search index 1 {digest(image)}\n".encode() + image


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "a bit flipped": lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "a word changed": lambda data: data.replace(b"zebra", b"zebru"),
    "another version": lambda data: data.replace(b"index 1", b"index 0", 1),
    "noise": lambda data: os.urandom(5000),
    "noise with a fitting hash": lambda data: _sealed(b"no database" * 500),
    "a torn database with a fitting hash": lambda data: _sealed(data.partition(b"\n")[2][:8192]),
    "an empty database with a fitting hash": lambda data: _sealed(b""),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_index_is_made_anew(tmp_path: Path, how: str) -> None:
    archive = fs_archive(tmp_path, redactor=NoRedactor())
    for number in range(30):
        put(archive, f"output {number} about horses\n" * 50)
    put(archive, "the zebra")
    assert found(archive, "zebra") == ["the zebra"]
    file = tmp_path / "s" / INDEX
    whole = file.read_bytes()
    file.write_bytes(BROKEN[how](whole))
    assert found(archive, "zebra") == ["the zebra"]
    put(archive, "another zebra")
    assert len(found(archive, "zebra")) == 2
    assert found(fs_archive(tmp_path), "zebra")
    assert file.read_bytes().startswith(b"compact search index 1 ")


def test_a_link_in_the_place_of_the_index_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "search").write_text("precious")
    archive = fs_archive(tmp_path / "archive")
    put(archive, "the zebra")
    (tmp_path / "archive" / "s" / ".index").symlink_to(precious)
    assert found(archive, "zebra") == ["the zebra"]
    assert (precious / "search").read_text() == "precious"
    (tmp_path / "archive" / "s" / ".index").unlink()
    (tmp_path / "archive" / "s" / ".index").mkdir()
    (tmp_path / "archive" / "s" / INDEX).symlink_to(precious / "search")
    assert found(archive, "zebra") == ["the zebra"]
    assert (precious / "search").read_text() == "precious"


def test_without_fts5_it_says_so(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    put(archive, "the zebra")
    monkeypatch.setattr(search, "SCHEMA", search.SCHEMA.replace("fts5", "fts_of_another_time"))
    with pytest.raises(ArchiveError, match="ranked search is not possible: no such module"):
        found(archive, "zebra")


# --- together with others

_SEARCHER = """
import json, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[1])
from support.archive import NoRedactor, fs_archive
from compact.archive.recall.search import SearchIndex
archive = fs_archive(Path(sys.argv[2]), redactor=NoRedactor())
seen = 0
for turn in range(40):
    hits = SearchIndex(archive, "s").search("zebra", 100)
    assert len(hits) >= seen, (len(hits), seen)
    seen = len(hits)
    archive.put_output("s", f"zebra {sys.argv[3]} {turn}", tool_name="bash", tool_call_id=f"{sys.argv[3]}{turn}")
"""


def test_two_processes_search_one_session_while_it_grows(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path, redactor=NoRedactor())
    put(archive, "the first zebra")
    command = [sys.executable, "-c", _SEARCHER, json.dumps(sys.path), str(tmp_path)]
    workers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("a", "b")]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, "")
    assert len(SearchIndex(archive, "s").search("zebra", 100)) == 81
    assert archive.verify() == []
    assert [path.name for path in (tmp_path / "s" / ".index").iterdir()] == ["search"]


def test_threads_share_an_index(archive: Archive) -> None:
    for number in range(50):
        put(archive, f"zebra {number}")
    index = SearchIndex(archive, "s")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: len(index.search("zebra", 100)), range(40)))
    assert answers == [50] * 40


# --- large and strange


@pytest.mark.sweep
@pytest.mark.no_cover
def test_ten_megabytes_in_one_line_are_found_at_their_column(archive: Archive) -> None:
    rows: list[dict[str, Any]] = [{"id": number, "name": f"item {number % 977}"} for number in range(270_000)]
    rows[200_000]["name"] = "the zebra enclosure"
    text = json.dumps(rows)
    assert len(text) > 9_000_000
    put(archive, text)
    (hit,) = SearchIndex(archive, "s").search("zebra enclosure", 1)
    assert "the zebra enclosure" in hit.text
    assert len(hit.text) <= PASSAGE_CHARS
    assert (hit.first_line, hit.last_line) == (1, 1)
    assert text[hit.column : hit.column + len(hit.text)] == hit.text


def test_binary_text_is_indexed(archive: Archive) -> None:
    noise = random.Random(1).randbytes(200_000).decode("latin-1")
    put(archive, f"{noise}\n\0\0 the zebra \x1b[31m\n{noise}\ud800")
    assert any("the zebra" in text for text in found(archive, "zebra"))
