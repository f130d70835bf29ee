"""Checks that need to see around a match: they may refuse it, or mask more or less than the pattern found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from compact.redaction.fields.shapes import (
    has_digit,
    is_code,
    is_filler,
    is_placeholder,
    is_reference,
    looks_random,
    surprise,
)
from compact.redaction.rules.candidates import Bounds, Candidate, Judge
from compact.redaction.rules.validators import luhn

_LONGEST_KEY = 200_000
_PEM_LINE = re.compile(
    r"""[^\S\n]*(?:[>|+#*"'\d→:-]{0,12}[^\S\n]*)      # quoted, diffed or numbered lines
        (?:[A-Za-z0-9+/=\\]{16,}|[A-Za-z0-9+/]{1,}={1,2}|[\w-]+:[^\n]{0,120}|)
        [\\n"',;+]{0,6}[^\S\n]*(?:\n|\Z)""",
    re.VERBOSE,
)
_PEM_REST = re.compile(r"(?:[^\S\n]*[A-Za-z0-9+/=]{16,})+")
"""What is left of a key on a line that goes on with other words, or that was folded into one line."""
_BASE64 = re.compile(r"[A-Za-z0-9+/=]")
_NOWHERE = re.compile(r"(?i)localhost|127\.0\.0\.1|[\w.-]*example|host\b|hostname|server\b|[{$<\[]|db\b|your")
_NO_PASSWORDS = ("", "x-oauth-basic", "x-token-auth")
_PHONE_WORDS = re.compile(
    r"(?i)phone|\btel\b|telephone|mobile|\bcell|\bfax|call|\bdial|desk|office|number|reach|answering|"
    r"registered|whatsapp|\bsms\b|messages? to|contact|电话|手机"
)
_CARD_WORDS = re.compile(r"(?i)card|visa|master|amex|maestro|\bcc\b|credit|debit|payment")
_ISO_DATE = re.compile(
    r"(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./](?:0?[1-9]|[12]\d|3[01])\b|\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d\b"
)


def private_key(found: Candidate) -> Bounds:
    """From the BEGIN line to the END line; of a key that was cut off, every line that still looks like one."""
    text, body = found.text, found.match_end
    limit = min(len(text), body + _LONGEST_KEY)
    dashes = text.find("-----", body, limit)
    if dashes >= 0 and text.startswith("-----END", dashes):
        close = text.find("-----", dashes + 8, dashes + 80)
        end = close + 5 if close >= 0 else dashes + 8
        stop = dashes
    else:
        end = stop = _end_of_cut_key(text, body, dashes if dashes >= 0 else limit)
    if len(_BASE64.findall(text[body : min(stop, body + 400)])) < 20:
        return None
    return found.start, end


def _end_of_cut_key(text: str, start: int, limit: int) -> int:
    end = start
    while end < limit:
        line = _PEM_LINE.match(text, end, limit)
        if line is None or line.end() == end:
            break
        end = line.end()
    rest = _PEM_REST.match(text, end, limit)
    if rest is not None:
        end = rest.end()
    return start + len(text[start:end].rstrip())


def url_login(found: Candidate) -> Bounds:
    """The password of `scheme://user:password@host`; the user too where that is the secret."""
    user, _, password = found.value.partition(":")
    user_is_secret = looks_random(user, 20)
    just_user = (found.start, found.start + len(user))
    if password.lower() in _NO_PASSWORDS or is_reference(password) or is_filler(password):
        return just_user if user_is_secret else None
    if is_placeholder(password) and _NOWHERE.match(found.text, found.end + 1):
        return None
    return (found.start if user_is_secret else just_user[1] + 1), found.end


def user_and_password(found: Candidate) -> Bounds:
    """The password of `-u user:password`; of `-u token:` the token."""
    user, colon, password = found.value.partition(":")
    start = found.start + len(user) + 1 + len(password) - len(password.lstrip("\"'"))
    end = found.start + len(found.value.rstrip("\"'"))
    user, password = user.strip("\"'"), password.strip("\"'")
    if not colon or (user + password).isdigit() or is_reference(user) or is_reference(password):
        return None
    if not password:
        at = found.text.index(user, found.start)
        return (at, at + len(user)) if looks_random(user) else None
    if is_placeholder(password) or password == user or (surprise(password) == 0 and len(password) < 6):
        return None
    return start, end


def header_value(found: Candidate) -> Bounds:
    """The credential of an HTTP header, which may be anything that is not a template or a word."""
    value = found.value
    if is_reference(value) or is_placeholder(value) or is_code(value) or len(value) < 6:
        return None
    made_up = looks_random(value) or has_digit(value) or (len(value) >= 8 and surprise(value) > 0.3)
    return (found.start, found.end) if made_up else None


def cookies(found: Candidate) -> Bounds:
    """All of a Cookie header when one of its values was generated."""
    values = (part.partition("=")[2] for part in found.value.split(";"))
    return (found.start, found.end) if any(looks_random(value.strip(), 16) for value in values) else None


def command_password(found: Candidate) -> Bounds:
    """A password given to a command."""
    value = found.value.strip("\"'")
    return (
        None if is_reference(value) or is_placeholder(value) or len(value) < 3 else (found.start, found.end)
    )


def phone(found: Candidate) -> Bounds:
    """A number that people dial: by its plus sign or its grouping, or by a word about telephones near it."""
    value = found.value
    digits = sum(char.isdigit() for char in value)
    if not 7 <= digits <= 15 or _ISO_DATE.search(value) or _part_of_something_longer(found):
        return None
    if value.startswith("+") or re.fullmatch(r"(?:1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?:x\d+)?", value):
        return found.start, found.end
    if _PHONE_WORDS.search(found.before(48)) or _PHONE_WORDS.search(found.after(12)):
        return found.start, found.end
    groups = re.findall(r"\d+", value)
    grouped = len(groups) >= 3 and value[0] in "0(" and digits >= 9
    return (found.start, found.end) if grouped else None


def _part_of_something_longer(found: Candidate) -> bool:
    before, after = found.before(1), found.after(2)
    return (
        before.isalnum()
        or before in tuple("._/=#")
        or after[:1].isalnum()
        or re.match(r"[.:,]\d", after) is not None
    )


def payment_card(found: Candidate) -> Bounds:
    """A card number with its check digit; a short one only where the text speaks of cards."""
    digits = sum(char.isdigit() for char in found.value)
    if found.before(1).isalnum() or found.after(1).isalnum() or not luhn(found.value):
        return None
    if digits < 15 and not _CARD_WORDS.search(found.before(60)):
        return None
    return found.start, found.end


def near_word(pattern: str, chars: int = 40) -> Judge:
    """A judge that masks only where a word matching `pattern` stands just before."""
    words = re.compile(pattern)

    def judge(found: Candidate) -> Bounds:
        return (found.start, found.end) if words.search(found.before(chars)) else None

    return judge


JUDGES: Mapping[str, Judge] = {
    "private_key": private_key,
    "url_login": url_login,
    "user_and_password": user_and_password,
    "header_value": header_value,
    "cookies": cookies,
    "command_password": command_password,
    "phone": phone,
    "payment_card": payment_card,
    "near_social_security": near_word(r"(?i)ssn|social|security"),
    "near_licence": near_word(r"(?i)licen[cs]e|passport|driver|\bid card|identity card|national id|身份证"),
}
"""What a built-in rule can name as its validator besides the plain checks."""
