"""A session that needs every stage, the effects of its pass, and what must hold after a failure at one of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from support.engine import assert_good, pair, turns, user
from support.running import GOOD
from support.waiting import until

from compact import CompactConfig, CompactManager
from compact.engine.effects import Effect, Emit
from compact.runtime.run import Run

WINDOW = 8_000
Item = dict[str, Any]


def hard_session(turn_count: int = 12) -> list[Item]:
    """A huge result, old pairs, many turns, something protected, and something to mend."""
    huge = "\n".join(f"row {n} of a very long table" for n in range(700))
    return [
        {"role": "system", "content": "Be careful."},
        user("Never delete data.", meta={"protected": True}),
        *pair("big", huge, name="query"),
        {"role": "tool", "tool_call_id": "nobody", "content": "orphan"},
        *turns(turn_count),
        *(message for n in range(14) for message in pair(f"c{n}", f"output {n} " * 90)),
        user("Go on."),
    ]


def summarize(request: Any) -> str:
    return GOOD


def manager_at(root: str | os.PathLike[str] | None) -> CompactManager:
    """A manager whose archive is a folder; None: it is in memory."""
    archive = {"adapter": "memory"} if root is None else {"adapter": "fs", "root": os.fspath(root)}
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=WINDOW,
        offload={"large_result_tokens": 2000},
        archive=archive,
    )
    return CompactManager(config, summarizer=summarize)


Act = Callable[[Run, Effect], None]
"""What is done to a run at an effect."""


class Watched:
    """Records the effects of a manager's engine, and acts before or after one of them is served."""

    def __init__(
        self, made: CompactManager, point: str = "", before: Act | None = None, after: Act | None = None
    ) -> None:
        self.points: list[str] = []
        self.struck = False
        serve = made.services.serve

        def watch(run: Run, effect: Effect) -> Any:
            name = self._name(effect)
            hit = name == point and not self.struck
            self.struck = self.struck or hit
            if hit and before is not None:
                before(run, effect)
            answer = serve(run, effect)
            if hit and after is not None:
                after(run, effect)
            return answer

        made.services.serve = watch  # type: ignore[method-assign]

    def _name(self, effect: Effect) -> str:
        kind = effect.properties.NAME if isinstance(effect, Emit) else type(effect).__name__
        self.points.append(kind)
        return f"{kind}-{self.points.count(kind)}"


def points_of(watched: Watched) -> list[str]:
    """The effects by kind and number, in order."""
    found: list[str] = []
    for place, kind in enumerate(watched.points):
        found.append(f"{kind}-{watched.points[: place + 1].count(kind)}")
    return found


def ended(made: CompactManager) -> None:
    """Wait until no run works any more, fenced ones included."""
    until(lambda: not any(thread.name.startswith("compact-pass") for thread in threading.enumerate()))
    made.flush()


def assert_whole(root: str | os.PathLike[str], items: Sequence[Item]) -> None:
    """What must hold whatever failed: the old state or the new one, legal, and nothing lost. A new process goes on."""
    made = manager_at(root)
    assert made.archive.verify() == []
    assert made.archive.steps("s") in ([], [1])
    out = made.preflight("s", items)
    assert_good(made, items, out)
    assert made.archive.steps("s") == [1], "the next call makes the step, or finds it made"
    restored = made.archive.restore("s", 1).messages
    files = [
        file.path for file in made.archive.files("s") if "removed" in file.path or file.path.endswith(".txt")
    ]
    moved = "\n".join(made.archive.read_text("s", path) for path in files)
    there = {other["content"] for other in restored}
    lost = [
        item["content"] for item in items if item["content"] not in there and item["content"] not in moved
    ]
    assert lost == []
    grown = [*out, *turns(1), user("And now?")]
    assert_good(made, items, made.preflight("s", grown))
    made.close()
