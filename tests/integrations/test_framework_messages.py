"""LangChain's and pydantic-ai's messages on their way through: untouched ones are the same objects, nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from support.integrations import agent_manager, report

from compact.checks import violations
from compact.errors import MessageError
from compact.integrations.calls import separate_roles
from compact.integrations.langchain.langchain_view import LangChainView
from compact.integrations.pydantic_ai.pydantic_view import PydanticView
from compact.messages.dialects import get
from compact.messages.message import GAP

CALL: Any = {
    "id": "c1",
    "name": "write_file",
    "args": {"path": "a.py", "content": "x = 1\n"},
    "type": "tool_call",
}
LANGCHAIN: list[Any] = [
    SystemMessage("You are kind."),
    HumanMessage(
        [
            {"type": "text", "text": "Look"},
            {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        ],
        name="ann",
    ),
    AIMessage("On it.", tool_calls=[CALL], id="m1", response_metadata={"model": "x"}),
    ToolMessage("written", tool_call_id="c1", artifact={"raw": 1}),
    AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "sealed"},
            {"type": "text", "text": "Again."},
            {"type": "tool_use", "id": "c2", "name": "write_file", "input": CALL["args"]},
        ],
        tool_calls=[{**CALL, "id": "c2"}],
    ),
    ToolMessage([{"type": "text", "text": "written"}], tool_call_id="c2", status="error"),
    ChatMessage(content="as somebody", role="user"),
    AIMessage("", additional_kwargs={"x": 1}, tool_calls=[{**CALL, "id": "c3"}]),
    ToolMessage("ok", tool_call_id="c3"),
    AIMessage("Done."),
    HumanMessage("Thanks."),
]
INVALID: Any = {
    "id": "c6",
    "name": "write_file",
    "args": '{"path": "a',
    "error": "cut off",
    "type": "invalid_tool_call",
}
STRANGE: list[Any] = [
    HumanMessage("Look it up."),
    AIMessage(
        [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "text", "text": "Found.", "annotations": [], "id": "msg_1"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c4",
                "name": "write_file",
                "arguments": json.dumps(CALL["args"]),
            },
            {"type": "function_call", "id": "fc_2", "call_id": "c5", "name": "now", "arguments": "{}"},
        ],
        tool_calls=[{**CALL, "id": "c4"}, {"id": "c5", "name": "now", "args": {}}],
    ),
    ToolMessage("written", tool_call_id="c4"),
    ToolMessage([{"type": "vendor_block", "data": 1}, {"type": "text", "text": "noon"}], tool_call_id="c5"),
    AIMessage(
        "Both.",
        tool_calls=[{**CALL, "id": "c7"}],
        invalid_tool_calls=[INVALID],
        additional_kwargs={"tool_calls": [{"id": "c7"}], "audio": {"id": "a1"}},
    ),
    ToolMessage("written", tool_call_id="c7"),
    ToolMessage("not JSON", tool_call_id="c6"),
    AIMessage(
        [
            "Plain words.",
            {"type": "server_tool_use", "id": "st_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "st_1", "content": []},
            {"type": "text", "text": "More words.", "citations": [{"url": "https://x.example"}]},
        ]
    ),
    HumanMessage([{"type": "file", "base64": "QQ==", "mime_type": "application/pdf"}, "Read this."]),
]
FUNCTION_RESULT = FunctionMessage(content="old style", name="old")
RETRY: Any = RetryInfo(cause="model_retry", attempt=1, max_retries=2)
PYDANTIC: list[Any] = [
    ModelRequest(
        parts=[
            SystemPromptPart("You are kind."),
            UserPromptPart(["Look", ImageUrl("https://x.example/a.png")]),
        ]
    ),
    ModelResponse(
        parts=[
            TextPart("On it."),
            ToolCallPart("read", {"path": "a"}, "c1"),
            ToolCallPart("read", '{"path": "b"}', "c2"),
        ]
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("read", {"text": "A"}, "c1"),
            ToolReturnPart("read", "B", "c2"),
            UserPromptPart("And now?"),
        ]
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="sealed", provider_name="p"),
            ToolCallPart("read", {"path": "c"}, "c3"),
        ]
    ),
    ModelRequest(parts=[ToolReturnPart("read", "C", "c3")]),
    ModelResponse(parts=[TextPart("nonsense")]),
    ModelRequest(parts=[RetryFeedbackPart("that was nonsense", retry=RETRY)]),
    ModelResponse(parts=[TextPart("Sorry.")]),
    ModelRequest(parts=[UserPromptPart([BinaryContent(b"\x89PNG", media_type="image/png")])]),
]


@pytest.mark.parametrize(
    ("view", "messages"),
    [(LangChainView, LANGCHAIN), (LangChainView, STRANGE), (PydanticView, PYDANTIC)],
    ids=["langchain", "strange", "pydantic"],
)
def test_untouched_messages_come_back_as_the_same_objects(view: Any, messages: list[Any]) -> None:
    seen = view(messages)
    back = seen.back(list(seen.items))
    assert all(after is before for after, before in zip(back, messages, strict=True))
    part = seen.back(seen.items[3:])
    assert part[-1] is messages[-1]


@pytest.mark.parametrize(
    ("view", "messages"),
    [(LangChainView, LANGCHAIN), (PydanticView, PYDANTIC)],
    ids=["langchain", "pydantic"],
)
def test_what_compact_sees_is_a_legal_chat_history(view: Any, messages: list[Any]) -> None:
    assert violations(view(messages).items, "chat") == []


def test_everything_that_costs_tokens_is_seen() -> None:
    text = json.dumps([*LangChainView(LANGCHAIN).items, *PydanticView(PYDANTIC).items])
    for word in (
        "Look",
        "https://x.example/a.png",
        "x = 1",
        "sealed",
        "written",
        "hm",
        "that was nonsense",
        "Sorry.",
        "iVBORw",
    ):
        assert word in text, word


def test_signed_reasoning_is_seen_as_such() -> None:
    chat = get("chat")
    assert [n for n, item in enumerate(LangChainView(LANGCHAIN).items) if chat.read(item).signed] == [4]
    assert [n for n, item in enumerate(PydanticView(PYDANTIC).items) if chat.read(item).signed] == [6]


MOVED = '{"content": "[compact: moved]"}'


def edits(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that a pass may do to a message: other words, other arguments, no reasoning, a call less."""
    content, calls = item.get("content"), item.get("tool_calls") or []
    found: list[dict[str, Any]] = []
    if isinstance(content, str):
        found.append({**item, "content": "[compact: moved]"})
    elif content:
        texts = [n for n, block in enumerate(content) if isinstance(block, str) or block["type"] == "text"]
        found += [
            {**item, "content": [*content[:n], {"type": "text", "text": "[compact: cut]"}, *content[n + 1 :]]}
            for n in texts
        ]
        found.append({**item, "content": "[compact: moved]"})
    if calls:
        found += [
            {**item, "tool_calls": [*calls[:n], _with_arguments(call, MOVED), *calls[n + 1 :]]}
            for n, call in enumerate(calls)
        ]
        found += [{**item, "tool_calls": calls[1:]}] if len(calls) > 1 else []
    if "reasoning_details" in item:
        found += [
            {key: value for key, value in each.items() if key != "reasoning_details"}
            for each in [item, *found]
        ]
    return found


