"""What later words do to earlier ones: is a change, a withdrawal, a second matter read as such? The reading alone, without a pass.

`python -m bench.turns` prints a line for each pair that is read wrongly, and the shares by what the later words do and by language.

METHOD. `bench/data/turns.yaml` has pairs of what somebody says and what they say later. Up to ten pairs of one language are said in one
conversation: first all that is said, between words of the agent, and then all that changes it, in an order that depends on the seed. `bench.known`
judges the ledger of that conversation as it judges a context. Of a *changed* pair the later words must be known, and the earlier ones not shown
as standing; of a *withdrawn* one the earlier words must not be shown as standing; of one where *both* hold, both must be known.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import yaml

from bench import Figure, run_to_end, whole_number
from bench.known import Context, clauses, is_known, is_shown_as_standing, read_context
from compact.summaries import ledger
from compact.summaries.ledger import Heard

TURNS = Path(__file__).parent / "data" / "turns.yaml"
READ, SHOWN = 0.97, 0.02
_ROOM = 100_000
_TOGETHER = 10
_APART = 3
"""Messages of the agent's work between two things that are said."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says, and what they say later."""

    does: str
    lang: str
    say: str
    later: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How a pair was read."""

    turn: Turn
    is_known: bool
    """What must be known is."""
    is_shown: bool
    """What no longer holds is shown as standing."""


def bench_turns() -> Iterator[Figure]:
    """Changes, withdrawals and second matters that are read as such, in fifteen languages."""
    read = list(judge_all(turns(), 0))
    yield Figure("what must be known is", mean(one.is_known for one in read), "", READ, at_least=True)
    over = [one.is_shown for one in read if one.turn.does != "both"]
    yield Figure("replaced or withdrawn, shown as standing", mean(over), "", SHOWN)


def turns() -> tuple[Turn, ...]:
    """The pairs."""
    given = yaml.safe_load(TURNS.read_text(encoding="utf-8"))
    return tuple(
        Turn(does, lang, say, later)
        for does, by_lang in given.items()
        for lang, pairs in by_lang.items()
        for say, later in pairs
    )


def judge_all(pairs: Sequence[Turn], seed: int) -> Iterator[Judged]:
    """Read the pairs of each language as one conversation, and judge them."""
    for lang in dict.fromkeys(pair.lang for pair in pairs):
        own = [pair for pair in pairs if pair.lang == lang]
        # The two sides of a second matter would change what others say of the same things.
        for some in ([p for p in own if p.does != "both"], [p for p in own if p.does == "both"]):
            random.Random(f"{seed}{lang}").shuffle(some)
            for start in range(0, len(some), _TOGETHER):
                together = some[start : start + _TOGETHER]
                context = _ledger_of(together)
                yield from (_judged(pair, context) for pair in together)


def _ledger_of(pairs: Sequence[Turn]) -> Context:
    texts = [*(pair.say for pair in pairs), *(pair.later for pair in pairs)]
    heard = [Heard("m1", "user", "Have a look at what is there."), Heard("m2", "agent", "I see it.")]
    for n, text in enumerate(texts):
        place = 2 * _APART * (n + 1)
        heard += [
            Heard(f"m{place}", "user", text),
            Heard(f"m{place + _APART}", "agent", "Understood."),
        ]
    written = ledger.write(ledger.extend((), heard), _ROOM, len, "history.md")
    return read_context([{"role": "assistant", "content": f"<COMPACT-LEDGER v1>\n{written.text}"}])


def _judged(pair: Turn, context: Context) -> Judged:
    if pair.does == "both":
        return Judged(pair, is_known(context, [pair.say]) and is_known(context, [pair.later]), is_shown=False)
    if pair.does == "withdrawn":
        return Judged(pair, True, is_shown_as_standing(context, pair.say, clauses(pair.later)))
    shown = is_shown_as_standing(context, pair.say, [pair.later])
    return Judged(pair, is_known(context, [pair.later]), shown)


def main(words: Sequence[str] | None = None) -> int:
    """Print what is read wrongly, and the shares."""
    asked = argparse.ArgumentParser(
        prog="python -m bench.turns",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="N", help="of the order; default: 0"
    )
    read = list(judge_all(turns(), asked.parse_args(words).seed))
    for one in read:
        if not one.is_known or one.is_shown:
            wrong = " and ".join([*["not known"] * (not one.is_known), *["shown"] * one.is_shown])
            print(f"{one.turn.lang} {one.turn.does}: {wrong}: {one.turn.say} | {one.turn.later}")
    for does in dict.fromkeys(one.turn.does for one in read):
        print(_shares(does, [one for one in read if one.turn.does == does]))
    for lang in dict.fromkeys(one.turn.lang for one in read):
        print(_shares(lang, [one for one in read if one.turn.lang == lang]))
    print(_shares("all", read))
    return 0


def _shares(name: str, read: Sequence[Judged]) -> str:
    known = mean(one.is_known for one in read)
    shown = mean(one.is_shown for one in read)
    return f"{name:<10} {len(read):>4} pairs, known {known:.3f}, shown as standing {shown:.3f}"


if __name__ == "__main__":
    run_to_end(main)
