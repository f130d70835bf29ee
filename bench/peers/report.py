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
_HARD, _ALL = "retention_measured_half", "of_everything_measured_half"

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
- **Retention**: *needed* are the identifiers that the agent writes again after the cut; *kept* is the share of them that still
  stands in the context with the words that gave them meaning (`bench/retention.py`). In the columns *older kept*, identifiers
  that the newest messages alone would hold at that budget are not counted: they ask what a tool keeps beyond a plain cut, so a
  tool that only keeps the newest messages scores near 0 there by definition. The columns *all kept* count every needed
  identifier. Both are of the half of the sessions ({measured} lists) that nothing in compact was chosen by. A tool without a
  budget, or that missed it or gave an illegal list, was tried with other settings; the first result that is legal and fits is
  scored. What never fits keeps nothing.
- **Import**: the statement that stands with each tool below, in a fresh process: processor time, and how much memory it grew.
"""


_RULES = """## Rules

What a user said and expects to stand (`make bench`, `bench/rules.py`) is not part of the tables above: the other tools have no place for it, so
it is measured against plain methods only. `python -m bench rules` prints the figures with their targets.

- **Bank**: sessions written by hand (`bench/data/rules/`), each with one thing of eleven kinds: said in the first message, in the middle,
  inside a long paste, a correction, a preference, a decision, an answer to the agent's question, a confirmed proposal, a rule that is
  changed later, one that is withdrawn later, and one that is not in English (fourteen languages). Each also has an order of somebody
  else that poses as the user's: in the result of a tool, a web page, a reminder of a program, or a pasted mail.
- **Play**: they are planted into recorded sessions at legal places and played call by call, without a model, until there were 20
  compactions and everything has been said. The host keeps the returned list, or passes the full history.
- **Known**: the words stand in the last context, close together, as the user's: in a message of theirs or in the part of a compactor's
  text that is attributed to them. An answer needs its question, a changed rule its new value. `bench/known.py` defines it to the word.
- **Shown as standing**: the old value of what was changed or withdrawn stands in a compactor's text, or in a message of the user that the
  later one no longer follows. **Promoted**: the words of somebody else stand among the user's.
- **Controls**: the last N messages, masking, a bag of all words and a list of identifiers, at the same calls and sizes.

A session of the bank belongs to one half by the hash of its id: `--half even` is for choosing, `--half odd` is the measurement.

