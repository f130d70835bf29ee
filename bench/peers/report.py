"""docs/BENCHMARKS.md and its plot, from what was measured. Nothing in them is written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.peers.plot import plot

Results = dict[str, Any]
_LENGTHS = ("100", "1000", "10000")
_SHARES = ("0.25", "0.5")
_BUSY = 2.0
_NONE = "not measured"

_HEAD = """# Benchmarks against other tools

Made by `make bench-peers`, which installs the packages below into an environment of their own and measures them and compact on
the same transcripts. Every number is in [benchmarks.json](benchmarks.json). Nothing here was written by hand.

![What is kept, and what a call costs](images/benchmarks.svg)

## What was measured

- **Preflight**: the call before a model call where nothing has to go, on a session that grows by one message each time
  (about 128 tokens each, a tool call in every fourth). Median of 12 calls, processor time.
- **Compaction**: one recorded session of {tokens:,} tokens to half of them, no model, cold: nothing of it was seen before.
  Best of 3, processor time; in brackets wall time, which includes waiting for the disk.
- **Outputs**: {cases} lists (recorded sessions, cut at half and at three quarters, to 25% and to 50% of their tokens), each tool
  as its documentation shows it. *Illegal*: a provider would refuse the list (`compact.checks.violations`). *Over budget*: more
  exact tokens than asked for; *refused* is a tool that raises instead of giving such a list.
- **Retention**: the share of the identifiers that the agent writes again after the cut and that still stand in the context with
  the words that gave them meaning (`bench/retention.py`). A tool without a budget, or that missed it, was tried with other
  settings; the first result that fits is scored. What never fits keeps nothing.
