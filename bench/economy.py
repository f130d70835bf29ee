"""What passes cost and save: `python -m bench economy`, and for retention `python -m bench.economy --sessions 3`.

PRICES. Every recorded timeline is priced as `compact price` does, by every card. *replayed* plays what really happened, to see how far
the simulator is from the bill. Settings were chosen on the timelines whose id's SHA-256 is even; both halves are shown.

RETENTION. Recorded sessions with their messages are played call by call, once with `policy.economy: auto` and once `off`, with the pauses of
recorded timelines between the calls. At half, three quarters and nine tenths of the calls, both measures of `compact.tools.replay.retention` say
how much of what the session needs later is in what is sent.
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
from bench.many_passes import Joined, join, model_calls, needed_after
from bench.methods import Item, said, tokens_in
from bench.retention import sessions
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
_PLACES = (0.5, 0.75, 0.9)
_MEASURES = ("any line", "newest")
_MODEL = "claude-opus-4-5"
_LEAST_TOKENS = 40_000
_APART = 97
"""So many pauses lie between the beginnings of two sessions."""
_SESSIONS = 14
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
    found = _sample(_SESSIONS)
    share = len(sessions(_LEAST_TOKENS)) / len(sessions(0))
    for measure in _MEASURES:
        kept = {
            way: mean(one.kept[measure] for one in found if one.economy == way) for way in ("auto", "off")
        }
        lost = kept["off"] - kept["auto"]
        about = f"{measure}: auto {kept['auto']:.3f}, off {kept['off']:.3f}, {len(found) // 2} places"
        yield Figure(f"{about} in sessions of {_LEAST_TOKENS:,} tokens and more; lost", lost, "", MOST_LOST)
        yield Figure(f"{measure}: lost over all recorded sessions", lost * share, "", MOST_LOST)


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

    session: str
    economy: str
    place: int
    tokens: int
    passes: int
    kept: dict[str, float]


def play(number: int, session: Item) -> list[Kept]:
    """Play a session both ways, and measure both at the same places."""
    joined = join([session], "coding")
    calls = model_calls(joined.messages)
    sent = {way: _contexts(number, joined, calls, way) for way in ("off", "auto")}
    found = []
    for share in _PLACES:
        call = min(int(len(calls) * share), len(calls) - 1)
        needs = needed_after(joined, calls[call], 0)
        if not all(needs[measure] for measure in _MEASURES):
            continue
        for way, contexts in sent.items():
            messages, passes = contexts[call]
            texts = list(map(said, messages))
            whole = "\n".join(texts)
            kept = {
                measure: mean(
                    is_kept(one, whole) if isinstance(one, Needed) else is_stated(one, texts)
                    for one in needs[measure]
                )
                for measure in _MEASURES
            }
            found.append(Kept(session["id"], way, calls[call], tokens_in(messages), passes, kept))
    return found


def _contexts(
    number: int, joined: Joined, calls: Sequence[int], economy: str
) -> list[tuple[list[Item], int]]:
    """What is sent at each call, and how many steps were made up to it."""
    config = CompactConfig(
        model=_MODEL, max_context_tokens=WINDOW, policy={"economy": economy}, archive={"adapter": "memory"}
    )
    now, done = _START, 0
    before: list[Item] = []
    found: list[tuple[list[Item], int]] = []
    first = number * _APART % len(_pauses())
    pauses = islice(cycle(_pauses()), first, first + len(calls))
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
            times = [one.start_s for one in each.requests if one.start_s is not None]
            found += [after - before for before, after in pairwise(times)]
    return found


def _sample(count: int) -> list[Kept]:
    """So many recorded sessions that are large enough for an early pass, spread evenly. In smaller ones both ways are the same."""
    large = sessions(_LEAST_TOKENS)
    every = max(1, len(large) // count)
    return [one for number, session in enumerate(large[::every][:count]) for one in play(number, session)]


def main(words: Sequence[str] | None = None) -> int:
    """Print what is kept at each place."""
    asked = argparse.ArgumentParser(
        prog="python -m bench.economy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument("--sessions", type=whole_number(1), default=_SESSIONS, metavar="N", help="how many")
    found = _sample(asked.parse_args(words).sessions)
    for one in found:
        cells = ", ".join(f"{measure} {share:.3f}" for measure, share in one.kept.items())
        about = f"{one.passes} passes, {one.tokens:,} raw tokens"
        print(f"{one.session} at {one.place}, {one.economy}: {cells}; {about}")
    for way in ("auto", "off"):
        rows = [one for one in found if one.economy == way]
        print(f"{way}: " + ", ".join(f"{m} {mean(one.kept[m] for one in rows):.3f}" for m in _MEASURES))
    return 0


if __name__ == "__main__":
    run_to_end(main)