```
python -m bench.rules --half odd --sessions 99 --window 16k --window 32k
python -m bench.rules --window 8k --preset selective --host full --rounds 50 --missed --sample 40
python -m bench.rules --sessions 0 --made 20 --seed 7    # sessions made of frames that the seed fills
```
"""


def write_report(results: Results, docs: Path) -> str:
    """Writes the page and the plot; returns the page."""
    page = page_of(results)
    (docs / "BENCHMARKS.md").write_text(page, encoding="utf-8")
    kept = {
        found["title"]: [_score(_share(found, share), _HARD) or 0.0 for share in _SHARES]
        for found in _in_order(results)
        if _share(found, _SHARES[0])
    }
    cost = {
        found["title"]: {
            int(length): ms for length in _LENGTHS if (ms := _cost(found, ("preflight", length)))
        }
        for found in _in_order(results)
    }
    if kept and any(cost.values()):
        (docs / "images").mkdir(exist_ok=True)
        (docs / "images" / "benchmarks.svg").write_text(plot(kept, cost), encoding="utf-8")
    return page


def page_of(results: Results) -> str:
    """The page alone; writes nothing."""
    return "\n".join(_page(results)) + "\n"


def _page(results: Results) -> Iterator[str]:
    ours = results.get("ours", {})
    cases, measured = (_summed(ours, key) for key in ("cases", "cases_measured_half"))
    yield _HEAD.format(tokens=ours.get("compaction", {}).get("tokens", 0), cases=cases, measured=measured)
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
            *_KEPT,
            "import",
            "memory",
        ),
        [_output_row(found) for found in _in_order(results)],
    )
    fewer = [
        f"{found['title']} ({_summed(found, 'cases')}, {_summed(found, 'cases_measured_half')} of them scored)"
        for found in results.values()
        if 0 < _summed(found, "cases") < cases
    ]
    if fewer:
        yield f"Only some of the lists, evenly drawn, because one call takes long: {', '.join(fewer)}.\n"
    yield from _baselines(ours)
    yield from _verdict(results)
    yield "## What was called, and what each does better\n"
    for found in _in_order(results):
        better = f" Better than compact: {found['better']}." if found["better"] else ""
        imported = f" Imported: `{found['import']}`." if "import" in found else ""
        yield f"- **{found['title']} {found['version']}**: {found['called']}.{imported}{better}{_problems(found)}"
    yield f"\n{_RULES.rstrip()}"


def _conditions(results: Results) -> Iterator[str]:
    tasks = {
        f"{found['title']} {name}": task
        for found in _in_order(results)
        for name, task in found.items()
        if isinstance(task, dict)
    }
    if not tasks:
        return
    machines = sorted({task["measured_on"]["machine"] for task in tasks.values()})
    loads = [task["load"] for task in tasks.values()]
    newest = max(task["measured"] for task in tasks.values())
    busy = (
        f" The machine was busy with other programs (load {min(loads):g} to {max(loads):g}): processor times "
        "hold, wall times are too long."
        if max(loads) > _BUSY
        else ""
    )
    older = [
        f"{about} (kept from {task['measured']})"
        for about, task in tasks.items()
        if task["measured"] != newest
    ]
    kept = f" Not measured then, but before: {', '.join(older)}." if older else ""
    yield f"Measured {newest} on {'; '.join(machines)}.{busy}{kept}\n"


def _in_order(results: Results) -> list[Any]:
    return [results[name] for name in sorted(results, key=lambda name: (name != "ours", name))]


def _share(found: Any, share: str) -> Any:
    """The outcome for the lists at one share of the tokens; empty if it was not measured."""
    return found.get("outputs", {}).get(share, {})


def _summed(found: Any, key: str) -> int:
    return sum(_share(found, share).get(key, 0) for share in _SHARES)


def _score(one: Any, key: str) -> float | None:
    value: float | None = one.get(key)
    return value


def _speed_row(found: Any) -> list[str]:
    preflight = found.get("preflight", {})
    cells = [
        _ms(preflight[length]["cpu_ms"]) if length in preflight else _absent(preflight) for length in _LENGTHS
    ]
    shorter, longer = (_cost(found, ("preflight", length)) for length in _LENGTHS[1:])
    growth = f"{longer / shorter:.1f}" if shorter and longer else _NONE
    one = found.get("compaction", {})
    compaction = (
        _absent(one)
        if "cpu_ms" not in one
        else "over 10 minutes"
        if one["cpu_ms"] is None
        else f"{_ms(one['cpu_ms'])} ({_ms(one['wall_ms'])})"
    )
    return [found["title"], found["version"], *cells, growth, compaction]


def _output_row(found: Any) -> list[str]:
    by_share = [_share(found, share) for share in _SHARES]
    cells = [_absent(found.get("outputs", {}))] * 8
    if all(by_share):
        cells = [
            *(f"{one['illegal']} of {one['cases']}" for one in by_share),
            *(_over(one) for one in by_share),
            *(_kept(one, _HARD) + _never(one) for one in by_share),
            *(_kept(one, _ALL) for one in by_share),
        ]
    importing = found.get("importing")
    imported = [_ms(importing["cpu_ms"]), f"{importing['memory_mb']:.0f} MB"] if importing else [_NONE, _NONE]
    return [found["title"], *cells, *imported]


def _absent(task: Any) -> str:
    return "too slow" if task.get("too_slow") else _NONE


def _over(one: Any) -> str:
    refused = f" ({one['refused']} refused with an error)" if one.get("refused") else ""
    return f"{one['over_budget']} of {one['cases']}{refused}"


def _kept(one: Any, key: str) -> str:
    value = _score(one, key)
    return _NONE if value is None else f"{value:.3f}"


def _never(one: Any) -> str:
    notes = [
        f"{one[key]} of {one['cases']} {words}"
        for key, words in (("never_fits", "never fit"), ("too_slow", "calls over a minute"))
        if one[key]
    ]
    return f" ({', '.join(notes)})" if notes else ""


_KEPT = ("older kept 25%", "older kept 50%", "all kept 25%", "all kept 50%")


def _baselines(ours: Any) -> Iterator[str]:
    plain = ours.get("baselines", {})
    if _SHARES[0] not in plain:
        return
    yield "Plain methods on the same lists, and two controls that a score must not reward (`bench/retention.py`):\n"
    yield from _table(
        ("method", *_KEPT),
        [
            [name, *(_kept(plain[share][name], key) for key in (_HARD, _ALL) for share in _SHARES)]
            for name in plain[_SHARES[0]]
        ],
    )


def _verdict(results: Results) -> Iterator[str]:
    """Where compact is not the best, by number, and why."""
    ours, others = results.get("ours", {}), [found for name, found in results.items() if name != "ours"]
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
    mine = _share(ours, share)
    for key, words in (("illegal", "illegal lists"), ("over_budget", "lists over budget")):
        if mine.get(key):
            yield f"- {float(share):.0%}: {mine[key]} {words} of {mine['cases']}."
    rivals = {one["title"]: _share(one, share) for one in others}
    rivals |= {f"plain {name}": one for name, one in ours.get("baselines", {}).get(share, {}).items()}
    for key, words in ((_HARD, "Older kept"), (_ALL, "All kept")):
        own = _score(mine, key)
        scores = {name: _score(one, key) for name, one in rivals.items()}
        better = [
            f"{name} {value:.3f}"
            for name, value in scores.items()
            if own is not None and value is not None and value >= own
        ]
        if better:
            yield f"- {words} at {float(share):.0%} ({own:.3f}): {', '.join(better)}."


def _lower(ours: Any, others: Sequence[Any], *keys: str) -> str:
    """Tools that took less processor time for the measurement at these keys."""
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
    rules = {rule for share in _SHARES for rule in _share(found, share).get("problems", {})}
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
