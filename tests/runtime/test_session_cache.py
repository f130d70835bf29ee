"""A manager keeps some sessions at hand; the others lose nothing by it."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from support.engine import manager, pair, says, user

from compact.checks import violations
from compact.engine.call import Call
from compact.events.session_key import SessionKey
from compact.runtime.run import Run
from compact.runtime.session_cache import SessionCache

Item = dict[str, Any]
KEY = "AKIAQ3EGRIT7W5KXH2PL"
SECRET = "xK9mQ2vLpR7tWz4c"


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


def talk() -> list[Item]:
    return [item for n in range(8) for item in (user(f"And {n}?"), says(f"Looked at {n}. " * 40))]


def test_what_a_session_learned_is_freed_with_it() -> None:
    made = manager(16_000, policy={"sessions_in_memory": 2})
    held = []
    for n in range(20):
        made.manual_compact(f"s{n}", [*pair(f"c{n}", f"password: {SECRET}{n}"), *talk()])
        held.append(weakref.ref(made.services.redactor(SessionKey(f"s{n}"))))
    made.flush()
    gc.collect()
    assert sum(one() is not None for one in held) <= 2


@pytest.mark.parametrize("new_process", [True, False])
@pytest.mark.parametrize("compacted", [True, False])
def test_a_session_that_comes_back_masks_what_it_masked_before(
    tmp_path: Path, new_process: bool, compacted: bool
) -> None:
    """Its host keeps its list, in which nothing tells any more that the value is a secret."""
    settings: dict[str, Any] = {
        "policy": {"sessions_in_memory": 1},
        "archive": {"adapter": "fs", "root": str(tmp_path)},
    }
    made, words = manager(16_000, **settings), f"so {SECRET} it is"
    if compacted:
        made.manual_compact("s", [*talk(), *pair("c1", f"password: {SECRET}"), *talk()])
    else:
        made.process_tool_result(f"password: {SECRET}\n" + "more " * 30_000, "cat", "c1", "s")
    made.preflight("another", [user("hello")])
    made.preflight("a third", [user("hello")])
    if new_process:
        made.close()
        made = manager(16_000, **settings)
    made.manual_compact("s", [*pair("c2", words), says(f"used {SECRET}"), user(words), *talk()])
    restored = made.archive.restore("s").messages
    made.close()
    assert [SECRET in str(message) for message in restored[:4]] == [False, False, False, True]
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        assert file.read_text().count(SECRET) <= file.read_text().count(words), file.name
