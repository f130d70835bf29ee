"""Texts of user interfaces: labels, hints and messages that stand under a secret's name in files of translations."""

from __future__ import annotations

import re
from unicodedata import category

from compact.redaction.shapes import has_digit, is_filler, looks_random, split_words, word_set

_WORDS_READ = 40
_FUNCTION_WORDS = word_set(
    "the your you a an is are was must should can cannot to for of and or not with in on at by from this that it its my no "
    "be has have please enter invalid incorrect required will if when use used using new old "
    "der die das den dem des ein eine und oder nicht ist sind mit von zu ihr sie neues altes le la les du de un une et ou est "
    "votre nouveau el los las tu su y o es con por para nueva il lo gli di che per non la tua um uma do da em sua nova het "
    "een en van op uw je niet ett och din det av er og til ikke ja na z do w i nie se si ve bir ile yeni"
)
_LABEL_WORDS = word_set(
    "please enter your must should invalid incorrect wrong required cannot missing forgot forgotten reset change confirm "
    "choose set password passwords token tokens key keys secret secrets used uses user users"
)
_WORDS_FOR_PASSWORD = word_set(
    "password passwords passwort kennwort passphrase passcode pin token secret contrasena clave contrasenya contrasinal "
    "contrasigno senha palavra-passe wachtwoord wagwoord lozinka zaporka heslo salasana parola parol parole parool haslo jelszo sifre "
    "losenord adgangskode passord pasahitza geslo slaptazodis sandi fjalekalimi lykilord pasvorto nenosiri cyfrinair"
)
"""What forms in other languages say for "password", without the words that have letters beyond ASCII."""
_ENGLISH = word_set("password passwords passphrase passcode pin token secret")
"""In small letters these are what people type when they are asked for a password."""
_NAMES_OF_TEXTS = word_set(
    "label hint placeholder title message msg error errors help tooltip caption heading button btn link forgot forgotten lost show "
    "hide toggle strength rules requirements mismatch invalid incorrect weak strong enter please repeat again translation "
    "translations locale lang description desc"
)
_FORMAT = re.compile(r"%(?:\(\w+\))?[sdriq@](?:\W|\Z)|\{\d?\}")
_HOLE = re.compile(r"%(?:\(\w+\))?[sdriq@]|\{\w*\}|</?\w+>")
_MARKS = re.compile(r"[-.,:;!?'’()/\s]")
_JOINED = ("Mn", "Mc", "Cf")
"""Unicode categories of the marks that belong to the letters of many scripts."""
_PASSPHRASE_WORD = re.compile(r"[a-z]{3,10}\Z")
_SENTENCE_END = tuple(".?!:…。？！：)")


def is_name_of_text(name: str) -> bool:
    """Whether a field of this name holds a text for people: `password_hint`, `LABEL_NEW_PASSWORD`, `forgotPassword`.

    Under such a name only what a generator made is masked.
    """
    return not _NAMES_OF_TEXTS.isdisjoint(split_words(name)) or "i18n" in name.lower()


def is_text(value: str) -> bool:
    """Whether a value of several words is a text for people, in any language, and no passphrase."""
    words = value.split()[:_WORDS_READ]
    if len(words) < 2:
        return False
    bare = [word.strip(".,:;!?¿¡'\"()«»„“”…") for word in words]
    if any(len(word) >= 8 and has_digit(word) and looks_random(word) and word.isascii() for word in bare):
        return False
    lowered = {word.lower() for word in bare}
    if not lowered.isdisjoint(_LABEL_WORDS) or not value.isascii():
        return True
    if len(words) > 2 and not lowered.isdisjoint(_FUNCTION_WORDS):
        return True
    if value.rstrip().endswith(_SENTENCE_END) or value.lstrip()[:1].isupper():
        return all(word.isdigit() or not has_digit(word) for word in bare)
    return (
        not (len(words) > 2 and all(map(_PASSPHRASE_WORD.match, words))) and value.replace(" ", "").isalpha()
    )


def is_word_for_password(value: str) -> bool:
    """Whether a single word is a label such as `Passwort` or `パスワード`: capitalized, or of another script than Latin."""
    word = value.strip(".,:;!?¿¡*…()：。 ")
    if not word or is_filler(word):
        return False
    if not word.isascii():
        return is_foreign(word)
    lowered = word.lower()
    if not word.replace("-", "").isalpha() or (word == lowered and word in _ENGLISH):
        return False
    if word == lowered:
        return word in _WORDS_FOR_PASSWORD
    return word[0].isupper() and any(
        lowered.startswith(name) or lowered.endswith(name) for name in _WORDS_FOR_PASSWORD
    )


def is_foreign(word: str) -> bool:
    """Whether a word is written with letters beyond ASCII and nothing else, as passwords hardly ever are."""
    letters = _MARKS.sub("", _HOLE.sub("", word))
    return not letters.isascii() and all(char.isalpha() or category(char) in _JOINED for char in letters)


def is_ui_text(value: str) -> bool:
    """Whether a value is a text for people, of one word or several."""
    return is_text(value) or is_word_for_password(value)


def is_format(value: str) -> bool:
    """Whether a value is a hole in a text that a program fills: `%s`, `%(name)s`, `{0}`."""
    return _FORMAT.match(value) is not None
