"""Each documented refusal of each provider, beside the nearest request that is accepted."""

from __future__ import annotations

import copy

import pytest
from support.claude_and_openai_requests import (
    ILLEGAL_ANTHROPIC,
    ILLEGAL_CHAT,
    ILLEGAL_RESPONSES,
    LEGAL_ANTHROPIC,
    LEGAL_CHAT,
    LEGAL_RESPONSES,
    chat,
    request,
    result,
    says,
    tool,
    use,
    user,
    with_function,
)

from compact.tools.standins import Rules, anthropic_problems, chat_problems, responses_problems


@pytest.mark.parametrize("name", LEGAL_ANTHROPIC)
def test_anthropic_accepts(name: str) -> None:
    assert anthropic_problems(LEGAL_ANTHROPIC[name]) == []


@pytest.mark.parametrize("name", ILLEGAL_ANTHROPIC)
def test_anthropic_refuses(name: str) -> None:
    body, words = ILLEGAL_ANTHROPIC[name]
    before = copy.deepcopy(body)
    found = anthropic_problems(body)
    assert any(words in problem for problem in found), found
    assert body == before


def test_what_differs_between_models_of_anthropic() -> None:
    ends = request(user(), says())
    assert anthropic_problems(ends, Rules(prefill=False))[0].startswith(
        "This model does not support assistant message prefill"
    )
    speaks = request(user(), {"role": "system", "content": "From now on, answer in French."}, says(), user())
    assert anthropic_problems(speaks, Rules(system_messages=True)) == []
    misplaced = request(user(), says(), {"role": "system", "content": "x"}, user())
    assert anthropic_problems(misplaced, Rules(system_messages=True))
    assert (
        "roles must alternate" in anthropic_problems(request(user(), user()), Rules(alternate_roles=True))[0]
    )
    bare = {**request(user(), says(use("a")), user(result("a"))), "tools": []}
    assert anthropic_problems(bare, Rules(tools_required=False)) == []


@pytest.mark.parametrize("name", LEGAL_CHAT)
def test_chat_accepts(name: str) -> None:
    assert chat_problems(LEGAL_CHAT[name]) == []


@pytest.mark.parametrize("name", ILLEGAL_CHAT)
def test_chat_refuses(name: str) -> None:
    body, words = ILLEGAL_CHAT[name]
    found = chat_problems(body)
    assert any(words in problem for problem in found), found


def test_servers_that_read_the_arguments_of_past_calls() -> None:
    broken = chat(user(), with_function(arguments="{"), tool("a"))
    assert "JSON object" in chat_problems(broken, Rules(json_arguments=True))[0]


@pytest.mark.parametrize("name", LEGAL_RESPONSES)
def test_responses_accept(name: str) -> None:
    assert responses_problems(LEGAL_RESPONSES[name]) == []


@pytest.mark.parametrize("name", ILLEGAL_RESPONSES)
def test_responses_refuse(name: str) -> None:
    body, words = ILLEGAL_RESPONSES[name]
    found = responses_problems(body)
    assert any(words in problem for problem in found), found
