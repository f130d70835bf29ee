"""What was learned masks by who said it, as whole tokens, and never what a message is made of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compact.checks import violations
from compact.redaction import MASK, Origin, Redactor, as_redactor
from compact.redaction.live import LiveMasks

SECRET = "xK9mQ2vLpR7tWz4c"
PHRASE = "correct horse battery staple"
COMMON = (
    "postgres admin root secret changeme minio123 guest rabbitmq mysql redis password password1 passw0rd P@ssw0rd1 letmein "
    "qwerty123 12345678 1234567890 abcd1234 1q2w3e4r 1qaz2wsx test1234 minioadmin elastic mongodb toor vagrant grafana "
    "jenkins keycloak clickhouse timescaledb supersecret mysecretpassword s3cr3t99 hunter2 trustno1 Welcome123! Admin@123 "
    "YourStrong@Passw0rd neo4jneo4j zookeeper airflow rootpassword"
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(text: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c1", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def masks(taught_by: Origin, read_from: Origin, value: str = SECRET) -> bool:
    session = Redactor().session()
    session.redact(f'password="{value}"', taught_by)
    return value not in session.redact(f"so {value} it is", read_from)


@pytest.mark.parametrize("taught_by", ["model", "tool"])
def test_what_comes_from_outside_masks_tools_and_models_only(taught_by: Origin) -> None:
    assert masks(taught_by, "tool")
    assert masks(taught_by, "model")
    assert not masks(taught_by, "person")
    assert not masks(taught_by, "compact")
    assert not masks(taught_by, "tool", PHRASE), "a phrase is never learned from outside"


@pytest.mark.parametrize("value", [SECRET, PHRASE])
def test_what_a_person_said_masks_every_origin(value: str) -> None:
    assert all(masks("person", origin, value) for origin in ("person", "model", "tool"))
    assert not masks("person", "compact", value)


@pytest.mark.parametrize(
    ("message", "origin"),
    [
        (user("{}"), "person"),
        ({"role": "developer", "content": "{}"}, "person"),
        (says("{}"), "model"),
        (result("{}"), "tool"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "{}"}]}, "tool"),
        ({"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "{}"}}]}, "tool"),
        ({"role": "user", "content": "{}", "metadata": {"injected": True}}, "tool"),
        ({"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "{}"}]}}]}, "tool"),
        ({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": "{}"}}}]}, "tool"),
        ({"role": "user", "parts": [{"text": "{}"}]}, "person"),
        ({"type": "function_call_output", "call_id": "c", "output": "{}"}, "tool"),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, "model"),
        ({"type": "mcp_call", "id": "c", "name": "f", "arguments": "a", "output": "{}"}, "tool"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "{}"}]}, "person"),
        ({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "output": {"type": "text", "value": "{}"}}]}, "tool"),
        ({"kind": "tool_output", "content": "{}"}, "tool"),
        ({"kind": "task", "content": "{}"}, "person"),
        ({"kind": "web_page", "content": "{}"}, "tool"),
        ({"kind": "message", "role": "assistant", "content": "{}"}, "model"),
        ({"role": "user", "parts": [{"function_response": {"name": "f", "response": {"a": "{}"}}}]}, "tool"),
        ({"role": "model", "parts": [{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "{}"}}]}, "tool"),
        ({"role": "model", "parts": [{"code_execution_result": {"output": "{}"}}]}, "tool"),
        ({"role": "model", "parts": [{"toolResponse": {"id": "t", "response": {"a": "{}"}}}]}, "tool"),
        ({"role": "model", "parts": [{"text": "{}", "thought": True}]}, "model"),
        ({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": "{}"}}}]}, "model"),
        ({"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": "{}"}}}]}, "model"),
        ({"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"json": {"a": "{}"}}]}}]}, "tool"),
        ({"role": "user", "parts": [{"inlineData": {"mimeType": "text/plain", "data": "{}"}}]}, "tool"),
        ({"role": "user", "content": [{"toolResult": {"content": [{"text": "{}"}]}}]}, "tool"),
        ({"role": "user", "content": [{"document": {"name": "d", "source": {"text": "{}"}}}]}, "tool"),
        ({"role": "user", "content": [{"searchResult": {"source": "s", "content": [{"text": "{}"}]}}]}, "tool"),
        ({"role": "user", "content": [{"guardContent": {"text": {"text": "{}"}}}]}, "tool"),
        ({"role": "user", "content": [{"type": "resource", "resource": {"uri": "a:b", "text": "{}"}}]}, "tool"),
        ({"role": "user", "content": [{"type": "anything_new", "text": "{}"}]}, "tool"),
        ({"role": "user", "content": [{"text": "{}", "url": "https://example.org"}]}, "tool"),
        ({"role": "user", "content": [["{}"]]}, "tool"),
        ({"role": "user", "content": "go", "attachments": [{"text": "{}"}]}, "tool"),
        ({"role": "user", "content": [{"text": "{}"}, {"cachePoint": {"type": "default"}}]}, "person"),
        ({"role": "user", "content": ["{}"]}, "person"),
        ({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "{}"}]}, "person"),
        ({"kind": "request", "parts": [{"part_kind": "system-prompt", "content": ["{}"]}]}, "person"),
        ({"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "f", "content": "{}"}]}, "tool"),
        ({"kind": "request", "parts": [{"part_kind": "retry-prompt", "content": "{}"}]}, "tool"),
        ({"kind": "response", "parts": [{"part_kind": "text", "content": "{}"}]}, "model"),
        ({"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "{}"}}, "person"),
        ({"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": {"content": "{}"}}, "tool"),
        ({"lc": 1, "type": "constructor", "id": ["x", "AIMessageChunk"], "kwargs": {"content": "{}"}}, "model"),
        ({"type": "human", "data": {"content": "{}", "type": "human"}}, "person"),
        ({"type": "tool", "data": {"content": "{}", "type": "tool"}}, "tool"),
        ({"type": "human", "content": "{}", "metadata": {"injected": True}}, "tool"),
    ],
)  # fmt: skip
def test_the_place_in_a_message_says_whose_words_they_are(message: dict[str, Any], origin: Origin) -> None:
    def filled(text: str) -> dict[str, Any]:
        whole: dict[str, Any] = json.loads(json.dumps(message).replace("{}", json.dumps(text)[1:-1]))
        return whole

    session = Redactor().session()
    session.redact(f"password={SECRET}", "tool")
    assert (SECRET in json.dumps(session.redact_message(filled(f"so {SECRET}")))) is (origin == "person")
    session = Redactor().session()
    session.redact_message(filled(f'password="{PHRASE}"'))
    assert (PHRASE in session.redact(PHRASE)) is (origin != "person"), "only people teach phrases"


@pytest.mark.parametrize(
    "kind", ["file", "document", "search_result", "tool_reference", "tool_result", "anything_new"]
)
@pytest.mark.parametrize("live", [False, True])
def test_text_from_outside_never_masks_a_persons_words_over_the_seam_of_blocks(kind: str, live: bool) -> None:
    blocks = [
        {"type": kind, "text": "Authorization: Bearer "},
        {"type": "text", "text": "deploy-prod-eu-2 is off limits"},
    ]
    message = {"role": "user", "content": blocks}
    session = Redactor().session()
    assert (LiveMasks(Redactor()).mask(message, 0) if live else session.redact_message(message)) == message
    assert session.redact("deploy-prod-eu-2") == "deploy-prod-eu-2"
    assert Redactor().redact_message({"role": "user", "content": blocks[::-1]})["content"][0] == blocks[1]


def test_a_secret_that_a_person_wrote_in_two_blocks_is_still_masked() -> None:
    blocks = [{"type": "text", "text": "password: "}, {"type": "input_text", "text": SECRET}]
    assert SECRET not in json.dumps(Redactor().redact_message({"role": "user", "content": blocks}))


def test_the_parts_of_a_pydantic_ai_request_say_whose_words_they_are() -> None:
    parts = pytest.importorskip("pydantic_ai.messages")
    said = parts.UserPromptPart(content=f'password="{PHRASE}"')
    returned = parts.ToolReturnPart(
        tool_name="f", content='password="purple monkey dishwasher lamp"', tool_call_id="c"
    )
    session = Redactor().session()
    masked = session.redact_message(parts.ModelRequest(parts=[said, returned]))
    assert isinstance(masked, parts.ModelRequest)
    assert [part.content for part in masked.parts] == [f'password="{MASK}"'] * 2
    assert session.redact(PHRASE) == MASK
    assert session.redact("purple monkey dishwasher lamp") == "purple monkey dishwasher lamp"


@pytest.mark.parametrize(
    ("text", "is_masked"),
    [
        ("{}", True),
        ("admin:{}@host", True),
        ("token={}&x=1", True),
        ('"{}"', True),
        ("The end is {}.", True),
        ("a\\n{}\\nb", True),
        ("\x1b[31m{}\x1b[0m", True),
        ("a%20{}%20b", True),
        ("pre{}", False),
        ("{}fix", False),
        ("my_{}", False),
        ("{}-1", False),
        ("app-{}", False),
        ("/srv/{}/main.py", False),
        ("{}/main.py", False),
        ("C:\\srv\\{}", False),
        ("{}.txt", False),
        ("https://{}.example.org", False),
        ("口令是{}，", True),
        ("パスワードは{}です", True),
        ("пароль{}é", True),
    ],
)
def test_a_learned_value_is_masked_as_a_whole_token(text: str, is_masked: bool) -> None:
    session = Redactor().session()
    session.redact(f"password={SECRET}", "tool")
    assert (SECRET not in session.redact(text.format(SECRET), "tool")) is is_masked


@pytest.mark.parametrize("hidden", ["\u200b", "&shy;", "\x1b[0m", "<wbr>", "\x01", "\\u200b"])
def test_a_learned_value_is_found_in_disguise_and_learned_from_it(hidden: str) -> None:
    veiled = SECRET[:7] + hidden + SECRET[7:]
    for first, second in ((SECRET, veiled), (veiled, SECRET)):
        session, live = Redactor().session(), LiveMasks(Redactor())
        session.redact(f"password={first}", "person")
        assert session.redact(f"so {second} it is", "tool") == f"so {MASK} it is"
        live.mask(user(f"password={first}"), 0)
        assert live.mask(user(f"so {second} it is"), 1)["content"].startswith("so <SECRET_")


@pytest.mark.parametrize("origin", ["person", "model", "tool"])
@pytest.mark.parametrize("password", COMMON.split())
def test_a_common_password_changes_nothing_but_its_own_place(password: str, origin: Origin) -> None:
    session = Redactor().session()
    assert password not in session.redact(f"RABBITMQ_PASSWORD: {password}\nport: 1", origin)
    text = f"{password} runs in /srv/{password}/{password}.conf, see {password}-1 and the {password} queue"
    for reader in ("person", "model", "tool"):
        assert session.redact(text, reader) == text


def test_names_ids_roles_and_types_are_not_changed_by_what_was_learned() -> None:
    call = {
        "id": SECRET,
        "type": "function",
        "function": {"name": SECRET, "arguments": json.dumps({"path": SECRET, SECRET: 1})},
    }
    items = [
        user("go"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": SECRET, "name": SECRET, "content": f"password={SECRET}"},
        {"role": "user", "name": SECRET, "content": f"go on with {SECRET}"},
    ]  # fmt: skip
    session = Redactor().session()
    session.redact(f"password={SECRET}", "person")
    masked = session.redact_messages(items)
    assert masked[1] == items[1]
    assert masked[2] == {**items[2], "content": f"password={MASK}"}
    assert masked[3]["name"] == SECRET
    assert violations(masked) == []


def test_a_name_that_a_rule_matches_stays_a_legal_name() -> None:
    key = "AKIAQ3EGRIT7W5KXH2PL"
    call = {"id": "c1", "type": "function", "function": {"name": f"use-{key}", "arguments": "{}"}}
    items = [user("go"), {"role": "assistant", "content": None, "tool_calls": [call]}, result("ok")]
    masked = Redactor().redact_messages(items)
    assert key not in json.dumps(masked)
    assert masked[1]["tool_calls"][0]["function"]["name"].replace("-", "").replace("_", "").isalnum()
    assert violations(masked) == []
    assert Redactor().redact_message(items[1], for_model=True) is items[1]


def test_a_signed_block_is_masked_in_the_archive_and_whole_for_the_model() -> None:
    block = {"type": "thinking", "thinking": f"password={SECRET}", "signature": f"c2ln{SECRET}"}
    message = {"role": "assistant", "content": [block]}
    masked = Redactor().redact_message(message)["content"][0]
    assert masked == {**block, "thinking": f"password={MASK}"}
    assert Redactor().redact_message(message, for_model=True) is message


def test_what_was_learned_comes_back_from_its_seals_by_origin() -> None:
    first, back = Redactor().session(), Redactor().session()
    first.redact(f'password="{PHRASE}"', "person")
    first.redact(f"password={SECRET}", "tool")
    note = first.seal()  # type: ignore[attr-defined]
    assert first.seal() == {}  # type: ignore[attr-defined]
    assert SECRET not in json.dumps(note)
    assert PHRASE not in json.dumps(note)
    back.adopt([note, {"salt": "nonsense"}, {}])  # type: ignore[attr-defined]
    assert back.redact(f"{PHRASE}, {SECRET}", "person") == f"{MASK}, {SECRET}"
    assert back.redact(f"{PHRASE}, {SECRET}", "tool") == f"{MASK}, {MASK}"
    assert not [name for name, value in vars(back).items() if SECRET in repr(value)]


class Shouting:
    """A host's own redactor."""

    enabled = True

    def redact(self, text: str) -> str:
        return text.upper()

    def redact_value(self, value: Any) -> Any:
        return value

    def redact_messages(self, items: Any) -> list[Any]:
        return [{**item, "content": item["content"].upper()} for item in items]

    def session(self) -> Shouting:
        return self


