"""Values that match a pattern, made at run time so that the repository contains nothing that looks like a secret."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import string
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from support.data import SHARED

from compact.redaction import MASK

_PARSER: Any = import_module("re._parser")  # the standard library's parser of patterns has no public name
_WORD = string.ascii_letters + string.digits + "_"
_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_WORD": _WORD,
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": _WORD,
}


def dice(seed: str) -> random.Random:
    """A random generator that gives the same values in every run."""
    return random.Random(hashlib.sha256(seed.encode()).digest())


def letters(seed: str, count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Random characters. Equal seeds give equal characters."""
    chance = dice(seed)
    return "".join(chance.choice(alphabet) for _ in range(count))


def matching(pattern: str, seed: str) -> str:
    """A text that the pattern matches, with random characters and as few repetitions as possible."""
    return "".join(_write(_PARSER.parse(pattern), dice(seed)))


def _write(parsed: Sequence[Any], chance: random.Random) -> Iterator[str]:
    for operation, argument in parsed:
        kind = str(operation)
        if kind == "LITERAL":
            yield chr(argument)
        elif kind == "IN":
            yield chance.choice(_class(argument))
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, _, inner = argument
            for _ in range(least):
                yield from _write(inner, chance)
        elif kind == "SUBPATTERN":
            yield from _write(argument[3], chance)
        elif kind == "BRANCH":
            # The first alternative of an optional boundary is the start of the text, which needs no character.
            yield from _write(argument[1][0], chance)
        elif kind == "NOT_LITERAL":
            yield "z"
        elif kind != "AT":
            raise NotImplementedError(kind)


def _class(items: Sequence[Any]) -> str:
    if str(items[0][0]) == "NEGATE":
        excluded = _class(items[1:])
        return "".join(char for char in _WORD if char not in excluded)
    found = ""
    for operation, argument in items:
        kind = str(operation)
        if kind == "LITERAL":
            found += chr(argument)
        elif kind == "RANGE":
            found += "".join(map(chr, range(argument[0], argument[1] + 1)))
        else:
            found += _CATEGORIES[str(argument)]
    return found


def labelled(name: str) -> list[dict[str, Any]]:
    """The rows of one of the shared redaction files, or an empty list if the file is absent."""
    path = SHARED / "data" / "redaction" / f"{name}.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def is_found(text: str, masked: str, secrets: Sequence[str]) -> bool:
    """Whether at least three quarters of every labelled value are masked, wherever it occurs."""
    hidden = _hidden(text, masked)
    for secret in filter(None, secrets):
        if hidden is None or secret not in text:
            if secret in masked:
                return False
            continue
        for place in re.finditer(re.escape(secret), text):
            if sum(hidden[place.start() : place.end()]) < 0.75 * len(secret):
                return False
    return True


def _hidden(text: str, masked: str) -> list[bool] | None:
    """For each character of the text, whether it is masked. None if JSON was rewritten."""
    hidden = [True] * len(text)
    position = 0
    for piece in masked.split(MASK):
        at = text.find(piece, position)
        if at < 0:
            return None
        hidden[at : at + len(piece)] = [False] * len(piece)
        position = at + len(piece)
    return hidden
