"""Recall inside the frameworks: an agent reads back what left its own context, and never what left another's.

Two people talk to one manager at the same time. They say the same words and their agents call the same tools, so only the
id that the host gives, or the conversation itself, tells them apart. What their tools return differs.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from support.hosts import SYSTEM, langchain_model, pydantic_model, sdk_model
from support.integrations import WINDOW, Provider, Reply, Request, agent_manager, report, serving

from compact import CompactManager
from compact.messages.dialects import get

user: ContextVar[str] = ContextVar("user")
READS = 14
"""More reports than the window holds."""


@contextmanager
def tracing() -> Iterator[None]:
    """The Agents SDK's tracing, which knows the group of a run. The traces go nowhere."""
    from agents import set_trace_processors, set_tracing_disabled

    set_trace_processors([])
    set_tracing_disabled(False)
    try:
        yield
    finally:
        set_tracing_disabled(True)


class Person:
    """One person's conversation with an agent. `kind` says how the host names it."""

    def __init__(
        self, provider: Provider, manager: CompactManager, name: str, kind: str, settings: dict[str, Any]
    ) -> None:
        self.provider, self.manager, self.name = provider, manager, name
        self.id = f"{name}-{uuid.uuid4().hex[:8]}" if kind == "given" else None
        named = {"explicit": f"mine-{name}", "function": lambda _: f"of-{user.get()}"}
        self.settings = {**settings, **({"session_id": named[kind]} if kind in named else {})}

    def get_report(self, number: int) -> str:
        """Gives a report."""
        return f"owner_{self.name}_{number}\n{report(number)}"

    def say(self, text: str) -> None:
        """One run of the agent."""
        token = user.set(self.name)
        try:
            asyncio.run(self.run(text))
        finally:
            user.reset(token)

    async def run(self, text: str) -> None:
        raise NotImplementedError

    def take_back(self) -> None:
        """Forget the newest run, as if it had been edited away."""
        raise NotImplementedError


class OnLangChain(Person):
    deep = False

    def __init__(self, *args: Any) -> None:
        from deepagents import create_deep_agent
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        from compact.integrations.langchain import CompactMiddleware

        super().__init__(*args)
        make: Any = create_deep_agent if self.deep else create_agent
        self.agent = make(
            langchain_model(self.provider, "chat"),
            [self.get_report],
            system_prompt=SYSTEM,
            middleware=[CompactMiddleware(self.manager, **self.settings)],
            checkpointer=InMemorySaver() if self.id else None,
        )
        self.messages: list[Any] = []

    async def run(self, text: str) -> None:
        given = [*self.messages, {"role": "user", "content": text}]
        config = {"recursion_limit": 400, "configurable": {"thread_id": self.id} if self.id else {}}
        result = await self.agent.ainvoke({"messages": given}, config)
        self.messages = [] if self.id else result["messages"]
        self.newest = result["messages"]

    def take_back(self) -> None:
        from langchain_core.messages import HumanMessage, RemoveMessage

        asked = max(n for n, message in enumerate(self.newest) if isinstance(message, HumanMessage))
        config: Any = {"configurable": {"thread_id": self.id}}
        removed = [RemoveMessage(id=message.id) for message in self.newest[asked:]]
        self.agent.update_state(config, {"messages": removed})


class OnDeepAgents(OnLangChain):
    deep = True


class OnAgentsSdk(Person):
    parts: tuple[str, ...] = ("filter",)
    grouped = False

    def __init__(self, *args: Any) -> None:
        from agents import Agent, SQLiteSession, function_tool

        from compact.integrations.openai_agents import CompactModel, CompactSession, recall_tools

        super().__init__(*args)
        model = sdk_model(self.provider, "chat")
        if "model" in self.parts:
            model = CompactModel(model, self.manager, **self.settings)
        tools: list[Any] = [function_tool(self.get_report), *recall_tools(self.manager, prefix="old_")]
        self.agent: Agent[Any] = Agent("reader", instructions=SYSTEM, model=model, tools=tools)
        self.session: Any = SQLiteSession(self.id or uuid.uuid4().hex)
        if "session" in self.parts:
            self.session = CompactSession(self.session, self.manager, agent=self.agent)

    async def run(self, text: str) -> None:
        from agents import RunConfig, Runner

        from compact.integrations.openai_agents import compact_filter

        config = RunConfig(group_id=self.id if self.grouped else None)
        if "filter" in self.parts:
            config.call_model_input_filter = compact_filter(self.manager, **self.settings)
        await Runner.run(self.agent, text, session=self.session, run_config=config, max_turns=50)


