from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import splintr
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import examples
from support.tokens import NAMES, generated, published_encoding, transcripts

import compact.tokens.counter as module
from compact.errors import CompactError, MissingExtra
from compact.messages.dialects import get
from compact.tokens.counter import SplintrCounter, TiktokenCounter, counter_for, try_splintr, why_not_fast
from compact.tokens.encodings import ENCODINGS
from compact.tokens.selftest import SAMPLES, first_mismatch

MILLION = 1_000_000
BOTH = [pytest.param(True, id="splintr"), pytest.param(False, id="tiktoken")]


@pytest.mark.parametrize("name", NAMES)
def test_self_test_holds_the_counts_of_tiktoken(name: str) -> None:
    reference = published_encoding(name)
    assert first_mismatch(name, lambda text: len(reference.encode_ordinary(text))) == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fast", BOTH)
def test_counts_equal_tiktoken_on_generated_strings(name: str, fast: bool) -> None:
    reference = published_encoding(name).encode_ordinary
    count = counter_for(name, fast).count
    for text in generated(3000):
        assert count(text) == len(reference(text)), ascii(text)


@pytest.mark.parametrize("fast", BOTH)
@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=200))
@settings(max_examples=examples(200), deadline=None)
def test_counts_equal_tiktoken_on_any_string(text: str, fast: bool) -> None:
    assert counter_for("o200k_base", fast).count(text) == len(
        published_encoding("o200k_base").encode_ordinary(text)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_counters_equal_tiktoken_on_a_hundred_thousand_strings(name: str) -> None:
    reference = published_encoding(name).encode_ordinary
    plain, fast = counter_for(name, fast=False).count, counter_for(name, fast=True).count
    for text in generated(100_000, seed=2):
        assert plain(text) == fast(text) == len(reference(text)), ascii(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_counters_agree_on_every_string_of_the_shared_transcripts(name: str) -> None:
    plain, fast = counter_for(name, fast=False).count, counter_for(name, fast=True).count
    chat, seen = get("chat"), 0
    for messages in transcripts():
        for message in messages:
            for text in chat.pieces(message):
                assert isinstance(text, str)
                assert plain(text) == fast(text), ascii(text[:200])
                seen += 1
    assert seen > 10_000


@pytest.mark.parametrize("fast", BOTH)
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("<|endoftext|>" * 10, 61, id="special-tokens-are-text"),
        pytest.param("\ud800", 1, id="lone-surrogate"),
        pytest.param("\ud83d\ude00", 1, id="split-pair"),
        pytest.param("\x00" * 1000, 500, id="nul-bytes"),
        pytest.param("a" * MILLION, 125_000, id="a-million-letters"),
        pytest.param(" " * MILLION, 7_813, id="a-million-spaces"),
        pytest.param(" " * (MILLION + 1) + "x", 7_814, id="a-million-spaces-and-a-word"),
        pytest.param(" " * MILLION + "\n", 7_814, id="a-million-spaces-and-a-line-end"),
    ],
)
def test_hostile_text_is_counted_exactly(text: str, tokens: int, fast: bool) -> None:
    assert counter_for("o200k_base", fast).count(text) == tokens


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("one\n" + " " * 150_000 + "two" + "\t" * 120_000, id="two-runs"),
        pytest.param("!\n\n" + " \t" * 75_000 + "é", id="after-punctuation-and-line-ends"),
        pytest.param("x" + "\u3000" * 120_000 + "中", id="wide-blanks"),
        pytest.param(" " * 120_000 + "\n" + " " * 120_000 + "9", id="a-line-end-between"),
        pytest.param(" " * 99_999 + "a" + " " * 100_000 + "b", id="around-the-limit"),
        pytest.param("\x1c" * 120_000 + " .", id="what-only-python-calls-blank"),
    ],
)
def test_long_runs_of_blanks_are_counted_as_tiktoken_counts_them(name: str, text: str) -> None:
    """Below a million blanks tiktoken still answers, and our way around it must give its number."""
    assert counter_for(name, fast=False).count(text) == len(published_encoding(name).encode_ordinary(text))


def test_ten_megabytes_are_counted() -> None:
    text = "The quick brown fox, 123 jumps!\n\t  " * 290_000
    assert counter_for("o200k_base").count(text) == counter_for("o200k_base", fast=False).count(text)


def test_a_panic_inside_tiktoken_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without our way around it, tiktoken panics on such text, unless a newer version can count it."""
    counter = TiktokenCounter(ENCODINGS["o200k_base"])
    blanks = " " * 1_100_000
    exact = counter.count(blanks)
    monkeypatch.setattr(module, "LONG_RUN", 10 * len(blanks))
    assert exact <= counter.count(blanks) <= exact + 10


class PanicException(BaseException):
    """Named as Rust's bindings name theirs."""


