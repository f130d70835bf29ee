"""Errors as providers word them, from the table of real ones and from the SDKs' own classes."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import httpx
import openai
import pytest
import yaml
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from support.data import FIXTURES

from compact import ContextOverflow
from compact.errors import InsufficientBudget, WindowTooSmall
from compact.runtime.overflow import Overflow, recognise, recognise_reply

Item = dict[str, Any]
TABLE: dict[str, list[Item]] = yaml.safe_load((FIXTURES / "cases" / "overflow.yaml").read_text())


def cases(part: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{n} {case.get('provider') or case['what']}")
        for n, case in enumerate(TABLE[part])
    ]


def body(case: Item) -> Any:
    return case["body"] if "body" in case else {"message": case["text"]}


def response(case: Item) -> httpx.Response:
    return httpx.Response(
        case.get("status", 400), json=body(case), request=httpx.Request("POST", "http://host/v1")
    )


@cache
def clients() -> list[Any]:
    """The SDKs that are installed: each makes its own exception of a response."""
    found: list[Any] = [openai.OpenAI(api_key="k", base_url="http://host/v1")]
    if find_spec("anthropic"):
        import anthropic

        found.append(anthropic.Anthropic(api_key="k", base_url="http://host"))
    return found


def raised(case: Item) -> list[Exception]:
    return [client._make_status_error_from_response(response(case)) for client in clients()]


def as_text(case: Item) -> str:
    return str(case["text"]) if "text" in case else f"Error code: {case.get('status', 400)} - {case['body']}"


def numbers(case: Item) -> tuple[int | None, int | None, int | None]:
    return case.get("limit"), case.get("requested"), case.get("output")


def found(problem: Any) -> tuple[int | None, int | None, int | None] | None:
    overflow = recognise(problem)
    return None if overflow is None else (overflow.limit, overflow.requested, overflow.output)


@pytest.mark.parametrize("case", cases("overflows"))
def test_an_overflow_is_recognised_with_its_numbers_however_it_arrives(case: Item) -> None:
    for problem in (
        *raised(case),
        response(case),
        {"status_code": case.get("status"), "body": body(case)},
        RuntimeError(as_text(case)),
    ):
        assert found(problem) == numbers(case), type(problem).__name__


@pytest.mark.parametrize("case", cases("overflows"))
def test_an_overflow_is_recognised_through_what_wraps_it(case: Item) -> None:
    wrapped = RuntimeError("the model call failed")
    wrapped.__cause__ = raised(case)[-1]
    assert found(wrapped) == numbers(case)
    quoted = {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(body(case))}}}
    assert recognise(quoted) is not None
    assert recognise(ExceptionGroup("several", [ValueError("x"), raised(case)[0]])) is not None


@pytest.mark.parametrize("case", cases("other_errors"))
def test_another_error_is_never_taken_for_an_overflow(case: Item) -> None:
    for problem in (*raised(case), response(case), RuntimeError(as_text(case))):
        assert recognise(problem) is None, type(problem).__name__


def test_the_table_is_large_enough_to_mean_something() -> None:
    assert len(TABLE["overflows"]) >= 70
    assert len(TABLE["other_errors"]) >= 40


def test_litellm_classes() -> None:
    litellm = pytest.importorskip("litellm")
    exceeded = litellm.ContextWindowExceededError(
        "litellm.ContextWindowExceededError: AnthropicError - prompt is too long: 209303 tokens > 200000 maximum",
        "claude",
        "anthropic",
    )
    assert found(exceeded) == (200000, 209303, None)
    limited = litellm.RateLimitError("Request too large: tokens per min", "openai", "gpt-4o")
    assert recognise(limited) is None


def test_botocore_errors() -> None:
    def aws(code: str, message: str) -> ClientError:
        answer: Any = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": 400},
        }
        return ClientError(answer, "Converse")

    assert found(aws("ValidationException", "Input is too long for requested model.")) == (None, None, None)
    assert recognise(aws("ThrottlingException", "Too many tokens, please wait before trying again.")) is None
    assert recognise(aws("ValidationException", "messages.0: roles must alternate")) is None


def test_google_errors() -> None:
    google_errors = pytest.importorskip("google.genai.errors")
    said = "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."
    refused = google_errors.ClientError(
        400, {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}
    )
    assert found(refused) == (1048576, 1200293, None)


@pytest.mark.parametrize(
    "name",
    [
        "context_length_exceeded",
        "ContextWindowExceededError",
        "ContextWindowOverflowException",
        "ContextOverflowError",
        "exceed_context_size_error",
        "request_too_large",
        "model_max_prompt_tokens_exceeded",
        "tokens_limit_reached",
        "PROMPT_TOO_LONG",
        "input_too_large",
    ],
)
def test_a_name_is_enough(name: str) -> None:
    assert recognise({"error": {"code": name, "message": "no"}}) is not None
    assert recognise(type(name, (Exception,), {})("no")) is not None


@pytest.mark.parametrize(
    "name",
    [
        "rate_limit_exceeded",
        "insufficient_quota",
        "max_tokens_exceeded",
        "max_output_tokens",
        "request_timeout",
        "BudgetExceededError",
        "UsageLimitExceeded",
        "LengthFinishReasonError",
        "MaxTurnsExceeded",
        "RecursionError",
        "DeadlineExceeded",
        "image_too_large",
    ],
)
def test_names_of_other_errors(name: str) -> None:
    assert recognise({"error": {"code": name, "message": "no"}}) is None
    assert recognise(type(name, (Exception,), {})("no")) is None


def test_a_disconnect_that_was_raised_from_an_overflow_is_a_disconnect() -> None:
    lost = ConnectionError("transport disconnected")
    lost.__cause__ = ValueError("prompt is too long: 9 tokens > 8 maximum")
    assert recognise(lost) is None
    late = TimeoutError()
    late.__cause__ = ValueError("prompt is too long: 9 tokens > 8 maximum")
    assert recognise(late) is None


def test_what_was_only_being_handled_at_the_time_does_not_count() -> None:
    missing = KeyError("fallback")
    missing.__context__ = ValueError("prompt is too long: 210266 tokens > 200000 maximum")
    assert recognise(missing) is None


def test_a_conversation_that_quotes_an_overflow_is_not_one() -> None:
    echo = {"error": {"message": "Invalid 'temperature'", "code": "invalid_value"}, "messages": [
        {"role": "user", "content": "I get: prompt is too long: 210266 tokens > 200000 maximum"}
    ]}  # fmt: skip
    assert recognise(echo) is None


def test_errors_of_compact_itself_pass_through() -> None:
    for kind in (ContextOverflow, WindowTooSmall, InsufficientBudget):
        assert recognise(kind("prompt is too long: 210266 tokens > 200000 maximum")) is None


def test_replies_that_are_errors() -> None:
    said = {
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model.",
    }
    assert recognise_reply({"error": said})
    assert recognise_reply({"status": "failed", "error": said})
    assert recognise_reply({"choices": [{"finish_reason": "error", "error": said}]})
    assert recognise_reply({"stop_reason": "error", "error_message": "request_too_large"})
    assert recognise_reply(response(TABLE["overflows"][0]))
    told = "Input is too long for requested model."
    assert recognise_reply({"object": "error", "message": told, "type": "BadRequestError", "code": 400})
    assert recognise_reply({"type": "error", "message": told})
    assert recognise_reply({"__type": "ValidationException", "message": told})
    assert recognise_reply([{"error": {"code": 400, "message": told, "status": "INVALID_ARGUMENT"}}])


def test_replies_that_are_none() -> None:
    """An answer that speaks of overflows, or that was cut at its own length, is an answer."""
    spoken = "The prompt is too long: 210266 tokens > 200000 maximum, says the log."
    for reply in (
        spoken,
        None,
        {"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": spoken}}]},
        {"role": "assistant", "stop_reason": "max_tokens", "content": [{"type": "text", "text": spoken}]},
        {"role": "assistant", "stop_reason": "end_turn", "content": "model_context_window_exceeded"},
        {"choices": [{"finish_reason": "stop", "message": {"content": "model_context_window_exceeded"}}]},
        {"error": None, "output": [{"type": "message", "content": spoken}]},
        {"error": {"code": "rate_limit_exceeded", "message": "slow down"}},
        {"type": "message", "message": spoken},
        [{"type": "text", "text": spoken}],
        [{"message": spoken}, {"error": {"message": spoken}}],
        [],
    ):
        assert recognise_reply(reply) is None


@pytest.mark.parametrize(
    ("reply", "took"),
    [
        ({"stop_reason": "model_context_window_exceeded", "content": [], "usage": {"output_tokens": 9}}, 9),
        ({"stopReason": "model_context_window_exceeded", "output": {}, "usage": {"outputTokens": 7}}, 7),
        ({"choices": [{"finish_reason": "model_context_window_exceeded", "message": {"content": ""}}]}, None),
        ({"choices": [{"finish_reason": "model_length"}], "usage": {"completion_tokens": 3}}, 3),
        (SimpleNamespace(stop_reason="model_context_window_exceeded", usage=SimpleNamespace(output_tokens=5)), 5),
    ],
)  # fmt: skip
def test_a_reply_that_ran_into_the_end_of_the_window_is_an_overflow(reply: Any, took: int | None) -> None:
    overflow = recognise_reply(reply)
    assert overflow is not None
    assert (overflow.limit, overflow.requested, overflow.output, overflow.in_reply) == (
        None,
        None,
        took,
        True,
    )


def test_a_reply_longer_than_the_window_is_not_the_prompts_fault() -> None:
    said = "This model's maximum context length is 4097 tokens. However, you requested 5444 tokens (444 in the messages, 5000 in the completion)."
    overflow = recognise({"error": {"code": "context_length_exceeded", "message": said}})
    assert overflow is not None
    assert overflow.is_output_alone
    assert overflow.input == 444


UNSEEN = [
    ("The prompt has 150000 tokens which is over the 128000 token limit", 128000, 150000),
    ("Error: Message too long: 12000 tokens (max 8192)", 8192, 12000),
    ("Your prompt length is 210000 tokens; this model only supports 131072 tokens of context.", 131072, 210000),
    ("Your messages exceed the model's maximum context length: 9000 > 8192", 8192, 9000),
    ("Request exceeds maximum context length of 8192 tokens: requested 9123", 8192, 9123),
    ("The request's total token count (1,048,600) exceeds the limit of 1,048,576.", 1048576, 1048600),
    ("Input too long: 5000 tokens, limit 4096", 4096, 5000),
    ("the prompt is 210000 tokens, but the maximum is 200000", 200000, 210000),
    ("input tokens limit exceeded. received 9001, max 8192", 8192, 9001),
    ("maximum context window of 8k tokens exceeded", 8000, None),
    ("Requested 5000 tokens but only 4096 tokens of context are available", 4096, 5000),
    ("total_tokens 9000 exceeds max_seq_len 8192", 8192, 9000),
    ("Request too large: context of 210000 tokens does not fit in 200000", 200000, 210000),
    ("Malformed input request: expected maxLength: 200000, actual: 300000, please reformat your input", None, None),
    ("Conversation too long; please start a new chat", None, None),
    ("Context size has been exceeded.", None, None),
    ("输入长度超过模型上下文限制", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "limit", "requested"), UNSEEN)
def test_words_that_no_provider_uses_yet(text: str, limit: int | None, requested: int | None) -> None:
    assert found(text) == (limit, requested, None)


@pytest.mark.parametrize(
    "text",
    [
        "Your account has exceeded its monthly token budget",
        "You have reached your daily token limit",
        "max_tokens must be less than or equal to 4096",
        "Input should be less than or equal to 1",
        "Input should be greater than 0",
        "Max retries exceeded with url: /v1/messages",
        "Unexpected token < in JSON at position 0",
        "The response exceeded the 32000 output token maximum",
        "The file is too large: 60MB exceeds 50MB limit",
        "maximum recursion depth exceeded",
        "Concurrent request limit exceeded",
        "Metadata value too long: max length 512",
        "Thinking budget of 40000 tokens exceeds max_tokens 32000",
        "max_tokens (128000) exceeds the maximum allowed for this model (8192)",
        "Function name exceeds maximum length of 64 characters",
        "JWT token is over its maximum age",
        "The API key's token has exceeded its limit",
        "",
    ],
)
def test_sentences_that_only_sound_like_it(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.no_cover
@given(st.recursive(st.none() | st.text() | st.integers() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["error", "message", "code", "status_code", "body"]), inner)))  # fmt: skip
def test_any_body_is_read_without_an_error(value: Any) -> None:
    assert isinstance(recognise(value), Overflow | None)


def test_a_response_that_was_not_read_and_objects_that_raise_are_survived() -> None:
    class Odd(Exception):
        @property
        def body(self) -> Any:
            raise RuntimeError("no body")

        def __str__(self) -> str:
            raise ValueError("no text")

    unread = httpx.Response(
        400, stream=httpx.ByteStream(b"prompt is too long"), request=httpx.Request("POST", "http://h")
    )
    assert recognise(Odd()) is None
    assert recognise({"response": unread}) is None
    assert recognise(unread) is None


@pytest.mark.parametrize("kind", [Mock, MagicMock])
def test_a_mock_has_no_end_and_is_no_error(kind: Any) -> None:
    class Asked(kind):  # type: ignore[misc]
        """Counts the attributes that it makes up."""

        made = 0

        def _get_child_mock(self, **more: Any) -> Any:
            Asked.made += 1
            if Asked.made > 5000:
                raise AttributeError
            return Asked(**more)

    assert recognise(Asked()) is None
    assert recognise_reply(Asked()) is None
    assert Asked.made < 5000
    assert recognise_reply(kind(error=SimpleNamespace(message="prompt is too long"))) is not None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Unrecognized request argument supplied: context_length_exceeded_behavior"),
        (400, "Extra inputs are not permitted, field: 'context_length_exceeded', value: 'truncate'"),
        (400, "Invalid value: 'context_length_exceeded'. Supported values are: 'stop', 'length'"),
        (400, "Invalid schema for function 'truncate_context': context_window_exceeded is not valid"),
        (400, "Invalid JSON in tool call arguments: 'the prompt is too long for the context window'"),
        (400, "Failed to parse tool arguments: 'prompt is too long: 5 tokens > 3 maximum' is not JSON"),
        (422, "messages.4.content: Input should be a valid string [input_value='Error: prompt is too long: 206111 tokens > 200000 maximum']"),
        (422, "messages.4.content: Input should be a valid string [type=string_type, input_value=['prompt is too long'], input_type=list]"),
    ],
)  # fmt: skip
def test_an_error_that_only_quotes_an_overflow_is_another_error(status: int, text: str) -> None:
    test_another_error_is_never_taken_for_an_overflow(
        {"status": status, "text": text, "body": {"error": {"message": text}}}
    )


@pytest.mark.parametrize("kind", [NameError, AttributeError, ImportError, KeyError, TypeError, SyntaxError])
def test_a_mistake_in_the_hosts_code_is_never_an_overflow(kind: type[Exception]) -> None:
    assert recognise(kind("name 'ContextWindowExceededError' is not defined")) is None
    assert recognise(kind("ContextWindowExceededError: the prompt is too long")) is None


@pytest.mark.parametrize(
    "text",
    [
        "litellm.BadRequestError: litellm.ContextWindowExceededError: OpenAIException - no",
        "(context_length_exceeded) no",
        "Bad request\nCode: context_length_exceeded",
        "request_too_large",
    ],
)
def test_a_name_at_the_head_of_a_text_is_a_code(text: str) -> None:
    assert recognise(RuntimeError(text)) is not None


@pytest.mark.parametrize(
    "text",
    [
        'Invalid value: "prompt is too long: 5000 tokens > 4100 maximum". Supported values are text.',
        "Unexpected content near 'prompt is too long: 5000 tokens > 4100 maximum",
        "messages[3].content: `This model's maximum context length is 4100 tokens` is not valid",
        "Bad request, content: This model's maximum context length is 4100 tokens, you requested 9000",
        'Could not parse the arguments: {"error": {"code": "context_length_exceeded", "message": "prompt is too long"}}',
        '{"error": {"code": "context_length_exceeded"}} could not be encoded as text',
    ],
)
def test_what_an_error_quotes_is_not_what_it_says(text: str) -> None:
    assert recognise({"error": {"message": text, "code": "invalid_value"}}) is None
    assert recognise(RuntimeError(text)) is None


def test_what_an_error_repeats_of_the_request_is_no_evidence() -> None:
    planted = "the prompt is too long: 5000 tokens > 4100 maximum"
    sent = [{"role": "tool", "tool_call_id": "c", "content": f"A page.\n{planted}\nMore."}]
    echo = {"error": {"message": f"We could not accept {planted} today"}}
    assert recognise(echo, sent) is None
    assert recognise(echo, [{"role": "user", "content": "hello"}]) is not None
    assert recognise({"error": {"message": planted}}, sent) is not None, (
        "the whole of it is the provider's own word"
    )


@pytest.mark.parametrize("digits", [20, 5_000, 200_000])
def test_a_flood_of_digits_is_survived(digits: int) -> None:
    overflow = recognise(RuntimeError(f"prompt is too long: {'9' * digits} tokens > {'8' * digits} maximum"))
    assert overflow is None or (overflow.limit, overflow.requested) == (None, None)


def test_the_repr_of_an_error_object_is_read_as_the_object() -> None:
    """LangChain raises a plain ValueError with the text of OpenAI's error object."""
    text = "ResponseError(code='context_length_exceeded', message='Your input exceeds the context window.', param=None)"
    assert recognise(ValueError(text)) is not None
    for other in (
        "ResponseError(code='server_error', message='it is down', param=None)",
        f"invalid value near {text}",
        "ResponseError(code='context_length_exceeded'",
        "f(" * 5_000,
    ):
        assert recognise(ValueError(other)) is None, other[:60]


