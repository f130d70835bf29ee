"""The progressive compaction addendum: its ten tests by their names, then its acceptance list, with its own numbers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.middleware import MODEL, WINDOW, Files, of_size, says, user, words, write_file

from compact.checks import violations
from compact.middleware import CompactionResult, ContextManagementMiddleware
from compact.tokens import estimate

AT_85, AT_95, RECENT_20 = 108_800, 121_600, 25_600
SECTIONS = ("Session Intent", "Progress So Far", "Key Decisions", "Current State", "Next Steps")


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def context(files: Files) -> Iterator[ContextManagementMiddleware]:
    made = ContextManagementMiddleware(filesystem_backend=files)
    yield made
    made.close()


class Agent:
    """An agent that summarizes as it is asked to: the headings it finds in its instructions, and a word of its own."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def run(self, request: dict[str, Any], stateless: bool = False) -> str:
        assert stateless
        self.asked.append(request)
        instructions = request["messages"][0]["content"].splitlines()
        return "\n".join(f"{line}\nas agreed" for line in instructions if line.startswith("## "))


def talk(turns: int = 10, size: int = 300) -> list[Any]:
    """Turns of words only, which no reversible stage can reduce."""
    return [
        message
        for n in range(turns)
        for message in (user(f"Question {n}: {words(size, f'q{n}x')}"), says(f"Answer {n}: {words(size)}"))
    ]


def lines(count: int) -> str:
    """A tool's output of lines that can be told apart, of about ten tokens each."""
    return "\n".join(f"row {n:06d}: value {n * 7}" for n in range(1, count + 1))


def managed(context: ContextManagementMiddleware, messages: list[Any], agent: Any = None) -> list[Any]:
    return asyncio.run(context.manage_context(messages, MODEL, agent))


def test_large_result_offload(context: ContextManagementMiddleware, files: Files) -> None:
    """20,000 tokens stay; one more goes to a file at once, whole."""
    fits, large = " a" * 20_000, " a" * 20_001
    assert [context.should_offload_result(text) for text in (fits, large)] == [False, True]
    assert context.process_tool_result(fits, "query", "call_1") is fits
    assert files.files == {}
    shown = context.process_tool_result(large, "query", "call_1")
    (path,) = files.ls("/tool_outputs/")
    assert files.read_file(path) == large
    assert path in shown
    assert context.count_tokens(shown) < 1_000


def test_offload_creates_preview(context: ContextManagementMiddleware, files: Files) -> None:
    """The first 10 lines, the path, and how to read the rest."""
    text = lines(3_000)
    path, shown = context.offload_large_result(text, "query", "call_1")
    assert files.read_file(path) == text
    assert all(f"row {n:06d}" in shown for n in range(1, 11))
    assert "row 000011" not in shown
    assert f'read_file("{path}")' in shown


def test_compaction_threshold(context: ContextManagementMiddleware) -> None:
    """One token below 85% of the window nothing happens; at 85% it does."""
    messages = [*talk(3), *write_file("c1", "/a.py", words(3_000)), *talk(3)]
    below = of_size(messages, AT_85 - 1)
    assert context.compact_messages(below, MODEL) is below
    assert managed(context, below) is below
    assert context.history == []
    reached = of_size(messages, AT_85)
    assert estimate(context.compact_messages(reached, MODEL), MODEL).total < AT_85


def test_file_write_compaction(context: ContextManagementMiddleware, files: Files) -> None:
    """A written file's content becomes a pointer; the call, its path and its result stay."""
    content = words(3_000)
    call, result = write_file("c1", "/src/a.py", content)
    before = of_size([*talk(3), call, result, *talk(3)], AT_85)
    after = context.compact_messages(before, MODEL)
    assert len(after) == len(before)
    part = after[7]["content"][0]
    assert (part["toolName"], part["args"]["path"]) == ("write_file", "/src/a.py")
    (path,) = files.ls("/tool_outputs/")
    assert path in part["args"]["content"]
    assert files.read_file(path) == content
    assert call["content"][0]["args"]["content"] is content, "the host's own message is untouched"
    assert [after[n] is before[n] for n in range(len(before))].count(False) == 1
    assert violations(after) == []


