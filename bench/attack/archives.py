"""A conversation reads its own archive and no other.

Two to five people use one manager without an id. They open with the same words, their agents call the same tools, often under
the same call ids, and a fact of each lies in a tool's output that moved to the archive. Then each agent asks its recall tools
for everything: lists, searches, paths that it guesses and paths that it copied from the others. It must find its own fact and
no other. Where nothing tells who asks, finding nothing is right too.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bench.attack import Attack, Trial
from bench.attack.framework_hosts import FRAMEWORKS, WHO
from bench.attack.plain_hosts import CLIENTS, FULL, Send, chat, litellm_completion, results
from compact import CompactManager
from compact.integrations.recall import RecallTools
from compact.integrations.requests import CHAT
from compact.messages import Message
from compact.messages.dialects import detect, get
from compact.middleware import ContextConfig, ContextManagementMiddleware
from compact.tools.standins import Call, Received, Reply, serving

RECALL = ("read_file", "grep", "ls", "search")
GREETINGS = ("Hi", "hello", "Good morning.", "Hallo!", "help", "?", "Start.", "привет")
PROMPTS = ("", "You help.", "You are a careful assistant.\nAnswer in one line.")
GUESSED = ("default", "chat", "litellm", "langchain", "context", "unnamed", "main", "1")
WORDS = ("north", "amber", "quartz", "violet", "harbour", "copper", "meadow", "signal", "winter", "lantern")
READ, FIND = "Read the file.", "Find the fact."
Item = dict[str, Any]


@dataclass
class Person:
    """Somebody whose agent reads a file and later looks for the fact in it."""

    name: str
    fact: str
    file: str
    items: list[Any] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """What the recall tools said."""


@dataclass
class World:
    """One manager, the people who use it, and the model that they all talk to."""

    seed: Random
    people: list[Person]
    opening: list[str]
    prompt: str
    numbered: bool
    """Whether the model merely numbers its calls, so that everybody has the same ids."""
    rebuilt: bool
    """Whether the host reads its lists from a database before each call."""
    copied: list[str] = field(default_factory=list)
    """Paths in everybody's context."""

    def reply(self, request: Received) -> Reply:
        """What the model says. It knows nothing but the request."""
        return self.reply_to(get(request.endpoint).read(item) for item in request.messages)

    def reply_to(self, messages: Iterable[Message]) -> Reply:
        """What the model says to a list: a call, several, or a word."""
        said, calls = "", 0
        for message in messages:
            calls += len(message.calls)
            if message.starts_turn:
                said, since = message.text, calls
        if calls > since:
            return Reply("Done.")
        if said.endswith(READ):
            return Reply("", [Call("get_report", {}, self._id(calls))])
        if not said.endswith(FIND):
            return Reply("At your service.")
        asked: list[tuple[str, Item]] = [("ls", {}), ("grep", {"pattern": r"fact_\w+"})]
        asked += [("search", {"query": self.seed.choice(WORDS)})]
        asked += [("grep", {"pattern": "fact", "path": "/tool_outputs/"})]
        paths = [*self.seed.sample(self.copied, min(3, len(self.copied))), f"/../{GUESSED[calls % 8]}/"]
        asked += [("read_file", {"path": path}) for path in paths]
        return Reply("", [Call(name, given, self._id(calls + n)) for n, (name, given) in enumerate(asked)])

    def _id(self, number: int) -> str:
        return f"call_{number}" if self.numbered else f"call_{self.seed.getrandbits(96):024x}"

    def kept(self, items: list[Any]) -> list[Any]:
        """A host's list as it is passed."""
        return json.loads(json.dumps(items)) if self.rebuilt else items

    def judge(self, person: Person, what: str, *, must_find: bool) -> Trial:
        """Whether somebody found the own fact and nobody else's."""
        text = "\n".join(person.answers)
        foreign = [other.fact for other in self.people if other is not person and other.fact in text]
        found = person.fact in text
        held = bool(person.answers) and not foreign and (found or not must_find)
        ids = "numbered" if self.numbered else "random"
        outcome = f"{len(foreign)} foreign, own {'found' if found else 'not found'}"
        lists = "rebuilt" if self.rebuilt else "kept"
        return Trial(f"{what}, {len(self.people)} people, {ids} ids, {lists} lists: {outcome}", held)


def draw_world(seed: Random) -> World:
    """People with the same opening. Their files differ in one line, deep inside."""
    people = []
    for number in range(seed.randint(2, 5)):
        fact = f"fact_{seed.getrandbits(48):012x}"
        lines = [f"row {n}: {seed.choice(WORDS)} {n * 7919}" for n in range(seed.randint(150, 250))]
        lines[seed.randint(60, 140)] = f"the {seed.choice(WORDS)} is {fact}"
        people.append(Person(f"p{number}", fact, "\n".join(lines)))
    opening = [seed.choice(GREETINGS) for _ in range(seed.randint(0, 2))]
    return World(seed, people, opening, seed.choice(PROMPTS), seed.random() < 0.5, seed.random() < 0.5)


