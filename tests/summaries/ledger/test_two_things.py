"""Later words end earlier ones only where that is certain: of two things that are alike, both stand."""

from __future__ import annotations

import pytest

from compact.summaries.ledger import Entry, Heard, extend
from compact.summaries.ledger.subjects import differ_in_subject, differ_in_value, surely_differ_in_subject

RULE = "Never push to main."


def said(*texts: str, agent: str = "Understood.", worked: bool = False) -> tuple[Entry, ...]:
    """The entries of a person who says this, one thing behind the other. `worked`: tools ran before each answer of the agent."""
    heard = [Heard("m1", "user", "Please look at the project."), Heard("m2", "agent", "I looked at it.")]
    place = 3
    for text in texts:
        heard.append(Heard(f"m{place}", "user", text))
        place += 3 if worked else 1
        heard.append(Heard(f"m{place}", "agent", agent))
        place += 1
    return tuple(entry for entry in extend((), heard) if entry.said_in != "m1")


def standing(*texts: str) -> list[tuple[str, str | None]]:
    return [(entry.text, entry.was) for entry in said(*texts) if entry.status == "stands"]


TWO = [
    ("The timeout of the gateway is 30 seconds.", "The timeout of the worker is 300 seconds."),
    ("The timeout of the gateway is 30 seconds.", "The timeout of the worker is now 300 seconds."),
    ("Patient A gets 5 mg.", "Patient B gets 10 mg."),
    ("The price of the blue tent is 120 euros.", "The price of the red tent is 150 euros."),
    ("Max upload size is 10 MB.", "Max download size is 50 MB."),
    ("The ratio for group one is 0.3.", "The ratio for group two is 0.5."),
    ("Room 12 has 4 desks.", "Room 14 has 6 desks."),
    ("The first chapter has 3,000 words.", "The second chapter has 4,500 words."),
    ("El plazo del contrato norte es 30 días.", "El plazo del contrato sur es 60 días."),
    ("Die Frist für Antrag A ist der 3. Mai.", "Die Frist für Antrag B ist der 9. Mai."),
    ("La limite du compte bleu est de 300 euros.", "La limite du compte vert est de 900 euros."),
    ("Срок договора А — 30 дней.", "Срок договора Б — 60 дней."),
    ("Ship the red ones on Monday.", "Ship the blue ones on Tuesday."),
    ("不要联系供应商A。", "不要联系供应商B。"),
    ("不要联系供应商A。", "不要联系供应商B的法务。"),
    ("Never mention the settlement amount in emails.", "The settlement amount is 240,000 dollars."),
    ("Counsel for the other side is Dana Reyes.", "You can email Dana Reyes on weekdays only."),
    ("A社には連絡しないでください。", "B社には連絡しないでください。"),
    ("Round percentages to one decimal.", "Round money to two decimals."),
    (
        "Never send the weekly sales report of the northern region to the finance team.",
        "Never send the weekly sales report of the southern region to the finance team.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), TWO)
def test_of_two_things_both_stand(one: str, other: str) -> None:
    entries = said(one, other)
    shown = [
        text for entry in entries if entry.status == "stands" for text in (entry.text, entry.was) if text
    ]
    assert sorted(shown) == sorted([one, other])
    # A word of change keeps both in one entry.
    assert len(entries) == 2
    assert " now " in other or standing(one, other) == [(one, None), (other, None)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Deadline is March 3.", "Deadline moved to March 10."),
        ("The timeout of the gateway is 30 seconds.", "The timeout of the gateway is 60 seconds."),
        ("Patient A gets 5 mg.", "Patient A gets 10 mg."),
        ("The first chapter has 3,000 words.", "The first chapter has 4,500 words."),
        ("Die Frist für Antrag A ist der 3. Mai.", "Die Frist für Antrag A ist der 9. Mai."),
        ("My address is 12 Elm Street.", "My address is 99 Oak Avenue."),
        ("Use plan A.", "We use plan B instead."),
    ],
)  # fmt: skip
def test_another_value_of_the_same_thing_replaces(old: str, new: str) -> None:
    assert standing(old, new) == [(new, None)]


CHANGED = [
    ("Samples are stored at minus 20.", "New freezer runs at minus 80 and that's where samples go."),
    ("The interview panel has three people.", "Priya dropped out of the panel, which leaves two."),
    ("Spotkanie jest w sali 12.", "Sala 12 jest zajęta, spotkanie w sali 7."),
    ("Coverage must not fall under 80 percent.", "The board agreed on 70 percent coverage for this quarter."),
    ("Chapters have at most 3,000 words.", "My editor allows 4,000 words per chapter."),
    ("Der Bericht geht an Frau Lindner.", "Frau Lindner ist im Urlaub, der Bericht geht an Herrn Wolf."),
    ("Round to two decimals.", "The auditors want four decimals when you round."),
    # A fact that says of a rule's matter what the rule says.
    ("Don't mention prices in the mails.", "Prices may be mentioned, the embargo ended."),
    ("No comments in the generated SQL.", "The auditors like comments in the SQL, they come back."),
    ("the intern shouldn't get repo access", "the intern passed the security training, give her repo access"),
    ("Don't run the migration before I'm back from lunch.", "I'm back, migrate."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_what_is_perhaps_changed_does_not_stand_apart(old: str, new: str) -> None:
    assert standing(old, new) in ([(new, old)], [(new, None)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The north office opens at 8.", "The south office opens at 9."),
        ("Der Flug nach Rom kostet 200 Euro.", "Der Flug nach Wien kostet 150 Euro."),
        ("Phase one ends in March.", "Phase two ends in June."),
        ("Retention of invoices is 10 years.", "Retention of drafts is 2 years."),
        ("左边的按钮是红色。", "右边的按钮是蓝色。"),
    ],
)
def test_what_is_made_alike_stands_apart(one: str, other: str) -> None:
    assert standing(one, other) == [(one, None), (other, None)]


@pytest.mark.parametrize(
    ("new", "old", "is_sure"),
    [
        ("The red tent is 150 euros.", "The blue tent is 120 euros.", True),
        ("The tent that Ben wants now is 150 euros.", "The blue tent was 120 euros.", False),
        ("For tent B we were asked 90 euros.", "Tent A costs 80 euros.", True),
        ("Room 12 is full, lunch is in room 14.", "Lunch is in room 12.", False),
        ("The red tent is 150 euros.", "The red tent is 120 euros.", False),
    ],
)  # fmt: skip
def test_what_is_surely_another_thing(new: str, old: str, is_sure: bool) -> None:
    assert surely_differ_in_subject(new, old) is is_sure


@pytest.mark.parametrize(
    ("new", "old", "subject", "value"),
    [
        ("The red tent is 150 euros.", "The blue tent is 120 euros.", True, True),
        ("The red tent is 150 euros.", "The red tent is 120 euros.", False, True),
        ("The red tent is big.", "The blue tent is big.", True, False),
        ("The red tent was 150 euros.", "The red tent is 120 euros.", False, True),
        ("A tent is 150 euros.", "One tent is 150 euros.", False, False),
        ("Tent B leaks.", "Tent A leaks.", True, False),
        ("Dogs bark.", "The red tent is 120 euros.", False, False),
        ("", "", False, False),
    ],
)  # fmt: skip
def test_what_stands_in_the_place_of_what(new: str, old: str, subject: bool, value: bool) -> None:
    assert (differ_in_subject(new, old), differ_in_value(new, old)) == (subject, value)


# --- when a chain goes on


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        ("Round percentages to one decimal.", "Round money to two decimals.", "Round money to three decimals."),
        ("Give oven temperatures in Celsius.", "My oven only goes up to 230 degrees.", "My oven only goes up to 250 degrees."),
        ("Counsel for the other side is Dana Reyes.", "You can email Dana Reyes on weekdays only.", "You can email Dana Reyes any day."),
        ("Never mention the settlement amount in emails.", "The settlement amount is 240,000 dollars.", "The settlement amount is 260,000 dollars now."),
    ],
)  # fmt: skip
def test_a_change_ends_nothing_that_it_does_not_speak_of(first: str, second: str, third: str) -> None:
    shown = [text for pair in standing(first, second, third) for text in pair if text]
    assert sorted(shown) == sorted([first, third])


def test_a_withdrawal_ends_nothing_that_stood_in_brackets() -> None:
    first, second = "Give oven temperatures in Celsius.", "My oven only goes up to 230 degrees."
    assert standing(first, second, "Forget what I said about the 230 degrees.") == [(first, None)]


def test_what_a_change_surely_replaces_does_not_stand_again() -> None:
    assert standing(
        "Keep every answer under 100 words.", "150 words is fine too.", "Keep every answer under 200 words."
    ) == [("Keep every answer under 200 words.", "150 words is fine too.")]


# --- a value alone


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ("Keep every answer under 100 words.", "150 words is fine too."),
        ("The budget is 900 euros.", "We have 1,100 euros now."),
        ("Reports go to Anna.", "Reports go to Bert, Anna left the company."),
        ("Use staging only.", "Use prod."),
    ],
)
def test_words_that_do_not_say_what_they_are_about_keep_the_earlier_ones(before: str, later: str) -> None:
    assert standing(before, later) == [(later, before)]


