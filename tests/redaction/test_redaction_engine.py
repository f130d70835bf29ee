"""The engine: both locators give the same result, and time grows with the text, whatever the text and the rules."""

from __future__ import annotations

import builtins
import re
import string
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from compact.redaction.rules.candidates import Candidate, Span
from compact.redaction.rules.locate import HyperscanLocator, KeywordLocator
from hypothesis import given, settings
from hypothesis import strategies as st
from support.redaction import labelled, letters, matching
from support.strategies import examples

from compact.errors import MissingExtra
from compact.redaction import MASK, Redactor, Rule
from compact.redaction import scan as engine_module
from compact.redaction.fields import surroundings
from compact.redaction.fields.surroundings import FieldMemory
from compact.redaction.rules.sets import named_sets
from compact.redaction.scan import Engine

EVERYTHING = ["default", "pii"]
PLAIN = Redactor(EVERYTHING, locator="re2")


@pytest.fixture(scope="module")
def fast() -> Redactor:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    return Redactor(EVERYTHING, locator="hyperscan")


def _samples() -> list[str]:
    rules = [rule for rule in named_sets()["default"] if rule.scope == "text"]
    made = [f"see {matching(rule.pattern, rule.id)} é there" for rule in rules]
    found = [
        row["text"] for name in ("gitleaks", "detect_secrets", "secretlint", "pii") for row in labelled(name)
    ]
    return made + found


@pytest.mark.no_cover
def test_hyperscan_and_re2_mask_the_same(fast: Redactor) -> None:
    samples = _samples()
    for text in [*samples, *("\n".join(samples[at : at + 40]) for at in range(0, len(samples), 40))]:
        assert fast.redact(text) == PLAIN.redact(text)


PIECES = st.sampled_from(
    ["password", "=", ": ", '"', "'", "token", "<REDACTED>", "\n", " ", "sk-", "ghp_", letters("p", 36), "é", "{", "}", "[",
     "]", ",", "://", "@", "-----BEGIN PRIVATE KEY-----", "eyJ", "123-45-6789", "\\", "--", "\ud800", "is "]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=6), max_size=24).map("".join))
@settings(max_examples=examples(300))
def test_a_second_pass_changes_nothing(text: str) -> None:
    once = PLAIN.redact(text)
    assert PLAIN.redact(once) == once


@given(st.lists(PIECES, max_size=20).map("".join))
@settings(max_examples=examples(200))
def test_locators_agree_on_anything(text: str) -> None:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    assert Redactor(EVERYTHING, locator="hyperscan").redact(text) == PLAIN.redact(text)


def test_hyperscan_takes_over_once_there_is_enough_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    monkeypatch.setattr(engine_module, "_BYTES_BEFORE_HYPERSCAN", 1_000)
    engine = Engine(named_sets()["digits"] + named_sets()["pii"])
    before = engine.find("a@b.example " * 10)
    assert isinstance(engine._locator_for(0), KeywordLocator)
    engine.find("x" * 2_000)
    assert isinstance(engine._locator_for(0), HyperscanLocator)
    assert engine.find("a@b.example " * 10) == before


def test_without_the_extra_re2_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_hyperscan(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "hyperscan":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_hyperscan)
    monkeypatch.setattr(engine_module, "_BYTES_BEFORE_HYPERSCAN", 10)
    engine = Engine(named_sets()["digits"])
    assert len(engine.find("number 12345 in a longer text")) == 1
    assert len(engine.find("number 12345 in a longer text")) == 1
    with pytest.raises(MissingExtra, match="fast"):
        Engine(named_sets()["digits"], "hyperscan")


def test_pattern_that_hyperscan_refuses_is_left_to_re2() -> None:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    rules = [Rule("ungreedy", r"(?U)ab[0-9]+c", ("ab",)), Rule("plain", "beta[0-9]")]
    assert Redactor(rules, locator="hyperscan").redact("ab12c beta7") == f"{MASK} {MASK}"
    assert Redactor(rules[:1], locator="hyperscan").redact("ab12c beta7") == f"{MASK} beta7"