SETTINGS: Any = {"offload": {"large_result_tokens": 300, "preview_lines": 3, "preview_tokens": 60}}


@contextmanager
def a_manager(root: str | None = None, **more: Any) -> Iterator[CompactManager]:
    """A manager that moves every file that is read to its archive at once."""
    archive = {"adapter": "memory"} if root is None else {"root": root}
    settings = {**SETTINGS, **more, "archive": archive, "tracing": {"exporters": []}}
    with CompactManager(model="gpt-4o", **settings) as manager:
        yield manager


# --- whose turn it is

Steps = Iterator[None]


def in_turns(seed: Random, work: Sequence[Steps], run: Callable[[Steps], object]) -> None:
    """Let everybody go on a step at a time, in any order."""
    left = list(work)
    while left:
        one = seed.choice(left)
        if run(one) is _OVER:
            left.remove(one)


_OVER = object()


def _next(steps: Steps) -> object:
    return next(steps, _OVER)


def on_main_thread(seed: Random, work: Sequence[Steps]) -> None:
    """A server that does one thing after the other."""
    copy_context().run(in_turns, seed, work, _next)


def on_threads(seed: Random, work: Sequence[Steps]) -> None:
    """A pool whose threads serve everybody."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        in_turns(seed, work, lambda steps: seed.choice((one, two)).submit(_next, steps).result())


def in_tasks(seed: Random, work: Sequence[Steps]) -> None:
    """A task for each person."""

    async def serve(steps: Steps) -> None:
        for _ in steps:
            await asyncio.sleep(0)

    async def serve_all() -> None:
        await asyncio.gather(*(serve(steps) for steps in seed.sample(list(work), len(work))))

    asyncio.run(serve_all())


PLACES = {"main thread": on_main_thread, "threads": on_threads, "tasks": in_tasks}


# --- plain loops over a client


def talk(world: World, person: Person, dialect: str, send: Send, tools: RecallTools) -> Steps:
    """A loop as people write it. It yields wherever another person's turn may come in between."""
    for said in (*world.opening, READ, FIND):
        person.items.append({"role": "user", "content": said})
        while True:
            person.items = world.kept(person.items)
            added, reply = send(person.items, tools, world.prompt)
            person.items += added
            yield
            calls = [call for item in added for call in get(dialect).read(item).calls]
            if not calls:
                break
            found = [(call.id, person.file) for call in calls if call.name == "get_report"]
            own = tools.answers(reply)
            person.items += results(dialect, found) if found else _joined(dialect, own)
            person.answers += [str(each) for each in own]
            yield
        world.copied += _paths_in(person)


def _joined(dialect: str, answers: list[Any]) -> list[Any]:
    return [{"role": "user", "content": answers}] if dialect == "anthropic" else answers


def _paths_in(person: Person) -> list[str]:
    """Paths that an agent has been told."""
    texts = "\n".join(person.answers).replace("\\n", " ").split()
    return [word.strip("\"'(),:") for word in texts if "/tool_outputs/" in word][:5]


def attack_clients(seed: Random, size: int) -> Iterator[Trial]:
    """Wrapped clients: one client for all people, and then a stranger who has said nothing."""
    tried = 0
    while tried < size // 2:
        world, place = draw_world(seed), seed.choice(list(PLACES))
        kind = seed.choice([*CLIENTS, *(["litellm"] if size >= FULL else [])])
        dialect, make = ("chat", litellm_completion) if kind == "litellm" else (kind, CLIENTS[kind])
        raw = {"raw": True} if kind == "chat" and seed.random() < 0.5 else {}
        with a_manager() as manager, serving(world.reply) as provider:
            send, tools = make(manager, provider, **raw), RecallTools(manager)
            work = [talk(world, each, dialect, send, tools) for each in world.people]
            PLACES[place](seed, work)
            strangers = [ask_as_stranger(world, manager), copy_context().run(ask_as_stranger, world, manager)]
            names = manager.archive.sessions()
            refused = list(provider.refused)
        yield Trial(f"{dialect}: every request is legal", not refused)
        yield Trial("no session has a name that others have", not set(names) & set(GUESSED))
        facts = [person.fact for person in world.people]
        yield Trial(
            f"a stranger after {place}", not any(fact in text for fact in facts for text in strangers)
        )
        # A number on a thread that serves everybody may be anyone's call.
        must_find = not world.numbered or place == "tasks"
        for person in world.people:
            tried += 1
            what = f"{kind} client{' (raw)' if raw else ''} on {place}"
            yield world.judge(person, what, must_find=must_find)


