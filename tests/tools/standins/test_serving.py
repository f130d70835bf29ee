"""The stand-ins speak to the providers' own clients: answers, streams, errors, sizes, signatures."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest

from compact.errors import says_overflow
from compact.tools.standins import Answer, Call, Problem, Provider, Refusal, Reply, prefix_breaks, serving

TOOLS: Any = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]
ASK: Any = {"role": "user", "content": "Hello"}
REPLY = Reply(
    "It is done, all of it, and nothing is left to do.", [Call("read", {"path": "a.txt"})], "Let me think."
)


def claude(provider: Provider) -> Any:
    return anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0)


def gpt(provider: Provider) -> Any:
    return openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0)


def ask_claude(provider: Provider, messages: Any, **more: Any) -> Any:
    with claude(provider) as client:
        return client.messages.create(
            model="claude-sonnet-5", messages=messages, **{"max_tokens": 100, **more}
        )


def test_anthropic_answers_the_same_streamed_or_not() -> None:
    with serving([REPLY]) as provider, claude(provider) as client:
        whole = ask_claude(provider, [ASK])
        with client.messages.stream(model="claude-sonnet-5", max_tokens=100, messages=[ASK]) as stream:
            streamed = stream.get_final_message()
    assert [block.type for block in whole.content] == ["thinking", "text", "tool_use"]
    assert whole.stop_reason == streamed.stop_reason == "tool_use"
    for one, two in zip(whole.content, streamed.content, strict=True):
        assert one.model_dump(exclude={"id"}, exclude_none=True) == two.model_dump(
            exclude={"id"}, exclude_none=True
        )
    assert whole.usage.input_tokens == provider.requests[0].tokens > 0


def test_chat_answers_the_same_streamed_or_not() -> None:
    with serving([REPLY]) as provider, gpt(provider) as client:
        whole = client.chat.completions.create(model="gpt-4o", messages=[ASK])
        with client.chat.completions.stream(model="gpt-4o", messages=[ASK]) as stream:
            streamed = stream.get_final_completion()
    one, two = whole.choices[0], streamed.choices[0]
    assert one.message.content == two.message.content == REPLY.text
    assert one.finish_reason == two.finish_reason == "tool_calls"
    assert json.loads(one.message.tool_calls[0].function.arguments) == {"path": "a.txt"}
    assert two.message.tool_calls[0].function.arguments == one.message.tool_calls[0].function.arguments


def test_responses_answer_the_same_streamed_or_not() -> None:
    with serving([REPLY]) as provider, gpt(provider) as client:
        whole = client.responses.create(model="gpt-4o", input="Hello")
        with client.responses.stream(model="gpt-4o", input="Hello") as stream:
            streamed = stream.get_final_response()
    assert [item.type for item in whole.output] == ["reasoning", "message", "function_call"]
    assert [item.type for item in streamed.output] == [item.type for item in whole.output]
    assert whole.output_text == streamed.output_text == REPLY.text


def test_usage_reports_what_the_cache_held() -> None:
    said = Reply("Yes.", cached_tokens=4, written_tokens=2, output_tokens=9)
    with serving([said]) as provider, gpt(provider) as client:
        usage = ask_claude(provider, [ASK]).usage
        chat = client.chat.completions.create(model="gpt-4o", messages=[ASK]).usage
        items = client.responses.create(model="gpt-4o", input="Hello").usage
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens) == (
        4,
        2,
        9,
    )
    assert usage.input_tokens + 6 == provider.requests[0].tokens
    assert chat.prompt_tokens_details.cached_tokens == 4
    assert items.input_tokens_details.cached_tokens == 4


def test_count_tokens_needs_no_limit_and_counts_the_same() -> None:
    with serving(["Hi."]) as provider, claude(provider) as client:
        counted = client.messages.count_tokens(model="claude-sonnet-5", messages=[ASK])
        sent = ask_claude(provider, [ASK])
    assert counted.input_tokens == sent.usage.input_tokens
    assert len(provider.requests) == 2
    assert len(provider.accepted) == 1


# --- refusals in the provider's shape


@pytest.mark.parametrize("streamed", [False, True])
def test_an_illegal_list_is_a_400_of_each_provider(streamed: bool) -> None:
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
    with serving(["Hi."]) as provider, claude(provider) as one, gpt(provider) as other:
        with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`") as refused:
            one.messages.create(
                model="claude-sonnet-5",
                max_tokens=9,
                messages=[orphan],
                tools=TOOLS,
                stream=streamed,
            )
        assert refused.value.type == "invalid_request_error"
        result = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
        with pytest.raises(
            openai.BadRequestError, match="must be a response to a preceeding message"
        ) as chat:
            other.chat.completions.create(model="gpt-4o", messages=[result], stream=streamed)
        assert chat.value.param == "messages.[0].role"
        item = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
        with pytest.raises(
            openai.BadRequestError, match="No tool call found for function call output"
        ) as items:
            other.responses.create(model="gpt-4o", input=[item], stream=streamed)
        assert items.value.param == "input"
    assert len(provider.refused) == 3
    assert not provider.accepted


def test_what_is_too_long_is_refused_in_words_that_are_recognised() -> None:
    long = [{"role": "user", "content": "word " * 500}]
    with (
        serving(["Hi."], window={"gpt-4o": 100, "claude-sonnet-5": 100}) as provider,
        gpt(provider) as client,
    ):
        with pytest.raises(
            anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 100 maximum"
        ) as one:
            ask_claude(provider, long)
        with pytest.raises(openai.BadRequestError, match="maximum context length is 100 tokens") as two:
            client.chat.completions.create(model="gpt-4o", messages=long)
        with pytest.raises(openai.BadRequestError, match="exceeds the context window") as three:
            client.responses.create(model="gpt-4o", input=long)
        client.chat.completions.create(model="gpt-4o-mini", messages=long)
    assert all(says_overflow(str(error.value)) for error in (one, two, three))
    assert two.value.code == three.value.code == "context_length_exceeded"


def test_the_output_must_fit_too_where_the_model_wants_it() -> None:
    with serving(["Hi."], window=200, counts_output=True) as provider, gpt(provider) as client:
        with pytest.raises(anthropic.BadRequestError, match=r"exceed context limit: \d+ \+ 300 > 200") as one:
            ask_claude(provider, [ASK], max_tokens=300)
        with pytest.raises(openai.BadRequestError, match=r"300 in the completion") as two:
            client.chat.completions.create(model="gpt-4o", messages=[ASK], max_completion_tokens=300)
        with pytest.raises(openai.BadRequestError, match="exceeds the context window") as three:
            client.responses.create(model="gpt-4o", input="Hello", max_output_tokens=300)
        ask_claude(provider, [ASK])
    assert all(says_overflow(str(error.value)) for error in (one, two, three))


def test_a_refusal_can_come_late_in_a_stream() -> None:
    long: Any = [{"role": "user", "content": "word " * 500}]
    with (
        serving(["Hi."], window=100, late_refusals=True) as provider,
        claude(provider) as one,
        gpt(provider) as two,
    ):
        with pytest.raises(anthropic.APIStatusError, match="prompt is too long"):
            for _ in one.messages.create(model="claude-sonnet-5", max_tokens=9, messages=long, stream=True):
                pass
        with pytest.raises(openai.APIError, match="maximum context length"):
            for _ in two.chat.completions.create(model="gpt-4o", messages=long, stream=True):
                pass
        events = [event.type for event in two.responses.create(model="gpt-4o", input=long, stream=True)]
        assert events == ["response.created", "response.in_progress", "response.failed"]
        with pytest.raises(anthropic.BadRequestError):
            ask_claude(provider, long)  # without a stream it is refused at once


def test_other_words_for_an_overflow() -> None:
    def quoting(tokens: int, window: int) -> Problem:
        return Problem(f"your text 'limit of 5 tokens' has {tokens} of {window} tokens")

    with (
        serving(["Hi."], window=3, too_long=quoting) as provider,
        pytest.raises(anthropic.BadRequestError, match="limit of 5"),
    ):
        ask_claude(provider, [ASK])


def test_a_script_can_refuse_anything() -> None:
    script: list[Answer] = [
        Refusal(529, "Overloaded", "overloaded_error"),
        Refusal(429, "Slow down", late=True),
        "Hi.",
    ]
    with serving(script) as provider:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded") as refused:
            ask_claude(provider, [ASK])
        assert refused.value.status_code == 529
        with pytest.raises(anthropic.RateLimitError):
            ask_claude(provider, [ASK])
        assert ask_claude(provider, [ASK]).content[0].text == "Hi."
        assert ask_claude(provider, [ASK]).content[0].text == "Hi.", "the last answer is repeated"


def test_requests_without_a_key_unknown_paths_and_bad_json_are_refused() -> None:
    with serving(["Hi."]) as provider:
        paths = {"messages": 401, "chat/completions": 401, "responses": 401, "unknown": 404}
        for path, status in paths.items():
            assert httpx.post(f"{provider.openai_url}/{path}", json={}).status_code == status
        for raw in (b"{", b"\xff", b'"text"', b'{"model": "m", "messages": "\\ud800"}'):
            for path in ("messages", "chat/completions", "responses"):
                found = httpx.post(
                    f"{provider.openai_url}/{path}", content=raw, headers={"x-api-key": "none"}
                )
                assert found.status_code == 400, (path, raw)
                assert found.json()["error"]["type"] == "invalid_request_error"


# --- what comes back


def test_thinking_comes_back_unchanged_or_is_refused() -> None:
    with serving([REPLY]) as provider:
        reply = ask_claude(provider, [ASK], tools=TOOLS).to_dict()
        blocks = [{k: v for k, v in block.items() if v is not None} for block in reply["content"]]
        result = {"type": "tool_result", "tool_use_id": blocks[-1]["id"], "content": "x"}
        for damage in ("none", "text", "signature", "gone"):
            told = [dict(block) for block in blocks]
            if damage == "text":
                told[0]["thinking"] += " More."
            elif damage == "signature":
                told[0]["signature"] = "x" + told[0]["signature"][1:]
            elif damage == "gone":
                del told[0]
            messages = [ASK, {"role": "assistant", "content": told}, {"role": "user", "content": [result]}]
            thinking = {"type": "enabled", "budget_tokens": 1024}
            if damage == "none":
                ask_claude(provider, messages, tools=TOOLS, thinking=thinking)
            else:
                with pytest.raises(anthropic.BadRequestError, match="thinking"):
                    ask_claude(provider, messages, tools=TOOLS, thinking=thinking)


def test_reasoning_comes_back_unchanged_with_what_it_led_to() -> None:
    with serving([REPLY]) as provider, gpt(provider) as client:
        output = [item.to_dict() for item in client.responses.create(model="gpt-4o", input="Hello").output]
        start: list[Any] = [{"role": "user", "content": "Hello"}]
        result = {"type": "function_call_output", "call_id": output[-1]["call_id"], "output": "x"}
        client.responses.create(model="gpt-4o", input=[*start, *output, result])
        damaged = {**output[0], "encrypted_content": "x" + str(output[0]["encrypted_content"])[1:]}
        for items in ([damaged, *output[1:]], output[1:], [*output[:1], *output]):
            with pytest.raises(openai.BadRequestError, match=r"encrypted|reasoning|Duplicate"):
                client.responses.create(model="gpt-4o", input=[*start, *items, result])
        with pytest.raises(openai.BadRequestError, match="required following item"):
            client.responses.create(model="gpt-4o", input=[*start, output[0], *start])


def test_every_request_is_remembered_and_lost_prefixes_are_counted() -> None:
    with serving(lambda request: f"Reply {request.number}.") as provider:
        messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
        for number in range(1, 4):
            marked = {"type": "text", "text": f"Turn {number}", "cache_control": {"type": "ephemeral"}}
            ask_claude(provider, [*messages, {"role": "user", "content": [marked]}])
            messages.append({"role": "user", "content": [{"type": "text", "text": f"Turn {number}"}]})
            messages.append({"role": "assistant", "content": f"Reply {number}."})
        ask_claude(provider, [messages[0], *messages[3:], ASK])
    assert [request.number for request in provider.requests] == [1, 2, 3, 4]
    assert provider.requests[0].headers["anthropic-version"]
    assert provider.requests[2].messages == provider.requests[2].body["messages"]
    assert prefix_breaks(provider.accepted[:3]) == 0
    assert prefix_breaks(provider.accepted) == 1
