"""Pictures and documents in a message, in any dialect: which parts they are, of what type, and how large."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from compact.messages.message import Image, Message, Opaque, Part, ToolResult

AttachmentKind: TypeAlias = Literal["image", "document"]

_DOCUMENTS = frozenset({"document", "file", "input_file"})
_BLOBS = frozenset({"inlineData", "inline_data", "fileData", "file_data"})
"""Gemini's parts with data: a document, unless their type says that one hears or watches it."""
_NOT_READ = ("audio/", "video/")
_TYPES = ("media_type", "mediaType", "mimeType", "mime_type")
_TYPE = re.compile(r"[A-Za-z0-9.+/-]{1,100}")
"""Whatever else stands there was not written to tell a type."""
_SCREENSHOT = "computer_screenshot"
"""OpenAI takes nothing else as the output of its computer tool."""
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Attachment:
    """A picture or a document, and where it stands in its message."""

    kind: AttachmentKind
    media_type: str
    """Such as `image/png`; empty if nothing says it."""
    chars: int
    """What it takes on the wire."""
    place: int
    """The index of the part."""
    inner: int | None
    """Its index in the content of the tool result at `place`; None: it is the part itself."""
    is_inline: bool
    """Whether its bytes stand here, and not only an address."""
    may_leave: bool
    """Whether a text may stand in its place."""

    @property
    def size(self) -> int:
        """Its bytes, as base64 tells them."""
        return self.chars * 3 // 4


def attachments(message: Message) -> Iterator[Attachment]:
    """The pictures and documents of a message, in order, those in tool results too."""
    for place, part in enumerate(message.parts):
        inside = enumerate(part.content) if isinstance(part, ToolResult) else [(None, part)]
        for inner, each in inside:
            kind = _kind_of(each)
            if kind is not None:
                yield _describe(each, kind, place, inner)


def _kind_of(part: Part) -> AttachmentKind | None:
    if isinstance(part, Image):
        return "image"
    if not isinstance(part, Opaque):
        return None
    if part.type in _BLOBS:
        return None if _media_type(part.origin).startswith(_NOT_READ) else "document"
    if part.type not in _DOCUMENTS:
        return None
    return "image" if _media_type(part.origin).startswith("image/") else "document"


def _describe(part: Part, kind: AttachmentKind, place: int, inner: int | None) -> Attachment:
    origin: Any = getattr(part, "origin", None)
    source = part.source if isinstance(part, Image) else _longest(origin, 0)
    declared = source[5 : source.find(";", 5, 100)] if source.startswith("data:") else _media_type(origin)
    if not declared and (form := _format(origin)):
        declared = f"image/{form}" if kind == "image" else form
    if not _TYPE.fullmatch(declared):
        declared = ""
    screenshot = isinstance(origin, Mapping) and origin.get("type") == _SCREENSHOT
    is_inline = bool(source) and (source.startswith("data:") or "://" not in source[:32])
    data = source[source.find(",", 0, 256) + 1 :] if source.startswith("data:") else source
    return Attachment(kind, declared, len(data), place, inner, is_inline, not screenshot)


def _media_type(value: Any) -> str:
    """The first media type in a block; empty if it has none."""
    return next(_find(value, _TYPES, 0), "")


def _format(value: Any) -> str:
    return next(_find(value, ("format",), 0), "")


def _find(value: Any, names: tuple[str, ...], depth: int) -> Iterator[str]:
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return
    yield from (value[name] for name in names if isinstance(value.get(name), str))
    for entry in value.values():
        yield from _find(entry, names, depth + 1)


def _longest(value: Any, depth: int) -> str:
    """The longest text in a block, which is its data; bytes as characters of base64."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return "=" * (-(-len(value) // 3) * 4)
    if depth > _DEEPEST or not isinstance(value, Mapping | list | tuple):
        return ""
    entries = value.values() if isinstance(value, Mapping) else value
    return max((_longest(entry, depth + 1) for entry in entries), key=len, default="")
