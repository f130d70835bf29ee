"""Processes that write to one archive and are killed, or race; run as a program, so that forking is cheap and safe.

    python tests/support/archive_kill.py kill ROOT KILLS SEED
    python tests/support/archive_kill.py race ROOT PROCESSES STEPS

Prints what it found as one JSON object.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from support.archive import NoRedactor, SettableClock, commit, conversation, fs_archive

from compact.archive import Archive, Step
from compact.events import Ids, Recorder, Started, Trace

KILLS_PER_SESSION = 20


def open_archive(root: Path) -> Archive:
    return fs_archive(root, redactor=NoRedactor())


def work(root: Path, session: str, worker: int, acknowledge: int) -> None:
    """Writes until it is killed; after each call that returned, says so on the pipe."""
    archive = open_archive(root)
    make = Recorder(SettableClock(), Ids(f"{session}.{worker}.{os.getpid()}"))

    def say(**what: Any) -> None:
        os.write(acknowledge, json.dumps(what).encode() + b"\n")

    number = 0
    while True:
        number += 1
        text = f"output {worker} {os.getpid()} {number} " + "x" * (number * 997 % 20_000)
        stored = archive.put_output(session, text, tool_name="tool", tool_call_id=str(number))
        say(output=stored.path, sha256=hashlib.sha256(text.encode()).hexdigest())
        event = make.event(
            Started(reason="manual", note="y" * 500),
            session_id=session,
            step=0,
            trace=Trace(make.ids.trace_id()),
        )
        archive.append_events(session, [event])
        say(event=event.span_id)
        latest = archive.latest(session)
        after = latest.step if latest else 0
        messages = [*conversation(3), {"role": "user", "content": text}]
        with archive.begin(session, messages, dialect="chat", after=after) as attempt:
            result = commit(attempt, mark=text[:40])
        if isinstance(result, Step):
            say(step=result.step, mark=text[:40], lines=len(messages))


def check(root: Path, session: str, lines: list[dict[str, Any]]) -> list[str]:
    """What is not as it was acknowledged."""
    archive = open_archive(root)
    wrong = [f"{p.key}: {p.message}" for p in archive.verify(session)]
    spans = {event.span_id for event in archive.events(session)}
    for line in lines:
        if "output" in line:
            stored = archive.read_text(session, line["output"])
            if hashlib.sha256(stored.encode()).hexdigest() != line["sha256"]:
                wrong.append(f"output lost: {line}")
        elif "event" in line:
            if line["event"] not in spans:
                wrong.append(f"event lost: {line}")
        else:
            step = archive.step(session, line["step"])
            if step.state["mark"] != line["mark"] or step.files["transcript"].lines != line["lines"]:
                wrong.append(f"step lost: {line}")
    return wrong


def start(root: Path, session: str, worker: int) -> tuple[int, int]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            work(root, session, worker, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    return pid, read_end


def kill_many(root: Path, kills: int, seed: int) -> dict[str, Any]:
    """Two processes on one session, killed one after the other at random moments, again and again."""
    chance = random.Random(seed)
    done = acknowledged = 0
    wrong: list[str] = []
    kinds = {"output": 0, "event": 0, "step": 0}
    session = ""
    while done < kills:
        if done % KILLS_PER_SESSION == 0:
            session = f"session-{done}"
        running = [start(root, session, worker) for worker in range(2)]
        lines: list[dict[str, Any]] = []
        for pid, pipe in running:
            time.sleep(chance.uniform(0, 0.12))
            os.kill(pid, signal.SIGKILL)
            if os.waitpid(pid, 0)[1] != signal.SIGKILL:
                wrong.append(f"a worker ended by itself in {session}")
            with os.fdopen(pipe, "rb") as acks:
                # A pipe takes a short line whole, so what was said was said after the call returned.
                lines += [json.loads(line) for line in acks]
            done += 1
        acknowledged += len(lines)
        for line in lines:
            kinds[next(kind for kind in kinds if kind in line)] += 1
        wrong += check(root, session, lines)
    archive = open_archive(root)
    for session in archive.sessions():
        archive.begin(session, [], dialect="chat", after=len(archive.steps(session))).abandon()
    left = [str(path.relative_to(root)) for path in root.rglob(".*")]
    wrong += [f"{p.key}: {p.message}" for p in archive.verify()]
    return {"kills": done, "acknowledged": acknowledged, "kinds": kinds, "wrong": wrong, "left": left}


def race(root: Path, processes: int, steps: int) -> dict[str, Any]:
    """Processes that each want to commit a number of steps on the same session."""
    children = []
    for worker in range(processes):
        pid = os.fork()
        if pid == 0:
            try:
                won: list[int] = []
                lost = 0
                archive = open_archive(root)
                while len(won) < steps:
                    latest = archive.latest("shared")
                    after = latest.step if latest else 0
                    with archive.begin("shared", conversation(1), dialect="chat", after=after) as attempt:
                        if isinstance(commit(attempt, worker=worker, nth=len(won)), Step):
                            won.append(after + 1)
                        else:
                            lost += 1
                (root.parent / f"won-{worker}.json").write_text(json.dumps({"won": won, "lost": lost}))
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    results = [json.loads((root.parent / f"won-{n}.json").read_text()) for n in range(processes)]
    archive = open_archive(root)
    owners = {step: n for n, result in enumerate(results) for step in result["won"]}
    return {
        "codes": codes,
        "steps": archive.steps("shared"),
        "won": sorted(step for result in results for step in result["won"]),
        "lost": sum(result["lost"] for result in results),
        "overwritten": [
            step for step, n in owners.items() if archive.step("shared", step).state["worker"] != n
        ],
        "problems": [f"{p.key}: {p.message}" for p in archive.verify()],
        "archival_events": len(archive.events("shared")),
        "left": [path.name for path in root.rglob(".*")],
    }


if __name__ == "__main__":
    run = kill_many if sys.argv[1] == "kill" else race
    result = run(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    json.dump(result, sys.stdout)
