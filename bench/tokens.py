"""The token meter against plain tiktoken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import tiktoken

from bench import Figure, best_of, ratio
from compact.messages.dialects import get
from compact.tokens import Estimate, Meter
from compact.tokens.counter import counter_for
from compact.tokens.encodings import ENCODINGS

_MODEL = "gpt-4o"
_COUNTERS = (("splintr", True), ("tiktoken", False))
_SOURCES = ("argparse", "inspect", "pydoc", "tarfile", "turtle", "typing", "zipfile", "subprocess", "doctest")


def bench_small_session() -> Iterator[Figure]:
    """10 user and 10 assistant messages, 5 tool calls, system, developer, 3 tools: a meter that knows none of them."""
    messages, tools = _small_session(), [_tool(name) for name in ("read_file", "grep", "run")]
    for label, fast in _COUNTERS:
        counter_for("o200k_base", fast)
        seconds = best_of(9, partial(_cold_estimate, messages, tools, fast))
        yield Figure(f"first estimate, {label}", seconds * 1e3, "ms", 10)


def bench_warm_estimate() -> Iterator[Figure]:
    """1,000 messages of 128k tokens, all known but one new message, against a recount of the same strings."""
    for label, make in _SESSIONS:
        meter, messages = Meter(_MODEL), make(1_000)
        tokens = meter.estimate(messages).total
        grown = ([*messages, {"role": "user", "content": f"and now number {n}"}] for n in count())
        warm = ratio(30, partial(_estimate_next, meter, grown), partial(_recount, messages))
        yield Figure(f"times faster, {label} ({tokens} tokens)", 1 / warm, "x", 60, at_least=True)


def bench_growth() -> Iterator[Figure]:
    """A warm estimate of 10,000 messages against one of 1,000."""
    for label, make in _SESSIONS:
        meter, few, many = Meter(_MODEL), make(1_000), make(10_000)
        meter.estimate(few)
        meter.estimate(many)
        growth = ratio(40, partial(meter.estimate, many), partial(meter.estimate, few))
        yield Figure(f"times the cost, {label}", growth, "x", 12)


def bench_cold_count() -> Iterator[Figure]:
    """500 KB that were never seen, in 250 messages, against plain tiktoken on the same strings."""
    messages = [{"role": "user", "content": _excerpt(n * 5, 2_000)} for n in range(250)]
    for (label, fast), limit in zip(_COUNTERS, (0.4, 1.15), strict=True):
        counter_for("o200k_base", fast)
        cost = ratio(15, partial(_cold_estimate, messages, None, fast), partial(_recount, messages))
        yield Figure(f"times the cost, {label}", cost, "x", limit)


def bench_import() -> Iterator[Figure]:
    """CPU time of an import in a fresh process."""
    for module in ("compact", "compact.tokens"):
        code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
        command = [sys.executable, "-c", code]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(5)]
        yield Figure(f"import {module}", min(float(run.stdout) for run in runs), "s", 0.15)


def bench_first_preflight() -> Iterator[Figure]:
    """CPU time of import, manager and first preflight in a fresh process, and of pydantic's import beside it."""
    runs = [(_cpu_of(_FIRST_PREFLIGHT), _cpu_of(_IMPORT), _cpu_of(_PYDANTIC)) for _ in range(7)]
    first, imported, pydantic = (min(column) for column in zip(*runs, strict=True))
    yield Figure("import and first preflight", first, "s", 0.35)
    yield Figure("times the import of pydantic: the manager's import", imported / pydantic, "x", 3)


_PYDANTIC = "import pydantic; pydantic.BaseModel; pydantic.TypeAdapter"
_IMPORT = "from compact import CompactConfig, CompactManager"
_FIRST_PREFLIGHT = f"""
{_IMPORT}
with CompactManager(CompactConfig(archive={{"adapter": "memory"}})) as manager:
    manager.preflight("s", [{{"role": "user", "content": "Where do I find the tests, and what don't they cover?"}}])
"""


def _cpu_of(code: str) -> float:
    timed = f"import time; began = time.process_time()\n{code}\nprint(time.process_time() - began)"
    done = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _cold_estimate(messages: list[dict[str, Any]], tools: Any, fast: bool) -> Estimate:
    return Meter(_MODEL, fast=fast).estimate(messages, tools)


def _estimate_next(meter: Meter, sessions: Iterator[list[dict[str, Any]]]) -> Estimate:
    return meter.estimate(next(sessions))


@cache
def _reference() -> tiktoken.Encoding:
    encoding = ENCODINGS["o200k_base"]
    return tiktoken.Encoding(
        encoding.name, pat_str=encoding.pattern, mergeable_ranks=encoding.ranks(), special_tokens={}
    )


def _recount(messages: list[dict[str, Any]]) -> int:
    encode, pieces = _reference().encode_ordinary, get("chat").pieces
    return sum(
        len(encode(piece)) for message in messages for piece in pieces(message) if isinstance(piece, str)
    )


@cache
def _corpus() -> str:
    """Real code and prose that ships with every Python."""
    library = Path(os.__file__).parent
    return "\n".join((library / f"{name}.py").read_text("utf-8") for name in _SOURCES)


def _excerpt(number: int, chars: int) -> str:
    start = number * 397 % (len(_corpus()) - chars)
    return f"{number}: {_corpus()[start : start + chars]}"


def _plain_session(count: int) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": _excerpt(n, 560)} for n in range(count)]


def _tool_session(count: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for n in range(count // 4):
        messages += [
            {"role": "user", "content": _excerpt(n, 200)},
            _call(n),
            {"role": "tool", "tool_call_id": f"call_{n}", "content": _excerpt(n + 7, 1500)},
            {"role": "assistant", "content": _excerpt(n + 13, 500)},
        ]
    return messages


def _small_session() -> list[dict[str, Any]]:
    messages = [
        {"role": "system", "content": _excerpt(1, 1500)},
        {"role": "developer", "content": _excerpt(2, 400)},
    ]
    for n in range(10):
        messages.append({"role": "user", "content": _excerpt(n + 3, 300)})
        if n % 2:
            messages += [
                _call(n),
                {"role": "tool", "tool_call_id": f"call_{n}", "content": _excerpt(n + 50, 2000)},
            ]
        messages.append({"role": "assistant", "content": _excerpt(n + 20, 500)})
    return messages


def _call(number: int) -> dict[str, Any]:
    arguments = json.dumps({"path": f"src/part_{number}.py", "lines": [number, number + 40]})
    function = {"name": "read_file", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


def _tool(name: str) -> dict[str, Any]:
    properties = {
        key: {"type": "string", "description": f"The {key} to use"} for key in ("path", "pattern", "limit")
    }
    parameters = {"type": "object", "properties": properties, "required": ["path"]}
    return {
        "type": "function",
        "function": {"name": name, "description": f"Use {name}.", "parameters": parameters},
    }


_SESSIONS = (("plain messages", _plain_session), ("with tool calls", _tool_session))
