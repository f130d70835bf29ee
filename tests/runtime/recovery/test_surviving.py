"""`call` and `acall`: a model that refuses what is too long is answered with less, until there is nothing less."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import threading
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import events, manager, pair, ratio, says, user
from support.strategies import examples
from support.windows import Item, Model, Refused, tool_session

from compact import CompactConfig, CompactError, CompactManager
from compact.checks import violations
from compact.errors import ContextOverflow, WindowTooSmall
from compact.runtime.overflow import Overflow
from compact.runtime.overflow.evidence import input_tokens
from compact.runtime.overflow.learning import LearnedWindows
from compact.testing import FailingArchive, ScriptedSummarizer
from compact.windows import Window

SILENT = "Input is too long for requested model."
NAMED = "prompt is too long: {n} tokens > {limit} maximum"


def correction(made: CompactManager) -> float:
    return ratio(made.sessions.get("s"), made.config.model)


def actions(made: CompactManager, session: str = "s") -> list[str]:
    return [event["properties"]["action"] for event in events(made, session, "recovery")]


def assert_each_is_smaller(model: Model) -> None:
    """No request is sent twice, and each that follows a refusal is smaller; all are legal as they are sent."""
    refused = model.sizes[: model.refusals + 1]
    assert refused == sorted(refused, reverse=True)
    assert len(set(refused)) == len(refused)
    for request in model.requests:
        assert violations(request, in_flight=False) == []


@pytest.mark.parametrize("words", [NAMED, SILENT])
@pytest.mark.parametrize("runs_async", [False, True])
def test_a_refused_request_is_made_smaller_and_answered(words: str, runs_async: bool) -> None:
    made, model, items = manager(32_000), Model(9000, words), tool_session(90)
    before = copy.deepcopy(items)
    reply = asyncio.run(made.acall("s", items, model.acall)) if runs_async else made.call("s", items, model)
    assert reply["content"] == f"reply {len(model.requests)}"
    assert model.refusals >= 1
    assert_each_is_smaller(model)
    assert items == before, "the host's list is its own"
    assert "Never touch the database." in json.dumps(model.requests[-1])
    assert actions(made) == ["compact"] * model.refusals


def test_the_limit_that_was_named_is_used_from_then_on() -> None:
    made, model, items = manager(32_000), Model(9000), tool_session(90)
    made.call("s", items, model)
    assert model.refusals == 1
    assert made.models.window(None, "s").tokens == 9000
    assert made.estimate(items).max_tokens == 32_000, "one session's word is not the model's limit"
    for n in range(20):
        items += [says(f"reply {n}"), user("next"), *pair(f"d{n}", "more rows " * 300)]
        made.call("s", items, model)
    assert model.refusals == 1, "known before it is sent"
    (event,) = events(made, name="recovery")
    assert event["properties"] == {"attempt": 1, "action": "compact", "learned_limit": 9000}
    made.call("another session", tool_session(90), model)
    assert model.refusals == 2
    assert made.estimate(items).max_tokens == 9000, "two sessions agree"
    made.call("a third session", tool_session(90), model)
    assert model.refusals == 2, "known before it is sent, in every session of the model"
    warned = [
        event["session_id"]
        for event in events(made, name="warning")
        if event["properties"]["code"] == "learned_limit"
    ]
    assert warned == ["s"]


@pytest.mark.parametrize("calls", [50, 400])
def test_a_list_of_too_many_messages_is_compacted_until_it_is_taken(calls: int) -> None:
    """No token limit is learned of it: the size of the refused request is the session's until one as large is answered."""
    items, lengths = tool_session(calls, words=10), list[int]()

    def model(messages: Any) -> Item:
        lengths.append(len(messages))
        if len(messages) > 100:
            raise Refused(
                "Error code: 400 - {'error': {'message': \"Invalid 'messages': array too long. Expected an array with "
                f"maximum length 100, but got an array with length {len(messages)} instead.\", 'type': "
                "'invalid_request_error', 'param': 'messages', 'code': 'array_above_max_length'}}"
            )
        return {"role": "assistant", "content": "ok"}

    made = manager(128_000)
    assert made.call("s", items, model)["content"] == "ok"
    assert lengths[0] == len(items)
    assert lengths[-1] <= 100
    assert {event["properties"]["learned_limit"] for event in events(made, name="recovery")} == {None}
    assert made.estimate(items).max_tokens == 128_000


