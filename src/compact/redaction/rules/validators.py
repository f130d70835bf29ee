"""Checks that see only the matched text. A rule names one as its validator; a match that it refuses is left alone."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from compact.redaction.shapes import (
    has_digit,
    is_made_up,
    is_path,
    is_placeholder,
    is_reference,
    looks_random,
    surprise,
)

Check = Callable[[str], bool]

_SAMPLE_CHARS = 4_000
_FILLED = re.compile(r"([xX*#.•·01_-])\1{4,}")
_SHORTEST_TOKEN = 12
_LONG_ENOUGH = 24
_SHORT_TOKEN = 20
_FEW, _ENOUGH = 3, 10
"""How many different characters a token has. Generated ones have more, even if they are written in hexadecimal digits."""
_DOCUMENTED = re.compile(r"A[KS]IA[A-Z0-9]{9}EXAMPLE\Z")
"""The key ids in Amazon's documentation."""


def _digits(value: str) -> str:
    return "".join(char for char in value if char.isdigit())


def token(value: str) -> bool:
    """A known token format, unless it is a stand-in (`ghp_xxxxxxxx`).

    A token with filler or an ellipsis behind it is a token all the same.
    """
    rest = _FILLED.sub("", value[:_SAMPLE_CHARS])
    shortest = min(max(_SHORTEST_TOKEN, len(value) // 3), _LONG_ENOUGH)
    different = _FEW if len(rest) <= _SHORT_TOKEN else min(_ENOUGH, len(rest) // 5)
    return len(rest) >= shortest and len(set(rest)) >= different and not _DOCUMENTED.match(value)


def random(value: str) -> bool:
    """Text made by a generator: it contains no words."""
    return looks_random(value)


def random_body(value: str) -> bool:
    """Like `random`, but for the part after the prefix that names the vendor."""
    for mark in "-_.":
        head, found, rest = value.partition(mark)
        if found and len(head) <= 6 and len(rest) >= 8:
            return looks_random(rest)
    return looks_random(value)


def not_placeholder(value: str) -> bool:
    """Anything except a placeholder or a reference, which people write in place of a value."""
    return not is_placeholder(value) and not is_reference(value)


def luhn(value: str) -> bool:
    """A payment card number with a correct check digit."""
    digits = _digits(value)
    if len(digits) < 12 or len(set(digits)) == 1:
        return False
    total = 0
    for place, char in enumerate(reversed(digits)):
        number = int(char) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def iban(value: str) -> bool:
    """An IBAN with correct check digits."""
    account = "".join(char for char in value if char.isalnum()).upper()
    if not 15 <= len(account) <= 34:
        return False
    moved = account[4:] + account[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def us_ssn(value: str) -> bool:
    """A social security number whose three parts are not all zeros. Numbers never issued count: people mistype."""
    digits = _digits(value)
    return len(digits) == 9 and digits[:3] != "000" and digits[3:5] != "00" and digits[5:] != "0000"


def cn_resident(value: str) -> bool:
    """A Chinese resident identity number with a correct check character."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(char) * weight for char, weight in zip(value[:17], weights, strict=True))
    return "10X98765432"[total % 11] == value[17].upper()


def es_dni(value: str) -> bool:
    """A Spanish DNI or NIE with a correct letter."""
    plain = value.upper().replace("-", "").replace(" ", "")
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def br_cpf(value: str) -> bool:
    """A Brazilian CPF with correct check digits."""
    digits = [int(char) for char in _digits(value)]
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    for count in (9, 10):
        total = sum(digits[place] * (count + 1 - place) for place in range(count))
        if (total * 10 % 11) % 10 != digits[count]:
            return False
    return True


_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PERMUTATION = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def in_aadhaar(value: str) -> bool:
    """An Indian Aadhaar number with a correct Verhoeff check digit."""
    digits = _digits(value)
    check = 0
    for place, char in enumerate(reversed(digits)):
        permuted = int(_VERHOEFF_PERMUTATION[place % 8][int(char)])
        check = int(_VERHOEFF_PRODUCT[check][permuted])
    return len(digits) == 12 and digits[0] > "1" and check == 0


def fr_nir(value: str) -> bool:
    """A French social security number with a correct control key."""
    plain = "".join(char for char in value if char.isalnum()).upper().replace("2A", "19").replace("2B", "18")
    return len(plain) == 15 and plain.isdigit() and 97 - int(plain[:13]) % 97 == int(plain[13:])


def jwt(value: str) -> bool:
    """A web token: its first part is a JOSE header, which is a JSON object in base64url."""
    head = value.split(".", 1)[0]
    try:
        decoded: Any = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except ValueError:
        return False
    return isinstance(decoded, dict) and bool(decoded)


def encoded_jwt(value: str) -> bool:
    """A web token encoded in base64 again, as Kubernetes stores it."""
    whole = value.rstrip("=")[: len(value) // 4 * 4]
    try:
        decoded = base64.b64decode(
            whole + "=" * (-len(whole) % 4), altchars=b"-_" if "-" in whole or "_" in whole else None
        )
        return jwt(decoded.decode("ascii"))
    except ValueError:
        return False


_OF_TEXT = (token, random, random_body, not_placeholder, jwt, encoded_jwt)
_OF_NUMBERS = (luhn, iban, us_ssn, cn_resident, es_dni, br_cpf, in_aadhaar, fr_nir)
CHECKS: Mapping[str, Check] = {check.__name__: check for check in (*_OF_TEXT, *_OF_NUMBERS)}
"""The checks that any rule can name as its validator."""


def _short_random(value: str) -> bool:
    # A token of six characters needs two digits; `#f8f8f2` is a colour.
    short = len(value) < 8 and value.isalnum() and sum(char.isdigit() for char in value) > 1
    return looks_random(value, shortest=6 if short else 8)


_HEX_ID = re.compile(r"(?i)\A(?:[a-z]+[-_:])?[0-9a-f]{16,}\Z|\A[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def _long_random(value: str) -> bool:
    if len(value) < 16 or not has_digit(value) or not looks_random(value):
        return False
    # Cache keys contain words: `linux-x64-f804a687...`.
    parts = re.split(r"[-_.:/]", value)
    return not any(len(part) >= 4 and part.isalpha() and surprise(part) < 0.3 for part in parts)


def _opaque(value: str) -> bool:
    # Hexadecimal digits are an id or a hash more often than a key.
    return _long_random(value) and _HEX_ID.search(value) is None and not is_path(value)


def _code_number(value: str) -> bool:
    return (value.isdigit() and 4 <= len(value) <= 10) or (not value.isdigit() and is_made_up(value))


KINDS: Mapping[str, Check] = {
    "literal": bool,
    "mixed": is_made_up,
    "random": _short_random,
    "long_random": _long_random,
    "opaque": _opaque,
    "code_number": _code_number,
}
"""What a value must look like, for a rule of scope `key`: under `password` any literal is masked, under `key` only what a
generator made."""
