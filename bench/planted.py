"""Things that people say and expect to stand, planted into recorded sessions.

THE BANK. `bench/data/rules/*.yaml` are lists of sessions, written by hand. One has `id`, `source` (coding, dialogue or research),
`person`, `items` and `injected`. `items` has one of each kind:

- first: said in the session's first message; middle; long: inside a long paste (`paste` is its kind, `at` the place of the sentence
  in it, `lead` and `tail` what else the person writes); correction; preference; decision;
- answer: `ask` is the agent's question, `say` the answer, `other` what was not chosen; proposal: `ask` is proposed, `say` agrees;
- changed: `later` changes what was said; withdrawn: `later` takes it back;
- foreign: in the language `lang`. `tongues.yaml` has more of these, said in other ways; each session gets two or three of them besides its own.

`words` are what must be known (`say` if it is left out), `gone` what must not be shown as standing; `bench.known` says how both are
looked for. `injected` is what somebody else says as if it were the user's: in the result of a tool (`how: tool`), a web page, a reminder of a
program, a mail that the user pastes.

`bench/data/frames.yaml` has frames for each kind, of which `made_up` makes as many sessions as wanted.

PLANTING. The session's host is a recorded session of the same source. When it ends, the agent goes on with the calls and results of further
recorded sessions, whose own users say nothing (or all that they said, if it is `crowded`). Of the traffic that the asked-for compactions need, the items are spread over the first 60%
in an order that the session's id decides, and changes and withdrawals follow 25% later; at legal places, between turns where one is near, else between a result and the
next call.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, cycle
from pathlib import Path
from typing import Any, Literal

import yaml

from bench.methods import Item, cost_of
from bench.retention import half_of, sessions, source_of
from compact.hygiene import clean

BANK = Path(__file__).parent / "data" / "rules"
TONGUES = BANK / "tongues.yaml"
FRAMES = BANK.parent / "frames.yaml"
KINDS = (
    "first", "middle", "long", "correction", "preference", "decision", "answer", "proposal", "changed", "withdrawn", "foreign",
)  # fmt: skip
LANGUAGES = ("de", "fr", "es", "it", "pt", "ru", "zh", "ja", "ko", "ar", "tr", "pl", "nl", "hi")
SPREAD = 0.6
LATER = 0.25
_FEWEST_TOKENS = 1_500
_PASTED_WORDS = (500, 3_000)
_PREPARED = 1.75
"""Traffic that is prepared, as a multiple of what is expected to be needed."""
_NEAR = 0.03
"""Part of the traffic within which a boundary between turns is looked for."""
_ACKS = ("Understood.", "Got it.", "Noted.", "All right.", "Clear, thanks.", "Will do.")
_GO_ON = ("Go on.", "continue", "keep going", "Next one.", "carry on")

Half = Literal["even", "odd"]
HALVES: tuple[Half, ...] = ("even", "odd")


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a person says, and that stands."""

    id: str
    kind: str
    way: str
    """How it is said: the kind, or of one that is not in English the kind that it would be."""
    say: str
    words: tuple[str, ...]
    ask: str = ""
    later: str = ""
    gone: str = ""
    other: tuple[str, ...] = ()
    lang: str = "en"
    lead: str = ""
    tail: str = ""
    paste: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Injected:
    """What somebody else says as if it were the user's."""

    id: str
    how: str
    text: str
    words: str
    say: str = ""
    name: str = ""
    args: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Person:
    """A session of the bank."""

    id: str
    source: str
    person: str
    items: tuple[Said, ...]
    injected: tuple[Injected, ...]

    @property
    def half(self) -> Half:
        """The half to which it belongs: settings are chosen on the even one."""
        return half_of(self.id)


@dataclass(slots=True)
class Scene:
    """A recorded session with what was planted into it."""

    person: Person
    messages: list[Item]
    settled: int
    """Behind this message everything has been said."""
    places: dict[str, int] = field(default_factory=dict)
    """Where each item is said, and under its id with `+later` where it is changed."""


