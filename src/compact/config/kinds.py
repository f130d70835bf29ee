"""The kinds of values that settings have.

Each kind says in words what it allows. The same words stand in error messages and in the reference, and the kind
decides how an environment variable's text is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from compact.messages import to_json

SHOWN_VALUE_CHARS = 60
"""A rejected value is echoed up to this length; the rest of a long one helps nobody."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a kind allows, as the end of the sentence "x must be ..."."""

    text: str
    echo: bool = True
    """Whether a rejected value may be repeated in an error. An address can carry a password."""


def _path_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _visible(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text or not all("!" <= sign <= "~" for sign in text):
        raise ValueError("not a token")  # whoever sends it would fail, and show it
    return value


Share: TypeAlias = Annotated[float, Field(ge=0, le=1), Allowed("0.0-1.0")]
Count: TypeAlias = Annotated[int, Field(ge=1), Allowed("a whole number >= 1")]
Amount: TypeAlias = Annotated[int, Field(ge=0), Allowed("a whole number >= 0")]
Integer: TypeAlias = Annotated[int, Allowed("a whole number")]
Number: TypeAlias = Annotated[float, Field(ge=0), Allowed("a number >= 0")]
Seconds: TypeAlias = Annotated[float, Field(gt=0), Allowed("a number of seconds > 0")]
Words: TypeAlias = Annotated[str, Field(min_length=1), Allowed("a text that is not empty")]
Identifier: TypeAlias = Annotated[
    str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$"), Allowed("a name of letters, digits, _ and -")
]
Folder: TypeAlias = Annotated[str, BeforeValidator(_path_text), Field(min_length=1), Allowed("a path")]
Address: TypeAlias = Annotated[
    str, Field(pattern=r"^https?://\S+$"), Allowed("an http:// or https:// address", echo=False)
]
Token: TypeAlias = Annotated[
    SecretStr, AfterValidator(_visible), Allowed("a text of visible ASCII without spaces", echo=False)
]
"""Never shown: printing one gives asterisks."""
Names: TypeAlias = Annotated[list[str], Allowed("a list of names")]


@dataclass(frozen=True, slots=True)
class Kind:
    """One field's kind, read off its annotation."""

    base: type
    """bool, int, float, str, list or dict; `object` where a name and a list are both fine."""
    allowed: str
    nullable: bool
    echo: bool
    names: bool
    """Whether it is a list of plain names, which a variable separates by commas."""

    def refuse(self, path: str, value: Any) -> str:
        """The sentence that refuses a value: what is allowed, and what was given."""
        allowed = f"{self.allowed} or null" if self.nullable else self.allowed
        return f"{path} must be {allowed}, got {shown(value, echo=self.echo)}"


@cache
def kind_of(owner: type[BaseModel], name: str) -> Kind:
    """The kind of a field."""
    hint = get_type_hints(owner, include_extras=True)[name]
    nullable = False
    if get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
        nullable = True
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    mark: Allowed | None = None
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        mark = next((note for note in notes if isinstance(note, Allowed)), None)
    base, words = _base(hint)
    return Kind(
        base=base,
        allowed=mark.text if mark else words,
        nullable=nullable,
        echo=mark.echo if mark else True,
        names=base is object or (base is list and _base(get_args(hint)[0])[0] is str),
    )


def _base(hint: Any) -> tuple[type, str]:
    origin = get_origin(hint)
    if origin is Literal:
        return str, "one of " + ", ".join(get_args(hint))
    if origin in (Union, UnionType):
        return object, "a name or a list of names"
    if origin is list:
        return list, "a list, each " + _base(get_args(hint)[0])[1]
    if origin is dict:
        return dict, "a mapping"
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text",
        SecretStr: "a text",
    }
    return hint, names[hint]


def from_text(text: str, kind: Kind) -> Any:
    """An environment variable's value. Text that cannot be read as its kind is returned as it is, to be refused later."""
    text = text.strip()
    if kind.nullable and text.lower() in ("null", "none", "~"):
        return None
    try:
        if kind.base is bool:
            return _truth(text)
        if kind.base in (int, float):
            return kind.base(text)
        if kind.base is dict or (kind.base in (list, object) and text.startswith("[")):
            return _structure(text)
    except ValueError:
        return text
    if kind.base is list or (kind.base is object and "," in text):
        # A pattern may contain commas, a name does not.
        return [item.strip() for item in text.split(",") if item.strip()] if kind.names else [text]
    return text


def _truth(text: str) -> bool:
    words = {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _structure(text: str) -> Any:
    import yaml  # only files and structured variables need it, and it is slow to import

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(text) from error


def shown(value: Any, *, echo: bool = True) -> str:
    """A value as it would stand in a file, shortened; a value that may hold a secret by its type alone."""
    if not echo and value is not None:
        return f"a text of {len(value)} characters" if isinstance(value, str) else f"a {type(value).__name__}"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, str | int | list | tuple | Mapping | NoneType):
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (
            TypeError,
            ValueError,
            RecursionError,
        ):  # YAML allows dates as keys, and lists inside themselves
            text = to_json(value)
    else:
        text = f"{value} ({type(value).__name__})"
    return text if len(text) <= SHOWN_VALUE_CHARS else text[: SHOWN_VALUE_CHARS - 3] + "..."


def plain(value: Any) -> str:
    """A value the way a YAML file has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {plain(entry)}' for key, entry in value.items())}}}"
    return str(value)
