"""Runs the attacks and prints, for each, how often it was tried and how often the rule held."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from textwrap import indent

from bench import Figure, run_to_end, whole_number, wrapped
from bench.attack import (
    Attack,
    archives,
    bombs,
    configuration,
    endpoints,
    formats,
    innocents,
    learning,
    limits,
    origins,
    passwords,
    summaries,
    tenants,
    verifying,
    viewing,
)

FAMILIES = {
    module.__name__.rpartition(".")[2]: module.ATTACKS
    for module in (
        origins,
        learning,
        formats,
        passwords,
        innocents,
        archives,
        tenants,
        configuration,
        endpoints,
        summaries,
        limits,
        verifying,
        bombs,
        viewing,
    )
}
SHOWN = 5
"""Failures that are printed for each attack."""


@dataclass(slots=True)
class Result:
    """What one attack came to."""

    attack: Attack
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    @property
    def held(self) -> int:
        """How many tries the rule withstood."""
        return self.tried - len(self.failures)

    @property
    def passed(self) -> bool:
        """Whether the rule held as often as it must, and every figure reached its target."""
        within = len(self.failures) <= self.attack.may_fail * self.tried
        return within and self.tried + len(self.figures) > 0 and all(figure.passed for figure in self.figures)


def run(attack: Attack, seed: int, size: int) -> Result:
    """Make one attack. The seed of an attack does not depend on which others are run."""
    result = Result(attack)
    for outcome in attack.make(Random(f"{seed} {attack.name}"), size):
        if isinstance(outcome, Figure):
            result.figures.append(outcome)
        else:
            result.tried += 1
            if not outcome.held:
                result.failures.append(outcome.what)
    return result


def chosen(words: Sequence[str]) -> Iterator[tuple[str, Attack]]:
    """The attacks of the named families, or all."""
    for family, attacks in FAMILIES.items():
        if not words or family in words:
            yield from ((family, attack) for attack in attacks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks. Returns 1 if a rule did not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.attack", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="family", help=", ".join(FAMILIES))
    parser.add_argument("--seed", type=whole_number(0), default=1, help="another seed makes other attacks")
    parser.add_argument(
        "--size", type=whole_number(1), default=400, help="about how many tries each attack makes"
    )
    args = parser.parse_args(arguments)
    for word in args.families:
        if word not in FAMILIES:
            parser.error(f"no family is named {word!r}; known: {', '.join(FAMILIES)}")
    tried = held = broken = 0
    for family, attack in chosen(args.families):
        result = run(attack, args.seed, args.size)
        tried, held, broken = tried + result.tried, held + result.held, broken + (not result.passed)
        verdict = "PASS" if result.passed else "FAIL"
        counts = (
            f"{verdict}  {family + '.' + attack.name:<36} tried {result.tried:>7,}  held {result.held:>7,}"
        )
        print(wrapped(f"{counts}  {attack.rule}", 6), flush=True)
        for what in result.failures[:SHOWN]:
            print(indent(wrapped(f"- {what}", 2), "        "))
        for figure in result.figures:
            print(indent(str(figure), "        "), flush=True)
    print(f"\ntried {tried:,}, held {held:,}, {broken} rules broken, seed {args.seed}, size {args.size}")
    return 1 if broken else 0


if __name__ == "__main__":
    run_to_end(lambda: main(sys.argv[1:]))
