"""Keys: no session id and no tool name leads out of the archive, and no two clash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.archive import SECRET, NoRedactor, add_step, archive_on, fs_archive

from compact.archive import MemoryStore, keys
from compact.errors import ArchiveError
from compact.redaction import Redactor

SAFE_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}(/[A-Za-z0-9_.-][A-Za-z0-9._-]{0,254}){1,2}")


def folder(session_id: str) -> str:
    return keys.folder_for(session_id, session_id)


@pytest.mark.parametrize("session_id", ["a", "session-1", "A.b_c-9", "x" * 128, "a..b", "_", "-x"])
def test_a_safe_id_is_its_own_folder(session_id: str) -> None:
    assert folder(session_id) == session_id


@pytest.mark.parametrize(
    "session_id",
    [
        "",
        ".",
        "..",
        ".hidden",
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a\0b",
        "a b",
        "a\n",
        "x" * 129,
        "x" * 10_000,
        "日本",
        "раураl",  # Cyrillic letters that look like Latin ones
        "ａｂｃ",
        "\ud800",
        "con",
        "NUL.txt",
        "com1",
        "trailing.",
        "h-" + "0" * 64,
        "H-" + "A" * 64,
    ],
)
def test_any_other_id_is_stored_under_a_hash(session_id: str) -> None:
    assert re.fullmatch(r"h-[0-9a-f]{64}", folder(session_id))


def test_an_id_that_looks_like_a_hashed_folder_does_not_meet_it() -> None:
    hashed = folder("../evil")
    assert folder(hashed) != hashed
    assert len({folder("../evil"), folder(hashed), folder(folder(hashed))}) == 3


def test_an_id_that_holds_a_secret_does_not_become_a_folder_name() -> None:
    archive = archive_on(MemoryStore())
    assert SECRET not in archive.folder(SECRET)
    archive.put_output(SECRET, "text", tool_name="t", tool_call_id="c")
    archive.put_output(SECRET + "9", "text", tool_name="t", tool_call_id="c")
    assert archive.folder(SECRET) != archive.folder(SECRET + "9")
    assert all(SECRET not in session for session in archive.sessions())


@pytest.mark.sweep
@pytest.mark.no_cover
@given(st.text(max_size=300), st.text(max_size=300))
def test_different_ids_have_different_folders_that_are_safe_names(one: str, two: str) -> None:
    for name in (folder(one), folder(two)):
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", name)
        assert keys.is_folder(name)
    assert (folder(one) == folder(two)) == (one == two)


@given(st.text(max_size=400), st.text(max_size=400))
def test_an_output_name_is_safe_and_short_whatever_the_tool_is_called(tool: str, call: str) -> None:
    name = keys.output_name(tool, call, "ab" * 32)
    assert SAFE_KEY.fullmatch(f"s/{name}")
    assert len(name.rpartition("/")[2]) <= 120
    assert keys.content_hash(name) == "ab" * 6
    assert keys.virtual_name(f"/{name}") == name


@pytest.mark.parametrize(
    ("tool", "call", "name"),
    [
        ("read_file", "call_1", "tool_outputs/read_file_call_1_abababababab.txt"),
        ("../../x", "..", "tool_outputs/x_call_abababababab.txt"),
        ("mcp::server/tool", "<REDACTED>", "tool_outputs/mcp-server-tool_REDACTED_abababababab.txt"),
        ("", "", "tool_outputs/tool_call_abababababab.txt"),
    ],
)
def test_output_names_stay_readable(tool: str, call: str, name: str) -> None:
    assert keys.output_name(tool, call, "ab" * 32) == name


@given(st.text(max_size=60))
def test_no_virtual_path_leads_outside(path: str) -> None:
    for folder in ("", "/tool_outputs/", "/conversation_history/"):
        try:
            name = keys.virtual_name(folder + path)
        except ArchiveError:
            continue
        assert re.fullmatch(r"(tool_outputs|conversation_history)/[A-Za-z0-9_-][A-Za-z0-9._-]*", name)


def test_hostile_ids_stay_below_the_root_on_a_real_disk(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "archive"
    archive = fs_archive(root)
    ids = [
        "../../../escape",
        "/absolute",
        "a/../../b",
        "..",
        "nul\0byte",
        "x" * 10_000,
        "con",
        "h-" + "0" * 64,
    ]
    for session_id in ids:
        archive.put_output(session_id, session_id[:9], tool_name="../../t", tool_call_id="/etc/c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["archive"]
    assert len(list(root.iterdir())) == len(ids)
    assert archive.sessions() == sorted(ids)
    assert archive.verify() == []


def test_step_numbers_grow_beyond_three_digits() -> None:
    assert keys.state_name(7) == "state-007.json"
    assert keys.state_name(1234) == "state-1234.json"
    assert keys.step_of("state-1234.json") == ("state", 1234)
    assert keys.step_of("transcript-pre-compact-007.jsonl") == ("transcript-pre-compact", 7)
    assert keys.step_of("state-07.json") is None
    assert keys.step_of("state-007.json.tmp") is None


# --- rules change, and folders do not


PERSONAL = ("415-555-2671", "123-45-6789", "2024-01-15-10-30-00", "call-415-555-2671", "192.168.1.17")


class MaskingRedactor(NoRedactor):
    """Masks one word: rules of another day."""

    def __init__(self, word: str) -> None:
        self.word = word

    def redact(self, text: str) -> str:
        return text.replace(self.word, "<REDACTED>")


@pytest.mark.parametrize("session_id", PERSONAL)
def test_an_id_that_looks_like_personal_data_keeps_its_name(tmp_path: Path, session_id: str) -> None:
    add_step(fs_archive(tmp_path, redactor=NoRedactor()), session_id)  # as a version without such rules did
    assert (tmp_path / session_id / "session.json").is_file()
    archive = fs_archive(tmp_path)
    assert archive.steps(session_id) == [1]
    add_step(archive, session_id)
    assert archive.steps(session_id) == [1, 2]
    assert [each.name for each in tmp_path.iterdir()] == [session_id]
    assert archive.verify() == []
    assert fs_archive(tmp_path / "new").folder(session_id) == session_id


@pytest.mark.parametrize(("before", "after"), [("rose", "lily"), ("lily", "rose")])
@pytest.mark.parametrize("part", ["session", "tenant"])
def test_rules_that_come_or_go_leave_a_folder_where_it_is(
    tmp_path: Path, before: str, after: str, part: str
) -> None:
    name = "agent-rose-7"
    session_id = "s" if part == "tenant" else name
    for word in (before, after):
        archive = fs_archive(tmp_path, redactor=MaskingRedactor(word))
        archive = archive.for_tenant(name) if part == "tenant" else archive
        add_step(archive, session_id)
    assert archive.steps(session_id) == [1, 2]
    below = tmp_path / "_tenants" if part == "tenant" else tmp_path
    assert [each.name for each in below.iterdir()] == [keys.hashed(name) if before == "rose" else name]
    assert archive.verify() == []


def test_a_secret_never_names_a_folder(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    add_step(archive, SECRET)
    assert [each.name for each in tmp_path.iterdir()] == [keys.hashed(SECRET)]


def test_a_folder_of_another_session_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path)
    add_step(archive, "one")
    (tmp_path / "one").rename(tmp_path / "two")
    with pytest.raises(ArchiveError, match="belongs to another session"):
        fs_archive(tmp_path).put_output("two", "text", tool_name="t", tool_call_id="c")


def test_ids_that_other_rules_masked_are_not_misplaced(tmp_path: Path) -> None:
    for session_id in ("user:ann@example.org", "415-555-2671", "chat rose"):
        for redactor in (
            NoRedactor(),
            MaskingRedactor("rose"),
            MaskingRedactor("ann"),
            Redactor(),
            NoRedactor(),
        ):
            archive = fs_archive(tmp_path, redactor=redactor)
            add_step(archive, session_id)
    assert archive.verify() == []
