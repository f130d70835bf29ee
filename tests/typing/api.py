"""What an editor infers for documented usage. mypy checks this file with `make check`; nothing runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, assert_type

from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

import compact
from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.archive.recall import RecallTool
from compact.messages.hygiene import Repair
from compact.middleware import CompactionResult, ContextManagementMiddleware
from compact.summaries.request import SummaryRequest
from compact.tokens.windows import WindowVerdict

Dicts = list[dict[str, Any]]


# --- what goes in comes out


def the_type_of_a_message_is_kept(manager: CompactManager, messages: Dicts) -> None:
    assert_type(manager.preflight("s", messages), Dicts)
    assert_type(manager.preflight("s", tuple(messages), tools=[], system="Be brief.", model="o3"), Dicts)
    assert_type(manager.manual_compact("s", messages, note="user-requested"), Dicts)
    assert_type(manager.reduce("s", messages), Dicts)


def an_sdks_own_types_are_kept(manager: CompactManager, messages: list[ChatCompletionMessageParam]) -> None:
    kept = manager.preflight("s", messages)
    assert_type(kept, list[ChatCompletionMessageParam])
    OpenAI().chat.completions.create(model="gpt-4o", messages=kept)


async def the_async_twins_are_typed_alike(manager: CompactManager, messages: Dicts) -> None:
    assert_type(await manager.apreflight("s", messages), Dicts)
    assert_type(await manager.amanual_compact("s", messages), Dicts)
    assert_type(await manager.manage_context(messages, "gpt-4o"), Dicts)
    assert_type(await manager.aclose(), None)


def settings_are_keywords_of_the_manager(config: CompactConfig) -> None:
    manager = CompactManager(model="gpt-4o", policy={"trigger_pct": 0.5}, archive={"adapter": "memory"})
    assert_type(CompactManager(config, max_context_tokens=9_000), CompactManager)
    assert_type(manager.estimate([], model="o3").total, int)
    assert_type(manager.reset("s"), None)


# --- clients and replies


def a_wrapped_client_is_what_it_was(manager: CompactManager) -> None:
    assert_type(manager.wrap(OpenAI()), OpenAI)
    assert_type(manager.wrap(AsyncOpenAI(), session_id="s"), AsyncOpenAI)
    assert_type(manager.wrap(Anthropic()), Anthropic)


def a_call_returns_what_the_function_returns(
    manager: CompactManager, messages: list[ChatCompletionMessageParam]
) -> None:
    def send(kept: list[ChatCompletionMessageParam]) -> ChatCompletion:
        return OpenAI().chat.completions.create(model="gpt-4o", messages=kept)

    assert_type(manager.call("s", messages, send), ChatCompletion)


async def an_async_call_awaits_the_function(
    manager: CompactManager, messages: list[ChatCompletionMessageParam]
) -> None:
    async def send(kept: list[ChatCompletionMessageParam]) -> ChatCompletion:
        return await AsyncOpenAI().chat.completions.create(model="gpt-4o", messages=kept)

    assert_type(await manager.acall("s", messages, send), ChatCompletion)


# --- single operations


def single_operations(manager: CompactManager, messages: Dicts) -> None:
    assert_type(manager.process_tool_result("output", "query", "call_1"), str)
    assert_type(manager.offload("output", "query", "call_1").path, str)
    assert_type(manager.estimate(messages).total, int)
    assert_type(manager.observe("s", input_tokens=1200), None)
    assert_type(manager.get_system_prompt_segment(), str)
    assert_type(manager.recall_tools("s"), dict[str, RecallTool])
    assert_type(manager.recall_tools()["grep"](pattern="TODO"), str)
    assert_type(manager.archive.steps("s"), list[int])


def a_tenant_is_named_in_a_call_or_once(manager: CompactManager, messages: Dicts) -> None:
    assert_type(manager.preflight("s", messages, tenant="acme"), Dicts)
    assert_type(manager.manual_compact("s", messages, tenant="acme"), Dicts)
    assert_type(manager.call("s", messages, len, tenant="acme"), int)
    assert_type(manager.estimate(messages, tenant="acme").total, int)
    assert_type(manager.offload("output", "query", "call_1", "s", tenant="acme").path, str)
    assert_type(manager.recall_tools("s", tenant="acme"), dict[str, RecallTool])
    assert_type(manager.for_tenant("acme"), CompactManager)
    assert_type(manager.for_tenant("acme").archive.sessions(), list[str])
    assert_type(manager.archive.for_tenant("acme").steps("s"), list[int])
    assert_type(manager.archive.tenants(), list[str])
    assert_type(manager.wrap(OpenAI(), tenant="acme"), OpenAI)
    assert_type(CompactManager(tenant="acme").tenant, str | None)
    manager.preflight("s", messages, tenant=7)  # type: ignore[arg-type]


def statistics(manager: CompactManager) -> None:
    stats = manager.get_compaction_stats()
    assert_type(stats["total_tokens_saved"], int)
    assert_type(stats["by_strategy"], dict[str, int])
    _ = stats["tokens_saved"]  # type: ignore[typeddict-item]


# --- configuration


def settings() -> None:
    config = CompactConfig(model="gpt-4o", max_context_tokens=128_000, policy={"trigger_pct": 0.9})
    assert_type(config.policy.trigger_pct, float)
    assert_type(config.policy.layout, Literal["layered", "selective"])
    assert_type(config.archive.adapter, Literal["fs", "object_store", "s3", "memory"])
    assert_type(CompactConfig.load(Path("compact.yaml"), model="o3"), CompactConfig)
    assert_type(CompactConfig.preset("progressive"), CompactConfig)
    assert_type(config.sources["model"], str)
    CompactConfig(modle="gpt-4o")  # type: ignore[call-arg]
    CompactConfig(max_context_tokens="128000")  # type: ignore[arg-type]


class Files:
    """A host's filesystem, which serves as an archive."""

    def write_file(self, path: str, content: str) -> None: ...


def summarize(request: SummaryRequest) -> str:
    return f"{len(request.messages)} messages"


async def summarize_later(request: SummaryRequest) -> str:
    return summarize(request)


def parts_of_a_manager_can_be_replaced() -> None:
    with CompactManager(CompactConfig(), archive=Files(), summarizer=summarize) as manager:
        assert_type(manager, CompactManager)
    CompactManager(summarizer=summarize_later, stages=compact.DEFAULT_STAGES[:2])
    CompactManager(archive=object())  # type: ignore[arg-type]
    CompactManager(summarizer="extractive")  # type: ignore[arg-type]


# --- the face


def pure_functions(messages: Dicts) -> None:
    assert_type(compact.hygiene.repair_tool_pairs(messages), Repair)
    assert_type(compact.windows.check_window(128_000), WindowVerdict)
    assert_type(compact.cuts.compressible_run(messages, 6), range | None)
    assert_type(compact.redaction.Redactor(rules="default").redact("text"), str)
    _ = compact.nonsense  # type: ignore[attr-defined]


def errors(manager: CompactManager, messages: Dicts) -> None:
    try:
        manager.preflight("s", messages)
    except InsufficientBudget as error:
        assert_type(error.code, str)
        assert_type(error.hint, str)


def the_addendums_names(messages: Dicts) -> None:
    context = ContextManagementMiddleware(filesystem_backend=Files())
    assert_type(context.process_tool_result("output", "query", "call_1"), str)
    assert_type(context.history, list[CompactionResult])
