"""Tokens of known vendors, and the lines of key files, are masked in every surrounding."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from random import Random
from typing import Any
from urllib.parse import quote

from bench.attack import Attack, Trial
from compact.redaction import Redactor
from compact.redaction.rules.tables import Format, load_formats

_ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "digit": string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "alpha": string.ascii_letters,
    "alnum": _ALNUM,
    "lower": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "word": _ALNUM + "_",
    "url": _ALNUM + "_-",
    "b64": _ALNUM + "+/",
    "base32": string.ascii_uppercase + "234567",
    "base58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "bech32": "023456789acdefghjklmnpqrstuvwxyz",
}
"""What the words in the column `shapes` of the table of formats stand for."""
_PART = re.compile(r"<(\w+)(?: (\d+))?>")
_TELLTALE = 8
"""So many neighbouring characters of a secret must never be left."""
_SURROUNDINGS = 20

_CODES = (
    "\x1b[31m",
    "\x1b[1;32m",
    "\x1b[0m",
    "\x1b[0K",
    "\\x1b[31m",
    "\\u001b[0m",
    "\\033[1;31m",
    "\\e[0m",
    "\x1b[38;5;9m",
)
_ESCAPES = ("\\n", "\\t", "\\r\\n", "\\\\n", "\\x20", "\\u0022", "\\u003d", '\\"', "\\'", "%20", "%3D", "%22", "%253D", "%0A",
            "&quot;", "&#39;", "&lt;", "&#x3D;", "=3D", "=20", "+", "\\0", "\\012")  # fmt: skip
_MARKS = (" ", "  ", "\t", "\n", "\r\n", "=", ":", ": ", " = ", '"', "'", "`", "(", "[", "{", "<", ">", "|", ",", ";", "@", "#", "*", "/",
          "//", "?", "&", "!", "~", "“", "«", "→", "é", "密钥", "🔑", "\u00a0")  # fmt: skip
_ENDINGS = (
    *_MARKS,
    *_CODES,
    *_ESCAPES,
    "",
    ".",
    "...",
    ")",
    "]",
    "}",
    "</b>",
    '",',
    "';",
    "\x07",
    "…",
    "!!",
    "\\",
)
_WORDS = (
    "token",
    "TOKEN",
    "api",
    "KEY",
    "value",
    "user",
    "Bearer",
    "config",
    "x",
    "result",
    "Using",
    "old",
    "é",
)
_GLUE = ("TOKEN", "key", "x", "token1", "Bearer", "KEY2", "v")


def make_token(format_: Format, dice: Random) -> tuple[str, list[str]]:
    """A token as its vendor describes it, and the parts of it that were drawn."""
    drawn: list[str] = []

    def draw(part: re.Match[str]) -> str:
        if part[1] == "uuid":
            piece = "-".join(_letters(dice, "hex", count) for count in (8, 4, 4, 4, 12))
            piece = f"{piece[:14]}4{piece[15:]}"
        else:
            piece = _letters(dice, part[1], int(part[2]))
        drawn.append(piece)
        return piece

    prefix = dice.choice(format_.prefixes) if format_.prefixes else ""
    return prefix + _PART.sub(draw, dice.choice(format_.shapes)), drawn


def _letters(dice: Random, alphabet: str, count: int) -> str:
    return "".join(dice.choice(ALPHABETS[alphabet]) for _ in range(count))


def is_left(secrets: list[str], text: str) -> bool:
    """Whether a telling piece of a secret can still be read."""
    return any(
        secret[at : at + _TELLTALE] in text
        for secret in secrets
        for at in range(max(1, len(secret) - _TELLTALE + 1))
        if len(secret) >= _TELLTALE
    )


def _surround(token: str, dice: Random, *, glued: bool) -> str:
    """Put a token into a text: directly between two marks, and these into a line of some kind."""
    before = dice.choice((*_MARKS, *_CODES, *_ESCAPES, "_", "", *(_GLUE if glued else ())))
    if before and before[0] not in "_":
        before = dice.choice(("", dice.choice(_WORDS))) + before
    after = dice.choice((*_ENDINGS, *(("_", "_suffix", "-x") if glued else ())))
    return dice.choice(_FRAMES)(before + token + after, dice)


def _log(text: str, dice: Random) -> str:
    return f"{dice.randint(1, 9999):>6}\t2026-11-16T10:{dice.randint(10, 59)}:07Z INFO {text}\n{dice.randint(1, 99)}: done"


_FRAMES: tuple[Callable[[str, Random], str], ...] = (
    lambda text, _: text,
    lambda text, _: f"Please use {text} for this.",
    lambda text, _: f"export X={text}\n",
    lambda text, _: f"id,name,value\n1,a,{text}\n2,b,c\n",
    lambda text, _: f"a: 1\nb: {text}\nc:\n  - {text}\n",
    lambda text, _: f"[main]\nx = {text}\n",
    lambda text, _: repr(f"line one\n{text}\tend"),
    lambda text, _: repr({"x": [text, 1], "y": b"bytes"}),
    lambda text, _: f"const x = `{text}`;\n// end",
    lambda text, _: f'<a href="https://example.org/{text}?q=1" title="{escape(text)}">x</a>',
    lambda text, _: f"https://example.org/v1/{text}/items?x={text}&y=2",
    lambda text, _: f"GET /?a={text} HTTP/1.1\r\nHost: example.org\r\n",
    lambda text, _: f"| a | b |\n|---|---|\n| x | {text} |\n",
    lambda text, _: f"- old\n+ {text}\n@@ -1,2 +1,2 @@",
    lambda text, _: f"$x = '{text}'; Write-Host $x",
    lambda text, _: f"<key>x</key><string>{text}</string>",
    lambda text, _: f"curl -H 'X-Thing: {text}' https://example.org",
    lambda text, _: "Traceback:\n  File 'a.py', line 3\nValueError: bad " + text,
    lambda text, _: json.dumps({"out": text})[:-1],  # cut off, so that it is no JSON any more
    lambda text, _: f"data: {text}\n\ndata: [DONE]\n",
    lambda text, _: f"::set-output name=x::{text}",
    lambda text, _: f"<!-- {text} -->",
    lambda text, _: f"{text}{text}",
    _log,
)


@cache
def _redactor() -> Redactor:
    return Redactor()


def _as_text(text: str) -> str:
    return _redactor().redact(text)


def _as_tool_output(text: str) -> str:
    message = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": text}]}
    return str(_redactor().redact_message(message)["content"][0]["text"])


def _as_leaf(text: str) -> str:
    return _redactor().redact(json.dumps({"result": {"items": [1, text]}}, ensure_ascii=False))


def _as_nested_leaf(text: str) -> str:
    return _redactor().redact(
        json.dumps([{"arguments": json.dumps({"a": [text]}, ensure_ascii=False)}], ensure_ascii=False)
    )


def _as_data(text: str) -> str:
    masked: Any = _redactor().redact_value({"rows": [{"note": text}]})
    return str(masked["rows"][0]["note"])


_CHANNELS = (_as_text, _as_tool_output, _as_leaf, _as_nested_leaf, _as_data)


def _in_surroundings(dice: Random, size: int) -> Iterator[Trial]:
    formats = list(load_formats("vendors"))
    dice.shuffle(formats)
    for number in range(size):
        format_ = formats[number % len(formats)]
        glued = format_.start == format_.end == "anywhere" and format_.rule.validator in (None, "token")
        leaks = set()
        for _ in range(_SURROUNDINGS):
            token, drawn = make_token(format_, dice)
            text = _surround(token, dice, glued=glued)
            for channel in _CHANNELS:
                if is_left(drawn, channel(text)):
                    leaks.add(f"{channel.__name__.strip('_')} of {text.replace(token, '(token)')[:60]!r}")
        yield Trial(f"{format_.rule.id}: {', '.join(sorted(leaks)[:3])}", not leaks)


_INVISIBLE = (
    "\u200b\u200c\u200d\ufeff\u00ad\u2060\u200e\u202d\u2066\u034f\ufe0f\ufe01\u180e\U000e0101\U000e0041"
)
_ACCENTS = "\u0301\u0308\u0323\u035c\u20dd"


_PLAIN = _ALNUM + "_-"
_VEILS: dict[str, Callable[[str, Random], str]] = {
    "invisible": lambda char, dice: char + "".join(dice.choices(_INVISIBLE, k=dice.randint(1, 3))),
    "accents": lambda char, dice: char + dice.choice(_ACCENTS),
    "wide": lambda char, _: chr(ord(char) + 0xFEE0),
    "bold": lambda char, _: _bold(char) if char in _ALNUM else char,
    "colours": lambda char, dice: (
        char + dice.choice(("\x1b[01;31m\x1b[K", "\x1b[m\x1b[K", "\x1b[0m", "\\u001b[1m"))
    ),
    "escapes": lambda char, _: f"\\u{ord(char):04x}" if char in _PLAIN else char,
    "entities": lambda char, _: f"&#{ord(char)};" if char in _PLAIN else char,
    "percent": lambda char, _: f"%{ord(char):02X}" if char in _PLAIN else char,
}
"""Ways to write a character so that a reader, or a program that decodes it, still gets the same."""


def _veil(token: str, dice: Random) -> str:
    veil, share = dice.choice(list(_VEILS.values())), dice.choice((0.1, 0.3, 1.0))
    last = len(token) - 1  # nothing can be hidden behind the last character
    return "".join(
        veil(char, dice) if place != last and (place == 1 or dice.random() < share) else char
        for place, char in enumerate(token)
    )


def _bold(char: str) -> str:
    start, first = (0x1D400, "A") if char.isupper() else (0x1D41A, "a") if char.islower() else (0x1D7CE, "0")
    return chr(start + ord(char) - ord(first))


def _disguised(dice: Random, size: int) -> Iterator[Trial]:
    formats = [row for row in load_formats("vendors") if row.prefixes and row.start == row.end == "anywhere"]
    for _ in range(size):
        format_ = dice.choice(formats)
        token, drawn = make_token(format_, dice)
        veiled = _veil(token, dice)
        text = dice.choice(_FRAMES[:6])(f" {veiled} ", dice)
        channel = dice.choice(_CHANNELS)
        left = _visible(channel(text))
        yield Trial(
            f"{format_.rule.id}: {channel.__name__.strip('_')} of {veiled[:12]!r}", not is_left(drawn, left)
        )


def _disguised_names(dice: Random, size: int) -> Iterator[Trial]:
    for _ in range(size):
        name = dice.choice(("password", "api_key", "client_secret", "DB_PASSWORD", "auth_token"))
        kind = dice.choice(("invisible", "wide"))
        place = dice.randint(1, len(name) - 1)
        if kind == "invisible":
            veiled = name[:place] + dice.choice(_INVISIBLE) + name[place:]
        else:
            veiled = "".join(chr(ord(char) + 0xFEE0) for char in name)
        secret = f"{_letters(dice, 'alnum', 10)}7x9q{_letters(dice, 'alnum', 10)}"
        for how, masked in (
            ("text", _as_text(f"{veiled}={secret}\n")),
            ("JSON", _as_text(json.dumps({veiled: secret}, ensure_ascii=dice.random() < 0.5))),
            ("data", str(_redactor().redact_value({veiled: secret}))),
        ):
            yield Trial(f"{how}, {kind}: {veiled!r}", not is_left([secret], masked))


def _visible(text: str) -> str:
    """What a patient reader makes of a text: the disguises of `_veil` undone, by other means than the redactor's."""
    text = re.sub(r"(?:\x1b|\\u001b)\[[0-9;]*[mK]", "", text)
    text = re.sub(f"[{_INVISIBLE}{_ACCENTS}]", "", text)
    text = re.sub(r"\\+u00(..)|&#(\d+);|%(..)", lambda code: _decode(*code.groups()), text)
    unwide = {code + 0xFEE0: chr(code) for code in range(0x21, 0x7F)}
    unbold = {ord(_bold(char)): char for char in _ALNUM}
    return text.translate(unwide | unbold)