def ask_as_stranger(world: World, manager: CompactManager) -> str:
    """What somebody reads who has said nothing: under ids that others have, or that nobody has, and by guessed names."""
    call = world.reply_to([detect([asks]).read(asks) for asks in ({"role": "user", "content": FIND},)])
    said = [str(RecallTools(manager).answers(_as_chat(call)))]
    tools = [manager.recall_tools(), *(manager.recall_tools(name) for name in GUESSED)]
    return "\n".join(said + [each["grep"](pattern=r"fact_\w+") for each in tools])


# --- hosts with a model of their own


async def manage(world: World, person: Person, host: Any) -> AsyncIterator[None]:
    """The addendum's loop: results pass through on their way, and the context before each call."""
    tools = host.recovery_tools()
    person.items = [{"role": "system", "content": world.prompt}] if world.prompt else []
    for text in (*world.opening, READ, FIND):
        person.items.append({"role": "user", "content": text})
        while True:
            person.items = world.kept(person.items)
            kept = await host.manage_context(person.items, "gpt-4o")
            yield
            reply = world.reply_to(detect([item]).read(item) for item in kept)
            person.items.append(_as_chat(reply))
            if not reply.calls:
                break
            for call in reply.calls:
                if call.name == "get_report":
                    shown = host.process_tool_result(person.file, "get_report", call.id)
                else:
                    shown = tools[call.name](**call.arguments)
                    person.answers.append(shown)
                person.items += results("chat", [(call.id, shown)])
                yield
        world.copied += _paths_in(person)


def _as_chat(reply: Reply) -> Item:
    calls = [
        {
            "id": each.id,
            "type": "function",
            "function": {"name": each.name, "arguments": json.dumps(each.arguments)},
        }
        for each in reply.calls
    ]
    return {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}


class Backend:
    """A host's own filesystem."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write_file(self, path: str, content: str) -> None:
        """Keep a file."""
        self.files[path] = content

    def read_file(self, path: str) -> str:
        """Return a file. Raises KeyError."""
        return self.files[path]


async def serve_in_tasks(seed: Random, work: Sequence[AsyncIterator[None]]) -> None:
    """A task for each person."""

    async def serve(steps: AsyncIterator[None]) -> None:
        async for _ in steps:
            await asyncio.sleep(0)

    await asyncio.gather(*(serve(steps) for steps in seed.sample(list(work), len(work))))


async def serve_in_one_task(seed: Random, work: Sequence[AsyncIterator[None]]) -> None:
    """One task that takes everybody's work from a queue."""
    left = list(work)
    while left:
        one = seed.choice(left)
        if await anext(one, _OVER) is _OVER:
            left.remove(one)


def attack_contexts(seed: Random, size: int) -> Iterator[Trial]:
    """`manage_context` and `process_tool_result` without an id, and the middleware with their names."""
    tried = 0
    while tried < size:
        world, is_alone, is_middleware = draw_world(seed), seed.random() < 0.5, seed.random() < 0.5
        config = ContextConfig(large_result_tokens=300, preview_lines=3)
        with a_manager() as plain:
            middleware = ContextManagementMiddleware(config, Backend()) if is_middleware else None
            host: Any = middleware or plain
            work = [manage(world, each, host) for each in world.people]
            asyncio.run((serve_in_tasks if is_alone else serve_in_one_task)(seed, work))
            names = (middleware.manager if middleware else plain).archive.sessions()
            if middleware is not None:
                middleware.close()
        place = "tasks" if is_alone else "one task"
        yield Trial(f"no session has a name that others have: {place}", not set(names) & set(GUESSED))
        for person in world.people:
            tried += 1
            what = f"{'middleware' if is_middleware else 'manage_context'} in {place}"
            yield world.judge(person, what, must_find=is_alone)


# --- frameworks: one agent for all people


def attack_framework(name: str) -> Callable[[Random, int], Iterator[Trial]]:
    """One agent of a framework, without an id, in tasks, in threads or one person after the other."""

    def make(seed: Random, size: int) -> Iterator[Trial]:
        tried = 0
        while tried < max(2, size // 5):
            world, way = draw_world(seed), seed.choice(("tasks", "threads", "in turns"))
            with a_manager() as manager, serving(world.reply) as provider:
                host = FRAMEWORKS[name](manager, provider, world.prompt, seed)
                said = (*world.opening, READ, FIND)
                serve_people(host, world.people, said, way, seed)
                refused = list(provider.refused)
            yield Trial(f"{name}: every request is legal", not refused)
            for person in world.people:
                tried += 1
                yield world.judge(person, f"{name} ({host.form}), {way}", must_find=True)

    return make


def serve_people(host: Any, people: Sequence[Person], said: Sequence[str], way: str, seed: Random) -> None:
    """Let everybody say everything to one agent."""

    async def turn(person: Person, text: str) -> None:
        WHO.set(person.file)
        person.answers += await host.say(person, text, RECALL)

    async def alone(person: Person) -> None:
        for text in said:
            await turn(person, text)

    async def together() -> None:
        await asyncio.gather(*(alone(person) for person in people))

    async def in_turns_of_one_task() -> None:
        left = {person.name: (person, list(said)) for person in people}
        while left:
            person, texts = left[seed.choice(sorted(left))]
            await turn(person, texts.pop(0))
            if not texts:
                del left[person.name]

    if way == "threads":
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda person: asyncio.run(alone(person)), people))
    else:
        asyncio.run(together() if way == "tasks" else in_turns_of_one_task())


