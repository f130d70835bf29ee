"""A stand-in in a process of its own, for clients that are programs: `python -m compact.tools.standins --script answers.json`.

It prints one line with its address when it is ready, and runs until it is ended.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from compact.errors import CompactError
from compact.tools.standins.script import Answer, Fault, Received, Refusal, by_turn
from compact.tools.standins.script_files import read_script
from compact.tools.standins.server import serving


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C. Returns 2 if the script cannot be read."""
    asked = argparse.ArgumentParser(prog="python -m compact.tools.standins", description=__doc__)
    asked.add_argument("--port", type=int, default=0, help="0 takes a free one")
    asked.add_argument("--script", type=Path, help="answers by turn, as a JSON or YAML list; without it: OK.")
    asked.add_argument("--window", type=int, default=200_000, help="the largest request in tokens")
    asked.add_argument("--late-refusals", action="store_true", help="refuse what is too long in the stream")
    asked.add_argument("--gzip", action="store_true", help="answer in gzip where the client takes it")
    asked.add_argument("--log", type=Path, help="write one JSON line for each request")
    args = asked.parse_args(arguments)
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    with ExitStack() as stack:
        try:
            script = by_turn(read_script(args.script) if args.script else ["OK."])
        except CompactError as problem:
            sys.stderr.write(f"{problem}\n")
            return 2
        log = stack.enter_context(args.log.open("a", encoding="utf-8")) if args.log else None
        provider = stack.enter_context(
            serving(
                script,
                port=args.port,
                window=args.window,
                late_refusals=args.late_refusals,
                compresses=args.gzip,
                keeps_bodies=False,
                on_answer=_Log(log).write if log else None,
            )
        )
        sys.stdout.write(f"compact standins: {provider.url}\n")
        sys.stdout.flush()
        ended.wait()
    return 0


class _Log:
    """One JSON line for each request, whole even where several are answered at once."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def write(self, request: Received, answer: Answer | None) -> None:
        with self._lock:
            self._file.write(json.dumps(_described(request, answer)) + "\n")
            self._file.flush()


def _described(request: Received, answer: Answer | None) -> dict[str, Any]:
    said = "nothing" if answer is None else "reply"
    if isinstance(answer, Fault):
        said = answer.kind
    elif isinstance(answer, Refusal):
        said = str(answer.status)
    return {
        "number": request.number,
        "endpoint": request.endpoint,
        "model": request.model,
        "turn": request.turn,
        "messages": len(request.messages),
        "tokens": request.tokens,
        "counting": request.counting,
        "has_tools": request.has_tools,
        "problems": [problem.message for problem in request.problems],
        "answer": said,
        "cache": {"read": request.looked.billed.read, "written": dict(request.looked.billed.written)},
    }


if __name__ == "__main__":
    sys.exit(main())
