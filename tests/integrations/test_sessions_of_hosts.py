"""Whose session a call belongs to, through wrapped clients and LiteLLM: nobody reads another's, and ids survive a restart."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from support.waiting import until

from compact import CompactManager
from compact.integrations.recall import RecallTools
from compact.testing import CapturingExporter
from compact.tools.standins import Call, Provider, Reply, serving

# LiteLLM writes its log in a task of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WINDOW = 8_000
Send = Callable[..., Any]


def chat(manager: CompactManager, provider: Provider) -> Send:
    client: Any = manager.wrap(openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
    return lambda items, **more: client.chat.completions.create(model="gpt-4o", messages=items, **more)


def responses(manager: CompactManager, provider: Provider) -> Send:
    client: Any = manager.wrap(openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
    return lambda items, **more: client.responses.create(model="gpt-4o", input=items, **more)


def messages(manager: CompactManager, provider: Provider) -> Send:
    client: Any = manager.wrap(anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0))
    return lambda items, **more: client.messages.create(model="gpt-4o", messages=items, max_tokens=99, **more)


def by_litellm(manager: CompactManager, provider: Provider) -> Send:
    import litellm

    from compact.integrations.litellm import CompactHook

    completion = CompactHook(manager)(litellm.completion)
    where = {"api_base": provider.openai_url, "api_key": "none", "num_retries": 0}
    return lambda items, **more: completion("openai/gpt-4o", items, **where, **more)


HOSTS = {"chat": chat, "responses": responses, "anthropic": messages, "litellm": by_litellm}
every_host = pytest.mark.parametrize("host", HOSTS)
KEPT = {"kept": lambda items: items, "rebuilt": copy.deepcopy}


@dataclass
class Person:
    """Somebody's conversation: the same opening words, then words of their own, more than a window of them."""

    name: str
    keep: Callable[[list[Any]], list[Any]] = KEPT["kept"]
    items: list[Any] = field(default_factory=lambda: [{"role": "user", "content": "Hi"}])
    more: dict[str, Any] = field(default_factory=dict)

    def turn(self, send: Send, n: int) -> None:
        self.items = self.keep(self.items)
        send(self.items, **self.more)
        own = f"{self.name} keeps file {n} under the code {self.name}-{n * 7919}. " * 40
        self.items += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": own}]


def a_manager(archive: Any, seen: CapturingExporter) -> CompactManager:
    return CompactManager(model="gpt-4o", max_context_tokens=WINDOW, archive=archive, exporters=[seen])


def grep_if_told(request: Any) -> Any:
    """A model that searches its archive when the newest message says so. Its call carries the person's name."""
    said = str(request.messages[-1])
    who = "Ann" if "Ann" in said else "Bob"
    return Reply("", [Call("grep", {"pattern": r"\w+-\d+"}, id=f"of-{who}")]) if "GREP" in said else "ok"


@every_host
@pytest.mark.parametrize("kept", KEPT)
def test_people_with_the_same_opening_never_share_a_session_nor_read_each_other(host: str, kept: str) -> None:
    seen = CapturingExporter()
    with a_manager({"adapter": "memory"}, seen) as manager, serving(grep_if_told, window=WINDOW) as provider:
        send, tools = HOSTS[host](manager, provider), RecallTools(manager)
        offered = {"responses": tools.responses, "anthropic": tools.anthropic}.get(host, tools.chat)
        ann, bob = Person("Ann", KEPT[kept]), Person("Bob", KEPT[kept])
        for n in range(16):
            for person in (ann, bob):
                person.turn(send, n)
            answer = tools.answers(asks("grep", pattern=r"-\d+"))[0]["content"]
            assert "no session is known here" in answer, (
                "two people were served here, and no reply had this id"
            )
        for person, other in ((ann, bob), (bob, ann)):
            person.items[-1] = {"role": "user", "content": f"GREP for {person.name}"}
            send(person.keep(person.items), tools=offered)
            found = tools.answers(asks("grep", id=f"of-{person.name}", pattern=r"\w+-\d+"))[0]["content"]
            assert f"{other.name}-" not in found
            assert f"{person.name}-" in found, "each reads what left their own context"
        steps = {name: manager.archive.steps(name) for name in manager.archive.sessions()}
    assert provider.refused == []
    assert len([name for name, made in steps.items() if made]) >= 2
    codes = [event["properties"]["code"] for event in seen.named("warning")]
    assert codes.count("new_conversation") >= 2