def _decode(unicode_hex: str | None, decimal: str | None, percent: str | None) -> str:
    try:
        return chr(int(decimal) if decimal else int(unicode_hex or percent or "", 16))
    except ValueError:
        return "?"


def _shown(lines: list[str], dice: Random) -> str:
    """Lines of a file as a tool shows them."""
    first = dice.randint(1, 900)
    numbered = list(enumerate(lines, first))
    return dice.choice(
        (
            lambda: "\n".join(lines),
            lambda: "\r\n".join(lines),
            lambda: "\n".join(f"{number:>6}\t{line}" for number, line in numbered),
            lambda: "\n".join(f"{number:>5}→{line}" for number, line in numbered),
            lambda: "\n".join(f"{number}:{line}" for number, line in numbered),
            lambda: "\n".join(f"key.pem-{number}-{line}" for number, line in numbered),
            lambda: "\n".join(f"{number:>4} | {line}" for number, line in numbered),
            lambda: "\n".join(f"> {line}" for line in lines),
            lambda: "\n".join(f"+{line}" for line in lines),
            lambda: "\n".join(f"    {line}" for line in lines),
            lambda: "\\n".join(lines),
            lambda: "\\\\n".join(lines),
            lambda: ",\n".join(f'"{line}"' for line in lines),
            lambda: "\n".join(f"'{line}\\n' +" for line in lines),
            lambda: quote("\n".join(lines), safe="+/=:- "),
        )
    )()


