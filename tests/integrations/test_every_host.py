"""What holds in every host: the real package, its real client, and a provider that refuses what a real one would refuse.

What is looked at are the bodies of the requests that arrived.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from support.hosts import CANNOT_RECOVER, HOSTS
from support.integrations import WINDOW, Provider, Request, agent_manager, calls_then_text, serving

from compact.messages.message import GAP
from compact.testing import CapturingExporter

# LiteLLM writes its log in a task of its own, which the end of an event loop cuts off.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
REPORTS = 11
"""Enough for one pass. A host with reading tools carries about 1,000 tokens more, so later passes come at other requests."""
LONG = [
    "agents-filter-chat",
    "agents-filter-chat-streamed",
    "agents-model-chat",
    "agents-model-chat-streamed",
]
LONG_REPORTS = 60
FIRST_OF_THEIR_KIND = {
    "openai-chat",
    "openai-chat-async-streamed",
    "openai-responses",
    "anthropic",
    "anthropic-streamed",
    "agents-filter",
    "agents-model-streamed",
    "langchain-chat",
    "langchain-chat-async",
    "deepagents-chat",
    "pydantic-chat",
    "pydantic-responses-streamed",
    "pydantic-anthropic-streamed",
    "litellm-chat",
    "litellm-chat-async",
}
OWN_TOKENS = {"deepagents-chat": 3_000}
"""Hosts that bring prompts and tools of their own."""


def hosts(*without: str) -> list[Any]:
    """Every host; a way of calling one that is not the first of its kind is part of the sweeps."""
    return [
        pytest.param(name, marks=() if name in FIRST_OF_THEIR_KIND else pytest.mark.sweep)
        for name in HOSTS
        if name not in without
    ]


@cache
def past_the_window(name: str) -> tuple[Provider, CapturingExporter]:
    """A host's whole run; more than the window is read in it."""
    reports = LONG_REPORTS if name in LONG else REPORTS
    window = WINDOW + OWN_TOKENS.get(name, 0)
    manager, seen = agent_manager(window)
    with serving(calls_then_text(reports), window=window) as provider, manager:
        assert HOSTS[name](provider, manager) == f"Done after {reports} reports."
    return provider, seen


@pytest.mark.parametrize("name", hosts())
def test_a_run_past_the_window_sends_nothing_illegal_and_nothing_oversized(name: str) -> None:
    provider, seen = past_the_window(name)
    assert provider.refused == []
    assert len(provider.requests) == (LONG_REPORTS if name in LONG else REPORTS) + 1
    summarized = [event["step"] for event in seen.named("summary_created")]
    assert len(summarized) == len(set(summarized)), (
        "one summary a step, although the host shows its history every time"
    )
    assert 1 <= len(summarized) <= len(provider.requests) / 4
    assert len({event["session_id"] for event in seen.events}) == 1
    assert {event["properties"]["code"] for event in seen.named("warning")} <= {
        "small_window",
        "new_conversation",
    }


@pytest.mark.parametrize("name", hosts(*OWN_TOKENS))
def test_the_same_session_gets_the_same_decisions_in_every_host(name: str) -> None:
    """Who said what, called what and got what: request by request the same as in a plain loop over chat completions."""
    expected = [told(request) for request in past_the_window("openai-chat")[0].requests]
    found = [told(request) for request in past_the_window(name)[0].requests][: len(expected)]
    if name in LONG:  # its last reply is another
        expected, found = expected[:-1], found[:-1]
    assert found == expected


def told(request: Request) -> list[Any]:
    """The messages without what differs by dialect alone: markers between roles, and the places that a summary cites."""
    return [
        (role, re.sub(r"\[m\d+\]", "[m]", text), *rest)
        for role, text, *rest in request.neutral
        if text != GAP
    ]


@pytest.mark.parametrize("name", hosts(*CANNOT_RECOVER))
def test_a_provider_with_a_smaller_window_than_was_said_is_not_noticed(name: str) -> None:
    own = OWN_TOKENS.get(name, 0)
    manager, _ = agent_manager(2 * WINDOW + own)
    with serving(calls_then_text(12), window=WINDOW + own, late_refusals=True) as provider, manager:
        assert HOSTS[name](provider, manager) == "Done after 12 reports."
    assert set(provider.refused) == {"too long"}
    assert len(provider.refused) <= 2, "what the provider said once is remembered"
    assert len(provider.accepted) == 13