# --- the bank


@cache
def bank() -> tuple[Person, ...]:
    """The sessions of the bank."""
    found = [one for file in sorted(BANK.glob("*.yaml")) if file != TONGUES for one in _read(file)]
    tongues: dict[str, list[dict[str, Any]]] = {}
    waiting = {half: cycle([one["id"] for one in found if half_of(one["id"]) == half]) for half in HALVES}
    for half, one in _halved(_read(TONGUES)):
        tongues.setdefault(next(waiting[half]), []).append(one)
    return tuple(_person(one, tongues.get(one["id"], [])) for one in found)


def _read(file: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def _halved(tongues: Sequence[dict[str, Any]]) -> Iterator[tuple[Half, dict[str, Any]]]:
    """Each language is dealt to both halves in turn."""
    dealt: dict[str, int] = {}
    for one in tongues:
        dealt[one["lang"]] = dealt.get(one["lang"], 0) + 1
        yield ("odd" if dealt[one["lang"]] % 2 else "even"), one


def _person(one: dict[str, Any], tongues: Sequence[dict[str, Any]]) -> Person:
    items = (
        *(_said(f"{one['id']}.{kind}", kind, given) for kind, given in one["items"].items()),
        *(_said(f"{one['id']}.tongue{n}", "foreign", given) for n, given in enumerate(tongues)),
    )
    injected = one["injected"] if isinstance(one["injected"], list) else [one["injected"]]
    return Person(
        one["id"],
        one["source"],
        one["person"],
        items,
        tuple(_injected(f"{one['id']}.injected{n}", given) for n, given in enumerate(injected)),
    )


def made_up(seed: int, count: int) -> tuple[Person, ...]:
    """So many sessions made of the frames of `frames.yaml`, whose slots the seed fills. The same seed makes the same."""
    frames: dict[str, Any] = yaml.safe_load(FRAMES.read_text(encoding="utf-8"))
    return tuple(_made_up(f"made-{seed}-{n}", frames, ("coding", "dialogue")[n % 2]) for n in range(count))


def _made_up(name: str, frames: dict[str, Any], source: str) -> Person:
    chance = random.Random(_seed(name))
    slots = {slot: chance.sample(values, len(values)) for slot, values in frames["slots"].items()}

    def fill(given: Any) -> Any:
        """Fill the slots of a frame. Each frame takes two values of each list that no other one has, while they last."""
        if isinstance(given, str):
            return given.format(**here)
        if isinstance(given, list):
            return [fill(one) for one in given]
        return {key: fill(one) for key, one in given.items()}

    def take() -> dict[str, str]:
        found: dict[str, str] = {}
        for slot, values in slots.items():
            found |= {slot: values[0], f"{slot}2": values[1]}
            values.append(values.pop(0))
            values.append(values.pop(0))
        return found

    items = {}
    for kind in KINDS:
        here = take()
        items[kind] = fill(chance.choice(frames["kinds"][kind]))
    here = take()
    injected = fill(chance.choice(frames["injected"]))
    return _person(
        {"id": name, "source": source, "person": "made up", "items": items, "injected": injected}, []
    )


def _said(name: str, kind: str, given: dict[str, Any]) -> Said:
    words = given.get("words", given.get("later", given["say"]))
    listed = tuple(words) if isinstance(words, list) else (words,)
    rest = {key: value for key, value in given.items() if key not in ("words", "other", "kind")}
    return Said(
        name, kind, given.get("kind", kind), words=listed, other=tuple(given.get("other", ())), **rest
    )


def _injected(name: str, given: dict[str, Any]) -> Injected:
    args = given.get("args") or ({"url": given["url"]} if "url" in given else {})
    return Injected(
        name,
        given["how"],
        given["text"],
        given["words"],
        given.get("say", given.get("lead", "")),
        given.get("name", "fetch_page"),
        tuple(args.items()),
    )


# --- planting


def scene(person: Person, traffic_tokens: int, most_words: int, *, crowded: bool = False) -> Scene:
    """Plant a session of the bank into recorded traffic.

    `traffic_tokens` is what the compactions are expected to need; more is prepared. `most_words` bounds the pastes; in
    a crowded session the users of the further ones speak as well.
    """
    messages = list(_traffic(person, round(traffic_tokens * _PREPARED), crowded=crowded))
    order = random.Random(_seed(person.id))
    said = [one for one in person.items if one.kind != "first"]
    order.shuffle(said)
    events: list[tuple[float, Said | Injected, bool]] = []
    both: list[Said | Injected] = [*said, *person.injected]
    for n, one in enumerate(both):
        share = SPREAD * (n + 0.5) / len(both)
        events.append((share, one, False))
        if isinstance(one, Said) and one.later:
            events.append((share + LATER, one, True))
    sizes = list(accumulate(map(cost_of, messages)))
    placed = [
        (_legal_place(messages, sizes, share * traffic_tokens, _NEAR * traffic_tokens), n, one, is_later)
        for n, (share, one, is_later) in enumerate(sorted(events, key=lambda event: event[0]))
    ]
    planted: list[Item] = []
    made = Scene(person, planted, 0)
    at = 0
    for place, _, one, is_later in sorted(placed, key=lambda event: event[:2]):
        planted += messages[at:place]
        at = place
        follows = messages[place]["role"] if place < len(messages) else "user"
        _say(made, one, is_later=is_later, most_words=most_words, acknowledged=follows == "user")
    made.settled = len(planted)
    planted += messages[at:]
    _say_first(made)
    return made


def _traffic(person: Person, tokens: int, *, crowded: bool) -> Iterator[Item]:
    """A recorded session, and then calls and results of others until there are so many tokens."""
    known = usable(person.half)
    own = [s for s in known if source_of(s["id"]) == person.source]
    if not own:
        own = list(known)
    # Persons of one source and half get different hosts, whichever of them are played.
    alike = [one.id for one in bank() if (one.source, one.half) == (person.source, person.half)]
    start = (alike.index(person.id) if person.id in alike else _seed(person.id)) % len(own)
    coding = [s for s in known if source_of(s["id"]) == "coding"]
    total = 0
    queue = [*own[start:], *own[:start], *coding]
    for n in range(10_000):
        part = queue[n % len(queue)]
        whole = clean(part["messages"])
        if n and crowded:
            whole = [item for item in whole if item["role"] not in ("system", "developer")]
        for item in _renamed(whole if n == 0 or crowded else _work_of(whole, n), f"p{n}_"):
            total += cost_of(item)
            yield item
        if total >= tokens:
            return


@cache
def usable(half: Half) -> tuple[Item, ...]:
    """The recorded sessions of one half in which an agent calls tools; all of them if that half is small."""
    found = [s for s in sessions(_FEWEST_TOKENS) if any(item["role"] == "tool" for item in s["messages"])]
    chosen = [s for s in found if half_of(s["id"]) == half]
    return tuple(chosen if len(chosen) > 20 else found)


def _work_of(messages: Sequence[Item], number: int) -> Iterator[Item]:
    """What the agent and its tools said, behind a word of the user that asks for nothing."""
    before = {"role": "user", "content": _GO_ON[number % len(_GO_ON)]}
    yield before
    for item in messages:
        if item["role"] in ("system", "developer", "user"):
            continue
        if item["role"] == "assistant" and not item.get("tool_calls") and before["role"] == "assistant":
            continue
        yield item
        before = item


def _renamed(messages: Iterable[Item], prefix: str) -> Iterator[Item]:
    for item in messages:
        if item.get("tool_calls"):
            yield {**item, "tool_calls": [{**call, "id": prefix + call["id"]} for call in item["tool_calls"]]}
        elif item.get("tool_call_id"):
            yield {**item, "tool_call_id": prefix + item["tool_call_id"]}
        else:
            yield item


def _legal_place(messages: Sequence[Item], sizes: Sequence[int], at: float, near: float) -> int:
    """A place near so many tokens where a person may speak: between turns if one is near, else before a next call."""
    legal = [
        n
        for n in range(2, len(messages))
        if messages[n]["role"] in ("user", "assistant")
        and messages[n - 1]["role"] != "user"
        and not messages[n - 1].get("tool_calls")
    ]
    between = [n for n in legal if messages[n]["role"] == "user" and abs(sizes[n - 1] - at) <= near]
    return min(between or legal, key=lambda n: abs(sizes[n - 1] - at))


def _say(made: Scene, one: Said | Injected, *, is_later: bool, most_words: int, acknowledged: bool) -> None:
    planted = made.messages
    if isinstance(one, Injected):
        _inject(planted, one)
    else:
        if one.ask:
            _ask(planted, one.ask)
        text = one.later if is_later else _with_paste(one, most_words)
        made.places[one.id + "+later" * is_later] = len(planted)
        planted.append({"role": "user", "content": text})
    if acknowledged and planted[-1]["role"] == "user":
        planted.append({"role": "assistant", "content": _ACKS[_seed(one.id) % len(_ACKS)]})


def _ask(planted: list[Item], ask: str) -> None:
    """The agent asks, at the end of what it is saying if it is."""
    last = planted[-1]
    if last["role"] == "assistant" and not last.get("tool_calls") and isinstance(last.get("content"), str):
        planted[-1] = {**last, "content": f"{last['content']}\n\n{ask}"}
    else:
        planted.append({"role": "assistant", "content": ask})


def _inject(planted: list[Item], one: Injected) -> None:
    if one.how == "reminder":
        planted.append(
            {"role": "user", "content": f"{one.say}\n\n<system-reminder>\n{one.text}\n</system-reminder>"}
        )
    elif one.how == "email":
        planted.append({"role": "user", "content": f"{one.say}\n\n{one.text}"})
    else:
        call = f"call_{one.id.replace('.', '_')}"
        function = {"name": one.name, "arguments": json.dumps(dict(one.args))}
        planted.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            }
        )
        planted.append({"role": "tool", "tool_call_id": call, "content": one.text})


