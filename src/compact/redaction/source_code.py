"""Source code and sentences around a name: whether what follows it is an expression or a word, and no value.

In settings and data, the word behind `password=` is the password. In source code it is a variable or a type, and in a
sentence it is the next word.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import re2  # type: ignore[import-untyped]

from compact.redaction.letter_pairs import resemble_words
from compact.redaction.shapes import (
    has_digit,
    is_code,
    is_common_word,
    is_label,
    is_made_up,
    is_placeholder,
    is_reference,
    looks_random,
    split_words,
    word_set,
)
from compact.redaction.ui_texts import is_foreign

BEFORE_CHARS = 500
AFTER_CHARS = 300
"""How much of the text around a name is read."""
_MARKS_OF_CODE = 2
_LONGEST_LINE = 300
_MARKS = re2.compile(
    r"(?m)^[ \t]*(?:(?:async )?(?:def|class|return|import|from|elif|else|try|except|finally|raise|with|assert|yield|const|"
    r"let|var|function|func|fn|public|private|protected|static|package|namespace|using|struct|impl|interface|throw|"
    r"switch|case|if|for|while|pass|lambda|override|val|export default|export const|export class|export function)\b|"
    r"@[a-z]\w*|>>> |#include|:param |:arg |Args:$)|``|::$|"
    r"\b(?:self|this|cls|super|console|os|request|response)\.[a-z_]|\)[ \t]*->|=>[ \t]|[a-z_]\(|[a-z]\[['\"a-z]|\)[:;,]$|"
    r"\b(?:None|nil|undefined|isinstance|await|lambda)\b|\"\"\"|"
    r": (?:str|int|bool|float|bytes|dict|list|string|number|boolean|any|Optional|Union|List|Dict|Any)\b|"
    r"&&|\|\||[=!]==?[ \t]|[+|]=[ \t]"
)
"""What source code is full of and settings are not. Two of them near a name are enough."""
_TYPE_NAME = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z0-9]*)+\Z|[A-Z]{2,}[a-z]\w*\Z")
_CALL = re.compile(r"([A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)*)!?[(\[]")
_VARIABLE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)*\Z")
_TELLING_WORDS = word_set(
    "password passwords passwd passphrase pass pwd pw secret secrets token tokens key keys auth credential credentials cred "
    "creds api apikey"
)
_NEXT_WORD = re.compile(
    r"[,.;:!?]?[ \t]{1,4}[\"'(`]?((?:[^\W\d_]|[^\x00-\x7f]){2,})|[ \t]{1,4}([a-z])[ \t][^\W\d_]"
)
_MORE_WORDS = re.compile(r"(?:[ \t]{1,4}[\"'(`]*[^\W\d_]{2,}){2}")
_NO_LETTERS = re.compile(r"[^A-Za-z]")
_LONGEST_PLAIN_NAME = 10
"""`password: password` is a password, `challenge_password: challengePassword` is a name."""
_WORD_MARKS = re.compile(r"[-'’¿¡]")
_COUNTED = re.compile(r"(?i)[a-z_-]*1234\d*[a-f]*\Z|[a-z_-]*(?:abc)?123\Z")
_FUNCTION_WORDS = word_set(
    "a an the your you our my is are was were be been must should shall can could cannot will would may might to for of and or "
    "not no with in on at by from this that these it its has have had if when where which who what how as used using use "
    "optional required hidden please enter invalid incorrect wrong either only also because "
    "der die das den dem des ein eine und oder nicht ist sind mit von zu im ihr sie de la le les du des un une et ou est sont "
    "el los las una y o es son con por para su il lo gli di e che per non o os as um uma do da em het een en van op is niet"
)


def is_source(text: str, start: int, end: int, marks: int = _MARKS_OF_CODE) -> bool:
    """Whether the text before and after a field is source code: it has at least `marks` marks of code."""
    found = 0
    # The text behind the field begins in the middle of a line.
    for part in (text[max(0, start - BEFORE_CHARS) : start], "\0" + text[end : end + AFTER_CHARS]):
        for _ in _MARKS.finditer(part.encode("ascii", "replace")):
            found += 1
            if found >= marks:
                return True
    return False


def is_near_source(text: str, start: int, end: int) -> bool:
    """Like `is_source`, but one mark is enough. It will do for a value that is hardly one."""
    return is_source(text, start, end, 1)


def is_expression(value: str, operator: str = "=") -> bool:
    """Whether an unquoted value in source code is an expression: a variable, a type, a call, a constant.

    What a generator made, or a word with digits in it, is a value also there. So is a word behind a colon that is no type,
    because YAML and prose stand in comments.
    """
    bare = value.rstrip(",;)]}:")
    if looks_random(bare) and not _VARIABLE.match(bare):
        return False
    if not bare or is_code(value) or is_reference(bare) or is_placeholder(bare) or is_common_word(bare):
        return True
    if operator == ":" and value.isalpha() and value.islower():
        return len(value) < 3 or value in _TELLING_WORDS
    if _VARIABLE.match(bare):
        words = split_words(bare)
        if not _TELLING_WORDS.isdisjoint(words) or _TYPE_NAME.match(bare):
            return True
        if len(words) > 1 or "." in bare:
            return not looks_random(bare)
    return not is_made_up(bare)


def is_sample(value: str) -> bool:
    """Whether a value in source code only shows where a value belongs: `...`, `secret`, `YOUR_KEY`, `<>`, `my password`."""
    bare = unquote(value).strip("`'\".,;)(]} ")
    words = split_words(bare)
    about = not _TELLING_WORDS.isdisjoint(words) and not has_digit(bare)
    return (
        about
        or is_placeholder(bare)
        or is_reference(bare)
        or is_label(bare)
        or not any(char.isalnum() for char in bare)
        or _COUNTED.match(bare) is not None
    )


def is_call(value: str) -> bool:
    """Whether a value is a call or a subscript, wherever it stands: `os.environ["X"]`, `get_key()`, `key[16:]`."""
    found = _CALL.match(value)
    if found is None:
        return False
    name = found[1]
    if sum(char.isdigit() for char in name) > (6 if "." in name else 2) or not (
        _is_wordy(name) or name.lower() in _TELLING_WORDS
    ):
        return False
    return "." in name or value.endswith(("(", "[")) or _is_balanced(value.rstrip(",;:"))


def _is_wordy(name: str) -> bool:
    letters = "".join(char for char in name if char.isalpha())
    return len(letters) > 2 and resemble_words(name) > 0.2


def _is_balanced(value: str) -> bool:
    """Whether every bracket of a value is closed in it, or closed by what follows: `f(x` in `f(x, y)`."""
    depth = 0
    for char in value:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return False
    return depth == 0 or value.isidentifier()


def is_first_word(text: str, start: int, end: int) -> bool:
    """Whether a value is the first word of a sentence: `password: The password of the user`."""
    word = text[start:end].strip("`*(\"',.:;")
    following = _NEXT_WORD.match(text, end)
    if following is None or not (_WORD_MARKS.sub("", word).isalpha() or is_foreign(word)):
        return False
    next_word = (following[1] or following[2]).lower()
    if word.lower() in _FUNCTION_WORDS or next_word in _FUNCTION_WORDS or not next_word.isascii():
        return True
    return word[0].isupper() and not looks_random(word)


def is_sentence(text: str, start: int, end: int) -> bool:
    """Whether a value in a comment is a word that more words follow: `password: decrypts the key`."""
    return text[start:end].isalpha() and _MORE_WORDS.match(text, end) is not None


def closes_string(text: str, name_start: int, quote: str) -> bool:
    """Whether a name is part of a string that the quote behind it closes: `"New password:"`."""
    line_start = text.rfind("\n", max(0, name_start - _LONGEST_LINE), name_start) + 1
    before = text[max(line_start, name_start - _LONGEST_LINE) : name_start]
    return before.count(quote) % 2 == 1 and "\\" not in before


def repeats_name(name: str, value: str, follower: str) -> bool:
    """Whether a value is called like its field: `f(api_key=api_key, ...)`, `USER_PASSWORD = "userPassword"`."""
    bare = value.rstrip(",)")
    if follower in (",", ")") and len(bare) > 2 and (name.endswith(bare) or bare.rpartition(".")[2] == name):
        return True
    flat_name, flat_value = _NO_LETTERS.sub("", name).lower(), _NO_LETTERS.sub("", bare).lower()
    return len(flat_value) > _LONGEST_PLAIN_NAME and flat_name.endswith(flat_value)