def _with_arguments(call: dict[str, Any], arguments: str) -> dict[str, Any]:
    return {**call, "function": {**call["function"], "arguments": arguments}}


def meaning(item: dict[str, Any]) -> Any:
    """What a chat message says, whatever the form: texts, calls by id, results, and whether it is signed."""
    message = get("chat").read(item)
    calls = sorted((c.id, c.name, c.parsed_arguments() or c.arguments) for c in message.calls)
    return message.role, message.text, calls, [(r.call_id, r.text) for r in message.results], message.signed


EDITED = [
    pytest.param(view, messages, n, k, id=f"{name}-{n}-{k}")
    for name, view, messages in (
        ("langchain", LangChainView, LANGCHAIN),
        ("strange", LangChainView, STRANGE),
        ("pydantic", PydanticView, PYDANTIC),
    )
    for n, item in enumerate(view(messages).items)
    if item["role"] not in ("system", "developer")
    for k, _ in enumerate(edits(item))
]


@pytest.mark.parametrize(("view", "messages", "place", "edit"), EDITED)
def test_what_a_pass_decided_is_what_the_framework_sends(
    view: Any, messages: list[Any], place: int, edit: int
) -> None:
    """Seen again, the edited list says what it was edited to say, and every other message is the same object."""
    seen = view(messages)
    items = list(seen.items)
    items[place] = edits(items[place])[edit]
    back = seen.back(items)
    assert [meaning(item) for item in view(back).items] == [meaning(item) for item in items]
    untouched = [message for message in messages if any(message is other for other in back)]
    assert len(untouched) == len(messages) - 1