def asks(tool: str, *, id: str = "c", **arguments: Any) -> dict[str, Any]:
    import json

    call = {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@every_host
@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_call_is_answered_from_its_own_session_on_every_thread(host: str, streamed: bool) -> None:
    """A worker thread has served somebody else before, and knows a call by its id alone."""

    with (
        a_manager({"adapter": "memory"}, CapturingExporter()) as manager,
        serving(grep_if_told, window=WINDOW) as provider,
        ThreadPoolExecutor(1) as one,
        ThreadPoolExecutor(1) as two,
    ):
        send, tools = HOSTS[host](manager, provider), RecallTools(manager)
        offered = {"responses": tools.responses, "anthropic": tools.anthropic}.get(host, tools.chat)
        people = {one: Person("Ann"), two: Person("Bob")}

        def talk(person: Person) -> None:
            for n in range(16):
                person.turn(lambda _: None, n)
            person.items[-1] = {"role": "user", "content": f"GREP for {person.name}"}
            reply = send(person.items, tools=offered, **({"stream": True} if streamed else {}))
            if streamed:
                list(reply)

        def answer(call_id: str) -> str:
            return str(tools.answers(asks("grep", id=call_id, pattern=r"\w+-\d+"))[0]["content"])

        for thread, person in people.items():
            thread.submit(talk, person).result()
        for thread in people:
            for own, other in (("Ann", "Bob"), ("Bob", "Ann")):
                found = thread.submit(answer, f"of-{own}").result()
                assert f"{own}-" in found
                assert f"{other}-" not in found
            assert "no session is known here" in thread.submit(answer, "of-nobody").result()
            plain = thread.submit(lambda: manager.recall_tools()["grep"](pattern="-")).result()
            assert "no session is known here" in plain
    gc.collect()  # LiteLLM leaves an event loop open in each thread


@every_host
@pytest.mark.parametrize("named", ["explicit", "unnamed"])
def test_after_a_restart_an_id_continues_and_no_id_reads_nothing(
    host: str, named: str, tmp_path: Path
) -> None:
    ann = Person("Ann", copy.deepcopy, more={"session_id": "ann"} if named == "explicit" else {})
    archive = {"root": str(tmp_path)}
    with serving(["ok"], window=WINDOW) as provider:
        with a_manager(archive, CapturingExporter()) as manager:
            send = HOSTS[host](manager, provider)
            for n in range(15):  # the newest pass was two turns ago
                ann.turn(send, n)
            before = list(provider.requests[-1].messages)
        seen = CapturingExporter()
        with a_manager(archive, seen) as manager:
            send = HOSTS[host](manager, provider)
            tools = RecallTools(manager)
            if named == "explicit":
                ann.turn(send, 15)
                assert list(provider.requests[-1].messages)[: len(before)] == before, (
                    "the prefix is as it was"
                )
                assert "Ann" in tools.answers(asks("grep", pattern="Ann"))[0]["content"]
            else:
                bob = Person("Bob")
                bob.turn(send, 0)
                assert "Ann" not in tools.answers(asks("ls"))[0]["content"]
                assert "Ann" not in tools.answers(asks("grep", pattern=r"-\d+"))[0]["content"]
    assert provider.refused == []


ARGUMENTS = {"read_file": {"path": "/x"}, "grep": {"pattern": "s"}, "ls": {}, "search": {"query": "s"}}


def test_recall_tools_without_a_call_say_so_and_read_nobodys_archive() -> None:
    with a_manager({"adapter": "memory"}, CapturingExporter()) as manager, ThreadPoolExecutor(1) as other:
        manager.process_tool_result("secret " * 30_000, "read", "c1")
        tools = manager.recall_tools()
        assert "secret" in tools["grep"](pattern="secret"), "the program itself reads its default session"
        for name, tool in tools.items():
            answer = other.submit(tool, **ARGUMENTS[name]).result()
            assert "no session is known here" in answer
            assert "secret" not in answer
        assert {name: tool.schema for name, tool in tools.items()} == {
            name: tool.schema for name, tool in manager.recall_tools("s").items()
        }


@pytest.mark.parametrize("named", [True, False])
def test_a_call_whose_history_the_provider_keeps_ends_the_session_before_it(named: bool) -> None:
    with a_manager({"adapter": "memory"}, CapturingExporter()) as manager, serving(["ok"]) as provider:
        send, tools = responses(manager, provider), RecallTools(manager)
        first = send([{"role": "user", "content": "Hi"}], session_id="ann")
        manager.process_tool_result("Ann-7919\n" * 30_000, "read", "c1")
        assert "Ann-7919" in tools.answers(asks("grep", pattern="Ann"))[0]["content"]
        send("And I am Bob", previous_response_id=first.id, **({"session_id": "bob"} if named else {}))
        found = tools.answers(asks("grep", pattern=r"\w+-\d+"))[0]["content"]
    assert "Ann" not in found
    assert "no session is known here" in found, "two conversations were served here"


@every_host
def test_a_tool_result_without_an_id_belongs_to_the_running_call(host: str, tmp_path: Path) -> None:
    archive = {"root": str(tmp_path)}
    with a_manager(archive, CapturingExporter()) as manager, serving(["ok"], window=WINDOW) as provider:
        send = HOSTS[host](manager, provider)
        send([{"role": "user", "content": f"Read it, {host}."}])
        shown = manager.process_tool_result(f"the code is {host}-7919\n" + "row\n" * 30_000, "read", "c1")
        assert "/tool_outputs/" in shown
        assert f"{host}-7919" in manager.recall_tools()["grep"](pattern="-7919")
        (name,) = manager.archive.sessions()
        assert (tmp_path / name).is_dir(), "a fresh name is a folder of that name"
        assert name != "default"


@every_host
def test_sub_agents_edits_and_branches_inside_a_named_session_stay_in_it(host: str) -> None:
    """An explicit id is the id, whatever is sent under it; LiteLLM's metadata id tells sub-agents apart."""
    seen = CapturingExporter()
    with a_manager({"adapter": "memory"}, seen) as manager, serving(["ok"], window=WINDOW) as provider:
        send = HOSTS[host](manager, provider)
        base = [{"role": "user", "content": "Start"}]
        edited = [{"role": "user", "content": "Start!"}]
        for items in (base, edited, base):
            send(items, session_id="t")
        until(lambda: len(seen.named("token_estimate")) == 3)
        assert {event["session_id"] for event in seen.named("token_estimate")} == {"t"}
        if host == "litellm":
            main = [{"role": "user", "content": "Main"}]
            longer = [*main, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "more"}]
            changed = [*longer[:-1], {"role": "user", "content": "edited"}]
            for items in (main, [{"role": "user", "content": "Sub"}], longer, changed, longer[:1]):
                send(items, metadata={"session_id": "given"})
            until(lambda: len(seen.named("token_estimate")) == 8)
            names = [event["session_id"] for event in seen.named("token_estimate")][3:]
            assert names == ["given", "given.2", "given", "given", "given"]
