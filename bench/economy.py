"""What passes cost and save: `python -m bench economy`, and for retention `python -m bench.economy --sessions 3`.

PRICES. Every recorded timeline is priced as `compact price` does, by every card. *replayed* plays what really happened, to see how far
the simulator is from the bill. Settings were chosen on the timelines whose id's SHA-256 is even; both halves are shown.

RETENTION. Recorded sessions with their messages are joined and played call by call, once with `policy.economy: auto` and once `off`,
with the pauses of recorded timelines between the calls. At up to eight places behind the first pass, both measures of
`compact.tools.replay.retention` say how much of what the session needs later is in what is sent.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import cycle, islice, pairwise
from statistics import mean

from bench import Figure, Skipped, best_of, recorded, run_to_end, whole_number
from bench.many_passes import Joined, joined_sessions, model_calls, needed_after
from bench.methods import Item, said
from compact import CompactConfig, CompactManager
from compact.economy import worth_it
from compact.tokens.prices import card_named, card_names
from compact.tools.pricing import Priced, Timeline, dearer, price, read_timelines, total
from compact.tools.replay.retention import Needed, is_kept, is_stated

WINDOW = 200_000
CHOSEN, JUDGED = "even", "odd"
SAVED = 0.25
"""What `auto` has to save on the first card, against a trigger at 85%."""
MOST_OFF = 0.05
"""How far the simulator may be from the recorded bill."""
MOST_DEARER = 0.01
"""By how much a forced pass may make a session dearer than a trigger at 85% does, in 99 of 100 sessions."""
MOST_LOST = 0.02
_FIRST = "anthropic-5m"
_PLACES = 8
_ROUNDS = 3
_SESSIONS = 2
_FEWEST_REQUESTS = 60
_START = datetime(2026, 1, 1, tzinfo=UTC)


def bench_prices() -> Iterator[Figure]:
    """Every recorded timeline under every policy and card, at a window of 200,000 tokens."""
    sessions = _priced()
    off = [
        abs(total(sessions, card, "replayed").bill.cost / total(sessions, card, "recorded").bill.cost - 1)
        for card in card_names()
    ]
    yield Figure(
        f"{len(sessions)} sessions: simulated bill against the recorded one, worst card",
        max(off),
        "",
        MOST_OFF,
    )
    for half in (None, CHOSEN, JUDGED):
        some = [each for each in sessions if half in (None, half_of(each.id))]
        for card in card_names():
            limit = SAVED if card == _FIRST else 0.0
            about = f"{card}, {half or 'all'} ({len(some)}): auto below a trigger at 85%"
            yield Figure(about, _saved(some, card), "", limit, at_least=True)
    for card in card_names():
        unforced = [each for each in dearer(sessions, card) if not each.forced]
        yield Figure(f"{card}: sessions that passes nobody forced made dearer", len(unforced), "", 0)
        yield Figure(
            f"{card}: 99 of 100 sessions dearer than a trigger at 85% by at most",
            _p99(sessions, card),
            "",
            MOST_DEARER,
        )


def bench_decision() -> Figure:
    """One decision, in microseconds."""

    def decide() -> None:
        for _ in range(1_000):
            worth_it(P=20_000, H=60_000, I=40_000, S=2_000, r=5e-7, w=6.25e-6, cold=False)

    return Figure("worth_it", best_of(5, decide) * 1_000, "us", 20)


def bench_retention() -> Iterator[Figure]:
    """What is kept under `policy.economy: auto`, against `off`, with the pauses of recorded timelines."""
    found = [played for joined in _joined(_SESSIONS) for played in play(joined)]
    for measure in ("any line", "newest"):
        kept = {
            way: mean(one.kept[measure] for one in found if one.economy == way) for way in ("auto", "off")
        }
        about = f"{measure}: auto {kept['auto']:.3f}, off {kept['off']:.3f}, {len(found) // 2} places; lost"
        yield Figure(about, kept["off"] - kept["auto"], "", MOST_LOST)


def half_of(session: str) -> str:
    """The half that a session belongs to."""
    return JUDGED if hashlib.sha256(session.encode()).digest()[-1] % 2 else CHOSEN


@cache
def timelines() -> list[Timeline]:
    """The recorded timelines.

    Raises:
        Skipped: there are none on this machine.
    """
    files = recorded("timelines/*.jsonl.gz")
    if not files:
        raise Skipped.for_want_of_data("no timelines/*.jsonl.gz")
    return list(read_timelines(files, "claude-opus-4-5"))


@cache
def _priced() -> list[Priced]:
    return price(timelines(), [card_named(name) for name in card_names()], WINDOW)


def _saved(sessions: Sequence[Priced], card: str) -> float:
    return 1 - total(sessions, card, "auto").bill.cost / total(sessions, card, "trigger_85").bill.cost


def _p99(sessions: Sequence[Priced], card: str) -> float:
    shares = sorted(
        each.cards[card]["auto"].bill.cost / each.cards[card]["trigger_85"].bill.cost - 1 for each in sessions
    )
    return shares[int(0.99 * (len(shares) - 1))]


# --- retention


@dataclass(frozen=True, slots=True)
class Kept:
    """What one way of playing has at one place, by measure."""

    economy: str
    place: int
    tokens: int
    passes: int
    kept: dict[str, float]


def play(joined: Joined) -> list[Kept]:
    """Play a joined session both ways, and measure both at the same places."""
    calls = model_calls(joined.messages)
    sent = {way: _contexts(joined, calls, way) for way in ("off", "auto")}
    first = min(next((n for n, (_, steps) in enumerate(each) if steps), len(calls)) for each in sent.values())
    reached = min(map(len, sent.values()))
    every = max(1, (reached - first) // _PLACES)
    found = []
    for call in list(range(first, reached, every))[:_PLACES]:
        needs = needed_after(joined, calls[call], 0)
        for way, contexts in sent.items():
            messages, steps = contexts[call]
            texts = list(map(said, messages))
            whole = "\n".join(texts)
            kept = {}
            for measure in ("any line", "newest"):
                shares = [
                    is_kept(one, whole) if isinstance(one, Needed) else is_stated(one, texts)
                    for one in needs[measure]
                ]
                if shares:
                    kept[measure] = mean(shares)
            if len(kept) == 2:
                found.append(Kept(way, calls[call], len(whole) // 4, steps, kept))
    return found


def _contexts(joined: Joined, calls: Sequence[int], economy: str) -> list[tuple[list[Item], int]]:
    """What is sent at each call, and how many steps were made up to it; until so many passes that a trigger forced."""
    config = CompactConfig(
        model="claude-opus-4-5",
        max_context_tokens=WINDOW,
        policy={"economy": economy},
        archive={"adapter": "memory"},
    )
    now, done = _START, 0
    before: list[Item] = []
    found: list[tuple[list[Item], int]] = []
    pauses = islice(cycle(_pauses()), len(calls))
    with CompactManager(config, clock=lambda: now) as manager:
        for place, pause_s in zip(calls, pauses, strict=True):
            now += timedelta(seconds=pause_s)
            before = list(manager.preflight(joined.name, [*before, *joined.messages[done:place]]))
            done = place
            found.append((before, len(manager.archive.steps(joined.name))))
    return found


@cache
def _pauses() -> list[float]:
    """The pauses between the requests of the longer timelines, one after the other."""
    found = []
    for each in sorted(timelines(), key=lambda one: one.id):
        if len(each.requests) >= _FEWEST_REQUESTS:
            found += [
                two.start_s - one.start_s
                for one, two in pairwise(each.requests)
                if one.start_s is not None and two.start_s is not None
            ]
    return found


def _joined(count: int) -> Iterator[Joined]:
    return joined_sessions("coding", WINDOW, count, rounds=_ROUNDS)


def main(words: Sequence[str] | None = None) -> int:
    """Print what is kept at each place."""
    asked = argparse.ArgumentParser(
        prog="python -m bench.economy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("--sessions", type=whole_number(1), default=_SESSIONS, metavar="N", help="joined ones")
    found: list[Kept] = []
    for joined in _joined(asked.parse_args(words).sessions):
        for one in play(joined):
            found.append(one)
            cells = ", ".join(f"{measure} {share:.3f}" for measure, share in one.kept.items())
            print(
                f"{joined.name} at {one.place}, {one.economy}: {cells}; {one.passes} passes, about {one.tokens:,} tokens",
                flush=True,
            )
    for way in ("auto", "off"):
        rows = [one for one in found if one.economy == way]
        print(
            f"{way}: "
            + ", ".join(f"{m} {mean(one.kept[m] for one in rows):.3f}" for m in ("any line", "newest"))
        )
    return 0


if __name__ == "__main__":
    run_to_end(main)