def test_blocks_that_no_rule_knows_survive_an_edit_beside_them() -> None:
    view = LangChainView(STRANGE)
    items = list(view.items)
    items[1] = changed_call(items[1], 0, '{"path": "[compact: moved]"}')
    items[7] = {**items[7], "content": [{"type": "text", "text": "Less."}, *items[7]["content"][1:]]}
    back = view.back(items)
    assert [block["type"] for block in back[1].content] == [
        "reasoning",
        "web_search_call",
        "text",
        "function_call",
        "function_call",
    ]
    assert back[1].content[0] is STRANGE[1].content[0]
    assert json.loads(back[1].content[3]["arguments"]) == {"path": "[compact: moved]"}
    assert back[1].content[4] is STRANGE[1].content[4]
    assert back[7].content[1:] == STRANGE[7].content[1:]


def test_a_call_that_langchain_could_not_parse_stays_one_when_its_neighbour_changes() -> None:
    view = LangChainView(STRANGE)
    items = list(view.items)
    items[4] = changed_call(items[4], 0, '{"path": "[compact: moved]"}')
    back = view.back(items)[4]
    assert back.tool_calls[0]["args"] == {"path": "[compact: moved]"}
    assert back.invalid_tool_calls == [INVALID]
    assert back.additional_kwargs == {"audio": {"id": "a1"}}, "no second copy of the calls"


def changed_call(item: dict[str, Any], place: int, arguments: str) -> dict[str, Any]:
    calls = list(item["tool_calls"])
    calls[place] = _with_arguments(calls[place], arguments)
    return {**item, "tool_calls": calls}


def changed(item: dict[str, Any], arguments: str) -> dict[str, Any]:
    (call,) = item["tool_calls"]
    return {**item, "tool_calls": [{**call, "function": {**call["function"], "arguments": arguments}}]}


def test_a_shortened_call_keeps_everything_else_of_its_langchain_message() -> None:
    view = LangChainView(LANGCHAIN)
    items = list(view.items)
    items[2] = changed(items[2], '{"path": "a.py", "content": "[compact: moved]"}')
    items[3] = {**items[3], "content": "[compact: moved]"}
    items[4] = changed(items[4], '{"path": "a.py", "content": "[compact: moved]"}')
    back = view.back(items)
    assert (back[2].id, back[2].response_metadata, back[2].content) == ("m1", {"model": "x"}, "On it.")
    assert back[2].tool_calls[0]["args"]["content"] == "[compact: moved]"
    assert (back[3].content, back[3].tool_call_id, back[3].artifact) == ("[compact: moved]", "c1", {"raw": 1})
    (block,) = [block for block in back[4].content if block["type"] == "tool_use"]
    assert block["input"]["content"] == "[compact: moved]"
    assert LANGCHAIN[2].tool_calls[0]["args"]["content"] == CALL["args"]["content"], (
        "the original is untouched"
    )