def _key_pieces(dice: Random, size: int) -> Iterator[Trial]:
    for _ in range(size):
        width = dice.choice((64, 70))
        body = [_letters(dice, "b64", width) for _ in range(dice.randint(3, 40))]
        body.append(_letters(dice, "b64", dice.choice((12, 22, 40))) + "=" * dice.randint(0, 2))
        label = dice.choice(
            (
                "RSA PRIVATE KEY",
                "OPENSSH PRIVATE KEY",
                "PRIVATE KEY",
                "EC PRIVATE KEY",
                "PGP PRIVATE KEY BLOCK",
            )
        )
        whole = [f"-----BEGIN {label}-----", *body, f"-----END {label}-----"]
        start = dice.choice((0, 1, dice.randint(1, len(whole) - 3)))
        piece = whole[start : start + dice.choice((3, 5, len(whole)))]
        if sum(len(line) == width for line in piece) < 2:
            piece = whole[1:4]
        if dice.random() < 0.3 and not piece[0].startswith("-"):
            piece[0] = piece[0][
                dice.randint(1, width - 20) :
            ]  # a reader of chunks began in the middle of a line
        text = dice.choice(("", "$ sed -n 3,9p key.pem\n", "The file:\n", "```\n")) + _shown(piece, dice)
        channel = dice.choice(_CHANNELS)
        secrets = [line for line in piece if not line.startswith("-")]
        yield Trial(
            f"{label}, lines {start}+{len(piece)} of {len(whole)}: {channel.__name__.strip('_')} of {text[:40]!r}",
            not is_left(secrets, channel(text)),
        )


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "surroundings", "A vendor's token is masked in any text, message, JSON or data.", _in_surroundings
    ),
    Attack(
        "disguises", "A token in other characters that a reader takes for the same is masked.", _disguised
    ),
    Attack("names", "A telling name in other characters is telling.", _disguised_names),
    Attack(
        "key pieces",
        "The lines of a private key are masked, also without its first and last line.",
        _key_pieces,
    ),
)
