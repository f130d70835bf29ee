"""With live masking, no provider ever receives a planted value, whatever host sends it.

What is looked at are the bodies of the requests that arrived: the real packages with their real clients.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import hosts as running
from support.hosts import HOSTS, anthropic_client, openai_client
from support.integrations import agent_manager, calls_then_text, report, serving
from support.redaction import letters

from compact.errors import MaskingError
from compact.tools import standins

# LiteLLM writes its log in a task of its own, which the end of an event loop cuts off.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KEY = f"sk-proj-{letters('host key', 30)}"
TOKEN = f"ghp_{letters('host token', 36)}"
PLANTED = [KEY, TOKEN, "ann.b@example.org", "+49 170 1234567"]
QUICK = ("openai-chat", "anthropic", "agents-model", "langchain-chat", "pydantic-chat", "litellm-chat")
REPORTS = 10


def leaked(bodies: Any) -> list[str]:
    text = json.dumps(bodies)
    return [value for value in PLANTED if value in text]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.sweep) for name in HOSTS]
)
def test_no_provider_receives_a_planted_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Task, system prompt and every tool result hold one; the run is longer than the window."""
    monkeypatch.setattr(running, "TASK", f"Read all reports with {KEY} and write to ann.b@example.org. " * 3)
    monkeypatch.setattr(running, "SYSTEM", "You read reports for +49 170 1234567.")
    monkeypatch.setattr(running, "report", lambda n: f"{report(n)}\nAuthorization: Bearer {TOKEN}")
    window = 11_000 if name.startswith("deepagents") else 8_000
    manager, seen = agent_manager(window, redaction={"live": "pii"})
    with serving(calls_then_text(REPORTS), window=window) as provider, manager:
        assert HOSTS[name](provider, manager) == f"Done after {REPORTS} reports."
    bodies = [request.body for request in provider.requests]
    assert leaked(bodies) == []
    assert provider.refused == []
    assert seen.named("summary_created")
    first = json.dumps(bodies[0])
    assert "<PHONE_" in first
    assert "<EMAIL_" in first
    assert "<SECRET_" in first
    assert len({event["session_id"] for event in seen.events}) == 1


def _send_all(provider: Any, manager: Any) -> None:
    """A conversation in three requests, sent by a wrapped client of each kind."""
    said = [
        f"my key is {KEY}",
        f"mail ann.b@example.org with {KEY}",
        "call +49 170 1234567 and ann.b@example.org",
    ]
    openai, anthropic = manager.wrap(openai_client(provider)), manager.wrap(anthropic_client(provider))
    mail = {"name": "mail", "description": f"as ann.b@example.org with {TOKEN}"}
    listed: list[Any] = []
    for words in said:
        listed.append({"role": "user", "content": words})
        openai.chat.completions.create(model="gpt-4o", messages=listed, session_id="chat")
        openai.responses.create(
            model="gpt-4o", input=listed, instructions=f"You have {TOKEN}", session_id="responses"
        )
        anthropic.messages.create(
            model=running.GATEWAY_MODEL,
            max_tokens=100,
            system=[{"type": "text", "text": f"You have {TOKEN}"}],
            tools=[{**mail, "input_schema": {"type": "object"}}],
            messages=listed,
            session_id="anthropic",
        )
        listed.append({"role": "assistant", "content": "Fine."})
    openai.responses.create(
        model="gpt-4o", input=f"so {KEY}", previous_response_id="resp_1", session_id="responses"
    )
    openai.responses.create(model="gpt-4o", input=f"alone {KEY}", session_id="alone")


def test_strict_stand_ins_receive_masked_requests_with_stable_beginnings() -> None:
    manager, _ = agent_manager(32_000, redaction={"live": "pii"})
    with standins.serving(["Fine."]) as provider, manager:
        _send_all(provider, manager)
    assert leaked([request.body for request in provider.requests]) == []
    assert provider.refused == []
    for endpoint in ("chat", "responses", "anthropic"):
        lists = [list(request.messages) for request in provider.accepted if request.endpoint == endpoint][:3]
        assert [lists[-1][: 2 * n + 1] for n in range(3)] == lists
    bodies = [request.body for request in provider.accepted if request.endpoint == "anthropic"]
    assert {body["system"][0]["text"] for body in bodies} == {"You have <SECRET_1>"}
    assert {body["tools"][0]["description"] for body in bodies} == {"as <EMAIL_2> with <SECRET_1>"}
    assert bodies[0]["messages"][0]["content"] == "my key is <SECRET_3>"


def test_what_an_integration_cannot_mask_is_not_sent() -> None:
    """`preflight` does not return `system` and `tools`, so it raises if they hold something."""
    manager, _ = agent_manager(32_000, redaction={"live": "pii"})
    listed = [{"role": "user", "content": "hello"}]
    tools = [{"type": "function", "function": {"name": "mail", "description": f"with {TOKEN}"}}]
    with pytest.raises(MaskingError, match="`system` is sent beside") as raised:
        manager.preflight("s", listed, system=f"You have {TOKEN}")
    assert "manager.mask(session_id, system)" in raised.value.hint
    with pytest.raises(MaskingError, match="`tools` is sent beside"):
        manager.preflight("s", listed, tools)
    masked = manager.mask("s", tools, schemas=True)
    assert manager.preflight("s", listed, masked, system=manager.mask("s", f"You have {TOKEN}")) == listed


def test_a_schema_may_speak_of_passwords() -> None:
    manager, _ = agent_manager(32_000, redaction={"live": "pii"})
    login = {
        "type": "object",
        "properties": {"password": {"type": "string", "description": "The password: required"}},
    }
    tools = [
        {
            "type": "function",
            "function": {"name": "login", "description": "api_key: str", "parameters": login},
        }
    ]
    assert manager.mask("s", tools, schemas=True) is tools
