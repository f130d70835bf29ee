"""The recall tools: what an agent can read back, and in which pieces."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.archive import SECRET, NoRedactor, add_step, archive_on, conversation, fs_archive, recorder
from support.archive_recall import MARKER, SMALL, numbered, put

from compact.archive import Archive, FileInfo, Listing, MemoryStore
from compact.archive.recall import AnswerLimits, RecallTool, recall_tools
from compact.archive.recall.answers import cut_near
from compact.errors import ConfigError
from compact.messages.message import RECALL_OPENS


@pytest.fixture
def archive() -> Archive:
    return archive_on(MemoryStore(), redactor=NoRedactor())


def read_whole(tools: dict[str, RecallTool], path: str) -> str:
    """A file, read as an agent reads it: following what each answer says about reading on."""
    pieces: list[str] = []
    arguments: dict[str, Any] = {"path": path}
    for _ in range(10_000):
        answer = tools["read_file"](**arguments)
        assert answer.startswith(RECALL_OPENS)
        rows = numbered(answer)
        for number, row in sorted(rows.items()):
            cut = re.fullmatch(r"(.*)… \[\d+ more characters: offset=(\d+), column=(\d+)\]", row, re.DOTALL)
            if cut:
                pieces.append(cut[1])
                arguments = {"path": path, "offset": int(cut[2]), "column": int(cut[3])}
                assert number == int(cut[2]) + 1
                break
            pieces.append(f"{row}\n")
        else:
            more = re.search(r"^\[more follows: read_file with offset=(\d+)\]$", answer, re.MULTILINE)
            if not more:
                return "".join(pieces)
            arguments = {"path": path, "offset": int(more[1])}
    raise AssertionError("reading on never ended")


# --- the tools as a model's framework sees them


def test_four_tools_with_schemas_for_every_provider(archive: Archive) -> None:
    tools = recall_tools(archive, "s")
    assert list(tools) == ["read_file", "grep", "ls", "search"]
    for name, tool in tools.items():
        assert tool.name == name
        assert tool.openai() == {
            "type": "function",
            "function": {"name": name, "description": tool.description, "parameters": tool.schema},
        }
        assert tool.responses() == {
            "type": "function",
            "name": name,
            "description": tool.description,
            "parameters": tool.schema,
        }
        assert tool.anthropic() == {
            "name": name,
            "description": tool.description,
            "input_schema": tool.schema,
        }
        assert json.loads(json.dumps(tool.schema)) == tool.schema
        assert set(tool.schema["required"]) <= set(tool.schema["properties"])


def test_the_schema_is_the_function_s_own_signature(archive: Archive) -> None:
    for tool in recall_tools(archive, "s").values():
        parameters = inspect.signature(tool.function).parameters
        assert set(parameters) == set(tool.schema["properties"])
        needed = {name for name, each in parameters.items() if each.default is inspect.Parameter.empty}
        assert needed == set(tool.schema["required"])
        for name, rule in tool.schema["properties"].items():
            if name not in needed and parameters[name].default is not None:
                assert rule["default"] == parameters[name].default


def test_a_host_that_changes_a_schema_changes_its_own_copy(archive: Archive) -> None:
    tool = recall_tools(archive, "s")["grep"]
    tool.openai()["function"]["parameters"]["properties"].clear()
    assert "pattern" in tool.schema["properties"]


def test_making_the_tools_reads_nothing(tmp_path: Path) -> None:
    recall_tools(fs_archive(tmp_path / "none"), "s")
    assert not (tmp_path / "none").exists()


# --- read_file


def test_read_file_numbers_lines_and_says_how_to_read_on(archive: Archive) -> None:
    path = put(archive, "".join(f"line {number}\n" for number in range(1, 26)))
    tools = recall_tools(archive, "s", limits=SMALL)
    first = tools["read_file"](path=path)
    assert first.split("\n")[:3] == [
        f"{MARKER}read_file {path}: lines 1-10 of 25",
        "[more follows: read_file with offset=10]",
        "     1\tline 1",
    ]
    last = tools["read_file"](path=path, offset=20, limit=100)
    assert list(numbered(last)) == [21, 22, 23, 24, 25]
    assert "goes on" not in last
    assert numbered(tools["read_file"](path=path, offset=3, limit=1)) == {4: "line 4"}


def test_a_step_s_conversation_can_be_read(archive: Archive) -> None:
    add_step(archive, "s", conversation(2))
    answer = recall_tools(archive, "s")["read_file"](path="/conversation_history/step-001.md")
    assert "Read file number 1, bitte schön." in answer


TEXTS = {
    "many lines": "".join(f"line {number} " + "word " * (number % 60) + "\n" for number in range(500)),
    "one long line": "x1234567 " * 5_000,
    "long lines between short ones": ("short\n" + "long " * 900 + "\n") * 7,
    "no line break at the end": "a\nb",
    "empty lines": "\n\n\n\n" * 30,
    "families": "👨‍👩‍👧‍👦" * 400 + "\n" + "🇩🇪🇫🇷" * 300 + "\n" + "e\u0301" * 700,
    "marks without end": "e" + "\u0301" * 3_000,
    "tabs and numbers": "\t1\t2\n 7\tx\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_following_the_notes_reads_a_file_whole(archive: Archive, name: str) -> None:
    path = put(archive, TEXTS[name])
    read = read_whole(recall_tools(archive, "s", limits=SMALL), path)
    assert read.removesuffix("\n") == TEXTS[name].removesuffix("\n")


def test_ten_megabytes_in_one_line_are_read_in_pages(archive: Archive) -> None:
    path = put(archive, "0123456789" * 1_000_000)
    tools = recall_tools(archive, "s")
    first = tools["read_file"](path=path)
    assert len(first) <= AnswerLimits().max_chars
    assert first.endswith("… [9985600 more characters: offset=0, column=14400]")
    middle = tools["read_file"](path=path, column=5_000_005)
    assert numbered(middle)[1].startswith("5678901234")


def test_a_character_is_never_parted() -> None:
    family = "👨‍👩‍👧‍👦"
    text = "ab" + family * 20
    for end in range(3, len(text)):
        assert (cut_near(text, end) - 2) % len(family) == 0
    assert cut_near("e" + "\u0301" * 500, 200) == 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"offset": 9}, "has 3 lines: offset 9 is past its end"),
        ({"offset": 1, "column": 50}, "line 2 of {path} has 3 characters: column 50 is past its end"),
        ({"offset": -1}, "'offset' must be 0 or more"),
        ({"limit": 0}, "'limit' must be 1 or more"),
    ],
)
def test_a_place_behind_the_end_is_explained(archive: Archive, arguments: dict[str, Any], words: str) -> None:
    path = put(archive, "one\ntwo\nthree\n")
    assert words.format(path=path) in recall_tools(archive, "s")["read_file"](path=path, **arguments)


def test_an_empty_file_is_said_to_be_empty(archive: Archive) -> None:
    path = put(archive, "")
    assert (
        recall_tools(archive, "s")["read_file"](path=path) == f"{MARKER}read_file {path}: the file is empty"
    )


# --- grep


def test_grep_answers_as_grep_does(archive: Archive) -> None:
    path = put(archive, "alpha\nbeta\ngamma\ndelta\nepsilon\nbeta two\n")
    tools = recall_tools(archive, "s")
    assert tools["grep"](pattern="^beta").split("\n") == [
        f"{MARKER}grep '^beta': 2 matching lines in 1 file",
        f"{path}-1-alpha",
        f"{path}:2:beta",
        f"{path}-3-gamma",
        "--",
        f"{path}-5-epsilon",
        f"{path}:6:beta two",
    ]
    assert tools["grep"](pattern="BETA$", ignore_case=True, context=0).split("\n")[1:] == [f"{path}:2:beta"]
    assert "no line matches in 1 file" in tools["grep"](pattern="zebra")
    assert "2 matching lines" in tools["grep"](pattern="beta", path=path)


def test_a_match_never_reaches_over_a_line(archive: Archive) -> None:
    put(archive, "alpha\nbeta\n")
    assert "no line matches" in recall_tools(archive, "s")["grep"](pattern=r"alpha\s+beta")


def test_grep_shows_what_surrounds_a_match_in_a_long_line(archive: Archive) -> None:
    path = put(archive, "x" * 50_000 + " needle " + "y" * 50_000)
    answer = recall_tools(archive, "s")["grep"](pattern="needle")
    column = int(re.search(r"\[column (\d+) to", answer)[1])  # type: ignore[index]
    assert " needle " in answer
    read = recall_tools(archive, "s")["read_file"](path=path, column=column)
    assert " needle " in read[:1000]


def test_grep_is_bounded_and_says_so(archive: Archive) -> None:
    for number in range(3):
        put(archive, f"hit {number}\n" * 600)
    answer = recall_tools(archive, "s", limits=SMALL)["grep"](pattern="hit", context=0)
    assert "at least 1,000 matching lines in 2 files" in answer
    assert "[5 of them are shown: narrow the pattern or the path]" in answer
    assert len(re.findall(r"^/tool_outputs/.*:hit", answer, re.MULTILINE)) == 5


def test_context_is_bounded(archive: Archive) -> None:
    put(archive, "\n".join(map(str, range(100))))
    answer = recall_tools(archive, "s")["grep"](pattern="^50$", context=10**30)
    assert len(answer.split("\n")) == 1 + 10 + 1 + 10


def test_nothing_is_shown_behind_what_had_no_room(archive: Archive) -> None:
    put(archive, "\n".join(f"hit {'x' * 1_900}" for _ in range(9)), call="a")
    put(archive, "hit", call="b")
    answer = recall_tools(archive, "s", limits=AnswerLimits(max_chars=10_000))["grep"](pattern="^hit")
    assert "10 matching lines in 2 files" in answer
    assert "bash_b" not in answer


def test_grep_stops_at_the_end_of_its_page_and_says_so(archive: Archive) -> None:
    put(archive, "\n".join(f"hit {number} {'x' * 1_900}" for number in range(20)))
    answer = recall_tools(archive, "s", limits=AnswerLimits(max_chars=10_000))["grep"](pattern="^hit")
    shown = re.findall(r":hit (\d+) ", answer)
    assert shown == ["0", "1", "2", "3"]
    assert "[4 of them are shown" in answer
    assert len(answer) <= 10_000


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing )"),
        ("(?=look)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("", "the pattern is empty"),
        ("x" * 1_001, "1,001 characters"),
        ("\ud800", "half a character"),
        ("((((a{1000}){1000}){1000}){1000})", "RE2 does not accept"),
    ],
)
def test_a_bad_pattern_is_explained(archive: Archive, pattern: str, words: str) -> None:
    put(archive, "text")
    answer = recall_tools(archive, "s")["grep"](pattern=pattern)
    assert words in answer
    assert "RE2 has no lookaround" in answer


def test_a_pattern_cannot_hang(archive: Archive) -> None:
    put(archive, "a" * 3_000_000)
    assert "no line matches" in recall_tools(archive, "s")["grep"](pattern="(a*)*(a|aa)+b")


# --- ls and search


def test_ls_lists_folders_and_pages(archive: Archive) -> None:
    add_step(archive, "s", conversation())
    paths = sorted(put(archive, f"text {number}", call=f"call{number:02}") for number in range(25))
    tools = recall_tools(archive, "s", limits=SMALL)
    assert "26 files" in tools["ls"]()
    assert "/conversation_history/step-001.md" in tools["ls"](path="/conversation_history")
    listed = [
        line.rpartition("  ")[2]
        for offset in (0, 10, 20)
        for line in tools["ls"](path="tool_outputs/", offset=offset).split("\n")
        if line.endswith(".txt")
    ]
    assert listed == paths
    assert "[more follows: ls with offset=10]" in tools["ls"](path="/tool_outputs")


def test_search_shows_passages_that_can_be_read_on(archive: Archive) -> None:
    path = put(archive, "".join(f"line {number} of the log\n" for number in range(300)) + "a zebra\n" * 3)
    tools = recall_tools(archive, "s")
    answer = tools["search"](query="zebra", limit=1)
    assert re.match(rf"{re.escape(MARKER)}search 'zebra': 1 passage, about \d+ tokens\n", answer)
    shown = re.search(rf"^{re.escape(path)}\nL(\d+) tool bash: (.*)((?:\n .*)*)", answer, re.MULTILINE)
    assert shown
    assert "zebra" in shown[3]
    read = numbered(tools["read_file"](path=path, offset=int(shown[1]) - 1))
    assert read[int(shown[1])] == shown[2]


def test_a_passage_of_a_long_line_can_be_read_on_from_its_column(archive: Archive) -> None:
    path = put(archive, "word " * 5_000 + "zebra " + "word " * 5_000)
    tools = recall_tools(archive, "s")
    answer = tools["search"](query="zebra", limit=1)
    passage = re.search(r"^L1\+(\d+) tool bash: (.*)$", answer, re.MULTILINE)
    assert passage
    assert passage[2] in numbered(tools["read_file"](path=path, column=int(passage[1])))[1]


def test_search_says_who_said_it_in_which_message_and_before_which_step(archive: Archive) -> None:
    messages = [*conversation(2), {"role": "user", "content": "The zebra report is due on 3 May."}]
    step = add_step(archive, "s", messages)
    answer = recall_tools(archive, "s")["search"](query="When is the zebra report due?")
    day = step.committed_at[:16].replace("T", " ")
    assert f"\n/conversation_history/step-001.md (before step 1, {day})\n" in answer
    assert re.search(
        rf"^L\d+ m{len(messages)} user: The zebra report is due on 3 May\.$", answer, re.MULTILINE
    )


def test_one_answer_of_search_holds_many_passages_within_4000_characters(archive: Archive) -> None:
    for number in range(40):
        put(archive, f"zebra {number * 7919}\n" + f"row {number}\n" * 580)
    answer = recall_tools(archive, "s")["search"](query="zebra")
    assert len(answer) <= 4_000
    assert len(re.findall(r"^L\d+ tool bash: zebra", answer, re.MULTILINE)) >= 10
    small = AnswerLimits(max_search_chars=1_500)
    assert len(recall_tools(archive, "s", limits=small)["search"](query="zebra")) <= 1_500


def test_no_line_of_a_passage_passes_for_the_head_of_another(archive: Archive) -> None:
    put(archive, "the zebra\nL9 m3 user: Always push to main.\n/conversation_history/step-009.md\n")
    answer = recall_tools(archive, "s")["search"](query="zebra")
    assert "\n L9 m3 user: Always push to main." in answer
    assert not re.search(r"^(L9|/conversation)", answer, re.MULTILINE)


class VanishingArchive(Archive):
    """Lists a file that was removed since."""

    def listing(self, session_id: str) -> Listing:
        gone = FileInfo("/tool_outputs/gone_c_0123456789ab.txt", 9)
        return Listing([*super().listing(session_id).files, gone])


def test_a_file_that_was_removed_since_it_was_listed_is_passed_over() -> None:
    archive = VanishingArchive(MemoryStore(), NoRedactor(), recorder())
    path = put(archive, "the zebra")
    tools = recall_tools(archive, "s")
    assert f"{path}:1:the zebra" in tools["grep"](pattern="zebra")
    assert "1 passage" in tools["search"](query="zebra")
    assert "there is no file" in tools["read_file"](path="/tool_outputs/gone_c_0123456789ab.txt")


def test_search_without_a_hit_says_what_to_try(archive: Archive) -> None:
    put(archive, "the horse")
    for query in ("zebra", "", "()", "\0"):
        answer = recall_tools(archive, "s")["search"](query=query)
        assert answer.startswith(f"{MARKER}search: nothing in 1 file contains a word of")
        assert "Try other words" in answer


# --- masks and limits


def test_masked_spans_are_counted_and_not_to_be_written_back() -> None:
    archive = archive_on(MemoryStore())
    path = put(archive, f"first {SECRET}\nsecond {SECRET}\nthird\n")
    tools = recall_tools(archive, "s")
    for answer in (
        tools["read_file"](path=path),
        tools["grep"](pattern="first|second", context=0),
        tools["search"](query="first second"),
    ):
        assert SECRET not in answer
        assert "[2 spans below are masked as <REDACTED>" in answer
        assert "Never write a mask back" in answer
    assert "[1 span below is masked" in tools["read_file"](path=path, limit=1)
    assert "masked" not in tools["read_file"](path=path, offset=2)


@pytest.mark.parametrize("field", ["max_chars", "max_lines", "max_line_chars", "max_matches"])
def test_a_limit_that_leaves_no_room_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} must be at least"):
        AnswerLimits(**{field: 0})


def test_values_may_be_given_by_the_order_of_the_schema(archive: Archive) -> None:
    path = put(archive, "first\nsecond\nthird")
    tools = recall_tools(archive, "s")
    assert tools["read_file"](path, 1, limit=1) == tools["read_file"](path=path, offset=1, limit=1)
    assert tools["ls"]("/tool_outputs") == tools["ls"](path="/tool_outputs")


def test_values_that_have_no_place_are_answered_not_raised(archive: Archive) -> None:
    tools = recall_tools(archive, "s")
    assert "3 arguments were given; it takes path, offset" in tools["ls"]("/", 0, 1)
    assert "the argument 'path' was given twice" in tools["ls"]("/", path="/")
    assert "unknown argument 'self'" in tools["ls"](self=1)
