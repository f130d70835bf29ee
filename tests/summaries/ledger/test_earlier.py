"""What was said before on the same matter stands in brackets behind the later words, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from compact.engine.context import Row
from compact.engine.user_words import unseen
from compact.messages import Message, Text
from compact.summaries.ledger import Entry, Heard, extend, read, write

EXCERPTS = Path(__file__).resolve().parents[2] / "fixtures" / "ledger" / "excerpts.jsonl"


def said(*texts: str) -> tuple[Entry, ...]:
    """The entries of a person who says this, one thing behind the other."""
    opening = [Heard("m1", "user", "Please look at the project."), Heard("m2", "agent", "I looked at it.")]
    heard = [
        one
        for number, text in enumerate(texts)
        for one in (
            Heard(f"m{3 + 2 * number}", "user", text),
            Heard(f"m{4 + 2 * number}", "agent", "Understood."),
        )
    ]
    return tuple(entry for entry in extend((), [*opening, *heard]) if entry.said_in != "m1")


def standing(entries: Sequence[Entry]) -> list[tuple[str, str | None]]:
    return [(entry.text, entry.was) for entry in entries if entry.status == "stands"]


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ("We aim at 1800 words for the article.", "They shrank my slot, it's 1200 words max."),
        ("Mrs Holm signs every contract, so show her first.", "Mrs Holm has left, contracts may go straight out."),
        ("Paws off the shaders, Mika is painting them.", "Mika finished painting, the shaders are open again."),
        ("The sandbox has 4 gigabytes for the indexer.", "As of Monday the indexer gets 16 gigabytes."),
        ("Logs stay 30 days in loki.", "Compliance wants more, so loki retention is 90 days."),
        ("Budget for flowers: 3,500.", "The owner found more money, flowers can go to 5,200."),
        ("No phone calls to the caterer before 11, the chef sleeps in.", "We've switched caterers and the new lot start at six."),
        ("No mention of the mayor, we're not on speaking terms.", "The mayor signed up this morning, so name him as often as you like."),
        ("Screenshots are PNG.", "WebP for the screenshots, the wiki got too heavy."),
        ("Max batch size is 64.", "64 blows up the gpu, 32 is the ceiling."),
        ("The deadline is Thursday noon.", "Pulled forward, the office wants it Wednesday 5pm."),
        ("Bitte nichts an den Betriebsrat schicken.", "Der Betriebsrat ist informiert, ihr könnt ihm alles schicken."),
        ("O relatório é mensal.", "A diretoria quer o relatório toda semana."),
        ("会议在三楼开。", "会议改到五楼了。"),
    ],
)  # fmt: skip
def test_words_that_may_end_earlier_ones_take_them_into_brackets(before: str, later: str) -> None:
    entries = said(before, later)
    assert standing(entries) == [(later, before)]
    assert entries[0].status == "replaced"
    assert entries[0].replaced_by == entries[1].id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The coastal villages come last.", "The mountain villages are ours again."),
        ("The limit for uploads is 10 MB.", "The limit for images is 2 MB."),
        ("Our customers are in the EU so no data may leave Frankfurt.", "Logging goes to stderr, stdout is for data."),
        ("Never push to main.", "You may push to staging."),
        ("No more than 18 items per page, the old phones choke.", "The survey showed a screenshot of the page with 81 rows."),
        ("It's important that the old endpoints keep working.", "Whenever you add an endpoint, update the OpenAPI file."),
        ("It's order #W4776164.", "I don't have the correct order at hand right now."),
    ],
)  # fmt: skip
def test_words_about_another_thing_of_that_name_stand_beside(one: str, other: str) -> None:
    assert standing(said(one, other)) == [(one, None), (other, None)]


def test_sentences_about_something_else_go_on_alone() -> None:
    entries = said(
        "Our fiscal year starts in April. Logs stay 30 days in loki.",
        "Compliance wants more, so loki retention is 90 days.",
    )
    assert standing(entries) == [
        ("Our fiscal year starts in April.", None),
        ("Compliance wants more, so loki retention is 90 days.", "Logs stay 30 days in loki."),
    ]


def test_what_was_in_brackets_stands_again_if_the_next_change_is_about_something_else() -> None:
    entries = said(
        "Mika is painting the shaders.",
        "Mika finished, and the harbour level is open for the shaders again.",
        "The harbour level moves to chapter nine.",
    )
    assert ("Mika is painting the shaders.", None) in standing(entries)


def test_in_a_real_session_somebody_thinks_again() -> None:
    record = next(
        one
        for one in map(json.loads, EXCERPTS.read_text("utf-8").splitlines())
        if one["what"] == "said before"
    )
    heard = [
        Heard(one["said_in"], "user" if one["role"] == "user" else "agent", one["content"])
        for one in record["messages"]
    ]
    found = {entry.text: entry.was for entry in extend((), heard) if entry.status == "stands"}
    assert found[record["later"]] == record["before"]


def entry(text: str, was: str | None, answers: str | None = None) -> Entry:
    return Entry(id="e00000001", kind="fact", text=text, said_in="m7", was=was, answers=answers)


@pytest.mark.parametrize("was", ["It was 5.", 'He said (before: "no") twice', 'x (asked: "y")', "two\nlines"])
@pytest.mark.parametrize("answers", [None, "Which one?", 'Is it (before: "a")?'])
@pytest.mark.parametrize("text", ["It is 6.", 'My own (before: "z")', "a\nb"])
def test_what_was_said_before_is_read_back(text: str, answers: str | None, was: str) -> None:
    written = write([entry(text, was, answers)], 1_000, len, "/ledger.md")
    (found,) = read(written.text)
    assert (found.text, found.answers, found.was) == (text, answers, was)


def test_an_entry_is_shown_by_messages_only_if_both_of_its_words_stand() -> None:
    both = [entry("It is 6.", "It was 5.")]
    rows = [Row(Message("user", (Text(text),)), 5, n) for n, text in enumerate(("It was 5.", "It is 6."))]
    assert unseen(both, rows) == ()
    assert unseen(both, rows[1:]) == tuple(both)
    assert unseen(both, rows[:1]) == tuple(both)


def test_a_weak_tie_loses_nothing_when_the_later_words_end() -> None:
    first, second, third = (
        "Everything you give me needs two independent sources, a blog quoting a newspaper is one.",
        "We've dropped the Portuguese newspapers, so leave those out.",
        "A colleague reads Portuguese, so those newspapers are in again.",
    )
    shown = [
        text
        for entry in said(first, second, third)
        if entry.status == "stands"
        for text in (entry.text, entry.was)
    ]
    assert first in shown
    assert third in shown


def test_who_repeats_a_statement_keeps_what_stood_beside_it() -> None:
    before, later = "We aim at 1800 words for the article.", "They shrank my slot, it's 1200 words max."
    assert standing(said(before, later, later)) == [(later, before)]


def test_a_long_text_speaks_of_nothing_again() -> None:
    rule = "Reports carry the logo of the foundation."
    long = (
        "We have finished the plan, and "
        + ", ".join(f"part {n} is about matter {n}" for n in range(12))
        + " and the foundation."
    )
    assert (rule, None) in standing(said(rule, long))