# --- after a restart


def attack_restarts(seed: Random, size: int) -> Iterator[Trial]:
    """Another process on the same archive, without ids: it continues nobody's conversation."""
    for _ in range(max(2, size // 10)):
        world = draw_world(seed)
        world.rebuilt, world.numbered = True, False
        with tempfile.TemporaryDirectory() as root:
            lists: list[list[Any]] = []
            for process in range(2):
                with a_manager(root) as manager, serving(world.reply) as provider:
                    send, tools = chat(manager, provider), RecallTools(manager)
                    if process:
                        # Each sends the list of the next person, as far as it went, and asks.
                        for person, items in zip(world.people, [*lists[1:], lists[0]], strict=True):
                            person.items, person.answers = items, []
                    work = [talk(world, person, "chat", send, tools) for person in world.people]
                    PLACES["tasks"](seed, work)
                    before = {person.name: list(person.items) for person in world.people}
                    lists = [before[person.name][: seed.randint(1, 2)] for person in world.people]
            names = set(manager.archive.sessions())
        yield Trial("no session has a name that others have", not names & set(GUESSED))
        for person in world.people:
            yield world.judge(person, "restarted", must_find=True)


# --- agents inside one id

WINDOW = 5_000


@dataclass
class Worker:
    """A main agent or a sub-agent of somebody, whose history does not fit the window."""

    thread: str
    task: str
    facts: list[str]
    items: list[Item] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def go_on(self, manager: CompactManager, seed: Random) -> str:
        """Make a call under the host's id. Returns what the recall tools know of all facts."""
        self.items = self.items or [{"role": "user", "content": self.task}]
        for _ in range(seed.randint(1, 3)):
            fact = f"fact_{seed.getrandbits(48):012x}"
            self.facts.append(fact)
            said = f"{fact} " + " ".join(seed.choices(WORDS, k=700))
            self.items += [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
        request = {"model": "gpt-4o", "messages": json.loads(json.dumps(self.items))}
        call = CHAT.prepare(manager, request, None, given=self.thread, kind="chat")
        assert call is not None
        call.run(lambda _: None)
        self.names.add(call.session_id)
        tools = manager.recall_tools(call.session_id)
        return tools["grep"](pattern=r"fact_\w+", context=0)


def attack_agents(seed: Random, size: int) -> Iterator[Trial]:
    """Agents under the ids of several people, restarted in any order: each keeps its session."""
    tried = 0
    while tried < max(3, size // 4):
        threads = [f"{seed.randint(1, 9)}-{number}" for number in range(seed.randint(1, 3))]
        workers = [
            Worker(thread, f"{seed.choice(GREETINGS)} {'' if not place else WORDS[place]}", [])
            for thread in threads
            for place in range(seed.randint(1, 3))
        ]
        answers: dict[int, str] = {}
        with tempfile.TemporaryDirectory() as root:
            for process in range(3):
                with a_manager(root, max_context_tokens=WINDOW) as manager:
                    # The first process takes all agents past their windows, so that something of each is stored.
                    turns = [worker for worker in workers for _ in range(4 if not process else 1)]
                    for worker in seed.sample(turns, len(turns)):
                        answers[id(worker)] = worker.go_on(manager, seed)
        for worker in workers:
            tried += 1
            others = [fact for other in workers if other is not worker for fact in other.facts]
            text = answers[id(worker)]
            foreign = sum(fact in text for fact in others)
            found = any(fact in text for fact in worker.facts)
            what = f"{len(workers)} agents of {len(threads)} people: {foreign} foreign, {len(worker.names)} names"
            yield Trial(what, not foreign and found and len(worker.names) == 1)


ATTACKS: tuple[Attack, ...] = (
    Attack("agents", "agents inside one id keep their own archives after restarts", attack_agents),
    Attack("clients", "people on one wrapped client read their own archive alone", attack_clients),
    Attack("contexts", "results and lists without an id stay with their conversation", attack_contexts),
    Attack("restarts", "an unnamed conversation is continued by no other process", attack_restarts),
    *(
        Attack(name, "people on one agent read their own archive alone", attack_framework(name))
        for name in FRAMEWORKS
    ),
)