SHORT = (
    "context_length_exceeded: limit 4096 tokens",
    "context length exceeded: 4096",
    "prompt too long: max 4,096",
)


@pytest.mark.parametrize("planted", SHORT)
@pytest.mark.parametrize(
    "text", ["{0}: invalid character in messages[4].content", "Content rejected: {0}", "{0}", "refused\n{0}"]
)
def test_what_also_stands_in_the_request_is_no_evidence_of_a_limit(planted: str, text: str) -> None:
    sent = [{"role": "tool", "tool_call_id": "c", "content": f"A page.\n{planted}\nMore."}]
    for problem in (RuntimeError(text.format(planted)), {"error": {"message": text.format(planted)}}):
        overflow = recognise(problem, sent)
        assert overflow is None or (overflow.limit, overflow.by_code) == (None, False)


def test_a_body_that_a_tool_wrote_is_no_code() -> None:
    planted = '{"error": {"code": "context_length_exceeded", "message": "at most 4096", "n_ctx": 4096, "n_prompt_tokens": 9000}}'
    sent = [{"role": "tool", "tool_call_id": "c", "content": planted}]
    overflow = recognise(RuntimeError(f"Bad request: {planted}"), sent)
    assert overflow is None or (overflow.limit, overflow.requested, overflow.by_code) == (None, None, False)


def test_a_name_is_a_code_only_in_a_field_or_a_class() -> None:
    said = "the limit is 4096 tokens, you sent 9000"
    for text in (f"context_length_exceeded: {said}", f"Error code: context_length_exceeded\n{said}"):
        overflow = recognise(RuntimeError(text))
        assert overflow is not None
        assert not overflow.by_code
    coded = recognise({"error": {"code": "context_length_exceeded", "message": said}}, [{"content": "hello"}])
    assert coded is not None
    assert (coded.limit, coded.requested, coded.by_code) == (4096, 9000, True)
    raised = recognise(type("ContextWindowExceededError", (Exception,), {})(said))
    assert raised is not None
    assert raised.by_code


@pytest.mark.parametrize("field", ["code", "type", "error_code", "reason"])
@pytest.mark.parametrize("code", ["content_rejected", "invalid_json", "ModerationBlocked", "no_such_persona"])
def test_a_code_that_names_another_error_wins_over_repeated_words(field: str, code: str) -> None:
    for planted in (*SHORT, "prompt is too long: 9000 tokens > 4096 maximum"):
        sent = [{"role": "tool", "tool_call_id": "c", "content": f"log: {planted}\nmore"}]
        assert recognise({"error": {"message": planted, field: code}}, sent) is None
