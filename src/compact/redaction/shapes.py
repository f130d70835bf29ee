"""What a text looks like: random, a placeholder, a reference, code, or prose.

A name such as `password` says only that a secret may follow. These functions tell whether it does.
"""

from __future__ import annotations

import re
import string
from operator import add

from compact.redaction.letter_pairs import resemble_words

_FOLLOWERS = (
    "a:bcdgiklmnprstuvy b:aeiloru c:acehiklortu d:aeiosu e:abcdefglmnpqrstvwx f:aefilou g:aeghioru h:aeio "
    "i:abcdefglmnoprstvz k:ei l:adeilostuy m:abeimopu n:acdefgiostuv o:acdgilmnoprstuvw p:aehiloprtu q:u "
    "r:acdegikmnorstuy s:acehiopstu t:acehilorstuy u:abcegilmnprst v:aei w:aeio x:p"
)
_COMMON_PAIRS = dict(pair.split(":") for pair in _FOLLOWERS.split())
"""For each letter, the letters that often follow it. These pairs make up 93% of words and identifiers."""

_RANDOM_SURPRISE = 0.4
"""95% of identifiers in real code lie below this, and more than 99% of random strings of 16 characters above."""

_SAMPLE_CHARS = 160
_MARKS_SAMPLE_CHARS = 400
_SHORTEST_RANDOM = 8


def word_set(words: str) -> frozenset[str]:
    """Split a string into a set of words."""
    return frozenset(words.split())


_PLACEHOLDER_WORDS = word_set(
    "your yours example examples placeholder dummy insert replace replaceme changeme redacted masked omitted removed "
    "foobar"
)
_FIXTURE_WORDS = word_set(
    "sample fake mock change todo fixme hidden foo tbd here test testing my some the an demo default development local"
)
_SENSITIVE_WORDS = word_set(
    "password passwd passphrase passcode pass pwd pw token tokens key keys apikey api credential "
    "credentials auth bearer username user login basic private public access client"
)
_CORE_WORDS = word_set("password passwd passphrase secret token key apikey credential credentials")
_NOTHING = word_set(
    "none null nil undefined true false yes no on off empty blank unset required optional hidden enabled disabled string str int "
    "integer number float bool boolean bytes bytearray object any text char varchar nvarchar uuid date datetime array "
    "list dict map set tuple void self this new function lambda async await return type class struct secretstr "
    "default never unknown symbol bigint buffer jsonb json file input prompt type field value key name n/a"
)
_STOP_WORDS = word_set(
    "the your you a an is are was must should can cannot to for of and or not with in on at by from this that it its "
    "be has have please enter invalid incorrect required will if when use used using"
)

_CODE_WORDS = word_set(
    "return if else elif for while in is not and or with as await new yield raise throw def class import from "
    "mismatch mismatched failed expired missing wrong rejected denied updated unchanged"
)
_LABEL_WORDS = word_set(
    "please enter your must should invalid incorrect wrong required cannot missing forgot reset change confirm choose "
    "set password passwords token tokens key keys secret secrets used uses user users the"
)

