"""Workers on one archive in an object store: managers of this process, and of processes of their own.

    python tests/support/workers.py PLACE

answers requests, one JSON object a line: {"method": "preflight", "arguments": [...]}. PLACE is a `Place` as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from support.archive import AWS
from support.engine import pair, says, user

from compact import CompactConfig, CompactManager
from compact.archive import Archive
from compact.checks import violations
from compact.engine.state import fingerprint

Item = dict[str, Any]

SESSION = "shared"
KEY = "AKIAQ3EGRIT7W5KXH2PL"
"""A key as a provider writes them. Nobody's."""
_PATIENCE_S = 30
"""Of a worker with the store: a busy machine is no outage."""


@dataclass(frozen=True)
class Place:
    """Where the archive lies, and what all workers agree on."""

    endpoint: str
    bucket: str
    folder: str
    window: int = 4_000
    settings: dict[str, Any] = field(default_factory=dict)

    def manager(self, name: str, **parts: Any) -> CompactManager:
        """A worker's own manager, with a spool of its own."""
        archive = {
            "adapter": "s3",
            "bucket": self.bucket,
            "prefix": "team",
            "endpoint_url": self.endpoint,
            "spool_root": f"{self.folder}/spool-{name}",
            "timeout_s": _PATIENCE_S,
        }
        return CompactManager(
            CompactConfig(
                model="gpt-4o", max_context_tokens=self.window, archive=archive, **dict(self.settings)
            ),
            **parts,
        )


@dataclass
class Answer:
    """What a call gave, and the step that it made, if it made one."""

    result: Any
    step: int | None


class Worker:
    """A manager in this process."""

    def __init__(self, place: Place, name: str) -> None:
        self.made = place.manager(name)

    def ask(self, method: str, session: str, *arguments: Any) -> Answer:
        before = self.made.last_outcome(session)
        result = getattr(self.made, method)(session, *arguments)
        outcome = self.made.last_outcome(session)
        made_one = outcome is not None and outcome is not before
        return Answer(result, outcome.step if outcome and made_one else None)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.made.close()


class WorkerProcess:
    """A manager in a process of its own. `send` and `answer` are apart, so that several can work at once."""

    def __init__(self, place: Place) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.workers", json.dumps(asdict(place))],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **AWS},
        )

    def send(self, method: str, *arguments: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Answer:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"the worker ended with {self._process.wait()}"
        return Answer(**json.loads(line))

    def ask(self, method: str, *arguments: Any) -> Answer:
        self.send(method, *arguments)
        return self.answer()

    def kill(self) -> None:
        """As a machine ends that loses its power."""
        self._process.kill()
        self._end()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.returncode is None:
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait(30)
            self._end()

    def _end(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()


def turn_of(number: int) -> list[Item]:
    """A turn with a mark in every message, and a secret now and then."""
    told = f" The key is {KEY}." if number % 7 == 0 else ""
    return [
        user(f"ask-{number}- Look at part {number}, and never rename its columns.{told}"),
        *pair(f"call-{number}", f"row-{number}- " + f"value {number} of the table; " * 50),
        says(f"did-{number}- Part {number} is fine."),
    ]


def marks_of(turns: int) -> list[str]:
    return [f"{kind}-{number}-" for number in range(turns) for kind in ("ask", "row", "did")]


def assert_fine(made: CompactManager, sent: list[Item]) -> None:
    """What holds for everything that goes to a model."""
    assert violations(sent, "chat") == []
    budget = made.config.budget(made.config.max_context_tokens or 0)
    assert made.estimate(sent).total <= budget


def assert_nothing_lost(
    archive: Archive, turns: int, sent: list[Item], won: dict[int, list[Item]], session: str = SESSION
) -> None:
    """Every step is there once, as the worker that made it returned it; every message is archived or stands."""
    steps = archive.steps(session)
    assert steps == list(range(1, len(steps) + 1)) == sorted(won), "a step is missing, or was won twice"
    for step, result in won.items():
        assert archive.step(session, step).fingerprints["standing"] == fingerprint(result), "overwritten"
    assert archive.verify(session) == []
    kept = json.dumps([archive.restore(session, step).messages for step in steps])
    kept += "".join(archive.read_text(session, file.path) for file in archive.files(session))
    assert KEY not in kept
    there = kept + json.dumps(sent)
    assert [mark for mark in marks_of(turns) if mark not in there] == []


def serve(place: Place) -> None:
    """Answers until its input ends."""
    with Worker(place, str(os.getpid())) as worker:
        for line in sys.stdin:
            asked = json.loads(line)
            answer = worker.ask(asked["method"], *asked["arguments"])
            sys.stdout.write(json.dumps(asdict(answer)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve(Place(**json.loads(sys.argv[1])))
