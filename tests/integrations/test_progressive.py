"""The middleware's own rules, and the archive on a host's filesystem."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.llm import Answer, serving
from support.middleware import MODEL, Files, of_size, says, user, words, write_file

from compact import ArchiveError, CompactConfig, CompactManager, ConfigError, InsufficientBudget
from compact.archive import backend_archive
from compact.config import SummaryConfig
from compact.events import Archival
from compact.middleware import CompactionResult, ContextConfig, ContextManagementMiddleware
from compact.tokens.counter import counter_for

SECRET = "sk-proj-Zq83hFk20dLmWx71TvB5yRn4"
AT_95 = 121_600


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def context(files: Files) -> Iterator[ContextManagementMiddleware]:
    made = ContextManagementMiddleware(filesystem_backend=files)
    yield made
    made.close()


def talk(turns: int = 10) -> list[Any]:
    return [m for n in range(turns) for m in (user(f"Question {n}: {words(700)}"), says(f"Answer {n}."))]


def tight(window: int = 1_000, **settings: Any) -> tuple[ContextManagementMiddleware, Files]:
    """A middleware for a model named `tiny`, and its files."""
    files = Files()
    config = ContextConfig(model_context_limits={"tiny": window}, **settings)
    return ContextManagementMiddleware(config, files), files


# --- names and numbers


def test_the_configuration_has_the_addendums_fields_and_defaults() -> None:
    made = ContextConfig()
    assert {field.name: getattr(made, field.name) for field in fields(made)} == {
        "large_result_tokens": 20_000,
        "compaction_threshold": 0.85,
        "summarization_threshold": 0.95,
        "model_context_limits": {
            "claude-sonnet-4-5-20250929": 200_000,
            "claude-opus-4-5-20251101": 200_000,
            "gpt-4o": 128_000,
            "gpt-4-turbo": 128_000,
            "gemini-1.5-pro": 1_000_000,
        },
        "preview_lines": 10,
        "summarization_model": None,
    }
    assert [field.name for field in fields(CompactionResult)] == [
        "original_tokens",
        "compacted_tokens",
        "tokens_saved",
        "strategy_used",
        "files_created",
    ]
    assert CompactionResult(3, 1, 2, "offload").files_created == []


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o-2024-11-20", 128_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("nobody-knows-it", 128_000),
        ("", 128_000),
        ("tiny", 1_000),
    ],
)
def test_the_window_of_a_model(model: str, limit: int) -> None:
    config = ContextConfig()
    config.model_context_limits["tiny"] = 1_000
    made = ContextManagementMiddleware(config, Files())
    assert made.get_context_limit(model) == limit
    made.close()


@pytest.mark.parametrize("tokenizer", ["cl100k_base", "o200k_base"])
def test_text_is_counted_by_the_tokenizer_that_was_named(tokenizer: str) -> None:
    made = ContextManagementMiddleware(filesystem_backend=Files(), tokenizer=tokenizer)
    text = "Überprüfe bitte 日本語の README.md, <|endoftext|> inclusive."
    assert made.count_tokens(text) == counter_for(tokenizer, fast=False).count(text)
    made.close()


def test_an_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="tokenizer must be one of cl100k_base, o200k_base, got 'p50k_base'"
    ):
        ContextManagementMiddleware(filesystem_backend=Files(), tokenizer="p50k_base")


def test_a_wrong_threshold_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be 0\.0-1\.0, got 1\.7"):
        ContextManagementMiddleware(ContextConfig(compaction_threshold=1.7), Files())


def test_everything_that_is_sent_is_counted(context: ContextManagementMiddleware) -> None:
    """The addendum's own count leaves out what a call carries."""
    content = words(500)
    counted = context.count_message_tokens(write_file("c1", "/a.py", content))
    assert counted > context.count_tokens(content)
    assert context.count_message_tokens([]) == 0


def test_a_call_that_names_no_model_has_the_default_window(context: ContextManagementMiddleware) -> None:
    small = [user("Hello.")]
    assert asyncio.run(context.manage_context(small, "")) is small
    large = [user(" a" * 122_000), *talk(2)]
    after = asyncio.run(context.manage_context(large, ""))
    assert context.count_message_tokens(after) < 30_000


# --- windows of any size


