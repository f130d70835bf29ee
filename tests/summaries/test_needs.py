"""How likely a word is to be needed again, on real sessions and on small ones."""

from __future__ import annotations

import pytest
from support.summaries import session

from compact.summaries import needs
from compact.summaries.needs import FEATURES, Spoken, features_of, read, shape_of, weigh
from compact.summaries.spoken import spoken_in

SESSIONS = ("entire-ce", "openhands", "tau-gem2")


@pytest.mark.parametrize("name", SESSIONS)
def test_every_value_is_a_probability_and_the_same_every_time(name: str) -> None:
    texts = list(spoken_in(session(name)))
    values = weigh(texts)
    assert values
    assert all(0.0 < value < 1.0 for value in values.values())
    assert values == weigh(texts)


@pytest.mark.parametrize("name", SESSIONS)
def test_every_candidate_has_all_features(name: str) -> None:
    reading = read(list(spoken_in(session(name))))
    for word, shape in needs.candidates(reading):
        assert shape in needs.PLAIN_SHAPES or len(features_of(word, reading)) == len(FEATURES)


def test_a_plain_word_that_stands_everywhere_has_no_value_and_a_name_has() -> None:
    values = weigh([Spoken("agent", f"always speaking of ledger_v7 in {n}") for n in range(30)])
    assert "always" not in values
    assert "ledger_v7" in values


def test_a_plain_word_is_worth_less_than_a_name_in_the_same_places() -> None:
    values = weigh(
        [Spoken("user", "set retention and ledger_v7"), Spoken("agent", "So retention and ledger_v7.")]
    )
    assert values["retention"] < values["ledger_v7"]


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("src/app/main.py", "path"),
        ("main.py", "file"),
        ("load_config", "snake"),
        ("loadConfig", "camel"),
        ("retention", "plain"),
    ],
)
def test_shapes(word: str, shape: str) -> None:
    assert shape_of(word) == shape


@pytest.mark.parametrize("odd", ["", "\0", "\ud800 a_b", "a\0b", "\u2192" * 9, "x_" * 5_000, "{" * 5_000])
def test_odd_texts_are_read_like_others(odd: str) -> None:
    values = weigh([Spoken("tool", odd), Spoken("user", odd), Spoken("agent", "see ledger_v7")])
    assert "ledger_v7" in values


# Of each feature: a session and where it is cut, a name that the agent writes behind the cut, and one that it does not write.
TOLD_APART = {
    "snake": ("trail-2cb6924caac9", 0.5, "find_on_page_ctrl_f", "origPolymer.apply"),
    "camel": ("trail-2cb6924caac9", 0.5, "10P", "origPolymer.apply"),
    "hash": ("tau-gpt41mini-retail-t51", 0.75, "#W4689314", "credit_card_3951670"),
    "number": ("openhands", 0.5, "TK_ID", "13.4"),
    "hyphen": ("trail-2cb6924caac9", 0.75, "find_on_page_ctrl_f", "High-Level"),
    "length": ("tau-gpt41-retail-t42", 0.75, "payment_method_id", "product_id"),
    "texts of the agent": ("entire-ce", 0.75, "exec.Command", "cmdErr"),
    "calls": ("trail-2cb6924caac9", 0.5, "inspect_file_as_text", "call_EZHIkO12kdYrWk42y2Yqkc0I"),
    "outputs": ("openhands", 0.5, "AST_NODE", "MyType"),
    "texts of the user": ("openhands", 0.5, "TK_ID", "filename.c"),
    "own texts": ("entire-5d", 0.5, "966e0df2", "CHANGELOG.md"),
    "texts": ("tau-gpt41mini-retail-t51", 0.75, "order_id", "6791"),
    "last in a call": ("entire-ce", 0.5, "./cmd/entire/cli/integration_test/", "env.GetCurrentBranch"),
    "last said by the user": ("openhands", 0.5, "AST_NODE", "i.e"),
    "in the newest words of the user": ("trail-2cb6924caac9", 0.5, "non-html", "t1LpSs66_eg"),
    "first said by the user": ("entire-ce", 0.5, "-respondDone", "read/write"),
    "age": ("entire-d6", 0.5, "transcript.Messages", "GetSupportedHooks"),
    "relative age": ("entire-4c", 0.5, "shadowBranch", "2025-12-10-xyz789"),
    "tokens since its use": ("entire-d6", 0.5, "human-readable", "e.g"),
    "relative place of its use": ("entire-d6", 0.75, "sub-packages", "50MB"),
    "shown since its use": ("entire-ce", 0.75, "in_progress", "env.T.Log"),
    "span": ("tau-gpt41mini-retail-t51", 0.75, "order_id", "sofia_li_9219"),
    "relative start": ("trail-2cb6924caac9", 0.5, "non-html", "call_34WkHIAD3WWJk482uOS9EZO2"),
    "words beside it in an output": ("tau-gpt41mini-retail-t51", 0.75, "order_id", "sofia_li_9219"),
    "words beside it in speech": ("trail-2cb6924caac9", 0.75, "new/updated", "web_search"),
    "is a field": ("tau-gpt41-retail-t42", 0.75, "payment_method_id", "get_product_details"),
    "is a field, never used": ("tau-gpt41-retail-t42", 0.75, "9779102705", "25ft"),
}
OF_WHOLE_SESSIONS = {"size of the session"}
"""All names of a session have the same, so it ranks names by what it does to the others."""


def before(name: str, cut: float) -> list[Spoken]:
    """What was said in a session up to a cut, which never parts a call from its result."""
    messages = session(name)
    place = int(len(messages) * cut)
    while messages[place].results:
        place += 1
    return list(spoken_in(messages[:place]))


def test_every_feature_has_its_session() -> None:
    assert {*TOLD_APART, *OF_WHOLE_SESSIONS} == set(FEATURES)


@pytest.mark.parametrize("feature", TOLD_APART)
def test_a_feature_tells_a_name_that_is_needed_from_one_that_is_not(feature: str) -> None:
    name, cut, needed, other = TOLD_APART[feature]
    reading, score, place = read(before(name, cut)), needs.load_trees(), FEATURES.index(feature)
    good, bad = features_of(needed, reading), features_of(other, reading)
    assert score(good) > score(bad)
    good[place] = bad[place]
    assert score(good) < score(bad)


def test_the_size_of_a_session_changes_what_its_names_are_worth() -> None:
    reading, score, place = (
        read(before("entire-ce", 0.5)),
        needs.load_trees(),
        FEATURES.index("size of the session"),
    )
    names = [word for word, shape in needs.candidates(reading) if shape not in needs.PLAIN_SHAPES]
    rows = [features_of(word, reading) for word in names]
    larger = [[*row[:place], 10 * row[place], *row[place + 1 :]] for row in rows]
    assert sorted(names, key=lambda name: score(rows[names.index(name)])) != sorted(
        names, key=lambda name: score(larger[names.index(name)])
    )
