"""Which pieces are chosen for their room: each word counts where it was said last, and once it stands, little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from compact.messages.excerpts import Piece
from compact.summaries.choosing import choose

VALUES = {"alpha_one": 0.5, "beta_two": 0.5, "gamma_three": 0.4, "delta_four": 0.4}


def chosen(
    texts: Sequence[str],
    *,
    room: float = 100.0,
    standing: Mapping[str, int] | None = None,
    worded: frozenset[int] = frozenset(),
    opening: float = 0.0,
) -> list[int]:
    """The order in which texts are taken, of which each is a text of its own and costs 8 tokens."""
    pieces = [Piece(text, owner, 1) for owner, text in enumerate(texts)]
    return choose(pieces, [8.0] * len(pieces), VALUES, standing or {}, room, opening, worded)


def test_the_newest_statement_wins_over_an_older_one() -> None:
    assert chosen(["set alpha_one = 4", "set alpha_one = 5"], room=8) == [1]
    assert chosen(["set alpha_one = 4", "set alpha_one = 5"]) == [1, 0], "the older one comes last"


def test_of_older_statements_somebodys_words_are_worth_more_once_the_newest_stands() -> None:
    texts = ["saw alpha_one", "saw beta_two", "saw alpha_one beta_two"]
    assert chosen(texts, worded=frozenset({0})) == [2, 0, 1]
    assert chosen(texts, worded=frozenset({1})) == [2, 1, 0]


@pytest.mark.parametrize(("stands_behind", "first"), [(0, 0), (2, 1)])
def test_a_word_counts_for_little_only_if_its_newest_statement_stands(stands_behind: int, first: int) -> None:
    """Of the first, 0.5 is left where an older statement stands: 0.35. It falls below 0.4 * 0.7 only if a newer one does."""
    standing = {"alpha_one": stands_behind, "gamma_three": 0}
    assert chosen(["use alpha_one", "use gamma_three"], standing=standing)[0] == first


def test_pieces_complement_each_other() -> None:
    texts = ["alpha_one beta_two now", "alpha_one beta_two too", "gamma_three only here"]
    assert chosen(texts, room=16) == [1, 2]


def test_the_same_text_is_taken_once() -> None:
    assert chosen(["run alpha_one", "run alpha_one", "other words"]) == [1, 2]


def test_neighbours_complete_a_short_piece() -> None:
    """A short piece is worth half without what stands beside it. What it lacks goes to its neighbours in the same text."""
    short, plain = "if alpha_one:", "go on as before"
    texts = [plain, short, plain + "!", "some other text"]
    together = [Piece(text, 0, line) for line, text in enumerate(texts[:3], start=1)]
    alone = Piece(texts[3] + " of about the same size", 1, 1)
    order = choose([*together, alone], [8.0] * 4, VALUES, {}, 100)
    assert order[0] == 1
    assert set(order[1:3]) == {0, 2}
    far = [Piece(text, 0, line * 10) for line, text in enumerate(texts[:3], start=1)]
    assert choose([*far, alone], [8.0] * 4, VALUES, {}, 100)[1] == 3, (
        "lines that are far away complete nothing"
    )


def test_a_part_of_a_long_line_is_completed_by_the_parts_beside_it() -> None:
    """Such a part has some 150 characters. What it says of a name often ends in the next one."""
    part = "alpha_one: 7, " + "some more words, " * 8
    texts = ["before", part, "behind"]
    parts = [Piece(text, 0, 1, number) for number, text in enumerate(texts)]
    alone = Piece("some other text of about the same size", 1, 1)
    order = choose([*parts, alone], [8.0] * 4, VALUES, {}, 100)
    assert order[0] == 1
    assert set(order[1:3]) == {0, 2}


def test_the_first_piece_of_a_text_pays_for_its_opening() -> None:
    texts = [f"line {n} alpha_one" for n in range(20)]
    assert len(chosen(texts, room=40, opening=12.0)) == 2, "each text costs 20 to open"
    together = [Piece(text, 0, line) for line, text in enumerate(texts)]
    assert len(choose(together, [8.0] * 20, VALUES, {}, 36, 12.0)) == 3, "20 for the first, 8 for each other"


def test_it_stops_where_the_room_ends() -> None:
    texts = [f"line {n} alpha_one" for n in range(20)]
    assert len(chosen(texts, room=40)) == 5
    assert chosen(texts, room=0) == []
    assert chosen([]) == []


@pytest.mark.parametrize("odd", ["\0", "a\0b alpha_one", "\ud800 alpha_one", "", "\u2192", "𝒳" * 50, "\n\n"])
def test_odd_texts_are_pieces_like_others(odd: str) -> None:
    order = chosen([odd, "see beta_two"])
    assert sorted(order) == [0, 1]
    assert order == chosen([odd, "see beta_two"])