def test_summarization_threshold(context: ContextManagementMiddleware, files: Files) -> None:
    """Words that nothing else can reduce are summarized at 95% of the window, not one token before."""
    below = of_size(talk(), AT_95 - 1)
    assert asyncio.run(context.summarize_conversation(below, MODEL)) is below
    assert managed(context, below) is below
    assert files.files == {}
    fresh = ContextManagementMiddleware(filesystem_backend=Files())
    after = managed(fresh, of_size(talk(), AT_95))
    assert estimate(after, MODEL).total < AT_85
    assert list(fresh.get_compaction_stats()["by_strategy"]) == ["summarize"]
    fresh.close()


def test_summary_structure(context: ContextManagementMiddleware) -> None:
    """An agent is asked for the addendum's sections, and what it wrote stands in the context as an assistant's message."""
    agent = Agent()
    after = asyncio.run(context.summarize_conversation(of_size(talk(), AT_95), MODEL, agent))
    (request,) = agent.asked
    assert all(f"## {section}" in request["messages"][0]["content"] for section in SECTIONS)
    (summary,) = [m for m in after if "<COMPACT-SUMMARY" in str(m["content"])]
    assert summary["role"] == "assistant"
    assert all(f"## {section}\nas agreed" in summary["content"] for section in SECTIONS)


def test_original_preserved(context: ContextManagementMiddleware, files: Files) -> None:
    """The conversation before the summary is on the host's filesystem: as a page, and message for message."""
    before = of_size(talk(), AT_95)
    managed(context, before)
    (page,) = [path for path in files.ls("/conversation_history/") if path.endswith(".md")]
    assert "Question 3: q3x0" in files.read_file(page)
    (exact,) = [path for path in files.ls("/conversation_history/") if path.endswith(".jsonl")]
    assert [json.loads(line) for line in files.read_file(exact).splitlines()] == before


def test_recent_messages_kept(context: ContextManagementMiddleware) -> None:
    """The newest messages stay as they are, as many as fit into 20% of the window; all older ones are summarized."""
    before = of_size(talk(20, 700), AT_95)
    after = managed(context, before)
    recent = after[1:]
    assert all(a is b for a, b in zip(recent, before[-len(recent) :], strict=True))
    size = estimate(recent, MODEL).total
    one_more = estimate(before[-len(recent) - 1 :], MODEL).total
    assert size <= RECENT_20 < one_more
    assert "<COMPACT-SUMMARY v1>" in after[0]["content"]


def test_recovery_via_grep(context: ContextManagementMiddleware, files: Files) -> None:
    """What the summary left out is found with the host's own tools."""
    needle = "The staging password rotates on Thursdays."
    before = of_size([user(needle), says("Noted."), *talk()], AT_95)
    after = managed(context, before)
    named = [path for path in files.ls("/conversation_history/") if path in after[0]["content"]]
    assert len(named) == 1, "the summary says where the rest is"
    (found, *_) = files.grep("rotates on", "/conversation_history/")
    assert needle in found


def test_stats_tracking(context: ContextManagementMiddleware) -> None:
    """One entry for each operation, with what it saved and the files that it made."""
    context.process_tool_result(lines(3_000), "query", "call_1")
    messages = [*talk(3), *write_file("c1", "/a.py", words(3_000)), *talk(3)]
    compacted = context.compact_messages(of_size(messages, AT_85), MODEL)
    managed(context, [*compacted, user(words(9_000)), says("Done."), user("Go on.")])
    strategies = [result.strategy_used for result in context.history]
    assert strategies == ["offload", "compact", "summarize"]
    for result in context.history:
        assert isinstance(result, CompactionResult)
        assert result.tokens_saved == result.original_tokens - result.compacted_tokens > 0
        assert result.files_created
    stats = context.get_compaction_stats()
    assert stats["compaction_events"] == 3
    assert stats["by_strategy"] == {r.strategy_used: r.tokens_saved for r in context.history}
    assert stats["total_tokens_saved"] == sum(r.tokens_saved for r in context.history)