class OnModel(OnAgentsSdk):
    parts = ("model",)


class OnSessionAndModel(OnAgentsSdk):
    parts = ("session", "model")


class OnGroup(OnAgentsSdk):
    grouped = True

    async def run(self, text: str) -> None:
        with tracing():
            await super().run(text)


class OnPydantic(Person):
    def __init__(self, *args: Any) -> None:
        from pydantic_ai import Agent

        from compact.integrations.pydantic_ai import CompactHistory

        super().__init__(*args)
        capability = CompactHistory(self.manager, **self.settings)
        model = pydantic_model(self.provider, "chat")
        self.agent: Agent[Any, str] = Agent(model, instructions=SYSTEM, capabilities=[capability])
        self.agent.tool_plain(self.get_report)
        self.history: list[Any] | None = None
        self.before: list[Any] | None = None

    async def run(self, text: str) -> None:
        result = await self.agent.run(text, message_history=self.history, conversation_id=self.id)
        self.before, self.history = self.history, result.all_messages()

    def take_back(self) -> None:
        self.history = self.before


HOSTS: dict[str, tuple[type[Person], str]] = {
    "langchain": (OnLangChain, ""),
    "deepagents": (OnDeepAgents, "archive_"),
    "agents-filter": (OnAgentsSdk, "old_"),
    "agents-group": (OnGroup, "old_"),
    "agents-model": (OnModel, "old_"),
    "agents-session-model": (OnSessionAndModel, "old_"),
    "pydantic": (OnPydantic, ""),
}
"""Each with the prefix of its recall tools."""
OWN_TOKENS = {"deepagents": 4_000}
KINDS = ("given", "explicit", "function", "unnamed")
NAMED_OTHERWISE = {
    # Neither a filter nor a model sees the id of a stored session of the SDK's own.
    *(("agents-filter", "given"), ("agents-model", "given"), ("agents-group", "unnamed")),
    # A CompactSession has its id, whatever the model's is.
    *(("agents-session-model", kind) for kind in ("explicit", "function", "unnamed")),
}
CASES = [
    pytest.param(host, kind, marks=[] if kind in ("given", "unnamed") else pytest.mark.sweep)
    for host in HOSTS
    for kind in KINDS
    if (host, kind) not in NAMED_OTHERWISE
]


@contextmanager
def two_people(
    host: str, kind: str, **settings: Any
) -> Iterator[tuple[Provider, deque[Reply], list[Person], Any]]:
    window = WINDOW + 1_500 + OWN_TOKENS.get(host, 0)
    manager, seen = agent_manager(window)
    plan: deque[Reply] = deque()
    with serving(lambda _: plan.popleft(), window=window) as provider, manager:
        make = HOSTS[host][0]
        yield provider, plan, [make(provider, manager, name, kind, settings) for name in ("ann", "bob")], seen
    assert provider.refused == []


def calls(name: str, *arguments: dict[str, Any]) -> list[Reply]:
    return [Reply(calls=((f"call_{uuid.uuid4().hex[:12]}", name, each),)) for each in arguments]


def result_of(request: Request) -> str:
    """The newest tool result of a request."""
    return get(request.kind).read(request.messages[-1]).results[0].text


