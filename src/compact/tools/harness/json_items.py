"""Read a JSON list item by item, so that it need not fit in memory."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any

_CHUNK_BYTES = 1 << 18
_NEAR_THE_END = 16
"""An error this close to the end of the buffer may only mean that the rest is still unread."""
_BLANK = " \t\r\n"
_FOLLOWS = tuple(_BLANK + ",:]}")
_DECODER = json.JSONDecoder()


class JsonItems:
    """The items of a list, or of the list under one key of an object, each with its line number.

    Only the current item and the read-ahead buffer are in memory.
    """

    def __init__(self, read: Callable[[int], bytes], key: str) -> None:
        self._read = read
        self._key = key
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._text = ""
        self._at = 0
        self._line = 1
        self._column = 1
        self._ended = False

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield (line, item); nothing if there is no such list.

        Raises:
            json.JSONDecodeError: the text is not JSON; `lineno` and `colno` are the place in the file.
            UnicodeDecodeError: the text is not UTF-8.
        """
        if not self._find_list():
            return
        self._expect("[")
        if self._peek() == "]":
            self._at += 1
        else:
            yield from self._items()
        self._skip_rest()

    def _items(self) -> Iterator[tuple[int, Any]]:
        while True:
            self._peek()
            line = self._line_at(self._at)
            yield line, self._value()
            if self._peek() == "]":
                self._at += 1
                return
            self._expect(",")

    def _find_list(self) -> bool:
        if self._peek() == "[":
            return True
        self._expect("{")
        while self._peek() == '"':
            key = self._value()
            self._expect(":")
            if key == self._key and self._peek() == "[":
                return True
            self._value()
            if self._peek() != ",":
                return False
            self._at += 1
        return False

    def _skip_rest(self) -> None:
        """Read what follows the list: the object's other keys and its end, and nothing else."""
        while self._peek() == ",":
            self._at += 1
            self._value()
            self._expect(":")
            self._value()
        if self._peek() == "}":
            self._at += 1
        if self._peek():
            raise self._error("Extra data", self._at)

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                if self._ended or self._is_whole(end):
                    self._at = end
                    return value
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _NEAR_THE_END
                if self._ended or not cut:
                    raise self._error(error.msg, error.pos) from None
            self._more()

    def _is_whole(self, end: int) -> bool:
        """Whether a value ends here. A number may continue in what is not read yet: `6.` starts like `6`."""
        return self._text[end : end + 1] in _FOLLOWS or end < len(self._text) - _NEAR_THE_END

    def _peek(self) -> str:
        """Look at the next character that is not blank; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._more()

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"Expecting '{character}'", self._at)
        self._at += 1

    def _more(self) -> None:
        """Read on, and double the buffer, so that a long item is not parsed too often."""
        self._line, self._column = self._line_at(self._at), self._column_at(self._at)
        self._text = self._text[self._at :]
        self._at = 0
        data = self._read(max(_CHUNK_BYTES, len(self._text)))
        self._ended = not data
        self._text += self._decode.decode(data, final=not data)

    def _line_at(self, place: int) -> int:
        return self._line + self._text.count("\n", 0, place)

    def _column_at(self, place: int) -> int:
        start = self._text.rfind("\n", 0, place)
        return self._column + place if start < 0 else place - start

    def _error(self, words: str, place: int) -> json.JSONDecodeError:
        error = json.JSONDecodeError(words, self._text[max(0, place - 20) : place + 20], min(place, 20))
        error.lineno, error.colno = self._line_at(place), self._column_at(place)
        return error
