"""The scanner: both locators give the same result, and work grows linearly with any text and any rules."""

from __future__ import annotations

import builtins
import re
import string
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.redaction import labelled, letters, matching
from support.strategies import examples

from bench.redaction import HOSTILE
from compact.errors import MissingExtra
from compact.redaction import MASK, Redactor, Rule, scan
from compact.redaction.fields import surroundings
from compact.redaction.fields.surroundings import FieldMemory
from compact.redaction.rules.detectors import Detector
from compact.redaction.rules.matches import Candidate, Finding
from compact.redaction.rules.sets import named_sets
from compact.redaction.scan import HyperscanLocator, Scanner

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
def test_locators_agree_on_any_text(text: str) -> None:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    assert Redactor(EVERYTHING, locator="hyperscan").redact(text) == PLAIN.redact(text)


def test_hyperscan_takes_over_once_there_is_enough_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    loaded: list[int] = []

    def load(detectors: Sequence[Detector], places: Sequence[int]) -> HyperscanLocator:
        loaded.append(len(places))
        return HyperscanLocator(detectors, places)

    monkeypatch.setattr(scan, "BYTES_BEFORE_HYPERSCAN", 1_000)
    monkeypatch.setattr(scan, "HyperscanLocator", load)
    scanner = Scanner(named_sets()["digits"] + named_sets()["pii"])
    before = scanner.find("a@b.example " * 10)
    assert not loaded
    scanner.find("x" * 2_000)
    assert len(loaded) == 1
    assert scanner.find("a@b.example " * 10) == before
    assert len(loaded) == 1


def test_without_the_extra_re2_does_all_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_hyperscan(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "hyperscan":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_hyperscan)
    monkeypatch.setattr(scan, "BYTES_BEFORE_HYPERSCAN", 10)
    scanner = Scanner(named_sets()["digits"])
    assert len(scanner.find("number 12345 in a longer text")) == 1
    assert len(scanner.find("number 12345 in a longer text")) == 1
    with pytest.raises(MissingExtra, match="fast"):
        Scanner(named_sets()["digits"], "hyperscan")


def test_pattern_that_hyperscan_refuses_is_left_to_re2() -> None:
    pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
    rules = [Rule("ungreedy", r"(?U)ab[0-9]+c", ("ab",)), Rule("plain", "beta[0-9]")]
    assert Redactor(rules, locator="hyperscan").redact("ab12c beta7") == f"{MASK} {MASK}"
    assert Redactor(rules[:1], locator="hyperscan").redact("ab12c beta7") == f"{MASK} beta7"


def test_locator_that_fails_is_replaced_by_the_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, detectors: Sequence[Detector], places: Sequence[int]) -> None:
            pass

        def locate(self, shadow: bytes) -> list[int]:
            raise RuntimeError("no scratch")

    monkeypatch.setattr(scan, "HyperscanLocator", Broken)
    scanner = Scanner(named_sets()["default"], "hyperscan")
    found = [finding.rule for finding in scanner.find("password=hunter2")]
    assert found == ["password", "plain-password"]


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
    monkeypatch.setattr(scan, "MAX_MATCHES", 5)
    assert Redactor([Rule("a", "a")]).redact("a b " * 5 + "a tail") == f"{MASK} b " * 4 + MASK


def _count_calls(call: Callable[[str], Any], text: str) -> int:
    """How many functions a call enters, Python's own included."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call(text)
    finally:
        sys.setprofile(before)
    return calls


def _measure_growth(call: Callable[[str], Any], unit: str, size: int) -> float:
    """How many times more functions are called for four times the text."""
    few, many = (_count_calls(call, unit * (chars // len(unit))) for chars in (size, size * 4))
    return many / few


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_work_grows_linearly_with_the_text(unit: str) -> None:
    """Quadratic work would call 16 times as many functions for 4 times the text. Benchmarks measure the time."""
    assert _measure_growth(PLAIN.redact, unit, 8_000) < 6


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){12}b", "(a|aa)+$"])
def test_hostile_pattern_of_a_user_does_not_hang(pattern: str) -> None:
    text = "a" * 400_000 + "!"
    assert Redactor([Rule("hostile", pattern)]).redact(text) == text


@pytest.mark.no_cover
def test_a_million_random_characters_do_not_hang() -> None:
    chance = string.ascii_letters + string.digits + " =:\"'{}[](),.;-_/\\\n"
    text = letters("million", 1_000_000, chance)
    assert PLAIN.scan(text).count > 0


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
    monkeypatch.setattr(surroundings, "FREE_MATCHES", len(text))
    assert PLAIN.scan(text) == remembering


def test_equal_surroundings_are_judged_once() -> None:
    judged: list[int] = []

    def find(candidate: Candidate) -> Finding | None:
        judged.append(candidate.start)
        return Finding(candidate.match_end, candidate.match_end + 1, "x", MASK)

    memory = FieldMemory(find)
    text = "password=x\n" * 60_000
    starts = range(0, len(text), 11)
    findings = [memory(Candidate(text, at, at + 9, at + 9, at, at + 8)) for at in starts]
    assert findings == [Finding(at + 9, at + 10, "x", MASK) for at in starts]
    assert len(judged) < 1_500


def test_memory_gives_up_if_nothing_repeats() -> None:
    judged: list[int] = []
    memory = FieldMemory(lambda candidate: judged.append(candidate.start))
    text = "".join(f"password={number}\n" for number in range(10_000))
    for match in re.finditer("password=", text):
        memory(Candidate(text, match.start(), match.end(), match.end(), match.start(), match.end() - 1))
    assert len(judged) == 10_000