@pytest.mark.parametrize(("host", "kind"), CASES)
def test_an_agent_reads_back_its_own_conversation_and_no_other(host: str, kind: str) -> None:
    prefix = HOSTS[host][1]
    with two_people(host, kind) as (provider, plan, people, seen):
        for person in people:
            plan += [*calls("get_report", *({"number": n} for n in range(READS))), Reply("Read.")]
            person.say("Hi")
        for person, other in (people, reversed(people)):
            plan += [*calls(f"{prefix}grep", {"pattern": "owner_[a-z]+_[0-9]"}), Reply("Found.")]
            person.say("What did the first report say?")
            answer = result_of(provider.requests[-1])
            assert f"owner_{person.name}_0" in answer
            assert f"owner_{other.name}" not in answer
        names = {event["session_id"] for event in seen.events}
        expected = {
            "given": {p.id for p in people},
            "explicit": {"mine-ann", "mine-bob"},
            "function": {"of-ann", "of-bob"},
        }
        assert names == expected.get(kind, names)
        assert len(names) == 2


@pytest.mark.parametrize("host", HOSTS)
def test_pointers_and_prompt_name_the_tools_as_they_are_offered(host: str) -> None:
    """A model that follows a pointer to the letter gets what it points to."""
    prefix = HOSTS[host][1]
    with two_people(host, "given") as (provider, plan, (person, _), _):
        plan += [*calls("get_report", *({"number": n} for n in range(READS))), Reply("Read.")]
        person.say("Hi")
        last = json.dumps(provider.requests[-1].body)
        named = f'[Archived: {prefix}read_file(\\"'
        assert named in last
        path = last.partition(named)[2].partition('\\"')[0]
        assert f"`{prefix}read_file(path)`" in last, "the prompt segment"
        offered = [tool["function"]["name"] for tool in provider.requests[-1].body["tools"]]
        assert offered.count("read_file") == (1 if host == "deepagents" or not prefix else 0)
        assert offered.count(f"{prefix}read_file") == 1
        plan += [*calls(f"{prefix}read_file", {"path": path}), Reply("Found.")]
        person.say("Look it up.")
        assert "owner_ann_0" in result_of(provider.requests[-1])


@pytest.mark.parametrize("host", ["langchain", "deepagents", "pydantic"])
def test_nothing_is_added_to_a_request_before_something_left_the_context(host: str) -> None:
    with two_people(host, "given") as (provider, plan, (person, _), seen):
        plan += [*calls("get_report", *({"number": n} for n in range(READS))), Reply("Read.")]
        person.say("Hi")
        prefix = HOSTS[host][1]
        offers = [f"{prefix}search" in json.dumps(request.body.get("tools")) for request in provider.requests]
        explains = ["Your context is managed" in json.dumps(request.body) for request in provider.requests]
        shortened = ["<COMPACT-SUMMARY" in json.dumps(request.body) for request in provider.requests]
        pointed = ["[compact: " in json.dumps(request.messages) for request in provider.requests]
        assert offers == explains == [a or b for a, b in zip(shortened, pointed, strict=True)]
        assert not offers[0]
        assert offers[-1]
        assert len(seen.named("summary_created")) == len(
            {event["step"] for event in seen.named("summary_created")}
        )


@pytest.mark.parametrize("choice", [True, False])
@pytest.mark.parametrize("keyword", ["recall_tools", "recovery_tools"])
@pytest.mark.parametrize("host", ["langchain", "pydantic"])
def test_the_tools_can_be_offered_always_or_never(host: str, keyword: str, choice: bool) -> None:
    with two_people(host, "given", **{keyword: choice}) as (provider, plan, (person, _), _):
        plan += [*calls("get_report", *({"number": n} for n in range(READS))), Reply("Read.")]
        person.say("Hi")
        offers = ["search" in json.dumps(request.body["tools"]) for request in provider.requests]
        assert offers == [choice] * len(offers)


@pytest.mark.parametrize("host", ["langchain", "pydantic"])
def test_a_person_who_edits_the_last_message_is_still_in_the_same_conversation(host: str) -> None:
    with two_people(host, "given") as (provider, plan, (person, _), seen):
        plan += [*calls("get_report", *({"number": n} for n in range(READS))), Reply("Read.")]
        person.say("Hi")
        for text in ("What was in it?", "No: what did the first report say?"):
            plan += [*calls("grep", {"pattern": "owner_[a-z]+_0"}), Reply("Found.")]
            person.say(text)
            assert "owner_ann_0" in result_of(provider.requests[-1])
            person.take_back()
        assert {event["session_id"] for event in seen.events} == {person.id}


