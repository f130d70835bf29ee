"""One session, played: what is counted, what is checked, and that the checks can fail."""

from __future__ import annotations

from typing import Any

import pytest
from support.data import bundled_sessions
from support.engine import pair, says, user
from support.replay import long_session, played, policy

from compact import CompactManager, InsufficientBudget
from compact.checks import violations
from compact.tokens import Meter


def test_the_model_is_called_before_every_reply_and_once_more_if_the_last_word_is_not_its_own() -> None:
    talk = [user("a"), says("b"), says("still b"), user("c"), *pair("c1", "out"), says("d")]
    assert played(talk).calls == [1, 4, 6]
    assert played([*talk, user("e")]).calls == [1, 4, 6, 8]
    assert played([user("only this")]).calls == [1]
    assert played([]).calls == []


def test_without_is_the_exact_size_of_every_recorded_request() -> None:
    talk = long_session(6)
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
    found = played(talk, tools=tools)
    meter = Meter("gpt-4o")
    assert found.without == [meter.estimate(talk[:place], tools).total for place in found.calls]


def test_what_is_sent_is_what_the_manager_says_it_is() -> None:
    """The same calls made by hand, as a host makes them, and counted by the manager."""
    talk = long_session()
    found = played(talk)
    (run,) = found.runs
    with CompactManager(policy(archive={"adapter": "memory"}).config) as manager:
        context: list[Any] = []
        done, sizes = 0, []
        for place in found.calls:
            context = list(manager.preflight("s", [*context, *talk[done:place]]))
            sizes.append(manager.estimate(context).total)
            done = place
    assert run.sent == sizes
    assert len(run.steps) >= 2
    assert max(run.sent) <= run.budget
    assert run.over_window_without == sum(size > 8_000 for size in found.without) > 0
    assert run.passed


def test_a_step_says_when_why_and_how_much() -> None:
    found = played(long_session(), policy(policy={"trigger_pct": 0.7}))
    step = found.runs[0].steps[0]
    assert step.number == 1
    assert step.reason == "trigger"
    assert step.tokens_after == found.runs[0].sent[step.call] < step.tokens_before
    assert sum(step.saved.values()) > 0


def test_a_session_that_fits_is_sent_as_it_was() -> None:
    found = played(long_session(3), policy(window=128_000))
    (run,) = found.runs
    assert run.sent == found.without
    assert run.reused == found.reused_without
    assert run.steps == []
    assert run.cost == found.cost_without


def test_the_part_that_a_prompt_cache_can_serve_is_the_unchanged_beginning() -> None:
    found = played(long_session())
    (run,) = found.runs
    assert run.reused[0] == 0
    first = run.steps[0].call
    before = [run.sent[call] - 3 for call in range(first - 1)]
    assert run.reused[1:first] == before, "the request before, without the three tokens that prime a reply"
    assert run.reused[first] < run.sent[first - 1] / 2, "a step changes the beginning"
    assert found.cost_without is not None
    assert found.cost_without.cached < found.cost_without.plain


def test_tools_and_a_system_prompt_beside_the_list_are_reused_too() -> None:
    talk = long_session(3)[1:]
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
    found = played(talk, policy(window=128_000), tools=tools, system="Obey.")
    (run,) = found.runs
    assert run.reused[1:] == [tokens - 3 for tokens in run.sent[:-1]]
    assert run.reused == found.reused_without


def test_what_the_agent_writes_later_is_looked_for_in_what_was_sent() -> None:
    """An identifier of the first turn comes back at the end; the summary or a pointer still has it, or has not."""
    talk = long_session()
    talk[3]["content"] = (
        "The culprit is calculate_total in the billing module of the shop backend service. " * 3
    )
    talk += [user("What was the culprit again?"), says("It was calculate_total, in the billing module.")]
    found = played(talk)
    steps = found.runs[0].steps
    assert steps[-1].needed >= 1
    assert all(0 <= step.kept <= step.needed for step in steps)


def test_a_pass_that_fails_ends_the_run_and_is_said() -> None:
    talk = [{"role": "system", "content": "word " * 9_000}, user("hi"), says("hello")]
    run = played(talk).runs[0]
    assert run.error is not None
    assert run.error.startswith(f"call 1: {InsufficientBudget.__name__}: ")
    assert not run.passed
    assert run.stopped_at == 0
    assert run.cost is None, "nothing was sent"


def test_a_list_that_is_no_session_is_an_error_not_a_crash() -> None:
    found = played([{"role": "user", "content": "hi"}, {"nonsense": 1}])
    assert found.error is not None
    assert "messages[1]" in found.error


@pytest.mark.parametrize("broken", ["lost", "altered", "moved", "illegal", "too long"])
def test_a_faulty_engine_is_found_out(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """The checks of a replay do not take the engine's word for anything."""
    honest = CompactManager.preflight

    def faulty(self: CompactManager, session_id: str, messages: Any, *args: Any, **named: Any) -> Any:
        sent = list(honest(self, session_id, messages, *args, **named))
        if len(messages) < 20:
            return sent
        if broken == "lost":
            return [item for item in sent if item["role"] != "system"]
        if broken == "altered":
            return [
                {**item, "content": "Do as you like."} if item["role"] == "system" else item for item in sent
            ]
        if broken == "moved":
            return [*sent[1:3], sent[0], *sent[3:]]
        if broken == "illegal":
            return [item for item in sent if item.get("tool_call_id") != "c0"]
        return [*sent, user("word " * 9_000)]

    monkeypatch.setattr(CompactManager, "preflight", faulty)
    run = played(long_session(8, words=20)).runs[0]
    assert not run.passed
    control = {"lost": "was pushed out", "altered": "was altered", "moved": "no longer stands in front"}
    if broken in control:
        assert any(control[broken] in line for line in run.control)
        assert run.control[0].startswith("call ")
    elif broken == "illegal":
        assert "missing_result" in run.illegal[0]
    else:
        assert run.over_budget


def test_what_would_have_been_sent_is_kept_when_asked_for() -> None:
    found = played(long_session(), keep_requests=True)
    (run,) = found.runs
    calls = [request["call"] for request in run.requests]
    assert {step.call for step in run.steps} <= set(calls)
    assert calls[-1] == len(found.calls) - 1
    for request in run.requests:
        assert violations(request["messages"], in_flight=False) == []
        assert (
            Meter("gpt-4o").estimate(request["messages"]).total
            == request["tokens"]
            == run.sent[request["call"]]
        )
    assert played(long_session()).runs[0].requests == []


def test_the_outline_shows_the_last_request_masked() -> None:
    talk = [user("my password: hunter2secret99 and more"), says("noted")]
    (run,) = played(talk).runs
    assert [one.role for one in run.outline] == ["user"]
    assert "hunter2" not in run.outline[0].begins


@pytest.mark.no_cover
def test_every_bundled_session_in_every_layout_is_legal_and_fits() -> None:
    layouts = [
        policy("layered", 16_000),
        policy("selective", 16_000, policy={"layout": "selective", "token_threshold": 9_000}),
    ]
    for recorded in bundled_sessions():
        found = played(recorded["messages"], *layouts)
        assert found.error is None
        for run in found.runs:
            assert run.passed, (recorded["id"], run.illegal, run.control, run.error, run.over_budget)
            assert len(run.sent) == len(found.calls)
