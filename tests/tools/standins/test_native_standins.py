"""Compaction by the providers themselves, as their pages document it: every refusal has a request here that produces it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types.beta import BetaCompactionBlock
from openai.types.responses import (
    CompactedResponse,
    ResponseCompactionItem,
    ResponseOutputMessage,
    ResponseOutputText,
)

from compact.tools.standins import Call, Provider, Refusal, Reply, Rules, Summary, serving

Item = dict[str, Any]
MODEL, GPT, BETA = "claude-fable-5-1", "gpt-5.5", "compact-2026-09-04"
TOOLS: list[Any] = [
    {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
]


def claude(provider: Provider) -> Any:
    return anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0)


def gpt(provider: Provider) -> Any:
    return openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)


def ask(client: Any, messages: list[Item], **more: Any) -> Any:
    request = {
        "system": "Be brief.",
        "tools": TOOLS,
        "betas": [BETA],
        "max_tokens": 100,
        "model": MODEL,
        **more,
    }
    return client.beta.messages.create(messages=messages, **request)


def compacted(client: Any, messages: list[Item], **more: Any) -> Any:
    return ask(client, messages, compaction={"type": "summarize"}, **more)


def said(reply: Any) -> Item:
    return {"role": "assistant", "content": [block.to_dict() for block in reply.content]}


def grown(client: Any, turns: int) -> list[Item]:
    """A conversation with thinking in every reply, up to the last one."""
    found: list[Item] = []
    for n in range(turns):
        found.append({"role": "user", "content": f"Question {n}"})
        found.append(said(ask(client, found)))
    return found


def think(request: Any) -> Reply:
    return Reply(f"Answer {request.number}.", thinking=f"Thought {request.number}.")


def test_a_block_comes_back_alone_and_is_billed_beside_the_reply() -> None:
    with serving(think) as provider, claude(provider) as client:
        reply = compacted(client, grown(client, 3))
        (block,) = reply.content
        assert isinstance(block, BetaCompactionBlock)
        assert block.content == "Summary of the conversation: 6 messages."
        assert block.signature
        assert reply.stop_reason == "compaction"
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (0, 0)
        (spent,) = reply.usage.iterations
        assert spent.type == "compaction"
        assert spent.input_tokens == provider.requests[-1].tokens > 0


def test_a_streamed_block_arrives_whole() -> None:
    with serving(think) as provider, claude(provider) as client:
        history = grown(client, 1)
        request: Any = {"model": MODEL, "max_tokens": 99, "messages": history, "betas": [BETA]}
        request |= {"system": "Be brief.", "tools": TOOLS}
        with client.beta.messages.stream(**request, compaction={"type": "summarize"}) as stream:
            kinds = [event.type for event in stream]
            reply = stream.get_final_message()
        assert "content_block_delta" not in kinds
        assert reply.content[0].signature
        assert reply.stop_reason == "compaction"


def test_thinking_behind_a_block_stays_valid_also_after_a_second_one() -> None:
    with serving(think) as provider, claude(provider) as client:
        history = grown(client, 6)
        for _ in range(2):
            block = said(compacted(client, history[:6]))
            history = [block, *history[6:]]
            for n in range(4):
                history.append({"role": "user", "content": f"More {n}"})
                history.append(said(ask(client, history)))
        assert provider.refused == []


def system_changed(request: Item) -> None:
    request["system"] = "Be verbose."


def between(request: Item) -> None:
    request["messages"].insert(1, {"role": "user", "content": "Something new."})


def skipped(request: Item) -> None:
    del request["messages"][1:3]


def block_gone(request: Item) -> None:
    del request["messages"][0]


def other_maker(request: Item) -> None:
    request["maker"] = "claude-opus-5"


def cut_between_equal_roles(request: Item) -> None:
    request["cut"] = 3


@pytest.mark.parametrize(
    "change", [system_changed, between, skipped, block_gone, other_maker, cut_between_equal_roles]
)
def test_thinking_behind_a_block_is_refused_where_its_conditions_do_not_hold(
    change: Callable[[Item], None],
) -> None:
    with serving(think) as provider, claude(provider) as client:
        history = grown(client, 5)
        history.append({"role": "user", "content": "And now?"})
        cut, maker = 4, MODEL
        if change is cut_between_equal_roles:
            history = [*history[:3], {"role": "user", "content": "One more thing."}]
            history.append(said(ask(client, history)))
            history.append({"role": "user", "content": "And now?"})
            cut = 3
        if change is other_maker:
            maker = "claude-opus-5"
        block = said(compacted(client, history[:cut], model=maker))
        request: Item = {"messages": [block, *history[cut:]], "system": "Be brief."}
        change(request)
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            ask(client, request["messages"], system=request["system"])
        before = len(provider.refused)
        plain = [
            {**m, "content": [b for b in m["content"] if b["type"] != "thinking"]}
            if isinstance(m["content"], list)
            else m
            for m in request["messages"]
        ]
        if change is not block_gone:
            ask(client, plain, system=request["system"])
        assert len(provider.refused) == before


def refusal(client: Any, messages: list[Item], **more: Any) -> Any:
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client, messages, **more)
    return caught.value


def code_of(problem: Any) -> str | None:
    details = problem.body["error"].get("details") or {}
    found: str | None = details.get("error_code")
    return found


def test_what_anthropic_refuses_of_a_block() -> None:
    with serving(think) as provider, claude(provider) as client:
        history = grown(client, 3)
        block = said(compacted(client, history[:4]))
        rest = [*history[4:], {"role": "user", "content": "Go on."}]
        ask(client, [block, *rest])
        assert code_of(refusal(client, [*history[:2], block, *rest])) == "compaction_block_misplaced"
        assert "at most one signed" in str(refusal(client, [block, block, *rest]))
        assert code_of(refusal(client, [changed(block, "signature", "AAAA.BBBB.c.d.e.f"), *rest])) == (
            "compaction_signature_invalid"
        )
        assert code_of(refusal(client, [changed(block, "content", "Another one."), *rest])) == (
            "compaction_content_mismatch"
        )
        assert "citations: Extra inputs are not permitted" in str(
            refusal(client, [changed(block, "citations", None), *rest])
        )
        assert "does not match any of the expected tags" in str(refusal(client, [block, *rest], betas=[]))
        edits = {"edits": [{"type": "compact_20260112"}]}
        assert "compact_20260112" in str(refusal(client, [block, *rest], context_management=edits))


def changed(message: Item, key: str, value: Any) -> Item:
    found = copy.deepcopy(message)
    found["content"][0][key] = value
    return found


def test_a_block_of_another_account_is_refused() -> None:
    with (
        serving(think) as provider,
        serving(think, rules=Rules(signing_key=b"another")) as other,
        claude(provider) as client,
        claude(other) as foreign,
    ):
        block = said(compacted(foreign, [{"role": "user", "content": "Hello."}]))
        problem = refusal(client, [block, {"role": "user", "content": "Go on."}])
        assert code_of(problem) == "compaction_signature_invalid"


REQUESTS: dict[str, tuple[Item, str]] = {
    "no header": ({"betas": []}, f"requires anthropic-beta: {BETA}"),
    "context management": ({"context_management": {"edits": [{"type": "x"}]}}, "context_management"),
    "stop sequences": ({"stop_sequences": ["x"]}, "stop_sequences"),
    "a forced tool": ({"tool_choice": {"type": "any"}}, "tool_choice"),
    "a format": ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, "output_config"),
    "long instructions": ({"compaction": {"type": "summarize", "instructions": "x" * 16_385}}, "16384"),
    "another type": ({"compaction": {"type": "drop"}}, "summarize"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_anthropic_refuses_of_a_request_for_a_summary(name: str) -> None:
    more, words = REQUESTS[name]
    with serving(think) as provider, claude(provider) as client:
        asked = {"compaction": {"type": "summarize"}, **more}
        assert words in str(refusal(client, [{"role": "user", "content": "Hello."}], **asked))


def test_a_call_without_its_result_and_an_empty_list_are_not_summarized() -> None:
    with serving([Reply("", [Call("read", {})])]) as provider, claude(provider) as client:
        history: list[Item] = [{"role": "user", "content": "Read."}]
        history.append(said(ask(client, history)))
        asked = {"compaction": {"type": "summarize"}}
        assert "tool_use" in str(refusal(client, history, **asked))
        assert code_of(refusal(client, [], **asked)) == "compaction_nothing_to_summarize"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "tool_use", "end_turn"])
def test_a_summary_that_is_missing_leaves_an_empty_reply(reason: str) -> None:
    with (
        serving(think, summarize=lambda _: Summary("", stop_reason=reason)) as provider,
        claude(provider) as client,
    ):
        reply = compacted(client, [{"role": "user", "content": "Hello."}])
        assert reply.content == []
        assert reply.stop_reason == reason


def test_a_script_may_refuse_a_compaction() -> None:
    overloaded = Refusal(529, "overloaded", "overloaded_error", "compaction_unavailable")
    with serving(think, summarize=lambda _: overloaded) as provider, claude(provider) as client:
        problem = refusal(client, [{"role": "user", "content": "Hi."}], compaction={"type": "summarize"})
        assert (problem.status_code, code_of(problem)) == (529, "compaction_unavailable")


# --- OpenAI


def test_openai_gives_back_the_users_messages_and_one_sealed_item() -> None:
    items: list[Item] = [
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three."},
    ]
    with serving(think) as provider, gpt(provider) as client:
        found = client.responses.compact(model=GPT, input=items, instructions="Be brief.")
        assert isinstance(found, CompactedResponse)
        assert found.object == "response.compaction"
        *users, last = found.output
        said = [message.content[0] for message in users if isinstance(message, ResponseOutputMessage)]
        assert [block.text for block in said if isinstance(block, ResponseOutputText)] == ["One.", "Three."]
        assert isinstance(last, ResponseCompactionItem)
        window = [item.to_dict(warnings=False) for item in found.output]
        client.responses.create(model=GPT, input=[*window, {"role": "user", "content": "Go on."}])
        assert provider.refused == []


@pytest.mark.parametrize("streamed", [False, True])
def test_a_trigger_is_answered_by_one_sealed_item(streamed: bool) -> None:
    items: list[Any] = [{"role": "user", "content": "One."}, {"type": "compaction_trigger"}]
    with serving(think) as provider, gpt(provider) as client:
        if streamed:
            with client.responses.stream(model=GPT, input=items) as stream:
                assert "response.compaction.compacting" in [event.type for event in stream]
                (item,) = stream.get_final_response().output
        else:
            (item,) = client.responses.create(model=GPT, input=items).output
        assert isinstance(item, ResponseCompactionItem)
        client.responses.create(model=GPT, input=[item.to_dict(), {"role": "user", "content": "Go on."}])
        assert provider.refused == []


def test_above_its_threshold_openai_compacts_in_the_reply() -> None:
    settings: Any = [{"type": "compaction", "compact_threshold": 20}]
    with serving(think) as provider, gpt(provider) as client:
        request: Any = {"model": GPT, "context_management": settings}
        short = client.responses.create(input="Hello.", **request)
        long = client.responses.create(input="Hello " * 100, **request)
        assert [item.type for item in short.output] == ["reasoning", "message"]
        assert [item.type for item in long.output] == ["compaction", "reasoning", "message"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "compaction", "encrypted_content": "Zm9v.YmFy"}, "could not be verified"),
        ({"type": "compaction"}, "encrypted_content"),
        ({"type": "compaction_trigger"}, "must be the final input item"),
    ],
    ids=["foreign", "without content", "trigger"],
)
def test_what_openai_refuses_of_an_item(item: Item, words: str) -> None:
    with serving(think) as provider, gpt(provider) as client:
        with pytest.raises(openai.BadRequestError, match=words):
            client.responses.create(model=GPT, input=[item, {"role": "user", "content": "Go on."}])
        with pytest.raises(openai.BadRequestError, match=words):
            client.responses.compact(model=GPT, input=[item, {"role": "user", "content": "Go on."}])
