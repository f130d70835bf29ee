"""Checks that see the text around a match. They may refuse it, or mask more or less than the pattern matched."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

from compact.redaction.rules.edges import end_of_run, is_glued, run_before
from compact.redaction.rules.key_files import key_end, key_lines, key_start, private_key
from compact.redaction.rules.matches import Bounds, Candidate, Judge
from compact.redaction.rules.validators import luhn
from compact.redaction.rules.validators import token as is_token
from compact.redaction.shapes import (
    has_digit,
    is_code,
    is_filler,
    is_generated,
    is_generic_type,
    is_name_of_variable,
    is_path,
    is_placeholder,
    is_plain_reference,
    is_reference,
    looks_random,
    surprise,
)
from compact.redaction.source_code import (
    closes_string,
    is_call,
    is_expression,
    is_first_word,
    is_near_source,
    is_sample,
    is_sentence,
    is_source,
    repeats_name,
)
from compact.redaction.ui_texts import is_format, is_name_of_text, is_ui_text, is_word_for_password

_HEAD = re.compile(r"(?:[A-Za-z0-9]{1,12}[-_.$~:=]){0,2}")
_PLAIN_HEAD = re.compile(r"[A-Za-z0-9]{13}")
"""How a token starts whose prefix can occur in base64."""
_PUBLIC = re.compile(r"(?:pk|pub|public|publishable)_\Z")
_REPEATED = re.compile(r"(.)\1+")
_SHORTEST_BODY = 12
_BODY_SAMPLE = 400
_WORDS_SURPRISE = 0.19
_RANDOM_SURPRISE = 0.24
"""Of the bodies of real tokens, one in a hundred thousand is below the first number. Names are below the second."""
_COUNTED = re.compile(r"(?:sk-)?12345?6?\Z")
"""What examples have for a key."""
_EXAMPLE_HOST = re.compile(
    r"(?i)localhost|127\.0\.0\.1|[\w.-]*example|host\b|hostname|server\b|[{$<\[]|db\b|your"
)
_QUOTES = "\"'`"
_LONGEST_NAME = 120
_OPERATOR_CHARACTERS = " \t\r\n:="
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_ENDS_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_LONGEST_QUOTED = 4_096
_BEHIND_A_VALUE = frozenset(",;:)]}>&|<\\.")
_ENDING = re.compile(r"(?:[,;]|\\[nrt]|\x1b\[[\d;]{0,12}m)+\Z")
_LONGEST_ENDING = 40
_MOST_CLOSERS = 8
_OPENERS = {")": "(", "]": "[", "}": "{"}
_OPENS_A_STRUCTURE = re.compile(r"[({\[]+|[|>][-+]?\d?")
_SESSION = re.compile(r"(?i)sess|sid\Z|token|auth|jwt")
_STATEMENT = re.compile(r":\Z|\A[A-Za-z_][\w.-]*[=:]")
_ASSIGNED = re.compile(r"[ \t]*=(?!=)")
_HEX = re.compile(r"[0-9a-f]{8,64}\Z")
_PARAMETER = re.compile(r"\$\d{1,2}[,;)]{0,3}\Z")
_SQL = re.compile(r"(?i)\b(?:select|update|insert|set|where|and|values)\b")
_CASE = re.compile(r"(?:\A|\n)[ \t]*case[ \t]+[\w.:]{0,60}\Z")
_CLOSING_TAG = re.compile(r"</[A-Za-z]")
_PORT = re.compile(r"\d{1,5}(?:[/?#]|\Z)")
_STORED_VALUE = re.compile(r"\s[\w.-]+=((?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"])+)")
_NO_PASSWORDS = ("", "x-oauth-basic", "x-token-auth")
_PHONE_WORDS = re.compile(
    r"(?i)phone|\btel\b|telephone|mobile|\bcell|\bfax|call|\bdial|desk|office|number|reach|answering|"
    r"registered|whatsapp|\bsms\b|messages? to|contact|电话|手机"
)
_PHONE_ASSIGNED = re.compile(rf"(?i)(?:{_PHONE_WORDS.pattern.removeprefix('(?i)')})[\w.-]*=\Z")
_GROUPED_PHONE = re.compile(r"(?:1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?:x\d+)?")
_CARD_WORDS = re.compile(r"(?i)card|visa|master|amex|maestro|\bcc\b|credit|debit|payment")
_ISO_DATE = re.compile(
    r"(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./](?:0?[1-9]|[12]\d|3[01])\b|\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d\b"
)


def token(found: Candidate) -> Bounds:
    """Mask a token of a known format and whatever is glued to its end.

    Not masked are stand-ins (`ghp_xxxxxxxx`), parts of names, and encoded data, in which any prefix occurs.
    """
    text, start, value = found.text, found.start, found.value
    if not is_token(value) or (_PLAIN_HEAD.match(value) and looks_random(run_before(text, start))):
        return None
    if is_glued(text, start) and _reads_like_words(value, _WORDS_SURPRISE):
        return None
    return start, end_of_run(text, found.end)


def random_token(found: Candidate) -> Bounds:
    """Like `token`, for a prefix that ordinary names and public keys (`pk_live_...`) have too."""
    is_public = _PUBLIC.search(found.text, max(0, found.start - 12), found.start) is not None
    return None if is_public or _reads_like_words(found.value, _RANDOM_SURPRISE) else token(found)


def _reads_like_words(value: str, least_surprise: float) -> bool:
    head = _HEAD.match(value, 0, max(0, len(value) - _SHORTEST_BODY))
    body = _REPEATED.sub(r"\1", value[head.end() if head else 0 :][:_BODY_SAMPLE])
    return len(body) >= _SHORTEST_BODY and surprise(body) < least_surprise


def any_value(found: Candidate) -> Bounds:
    """Mask whatever follows the name, up to the next blank, or inside its quotes.

    Punctuation with more behind it on the line is the rest of an operator (`password == x`) or opens a structure. An
    expression in source code and the first word of a sentence are no values.
    """
    text, start, end = found.text, found.start, found.end
    if text[start] not in _QUOTES and not any(char.isalnum() for char in found.value):
        follows = text[end : end + 200].partition("\n")[0].strip()
        no_value = follows or _OPENS_A_STRUCTURE.fullmatch(found.value) or found.value.startswith("...")
        return None if no_value else found.bounds
    while text[start] in "=:>~":
        start += 1  # the rest of an operator: `:=`, `==`, `=>`
    quote = text[start]
    if quote not in _QUOTES:
        value = _without_closers(text[start:end])
        return None if _is_no_value(found, start, value) else (start, start + len(value))
    close = text.find(quote, start + 1, start + _LONGEST_QUOTED)
    if close < 0 or "\n" in text[start:close]:
        value_end = end
    else:
        ends_here = close + 1 >= end or text[close + 1] in _BEHIND_A_VALUE
        value_end = close if ends_here else max(close, end)
    name_start, operator = _name_before(found)
    value = text[start + 1 : value_end]
    name = text[name_start : found.start].rstrip(_OPERATOR_CHARACTERS)
    if _is_text_or_reference(name, value) or _is_hash_of_type(text, name_start, operator, value):
        return None
    if is_ui_text(value) or closes_string(text, name_start, quote) or is_name_of_variable(value):
        return None
    if repeats_name(name, value, quote):
        return None
    stands_in = text[name_start - 1 : name_start] == quote or is_sample(value)
    return None if stands_in and is_near_source(text, name_start, value_end) else (start + 1, value_end)


def _is_no_value(found: Candidate, start: int, value: str) -> bool:
    text, end = found.text, start + len(value)
    name_start, operator = _name_before(found)
    if (
        is_call(value)
        or is_first_word(text, start, end)
        or repeats_name(text[name_start : found.start - len(operator)], value, text[end : end + 1])
    ):
        return True
    name = text[name_start : found.start - len(operator)]
    if _is_text_or_reference(name, value) or is_generic_type(value):
        return True
    if _is_hash_of_type(text, name_start, operator, value) or _is_case(text, name_start, operator, value):
        return True
    if _PARAMETER.match(value) and _SQL.search(text, max(0, name_start - _LONGEST_NAME), name_start):
        return True
    if ":" in operator and value.isalpha() and _ASSIGNED.match(text, end):
        return True  # the type of a variable: `password: str = ...`
    if is_word_for_password(value) or is_format(value) or _CLOSING_TAG.match(value):
        return True
    if "\n" in operator and (_ENDS_LINE.match(text, end) is None or _STATEMENT.search(value)):
        return not looks_random(value)  # the next line is another statement
    is_shell = (
        operator == "=" and text[found.start - 4 : found.start - 1].isupper() and text[end : end + 1] != ","
    )
    if is_sample(value):
        return is_near_source(text, name_start, end)
    expression = not is_shell and (
        is_expression(value, operator.strip(" \t")) or is_sentence(text, start, end)
    )
    return expression and is_source(text, name_start, end)


def _is_text_or_reference(name: str, value: str) -> bool:
    """Whether a value is a word under the name of a text (`showPassword: Afficher`), or says where the value comes from."""
    return is_plain_reference(value) or (
        value.isalpha() and is_name_of_text(name) and not is_generated(value)
    )


def _is_hash_of_type(text: str, name_start: int, operator: str, value: str) -> bool:
    """Whether a name is that of a type and the value a hash: `AWS::ApiGateway::ApiKey: b899a0d240b53d9d`."""
    is_type = ":" in operator and text[max(0, name_start - 2) : name_start] == "::"
    return is_type and _HEX.match(value) is not None


def _is_case(text: str, name_start: int, operator: str, value: str) -> bool:
    """Whether a name is a branch of a switch: `case PASSWORD: do();`."""
    is_branch = operator[:1] == ":" and _CASE.search(text, max(0, name_start - _LONGEST_NAME), name_start)
    return bool(is_branch) and not looks_random(value)


def _name_before(found: Candidate) -> tuple[int, str]:
    """Where the name begins that a value belongs to, and the operator between them."""
    head = found.text[max(0, found.start - _LONGEST_NAME) : found.start]
    name = head.rstrip(_OPERATOR_CHARACTERS)
    return found.start - len(head) + len(name.rstrip(_NAME_CHARACTERS)), head[len(name) :]


def _without_closers(value: str) -> str:
    """A value without what ends the expression or the string that it stands in: `x)` in `f(password=x)`."""
    for _ in range(_MOST_CLOSERS):
        ending = _ENDING.search(value, max(0, len(value) - _LONGEST_ENDING))
        shorter = value[: ending.start()] if ending else value
        last = shorter[-1:]
        is_open = last in _OPENERS and shorter.count(last) > shorter.count(_OPENERS[last])
        if is_open or (last in tuple(_QUOTES) and shorter.count(last) % 2):
            shorter = shorter[:-1]
        if shorter == value:
            break
        value = shorter
    return value


def url_login(found: Candidate) -> Bounds:
    """Mask the password of `scheme://user:password@host`, and the user if that is a secret too."""
    user, _, password = found.value.partition(":")
    user_is_secret = looks_random(user, 20)
    user_end = found.start + len(user)
    if password.lower() in _NO_PASSWORDS or is_reference(password) or is_filler(password):
        return (found.start, user_end) if user_is_secret else None
    if is_placeholder(password) and _EXAMPLE_HOST.match(found.text, found.end + 1):
        return None
    if is_sample(password) and is_near_source(found.text, found.start, found.end):
        return None
    return (found.start if user_is_secret else user_end + 1), found.end


def odd_url_login(found: Candidate) -> Bounds:
    """Mask a password with marks in it that a URL should have encoded: `scheme://user:a/b?c@host`."""
    user, _, password = found.value.partition(":")
    is_path = _PORT.match(password) is not None or "://" in password
    if is_path or is_reference(password) or not any(mark in password for mark in "/\"'`<>"):
        return None
    if not (looks_random(password) if "/" in password else is_generated(password)):
        return None
    return found.start + len(user) + 1, found.end


def user_and_password(found: Candidate) -> Bounds:
    """Mask the password of `-u user:password`, or the token of `-u token:`."""
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
    """Mask the credential of an HTTP header unless it is a template or a word."""
    value = found.value
    if is_reference(value) or is_placeholder(value) or is_code(value) or len(value) < 6:
        return None
    if _COUNTED.match(value):
        return None
    if is_sample(value) and is_near_source(found.text, found.start, found.end):
        return None
    generated = looks_random(value) or has_digit(value) or (len(value) >= 8 and surprise(value) > 0.3)
    return found.bounds if generated else None


def cookies(found: Candidate) -> Bounds:
    """Mask all of a Cookie header if one of its values was generated."""
    pairs = (part.strip().partition("=") for part in found.value.split(";"))
    generated = any(looks_random(value, 8 if _SESSION.search(name) else 16) for name, _, value in pairs)
    return found.bounds if generated else None


def command_password(found: Candidate) -> Bounds:
    """Mask a password on a command line unless it is a reference or a placeholder."""
    value = found.value.strip("\"'")
    spared = is_reference(value) or is_placeholder(value) or len(value) < 3
    return None if spared else found.bounds


def generated_password(found: Candidate) -> Bounds:
    """Like `command_password`, where a word of a sentence or a usual setting may stand too: it must be generated."""
    value = found.value.strip("\"'")
    return command_password(found) if is_generated(value) and not is_path(value) else None


def stored_values(found: Candidate) -> Bounds:
    """Mask the generated values of `name=value name=value`, with whatever stands between them."""
    values = [part for part in _STORED_VALUE.finditer(found.value) if is_generated(part[1].strip("\"'"))]
    values = [part for part in values if not part[1].startswith("@") and not is_reference(part[1])]
    return (found.start + values[0].start(1), found.start + values[-1].end(1)) if values else None


def phone(found: Candidate) -> Bounds:
    """Mask a phone number, recognized by a plus sign, by its grouping, or by a word about phones near it."""
    value = found.value
    digits = sum(char.isdigit() for char in value)
    if not 7 <= digits <= 15 or _ISO_DATE.search(value) or _is_part_of_longer_number(found):
        return None
    grouped = value[0] in "0(" and digits >= 9 and len(re.findall(r"\d+", value)) >= 3
    is_phone = (
        grouped
        or value.startswith("+")
        or _GROUPED_PHONE.fullmatch(value)
        or _PHONE_WORDS.search(found.before(48))
        or _PHONE_WORDS.search(found.after(12))
    )
    return found.bounds if is_phone else None


def _is_part_of_longer_number(found: Candidate) -> bool:
    before, after = found.before(1), found.after(2)
    if _PHONE_ASSIGNED.search(found.before(48)):
        before = ""  # `phone=5551234567`, but not `?id=5551234567`
    return (
        before.isalnum()
        or before in tuple("._/=#")
        or after[:1].isalnum()
        or re.match(r"[.:,]\d", after) is not None
    )


def payment_card(found: Candidate) -> Bounds:
    """Mask a card number with a correct check digit; a short one only where the text speaks of cards."""
    digits = sum(char.isdigit() for char in found.value)
    if found.before(1).isalnum() or found.after(1).isalnum() or not luhn(found.value):
        return None
    return found.bounds if digits >= 15 or _CARD_WORDS.search(found.before(60)) else None


def near_word(pattern: str, chars: int = 40) -> Judge:
    """A judge that masks only if a word that matches `pattern` comes just before."""
    words = re.compile(pattern)
    return lambda found: found.bounds if words.search(found.before(chars)) else None


_OF_TOKENS = (token, random_token, private_key, key_start, key_end, key_lines)
_OF_SECRETS = (
    any_value,
    url_login,
    odd_url_login,
    user_and_password,
    header_value,
    cookies,
    command_password,
    generated_password,
    stored_values,
)
_OF_NUMBERS = (phone, payment_card)
JUDGES: Mapping[str, Judge] = {
    **{judge.__name__: judge for judge in (*_OF_TOKENS, *_OF_SECRETS, *_OF_NUMBERS)},
    "near_social_security": near_word(r"(?i)ssn|social|security"),
    "near_licence": near_word(r"(?i)licen[cs]e|passport|driver|\bid card|identity card|national id|身份证"),
}
"""The judges that a rule of scope `text` can name as its validator."""
SIGNS: Mapping[str, str] = {key_lines.__name__: "[A-Za-z0-9+/]{64}"}
"""For a judge whose rules have no keywords: what every text has in it that they match in."""