def test_a_tiny_window_works_as_a_large_one() -> None:
    """The host chose the limit: no smallest window, no buffer of 1,500 tokens."""
    context, files = tight()
    small = [user("Hello."), says("Hi.")]
    assert asyncio.run(context.manage_context(small, "tiny")) is small
    messages = [m for n in range(10) for m in (user(f"Question {n} {words(60)}"), says(f"Answer {n}."))]
    after = asyncio.run(context.manage_context([*messages, user("Go on.")], "tiny"))
    assert context.count_message_tokens(after) < 1_000
    assert after[-1] == user("Go on.")
    pages = [path for path in files.ls("/conversation_history/") if "_step-001_" in path]
    assert {path.rpartition(".")[2] for path in pages} == {"jsonl", "md"}
    context.close()


def test_what_must_stay_and_does_not_fit_is_an_error() -> None:
    context, _ = tight()
    messages = [{"role": "system", "content": words(500)}, user("Hello.")]
    with pytest.raises(InsufficientBudget, match="system prompt"):
        asyncio.run(context.manage_context(messages, "tiny"))
    context.close()


SUMMARY_SETTINGS = {
    "model": "gpt-4o-mini",
    "base_url": "http://127.0.0.1:9/v1",
    "max_tokens": 700,
    "prompt": "Just one sentence, please.",
    "summary_tag": "memo",
    "seed": 7,
    "temperature": 0.5,
    "timeout_s": 3.0,
    "max_reply_bytes": 90_000,
    "fallback": "pruning-only",
}


def test_the_model_that_writes_summaries_is_handed_on() -> None:
    assert set(SUMMARY_SETTINGS) == set(SummaryConfig.model_fields)
    for key, value in SUMMARY_SETTINGS.items():
        context, _ = tight(summarization_model={"model": "gpt-4o-mini", key: value})
        assert getattr(context.manager.config.summary, key) == value
        context.close()


def test_the_model_that_writes_summaries_is_asked_as_it_was_set() -> None:
    said = "They counted questions and answered each of them in turn, without any trouble at all."
    with serving(Answer(f"<memo>{said}</memo>")) as endpoint:
        settings = {**SUMMARY_SETTINGS, "base_url": endpoint.base_url, "prompt": "Write a <{{summary_tag}}>."}
        context, _ = tight(6_000, summarization_model=settings)
        after = asyncio.run(context.manage_context([*talk(6), user("Go on.")], "tiny"))
        (asked,) = endpoint.requests
        assert (asked["model"], asked["seed"], asked["temperature"]) == ("gpt-4o-mini", 7, 0.5)
        assert asked["messages"][0]["content"] == "Write a <memo>."
        assert any(said in str(message["content"]) for message in after)
        context.close()


@pytest.mark.parametrize(
    ("settings", "named", "hint"),
    [
        ({"model": "m", "provider": "openai"}, "provider", "base_url"),
        ({"model": "m", "api_key": "sk-1"}, "api_key", "OPENAI_API_KEY"),
        ({"model": "m", "max_token": 5}, "max_token", ""),
        ({"model": "m", "options": {}}, "options", ""),
        ({"name": "m"}, "name", ""),
        ({1: "m"}, "1", ""),
        ({"base_url": "http://127.0.0.1:9/v1"}, "model", ""),
        ({"model": ""}, "model", ""),
        ({"model": None}, "model", ""),
        ({}, "model", ""),
        ("gpt-4o-mini", "a dict", ""),
        (["gpt-4o-mini"], "a dict", ""),
    ],
    ids=str,
)
def test_a_setting_of_the_summarizing_model_that_means_nothing_is_refused_by_name(
    settings: Any, named: str, hint: str
) -> None:
    with pytest.raises(ConfigError, match="summarization_model") as caught:
        ContextManagementMiddleware(ContextConfig(summarization_model=settings), Files())
    assert named in str(caught.value)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("session_id", ["", 42, b"id"])
def test_a_session_id_that_is_no_text_is_refused_at_once(session_id: Any) -> None:
    with pytest.raises(ConfigError, match="session_id must be a text"):
        ContextManagementMiddleware(filesystem_backend=Files(), session_id=session_id)


# --- a host's filesystem that does not take things


def test_a_result_that_cannot_be_stored_stays(context: ContextManagementMiddleware, files: Files) -> None:
    files.broken = True
    large = " a" * 20_001
    assert context.process_tool_result(large, "query", "call_1") is large
    with pytest.raises(ArchiveError, match=r"did not take /tool_outputs/query_call_1_\w+\.txt: OSError"):
        context.offload_large_result(large, "query", "call_1")
    assert context.history == []


def test_a_conversation_that_cannot_be_stored_stays(
    context: ContextManagementMiddleware, files: Files
) -> None:
    """While it fits it is sent as it is; when it does not fit, the error says why."""
    files.broken = True
    fits = of_size(talk(), AT_95)
    assert asyncio.run(context.manage_context(fits, MODEL)) == fits
    with pytest.raises(ArchiveError, match="did not take /conversation_history/"):
        asyncio.run(context.manage_context(of_size(talk(), 130_000), MODEL))
    files.broken = False
    after = asyncio.run(context.manage_context(of_size(talk(), 130_000), MODEL))
    assert context.count_message_tokens(after) < 30_000