@pytest.mark.parametrize("runs_async", [False, True])
def test_a_reply_that_ran_into_the_end_of_the_window_is_asked_for_again_with_more_room(
    runs_async: bool,
) -> None:
    made, items, sizes = manager(32_000), tool_session(90), list[int]()

    def model(messages: Any) -> Item:
        sizes.append(made.estimate(messages).total)
        cut = sizes[-1] > 9000
        reason = "model_context_window_exceeded" if cut else "end_turn"
        text = [{"type": "text", "text": "The totals are" if cut else "The totals are right."}]
        usage = {"input_tokens": sizes[-1], "output_tokens": 40}
        return {"role": "assistant", "content": text, "stop_reason": reason, "usage": usage}

    reply = asyncio.run(made.acall("s", items, model)) if runs_async else made.call("s", items, model)
    assert reply["stop_reason"] == "end_turn"
    assert sizes[0] > 9000 >= sizes[-1]
    assert actions(made) == ["compact"] * (len(sizes) - 1)


def test_a_cut_reply_is_returned_when_nothing_smaller_is_left_or_the_reply_itself_is_too_long() -> None:
    def model(messages: Any, took: int) -> Item:
        asked.append(messages)
        return {
            "content": "so far",
            "stop_reason": "model_context_window_exceeded",
            "usage": {"output_tokens": took},
        }

    asked: list[Any] = []
    made = manager(32_000)
    assert made.call("s", tool_session(60), lambda messages: model(messages, 3))["content"] == "so far"
    assert len(asked) > 1
    assert actions(made)[-1] == "give_up"
    asked.clear()
    made, items = manager(32_000), tool_session(10)
    assert made.call("s", items, lambda messages: model(messages, 20_000))["content"] == "so far"
    assert asked == [items], "a smaller request would be answered at the same length"
    assert actions(made) == []


def test_a_refused_size_is_of_its_model_and_session_until_it_is_answered() -> None:
    learned = LearnedWindows(reserve=0, buffer=0)
    window = Window(100_000, "configured", known=True)
    learned.take("small", "s", Overflow(None, None, None, SILENT), 20_000)
    assert learned.usable("small", "s", window) == 19_999
    assert learned.usable("large", "s", window) == learned.usable("small", "t", window) == 100_000
    learned.note_answer("small", "s", 19_999)
    learned.note_answer("large", "s", 50_000)
    assert learned.usable("small", "s", window) == 19_999
    learned.note_answer("small", "s", 20_001)
    assert learned.usable("small", "s", window) == 100_000


def test_another_model_of_the_session_is_not_held_to_a_refused_size() -> None:
    made, items = manager(32_000), tool_session(90)
    made.call("s", items, Model(9000, SILENT))
    large = Model(10**6)
    made.call("s", tool_session(95), large, model="gpt-4.1")
    fresh = Model(10**6)
    made.call("t", tool_session(95), fresh, model="gpt-4.1")
    assert large.sizes == fresh.sizes


def test_usage_is_held_against_the_request_that_was_sent() -> None:
    """While the model answers, another call of the same session may be prepared."""
    made, items = manager(32_000), tool_session(20)
    ours = made.estimate(items).total

    def model(messages: Any) -> Any:
        made.preflight("s", tool_session(5))
        return {"content": "ok", "usage": {"prompt_tokens": ours}}

    made.call("s", items, model)
    assert correction(made) == pytest.approx(1, abs=0.01)


