"""Checks on what a pattern found. A rule names one; a match that it refuses is left alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from compact.redaction.fields.shapes import is_filler, is_placeholder, is_reference, looks_random

Check = Callable[[str], bool]


def _digits(value: str) -> str:
    return "".join(char for char in value if char.isdigit())


def token(value: str) -> bool:
    """Any body of a known token format that does not just stand for one (`ghp_xxxxxxxx`)."""
    return not is_filler(value) and len(set(value)) > 5 and not is_reference(value)


def random(value: str) -> bool:
    """Made by a generator: no words in it."""
    return looks_random(value)


def random_body(value: str) -> bool:
    """As `random`, for what follows the prefix that names the vendor."""
    body = value
    for mark in "-_.":
        head, found, rest = body.partition(mark)
        if found and len(head) <= 6 and len(rest) >= 8:
            body = rest
            break
    return looks_random(body)


def not_placeholder(value: str) -> bool:
    """Anything that a person would not write in place of a value."""
    return not is_placeholder(value) and not is_reference(value)


def luhn(value: str) -> bool:
    """The check digit of payment cards."""
    digits = _digits(value)
    if len(digits) < 12 or len(set(digits)) == 1:
        return False
    total = 0
    for place, char in enumerate(reversed(digits)):
        number = int(char) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def iban(value: str) -> bool:
    """The two check digits of a bank account."""
    compact = "".join(char for char in value if char.isalnum()).upper()
    if not 15 <= len(compact) <= 34:
        return False
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def us_ssn(value: str) -> bool:
    """An area, group and serial number that are not all zeros. Numbers never issued count too: people mistype."""
    digits = _digits(value)
    return len(digits) == 9 and digits[:3] != "000" and digits[3:5] != "00" and digits[5:] != "0000"


def cn_resident(value: str) -> bool:
    """The check character of a Chinese resident identity number."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(char) * weight for char, weight in zip(value[:17], weights, strict=True))
    return "10X98765432"[total % 11] == value[17].upper()


def es_dni(value: str) -> bool:
    """The letter of a Spanish DNI or NIE."""
    plain = value.upper().replace("-", "").replace(" ", "")
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def br_cpf(value: str) -> bool:
    """The two check digits of a Brazilian CPF."""
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
_VERHOEFF_TURN = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def in_aadhaar(value: str) -> bool:
    """The Verhoeff check digit of an Indian Aadhaar number."""
    digits = _digits(value)
    check = 0
    for place, char in enumerate(reversed(digits)):
        turned = int(_VERHOEFF_TURN[place % 8][int(char)])
        check = int(_VERHOEFF_PRODUCT[check][turned])
    return len(digits) == 12 and digits[0] > "1" and check == 0


def fr_nir(value: str) -> bool:
    """The control key of a French social security number."""
    plain = "".join(char for char in value if char.isalnum()).upper().replace("2A", "19").replace("2B", "18")
    return len(plain) == 15 and plain.isdigit() and 97 - int(plain[:13]) % 97 == int(plain[13:])


def jwt(value: str) -> bool:
    """Its first part is a JOSE header: base64url of a JSON object."""
    head = value.split(".", 1)[0]
    try:
        decoded: Any = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except ValueError:
        return False
    return isinstance(decoded, dict) and bool(decoded)


def encoded_jwt(value: str) -> bool:
    """A web token in base64 once more, as Kubernetes stores them."""
    whole = value.rstrip("=")[: len(value) // 4 * 4]
    try:
        decoded = base64.b64decode(
            whole + "=" * (-len(whole) % 4), altchars=b"-_" if "-" in whole or "_" in whole else None
        )
        return jwt(decoded.decode("ascii"))
    except ValueError:
        return False


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        token,
        random,
        random_body,
        not_placeholder,
        luhn,
        iban,
        us_ssn,
        cn_resident,
        es_dni,
        br_cpf,
        in_aadhaar,
        fr_nir,
        jwt,
        encoded_jwt,
    )
}
"""What a rule of scope `text` can name as its validator."""

KINDS = ("literal", "mixed", "random", "long_random")
"""What a rule of scope `key` can name besides: how sure a value must look under such a name (see `fields`)."""
