"""What survives many compactions: does a session that lives at its limit still have the facts that it goes on to use?

`python -m bench.many_passes --window 32k --sessions 6` prints a table; `--help` shows how to run a part.

METHOD. Recorded sessions of one source are joined, and played call by call with the default settings and without a model until there
were 20 compactions. The host keeps the list that `preflight` returned and appends what was recorded. *Needed* are the identifiers
that the rest writes before anything shows them again; the rest is that of the session in which the last compaction came, and
the next session. *Older* are those that the newest messages, up to the size to which a pass goes, would not keep: only these need a
compactor that keeps again what it kept once. Both measures of `compact.tools.replay.retention` say how many are kept.
Every joined session has the same weight.

Masking and head+tail play the same calls: they make a pass when the list reaches the same trigger, down to the same target, and one
more at the end, to the target or to the size of compact's list if that is larger, so that lists of one size are compared.

Cost: each request reuses the messages that it shares with the start of the one before. These are read from the cache, and the
rest is written to it, at the prices of one model. A *break* is a request that does not begin with the whole request before it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import mean
from typing import Any

from bench import Figure, Skipped, recorded, run_to_end, whole_number
from bench.methods import Item, Method, cost_of, head_and_tail, masking, newest, said, tokens_in
from bench.retention import SOURCES, half_of, sessions, source_of
from compact import CompactConfig, CompactError, CompactManager
from compact.hygiene import clean
from compact.tokens.prices import Card, built_in
from compact.tools.pricing.billing import Sent, bill
from compact.tools.replay.retention import IdentifierIndex, Needed, Spoken, Stated, is_kept, is_stated

WINDOWS = {"16k": 16_000, "32k": 32_000, "128k": 128_000}
ROUNDS = 20
OURS = "ours"
OTHERS: dict[str, Method] = {"masking": masking, "head+tail": head_and_tail}
MEASURES = ("any line", "newest", "any line, older", "newest, older")
ABOVE_PLAIN = 0.05
MOST_COST = 1.10
"""Of the cost of masking."""
_MODEL = "gpt-4o"
_PRICED_AS = "claude-sonnet-4"
"""Its cache has a price to read and one to write, so that breaks cost what they cost."""
_FEWEST_TOKENS = 1_500
_FEW = 3
"""Joined sessions for the figures."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Sessions of one source, as one list of messages."""

    name: str
    source: str
    messages: list[Item]
    starts: list[int]
    """Where each session begins."""


@dataclass(slots=True)
class Ledger:
    """The requests of one run, and what they cost with a cache."""

    calls: int = 0
    tokens: int = 0
    reused: int = 0
    breaks: int = 0
    passes: int = 0
    last: list[Item] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _sent: list[Sent] = field(default_factory=list)

    def send(self, messages: list[Item]) -> None:
        """Enter one more request."""
        same = shared_start(self.last, messages)
        self.breaks += same < len(self.last)
        self._sizes = [*self._sizes[:same], *map(_size, messages[same:])]
        self.calls += 1
        self.tokens += sum(self._sizes)
        self.reused += sum(self._sizes[:same])
        self._sent.append(Sent(tokens=sum(self._sizes), unchanged=sum(self._sizes[:same])))
        self.last = messages

    @property
    def size(self) -> int:
        """Tokens of the newest request."""
        return tokens_in(self.last)

    def cost(self, card: Card, output_tokens: int) -> float:
        """Dollars of all requests and of the replies to them."""
        return bill([*self._sent, Sent(tokens=0, unchanged=0, output=output_tokens)], card).cost


@dataclass(frozen=True, slots=True)
class Played:
    """One joined session at one window: what each method kept, and what it cost."""

    joined: str
    source: str
    rounds: int
    place: int
    needed: dict[str, int]
    """How many are needed, by measure."""
    kept: dict[str, dict[str, float | None]]
    """The share of them that is kept, by measure and method."""
    cost: dict[str, float]
    ledgers: dict[str, Ledger]
    error: str | None = None


def bench_many_passes() -> Iterator[Figure]:
    """Needed identifiers that are kept after 20 compactions in 32k tokens, and the cost against masking."""
    if not recorded():
        raise Skipped.for_want_of_data("the few bundled sessions are too short for 20 compactions")
    for source in ("coding", "dialogue"):
        played = [play(one, WINDOWS["32k"]) for one in joined_sessions(source, WINDOWS["32k"], _FEW)]
        about = (
            f"32k, {source}, {len(played)} joined sessions, {mean(one.rounds for one in played):.0f} rounds"
        )
        for measure in MEASURES:
            kept = {name: average(one.kept[measure][name] for one in played) for name in (OURS, *OTHERS)}
            shown = ", ".join(f"{name} {_shown(value)}" for name, value in kept.items())
            floor = max(kept[name] or 0 for name in OTHERS) + ABOVE_PLAIN
            if kept[OURS] is not None:
                yield Figure(
                    f"{about}, {measure}: {shown}; ours",
                    kept[OURS] or 0,
                    "",
                    round(min(1, floor), 2),
                    at_least=True,
                )
        yield Figure(f"{about}: cost, times masking's", cost_ratio(played, OURS), "x", MOST_COST)