class TestAcceptance:
    """The acceptance list, line by line, where the tests above do not say it already."""

    def test_large_tool_results_are_offloaded_when_they_come_in_a_message_too(
        self, context: ContextManagementMiddleware, files: Files
    ) -> None:
        """Whatever the total: 30,000 tokens are 23% of the window."""
        call = {"type": "tool-call", "toolCallId": "c1", "toolName": "query", "args": {}}
        result = {"type": "tool-result", "toolCallId": "c1", "toolName": "query", "result": lines(3_000)}
        messages = [
            user("Look it up."),
            {"role": "assistant", "content": [call]},
            {"role": "tool", "content": [result]},
        ]
        assert 20_000 < estimate(messages, MODEL).total < AT_85
        after = managed(context, messages)
        (path,) = files.ls("/tool_outputs/")
        assert path.startswith("/tool_outputs/query_c1_")
        assert files.read_file(path) == lines(3_000)
        assert path in after[2]["content"][0]["result"]

    def test_without_an_agent_the_summary_holds_what_was_asked_and_what_was_done(
        self, context: ContextManagementMiddleware
    ) -> None:
        ask, done = "Migrate the billing tables to Postgres 16.", "I wrote migrations/0042_billing.sql."
        before = of_size([user(ask), says(done), *talk(8, 700)], AT_95)
        summary = managed(context, before)[0]["content"]
        assert ask in summary
        assert done in summary

    def test_edit_file_content_is_replaced_by_a_pointer(
        self, context: ContextManagementMiddleware, files: Files
    ) -> None:
        text = words(3_000)
        (call, result) = write_file("c1", "/a.py", "")
        part = {
            **call["content"][0],
            "toolName": "edit_file",
            "args": {"path": "/a.py", "new_text": text, "old_text": "x"},
        }
        result["content"][0]["toolName"] = "edit_file"
        edit = {"role": "assistant", "content": [part]}
        after = context.compact_messages(of_size([*talk(3), edit, result, *talk(3)], AT_85), MODEL)
        arguments = after[7]["content"][0]["args"]
        (path,) = files.ls("/tool_outputs/")
        assert path in arguments["new_text"]
        assert arguments["old_text"] == "x"

    def test_the_reversible_stages_alone_never_summarize(self, context: ContextManagementMiddleware) -> None:
        """`compact_messages` on a list far over its window gives back every message, smaller or not."""
        messages = [*talk(3), *write_file("c1", "/a.py", words(3_000)), *talk(3)]
        before = of_size(messages, WINDOW + 40_000)
        after = context.compact_messages(before, MODEL)
        assert len(after) == len(before)
        assert estimate(after, MODEL).total > WINDOW
        assert set(context.get_compaction_stats()["by_strategy"]) == {"compact"}

    def test_the_system_prompt_explains_recovery(self, context: ContextManagementMiddleware) -> None:
        segment = context.get_system_prompt_segment()
        for word in ("/tool_outputs/", "/conversation_history/", "read_file(", "grep(", "ls("):
            assert word in segment

    def test_all_operations_are_reversible(self, context: ContextManagementMiddleware, files: Files) -> None:
        """From the files alone, everything that was ever taken out can be put back."""
        output = lines(3_000)
        shown = context.process_tool_result(output, "query", "call_1")
        content = words(3_000)
        first = of_size([*talk(3), *write_file("c1", "/a.py", content), user(shown), *talk(3)], AT_85)
        compacted = context.compact_messages(first, MODEL)
        second = [*compacted, user(words(9_000)), says("Done."), user("Go on.")]
        managed(context, second)
        assert {output, content} <= set(files.files.values())
        kept = [
            files.read_file(path) for path in files.ls("/conversation_history/") if path.endswith("jsonl")
        ]
        stored = [[json.loads(line) for line in text.splitlines()] for text in kept]
        assert stored == [first, second]


def test_without_a_backend_everything_lies_in_the_configured_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    context = ContextManagementMiddleware()
    path, _ = context.offload_large_result(lines(3_000), "query", "call_1")
    (session,) = context.manager.archive.sessions()
    assert (tmp_path / ".compact/archive" / session / path.lstrip("/")).read_text() == lines(3_000)
    assert "row 002999" in context.recovery_tools()["grep"](pattern="row 002999", path=path)
    context.close()
