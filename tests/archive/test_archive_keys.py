"""Keys: no session id and no tool name leads out of the archive, and no two clash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.archive import SECRET, archive_on, fs_archive

from compact.archive import MemoryStore, keys
from compact.errors import ArchiveError

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
