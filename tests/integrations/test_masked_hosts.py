"""With live masking, no provider ever receives a planted value, whatever host sends it.

What is looked at are the bodies of the requests that arrived: the real packages with their real clients.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel, Field
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


def plain_client(provider: Any, *, is_claude: bool = False) -> Any:
    return anthropic_client(provider) if is_claude else openai_client(provider)


def _send_all(provider: Any, manager: Any) -> None:
    """A conversation in three requests, sent by a wrapped client of each kind."""
    said = [
        f"my key is {KEY}",
        f"mail ann.b@example.org with {KEY}",
        "call +49 170 1234567 and ann.b@example.org",
    ]
    gpt, anthropic = manager.wrap(openai_client(provider)), manager.wrap(anthropic_client(provider))
    mail = {"name": "mail", "description": f"as ann.b@example.org with {TOKEN}"}
    listed: list[Any] = []
    for words in said:
        listed.append({"role": "user", "content": words})
        gpt.chat.completions.create(model="gpt-4o", messages=listed, session_id="chat")
        gpt.responses.create(
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
    gpt.responses.create(
        model="gpt-4o", input=f"so {KEY}", previous_response_id="resp_1", session_id="responses"
    )
    gpt.responses.create(model="gpt-4o", input=f"alone {KEY}", session_id="alone")


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


SECRETLY = f"as ann.b@example.org with {TOKEN}"
SCHEMA = {"type": "object", "description": SECRETLY, "properties": {}}
NAMED_SCHEMA = {"name": "answer", "description": SECRETLY, "schema": SCHEMA}
BESIDE: dict[str, dict[str, Any]] = {
    "chat.completions.create": {
        "prediction": {"type": "content", "content": SECRETLY},
        "response_format": {"type": "json_schema", "json_schema": NAMED_SCHEMA},
        "functions": [{"name": "mail", "description": SECRETLY, "parameters": SCHEMA}],
        "stop": [SECRETLY],
        "extra_body": {"context": {"name": SECRETLY}, "name": SECRETLY},
        "messages": [{"role": "user", "name": "ann.b@example.org", "content": "Hi"}],
    },
    "responses.create": {
        "prompt": {"id": "pmpt_1", "variables": {"name": SECRETLY, "who": SECRETLY}},
        "text": {"format": {"type": "json_schema", **NAMED_SCHEMA}},
        "extra_body": {"context": [SECRETLY]},
        "context_management": [{"type": "compaction", "note": SECRETLY}],
    },
    "messages.create": {
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "stop_sequences": [SECRETLY],
        "extra_body": {"context": SECRETLY},
        "system": (block for block in [{"type": "text", "text": SECRETLY}]),
    },
    "messages.count_tokens": {
        "messages": [{"role": "user", "content": SECRETLY}],
        "system": SECRETLY,
        "tools": [{"name": "mail", "description": SECRETLY, "input_schema": SCHEMA}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
    "responses.input_tokens.count": {"input": SECRETLY, "instructions": SECRETLY},
    "responses.compact": {"input": [{"role": "user", "content": SECRETLY}], "instructions": SECRETLY},
}
BESIDE["beta.messages.create"] = {**BESIDE["messages.create"], "system": SECRETLY}
BESIDE["beta.messages.count_tokens"] = BESIDE["messages.count_tokens"]
BESIDE["messages.with_raw_response.count_tokens"] = BESIDE["messages.count_tokens"]
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "input": "Hi"}


@pytest.mark.parametrize(("path", "field"), [(path, field) for path in BESIDE for field in BESIDE[path]])
def test_no_field_of_a_request_holds_a_planted_value(path: str, field: str) -> None:
    manager, _ = agent_manager(32_000, redaction={"live": "pii"})
    is_claude = "messages" in path
    listed = "messages" if is_claude or "chat" in path else "input"
    request: dict[str, Any] = {"model": running.GATEWAY_MODEL if is_claude else "gpt-4o", listed: HI[listed]}
    if is_claude and "count" not in path:
        request["max_tokens"] = 100
    bodies: list[Any] = []
    recording = httpx.Client(
        event_hooks={"request": [lambda sent: bodies.append(json.loads(sent.read().decode()))]}
    )
    with standins.serving(["Fine."]) as provider, manager, recording:
        plain = plain_client(provider, is_claude=is_claude)
        found = manager.wrap(plain if is_claude else plain.with_options(http_client=recording))
        for name in path.split("."):
            found = getattr(found, name)
        with suppress(openai.NotFoundError):  # the stand-in has no answer for some of the methods
            found(**{**request, field: BESIDE[path][field]}, session_id="s")
        bodies += [each.body for each in provider.requests] if is_claude else []
    assert len(bodies) == 1
    assert leaked(bodies) == []
    assert "EMAIL_" in json.dumps(bodies)


def test_what_names_and_configures_stays_as_it_is() -> None:
    manager, _ = agent_manager(32_000, redaction={"live": "pii"})
    kept = {
        "user": "ann.b@example.org",
        "metadata": {"owner": "ann.b@example.org"},
        "safety_identifier": KEY,
        "prompt_cache_key": KEY,
        "tool_choice": "none",
        "temperature": 0.5,
        "seed": 4111111111111111,
    }
    with standins.serving(["Fine."]) as provider, manager:
        client = manager.wrap(plain_client(provider))
        client.chat.completions.create(model="gpt-4o", messages=HI["messages"], **kept)
    assert {name: provider.requests[0].body[name] for name in kept} == kept


def test_a_class_that_describes_the_answer_is_refused_if_its_schema_holds_something() -> None:
    class Fine(BaseModel):
        password: str = Field(description="The password: required")

    class Telling(BaseModel):
        name: str = Field(description=SECRETLY)

    manager, _ = agent_manager(32_000, redaction={"live": "pii"})
    with standins.serving(['{"password": "x"}']) as provider, manager:
        parse = manager.wrap(plain_client(provider)).chat.completions.parse
        parse(model="gpt-4o", messages=HI["messages"], response_format=Fine)
        with pytest.raises(MaskingError, match="`response_format` is a class"):
            parse(model="gpt-4o", messages=HI["messages"], response_format=Telling)
        with pytest.raises(MaskingError, match="`extra_body` cannot be masked"):
            parse(model="gpt-4o", messages=HI["messages"], extra_body=[("context", SECRETLY)])
    assert len(provider.requests) == 1


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
