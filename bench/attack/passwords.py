"""Generated passwords are masked wherever they are stored or shown."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import NamedTuple

from bench.attack import Attack, Trial
from bench.attack.shown import DAILY
from bench.attack.surroundings import STORED, Place, name_of
from compact.redaction import Redactor

ALPHABETS: Mapping[str, str] = {
    "lower": string.ascii_lowercase,
    "lower and digits": string.ascii_lowercase + string.digits,
    "letters and digits": string.ascii_letters + string.digits,
    "symbols": string.ascii_letters + string.digits + string.punctuation,
    "hex": string.digits + "abcdef",
    "base64": string.ascii_letters + string.digits + "+/",
    "base64url": string.ascii_letters + string.digits + "-_",
}
SHORTEST, LONGEST = 8, 40
_VOWELS = "aeiou"
_CONSONANTS = "bcdfghjklmnprstvwz"
_SHOWN_RUN = 5
"""So many characters of a password in a row are a part of it, and no chance."""


class Case(NamedTuple):
    """A text with a password in it."""

    what: str
    text: str
    written: tuple[str, ...]
    """The password as it is written there, in one or several pieces."""


def draw(seed: Random, alphabet: str, shortest: int = SHORTEST) -> str:
    """A password as a manager of passwords makes it: with each kind of character that its alphabet has."""
    chars = ALPHABETS[alphabet]
    while True:
        length = seed.randint(shortest, LONGEST)
        made = "".join(seed.choice(chars) for _ in range(length))
        if alphabet == "base64":
            made = made[: length // 4 * 4 - 1] + "="
        kinds = (str.islower, str.isupper, str.isdigit)
        if all(any(map(kind, made)) for kind in kinds if any(map(kind, chars))):
            return made


def phrase(seed: Random) -> str:
    """Words that can be spoken, joined by a mark, with a number."""
    words = [
        "".join(seed.choice(_CONSONANTS) + seed.choice(_VOWELS) for _ in range(seed.randint(2, 3)))
        for _ in range(4)
    ]
    return seed.choice("-._").join([*words, str(seed.randint(10, 99))])


def is_left(masked: str, written: tuple[str, ...]) -> bool:
    """Whether a piece of the password is still there that is long enough to tell."""
    for piece in written:
        run = min(_SHOWN_RUN, len(piece))
        if any(piece[at : at + run] in masked for at in range(len(piece) - run + 1)):
            return True
    return False


def _attack(
    place: Place, draw_password: Callable[[Random], tuple[str, str]], seed: Random, size: int
) -> Iterator[Trial]:
    redactor = Redactor()
    for _ in range(size):
        kind, password = draw_password(seed)
        name = name_of(seed)
        text, written = place.write(seed, name, password)
        held = not is_left(redactor.redact(text), written)
        yield Trial(f"{place.name}: {kind}, {len(password)} characters, under {name}", held)


def _draw_any(seed: Random) -> tuple[str, str]:
    alphabet = seed.choice(sorted(ALPHABETS))
    return alphabet, draw(seed, alphabet)


def _draw_phrase(seed: Random) -> tuple[str, str]:
    return "phrase", phrase(seed)


ATTACKS: tuple[Attack, ...] = (
    *(
        Attack(
            place.name,
            f"a generated password in {place.said} is masked",
            partial(_attack, place, _draw_any),
            0.005,
        )
        for place in STORED
    ),
    *(
        Attack(
            place.name,
            f"a generated password in {place.said} is masked",
            partial(_attack, place, _draw_any),
            0.01,
        )
        for place in DAILY
    ),
    *(
        Attack(
            f"{place.name}-phrase",
            f"a phrase of words in {place.said} is masked",
            partial(_attack, place, _draw_phrase),
            0.01,
        )
        for place in STORED
    ),
)