def test_a_model_call_that_has_no_more_replies_says_so() -> None:
    made, items = manager(32_000), tool_session(5)
    with pytest.raises(StopIteration):
        made.call("s", items, Mock(side_effect=[]))

    async def stopped(messages: Any) -> Any:
        raise StopIteration

    for model in (Mock(side_effect=[]), stopped):
        with pytest.raises(RuntimeError, match="StopIteration"):
            asyncio.run(asyncio.wait_for(made.acall("s", items, model), 20))


def test_a_number_far_beyond_our_count_is_no_count() -> None:
    made = manager(32_000)
    model = Model(10, "prompt is too long: 123456789012 tokens > 9000 maximum")
    with pytest.raises(ContextOverflow) as caught:
        made.call("s", tool_session(60), model)
    assert caught.value.requested is None
    assert correction(made) == 1


def test_the_last_request_is_really_small_and_the_error_counts_what_was_committed() -> None:
    made, model = manager(32_000), Model(10, SILENT)
    committed: list[int] = []

    def counted(messages: Any) -> Any:
        committed.append(len(made.archive.steps("s")))
        return model(messages)

    with pytest.raises(ContextOverflow) as caught:
        made.call("s", tool_session(60), counted)
    assert model.sizes[-1] < model.sizes[-2] * 0.45
    count = len(made.archive.steps("s")) - committed[0]
    assert count > 1
    assert f"Your list is unchanged; {count} compactions were committed" in caught.value.hint
    with pytest.raises(ContextOverflow, match="no compactions were committed"):
        made.call("t", [user("hi")], model)


def test_a_limit_above_the_configured_window_does_not_widen_it() -> None:
    made = manager(16_000)
    model = Model(
        1, "This model's maximum context length is 200000 tokens. However, you requested 200001 tokens."
    )
    with pytest.raises(ContextOverflow) as caught:
        made.call("s", tool_session(60), model)
    assert caught.value.window == 16_000
    assert made.estimate(made.preflight("t", tool_session(90))).total <= made.config.budget(16_000)


def test_the_ladder_ends_with_a_readable_error() -> None:
    made, model, items = manager(32_000), Model(10, SILENT), tool_session(60)
    before = copy.deepcopy(items)
    with pytest.raises(ContextOverflow) as caught:
        made.call("s", items, model)
    assert actions(made) == ["compact", "compact", "compact", "truncate", "give_up"]
    assert [e["properties"]["attempt"] for e in events(made, name="recovery")] == [1, 2, 3, 4, 5]
    assert len(model.requests) == 5
    assert_each_is_smaller(model)
    error = caught.value
    assert isinstance(error.__cause__, Refused)
    assert f"{error.tokens:,} tokens" in str(error)
    assert "32,000" in str(error)
    assert SILENT.rstrip(".") in str(error)
    assert "reset" in error.hint
    assert "larger context window" in error.hint
    assert (error.code, error.window, error.limit, error.attempts) == ("ContextOverflow", 32_000, None, 4)
    assert items == before
    restored = made.archive.restore("s", 1).messages
    assert len(restored) == len(items), "what left the context lies in the archive"


def test_the_last_rung_asks_no_model() -> None:
    """Three compactions ask the summarizer; cutting does not, and neither does giving up."""
    summarizer = ScriptedSummarizer(RuntimeError("the summarizer is down"))
    made = manager(32_000, summarizer=summarizer)
    asked_before: list[int] = []

    def model(messages: Any) -> Any:
        asked_before.append(len(summarizer.requests))
        raise Refused(SILENT)

    with pytest.raises(ContextOverflow):
        made.call("s", tool_session(60), model)
    assert actions(made)[-2:] == ["truncate", "give_up"]
    assert asked_before[-1] == asked_before[-2] == len(summarizer.requests)