def test_what_a_value_is_of_is_not_lost_when_it_changes_again() -> None:
    (shown,) = standing("The budget is 900 euros.", "We have 1,100 euros now.", "We have 1,300 euros now.")
    assert shown == ("We have 1,300 euros now.", "The budget is 900 euros. We have 1,100 euros now.")


def test_who_goes_back_to_the_only_one_says_so_last() -> None:
    (shown,) = standing("Use staging only.", "Use prod.", "Use staging only.")
    assert shown == ("Use staging only.", "Use prod.")


# --- "scratch that"

BARE = ("undo that", "forget it", "scratch that", "never mind", "cancel that", "No, undo that.", "算了。")


@pytest.mark.parametrize("bare", BARE)
def test_words_without_a_subject_take_back_what_was_said_right_before(bare: str) -> None:
    assert standing(RULE, bare) == []
    assert standing(f"{RULE} {bare}") == []


@pytest.mark.parametrize("bare", BARE)
def test_words_without_a_subject_take_back_nothing_else(bare: str) -> None:
    assert (RULE, None) in standing(RULE, "Add a footer to the page.", bare)
    for entries in (
        said(RULE, bare, worked=True),
        said(RULE, bare, agent="I removed the helper in util.py."),
        said(RULE, bare, agent="Hello. " * 100),
        extend(said(RULE), [Heard("v2 m2", "agent", "Understood."), Heard("v2 m3", "user", bare)]),
    ):
        assert [entry.text for entry in entries if entry.status == "stands"] == [RULE]