- **Import**: a fresh process, processor time, and how much memory it grew.
"""


def write_report(results: Results, docs: Path) -> str:
    """Writes the page and the plot; returns the page."""
    page = "\n".join(_page(results)) + "\n"
    (docs / "BENCHMARKS.md").write_text(page, encoding="utf-8")
    measured = [found for found in _in_order(results) if "outputs" in found and "preflight" in found]
    if measured:
        kept = {
            found["title"]: [found["outputs"][share]["retention"] for share in _SHARES] for found in measured
        }
        cost = {
            found["title"]: {
                int(length): found["preflight"][length]["cpu_ms"]
                for length in _LENGTHS
                if found["preflight"][length]["cpu_ms"]
            }
            for found in measured
        }
        (docs / "images" / "benchmarks.svg").write_text(plot(kept, cost), encoding="utf-8")
    return page


def _page(results: Results) -> Iterator[str]:
    ours = results["ours"]
    cases = sum(ours["outputs"][share]["cases"] for share in _SHARES) if "outputs" in ours else 0
    yield _HEAD.format(tokens=ours.get("compaction", {}).get("tokens", 0), cases=cases)
    yield from _conditions(results)
    yield "## Results\n"
    yield from _table(
        ("tool", "version", *(f"preflight {int(n):,}" for n in _LENGTHS), "x for 10x", "compaction"),
        [_speed_row(found) for found in _in_order(results)],
    )
    yield from _table(
        (
            "tool",
            "illegal 25%",
            "illegal 50%",
            "over 25%",
            "over 50%",
            "kept at 25%",
            "kept at 50%",
            "import",
            "memory",
        ),
        [_output_row(found) for found in _in_order(results)],
    )
    fewer = [
        found["title"]
        for found in results.values()
        if "outputs" in found and sum(found["outputs"][share]["cases"] for share in _SHARES) < cases
    ]
    if fewer:
        yield f"{' and '.join(fewer)}: only some of the lists, evenly drawn, because one call takes long.\n"
    yield from _baselines(ours)
    yield from _verdict(results)
    yield "## What was called, and what each does better\n"
    for found in _in_order(results):
        better = f" Better than compact: {found['better']}." if found["better"] else ""
        yield f"- **{found['title']} {found['version']}**: {found['called']}.{better}{_problems(found)}"


def _conditions(results: Results) -> Iterator[str]:
    tasks = [task for found in results.values() for task in found.values() if isinstance(task, dict)]
    machines = sorted({task["machine"] for task in tasks if "machine" in task})
    loads = [task["load"] for task in tasks if "load" in task]
    days = sorted({task["measured"] for task in tasks if "measured" in task})
    busy = (
        f" The machine was busy with other programs (load {min(loads):g} to {max(loads):g}): processor times "
        "hold, wall times are too long."
        if max(loads) > _BUSY
        else ""
    )
    yield f"Measured {' and '.join(days)} on {'; '.join(machines)}.{busy}\n"


def _in_order(results: Results) -> list[Any]:
    return [results["ours"], *(results[name] for name in sorted(results) if name != "ours")]


def _speed_row(found: Any) -> list[str]:
    preflight = found.get("preflight")
    cells = [_ms(preflight[length]["cpu_ms"]) if preflight else _NONE for length in _LENGTHS]
    growth = _NONE
    if preflight and preflight["10000"]["cpu_ms"]:
        growth = f"{preflight['10000']['cpu_ms'] / preflight['1000']['cpu_ms']:.1f}"
    one = found.get("compaction")
    compaction = (
        _NONE
        if not one
        else "over 10 minutes"
        if one["cpu_ms"] is None
        else f"{_ms(one['cpu_ms'])} ({_ms(one['wall_ms'])})"
    )
    return [found["title"], found["version"], *cells, growth, compaction]


def _output_row(found: Any) -> list[str]:
    outputs, importing = found.get("outputs"), found.get("importing")
    cells = [_NONE] * 6
    if outputs:
        by_share = [outputs[share] for share in _SHARES]
        cells = [
            *(f"{one['illegal']} of {one['cases']}" for one in by_share),
            *(_over(one) for one in by_share),
            *(_kept(one) for one in by_share),
        ]
    imported = [_ms(importing["cpu_ms"]), f"{importing['memory_mb']:.0f} MB"] if importing else [_NONE, _NONE]
    return [found["title"], *cells, *imported]


def _over(one: Any) -> str:
    refused = f" ({one['refused']} refused with an error)" if one.get("refused") else ""
    return f"{one['over_budget']} of {one['cases']}{refused}"


def _kept(one: Any) -> str:
    notes = [
        f"{one[key]} {words}"
        for key, words in (("never_fits", "never fit"), ("too_slow", "calls over a minute"))
        if one[key]
    ]
    return f"{one['retention']:.3f}" + (f" ({', '.join(notes)})" if notes else "")


def _baselines(ours: Any) -> Iterator[str]:
    plain = ours.get("baselines")
    if not plain:
        return
    yield "Plain methods on the same lists, and two controls that a score must not reward (`bench/retention.py`):\n"
    yield from _table(
        ("method", "kept at 25%", "kept at 50%"),
        [[name, *(f"{plain[share][name]:.3f}" for share in _SHARES)] for name in plain[_SHARES[0]]],
    )


def _verdict(results: Results) -> Iterator[str]:
    """Where compact is not the best, by number, and why."""
    ours, others = results["ours"], [found for name, found in results.items() if name != "ours"]
    yield "## Where compact is not the best\n"
    found = []
    for length in _LENGTHS:
        faster = _lower(ours, others, "preflight", length)
        if faster:
            mine = ours["preflight"][length]["cpu_ms"]
            found.append(f"- Preflight at {int(length):,} messages ({_ms(mine)}): {faster}.")
    faster = _lower(ours, others, "compaction")
    if faster:
        found.append(f"- One compaction ({_ms(ours['compaction']['cpu_ms'])}): {faster}.")
    for share in _SHARES:
        if "outputs" in ours:
            found += _output_losses(ours, others, share)
    imports = _lower(ours, others, "importing")
    if imports:
        found.append(f"- Import ({_ms(ours['importing']['cpu_ms'])}): {imports}.")
    yield from found or ["Nowhere in these tables."]
    yield f"\n{_REASONS}\n"


_REASONS = (
    "Why: compact counts every string with the model's tokenizer, and before a compaction it redacts the whole transcript and "
    "makes it durable on the disk; then it chooses, excerpts and verifies. The fast ones estimate by characters or only count "
    "messages, and drop or cut without keeping a copy. In a session that compact has watched, the counting is already done: "
    "`make bench` has that case (`engine.one_compaction`). Its memory of counted messages is bounded in bytes; a session that "
    "does not fit into it is counted again in part at each call."
)


def _output_losses(ours: Any, others: Sequence[Any], share: str) -> Iterator[str]:
    mine = ours["outputs"][share]
    for key, words in (("illegal", "illegal lists"), ("over_budget", "lists over budget")):
        if mine[key]:
            yield f"- {float(share):.0%}: {mine[key]} {words} of {mine['cases']}."
    kept = {
        one["title"]: one["outputs"][share]["retention"]
        for one in others
        if "outputs" in one and one["outputs"][share]["retention"] >= mine["retention"]
    }
    kept |= {
        f"plain {name}": each
        for name, each in ours.get("baselines", {}).get(share, {}).items()
        if each >= mine["retention"]
    }
    if kept:
        shown = ", ".join(f"{name} {value:.3f}" for name, value in kept.items())
        yield f"- Retention at {float(share):.0%} ({mine['retention']:.3f}): {shown}."


def _lower(ours: Any, others: Sequence[Any], *keys: str) -> str:
    """Who took less processor time for the measurement at these keys."""
    mine = _cost(ours, keys)
    values = {one["title"]: _cost(one, keys) for one in others}
    return ", ".join(
        f"{title} {_ms(value)}" for title, value in values.items() if mine and value and value < mine
    )


def _cost(found: Any, keys: Sequence[str]) -> float | None:
    for key in keys:
        found = found.get(key, {})
    value: float | None = found.get("cpu_ms")
    return value


def _problems(found: Any) -> str:
    rules = {
        rule for share in _SHARES for rule in found.get("outputs", {}).get(share, {}).get("problems", {})
    }
    return f" What a provider would refuse: {', '.join(sorted(rules))}." if rules else ""


def _ms(value: float | None) -> str:
    if value is None:
        return "over a minute"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.3g} ms" if value >= 0.01 else f"{value * 1000:.2g} µs"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""
