"""Learning from what was found costs time and memory in proportion to the text, and nothing can push a secret out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from random import Random
from time import process_time

from bench import Figure
from bench.attack import Attack, Trial
from bench.attack.origins import teach, token
from compact.redaction import Redactor, SessionRedactor

ROWS = (1_000, 4_000, 16_000, 64_000)
GROWTH = 3.0
"""How many times the cost per byte may grow from the smallest to the largest text. Quadratic work would be 64 times."""
MEMORY_BYTES = 1_000_000
ENTRY_BYTES = 120
_FULL_RUN = 100


def rows_of(random: Random, count: int) -> tuple[str, list[str]]:
    """JSON with a password in each row, and the passwords."""
    values = [token(random, 20, 28) for _ in range(count)]
    rows = [
        {"id": n, "name": f"user {n}", "email": None, "password": value} for n, value in enumerate(values)
    ]
    return json.dumps(rows), values


def attack_rows(random: Random, size: int) -> Iterator[Trial | Figure]:
    """A password in every row of a result: what is learned of them, and what it costs."""
    for number in range(max(2, size // 10)):
        text, values = rows_of(random, random.randrange(20, 120))
        session = Redactor().session()
        masked = session.redact(text, "tool")
        yield Trial(f"{number}: {len(values)} rows", not any(value in masked for value in values))
        again = session.redact("\n".join(values), "tool")
        left = sum(value in again for value in values)
        yield Trial(f"{number}: {left} of {len(values)} stand again", left <= 0.05 * len(values))
    if size < _FULL_RUN:
        return
    costs: dict[int, float] = {}
    for count in ROWS:
        text, _ = rows_of(random, count)
        started = process_time()
        Redactor().session().redact(text, "tool")
        costs[count] = (process_time() - started) / len(text) * 1e6
        yield Figure(f"{count:,} rows, {len(text) / 1e3:,.0f} KB", costs[count], "us/B", 20)
    yield Figure("64,000 rows against 1,000, per byte", costs[ROWS[-1]] / costs[ROWS[0]], "x", GROWTH)


def attack_flood(random: Random, size: int) -> Iterator[Trial | Figure]:
    """Thousands of fake values after a real one, in results of any shape."""
    for number in range(max(1, size // 50)):
        session, real = Redactor().session(), [token(random) for _ in range(5)]
        for value in real:
            session.redact(f"password={value}", "tool")
        said = token(random)
        session.redact(f"api_key={said}", "person")
        floods = 12 if size >= _FULL_RUN else 1
        for _ in range(floods):
            session.redact(rows_of(random, 1_000)[0], "tool")
            session.redact("\n".join(teach(random, token(random, 12, 200)) for _ in range(100)), "model")
        held = session.redact(" ".join(real), "tool")
        yield Trial(f"{number}: what was learned first", not any(value in held for value in real))
        yield Trial(f"{number}: what a person said", said not in session.redact(f"so {said}", "person"))
        later = token(random)
        session.redact(f"password={later}", "person")
        yield Trial(f"{number}: what a person says later", later not in session.redact(f"so {later}", "tool"))
        assert isinstance(session, SessionRedactor)
        kept = sum(int(entry.split(":")[1]) + ENTRY_BYTES for entry in session.seal()["taught"].split())
        yield Trial(f"{number}: {kept:,} bytes are kept", kept <= MEMORY_BYTES)


def attack_threads(random: Random, size: int) -> Iterator[Trial]:
    """Several threads teach one session's redactor and read with it, as after a pass that outlived its timeout."""
    for number in range(max(1, size // 20)):
        session, problems = Redactor().session(), list[str]()
        values = [[token(random) for _ in range(40)] for _ in range(4)]
        texts = [[teach(random, value) + f"\npassword={value}" for value in own] for own in values]
        together = threading.Barrier(4)

        def work(
            own: list[str],
            others: list[str],
            session: Redactor = session,
            problems: list[str] = problems,
            together: threading.Barrier = together,
        ) -> None:
            together.wait()
            try:
                for text, other in zip(own, others, strict=True):
                    session.redact(text, "tool")
                    session.redact_messages([{"role": "tool", "tool_call_id": "c", "content": other}])
            except Exception as problem:
                problems.append(type(problem).__name__)

        threads = [
            threading.Thread(target=work, args=(texts[n], values[(n + 1) % 4])) for n in range(len(texts))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield Trial(f"{number}: {problems}", not problems)
        masked = session.redact(" ".join(value for own in values for value in own), "tool")
        left = sum(value in masked for own in values for value in own)
        yield Trial(f"{number}: {left} of 160 left", left <= 3)


def attack_return(random: Random, size: int) -> Iterator[Trial]:
    """A session is forgotten and comes back: what it masked it masks again, by what was sealed."""
    for number in range(size):
        first, values = Redactor().session(), [token(random) for _ in range(3)]
        notes = []
        for value in values:
            first.redact(teach(random, value) + f"\npassword={value}", "tool")
            assert isinstance(first, SessionRedactor)
            notes.append(first.seal())
        sealed = json.dumps(notes)
        yield Trial(f"{number}: no value lies in the notes", not any(value in sealed for value in values))
        back = Redactor().session()
        assert isinstance(back, SessionRedactor)
        back.adopt(notes)
        text = f"so {values[0]}, '{values[1]}' x={values[2]}&y"
        expected = first.redact(text, "tool")
        yield Trial(f"{number}: a result", back.redact(text, "tool") == expected)
        yield Trial(f"{number}: a person", back.redact(text, "person") == text)


ATTACKS: tuple[Attack, ...] = (
    Attack("rows", "Learning takes time in proportion to the text.", attack_rows),
    Attack("flood", "What was learned stays, and the memory is bounded.", attack_flood),
    Attack("threads", "Threads share a session's redactor without an error or a loss.", attack_threads),
    Attack("return", "A session that comes back masks what it masked before.", attack_return),
)
