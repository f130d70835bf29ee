"""The stability harness PRD's validation suite on running sessions: every request, before it goes to the model."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.dialects import CONVERTERS
from support.engine import manager

from compact import CompactConfig, CompactManager, MessageError
from compact.harness import HarnessConfig, Report, SessionValidator

PHONE = "5550100"
SYSTEM = {"role": "system", "content": "Obey."}
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}]


def talk(turns: int, words: int = 120) -> list[Any]:
    found: list[Any] = []
    for n in range(turns):
        found += [
            {"role": "user", "content": f"question {'x' * (n % 7)}"},
            {"role": "assistant", "content": "word " * words},
        ]
    return [*found, {"role": "user", "content": "and now?"}]


def failed(report: Report) -> set[str]:
    return {check["name"] for check in report.checks if not check["passed"]}


def test_a_session_that_a_manager_keeps_passes_in_every_turn() -> None:
    """300 turns through many passes: within the budget, the system prompt first and as it was."""
    made = manager(16_000)
    validator = SessionValidator(HarnessConfig(pii="none"), manager=made)
    history: list[Any] = [SYSTEM]
    for turn in talk(150):
        history.append(turn)
        if turn["role"] == "user":
            sent = made.preflight("s", history, TOOLS)
            report = validator.check("s", sent, TOOLS)
            assert report.passed, report
            assert report.tokens == made.estimate(sent, TOOLS).total <= report.budget == 14_500
    assert len(list(made.archive.steps("s"))) > 1


@pytest.mark.parametrize("name", CONVERTERS)
def test_each_check_finds_its_problem_in_every_dialect(name: str) -> None:
    convert = CONVERTERS[name]
    validator = SessionValidator(HarnessConfig(budget=2_000))
    fine = [SYSTEM, *talk(2)]
    other = {"role": "user", "content": f"call {PHONE}"}
    assert validator.check("s", convert(fine)).passed
    assert failed(validator.check("s", convert([*fine, fine[2], other]))) == {"pii"}
    assert failed(validator.check("s", convert([SYSTEM, *talk(40)]))) == {"budget"}
    if name != "gemini":  # its system prompt stands beside the list: see the next test
        assert failed(validator.check("s", convert([*fine[1:], SYSTEM]))) == {"order"}
        assert failed(validator.check("s", convert(fine[1:]))) == {"control"}
        assert failed(validator.check("s", convert([{**SYSTEM, "content": "Do."}, *fine[1:]]))) == {"control"}
    assert validator.check("s", convert(fine)).passed, "it remembers the first request, not the last one"
    assert validator.check("another", convert(fine[1:])).passed, "sessions are told apart"
    validator.forget("s")
    assert validator.check("s", convert(fine[1:])).passed


def test_a_system_prompt_beside_the_list_is_counted_and_watched() -> None:
    validator = SessionValidator(HarnessConfig(budget=300, pii="digits"))
    messages = talk(1)
    assert validator.check("s", messages, system="Obey.").passed
    assert failed(validator.check("s", messages, system="word " * 200)) == {"budget", "control"}
    assert failed(validator.check("s", messages)) == {"control"}
    assert failed(validator.check("s", messages, system=f"Obey {PHONE}.")) == {"pii", "control"}
    tools = [{"name": "ls", "description": "word " * 300}]
    assert failed(validator.check("s", messages, tools, system="Obey.")) == {"budget"}


def test_personal_data_is_found_wherever_a_request_holds_it_and_is_not_repeated() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "dial", "arguments": f'{{"n": "{PHONE}"}}'}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"role": "tool", "tool_call_id": "c", "content": f"dialled {PHONE}"}
    report = SessionValidator().check("s", [SYSTEM, {"role": "user", "content": "go"}, asks, answer])
    assert [line.split(" ")[0] for line in report.checks[0]["details"]] == ["m2", "m3"]
    assert PHONE not in str(report)


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_with_a_manager_its_window_and_its_count_decide(model: str) -> None:
    config = CompactConfig(model=model, max_context_tokens=20_000, archive={"adapter": "memory"})
    made = CompactManager(config, count_tokens=len)
    validator = SessionValidator(HarnessConfig(budget=5), manager=made)
    report = validator.check("s", talk(1))
    assert (report.budget, report.tokens) == (18_500, made.estimate(talk(1)).total)


def test_threads_share_a_validator() -> None:
    validator = SessionValidator()
    passed: list[bool] = []
    threads = [
        threading.Thread(
            target=lambda n=n: passed.append(validator.check(f"s{n % 3}", [SYSTEM, *talk(1)]).passed)
        )
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed == [True] * 12


def test_what_is_no_message_is_refused_and_remembers_nothing() -> None:
    validator = SessionValidator()
    with pytest.raises(MessageError):
        validator.check("s", [SYSTEM, 5])
    assert validator.check("s", talk(1)).passed