def test_a_shortened_result_keeps_its_place_among_the_others_of_its_pydantic_request() -> None:
    view = PydanticView(PYDANTIC)
    items = list(view.items)
    items[3] = {**items[3], "content": "[compact: moved]"}
    items[6] = changed(items[6], '{"path": "[compact: moved]"}')
    back: list[Any] = list(view.back(items))
    assert [getattr(part, "content", None) for part in back[2].parts] == ["[compact: moved]", "B", "And now?"]
    assert back[2].parts[1] is PYDANTIC[2].parts[1]
    assert back[3].parts[0] is PYDANTIC[3].parts[0]
    assert back[3].parts[1].args_as_dict() == {"path": "[compact: moved]"}
    assert [after is before for after, before in zip(back, PYDANTIC, strict=True)] == [
        n not in (2, 3) for n in range(9)
    ]


def test_a_summary_is_a_reply_in_both() -> None:
    summary = {"role": "assistant", "content": "<COMPACT-SUMMARY v1>\nall\n</COMPACT-SUMMARY>"}
    view, other = LangChainView(LANGCHAIN), PydanticView(PYDANTIC)
    assert view.back(separate_roles([summary, *view.items[-2:]]))[:3] == [
        HumanMessage(GAP),
        AIMessage(summary["content"]),
        HumanMessage(GAP),
    ]
    back = other.back(separate_roles([summary, *other.items[-1:]]))
    assert [type(message) for message in back] == [ModelRequest, ModelResponse, ModelRequest]
    assert back[1].parts == [TextPart(summary["content"])]
    assert back[2] is PYDANTIC[-1]


def test_a_user_stands_before_a_summary_and_between_it_and_another_reply() -> None:
    summary = {"role": "assistant", "content": "<COMPACT-SUMMARY v1>"}
    system, user = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    reply, call = {"role": "assistant", "content": "r"}, {"type": "function_call", "call_id": "c"}
    gap = {"role": "user", "content": GAP}
    assert separate_roles([system, summary, user, reply]) == [system, gap, summary, user, reply]
    assert separate_roles([summary, call]) == [gap, summary, gap, call]
    assert separate_roles([user, summary, user]) == [user, summary, user]
    assert separate_roles([reply, reply]) == [reply, reply], "what the host wrote is the host's"


def test_an_old_style_function_result_and_a_long_history_survive_a_pass() -> None:
    manager, seen = agent_manager()
    history: list[Any] = [HumanMessage("Read.")]
    for n in range(14):
        history += [
            AIMessage("", tool_calls=[{"id": f"c{n}", "name": "get_report", "args": {"number": n}}]),
            ToolMessage(report(n), tool_call_id=f"c{n}"),
        ]
    view = LangChainView(history)
    with manager:
        back = view.back(manager.preflight("s", view.items, dialect="chat"))
    assert seen.named("pruned_messages")
    assert back[-1] is history[-1]
    assert LangChainView([FUNCTION_RESULT]).items == [
        {"role": "function", "content": "old style", "name": "old"}
    ]
    assert LangChainView([]).back([{"role": "function", "name": "old", "content": "x"}]) == [
        FunctionMessage(content="x", name="old")
    ]


def test_an_entry_that_is_no_message_is_refused_by_its_index() -> None:
    """A `RemoveMessage` is an order to LangGraph. Shown to a model, it would be an empty message of nobody."""
    with pytest.raises(MessageError, match="message 1 is a RemoveMessage") as refused:
        LangChainView([HumanMessage("Hi"), RemoveMessage(id="m1"), HumanMessage("Again")])
    assert refused.value.index == 1