def test_an_agent_that_serves_as_a_tool_reads_back_its_own_conversation() -> None:
    """And so does the agent that asked it, afterwards."""
    from agents import Agent, RunConfig, Runner, function_tool

    from compact.integrations.openai_agents import compact_filter, recall_tools

    manager, seen = agent_manager(WINDOW + 1_500)
    plan: deque[Reply] = deque()

    def get_report(number: int) -> str:
        """Gives a report."""
        return f"owner_{number}\n{report(number)}"

    with serving(lambda _: plan.popleft(), window=WINDOW + 1_500) as provider, manager:
        config = RunConfig(call_model_input_filter=compact_filter(manager), group_id="thread")
        tools: list[Any] = [function_tool(get_report), *recall_tools(manager)]
        inner = Agent("reader", instructions=SYSTEM, model=sdk_model(provider, "chat"), tools=tools)
        ask = inner.as_tool("ask_reader", "Asks the reader.", run_config=config, max_turns=50)
        outer = Agent("lead", instructions="Lead.", model=sdk_model(provider, "chat"), tools=[*tools, ask])
        plan += calls("get_report", *({"number": 100 + n} for n in range(READS)))
        plan += calls("ask_reader", {"input": "Read them all."})
        plan += calls("get_report", *({"number": n} for n in range(READS)))
        plan += [*calls("grep", {"pattern": "owner_[0-9]+"}), Reply("All read.")]
        plan += [*calls("grep", {"pattern": "owner_[0-9]+"}), Reply("Done.")]
        with tracing():
            asyncio.run(Runner.run(outer, "Hi", run_config=config, max_turns=60))
    found = [
        result_of(request)
        for request in provider.requests
        if get(request.kind).read(request.messages[-1]).results
        and "compact recovery] grep" in result_of(request)
    ]
    assert ["owner_0" in answer for answer in found] == [True, False]
    assert ["owner_100" in answer for answer in found] == [False, True]
    assert {event["session_id"] for event in seen.events} == {"thread", "thread.2"}


def test_a_tool_for_which_no_session_is_known_reads_nothing() -> None:
    """A second conversation of the process must not read the first one's archive."""
    manager, _ = agent_manager()
    arguments = {"read_file": {"path": "/"}, "grep": {"pattern": "x"}, "ls": {}, "search": {"query": "x"}}
    with manager:
        manager.manual_compact("first", [{"role": "user", "content": f"secret {n}"} for n in range(40)])
        for name, tool in manager.recall_tools().items():
            assert "no session is known" in tool.answer(arguments[name])


def test_pointers_to_large_results_name_the_tools_as_they_are_offered() -> None:
    """In every dialect of a wrapped client and in its request only: what the tool itself said stays as it was."""
    from support.hosts import anthropic_client, openai_client

    from compact.integrations.recall import RecallTools

    manager, _ = agent_manager(64_000, offload={"large_result_tokens": 500, "preview_lines": 2})
    said = 'Read it with read_file("x")\n' * 400
    with serving(lambda _: Reply("Fine."), window=64_000) as provider, manager:
        tools = RecallTools(manager, "chat-7", prefix="old_")
        client, claude = manager.wrap(openai_client(provider)), manager.wrap(anthropic_client(provider))
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        client.chat.completions.create(
            model="gpt-4o",
            session_id="chat-7",
            tools=tools.chat,
            messages=[
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": said},
            ],
        )
        claude.messages.create(
            model="claude-x",
            max_tokens=100,
            session_id="chat-8",
            tools=tools.anthropic,
            messages=[
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": said}],
                },
            ],
        )
    assert provider.refused == []
    assert len(provider.requests) == 2
    for request in provider.requests:
        first, _, preview = result_of(request).partition("\n")
        assert 'old_read_file("/tool_outputs/' in first
        assert 'old_grep("' in first
        assert "old_" not in preview
        assert 'Read it with read_file("x")' in preview