def test_the_number_of_compactions_is_configured() -> None:
    made, model = manager(32_000, recovery={"max_compactions": 1}), Model(10, SILENT)
    with pytest.raises(ContextOverflow):
        made.call("s", tool_session(60), model)
    assert actions(made) == ["compact", "truncate", "give_up"]
    none, model = manager(32_000, recovery={"max_compactions": 0}), Model(10, SILENT)
    with pytest.raises(ContextOverflow):
        none.call("s", tool_session(60), model)
    assert actions(none) == ["give_up"]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "problem",
    [
        RuntimeError("Rate limit reached: tokens per min (TPM): Limit 30000, Requested 35064"),
        ValueError("max_tokens is too large: 20000"),
        TimeoutError("Request timed out."),
        ConnectionError("transport disconnected"),
        KeyError("choices"),
    ],
)
def test_other_errors_pass_through_untouched(problem: Exception) -> None:
    made = manager(32_000)

    def model(messages: Any) -> Any:
        raise problem

    with pytest.raises(type(problem)) as caught:
        made.call("s", tool_session(5), model)
    assert caught.value is problem
    assert actions(made) == []
    assert made.archive.steps("s") == []


def test_without_the_archive_nothing_leaves_and_the_error_says_so() -> None:
    made = manager(32_000)
    down = FailingArchive(made.services.recorder, lambda operation: operation == "begin")
    failing = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=32_000), archive=down)
    model, items = Model(4500), tool_session(30)
    with pytest.raises(ContextOverflow, match="the archive does not take it") as caught:
        failing.call("s", items, model)
    assert len(model.requests) == 1
    assert isinstance(caught.value.__cause__, Refused)
    assert "Repair the archive" in caught.value.hint


def test_a_failed_compaction_goes_straight_to_cutting() -> None:
    """What must stay is more than the wanted size: the smallest request there is, is sent all the same."""
    pinned = user("These rules stay. " * 1_000, meta={"protected": True})
    made, model = manager(32_000), Model(5100, SILENT)
    reply = made.call("s", [pinned, *tool_session(14, 200)], model)
    assert reply["content"]
    assert actions(made)[-1] == "truncate"
    assert_each_is_smaller(model)
    assert made.call("s", made.last_request("s") or [], model)["content"], (
        "and the next call goes on from there"
    )


def test_a_request_in_error_clothes_is_recovered_too() -> None:
    """Some gateways answer 200 with an error in the body."""
    made = manager(32_000)
    refusing = Model(9000)

    def model(messages: Any) -> Any:
        try:
            return refusing(messages)
        except Refused as problem:
            return {"error": {"message": str(problem), "code": 400}}

    assert made.call("s", tool_session(90), model)["content"] == "reply 2"
    refusing.limit = 10
    with pytest.raises(ContextOverflow) as caught:
        made.call("t", tool_session(60), model)
    assert caught.value.__cause__ is None


def test_a_reply_that_does_not_fit_by_itself_is_said_at_once() -> None:
    made = manager(32_000)
    words = (
        "This model's maximum context length is 8192 tokens. However, you requested 17000 tokens (8000 in the messages, "
        "9000 in the completion)."
    )
    coded = Model(1, json.dumps({"error": {"code": "context_length_exceeded", "message": words}}).replace("{", "{{").replace("}", "}}"))  # fmt: skip
    with pytest.raises(ContextOverflow, match="9,000 tokens reserved for the reply") as caught:
        made.call("s", tool_session(30), coded)
    assert len(coded.requests) == 1
    assert "max output tokens" in caught.value.hint


def test_the_replys_share_is_kept_free_from_then_on() -> None:
    made = manager(32_000)
    sizes: list[int] = []

    def model(messages: Any) -> Any:
        size = made.estimate(messages).total
        sizes.append(size)
        if size + 6000 > 16_000:
            raise Refused(
                f"input length and `max_tokens` exceed context limit: {size} + 6000 > 16000, decrease input length"
            )
        return {"content": "ok"}

    items = tool_session(80)
    made.call("s", items, model)
    assert len(sizes) == 2
    for n in range(12):
        items += [says("ok"), user("next"), *pair(f"e{n}", "rows and rows " * 250)]
        made.call("s", items, model)
    assert len(sizes) == 14, "never refused again"