# --- playing


def play(joined: Joined, window: int, rounds: int = ROUNDS) -> Played:
    """Play a joined session with each method, and measure what they have at the end."""
    config = CompactConfig(model=_MODEL, max_context_tokens=window, archive={"adapter": "memory"})
    trigger, target = sizes(config, window)
    calls = model_calls(joined.messages)
    ours, place, error = play_ours(joined, calls, config, rounds)
    ledgers = {OURS: ours}
    for name, method in OTHERS.items():
        ledgers[name] = play_method(joined, [at for at in calls if at <= place], method, trigger, target)
    limit = max(target, ours.size)
    contexts = {OURS: ours.last} | {name: fitted(ledgers[name].last, limit, OTHERS[name]) for name in OTHERS}
    texts = {name: list(map(said, context)) for name, context in contexts.items()}
    needs = needed_after(joined, place, target)
    replies = sum(_size(item) for item in joined.messages[:place] if item["role"] == "assistant")
    card = _card()
    return Played(
        joined=joined.name,
        source=joined.source,
        rounds=ours.passes,
        place=place,
        needed={measure: len(ones) for measure, ones in needs.items()},
        kept={
            measure: {name: _share([_is_kept(one, text) for one in ones]) for name, text in texts.items()}
            for measure, ones in needs.items()
        },
        cost={name: ledger.cost(card, replies) for name, ledger in ledgers.items()},
        ledgers=ledgers,
        error=error,
    )


def play_ours(
    joined: Joined, calls: Sequence[int], config: CompactConfig, rounds: int
) -> tuple[Ledger, int, str | None]:
    """Play with compact until there were so many compactions. Also gives the place that was reached, and what stopped it."""
    ledger, done = Ledger(), 0
    with CompactManager(config) as manager:
        outcome: Any = None
        for place in calls:
            try:
                sent = list(manager.preflight(joined.name, [*ledger.last, *joined.messages[done:place]]))
            except CompactError as problem:
                return ledger, done, f"{problem.code}: {problem}"
            ledger.send(sent)
            done = place
            made = manager.last_outcome(joined.name)
            if made is not None and made is not outcome and made.step is not None:
                ledger.passes += 1
            outcome = made
            if ledger.passes >= rounds:
                break
    return ledger, done, None


def play_method(joined: Joined, calls: Sequence[int], method: Method, trigger: int, target: int) -> Ledger:
    """Play with a plain method, which makes a pass whenever the list reaches the trigger."""
    ledger, done = Ledger(), 0
    for place in calls:
        given = [*ledger.last, *joined.messages[done:place]]
        if sum(map(_size, given)) >= trigger:
            given = method(given, target)
            ledger.passes += 1
        ledger.send(given)
        done = place
    return ledger


def fitted(messages: list[Item], target: int, method: Method) -> list[Item]:
    """A list no longer than the target, by one more pass if it is."""
    return messages if tokens_in(messages) <= target else method(messages, target)


def needed_after(joined: Joined, place: int, target: int) -> dict[str, Sequence[Needed | Stated]]:
    """What the rest needs, by each measure: all of it, and without what the newest `target` tokens would keep."""
    later = [start for start in joined.starts if start >= place]
    stop = later[1] if len(later) > 1 else len(joined.messages)
    index = IdentifierIndex(Spoken(item["role"], said(item)) for item in joined.messages[:stop])
    recent = {name for n in newest(joined.messages[:place], target) for name, _, _ in index.names_in(n)}
    needed = index.needed(place)
    stated = [one for one in index.stated(place) if one.words]
    return {
        "any line": needed,
        "newest": stated,
        "any line, older": [one for one in needed if one.name not in recent],
        "newest, older": [one for one in stated if one.name not in recent],
    }


def _is_kept(one: Needed | Stated, messages: Sequence[str]) -> bool:
    return is_kept(one, "\n".join(messages)) if isinstance(one, Needed) else is_stated(one, messages)


def sizes(config: CompactConfig, window: int) -> tuple[int, int]:
    """The size at which a pass begins, and the one to which it goes."""
    trigger = config.trigger_tokens(window)
    return trigger, round(trigger * min(config.policy.target_pct / config.policy.trigger_pct, 0.9))


def model_calls(messages: Sequence[Item]) -> list[int]:
    """Where the model was called: before each reply."""
    return [
        place
        for place in range(1, len(messages))
        if messages[place]["role"] == "assistant" and messages[place - 1]["role"] != "assistant"
    ]


def shared_start(before: Sequence[Item], after: Sequence[Item]) -> int:
    """How many messages two requests share at the start."""
    pairs = zip(before, after, strict=False)
    differ = (n for n, (one, other) in enumerate(pairs) if one is not other and one != other)
    return next(differ, min(len(before), len(after)))