def test_a_counter_that_always_panics_counts_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(_: tiktoken.Encoding, __: str) -> list[int]:
        raise PanicException

    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", panic)
    assert TiktokenCounter(ENCODINGS["cl100k_base"]).count("é" * 500) == 1000


class FakeSplintr:
    """Stands in for splintr's tokenizer: raises `problem`, if there is one, and counts how often its cache is cleared."""

    def __init__(self, problem: BaseException | None = None) -> None:
        self.problem = problem
        self.cleared = 0

    def from_bytes(self, *_: Any) -> FakeSplintr:
        return self

    def encode_flat(self, text: str) -> bytes:
        if self.problem is not None:
            raise self.problem
        return b"1234" * len(text.split())

    def clear_cache(self) -> None:
        self.cleared += 1


def test_splintr_that_panics_on_a_text_leaves_it_to_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splintr, "Tokenizer", FakeSplintr(PanicException()))
    assert SplintrCounter(ENCODINGS["cl100k_base"]).count("hello world") == 2


@pytest.mark.parametrize("kind", ["tiktoken", "splintr"])
def test_other_exceptions_are_not_swallowed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: tiktoken.Encoding, __: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", interrupt)
    monkeypatch.setattr(splintr, "Tokenizer", FakeSplintr(KeyboardInterrupt()))
    counter = (TiktokenCounter if kind == "tiktoken" else SplintrCounter)(ENCODINGS["cl100k_base"])
    with pytest.raises(KeyboardInterrupt):
        counter.count("x")


def test_splintr_empties_its_cache_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPLINTR_CACHE_CHARS", 1000)
    monkeypatch.setattr(splintr, "Tokenizer", fake := FakeSplintr())
    counter = SplintrCounter(ENCODINGS["cl100k_base"])
    for _ in range(101):
        counter.count("a word and more" * 7)
    assert fake.cleared == 10


@pytest.fixture
def unloaded() -> Iterator[None]:
    try_splintr.cache_clear()
    yield
    try_splintr.cache_clear()


@pytest.mark.usefixtures("unloaded")
def test_without_the_extra_tiktoken_counts_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "splintr", None)
    assert counter_for("o200k_base").name == "tiktoken"
    assert "extra 'fast'" in why_not_fast("o200k_base")
    with pytest.raises(MissingExtra, match=r"compact-context\[fast\]"):
        counter_for("o200k_base", fast=True)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("failure", ["differs", "panics", "raises"])
def test_splintr_that_fails_the_self_test_is_not_used(failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(_self: SplintrCounter, text: str) -> int:
        if failure == "panics":
            raise PanicException("boom")
        if failure == "raises":
            raise RuntimeError("boom")
        return 7

    monkeypatch.setattr(SplintrCounter, "count", count)
    assert counter_for("cl100k_base").name == "tiktoken"
    assert "splintr does not count cl100k_base as tiktoken does" in why_not_fast("cl100k_base")
    with pytest.raises(CompactError, match="does not count cl100k_base"):
        counter_for("cl100k_base", fast=True)


@pytest.mark.usefixtures("unloaded")
def test_an_interrupt_during_the_self_test_goes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_self: SplintrCounter, _text: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(SplintrCounter, "count", interrupt)
    with pytest.raises(KeyboardInterrupt):
        counter_for("cl100k_base")


@pytest.mark.usefixtures("unloaded")
def test_threads_share_one_counter_and_its_numbers() -> None:
    texts = list(generated(200, seed=5))
    expected = [counter_for("cl100k_base", fast=False).count(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        counters = list(pool.map(lambda _: counter_for("cl100k_base"), range(16)))
        assert len(set(map(id, counters))) == 1
        for found in pool.map(lambda _: [counters[0].count(text) for text in texts], range(8)):
            assert found == expected


def test_samples_cover_what_the_counters_could_differ_on() -> None:
    joined = "".join(text for text, _, _ in SAMPLES)
    for needle in ("<|endoftext|>", "\ud800", "你好", "😀", " " * 900, "\x00"):
        assert needle in joined


@pytest.mark.parametrize("fast", BOTH)
@pytest.mark.parametrize("name", NAMES)
@given(words=st.lists(st.text(st.sampled_from("ab9 \n\t!'sé中"), max_size=30), max_size=60))
@settings(max_examples=examples(100), deadline=None)
def test_parts_add_up_to_the_whole(name: str, fast: bool, words: list[str]) -> None:
    text = "".join(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_CHARS", 5)
        assert counter_for(name, fast).count(text) == len(published_encoding(name).encode_ordinary(text))


@pytest.mark.parametrize("fast", BOTH)
def test_a_piece_without_end_is_cut_and_costs_a_few_tokens_more(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, counter = "abcde" * 2_000, counter_for("o200k_base", fast)
    exact = counter.count(text)
    monkeypatch.setattr(module, "PART_CHARS", 500)
    monkeypatch.setattr(module, "MAX_PART_CHARS", 1_000)
    assert exact <= counter.count(text) <= exact + 20