class Refusing(Files):
    """A filesystem that does not raise when it fails: it answers."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def write_file(self, path: str, content: str) -> Any:
        return self.answer


async def _write_later() -> None:
    raise OSError("not now")


@pytest.mark.parametrize(
    "answer",
    [
        False,
        "Error: file exists",
        {"error": "quota"},
        SimpleNamespace(error="permission_denied"),
        "coroutine",
    ],
    ids=["false", "text", "mapping", "object", "coroutine"],
)
def test_an_answer_that_says_no_is_an_error(answer: Any) -> None:
    """A pointer to a file that was never written would lose the text."""
    backend = Refusing(_write_later() if answer == "coroutine" else answer)
    archive = backend_archive(backend)
    with pytest.raises(ArchiveError, match="did not take /tool_outputs/"):
        archive.put_output("s", "text", tool_name="query", tool_call_id="c1")
    assert archive.files("s") == []


@pytest.mark.parametrize("answer", [None, True, "Wrote it", {"error": None}, {}, SimpleNamespace(error=None)])
def test_an_answer_that_says_yes_is_none(answer: Any) -> None:
    archive = backend_archive(Refusing(answer))
    assert archive.put_output("s", "text", tool_name="query", tool_call_id="c1").new


@pytest.mark.parametrize(
    "backend", [object(), "/tmp/files", {"write_file": print}], ids=["object", "text", "dict"]
)
def test_an_object_without_write_file_is_refused_at_once(backend: Any) -> None:
    with pytest.raises(ConfigError, match="write_file"):
        ContextManagementMiddleware(filesystem_backend=backend)


# --- the archive on it


def manager_on(files: Files, **settings: Any) -> CompactManager:
    config = CompactConfig(max_context_tokens=8_000, **settings)
    return CompactManager(config, archive=backend_archive(files))


def test_the_manager_takes_a_hosts_filesystem_as_its_archive(files: Files) -> None:
    with manager_on(files) as manager:
        messages = talk(6)
        manager.preflight("s", messages)
        (exact, page) = files.ls("/conversation_history/")
        assert re.fullmatch(r"/conversation_history/s_step-001_[0-9a-f]{12}\.md", page)
        assert exact == page.removesuffix(".md") + ".jsonl"
        assert manager.archive.restore("s").messages == messages
        assert manager.archive.verify("s") == []
        found = manager.recovery_tools("s")["read_file"](path=page)
        assert "Question 0" in found
        archived = [e.properties for e in manager.archive.events("s") if isinstance(e.properties, Archival)]
        assert page in [each.file_path for each in archived]
        assert {each.storage_adapter for each in archived} == {"backend"}


def test_the_same_output_is_written_once(files: Files) -> None:
    archive = backend_archive(files)
    paths = {archive.put_output("s", "text", tool_name="query", tool_call_id=call).path for call in "ab"}
    assert paths == set(files.files)
    assert len(paths) == 1


def test_what_the_host_gets_is_masked(context: ContextManagementMiddleware, files: Files) -> None:
    context.offload_large_result(f"key={SECRET}\n" + words(2_000), "query", SECRET)
    before = of_size([user(f"My key is {SECRET}."), *talk()], AT_95)
    asyncio.run(context.manage_context(before, MODEL))
    assert sorted(path.split("/")[1] for path in files.files) == [
        *[".compact"] * 4,
        "conversation_history",
        "conversation_history",
        "tool_outputs",
    ]
    assert all(SECRET not in path + text for path, text in files.files.items())


def test_a_step_is_made_only_after_the_host_has_its_conversation(files: Files) -> None:
    """The host fails on the page, the last thing before the commit: nothing has changed, and the next try works."""
    refused: list[str] = []

    class FailsOnce(Files):
        def write_file(self, path: str, content: str) -> str:
            if path.endswith(".md") and not refused:
                refused.append(path)
                raise OSError("not now")
            return super().write_file(path, content)

    backend = FailsOnce()
    with manager_on(backend) as manager:
        messages = talk(6)
        with pytest.raises(ArchiveError):
            manager.preflight("s", messages)
        assert manager.archive.steps("s") == []
        after = manager.preflight("s", messages)
        assert manager.archive.steps("s") == [1]
        assert len(after) < len(messages)
        assert refused == [path for path in backend.ls("/conversation_history/") if path.endswith(".md")]