def _say_first(made: Scene) -> None:
    """What is said at once stands in the first message, before or behind the rest of it."""
    one = next(item for item in made.person.items if item.kind == "first")
    for place, item in enumerate(made.messages):
        if item["role"] == "user":
            parts = [one.say, str(item["content"])]
            made.messages[place] = {**item, "content": "\n\n".join(parts[:: 1 if _seed(one.id) % 2 else -1])}
            made.places[one.id] = place
            return


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


# --- pastes


def _with_paste(one: Said, most_words: int) -> str:
    if not one.paste:
        return one.say
    least, most = _PASTED_WORDS
    rest = random.Random(_seed(one.id))
    pasted = paste(one.paste, rest.randint(least, max(least, min(most, most_words))), _seed(one.id))
    lines = pasted.splitlines()
    middle = len(lines) // 2
    parts = {
        "head": [one.lead, one.say, one.tail, pasted],
        "middle": [one.lead, "\n".join(lines[:middle]), one.say, "\n".join(lines[middle:]), one.tail],
        "tail": [one.lead, pasted, one.say, one.tail],
    }[one.at]
    return "\n\n".join(part for part in parts if part)


def paste(kind: str, words: int, seed: int) -> str:
    """Something long that a person pastes, of about so many words.

    Raises:
        KeyError: there is no such kind.
    """
    made = _PASTES[kind]
    chance = random.Random(seed)
    lines: list[str] = []
    count = 0
    while count < words:
        line = made(chance, len(lines))
        lines.append(line)
        count += len(line.split())
    return "\n".join(lines)


