"""The recall tools read nothing but their session, and answer whatever a model sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.archive import NoRedactor, add_step, archive_on, conversation, fs_archive
from support.archive_recall import MARKER, SMALL, numbered, put
from support.strategies import examples

from compact.archive import Archive, MemoryStore
from compact.archive.recall import recall_tools, run
from compact.messages.message import RECALL_OPENS

CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "/tool_outputs/x.txt"},
    "grep": {"pattern": "x"},
    "ls": {},
    "search": {"query": "x"},
}


@pytest.fixture
def archive() -> Archive:
    return archive_on(MemoryStore(), redactor=NoRedactor())


# --- nothing but this session


ELSEWHERE = [
    "/etc/passwd",
    "../other/tool_outputs/{other}",
    "/../other/tool_outputs/{other}",
    "/tool_outputs/../../other/tool_outputs/{other}",
    "/tool_outputs/../session.json",
    "/tool_outputs/../tool_outputs/{own}",
    "/other/tool_outputs/{other}",
    "/tool_outputs/{other}",
    "/{own}",
    "/session.json",
    "/events.jsonl",
    "/state-001.json",
    "/transcript-pre-compact-001.jsonl",
    "/.index/search",
    "/tool_outputs/{own}\0.txt",
    "\0",
    "/tool_outputs/{own}/",
    "//etc//passwd",
    "C:\\Windows\\win.ini",
    "file:///etc/passwd",
    "~/.ssh/id_rsa",
    "/proc/self/environ",
    "/tool_outputs/link.txt",
    "/tool_outputs/.hidden.txt",
    "/tool_outputs/" + "x" * 5_000,
    "\ud800",
    "",
]


@pytest.mark.parametrize("path", ELSEWHERE, ids=range(len(ELSEWHERE)))
def test_a_path_that_leaves_the_session_is_answered_with_what_there_is(tmp_path: Path, path: str) -> None:
    archive = fs_archive(tmp_path / "archive")
    add_step(archive, "s", conversation())
    own = put(archive, "my own output").rpartition("/")[2]
    other = put(archive, "zanzibar: words from elsewhere", "other").rpartition("/")[2]
    outside = tmp_path / "outside.txt"
    outside.write_text("zanzibar: words from elsewhere")
    folder = tmp_path / "archive" / "s" / "tool_outputs"
    (folder / "link.txt").symlink_to(outside)
    (folder / ".hidden.txt").write_text("zanzibar: words from elsewhere")
    tools = recall_tools(archive, "s")
    asked = path.format(own=own, other=other)
    for answer in (
        tools["read_file"](path=asked),
        tools["grep"](pattern="words|root|version", path=asked),
        tools["ls"](path=asked),
        tools["search"](query="words from elsewhere"),
    ):
        assert answer.startswith(RECALL_OPENS)
        assert "zanzibar" not in answer
        assert "root:" not in answer
        assert len(answer) < 6_000
    answer = tools["read_file"](path=asked)
    if asked.strip("/") not in ("", f"tool_outputs/{own}"):
        assert "there is no" in answer
        assert "/tool_outputs/" in answer


def test_a_name_that_is_nearly_right_is_answered_with_the_nearest_first(archive: Archive) -> None:
    for number in range(30):
        put(archive, f"text {number}", call=f"call_{number}")
    path = put(archive, "the one", call="zulu")
    answer = recall_tools(archive, "s")["read_file"](path=path.replace("zulu", "zuul"))
    assert answer.split("\n")[1].endswith(path)
    assert answer.endswith("and 11 other files: ls shows them")


def test_a_folder_that_became_a_link_is_an_answer_and_no_way_out(tmp_path: Path) -> None:
    archive = fs_archive(tmp_path / "archive")
    path = put(archive, "my own output")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / path.rpartition("/")[2]).write_text("zanzibar: words from elsewhere")
    folder = tmp_path / "archive" / "s" / "tool_outputs"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(outside)
    for name, arguments in CALLS.items():
        answer = recall_tools(archive, "s")[name](
            **{**arguments, **({"path": path} if name == "read_file" else {})}
        )
        assert answer.startswith(RECALL_OPENS)
        assert "zanzibar" not in answer


def test_an_archive_that_fails_is_an_answer(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    root.write_text("a file where the archive should be")
    tools = recall_tools(fs_archive(root), "s")
    for name, arguments in CALLS.items():
        answer = tools[name](**arguments)
        assert answer.startswith(f"{MARKER}{name}: the archive cannot be read: could not list")


@pytest.mark.parametrize("name", CALLS)
def test_a_session_without_records_is_an_answer(archive: Archive, name: str) -> None:
    answer = recall_tools(archive, "nobody")[name](**CALLS[name])
    assert answer.startswith(MARKER)
    assert "nothing" in answer or "no " in answer


# --- what a model gets wrong


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("cat", "{}", "there is no tool 'cat'; there are grep, ls, read_file, search"),
        ("grep", '{"pattern": ', "the arguments are not JSON"),
        ("grep", "[1]", 'expected an object like {"pattern":'),
        ("grep", '"x"', "expected an object"),
        ("grep", "", "the argument 'pattern' is missing"),
        ("grep", None, "the argument 'pattern' is missing"),
        ("grep", {"pattern": None}, "the argument 'pattern' is missing"),
        ("grep", {"pattern": 5}, "'pattern' must be a string, got '5'"),
        ("grep", {"regex": "x"}, "unknown argument 'regex'; it takes pattern, path, ignore_case, context"),
        ("grep", {"pattern": "x", "context": "many"}, "'context' must be an integer, got 'many'"),
        ("grep", {"pattern": "x", "context": True}, "'context' must be an integer, got 'True'"),
        ("grep", {"pattern": "x", "context": 1.5}, "'context' must be an integer, got '1.5'"),
        ("grep", {"pattern": "x", "ignore_case": "perhaps"}, "'ignore_case' must be a boolean"),
        ("search", {"query": ["a", "b"]}, "'query' must be a string"),
        ("read_file", {"path": "x", "offset": float("nan")}, "'offset' must be an integer"),
        ("read_file", "[" * 100_000, "the arguments are"),
    ],
)
def test_wrong_arguments_are_explained(archive: Archive, name: str, arguments: Any, words: str) -> None:
    put(archive, "text")
    answer = run(recall_tools(archive, "s"), name, arguments)
    assert words in answer
    assert answer.startswith(RECALL_OPENS)


def test_arguments_that_are_nearly_right_are_taken(archive: Archive) -> None:
    path = put(archive, "One\ntwo\n")
    tools = recall_tools(archive, "s")
    assert numbered(run(tools, "read_file", {"path": path.strip("/"), "offset": "1", "limit": 5.0})) == {
        2: "two"
    }
    assert numbered(run(tools, "read_file", {"path": f" /{path} ", "limit": None})) == {1: "One", 2: "two"}
    assert ":1:One" in run(tools, "grep", '{"pattern": "one", "ignore_case": "True", "context": 10000000}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(["/", "/tool_outputs", "/conversation_history/step-001.md", "..", "\0"]) | st.text(
    max_size=30
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "path": PATHS | JSON,
        "pattern": st.text(max_size=20) | JSON,
        "query": st.text(max_size=40) | JSON,
        "offset": st.integers(-5, 500) | JSON,
        "limit": st.integers(-5, 500) | JSON,
        "column": st.integers(-5, 50_000) | JSON,
        "context": st.integers(-1, 20) | JSON,
        "ignore_case": st.booleans() | JSON,
    },
)
_FULL = archive_on(MemoryStore(), redactor=NoRedactor())
add_step(_FULL, "s", conversation(4))
put(_FULL, "word " * 20_000 + "\n" + "line\n" * 3_000)
_TOOLS = recall_tools(_FULL, "s", limits=SMALL)


@pytest.mark.no_cover
@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(list(_TOOLS)), ARGUMENTS, st.sets(st.sampled_from(["path", "pattern", "query"])))
def test_no_call_raises_and_every_answer_is_bounded_and_marked(
    name: str, arguments: dict[str, Any], kept: set[str]
) -> None:
    known = _TOOLS[name].schema["properties"]
    fitting = {key: value for key, value in arguments.items() if key in known or key in kept}
    for sent in (fitting, json.dumps(fitting)):
        answer = run(_TOOLS, name, sent)
        assert answer.startswith(RECALL_OPENS)
        assert len(answer) <= SMALL.max_chars
        answer.encode()


@given(st.text(), st.text() | JSON)
def test_no_name_and_no_text_for_arguments_raises(name: str, arguments: Any) -> None:
    assert run(_TOOLS, name, arguments).startswith(RECALL_OPENS)
