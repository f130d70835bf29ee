"""Every refusal of a stand-in names its page of the documentation, and has a request here that produces it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support import claude_and_openai_requests as one
from support import google_and_bedrock_requests as two

from compact.tools.standins import (
    ENDPOINTS,
    Problem,
    Rules,
    anthropic_rules,
    binding,
    chat_rules,
    converse_rules,
    gemini_rules,
    responses_rules,
    sign_block,
)

Example = tuple[Any, Any, Rules]
MODULES = (anthropic_rules, binding, chat_rules, responses_rules, gemini_rules, converse_rules)
MAKERS = frozenset(
    [
        "Problem",
        "_problem",
        "_constraint",
        "_missing",
        "_expected",
        "wrong_type",
        "wrong_value",
        "empty_array",
        "unparsable",
    ]
)
"""What makes a problem in the rules."""
PROVIDERS = ("Claude docs: ", "OpenAI docs: ", "Gemini API: ", "Vertex AI: ", "Bedrock: ")
KEY = b"key"
SIGNED = Rules(signing_key=KEY)


def picture(side: int) -> str:
    """The head of a PNG of this width."""
    import base64
    import struct

    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", side, 1, 8, 2, 0, 0, 0)
    ).decode()


def image(side: int = 1) -> Any:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture(side)}}


def claude(*messages: Any, model: str = "claude-sonnet-4-6", **more: Any) -> Any:
    return one.request(*messages, model=model, **more)


def examples() -> list[Example]:
    """Requests that are refused, with the rules of the model."""
    found: list[Example] = []
    for judge, table in (
        (anthropic_rules, one.ILLEGAL_ANTHROPIC),
        (chat_rules, one.ILLEGAL_CHAT),
        (responses_rules, one.ILLEGAL_RESPONSES),
        (gemini_rules, two.ILLEGAL_GOOGLE),
        (converse_rules, two.ILLEGAL_BEDROCK),
    ):
        found += [(judge, body, Rules()) for body, _ in table.values()]
    user, says, thought = one.user, one.says, one.thought
    first = {"model": "claude-fable-5-2", "max_tokens": 9, "messages": [user()]}
    bound = thought("Hm.", signature=sign_block("Hm.", first, KEY))
    strict = Rules(alternate_roles=True, prefill=False, thought_signatures=True, json_arguments=True)
    found += [
        (anthropic_rules, "text", Rules()),
        (anthropic_rules, claude(user(), user(), says()), strict),
        (anthropic_rules, claude(user(), says(), {"role": "system", "content": "x"}), Rules(system_messages=True)),
        (anthropic_rules, claude(user(), says(thought(), one.text("x")), user()), SIGNED),
        (anthropic_rules, claude(user(), says({"type": "redacted_thinking", "data": "x"}, one.text("x"))), SIGNED),
        (anthropic_rules, claude(user(), model="claude-fable-5-2", thinking={"type": "enabled"}), Rules()),
        (anthropic_rules, {**first, "messages": [user(one.text("Edited")), says(bound, one.text("x"))]}, SIGNED),
        (anthropic_rules, claude(user(*[image()] * 101), model="claude-sonnet-4-5"), Rules()),
        (anthropic_rules, claude(user(*[image(2_001)] * 21)), Rules()),
        (chat_rules, one.chat(user(), one.with_function(arguments="{"), one.tool("a")), strict),
        (chat_rules, one.chat(user(*[{"type": "image_url", "image_url": {"url": "x"}}] * 1_501)), Rules()),
        (responses_rules, {"model": "gpt-4o", "input": [{**one.reasoning(), "encrypted_content": "x"}]}, SIGNED),
        (responses_rules, {"model": "gpt-4o", "input": [{**one.ANSWER, "id": "msg_1r"}]}, Rules()),
        (gemini_rules, two.google(two.asks(), two.asks()), strict),
        (gemini_rules, two.google(two.asks(), two.model(two.call()), two.asks(two.answer())), strict),
        (gemini_rules, two.google(two.asks(), two.model({**two.HI, "thoughtSignature": "x"})), SIGNED),
        (gemini_rules, two.google(two.asks(*[{"inlineData": {"mimeType": "image/png", "data": ""}}] * 3_601)), Rules()),
        (converse_rules, two.bedrock(two.user(), two.says(two.thought(), two.HI)), SIGNED),
        (converse_rules, two.bedrock(two.user(), two.says({"reasoningContent": {"redactedContent": "x"}}, two.HI)), SIGNED),
    ]  # fmt: skip
    return found


def places_in(module: Any) -> set[tuple[str, int]]:
    """Where a module makes problems, outside of the functions that do nothing else."""
    found = set()
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in MAKERS:
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            found.add((module.__name__, node.lineno))
    return found


def test_each_refusal_of_the_rules_is_produced_and_names_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = set()

    def noting(make: Callable[..., Problem]) -> Callable[..., Problem]:
        def noted(*args: Any, **named: Any) -> Problem:
            caller = sys._getframe(1)
            reached.add((caller.f_globals["__name__"], caller.f_lineno))
            return make(*args, **named)

        return noted

    for module in MODULES:
        for name in MAKERS & vars(module).keys():
            monkeypatch.setattr(module, name, noting(getattr(module, name)))
    refused: list[Problem] = []
    for judge, body, rules in examples():
        problems = judge.find_problems(body, rules)
        assert problems, body
        refused += problems
    known = set().union(*map(places_in, MODULES))
    assert len(known) > 150
    left = sorted(f"{module.rpartition('.')[2]}:{line}" for module, line in known - reached)
    assert not left, " ".join(left)
    assert {problem.page for problem in refused if not problem.page.startswith(PROVIDERS)} == set()


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: str(endpoint.name))
def test_each_refusal_of_a_server_names_its_page(endpoint: Any) -> None:
    refusals = [
        endpoint.too_long(2, 1),
        endpoint.no_room(1, 1, 1),
        endpoint.too_large(1),
        endpoint.unauthorized,
        *endpoint.faults.values(),
    ]
    assert len(refusals) == 7
    assert all(problem.page.startswith(PROVIDERS) for problem in refusals)
    assert {problem.status for problem in endpoint.faults.values()} <= {429, 500, 503, 529}


def test_a_page_is_a_path_without_a_host() -> None:
    pages = [value for module in MODULES for value in vars(module).values() if isinstance(value, str)]
    named = [page for page in pages if page.startswith(PROVIDERS)]
    assert len(named) > 20
    assert not [page for page in named if "://" in page or ".com" in page]
