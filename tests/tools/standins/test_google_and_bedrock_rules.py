"""Each documented refusal of Google and of Bedrock, with its page, beside the nearest request that is accepted."""

from __future__ import annotations

import copy

import pytest
from support.google_and_bedrock_requests import (
    HI,
    ILLEGAL_BEDROCK,
    ILLEGAL_GOOGLE,
    KEY,
    LEGAL_BEDROCK,
    LEGAL_GOOGLE,
    answer,
    asks,
    bedrock,
    call,
    google,
    model,
    result,
    says,
    thought,
    use,
    user,
)

from compact.tools.standins import Rules, converse_problems, gemini_problems
from compact.tools.standins.converse_rules import find_problems as judge_converse
from compact.tools.standins.gemini_rules import find_problems as judge_gemini
from compact.tools.standins.gemini_rules import signed_text
from compact.tools.standins.signing import sign


@pytest.mark.parametrize("name", LEGAL_GOOGLE)
def test_google_accepts(name: str) -> None:
    assert gemini_problems(LEGAL_GOOGLE[name]) == []


@pytest.mark.parametrize("name", ILLEGAL_GOOGLE)
def test_google_refuses(name: str) -> None:
    body, words = ILLEGAL_GOOGLE[name]
    before = copy.deepcopy(body)
    found = judge_gemini(body)
    assert any(words in problem.message for problem in found), found
    assert all(problem.page.startswith(("Gemini API: ", "Vertex AI: ")) for problem in found)
    assert body == before


def test_what_differs_between_models_of_google() -> None:
    neighbours = google(asks(), asks())
    assert "alternate between user and model" in gemini_problems(neighbours, Rules(alternate_roles=True))[0]
    signs = Rules(thought_signatures=True)
    signed = {**call("b"), "thoughtSignature": "c2ln"}
    step = (model(signed, call("c")), asks(answer("b"), answer("c")))
    unsigned = (model(call()), asks(answer()))
    assert gemini_problems(google(asks(), *step, *step), signs) == []
    assert gemini_problems(google(asks(), *unsigned, model(), asks(), *step), signs) == [], "an older turn"
    missing = judge_gemini(google(asks(), *step, *unsigned), signs)
    assert "missing a thought_signature in functionCall parts" in missing[0].message
    assert "`default_api:read`, position 1" in missing[0].message
    assert missing[0].page.endswith("thought-signatures")
    instead = {**call(), "thoughtSignature": "skip_thought_signature_validator"}
    assert gemini_problems(google(asks(), model(instead), asks(answer())), signs) == []


def test_google_recognises_its_signature() -> None:
    rules = Rules(signing_key=KEY)
    own = {**call(args={"path": "a"}), "thoughtSignature": sign(signed_text(call(args={"path": "a"})), KEY)}
    assert gemini_problems(google(asks(), model(own), asks(answer())), rules) == []
    changed = {**own, "functionCall": {"name": "read", "args": {"path": "b"}}}
    found = gemini_problems(google(asks(), model(changed), asks(answer())), rules)
    assert found == ["Corrupted thought signature."]


@pytest.mark.parametrize("name", LEGAL_BEDROCK)
def test_bedrock_accepts(name: str) -> None:
    assert converse_problems(LEGAL_BEDROCK[name]) == []


@pytest.mark.parametrize("name", ILLEGAL_BEDROCK)
def test_bedrock_refuses(name: str) -> None:
    body, words = ILLEGAL_BEDROCK[name]
    before = copy.deepcopy(body)
    found = judge_converse(body)
    assert any(words in problem.message for problem in found), found
    assert all(problem.page.startswith("Bedrock: ") for problem in found)
    assert body == before


def test_bedrock_recognises_its_thinking() -> None:
    rules = Rules(signing_key=KEY)
    own = thought("Hm.", sign("Hm.", KEY))
    assert converse_problems(bedrock(user(), says(own, HI)), rules) == []
    assert "Invalid `signature`" in converse_problems(bedrock(user(), says(thought(), HI)), rules)[0]
    sealed = {"reasoningContent": {"redactedContent": "aGk="}}
    assert "Invalid `data`" in converse_problems(bedrock(user(), says(sealed, HI)), rules)[0]
    assert (
        converse_problems({"messages": [user(), says(use()), user(result())]}, Rules(tools_required=False))
        == []
    )