def test_a_provider_that_counts_more_is_believed() -> None:
    """Its tokenizer makes 1.4 times as many tokens of the same text."""
    made, model, items = manager(16_000), Model(15_000, factor=1.4), tool_session(70)
    made.call("s", items, model)
    assert model.refusals <= 1
    for n in range(10):
        items += [says(f"reply {n}"), user("next"), *pair(f"f{n}", "rows and rows " * 300)]
        made.call("s", items, model)
    assert model.refusals <= 1


def test_a_limit_below_the_hard_minimum_never_stops_a_session() -> None:
    made, model = manager(32_000), Model(2000)
    with suppress(ContextOverflow):
        made.call("s", tool_session(20), model)
    assert model.refusals
    for session in ("s", "other"):
        assert made.preflight(session, [user("hi")]) == [user("hi")]
        assert made.models.window(None, session).tokens == 32_000
    allowed = manager(
        32_000, guard={"min_context_tokens": 0, "warn_context_tokens": 0}, policy={"hard_cap_buffer": 100}
    )
    assert allowed.call("s", tool_session(20), Model(2000))["content"]


CHAT = [user("go"), *pair("a", "done"), *pair("b", "never seen")[:1]]
ANTHROPIC: list[Item] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}, {"type": "tool_use", "id": "b", "name": "ls", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
]  # fmt: skip
RESPONSES: list[Item] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
]


@pytest.mark.parametrize("items", [CHAT, ANTHROPIC, RESPONSES], ids=["chat", "anthropic", "responses"])
def test_calls_that_still_wait_are_answered_before_the_request_is_sent(items: list[Item]) -> None:
    made, model, before = manager(32_000), Model(9000), copy.deepcopy(items)
    assert violations(items, in_flight=False), "as it stands, a provider would refuse it"
    made.call("s", items, model)
    (sent,) = model.requests
    assert violations(sent, in_flight=False) == []
    assert "never answered" in json.dumps(sent)
    assert items == before
    assert made.preflight("s", items) is items, "between two steps they are in flight, and stay open"


def test_nothing_is_copied_when_nothing_is_open() -> None:
    made, items = manager(32_000), [user("go"), *pair("a", "done")]
    seen: list[Any] = []
    made.call("s", items, seen.append)
    assert seen[0] is items


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"usage": {"prompt_tokens": 900}}, 900),
        (
            {
                "usage": {
                    "input_tokens": 700,
                    "cache_read_input_tokens": 150,
                    "cache_creation_input_tokens": 50,
                }
            },
            900,
        ),
        ({"usage": {"input_tokens": 900, "input_tokens_details": {"cached_tokens": 100}}}, 900),
        ({"usage": {"inputTokens": 900, "outputTokens": 3}}, 900),
        ({"usageMetadata": {"promptTokenCount": 900}}, 900),
        ({"usage_metadata": {"input_tokens": 900, "output_tokens": 4}}, 900),
        ({"usage": {"prompt_tokens": 0}}, None),
        ({"usage": None}, None),
        ({}, None),
        ("text", None),
    ],
)
def test_usage_in_the_forms_of_many_providers(usage: Any, counted: int | None) -> None:
    assert input_tokens(usage) == counted


def test_the_replys_usage_is_observed() -> None:
    made, items = manager(32_000), tool_session(100)
    ours = made.estimate(items).total
    made.call("s", items, lambda messages: {"usage": {"prompt_tokens": ours * 2}})
    assert correction(made) == pytest.approx(2.0)
    assert made.preflight("s", items) is not items, "what fitted before is now known to be too much"


def test_the_count_of_a_compacted_request_is_held_against_that_request() -> None:
    made, model = manager(16_000), Model(1_000_000)

    def counted(messages: Any) -> Any:
        model(messages)
        return {"usage": {"prompt_tokens": made.estimate(messages).total}}

    made.call("s", tool_session(90), counted)
    assert correction(made) == pytest.approx(1.0, abs=0.02)


def test_a_host_that_keeps_what_was_sent_goes_on_from_there() -> None:
    made, model = manager(32_000), Model(9000)
    kept: list[Any] = tool_session(90)
    for n in range(15):
        reply = made.call("s", kept, model)
        kept = [*(made.last_request("s") or []), reply, user("next"), *pair(f"g{n}", "rows and rows " * 200)]
    assert model.refusals == 1
    assert made.last_request("nobody") is None


