"""Strict stand-ins for Anthropic and OpenAI, for tests of agents: local servers that refuse what the real ones refuse.

    with serving(["Hello."], window=8_000) as provider:
        client = anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0)
        ...
    assert not provider.refused

`anthropic_problems(body)`, `chat_problems(body)` and `responses_problems(body)` judge a request without a server.
"""

from __future__ import annotations

from typing import Any

from compact.tools.standins import anthropic_rules, chat_rules, responses_rules
from compact.tools.standins.problems import Problem, Rules
from compact.tools.standins.provider import ENDPOINTS, Provider, count_request, prefix_breaks, serving
from compact.tools.standins.script import Answer, Call, Endpoint, Received, Refusal, Reply, Script, Told

__all__ = [
    "ENDPOINTS",
    "Answer",
    "Call",
    "Endpoint",
    "Problem",
    "Provider",
    "Received",
    "Refusal",
    "Reply",
    "Rules",
    "Script",
    "Told",
    "anthropic_problems",
    "chat_problems",
    "count_request",
    "prefix_breaks",
    "responses_problems",
    "serving",
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
