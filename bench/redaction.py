"""Redaction: its speed against the same rules in the standard library's `re`, what it finds, and what it masks by mistake."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

from bench import Figure, Skipped, best_of, recorded, transcripts
from bench.engine import real_session
from compact.redaction import Redactor, rules_from_config
from compact.redaction.redactor import merge_findings
from compact.redaction.rules.matches import Candidate, Find, Finding
from compact.redaction.scan import LocatorName, scanner_for

_SECRETS = ("gitleaks", "detect_secrets", "secretlint")
_PERSONAL = {"PHONE_NUMBER", "CREDIT_CARD", "US_SSN", "EMAIL_ADDRESS"}

HOSTILE = {
    "aaaa": "a",
    "equals": "=",
    "quotes": '"',
    "braces": "{",
    "brackets": "[",
    "hex": "deadbeef0123456789",
    "names": "password=",
    "open quotes": 'password="',
    "curly quotes": "password=“",
    "escapes": '\\"password\\":\\"',
    "key headers": "-----BEGIN PRIVATE KEY-----\n",
    "key lines": "q7Rt2VxZ9bLm4KsW8yNc1HdG6fPj3TuX5aEo0QiBvJwMrClYzSkUnFgDhOpA+/eI\n",
    "key ends": "q7Rt2VxZ9bLm4K\n-----END PRIVATE KEY-----\n",
    "prefixes": "ghp_sk-ant-AKIA",
    "disguises": "g\u200bh\x1b[0mｐ%5F\\u0041",
    "logins": "http://u:p@",
    "web tokens": "eyJhbGciOi.",
    "objects": '{"password":',
    "flags": "--password ",
    "commands": "mysql -p",
    "cookies": "cookie: a=b;",
    "prose": "password is ",
    "tables": "| password ",
    "ruled tables": "| password |\n|---|\n| x |\n",
    "lists": "user,password\nbob,x\n",
    "columns": "user  password\nbob   x\n",
    "pages": "<th>password</th>",
    "manifests": "kind: Secret\ndata:\n  a: b\n",
    "forms": 'fill("#password", "',
    "connections": "a=b;password=",
    "variables": 'variable "password" {\n',
    "numbers": "1-",
    "mails": "a.b@c.",
    "wide": "密码: ",
}
"""Texts that make a scanner work hard when they are repeated."""


def bench_speed() -> Iterator[Figure]:
    """500 KB of chat in one pass, against the same rules one by one with the standard library's `re`."""
    text = _chat(500_000)
    reference = best_of(1, partial(_one_by_one, text))
    yield Figure("the rules one by one with `re`", reference * 1e3, "ms", 60_000)
    wanted: tuple[tuple[str, LocatorName, float], ...] = (
        ("RE2 alone", "re2", 5),
        ("Hyperscan and RE2", "hyperscan", 20),
    )
    for label, locator, times in wanted:
        redactor = Redactor(locator=locator)
        ours = best_of(9, partial(_redact_next, redactor, _fresh([text])))
        yield Figure(f"{label}", ours * 1e3, "ms", 500)
        yield Figure(f"{label}, times faster", reference / ours, "x", times, at_least=True)


def bench_small_texts() -> Figure:
    """1,000 clean texts of 200 characters, one call each."""
    chat, redactor = _chat(200_000), Redactor()
    texts = [chat[at : at + 200] for at in range(0, 200_000, 200)]
    return Figure("per text", best_of(9, partial(_redact_next, redactor, _fresh(texts))) * 1e3, "us", 60)


def bench_again() -> Figure:
    """A real session of 136k tokens that was masked before, as in every later pass, against the first time."""
    messages, firsts = real_session(), []
    for _ in range(5):
        scanner_for.cache_clear()  # a scanner that has seen none of these texts
        fresh = Redactor().session()
        firsts.append(best_of(1, partial(fresh.redact_messages, messages)))
    again = best_of(5, partial(fresh.redact_messages, messages))
    return Figure("times the cost", again / min(firsts), "x", 0.5)


def _fresh(texts: list[str]) -> Iterator[list[str]]:
    """The same texts with a new number in front, so that no scanner remembers them as clean."""
    for n in count():
        yield [f"{n}{text}" for text in texts]


def _redact_next(redactor: Redactor, texts: Iterator[list[str]]) -> None:
    for text in next(texts):
        redactor.redact(text)


def bench_dense() -> Iterator[Figure]:
    """60,000 telling names in a row, with nothing, a letter or a password after each."""
    redactor = Redactor(locator="re2")
    for unit in ("password=", "password=x\n", "api_key: ", "password=hunter2 "):
        seconds = best_of(1, partial(redactor.redact, unit * 60_000))
        yield Figure(f"{unit!r}, {len(unit) * 60} KB", seconds, "s", 5)


def bench_hostile() -> Figure:
    """Four times the text of each hostile kind: how many times longer it takes. Quadratic work would take 16 times."""
    redactor = Redactor(["default", "pii"], locator="re2")
    growths = [_measure_growth(redactor, unit) for unit in HOSTILE.values()]
    return Figure(f"the worst of {len(growths)}", max(growths), "x", 9)


