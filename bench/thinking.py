"""Long sessions with signed thinking through real passes, judged by the strict stand-in: `python -m bench.thinking`.

Recorded sessions of one source are joined until they have enough calls. Every reply gets a thinking block, signed behind the
request that it answers. Each request must be accepted: no block behind an edit, no block left out between others. Runs are drawn
by the seed over sources, models, hosts, layouts and windows. `--keep` leaves the blocks in, to see what is refused then.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bench import run_to_end, transcripts, whole_number
from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.checks import violations
from compact.tools.standins import Rules, anthropic_problems, sign_block

Item = dict[str, Any]

CHECKING = (
    "claude-fable-5-2",
    "claude-fable-5-1",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
)
OLDER = ("claude-sonnet-4-5", "claude-opus-4-6")
"""Models that do not check prefixes; their open tool loop must begin with its thinking."""
HOSTS = ("keeps", "full")
LAYOUTS = ("layered", "selective")
LEAST_WINDOW, MOST_WINDOW = 16_000, 200_000
KEY = b"stand-in"
SYSTEM = [{"type": "text", "text": "You are a careful agent.", "cache_control": {"type": "ephemeral"}}]
_THOUGHT_WORDS = 60
_THINKS = 0.85
"""How many replies begin with thinking; all of an older model's do."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run."""

    source: str
    model: str
    host: str
    layout: str
    window: int
    seed: int

    def __str__(self) -> str:
        return f"{self.source} {self.model} {self.host} {self.layout} {self.window:,} seed {self.seed}"