_sizes: dict[int, tuple[Item, int]] = {}
"""By identity, with the message itself, so that no other one gets its place in memory."""


def _size(item: Item) -> int:
    found = _sizes.get(id(item))
    if found is None:
        found = _sizes[id(item)] = item, cost_of(item)
    return found[1]


@cache
def _card() -> Card:
    found = built_in().card(_PRICED_AS)
    assert found is not None
    return found


# --- joined sessions


def joined_sessions(
    source: str, window: int, count: int, rounds: int = ROUNDS, half: str | None = None
) -> Iterator[Joined]:
    """So many joined sessions of one source, with about twice the tokens that the rounds need.

    Each begins where the one before ended. When the recordings are used up, they begin again.
    """
    config = CompactConfig(model=_MODEL, max_context_tokens=window)
    trigger, target = sizes(config, window)
    enough = trigger + rounds * (trigger - target) * 2
    waiting = [
        s
        for s in sessions(_FEWEST_TOKENS)
        if source_of(s["id"]) == source and half in (None, half_of(s["id"]))
    ]
    at = 0
    for _ in range(count):
        parts: list[Item] = []
        tokens = 0
        while tokens < enough and len(parts) < len(waiting):
            parts.append(waiting[at % len(waiting)])
            tokens += tokens_in(parts[-1]["messages"])
            at += 1
        yield join(parts, source)


def join(parts: Sequence[Item], source: str) -> Joined:
    """One list of several sessions. Calls are renamed, because two sessions may use the same ids; one system prompt stays."""
    messages: list[Item] = []
    starts = []
    for number, part in enumerate(parts):
        starts.append(len(messages))
        for item in clean(part["messages"]):
            if number and item["role"] == "system":
                continue
            messages.append(_renamed(item, f"s{number}_"))
    return Joined(f"{parts[0]['id']}+{len(parts) - 1}", source, messages, starts)


def _renamed(item: Item, prefix: str) -> Item:
    if item.get("tool_calls"):
        return {**item, "tool_calls": [{**call, "id": prefix + call["id"]} for call in item["tool_calls"]]}
    if item.get("tool_call_id"):
        return {**item, "tool_call_id": prefix + item["tool_call_id"]}
    return item


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Print one line for each joined session, and the means."""
    asked = _parser().parse_args(words)
    window = WINDOWS[asked.window]
    for source in asked.source or ("coding", "dialogue"):
        print(f"{source} at {asked.window}; kept by {', '.join((OURS, *OTHERS))}")
        played = []
        for joined in joined_sessions(source, window, asked.sessions, asked.rounds, asked.half):
            played.append(play(joined, window, asked.rounds))
            print(_line(played[-1]), flush=True)
        print(f"{_means(played)}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(
        prog="python -m bench.many_passes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("--window", choices=tuple(WINDOWS), default="32k")
    asked.add_argument(
        "--sessions", type=whole_number(1), default=_FEW, metavar="N", help="joined ones of each source"
    )
    asked.add_argument(
        "--rounds", type=whole_number(1), default=ROUNDS, metavar="N", help="compactions of each"
    )
    asked.add_argument(
        "--source", action="append", choices=tuple(SOURCES), help="default: coding and dialogue"
    )
    asked.add_argument("--half", choices=("even", "odd"), help="default: all sessions")
    return asked


def _line(one: Played) -> str:
    each = [
        f"{measure} {'/'.join(_shown(one.kept[measure][name]) for name in (OURS, *OTHERS))} of {one.needed[measure]}"
        for measure in MEASURES
    ]
    ended = f"; stopped: {one.error}" if one.error else ""
    return f"  {one.rounds} rounds, {one.ledgers[OURS].calls} calls: {'; '.join(each)} ({one.joined}){ended}"


def _means(played: Sequence[Played]) -> str:
    lines = [f"{'mean':<10} {'rounds':>6} {'cost':>6} {'breaks':>6} {'tokens':>7}  {'  '.join(MEASURES)}"]
    for name in (OURS, *OTHERS):
        ledgers = [one.ledgers[name] for one in played]
        kept = [average(one.kept[measure][name] for one in played) for measure in MEASURES]
        cells = "  ".join(
            f"{_shown(value):>{len(measure)}}" for value, measure in zip(kept, MEASURES, strict=True)
        )
        lines.append(
            f"{name:<10} {mean(ledger.passes for ledger in ledgers):>6.1f} {cost_ratio(played, name):>5.2f}x "
            f"{mean(ledger.breaks for ledger in ledgers):>6.1f} {mean(ledger.size for ledger in ledgers):>7,.0f}  {cells}"
        )
    return "\n".join(lines)


def cost_ratio(played: Sequence[Played], name: str) -> float:
    """What a method costs, as a multiple of masking's cost of the same calls."""
    reference = sum(one.cost["masking"] for one in played)
    return sum(one.cost[name] for one in played) / reference if reference else 1.0


def average(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    run_to_end(lambda: main(sys.argv[1:]))
