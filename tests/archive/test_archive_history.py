"""The readable transcript."""

from __future__ import annotations

from support.archive import SECRET, add_step, archive_on, conversation

from compact.archive import MemoryStore
from compact.archive.pages import render_history


def test_a_conversation_reads_as_markdown() -> None:
    assert render_history(conversation(1), "chat", "s: the conversation before step 1") == (
        "# s: the conversation before step 1\n\n"
        "## 1. system\n\nYou are careful.\n\n"
        "## 2. user\n\nRead file number 0, bitte schön.\n\n"
        "## 3. assistant\n\n**calls `read_file`** (call_0)\n\n```json\n{}\n```\n\n"
        "## 4. tool\n\n**result of** call_0\n\n```\nline 0\nüber 日本 \U0001f600\n```\n\n"
        "## 5. assistant\n\nDone.\n"
    )


def test_text_with_fences_cannot_break_out_of_its_fence() -> None:
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "````\ncode\n````"},
    ]  # fmt: skip
    assert "`````\n````\ncode\n````\n`````" in render_history(messages, "chat", "t")


def test_anthropic_blocks_pictures_and_reasoning_are_shown() -> None:
    messages = [
        {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hmm", "signature": "x"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}]},
    ]  # fmt: skip
    shown = render_history(messages, "anthropic", "t")
    assert "characters inline]" in shown
    assert "**reasoning**\n\nhmm" in shown
    assert "**calls `look`** (t1)" in shown
    assert "**error of** t1\n\n```\ngone\n```" in shown
    assert "AAAA" not in shown


def test_what_no_dialect_can_read_is_shown_as_json() -> None:
    assert '```json\n{"odd":1}\n```' in render_history([{"odd": 1}], "chat", "t")


def test_an_agent_finds_it_under_the_path_that_the_attempt_promised() -> None:
    archive = archive_on(MemoryStore())
    messages = [*conversation(1), {"role": "user", "content": f"the key is {SECRET}"}]
    attempt = archive.begin("s", messages, dialect="chat", after=0)
    attempt.commit(summary={}, state={})
    assert attempt.history_path == "/conversation_history/step-001.md"
    text = archive.read_text("s", attempt.history_path)
    assert "bitte schön" in text
    assert SECRET not in text


def test_each_step_has_its_own() -> None:
    archive = archive_on(MemoryStore())
    add_step(archive, "s")
    add_step(archive, "s")
    assert [info.path for info in archive.files("s")] == [
        "/conversation_history/step-001.md",
        "/conversation_history/step-002.md",
    ]