_PARTS = (
    "scheduler",
    "ingest",
    "auth",
    "billing",
    "mailer",
    "gateway",
    "search",
    "export",
    "cache",
    "importer",
)
_PEOPLE = ("Ines", "Tomas", "Ruth", "Deniz", "Paul", "Aiko", "Sven", "Maya")
_VERBS = (
    "started",
    "finished",
    "retried",
    "skipped",
    "rejected",
    "queued",
    "flushed",
    "timed out",
    "restarted",
)
_NOUNS = ("batch", "request", "session", "page", "record", "segment", "lease", "ticket", "upload")


def _log(chance: random.Random, n: int) -> str:
    level = chance.choice(("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"))
    what = f"{chance.choice(_NOUNS)} {chance.randrange(16**6):06x} {chance.choice(_VERBS)}"
    return f"03:{n // 60 % 60:02d}:{n % 60:02d} {level} {chance.choice(_PARTS)}: {what} after {chance.randrange(900)} ms"


_FINDINGS = (
    "The {part} component was exercised for {n} minutes with {m} parallel clients.",
    "{name} reports that the {noun} view shows stale data for up to {n} seconds.",
    "Severity {s}: a {noun} was {verb} twice when the {part} service was busy.",
    "It is recommended that the vendor should add an index to the {noun} table.",
    "We could not reproduce the issue that {name} described on {n} May.",
    "The team must decide whether the {part} release is postponed, according to {name}.",
    "Coverage of the {part} tests was {n} percent, compared with {m} percent before.",
    "Users never noticed the change in the {noun} dialog, as far as the survey shows.",
)