@dataclass(slots=True)
class Run:
    """What one job did."""

    job: Job
    calls: int = 0
    passes: int = 0
    blocks: int = 0
    """The most signed blocks in one request."""
    refused: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Requests that the stand-in refused and `violations` found legal, or the other way round."""
    excused: str = ""


@cache
def sources() -> dict[str, list[list[Item]]]:
    """The recorded sessions by the beginning of their ids, which names where they come from."""
    found: dict[str, list[list[Item]]] = {}
    for path in transcripts():
        for line in gzip.decompress(path.read_bytes()).splitlines():
            session = json.loads(line)
            found.setdefault(session["id"].split("-")[0], []).append(session["messages"])
    return {name: each for name, each in found.items() if sum(map(len, each)) > 60}


def draw_jobs(seed: int, runs: int) -> list[Job]:
    """The runs of a seed. One in five asks an older model."""
    chance = random.Random(seed)
    found = []
    for n in range(runs):
        model = chance.choice(OLDER if n % 5 == 4 else CHECKING)
        window = round(LEAST_WINDOW * (MOST_WINDOW / LEAST_WINDOW) ** chance.random())
        places = chance.choice(sorted(sources())), model, HOSTS[n % 2], chance.choice(LAYOUTS), window
        found.append(Job(*places, chance.randrange(10**6)))
    return found


def joined(source: str, calls: int, chance: random.Random) -> list[Item]:
    """Sessions of one source as one Anthropic list with that many replies. No call id occurs twice."""
    found: list[Item] = []
    taken = 0
    while sum(item["role"] == "assistant" for item in found) < calls:
        session = chance.choice(sources()[source])
        taken += 1
        for item in to_anthropic(session, f"_{taken}"):
            if found and found[-1]["role"] == item["role"]:
                found[-1] = {**item, "content": [*found[-1]["content"], *item["content"]]}
            else:
                found.append(item)
    return found


def to_anthropic(messages: Sequence[Mapping[str, Any]], suffix: str) -> Iterator[Item]:
    """Chat messages as Anthropic messages, without the system prompt. Every call gets its result or is left out."""
    answered = {item["tool_call_id"] for item in messages if item["role"] == "tool"}
    for item in messages:
        text, role = item.get("content") or "", item["role"]
        words = [{"type": "text", "text": text}] if isinstance(text, str) and text.strip() else []
        if role == "tool":
            yield {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": _id(item["tool_call_id"], suffix),
                        "content": text or "(empty)",
                    }
                ],
            }
        elif role in ("user", "assistant"):
            calls = [call for call in item.get("tool_calls") or () if call["id"] in answered]
            blocks = [
                *words,
                *(
                    {
                        "type": "tool_use",
                        "id": _id(call["id"], suffix),
                        "name": call["function"]["name"],
                        "input": _object(call["function"]["arguments"]),
                    }
                    for call in calls
                ),
            ]
            if blocks:
                yield {"role": role, "content": blocks}


def _id(call_id: str, suffix: str) -> str:
    return "".join(sign if sign.isalnum() else "_" for sign in call_id)[-40:] + suffix


def _object(text: str) -> Item:
    try:
        found = json.loads(text)
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict) else {"value": found}


def play(job: Job, calls: int = 300, **policy: Any) -> Run:
    """Play a run: one request before every reply, as the host and its model would make it."""
    chance, run = random.Random(job.seed), Run(job)
    history = joined(job.source, calls, chance)
    names = sorted(
        {block["name"] for item in history for block in item["content"] if block["type"] == "tool_use"}
    )
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names] or [
        {"name": "noop", "input_schema": {"type": "object"}}
    ]
    made = CompactManager(
        CompactConfig(
            model=job.model,
            max_context_tokens=job.window,
            archive={"adapter": "memory"},
            policy={"layout": job.layout, **policy},
        )
    )
    is_older = job.model in OLDER
    own: list[Item] = []
    sent: Item | None = None
    for item in history:
        if item["role"] != "assistant":
            own.append(item)
            continue
        if not own:
            continue
        if run.calls >= calls:
            break
        run.calls += 1
        where = f"{job}, call {run.calls}"
        try:
            messages = made.preflight("s", own, tools=tools, system=SYSTEM)
        except InsufficientBudget as problem:
            run.excused = f"{where}: {problem}"
            break
        body: Item = {
            "model": job.model,
            "max_tokens": 100,
            "system": SYSTEM,
            "tools": tools,
            "messages": messages,
        }
        if is_older:
            body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        problems = anthropic_problems(body, Rules(signing_key=KEY))
        found = violations(body, "anthropic", in_flight=False, model=job.model, previous=sent)
        run.refused += [f"{where}: {problem}" for problem in problems[:1]]
        if not is_older and bool(problems) != bool(found):
            run.unseen.append(f"{where}: stand-in {problems[:1]}, violations {found[:1]}")
        run.blocks = max(run.blocks, sum(_count_thinking(each) for each in messages))
        reply = item["content"]
        if is_older or chance.random() < _THINKS:
            thought = " ".join(
                chance.choice(("think", "look", "again", "file", "maybe")) for _ in range(_THOUGHT_WORDS)
            )
            signature = sign_block(thought, body, KEY)
            reply = [{"type": "thinking", "thinking": thought, "signature": signature}, *reply]
        if job.host == "keeps":
            own = list(messages)
        own.append({"role": "assistant", "content": reply})
        sent = body
    run.passes = len(made.archive.steps("s"))
    made.close()
    return run


def _count_thinking(item: Item) -> int:
    content = item["content"]
    return sum(block["type"] == "thinking" for block in content) if isinstance(content, list) else 0


def main() -> int:
    """Print runs, calls, passes and every refusal. Returns 1 if there is one."""
    asked = argparse.ArgumentParser(prog="python -m bench.thinking", description=__doc__)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--runs", type=whole_number(1), default=40)
    asked.add_argument("--calls", type=whole_number(1), default=300)
    asked.add_argument(
        "--keep", action="store_true", help="leave all thinking in, as policy.thinking: keep does"
    )
    args = asked.parse_args()
    refused = unseen = calls = passes = excused = 0
    for job in draw_jobs(args.seed, args.runs):
        run = play(job, args.calls, **({"thinking": "keep"} if args.keep else {}))
        calls, passes, excused = calls + run.calls, passes + run.passes, excused + bool(run.excused)
        refused, unseen = refused + len(run.refused), unseen + len(run.unseen)
        print(
            f"{job}: {run.calls} calls, {run.passes} passes, up to {run.blocks} blocks, {len(run.refused)} refused",
            flush=True,
        )
        for line in [*run.refused[:2], *run.unseen[:2], *([run.excused] if run.excused else [])]:
            print(f"  {line}")
    print(
        f"{args.runs} runs, {calls:,} calls, {passes:,} passes, seed {args.seed}: {refused} refused, {unseen} where violations "
        f"and the stand-in differ, {excused} ended early"
    )
    return 1 if refused or unseen else 0


if __name__ == "__main__":
    run_to_end(main)