def test_of_several_things_none_is_taken_back_without_a_name() -> None:
    assert len(
        standing("Never push to main. Answer in French. I prefer short lines.", "scratch that")
    ) == len(standing("Never push to main. Answer in French. I prefer short lines."))


def test_what_is_named_besides_is_what_is_taken_back() -> None:
    assert (RULE, None) in standing(RULE, "forget it, try the other file")
    assert standing("Always run mypy before committing.", "scratch that, no mypy") != [
        ("Always run mypy before committing.", None)
    ]


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        ("Use the staging database.", "Forget about the staging bug, look at login."),
        ("Never delete the cache.", "Delete the cache rule from nginx.conf."),
        ("Never delete the logs.", "Delete the limit parameter from the logs query."),
        ("Keep the budget under 900 euros.", "Remove the budget rule from the CSS file."),
        ("Use pytest.", "Ignore that pytest warning."),
        ("No tables in the report.", "Forget the report for now, fix login first."),
        ("Benutze die Staging-Datenbank.", "Vergiss den Staging-Fehler, schau dir Login an."),
    ],
)
def test_a_thing_of_that_name_is_no_rule_of_that_name(rule: str, other: str) -> None:
    assert rule in [text for pair in standing(rule, other) for text in pair]


@pytest.mark.parametrize(
    ("rule", "back"),
    [
        (RULE, "Forget the rule about pushing to main."),
        ("Always run mypy before committing.", "Never mind the mypy thing."),
        ("Always answer in French.", "Forget about the French."),
        ("Never delete the cache.", "Forget the cache rule."),
        ("Log every query.", "Remove the logging requirement."),
        ("Keep answers under 100 words.", "Drop the word limit."),
        ("Nunca uses la API de producción.", "Olvida la regla sobre la API de producción."),
    ],
)
def test_what_names_a_rule_or_repeats_it_takes_it_back(rule: str, back: str) -> None:
    assert standing(rule, back) == []