_REFERENCE = re.compile(
    r"""\$[\{(] | \$[@*] | \$\$?\d\b | \$[A-Za-z_][\w.:\[\]-]*\Z         # ${VAR} $(command) $1 $VAR
      | %[A-Za-z_]\w*% | %\([\w.]+\)[sd] | %[sdvq]\b                      # %VAR% %(name)s %s
      | \{\{.*\}\} | \{[\w.:\[\]'"-]*\} | \#\{ | @\w+@\Z                  # {{ var }} {var} #{var} @VAR@
      | <[^<>]*>\Z | \[[A-Za-z_ -]+\]                                     # <password> [PASSWORD]
      | !(?:Ref|Sub|GetAtt|Import|vault|secret|env|ENC|include)\w*\b       # YAML tags
      | &(?:str|mut|String)\b | \*[A-Za-z_]+\Z                            # pointers and YAML aliases
      | (?:os|process|import\.meta)\.env | (?:secrets?|vars?|env|self|this|config|settings)\.[A-Za-z_]
      | (?:vault|ssm|sm|op|file|keyvault|ref\+\w+|https?):// | arn:aws
    """,
    re.VERBOSE,
)
_PLAIN_REFERENCE = re.compile(
    r"""(?: \$\{[A-Za-z_][\w.]*:?[-=+?]\}
      | \{\{[-~]?[ ]*[A-Za-z_][\w.]*[ ]*[-~]?\}\} | op://[\w.-]+(?:/[\w.-]+){1,3}
      | os\.environ/[A-Za-z_]\w* | (?:var|vars|local|module|secrets|inputs)(?:\.[A-Za-z_]\w*){1,6}
      )[,;)]{0,3}\Z""",
    re.VERBOSE,
)
_IDENTIFIERS = re.compile(r"\w+")
_GENERIC_TYPE = re.compile(
    r"(?:[A-Z][a-z]+){1,6}<(?:(?:[A-Z][a-z]+){1,6}|str|string|u8|any|bytes|char|number|&'?\w{1,20})[\w:<>,&']{0,60}\Z"
)
_NAME_INSIDE = re.compile(r"\A[\s\w.:/'\"|()-]+\Z")
_DIGIT = re.compile(r"[0-9]")
_PHRASE = re.compile(r"[A-Za-z]{3,10}([-._])(?:[A-Za-z]{3,10}\1){2,6}\d{2,4}\Z")
"""Words with a number behind them, as managers of passwords make them."""
_NUMBER = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?\Z|[-+]?\d+[eE][-+]\d+\Z")
_HUMP = re.compile(r"[a-z][A-Z]")
_BARE_PREFIX = re.compile(r"[A-Za-z0-9]{1,6}[-_]\Z")
_CROSSES = re.compile(r"(?<![A-Za-z])(?:[xX]{3,}|[yY]{3,})(?![A-Za-z])|(?<!\*)\*{3,}(?!\*)")
_NAME_OF_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
"""`OPENAI_API_KEY`: it names a secret and is none."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CALL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)*!?[(\[]")
_NEGATION = re.compile(r"!+[A-Za-z_.]+\Z")
_PATH = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+;?")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*\Z")
_FILLER = re.compile(r"([xX*#.•·01_-])\1{5,}|\.\.\.")
_FILE = re.compile(r"(?:[\w .@=+~:-]{0,100}/){0,20}[\w .@=+~-]{1,200}\.[a-z][a-z0-9]{1,4}\Z")
_VERSION = re.compile(
    r"v?\d{1,8}(?:\.\d{1,8}){1,3}(?:[-.+]?(?:alpha|beta|rc|dev|pre|preview|post|final|snapshot|build|next|canary|nightly)"
    r"(?:[-.]?\d{1,8})?){0,3}\Z",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T ][\d:.]{4,16}(?:Z|[+-]\d\d:?\d\d)?)?\Z")
_ALPHABETIC = "abcdefghijklmnopqrstuvwxyz"


def _oddity(before: str, char: str) -> float:
    if before.isdigit():
        return 0.4 if char.isdigit() else 1.0
    if char.isdigit():
        return 1.0
    if before.islower() and char.isupper():
        return 0.4
    return 0.0 if char.lower() in _COMMON_PAIRS.get(before.lower(), "") else 1.0


_ALPHABET = string.ascii_letters + string.digits
_ODDITIES = {before + char: _oddity(before, char) for before in _ALPHABET for char in _ALPHABET}


def surprise(value: str) -> float:
    """How unlike words a text is, from 0 to 1: the share of neighbouring characters that are rare in words."""
    sample = value[:_SAMPLE_CHARS]
    odd = [oddity for oddity in map(_ODDITIES.get, map(add, sample, sample[1:])) if oddity is not None]
    return sum(odd) / len(odd) if odd else 0.0


def looks_random(value: str, shortest: int = _SHORTEST_RANDOM) -> bool:
    """Whether a generator made it, not a person: no words, and enough different characters."""
    if len(value) < shortest or is_filler(value):
        return False
    body = value[:_SAMPLE_CHARS].strip("=")
    if len(set(body)) < min(6, len(body) // 2 + 1):
        return False
    if body.isdigit():
        return len(body) >= 10
    if _is_symbol_soup(body):
        return True
    if has_digit(body):
        return surprise(body) >= _RANDOM_SURPRISE
    # Without a digit it may be an unusual word or an abbreviation. Names change case at most once per word.
    humps = len(_HUMP.findall(body))
    if humps * 5 > len(body) >= 10:
        return surprise(body) >= _RANDOM_SURPRISE
    return len(body) >= (12 if body.islower() else 10) and surprise(body) >= 0.5


def is_generated(value: str) -> bool:
    """Whether a value under a secret's name was made by a generator or made up, and is no word or name.

    It takes less than `looks_random`: letters that are hardly words, or some marks. Use it where a value stands, not for prose.
    """
    if len(value) < 6 or is_filler(value) or _NUMBER.match(value) or any(char.isspace() for char in value):
        return False
    if looks_random(value) or is_made_up(value) or _PHRASE.match(value):
        return True
    body = value[:_SAMPLE_CHARS]
    marks = {char for char in body if char in string.punctuation} - set("-_./:,")
    if len(marks) > 2 or len(marks - set("()[]{}<>\"'`")) > 1:
        return True
    if not has_digit(body):
        letters_only = body.isalpha()
        return len(body) >= _SHORTEST_RANDOM and resemble_words(body) < (0.15 if letters_only else -0.3)
    return body.isdigit() or (surprise(body) >= 0.25 and resemble_words(body) < 0.3)


def is_made_up(value: str) -> bool:
    """Whether it is random, or a word with digits or punctuation marks in it, as people make up passwords."""
    if looks_random(value):
        return True
    if len(value) < 6:
        return False
    marks = {char for char in value[:_MARKS_SAMPLE_CHARS] if char in "!@#$%^&*+~?"}
    return len(marks) > 1 or (bool(marks or has_digit(value)) and surprise(value) >= 0.15)


def has_digit(value: str) -> bool:
    """Whether there is a digit near the beginning."""
    return _DIGIT.search(value, 0, _SAMPLE_CHARS) is not None


def _is_symbol_soup(value: str) -> bool:
    """Whether it has several different punctuation marks and no blanks, as generated passwords do and names do not."""
    marks = {char for char in value[:_SAMPLE_CHARS] if char in "!#$%&*+;<>?@[]^{|}~()"}
    return len(value) >= 10 and len(marks) >= 4 and not any(char.isspace() for char in value)


def is_filler(value: str) -> bool:
    """Whether it is a stand-in for a value: `xxxxxxxx`, `********`, `0000...`, an ellipsis."""
    if len(value) > 2 and len(set(value)) == 1:
        return True
    if _ALPHABETIC in value[:_SAMPLE_CHARS].lower():
        return True
    filler = sum(len(found.group()) for found in _FILLER.finditer(value[:_SAMPLE_CHARS]))
    return filler * 2 >= min(len(value), _SAMPLE_CHARS) or value.endswith(("...", "…"))


def split_words(value: str) -> list[str]:
    """Split into words, in lower case: `dbPassword_old` has three."""
    return [word.lower() for word in _WORDS.findall(value[:_SAMPLE_CHARS])]


def is_placeholder(value: str) -> bool:
    """Whether it asks the reader to fill in a value: `YOUR_API_KEY`, `changeme`, `xxxx`, `my-secret-token`."""
    if not value or is_filler(value) or value.lower() in _NOTHING or _BARE_PREFIX.match(value):
        return True
    words = split_words(value)
    if not words:
        return not any(char.isalnum() for char in value)
    crosses = _CROSSES.search(value)
    if not _PLACEHOLDER_WORDS.isdisjoint(words) or (crosses and len(crosses[0]) * 4 >= len(value)):
        return True
    if _NAME_OF_VARIABLE.match(value) and not _CORE_WORDS.isdisjoint(words):
        return True
    if surprise(value) >= _RANDOM_SURPRISE or has_digit(value):
        return False
    if len(words) > 1 and not (_FIXTURE_WORDS | _CORE_WORDS).isdisjoint(words):
        return True
    return all(word in _SENSITIVE_WORDS or word.removesuffix("s") in _SENSITIVE_WORDS for word in words)


def is_name_of_variable(value: str) -> bool:
    """Whether it is the name of an environment variable for a secret: `OPENAI_API_KEY`."""
    return value.count("_") > 1 and _NAME_OF_VARIABLE.match(value) is not None and not looks_random(value)


def is_reference(value: str) -> bool:
    """Whether it says where the value comes from: `$VAR`, `${{ secrets.X }}`, `<password>`, `%s`, `op://...`."""
    found = _REFERENCE.match(value)
    if found is None:
        return False
    # A password may start with one of these marks too.
    inner = value.strip("{}<>[]$%!*&#@")
    if value[0] in "{<[$%!*&#@" and looks_random(inner):
        return (
            value[:2] in ("${", "$(", "{{", "#{")
            and value[-1:] in "})"
            and _NAME_INSIDE.search(inner) is not None
        )
    return True


def is_plain_reference(value: str) -> bool:
    """Whether it is a reference from its first character to its last, and hides no value: `${DB_PASSWORD:-}`, `op://a/b`, `var.x`.

    A default is a value: `${DB_PASSWORD:-hunter2}` is no plain reference.
    """
    return _PLAIN_REFERENCE.match(value) is not None and not any(
        looks_random(part, 6) for part in _IDENTIFIERS.findall(value) if has_digit(part)
    )


def is_generic_type(value: str) -> bool:
    """Whether it is a type with a type as its argument: `Option<String>`."""
    return _GENERIC_TYPE.match(value) is not None


def is_code(value: str) -> bool:
    """Whether it is an expression: a call, a subscript, a path of names, an operator."""
    return (
        _CALL.match(value) is not None
        or _NEGATION.match(value) is not None
        or (_PATH.fullmatch(value) is not None and surprise(value) < _RANDOM_SURPRISE)
        or value.startswith(("(", "[", "{", "&&", "||", "=", "+", "?", "->", "//", "/*", "..."))
        or "=>" in value
        or "::" in value
    )


def is_path(value: str) -> bool:
    """Whether it is the path or the name of a file: `uploads/2024/8d6f8a31.png`."""
    return _FILE.match(value) is not None


def is_version(value: str) -> bool:
    """Whether it is a version or a date: `v1.2.3-beta.4`, `2026-01-02T10:00:00Z`."""
    return _VERSION.match(value) is not None or _DATE.match(value) is not None


def is_identifier(value: str) -> bool:
    """Whether it could be the name of a variable: letters, digits and underscores."""
    return _IDENTIFIER.match(value) is not None


def is_prose(value: str) -> bool:
    """Whether it is a sentence: several words, one of them a function word."""
    words = value.split()
    return len(words) > 2 and any(word.strip(".,:;!?").lower() in _STOP_WORDS for word in words[:40])


def is_label(value: str) -> bool:
    """Whether it is a sentence about a secret, as in forms and messages: "Enter your password"."""
    words = {word.strip(".,:;!?'\"()").lower() for word in value.split()[:40]}
    return len(words) > 1 and not words.isdisjoint(_LABEL_WORDS)


def is_common_word(value: str) -> bool:
    """Whether it is an English function word or a keyword of a programming language."""
    return value.lower() in _STOP_WORDS or value.lower() in _CODE_WORDS
