"""Hostile sizes cost time and memory in proportion, and end in a legal request or in a clear error.

A full run measures every bomb in a process of its own, at two sizes, and prints a table: `python -m bench.attack bombs`.
"""

from __future__ import annotations

import gc
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from bench import REPO, Figure
from bench.attack import Attack, Trial
from compact import CompactConfig, CompactError, CompactManager
from compact.checks import violations
from compact.runtime.resolver import SessionResolver

Item = dict[str, Any]

WINDOW = 16_000
FULL_RUN = 100
"""From this size on, the bombs are measured too."""
MEGABYTES = (2, 8)
MAX_GROWTH = 2.0
"""Four times the size may take so many times four times the time: caches get colder, machines get busier."""
MAX_MEGABYTES = 60
"""Memory for each megabyte of a bomb."""
KEPT_SESSIONS = 8
SESSIONS_PER_TRY = 250
MAX_SESSION_GROWTH_MB = 8


def _repeat(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


def _drawn(alphabet: str) -> Callable[[Random, int], str]:
    return lambda draw, chars: _repeat("".join(draw.choices(alphabet, k=min(chars, 50_000))), chars)


def _rows(draw: Random, chars: int) -> str:
    """JSON rows, each with a password that has not been seen before."""
    row = '{{"user":"u{0}","password":"{1:016x}Zq"}}'
    return "[" + ",".join(row.format(n, draw.getrandbits(64)) for n in range(chars // 48 + 1)) + "]"


def _env(draw: Random, chars: int) -> str:
    return "\n".join(f"KEY_{n}_SECRET={draw.getrandbits(80):x}" for n in range(chars // 36 + 1))


def _table(draw: Random, chars: int) -> str:
    lines = (f"| u{n} | {draw.getrandbits(64):x} |" for n in range(chars // 30 + 1))
    return "| user | password |\n|---|---|\n" + "\n".join(lines)


TEXTS: dict[str, Callable[[Random, int], str]] = {
    "letters": _drawn("abcdefghijklmnopqrstuvwxyz"),
    "words": _drawn("abcdefghij     "),
    "hexadecimal": _drawn("0123456789abcdef"),
    "base64": _drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
    "marks": _drawn("=:;,.'\"`{}[]()<>|&%$#@!?-_*~^\\/"),
    "wide": _drawn("\uff41\uff42\uff10\u200b\u200d\ufeff\u00ad"),
    "accents": _drawn("e\u0301\u0302\u0303"),
    "emoji": _drawn("\U0001f600\U0001f468\u200d\U0001f469\ufe0f"),
    "han": _drawn("\u4e2d\u6587\u5b57"),
    "colours": _drawn("\x1b[31m0;K"),
    "one letter": lambda _, chars: "a" * chars,
    "blanks": lambda _, chars: " " * chars,
    "line ends": lambda _, chars: "\n" * chars,
    "brackets": lambda _, chars: "<" * chars + "\n\n",
    "joiners": lambda _, chars: "\u200c" * chars + "\n",
    "quotes": lambda _, chars: '"' * chars,
    "nested JSON": lambda _, chars: "[" * (chars // 2) + "]" * (chars // 2),
    "passwords": lambda _, chars: _repeat("password=", chars),
    "key headers": lambda _, chars: _repeat("-----BEGIN RSA PRIVATE KEY-----\n", chars),
    "addresses": lambda _, chars: _repeat("https://a:b@", chars),
    "own tags": lambda _, chars: _repeat("<COMPACT-SUMMARY v1>[compact: ", chars),
    "escapes": lambda _, chars: _repeat("\\u0022\\n%20", chars),
    "rows": _rows,
    "env": _env,
    "table": _table,
}


def as_result(text: str) -> list[Item]:
    """A tool's result."""
    return [
        {"role": "user", "content": "Look at the file."},
        _call("{}"),
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]


def as_arguments(text: str) -> list[Item]:
    """The arguments of a call that is answered."""
    result = {"role": "tool", "tool_call_id": "c1", "content": "done"}
    return [{"role": "user", "content": "Write it."}, _call(json.dumps({"text": text})), result]


def as_reply(text: str) -> list[Item]:
    """What the model said."""
    answer = {"role": "assistant", "content": text}
    return [{"role": "user", "content": "Say it."}, answer, {"role": "user", "content": "Go on."}]


def as_words(text: str) -> list[Item]:
    """What the user said last, which is never cut."""
    return [{"role": "user", "content": text}]


PLACES = (as_result, as_arguments, as_reply, as_words)


def _call(arguments: str) -> Item:
    function = {"name": "read", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def _nested(draw: Random, levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value] if draw.random() < 0.5 else {"a": value}
    return value


def _endless() -> Item:
    value: Item = {"type": "text", "text": "x"}
    value["more"] = [value, value]
    return value


def send(manager: CompactManager, session: str, messages: list[Item]) -> str:
    """Send messages through a session and say what came of it: `sent`, or what went wrong."""
    try:
        sent = manager.preflight(session, messages)
    except CompactError as problem:
        return problem.code
    except Exception as problem:
        return f"{type(problem).__name__}: {problem!s:.80}"
    if violations(sent):
        return "sent, but illegal"
    return "sent" if manager.estimate(sent).total <= WINDOW else "sent, but too large"


def _manager(root: str) -> CompactManager:
    return CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=WINDOW, archive={"root": root}))


def _trial(manager: CompactManager, session: str, messages: list[Item], what: str, *errors: str) -> Trial:
    """A trial that holds if the messages are sent, or refused with one of these errors."""
    outcome = send(manager, session, messages)
    return Trial(f"{what}: {outcome}", outcome in ("sent", *errors))


def explode(draw: Random, size: int) -> Iterator[Trial | Figure]:
    """Every text at every place: the request is legal and fits, or the user's own words are too long."""
    with tempfile.TemporaryDirectory() as root, _manager(root) as manager:
        for n in range(size):
            name, place = draw.choice(sorted(TEXTS)), draw.choice(PLACES)
            chars = int(10 ** draw.uniform(3, 5 if size >= FULL_RUN else 4.5))
            messages = place(TEXTS[name](draw, chars))
            errors = ("InsufficientBudget",) if place is as_words else ()
            yield _trial(
                manager, f"s{n}", messages, f"{name} {place.__name__}, {chars:,} characters", *errors
            )
    if size >= FULL_RUN:
        for name in TEXTS:
            yield from _measured(name)


def nest(draw: Random, size: int) -> Iterator[Trial]:
    """Data that is nested too deep or contains itself is refused by name, wherever it stands."""
    with tempfile.TemporaryDirectory() as root, _manager(root) as manager:
        for n in range(size):
            levels = int(10 ** draw.uniform(0, 4.5))
            value = _endless() if draw.random() < 0.2 else _nested(draw, levels)
            block = draw.choice(
                (
                    {"type": "tool_use", "id": "t", "name": "x", "input": {"a": value}},
                    {"type": "custom", "data": value},
                )
            )
            messages: list[Item] = [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [block], "notes": draw.choice((None, value))},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
            ]
            kept = messages if block["type"] == "tool_use" else messages[:2]
            for again in ("first", "second"):  # comparing with what was seen is another way to fall
                yield _trial(manager, f"n{n}", [*kept], f"{levels} levels, {again} call", "MessageError")


def crowd(draw: Random, size: int) -> Iterator[Trial]:
    """Very many messages, blocks or calls at once."""
    with tempfile.TemporaryDirectory() as root, _manager(root) as manager:
        for n in range(max(1, size // 10)):
            count = int(10 ** draw.uniform(2, 3.5 if size >= FULL_RUN else 2.7))
            calls = [
                {"id": f"c{k}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
                for k in range(count)
            ]
            crowds: dict[str, list[Item]] = {
                "messages": [
                    {"role": "user" if k % 2 == 0 else "assistant", "content": f"{k} about file_{k % 977}.py"}
                    for k in range(count + 1 - count % 2)
                ],
                "blocks": [
                    {"role": "user", "content": [{"type": "text", "text": f"line {k}"} for k in range(count)]}
                ],
                "calls": [
                    {"role": "user", "content": "Go."},
                    {"role": "assistant", "content": None, "tool_calls": calls},
                    *(
                        {"role": "tool", "tool_call_id": f"c{k}", "content": "word " * 20}
                        for k in range(count)
                    ),
                ],
            }
            for name, messages in crowds.items():
                yield _trial(manager, f"{name}{n}", messages, f"{count:,} {name}", "InsufficientBudget")


# --- time and memory


def _measured(name: str) -> Iterator[Figure]:
    """What one bomb costs as a tool's result, in a fresh process for each size."""
    costs = {size: _cost(name, size) for size in MEGABYTES}
    (small, small_cost), (large, large_cost) = costs.items()
    said = "; ".join(f"{size} MB: {cost['s']:.2f} s, {cost['mb']:.0f} MB" for size, cost in costs.items())
    growth = large_cost["s"] / max(small_cost["s"], 0.05) / (large / small)
    yield Figure(f"{name}: growth of time against size ({said})", growth, "x", MAX_GROWTH)
    yield Figure(f"{name}: memory per megabyte", large_cost["mb"] / large, "MB", MAX_MEGABYTES)


def _cost(name: str, megabytes: int) -> dict[str, float]:
    found: dict[str, float] = json.loads(_run_alone(name, str(megabytes)))
    return found


def _run_alone(*arguments: str) -> bytes:
    command = [sys.executable, "-m", "bench.attack.bombs", *arguments]
    return subprocess.run(command, cwd=REPO, stdout=subprocess.PIPE, check=True).stdout


def _measure(name: str, megabytes: int) -> dict[str, float]:
    messages = as_result(TEXTS[name](Random(1), megabytes * 1_000_000))
    with tempfile.TemporaryDirectory() as root, _manager(root) as manager:
        send(manager, "warm", [{"role": "user", "content": "hello"}])
        before, started = _resident_mb(), time.process_time()
        outcome = send(manager, "s", messages)
        assert outcome == "sent", outcome
        seconds = time.process_time() - started
    # The peak of making the bomb counts too, so this is rather too much.
    return {"s": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024 - before}


# --- sessions


def queue_up(draw: Random, size: int) -> Iterator[Trial | Figure]:
    """One manager serves one session after the other, each with a secret of its own."""
    with tempfile.TemporaryDirectory() as root:
        policy = {"sessions_in_memory": KEPT_SESSIONS}
        config = CompactConfig(model="gpt-4o", archive={"root": root}, policy=policy)
        with CompactManager(config) as manager:
            for n in range(size):
                outcome = send(manager, f"s{n}", _with_secret(draw))
                yield Trial(
                    f"session {n}: {outcome}", outcome == "sent" and len(manager.sessions) <= KEPT_SESSIONS
                )
    if size >= FULL_RUN:
        half, whole = json.loads(_run_alone("sessions", str(size * SESSIONS_PER_TRY)))
        label = f"memory of the second half of {size * SESSIONS_PER_TRY:,} sessions ({half:.0f} MB before)"
        yield Figure(label, whole - half, "MB", MAX_SESSION_GROWTH_MB)


def _with_secret(draw: Random) -> list[Item]:
    return as_result(f"DB_PASSWORD={draw.getrandbits(100):x}Zq\nhost=db{draw.getrandbits(32)}")


def _serve_sessions(count: int) -> tuple[float, float]:
    """Resident memory after half of the sessions and after all, in megabytes."""
    draw, found = Random(1), []
    with tempfile.TemporaryDirectory() as root, _manager(root) as manager:
        for n in range(count):
            messages = _with_secret(draw)
            send(manager, f"s{n}", messages)
            if n % 50 == 0:
                answer = {"role": "assistant", "content": "done " * 50}
                manager.manual_compact(f"s{n}", [*messages, answer, {"role": "user", "content": "next"}])
            if (n + 1) % (count // 2) == 0:
                found.append(_resident_mb())
            if n % 1_000 == 999:  # a session that has ended is kept on disk no longer than this
                for folder in Path(root).iterdir():
                    if folder.is_dir() and folder.name.startswith("s"):
                        shutil.rmtree(folder, ignore_errors=True)
    return found[0], found[-1]


def _resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1_048_576


# --- conversations


class _Counted(dict[str, Any]):
    """A message that counts how often somebody reads or compares one."""

    looks = 0

    def items(self) -> Any:
        _Counted.looks += 1
        return super().items()

    def __eq__(self, other: object) -> bool:
        _Counted.looks += 1
        return super().__eq__(other)

    __hash__ = None


def crowd_in(draw: Random, size: int) -> Iterator[Trial | Figure]:
    """Strangers send one manager lists that begin alike. Each waits for its own list only, not for those before it."""
    for _ in range(max(1, size // 10)):
        resolver, shared = SessionResolver(), draw.randint(20, 60)
        given = draw.choice((None, "thread"))
        head = [(draw.choice(("user", "assistant", "tool")), draw.choice("ab")) for _ in range(shared)]
        most = 0
        for n in range(draw.randint(20, 40)):
            end = draw.choice(("same", f"own {n}"))
            items = [_Counted(role=role, content=text) for role, text in [*head, ("user", end)]]
            more = draw.choice(([], [_Counted(role="assistant", content="yes")]))
            before = _Counted.looks
            resolver.resolve([*items, *more], given=given)
            most = max(most, _Counted.looks - before)
        yield Trial(f"{most} looks at lists of {shared + 2} messages", most <= 2 * (shared + 2))
    if size >= FULL_RUN:
        for shared in (100, 1_000):
            yield Figure(
                f"a call among 512 conversations that share {shared:,} messages", _wait(shared), "s", 0.5
            )


def _wait(shared: int) -> float:
    """Seconds that the newest of many equal lists takes."""
    resolver, seconds = SessionResolver(), 0.0
    for n in range(513):
        items: list[Item] = [{"role": ("user", "assistant")[m % 2], "content": "a"} for m in range(shared)]
        started = time.process_time()
        resolver.resolve([*items, {"role": "user", "content": str(n)}])
        seconds = time.process_time() - started
    return seconds


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "texts", "a text of any size and kind ends in a legal request that fits, or in a clear error", explode
    ),
    Attack("nesting", "deep and endless data is refused with a MessageError", nest),
    Attack(
        "crowds",
        "many messages, blocks or calls end in a legal request that fits, or in a clear error",
        crowd,
    ),
    Attack(
        "sessions", "a manager keeps no more sessions in memory than it may, whatever they taught", queue_up
    ),
    Attack(
        "conversations",
        "a list without an id costs as much as it is long, however many conversations begin like it",
        crowd_in,
    ),
)


if __name__ == "__main__":
    kind, amount = sys.argv[1], int(sys.argv[2])
    print(json.dumps(_serve_sessions(amount) if kind == "sessions" else _measure(kind, amount)))