def test_a_hosts_own_redactor_masks_every_origin_alike() -> None:
    wrapped = as_redactor(Shouting()).session()
    assert wrapped.enabled
    assert wrapped.redact("a", "compact") == wrapped.redact("a", "tool") == "A"
    assert wrapped.scan(f"a {MASK}").count == 0
    assert wrapped.redact_value({"a": "b"}, "tool") == {"a": "b"}
    assert wrapped.redact_message(user("a")) == user("A")
    assert wrapped.redact_messages([user("a")], "compact") == [user("A")]
    assert as_redactor(wrapped) is wrapped
    assert "Shouting" in repr(wrapped)


def test_an_id_is_shown_without_secrets_and_personal_data() -> None:
    redactor = Redactor()
    for plain in (
        "thread_4fK2",
        "1731772800123456789",
        "0b3c9a62-6f52-4d7e-9d3e-0a4c1f0e7a11",
        "2026-11-16T10:22:33",
    ):
        assert redactor.redact_id(plain) == plain
    one, other = redactor.redact_id("chat ann@example.org"), redactor.redact_id("chat bob@example.org")
    assert one.startswith(f"chat {MASK}-")
    assert one != other
    assert Redactor.disabled().redact_id("ann@example.org") == "ann@example.org"


@pytest.mark.parametrize("field", ["type", "role", "name", "id", "data", "signature", "kind"])
@pytest.mark.parametrize("value", [[], {}, ["text"], {"a": [1]}])
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_data_that_only_looks_like_a_block_is_masked_like_any_data(field: str, value: Any, role: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    block = {field: value, "deep": [{"note": f"the token is {secret}"}]}
    masked = Redactor().redact_messages([{"role": role, "content": [block, {"type": "text", "text": "hi"}]}])
    assert secret not in json.dumps(masked)
    assert masked[0]["content"][0][field] == value