def test_a_switch_to_a_smaller_model_is_noticed_without_a_new_manager() -> None:
    made = manager(128_000, windows={"small-model": 8000})
    items = tool_session(90)
    assert made.preflight("s", items) is items
    assert made.preflight("s", items, model="gpt-4o") is items, (
        "the configured model has the configured window"
    )
    smaller = made.preflight("s", items, model="small-model")
    assert made.estimate(smaller).total <= made.config.budget(8000)
    seen: list[Any] = []
    made.call("t", items, seen.append, model="small-model")
    assert made.estimate(seen[0]).total <= made.config.budget(8000)
    with pytest.raises(WindowTooSmall, match="windows in the configuration"):
        manager(windows={"tiny": 900}).preflight("s", items, model="tiny")


def test_what_was_learned_of_one_model_is_not_held_against_another() -> None:
    made = manager(32_000, windows={"other": 32_000})
    made.call("s", tool_session(90), Model(9000))
    large = Model(1_000_000)
    made.call("t", tool_session(90), large, model="other")
    assert large.sizes[0] > 9000


def test_an_async_model_is_refused_by_call_and_a_plain_one_runs_in_a_thread() -> None:
    made = manager(32_000)
    with pytest.raises(TypeError, match="acall"):
        _ = made.call("s", [user("hi")], Model(9000).acall)
    threads: list[int] = []

    def plain(messages: Any) -> str:
        threads.append(threading.get_ident())
        return "ok"

    async def both() -> tuple[str, str]:
        threads.append(threading.get_ident())

        async def inner(messages: Any) -> str:
            return "async"

        return await made.acall("s", [user("hi")], plain), await made.acall(
            "s", [user("hi")], lambda messages: inner(messages)
        )

    assert asyncio.run(both()) == ("ok", "async")
    assert threads[0] != threads[1]


def test_a_cancelled_call_leaves_the_session_as_it_was() -> None:
    made, items = manager(32_000), tool_session(20)

    async def hangs(messages: Any) -> None:
        await asyncio.sleep(60)

    async def cancelled() -> None:
        async with asyncio.timeout(0.2):
            await made.acall("s", items, hangs)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    assert made.call("s", items, Model(90_000))["content"] == "reply 1"


def test_recovery_is_in_the_log_too(caplog: pytest.LogCaptureFixture) -> None:
    made = manager(32_000)
    with caplog.at_level(logging.INFO, logger="compact"):
        made.call("s", tool_session(90), Model(9000))
    assert any("overflow" in line and "9,000" in line for line in caplog.messages)


def test_secrets_in_the_providers_words_do_not_get_out(caplog: pytest.LogCaptureFixture) -> None:
    made = manager(32_000)
    model = Model(
        10, "Input is too long for requested model. key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    )
    with pytest.raises(ContextOverflow) as caught:
        made.call("s", tool_session(30), model)
    assert "too long" in str(caught.value)
    assert "sk-proj-abcdef" not in str(caught.value)
    assert "sk-proj-abcdef" not in caplog.text
    assert "sk-proj-abcdef" not in json.dumps(events(made))


@settings(max_examples=examples(25))
@given(
    limit=st.integers(300, 20_000),
    calls=st.integers(1, 40),
    words=st.sampled_from([NAMED, SILENT]),
    factor=st.sampled_from([0.8, 1.0, 1.5, 2.5]),
)
@pytest.mark.no_cover
def test_it_ends_well_or_says_why_whatever_the_window(
    limit: int, calls: int, words: str, factor: float
) -> None:
    made = manager(12_000, guard={"min_context_tokens": 0, "warn_context_tokens": 0})
    model, items = Model(limit, words, factor), tool_session(calls)
    before = copy.deepcopy(items)
    with suppress(CompactError):
        made.call("s", items, model)
    assert len(model.requests) <= 5
    assert_each_is_smaller(model)
    assert items == before