def test_locator_that_fails_is_replaced_by_the_keywords() -> None:
    class Broken:
        def which(self, shadow: bytes) -> list[int]:
            raise RuntimeError("no scratch")

    engine = Engine(named_sets()["default"], "re2")
    engine._fast = Broken()
    assert [span.rule for span in engine.find("password=hunter2")] == ["password"]


def test_threads_share_one_redactor(fast: Redactor) -> None:
    text = "\n".join(_samples()[:60])
    expected = PLAIN.redact(text)
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(fast.redact(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_too_many_matches_mask_the_rest_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MAX_MATCHES", 5)
    assert Redactor([Rule("a", "a")]).redact("a b " * 5 + "a tail") == f"{MASK} b " * 4 + MASK


def _growth(call: Callable[[str], Any], unit: str, size: int) -> float:
    """How many times longer four times the text takes; the two are timed in turn, and the best of each counts.

    A busy machine can only make a run slower, so it is tried again until the growth looks linear, a few times at most.
    """
    texts = [unit * (chars // len(unit)) for chars in (size, size * 4)]
    best = [float("inf"), float("inf")]
    for rounds in range(12):
        if rounds >= 3 and best[1] / max(best[0], 0.001) < 6:
            break
        for number, text in enumerate(texts):
            started = time.process_time()
            call(text)
            best[number] = min(best[number], time.process_time() - started)
    return best[1] / max(best[0], 0.001)


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
    "logins": "http://u:p@",
    "web tokens": "eyJhbGciOi.",
    "objects": '{"password":',
    "flags": "--password ",
    "commands": "mysql -p",
    "cookies": "cookie: a=b;",
    "prose": "password is ",
    "tables": "| password ",
    "numbers": "1-",
    "mails": "a.b@c.",
    "wide": "密码: ",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Quadratic work would take sixteen times as long for four times the text."""
    assert _growth(PLAIN.redact, unit, 8_000) < 9


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){12}b", "(a|aa)+$"])
def test_hostile_user_pattern_is_linear(pattern: str) -> None:
    assert _growth(Redactor([Rule("hostile", pattern)]).redact, "a" * 99_999 + "!", 100_000) < 9


@pytest.mark.no_cover
def test_a_million_characters_of_anything_is_quick_enough_to_bear() -> None:
    chance = string.ascii_letters + string.digits + " =:\"'{}[](),.;-_/\\\n"
    text = letters("million", 1_000_000, chance)
    started = time.process_time()
    PLAIN.redact(text)
    assert time.process_time() - started < 30


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "password=x\n",
        "api_key: ",
        '"password": 12345, ',
        "--password abc9 ",
        "secret is ab12cd\n",
    ],
)
def test_dense_fields_are_masked_the_same_with_and_without_memory(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{unit * 1_500}password=hunter2\n{unit * 700}api_key='S3cr3t99' {unit}"
    remembering = PLAIN.scan(text)
    monkeypatch.setattr(surroundings, "_FREE_MATCHES", len(text))
    assert PLAIN.scan(text) == remembering


def test_equal_surroundings_are_judged_once() -> None:
    judged: list[int] = []

    def find(found: Candidate) -> Span | None:
        judged.append(found.start)
        return Span(found.match_end, found.match_end + 1, "x", MASK)

    memory = FieldMemory(find)
    text = "password=x\n" * 60_000
    starts = range(0, len(text), 11)
    spans = [memory(Candidate(text, at, at + 9, at + 9, at, at + 8)) for at in starts]
    assert spans == [Span(at + 9, at + 10, "x", MASK) for at in starts]
    assert len(judged) < 1_500


def test_memory_gives_up_where_nothing_repeats() -> None:
    memory = FieldMemory(lambda found: None)
    text = "".join(f"password={number}\n" for number in range(10_000))
    for match in re.finditer("password=", text):
        memory(Candidate(text, match.start(), match.end(), match.end(), match.start(), match.end() - 1))
    assert len(memory._known) <= 64
    assert memory._hits == 0
