"""Tool results and lists that come without an id: each stays with its own conversation, whatever the order."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from compact import CompactManager
from compact.testing import CapturingExporter

REFUSED = "no session is known here"


def manager(**more: Any) -> CompactManager:
    return CompactManager(
        model="gpt-4o",
        archive={"adapter": "memory"},
        offload={"large_result_tokens": 300, "preview_lines": 2, "preview_tokens": 40},
        **more,
    )


def file_of(name: str) -> str:
    rows = [f"row {n}" for n in range(400)]
    return "\n".join([*rows, f"fact_{name}", *rows])


def asked(text: str, call_id: str, shown: str) -> list[Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": shown},
    ]


def grep(made: CompactManager, session_id: str | None = None) -> str:
    return made.recall_tools(session_id)["grep"](pattern=r"fact_\w+")


def test_a_default_session_has_a_name_that_no_other_manager_has() -> None:
    found = set()
    for _ in range(3):
        with manager() as made:
            made.process_tool_result(file_of("a"), "read", "call_0")
            (name,) = made.archive.sessions()
            assert re.fullmatch(r"default-[0-9a-f]{32}", name)
            assert "fact_a" in grep(made)
            found.add(name)
    assert len(found) == 3


def test_the_same_injected_ids_give_the_same_names_and_bytes() -> None:
    def run() -> tuple[list[str], str]:
        numbers = count(1)
        with manager(new_id=lambda: f"{next(numbers):032x}") as made:
            shown = str(made.process_tool_result(file_of("a"), "read", "call_0"))
            asyncio.run(made.manage_context(asked("Hi", "call_0", shown)))
            return made.archive.sessions(), shown

    assert run() == run()


def test_a_list_takes_over_the_default_session_whose_results_it_shows() -> None:
    with manager() as made:

        async def work() -> str:
            shown = str(await made.aprocess_tool_result(file_of("a"), "read", "call_0"))
            await made.manage_context(asked("Hi", "call_0", shown))
            return grep(made)

        assert "fact_a" in asyncio.run(work())
        assert len(made.archive.sessions()) == 1


def test_results_of_two_people_go_to_the_lists_that_show_them() -> None:
    """Both came before anybody knew whose they are, on the same thread and under the same call id."""
    seen = CapturingExporter()
    with manager(exporters=[seen]) as made:
        shown = {who: str(made.process_tool_result(file_of(who), "read", "call_0")) for who in ("ann", "bob")}
        names = {}

        async def turn(who: str) -> str:
            await made.manage_context(asked("Hi", "call_0", shown[who]))
            names[who] = made.resolver.certain
            return grep(made)

        async def both() -> list[str]:
            return list(await asyncio.gather(turn("ann"), turn("bob")))

        ann, bob = asyncio.run(both())
    assert "fact_ann" in ann
    assert "fact_bob" not in ann
    assert "fact_bob" in bob
    assert "fact_ann" not in bob
    assert names["ann"] != names["bob"]


def test_a_result_goes_to_the_named_session_whose_list_shows_it() -> None:
    with manager() as made:
        shown = str(made.process_tool_result(file_of("a"), "read", "call_0"))
        made.preflight("mine", asked("Hi", "call_0", shown))
        made.preflight("other", asked("Hi", "call_0", shown))
        assert "fact_a" in grep(made, "mine")
        assert "fact_a" not in grep(made, "other"), "a copied pointer gets nothing"


def test_a_result_on_a_worker_thread_is_nobodys_until_a_list_shows_it() -> None:
    with manager() as made, ThreadPoolExecutor(1) as pool:
        shown = str(pool.submit(made.process_tool_result, file_of("a"), "read", "call_0").result())
        assert REFUSED in pool.submit(grep, made).result()
        assert REFUSED in grep(made)

        async def show() -> str:
            await made.manage_context(asked("Hi", "call_0", shown))
            return grep(made)

        assert "fact_a" in asyncio.run(show())


def test_unrelated_lists_through_manage_context_are_conversations_of_their_own() -> None:
    seen = CapturingExporter()
    with manager(exporters=[seen]) as made:
        for who in ("ann", "bob"):
            asyncio.run(made.manage_context(asked(f"I am {who}", "call_0", file_of(who))))
        names = made.archive.sessions()
        facts = [set(re.findall(r"fact_\w+", grep(made, name))) - {"fact_"} for name in names]
    assert sorted(map(sorted, facts)) == [["fact_ann"], ["fact_bob"]]
    warned = [event["session_id"] for event in seen.named("warning")]
    assert sorted(warned) == sorted(names), "each says that it began"