def _measure_growth(redactor: Redactor, unit: str) -> float:
    """The growth of processor time, which other programs on the machine disturb less than the clock."""
    best = []
    for chars in (8_000, 32_000):
        texts, times = _fresh([unit * (chars // len(unit))]), []
        for _ in range(9):
            started = process_time()
            _redact_next(redactor, texts)
            times.append(process_time() - started)
        best.append(min(times))
    return best[1] / max(best[0], 0.001)


def bench_found() -> Iterator[Figure]:
    """Other projects' labelled samples: a text counts when each value is masked for three quarters or more."""
    rows = [row for name in _SECRETS for row in _labelled(name)]
    for label, half in (("developed on", 0), ("held out", 1), ("all", None)):
        found, missed, mistaken, _ = _tally(
            Redactor(), (row for row in rows if half in (None, _half(row["rule"])))
        )
        if found:
            yield Figure(f"secrets, {label}: recall", found / (found + missed), "", 0.80, at_least=True)
            yield Figure(f"secrets, {label}: precision", found / (found + mistaken), "", 0.70, at_least=True)
    personal = [row for row in _labelled("pii") if set(row["types"]) <= _PERSONAL]
    for label, half in (("developed on", 0), ("held out", 1), ("all", None)):
        found, missed, mistaken, clean = _tally(
            Redactor("pii"), (row for row in personal if half in (None, _half(row["text"])))
        )
        if found:
            yield Figure(f"personal data, {label}: recall", found / (found + missed), "", 0.97, at_least=True)
            yield Figure(f"personal data, {label}: masked by mistake", mistaken / clean, "", 0.08)


def bench_spoiled() -> Iterator[Figure]:
    """Masks per megabyte in ordinary text: the source of the standard library, and agent sessions."""
    yield _masks("Python's own library", library())
    if not recorded():
        raise Skipped.for_want_of_data("the few bundled sessions say little")
    yield _masks("agent sessions", _sessions())


def _masks(label: str, texts: Iterable[str]) -> Figure:
    redactor = Redactor()
    size = count = 0
    for text in texts:
        size += len(text)
        count += redactor.scan(text).count
    return Figure(f"{label} ({size / 1e6:.0f} MB)", count / size * 1e6, "/MB", 2)


def _one_by_one(text: str) -> list[Finding]:
    found: list[Finding] = []
    for find, pattern in _patterns():
        for match in pattern.finditer(text):
            start, end = match.span("secret") if "secret" in pattern.groupindex else match.span()
            key = match.span("key") if "key" in pattern.groupindex else (start, start)
            finding = find(Candidate(text, start, end, match.end(), *key))
            if finding is not None:
                found.append(finding)
    return merge_findings(sorted(found))


@cache
def _patterns() -> list[tuple[Find, re.Pattern[str]]]:
    scanner = scanner_for(rules_from_config("default"), "re2")
    return [(detector.find, re.compile(detector.source)) for detector in scanner.detectors]


def _tally(redactor: Redactor, rows: Iterable[dict[str, Any]]) -> tuple[int, int, int, int]:
    found = missed = mistaken = clean = 0
    for row in rows:
        masked = redactor.redact(row["text"])
        if row["secrets"]:
            hit = _is_found(row["text"], masked, row["secrets"])
            found, missed = found + hit, missed + (not hit)
        else:
            clean, mistaken = clean + 1, mistaken + (masked != row["text"])
    return found, missed, mistaken, clean


def _is_found(text: str, masked: str, secrets: list[str]) -> bool:
    hidden = [True] * len(text)
    position = 0
    for piece in masked.split("<REDACTED>"):
        at = text.find(piece, position)
        if at < 0:  # rewritten JSON, in which only the whole value can be found
            return not any(secret and secret in masked for secret in secrets)
        hidden[at : at + len(piece)] = [False] * len(piece)
        position = at + len(piece)
    places = [match.span() for secret in secrets if secret for match in re.finditer(re.escape(secret), text)]
    return all(sum(hidden[start:end]) >= 0.75 * (end - start) for start, end in places)


def _half(name: str) -> int:
    """Put all samples of one detector, or for personal data of one text, into the same half."""
    family = name.removeprefix("neg:").split("/")[0]
    return int(hashlib.sha256(family.encode("utf-8", "replace")).hexdigest(), 16) % 2


def _labelled(name: str) -> list[dict[str, Any]]:
    files = recorded(f"redaction/{name}.jsonl.gz")
    if not files:
        raise Skipped.for_want_of_data(f"there is no redaction/{name}.jsonl.gz")
    return _lines(files[0])


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _sessions() -> Iterator[str]:
    for path in transcripts():
        for session in _lines(path):
            for message in session["messages"]:
                yield from _strings(message)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def library() -> Iterator[str]:
    """Yield the source of every module of Python's library: real text without a secret in it."""
    folder = Path(sys.modules["re"].__file__ or "").resolve().parents[1]
    for path in sorted(folder.glob("*.py")):
        yield path.read_text(encoding="utf-8", errors="replace")


@cache
def _chat(size: int) -> str:
    """Every tenth string of the sessions, until there is enough of it."""
    text = ""
    for step in (10, 3, 1):
        text = "\n".join(string for number, string in enumerate(_sessions()) if number % step == 0)
        if len(text) >= size:
            break
    return (text * (size // max(len(text), 1) + 1))[:size]
