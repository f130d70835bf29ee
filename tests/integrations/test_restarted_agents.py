"""After a restart, a main agent and its sub-agents under one host id keep their own sessions and archives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.integrations import Reply

from compact import CompactManager
from compact.integrations.requests import CHAT

AGENTS = {"main": "Write a book.", "sub": "Find a title.", "third": "Check the facts."}
WINDOW = 6_000


def history(name: str, turns: int) -> list[dict[str, Any]]:
    said = [{"role": "user", "content": AGENTS[name]}]
    for n in range(turns):
        own = f"the note of {name} number {n} is {name}_{n * 7919}. " * 30
        said += [{"role": "assistant", "content": own}, {"role": "user", "content": "Go on."}]
    return said


def send(manager: CompactManager, items: list[Any]) -> str:
    """One call of a host that gives an id. Returns the session."""
    call = CHAT.prepare(manager, {"model": "gpt-4o", "messages": items}, None, given="thread-7", kind="chat")
    assert call is not None
    call.run(lambda _: Reply("ok"))
    return call.session_id


@pytest.mark.parametrize("order", ["sub main third", "third sub main"])
def test_agents_of_one_id_do_not_swap_sessions(order: str, tmp_path: Path) -> None:
    made: dict[str, Any] = {
        "model": "gpt-4o",
        "max_context_tokens": WINDOW,
        "archive": {"root": str(tmp_path)},
    }
    before = {}
    with CompactManager(**made) as manager:
        for name in AGENTS:
            before[name] = send(manager, history(name, 18))
        assert sorted(before.values()) == ["thread-7", "thread-7.2", "thread-7.3"]
    with CompactManager(**made) as manager:
        for name in order.split():
            assert send(manager, history(name, 19)) == before[name]
            found = manager.recall_tools(before[name])["grep"](pattern=r"(main|sub|third)_\d+")
            assert f"{name}_" in found
            assert not any(f"{other}_" in found for other in AGENTS if other != name)


def test_an_edit_after_a_restart_stays_in_its_session(tmp_path: Path) -> None:
    made: dict[str, Any] = {
        "model": "gpt-4o",
        "max_context_tokens": WINDOW,
        "archive": {"root": str(tmp_path)},
    }
    with CompactManager(**made) as manager:
        assert send(manager, history("main", 18)) == "thread-7"
    with CompactManager(**made) as manager:
        edited = [*history("main", 5)[:-1], {"role": "user", "content": "Rather this."}]
        assert send(manager, edited) == "thread-7"
        assert send(manager, history("sub", 1)) == "thread-7.2"