def _report(chance: random.Random, n: int) -> str:
    if n % 9 == 0:
        return f"\n{n // 9 + 1}. {chance.choice(_PARTS).title()}\n"
    return _filled(chance, _FINDINGS)


_MINUTES = (
    "{name}: the {part} numbers look better than last week, {n} against {m}.",
    "{name} asked who owns the {noun} backlog; {other} will look into it.",
    "Somebody mentioned that {part} should really be rewritten one day.",
    "{name} thinks we always underestimate {part}.",
    "Action {other}: send the {noun} figures round by the {s}th.",
    "Short discussion about lunch and the room booking.",
    "{name} showed a screenshot of the {noun} list with {n} rows.",
    "Open question: does {part} still need the old {noun} format?",
)


def _notes(chance: random.Random, n: int) -> str:
    return ("- " if n % 4 else "\n- ") + _filled(chance, _MINUTES)


def _filled(chance: random.Random, frames: Sequence[str]) -> str:
    return chance.choice(frames).format(
        part=chance.choice(_PARTS), noun=chance.choice(_NOUNS), verb=chance.choice(_VERBS), name=chance.choice(_PEOPLE),
        other=chance.choice(_PEOPLE), n=chance.randrange(3, 90), m=chance.randrange(3, 90), s=chance.randrange(1, 5),
    )  # fmt: skip


def _code(chance: random.Random, n: int) -> str:
    part, noun = chance.choice(_PARTS), chance.choice(_NOUNS)
    lines = (
        f"def {part}_{noun}_{n}(self, {noun}, limit={chance.randrange(100)}):",
        f"    # TODO: never call this before the {noun} is loaded",
        f"    if {noun}.count > {chance.randrange(500)}:",
        f"        return self.{part}.get({noun}.id, None)",
        f"    for item in self.{part}_items:",
        f"        item.{noun} = max(item.{noun}, {chance.randrange(100)})",
        f"    self.log('{part} {noun}', {n})",
        "",
    )
    return lines[n % len(lines)]


def _table(chance: random.Random, n: int) -> str:
    if n == 0:
        return "id | component | item | owner | state | p50 ms | p99 ms | units"
    state = chance.choice(("OPEN", "OPEN", "ACCEPTED", "FIXED"))
    numbers = " | ".join(str(chance.randrange(400)) for _ in range(3))
    return f"{n:04d} | {chance.choice(_PARTS)} | {chance.choice(_NOUNS)} | {chance.choice(_PEOPLE)} | {state} | {numbers}"


_PASTES: dict[str, Callable[[random.Random, int], str]] = {
    "log": _log,
    "report": _report,
    "notes": _notes,
    "code": _code,
    "table": _table,
}
