"""A tenant reads and changes nothing of another tenant."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import tracemalloc
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from typer.testing import CliRunner

from bench import Figure
from bench.attack import Attack, Trial
from compact import CompactManager, ConfigError
from compact.archive import Archive, MemoryStore, keys
from compact.archive.records import Record
from compact.archive.stores.port import Appended, Created
from compact.errors import ArchiveError
from compact.events import Ids, Recorder
from compact.redaction import Redactor
from compact.tools.cli.app import app
from compact.tools.viewer.live import Watch
from compact.tools.viewer.sessions import Sessions

Item = dict[str, Any]
Owner = tuple[str | None, str]
"""A tenant and a session id of it."""

_CANARY = re.compile(r"canary\d{6}")
_THREADS = 4
_MANY = 10_000
_FLAT_MB = 1.0
_PLAIN = ("acme", "acm", "acme2", "s", "default", "a", "a.b", "a-b", "a_b", "42")
_OURS = (
    "_tenants",
    "_models",
    "_tenants/acme",
    "_tenants/acme/s",
    ".tenant",
    "tenant.json",
    "session.json",
    "events.jsonl",
    "tool_outputs",
    "conversation_history",
    "con",
    "..",
    ".",
    "../acme",
    "/etc",
    "s/../../acme/s",
    "h-" + "0" * 64,
)


# --- names


def _upper(name: str) -> str:
    return name.swapcase()


def _wide(name: str) -> str:
    """The same letters as full-width characters, which NFKC turns back."""
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in name)


_DRESSES: tuple[Callable[[str], str], ...] = (
    lambda name: name,
    _upper,
    _wide,
    lambda name: f"{name}.",
    lambda name: f"{name} ",
    lambda name: f"./{name}",
    lambda name: f"{name}/",
    lambda name: f"{name}\0",
    lambda name: f"\u202e{name}",
    lambda name: name.replace("/", "\\"),
    lambda name: name.replace("/", "%2f").replace("_", "%5f"),
    lambda name: unicodedata.normalize("NFD", f"{name}é"),
    lambda name: f"{name}é",
    lambda name: name + "x" * 130,
    lambda name: f"{name}\n",
    lambda name: name.replace("a", "\N{CYRILLIC SMALL LETTER A}"),
)


def _name(seed: Random, others: Sequence[str] = ()) -> str:
    """A name that a host may give: plain, like another one, or made to look like a path of the archive."""
    base = seed.choice([*_PLAIN, *_OURS, *others])
    if seed.random() < 0.2:
        base = seed.choice(["{}/{}", "{}\0{}", "{}.{}", "{}{}", "_tenants/{}/{}"]).format(
            base, seed.choice(_PLAIN)
        )
    for _ in range(seed.choice([0, 0, 1, 2])):
        base = seed.choice(_DRESSES)(base)
    return base if base.strip() else "s"


def _distinct(seed: Random, size: int, others: Sequence[str] = ()) -> list[str]:
    found = dict.fromkeys(_name(seed, others) for _ in range(size * 2))
    return list(found)[:size]


# --- one manager, many tenants, several threads


@dataclass
class _Life:
    """What was said in the sessions of a run, and what came back."""

    manager: CompactManager
    said: dict[Owner, set[str]] = field(default_factory=dict)
    standing: dict[Owner, list[Item]] = field(default_factory=dict)
    crossed: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def fact(self, owner: Owner) -> str:
        fact = f"canary{next(self.numbers):06d}"
        self.said.setdefault(owner, set()).add(fact)
        return fact

    def check(self, owner: Owner, shown: object, door: str) -> None:
        strange = set(_CANARY.findall(repr(shown))) - self.said.get(owner, set())
        if strange:
            self.crossed.append(f"{door} of {owner!r:.120} showed {len(strange)} facts of others")

    def act(self, owner: Owner, seed: Random) -> None:
        """Do one thing with a session."""
        (tenant, name), made = owner, self.manager
        if tenant is not None and seed.random() < 0.5:
            made, tenant = made.for_tenant(tenant), None
        act = seed.choice(("talk", "talk", "compact", "store", "store", "read", "look", "reset"))
        standing = self.standing.setdefault(owner, [])
        if act == "talk":
            text = f"The answer is {self.fact(owner)}. " + "More words follow here. " * seed.randint(5, 200)
            standing += [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
            standing[:] = made.preflight(name, standing, tenant=tenant)
        elif act == "compact":
            standing[:] = made.manual_compact(name, standing, tenant=tenant)
        elif act == "store":
            words = f"found {self.fact(owner)} in the file\n" * seed.randint(1, 50)
            made.offload(words, seed.choice(("grep", "read")), f"c{seed.randint(1, 3)}", name, tenant=tenant)
        elif act == "read":
            shown = made.recall_tools(name, tenant=tenant)["grep"](r"canary\d+")
            self.check(owner, shown, "grep")
        elif act == "look":
            made.estimate(standing, tenant=tenant)
            self.check(owner, made.last_outcome(name, tenant=tenant), "last_outcome")
            self.check(owner, made.last_request(name, tenant=tenant), "last_request")
        else:
            made.reset(name, tenant=tenant)
        self.check(owner, standing, act)


def _live(seed: Random, size: int, root: Path, exported: list[Item]) -> tuple[_Life, list[Owner], list[str]]:
    """Let every tenant's sessions live through random operations, in several threads at once."""
    settings: Any = {"adapter": "fs", "root": str(root)}
    manager = CompactManager(
        model="gpt-4o",
        max_context_tokens=6_000,
        archive=settings,
        exporters=[lambda event: exported.append(dict(event))],
        policy={"sessions_in_memory": 4},
    )
    tenants: list[str | None] = [None, *_distinct(seed, 2 + size // 20)]
    names = _distinct(seed, 2 + size // 20, [tenant for tenant in tenants if tenant])
    owners = [(tenant, name) for tenant in tenants for name in names]
    life, failures = _Life(manager), list[str]()
    # Each session has one thread, because its host has one list; the threads share tenants, archive and caches.
    shares = [owners[place::_THREADS] for place in range(_THREADS)]

    def work(own: Sequence[Owner], draws: Random) -> None:
        try:
            for owner in own:
                life.manager.offload(life.fact(owner), "first", "c0", owner[1], tenant=owner[0])
            for _ in range(size):
                life.act(draws.choice(own), draws)
        except Exception as problem:  # any error is a failure of the attack's rule, and is reported as one
            failures.append(f"{type(problem).__name__}: {problem!s:.150}")

    threads = [threading.Thread(target=work, args=(own, Random(seed.random()))) for own in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    manager.close()
    return life, owners, failures


def _cross(seed: Random, size: int) -> Iterator[Trial]:
    """Tenants and sessions of any name, random operations at once; then every way to read is tried."""
    with tempfile.TemporaryDirectory() as folder:
        root, exported = Path(folder) / "archive", list[Item]()
        life, owners, failures = _live(seed, size, root, exported)
        yield Trial(f"operations in threads: {failures[:1]}", not failures)
        yield Trial(f"while they ran: {life.crossed[:1]}", not life.crossed)
        outside = [path for path in Path(folder).iterdir() if path != root]
        yield Trial(f"files outside of the archive: {len(outside)}", not outside)
        yield from _doors(life, owners, CompactManager(model="gpt-4o", archive={"root": str(root)}))
        yield from _viewers(life, owners)
        yield from _exports(owners, exported)
        yield from _commands(seed, size, life, owners, root)


def _doors(life: _Life, owners: Sequence[Owner], later: CompactManager) -> Iterator[Trial]:
    """Read everything back, in this manager and in one that begins later."""
    names = {name for _, name in owners}
    for made in (life.manager, later):
        for tenant in {tenant for tenant, _ in owners}:
            archive = made.archive if tenant is None else made.for_tenant(tenant).archive
            listed = set(archive.sessions())
            yield Trial(f"sessions of {tenant!r:.80}: {len(listed)} listed", listed == names)
            yield Trial(f"verify for {tenant!r:.80}", archive.verify() == [])
        for owner in owners:
            seen = _read_all(made, owner) | set(_CANARY.findall(repr(life.standing.get(owner))))
            own = life.said[owner]
            yield Trial(f"{owner!r:.120} read {len(seen - own)} facts of others", seen <= own)
            yield Trial(f"{owner!r:.120} lost {len(own - seen)} of its {len(own)} facts", own <= seen)
    later.close()


def _read_all(made: CompactManager, owner: Owner) -> set[str]:
    tenant, name = owner
    archive = made.archive if tenant is None else made.archive.for_tenant(tenant)
    shown = [archive.read_text(name, info.path) for info in archive.files(name)]
    shown += [repr(archive.restore(name, step).messages) for step in archive.steps(name)]
    shown += [repr(event) for event in archive.events(name)]
    tools = made.recall_tools(name, tenant=tenant)
    shown += [tools["grep"](r"canary\d+"), tools["search"]("canary answer file"), tools["ls"]("/")]
    return {fact for text in shown for fact in _CANARY.findall(text)}


def _viewers(life: _Life, owners: Sequence[Owner]) -> Iterator[Trial]:
    names = {name for _, name in owners}
    for tenant in {tenant for tenant, _ in owners}:
        made = life.manager if tenant is None else life.manager.for_tenant(tenant)
        sessions = Sessions(made.archive)
        Watch(sessions).look()
        rows = sessions.rows()
        pages = [sessions.events(row["key"], 0, 10_000) for row in rows]
        own = {fact for owner, facts in life.said.items() if owner[0] == tenant for fact in facts}
        strange = set(_CANARY.findall(repr(pages))) - own
        yield Trial(f"the viewer of {tenant!r:.80}", {row["id"] for row in rows} == names and not strange)


def _exports(owners: Sequence[Owner], exported: Sequence[Item]) -> Iterator[Trial]:
    """What goes to an exporter, which serves all tenants, never mixes two sessions in one trace."""
    traces: dict[str, set[str]] = {}
    for event in exported:
        traces.setdefault(event["trace_id"], set()).add(event["session_id"])
    mixed = [ids for ids in traces.values() if len(ids) > 1]
    yield Trial(f"{len(mixed)} traces of two sessions", not mixed)
    yield Trial(f"{len(traces)} traces of {len(owners)} sessions", len(traces) == len(owners))


def _commands(seed: Random, size: int, life: _Life, owners: Sequence[Owner], root: Path) -> Iterator[Trial]:
    tenants = sorted({tenant for tenant, _ in owners if tenant and "\0" not in tenant})
    for tenant in seed.sample(tenants, min(len(tenants), 1 + size // 100)):
        more = ["--root", str(root), "--tenant", tenant, "--json"]
        ran = CliRunner().invoke(app, ["archive", "grep", r"canary\d+", *more])
        own = {fact for owner, facts in life.said.items() if owner[0] == tenant for fact in facts}
        shown = set(_CANARY.findall(ran.stdout))
        yield Trial(
            f"archive grep --tenant {tenant!r:.60}", ran.exit_code == 0 and bool(shown) and shown <= own
        )
        ran = CliRunner().invoke(app, ["archive", "verify", *more])
        checked = json.loads(ran.stdout)["sessions"] if ran.exit_code == 0 else -1
        wanted = sum(owner[0] == tenant for owner in owners)
        yield Trial(f"archive verify --tenant {tenant!r:.60}: {checked}", checked == wanted)


# --- names alone


def _place(archive: Archive, owner: Owner) -> str:
    tenant, name = owner
    part = archive if tenant is None else archive.for_tenant(tenant)
    return part.store.address(f"{part.folder(name)}/{keys.SESSION}")


def _names(seed: Random, size: int) -> Iterator[Trial]:
    """Two owners never share a folder, and no session's folder lies among the tenants' roots."""
    with tempfile.TemporaryDirectory() as folder:
        archive = CompactManager(model="gpt-4o", archive={"root": folder}).archive
        places: dict[str, Owner] = {}
        for _ in range(size * 20):
            tenant = None if seed.random() < 0.3 else _name(seed)
            owner = (tenant, _name(seed, [tenant] if tenant else ()))
            place = _place(archive, owner)
            below = Path(place).relative_to(folder).parts
            root = 0 if tenant is None else 2
            is_inside = len(below) == root + 2 and not {"", ".", ".."} & set(below)
            is_apart = (below[0].casefold() == keys.TENANTS) is (tenant is not None)
            is_own = places.setdefault(place, owner) == owner
            yield Trial(f"the folder of {owner!r:.150}", is_inside and is_apart and is_own)


class _FoldingStore(MemoryStore):
    """Keys as a filesystem has them that ignores case, normal forms, and dots at the end of a name."""

    def create(self, key: str, record: Record) -> Created:
        return super().create(_folded(key), record)

    def read(self, key: str) -> bytes | None:
        return super().read(_folded(key))


def _folded(key: str) -> str:
    return "/".join(unicodedata.normalize("NFKC", part).casefold().rstrip(". ") for part in key.split("/"))


def _fold(seed: Random, size: int) -> Iterator[Trial]:
    """On a filesystem that takes two names for one, the second is refused. Nothing is shared."""
    store = _FoldingStore()
    archive = Archive(store, Redactor(), Recorder(lambda: datetime.now(UTC), Ids("folding")))
    owned: dict[str, Owner] = {}
    for _ in range(size):
        tenant = seed.choice([None, _name(seed), seed.choice(_DRESSES)("acme"), "acme", "ACME", "aCme"])
        owner = (tenant, seed.choice(["s", "S", _name(seed)]))
        part = archive if owner[0] is None else archive.for_tenant(owner[0])
        place = _folded(_place(archive, owner))
        try:
            part.put_output(owner[1], f"of {owner!r}", tool_name="t", tool_call_id="c")
        except ArchiveError as problem:
            yield Trial(f"{owner!r:.120} was refused: {problem.reason}", problem.reason == "taken")
            continue
        yield Trial(f"{owner!r:.120} shares a folder", owned.setdefault(place, owner) == owner)


def _refuse(seed: Random, size: int) -> Iterator[Trial]:
    """What is no name is an error that says so, wherever a tenant can be named, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "archive"
        made = CompactManager(model="gpt-4o", archive={"root": str(root)})
        doors: tuple[Callable[[Any], object], ...] = (
            lambda tenant: made.preflight("s", [{"role": "user", "content": "x"}], tenant=tenant),
            lambda tenant: made.manual_compact("s", [], tenant=tenant),
            lambda tenant: made.call("s", [], lambda sent: sent, tenant=tenant),
            lambda tenant: made.estimate([], tenant=tenant),
            lambda tenant: made.offload("x", "t", "c", "s", tenant=tenant),
            lambda tenant: made.process_tool_result("x", "t", "c", "s", tenant=tenant),
            lambda tenant: made.recall_tools("s", tenant=tenant),
            lambda tenant: made.observe("s", input_tokens=1, tenant=tenant),
            lambda tenant: made.reset("s", tenant=tenant),
            lambda tenant: made.mask("s", "x", tenant=tenant),
            lambda tenant: made.unmask("s", "x", tenant=tenant),
            lambda tenant: made.get_compaction_stats(tenant=tenant),
            made.for_tenant,
            made.archive.for_tenant,
            made.for_tenant("acme").archive.for_tenant,
            lambda tenant: CompactManager(model="gpt-4o", tenant=tenant),
        )
        for _ in range(size):
            bad = seed.choice(
                ["", " ", "\t\n", 0, 7, 1.5, True, b"acme", ["acme"], {"a": 1}, ("a",), "\ud800x"]
            )
            place = seed.randrange(len(doors))
            try:
                doors[place](bad)
                named = False
            except ConfigError as problem:
                named = "tenant" in str(problem)
            yield Trial(f"tenant {bad!r:.40} at door {place}", named and not root.exists())


# --- what is learned


def _learn(seed: Random, size: int) -> Iterator[Trial]:
    """What one tenant's providers, tools and summarizers said changes nothing for another tenant."""
    for number in range(max(2, size // 10)):
        one, other = seed.sample([None, "acme", "beta", "Acme", "we/ird", "_tenants"], 2)
        asked: list[Any] = []

        def summarize(request: Any, asked: list[Any] = asked) -> str:
            asked.append(request)
            raise RuntimeError("down")

        made = CompactManager(
            model="gpt-4o",
            max_context_tokens=32_000,
            archive={"adapter": "memory"},
            summarizer=summarize,
            redaction={"live": "secrets"},
        )
        limit, secret = seed.randint(5_000, 9_000), f"Zq{seed.getrandbits(80):x}Wk"
        talk = _talk(seed, 12)
        refused = f"maximum context length is {limit} tokens. However, your messages resulted in {limit + 900} tokens"

        provider = _Provider([RuntimeError(f"context_length_exceeded: This model's {refused}"), *["ok"] * 9])

        made.call("s", talk, provider, tenant=one)
        window = made.estimate(talk, tenant=other).usage_pct
        fresh = CompactManager(model="gpt-4o", max_context_tokens=32_000, archive={"adapter": "memory"})
        yield Trial(f"window of {other} after {one} was refused", window == fresh.estimate(talk).usage_pct)

        masked = made.preflight("s", [{"role": "user", "content": f"password={secret}"}], tenant=one)
        shown = str(masked[-1]["content"])
        yield Trial(f"{one} unmasks its own", secret in made.unmask("s", shown, tenant=one))
        yield Trial(f"{other} unmasks nothing of {one}", made.unmask("s", shown, tenant=other) == shown)

        before = made.get_compaction_stats(tenant=other) if other else None
        for _ in range(4):
            made.manual_compact(f"s{number}", _talk(seed, 12), tenant=one)
        failures = len(asked)
        made.manual_compact("t", _talk(seed, 12), tenant=other)
        yield Trial(f"the summarizer is asked for {other} after it failed {one}", len(asked) > failures)
        if before is not None:
            yield Trial(f"statistics of {other} count {one}", before["compaction_events"] == 0)
        made.close()


class _Provider:
    """Answers the requests of a model call in turn, some of them with an error."""

    def __init__(self, replies: Sequence[Exception | str]) -> None:
        self._replies = iter(replies)

    def __call__(self, _: Sequence[Item]) -> str:
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


def _talk(seed: Random, turns: int) -> list[Item]:
    words = [f"word{seed.randrange(10**6)}" for _ in range(60)]
    return [
        {"role": role, "content": f"{place}: " + " ".join(seed.sample(words, 40))}
        for place in range(turns)
        for role in ("user", "assistant")
    ]


# --- many


class _Forgetful(MemoryStore):
    """Takes everything and keeps nothing, so that what is left in memory is the manager's."""

    def create(self, _key: str, _record: Record) -> Created:
        return "created"

    def append(self, _log: str, _record: Record) -> Appended:
        return "appended"


def _crowd(seed: Random, size: int) -> Iterator[Trial | Figure]:
    """Tenants come and go: memory stays flat, and no thread is kept for any of them."""
    many = _MANY if size >= 100 else 60
    recorder = Recorder(lambda: datetime.now(UTC), Ids("crowd"))
    archive = Archive(_Forgetful(), Redactor(), recorder)
    settings: Any = {"max_context_tokens": 6_000, "policy": {"sessions_in_memory": 16}}
    with CompactManager(model="gpt-4o", archive=archive, **settings) as made:
        talk = _talk(seed, 3)

        def visit(begin: int, end: int) -> None:
            for number in range(begin, end):
                made.preflight("s", talk, tenant=f"tenant-{number}")
                if number % 100 == 0:
                    made.flush()  # events wait for a slow archive, and that is another matter
            made.flush()

        tracemalloc.start()
        visit(0, many // 3)
        threads = threading.active_count()
        before = tracemalloc.get_traced_memory()[0]
        visit(many // 3, many)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        working = threading.active_count()
        yield Trial(f"{working} threads for {many} tenants", working <= threads + 1)
        yield Trial(f"{len(made.sessions)} sessions in memory", len(made.sessions) <= 16)
        if size >= 100:
            label = f"memory that {many - many // 3:,} further tenants leave behind"
            yield Figure(label, grown / 1e6, "MB", _FLAT_MB)


ATTACKS = (
    Attack("crossings", "No door shows a fact of another tenant, and every door shows one's own.", _cross),
    Attack("names", "Whatever tenants and sessions are called, each has a folder of its own.", _names),
    Attack("folding", "Where a filesystem takes two names for one, the second is refused.", _fold),
    Attack("refusals", "What cannot name a tenant is a ConfigError that says so.", _refuse),
    Attack("learning", "Limits, placeholders, breakers and counts belong to a tenant.", _learn),
    Attack("crowd", "Ten thousand tenants cost no more memory and no more threads than a few.", _crowd),
)
