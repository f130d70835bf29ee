"""A manager keeps some sessions at hand; the others lose nothing by it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.engine import manager, pair, says, user

from compact.checks import violations
from compact.engine.line import Call
from compact.events.session_key import SessionKey
from compact.runtime.run import Run
from compact.runtime.session_cache import SessionCache

Item = dict[str, Any]
KEY = "AKIAQ3EGRIT7W5KXH2PL"


def opened(most: int) -> tuple[SessionCache, list[str]]:
    gone, made = list[str](), manager()
    return (
        SessionCache(
            most, lambda key: gone.append(key.session_id), lambda name: made.sessions.get("any", name).tenant
        ),
        gone,
    )


def test_the_longest_unused_goes_first() -> None:
    sessions, gone = opened(2)
    first = sessions.get("a")
    sessions.get("b")
    assert sessions.get("a") is first
    sessions.get("c")
    assert gone == ["b"]
    assert sessions.get("a") is first
    assert len(sessions) == 2


def test_one_that_is_worked_on_stays() -> None:
    sessions, gone = opened(1)
    busy = sessions.get("a")
    run = Run(busy, Call(messages=[], given=[]))
    assert busy.lane.enter(run) is None
    sessions.get("b")
    assert gone == []
    busy.lane.leave(run)
    sessions.get("c")
    assert gone == ["a", "b"], "both, so that the limit holds again"


def test_many_threads_share_one_session_object() -> None:
    sessions, _ = opened(50)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.extend(sessions.get(str(n)) for n in range(40))) for _ in range(8)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(session) for session in found}) == 40


def turns(made: Any, keeps_its_list: bool) -> dict[str, list[list[Item]]]:
    """Three sessions that take turns, and every list that was returned."""
    lists = {name: [user(f"Fix {name}. The key is {KEY}.")] for name in ("a", "b", "c")}
    answers: dict[str, list[list[Item]]] = {name: [] for name in lists}
    for turn in range(24):
        for name, items in lists.items():
            items += [
                *pair(f"{name}{turn}", f"row {turn} of {name} " * 60),
                says(f"done {turn}"),
                user("Next."),
            ]
            answer = made.preflight(name, list(items))
            assert violations(answer) == []
            answers[name].append(answer)
            if keeps_its_list:
                lists[name] = list(answer)
    return answers


@pytest.mark.parametrize("keeps_its_list", [True, False])
def test_sessions_that_are_forgotten_between_their_turns_go_on_as_if_they_were_not(
    keeps_its_list: bool,
) -> None:
    at_hand, forgotten = manager(4_000), manager(4_000, policy={"sessions_in_memory": 1})
    expected, found = turns(at_hand, keeps_its_list), turns(forgotten, keeps_its_list)
    assert found == expected
    for name in expected:
        assert len(at_hand.archive.steps(name)) == len(forgotten.archive.steps(name)) >= 2


def test_what_a_session_learned_to_be_secret_outlives_it_and_nothing_else_does() -> None:
    made = manager(4_000, policy={"sessions_in_memory": 1})
    plain = {SessionKey(f"plain {n}"): made.services.redactor(SessionKey(f"plain {n}")) for n in range(20)}
    for name in plain:
        made.preflight(name.session_id, [user("hello")])
    told = made.services.redactor(SessionKey("told"))
    told.redact(f"password: {KEY}x9Zq")
    made.preflight("told", [user("hello")])
    made.preflight("last", [user("hello")])
    assert made.services.redactor(SessionKey("told")) is told
    assert f"{KEY}x9Zq" not in made.services.redactor(SessionKey("told")).redact(f"it was {KEY}x9Zq")
    assert not [name for name, redactor in plain.items() if made.services.redactor(name) is redactor]
    assert len(made.sessions) == 1
    assert made.last_outcome("plain 3") is None
