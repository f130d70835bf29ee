"""Preserved thinking, as the pages that `binding.py` names document it: every refusal has a request here that produces it."""

from __future__ import annotations

import copy
from typing import Any

import anthropic
import pytest

from compact.checks import violations
from compact.tools.standins import Answer, Call, Reply, Rules, anthropic_problems, serving, sign_block

Item = dict[str, Any]

KEY = b"stand-in"
MARK = {"cache_control": {"type": "ephemeral"}}
BOUND = "The block is bound to a different conversation."


def body(*messages: Item, model: str = "claude-opus-5-5", **more: Any) -> Item:
    tools = [{"name": "look", "input_schema": {}}]
    return {
        "model": model,
        "max_tokens": 9,
        "system": "Be brief.",
        "tools": tools,
        "messages": list(messages),
        **more,
    }


def grown(turns: int = 3, **settings: Any) -> Item:
    """A conversation with thinking in every reply, and the next question."""
    found = body({"role": "user", "content": "Question 0"}, **settings)
    for n in range(turns):
        thought = f"Thought {n}."
        block = {"type": "thinking", "thinking": thought, "signature": sign_block(thought, found, KEY)}
        found["messages"] += [
            {"role": "assistant", "content": [block, {"type": "text", "text": f"Answer {n}"}]},
            {"role": "user", "content": f"Question {n + 1}"},
        ]
    return found


def problems(request: Item, **rules: Any) -> list[str]:
    return anthropic_problems(request, Rules(signing_key=KEY, **rules))


def without_blocks(request: Item, *places: int) -> Item:
    for place in places:
        del request["messages"][place]["content"][0]
    return request


def edited(request: Item, how: str) -> Item:
    request = copy.deepcopy(request)
    messages = request["messages"]
    match how:
        case "system":
            request["system"] = "Be long."
        case "tools":
            request["tools"].append({"name": "more", "input_schema": {}})
        case "a message":
            messages[2]["content"] = "Question one"
        case "a message is gone":
            del messages[0:2]
        case "a block between others":
            del messages[3]["content"][0]
        case "blocks change places":
            one, other = messages[1]["content"], messages[3]["content"]
            one[0], other[0] = other[0], one[0]
        case "nothing":
            pass
        case "all blocks are gone":
            without_blocks(request, 1, 3, 5)
        case "the first blocks are gone":
            without_blocks(request, 1, 3)
        case "the last block is gone":
            without_blocks(request, 5)
        case "marks move":
            messages[2]["content"] = [{"type": "text", "text": "Question 1", **MARK}]
            request["system"] = [{"type": "text", "text": "Be brief.", **MARK}]
        case "a deferred tool":
            request["tools"].append({"name": "late", "input_schema": {}, "defer_loading": True})
        case "the newest message":
            messages[6]["content"] = "Another question"
    return request


@pytest.mark.parametrize(
    ("how", "refused"),
    [
        ("system", [1, 3, 5]),
        ("tools", [1, 3, 5]),
        ("a message", [3, 5]),
        ("a message is gone", [1, 3]),
        ("a block between others", [5]),
        ("blocks change places", [1, 3, 5]),
        ("nothing", []),
        ("all blocks are gone", []),
        ("the first blocks are gone", []),
        ("the last block is gone", []),
        ("marks move", []),
        ("a deferred tool", []),
        ("the newest message", []),
    ],
)
def test_what_counts_as_a_change(how: str, refused: list[int]) -> None:
    before = grown()
    after = edited(before, how)
    found = problems(after)
    assert [int(problem.split(".")[1]) for problem in found] == refused
    assert all(BOUND in problem for problem in found)
    ours = violations(after, "anthropic", in_flight=False, model="claude-opus-5-5", previous=before)
    assert bool(ours) == bool(refused)
    assert {violation.rule for violation in ours} <= {"thinking_unbound"}
    assert not ours or ours[0].index == refused[0]


def test_only_models_that_check_prefixes_are_compared_with_what_was_sent() -> None:
    for model, checks in (("claude-opus-5", False), ("claude-opus-4-8", False), ("claude-haiku-5.5", True)):
        before = grown(model=model)
        after = edited(before, "a message")
        assert bool(problems(after)) is checks
        assert bool(violations(after, "anthropic", model=model, previous=before)) is checks
        assert violations(after, "anthropic", previous=before) == []
        assert violations(after, "anthropic", model=model) == []
    assert problems(edited(grown(model="claude-mythos-5-1"), "system")) == []


def test_what_was_sent_may_be_a_list() -> None:
    before = grown()
    after = edited(before, "a message")
    found = violations(
        after["messages"], "anthropic", in_flight=False, model="claude-opus-5-5", previous=before["messages"]
    )
    assert [violation.index for violation in found] == [3, 5]


def test_a_new_reply_is_bound_to_the_whole_request_before_it() -> None:
    before, after = grown(2), grown(3)
    assert violations(after, "anthropic", model="claude-opus-5-5", previous=before) == []
    shorter = copy.deepcopy(after)
    del shorter["messages"][2:4]
    found = violations(shorter, "anthropic", model="claude-opus-5-5", previous=before)
    assert [violation.index for violation in found] == [3]


def test_drop_block_accepts_what_would_be_refused() -> None:
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert problems({**edited(grown(), "system"), "thinking": binding}) == []
    binding["block_binding"] = {"prefix_mismatch_behavior": "error"}
    assert problems({**edited(grown(), "system"), "thinking": binding})


def test_blocks_that_a_model_does_not_read_are_dropped_without_an_error() -> None:
    moved = {**edited(grown(model="claude-fable-5-1"), "system"), "model": "claude-opus-5-5"}
    assert problems(moved) == []
    assert problems({**moved, "model": "claude-fable-5-2"})


def test_a_text_that_was_altered_is_another_error() -> None:
    request = grown()
    request["messages"][1]["content"][0]["thinking"] = "Other thoughts."
    assert problems(request)[0] == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_fixed_thinking_is_refused_by_models_that_are_always_adaptive() -> None:
    request = {**grown(), "thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert problems(request)[0].startswith('"thinking.type.enabled" is not supported')


def test_the_real_client_gets_a_signed_block_and_a_refusal_in_the_providers_shape() -> None:
    script: list[Answer] = [Reply("Let me look.", [Call("look", {})], "Hm."), "Done."]
    asked: Any = {"role": "user", "content": "Look."}
    tools: Any = [{"name": "look", "input_schema": {"type": "object"}}]
    with (
        serving(script) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0) as client,
    ):

        def ask(*messages: Any, **more: Any) -> Any:
            return client.messages.create(
                model="claude-opus-5-5", max_tokens=9, tools=tools, messages=list(messages), **more
            )

        reply = ask(asked, system="Be brief.")
        said = {
            "role": "assistant",
            "content": [block.model_dump(exclude_none=True) for block in reply.content],
        }
        result = {"type": "tool_result", "tool_use_id": reply.content[-1].id, "content": "x"}
        told = {"role": "user", "content": [result]}
        assert ask(asked, said, told, system="Be brief.").content[0].text == "Done."
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            ask(asked, said, told, system="Be long.")
