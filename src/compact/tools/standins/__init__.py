"""Strict stand-ins for Anthropic, OpenAI, Google and Amazon Bedrock, for tests of agents: local servers that refuse what the real ones refuse.

    with serving(["Hello."], window=8_000) as provider:
        client = anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0)
        ...
    assert not provider.refused

`anthropic_problems(body)`, `chat_problems(body)`, `responses_problems(body)`, `gemini_problems(body)` and
`converse_problems(body)` judge a request without a server.
"""

from __future__ import annotations

from typing import Any

from compact.tools.standins import anthropic_rules, chat_rules, converse_rules, gemini_rules, responses_rules
from compact.tools.standins.binding import sign_block
from compact.tools.standins.caching import Billed
from compact.tools.standins.native_anthropic import Summary
from compact.tools.standins.problems import Problem, Rules
from compact.tools.standins.provider import ENDPOINTS, Provider, count_request, prefix_breaks
from compact.tools.standins.script import (
    Answer,
    Call,
    Endpoint,
    Fault,
    Received,
    Refusal,
    Reply,
    Script,
    Told,
    by_turn,
)
from compact.tools.standins.server import serving

__all__ = [
    "ENDPOINTS",
    "Answer",
    "Billed",
    "Call",
    "Endpoint",
    "Fault",
    "Problem",
    "Provider",
    "Received",
    "Refusal",
    "Reply",
    "Rules",
    "Script",
    "Summary",
    "Told",
    "anthropic_problems",
    "by_turn",
    "chat_problems",
    "converse_problems",
    "count_request",
    "gemini_problems",
    "prefix_breaks",
    "responses_problems",
    "serving",
    "sign_block",
]


def anthropic_problems(body: Any, rules: Rules | None = None) -> list[str]:
    """Why Anthropic refuses the body of `POST /v1/messages`; empty if it accepts it."""
    return [problem.message for problem in anthropic_rules.find_problems(body, rules)]


def chat_problems(body: Any, rules: Rules | None = None) -> list[str]:
    """Why OpenAI refuses the body of `POST /v1/chat/completions`; empty if it accepts it."""
    return [problem.message for problem in chat_rules.find_problems(body, rules)]


def responses_problems(body: Any, rules: Rules | None = None) -> list[str]:
    """Why OpenAI refuses the body of `POST /v1/responses`; empty if it accepts it."""
    return [problem.message for problem in responses_rules.find_problems(body, rules)]


def gemini_problems(body: Any, rules: Rules | None = None) -> list[str]:
    """Why Google refuses the body of `POST /v1beta/models/{model}:generateContent`; empty if it accepts it."""
    return [problem.message for problem in gemini_rules.find_problems(body, rules)]


def converse_problems(body: Any, rules: Rules | None = None) -> list[str]:
    """Why Amazon Bedrock refuses the body of `POST /model/{modelId}/converse`; empty if it accepts it."""
    return [problem.message for problem in converse_rules.find_problems(body, rules)]
