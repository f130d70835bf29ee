"""Whether a model has begun to answer: what was streamed once cannot be taken back, so its request is not sent again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

__all__ = ["FirstOutput", "watched"]

_MESSAGE_FIELDS = ("content", "tool_call_chunks", "additional_kwargs")
_EVENT_FIELDS = ("content", "delta")
_BLOCK_LABELS = frozenset({"type", "index", "id"})
"""Fields of a block that is still empty."""


class FirstOutput(BaseCallbackHandler):
    """Sees what a model streams. `seen` says whether anything of it was the model's own."""

    run_inline = True  # on an event loop too: in a thread it would see an output after the error behind it

    def __init__(self) -> None:
        self.seen = False

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Do nothing. Without this method every request would be written out as text."""

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        """See `BaseCallbackHandler.on_llm_new_token`."""
        message = getattr(chunk, "message", None)
        said = (getattr(message, name, None) for name in _MESSAGE_FIELDS)
        self.seen = self.seen or _says(token) or any(map(_says, said))

    def on_stream_event(self, event: Any, **_: Any) -> None:
        """See `BaseCallbackHandler.on_stream_event`."""
        self.seen = self.seen or any(_says(event.get(name)) for name in _EVENT_FIELDS)


def _says(value: Any) -> bool:
    """Whether a part of a chunk holds more than labels."""
    if isinstance(value, Mapping):
        return any(_says(entry) for key, entry in value.items() if key not in _BLOCK_LABELS)
    if isinstance(value, list | tuple):
        return any(map(_says, value))
    return bool(value)


_WATCHING: ContextVar[FirstOutput | None] = ContextVar("compact_first_output", default=None)
register_configure_hook(_WATCHING, inheritable=True)


@contextmanager
def watched() -> Iterator[FirstOutput]:
    """See every model call that begins inside."""
    before, seeing = _WATCHING.get(), FirstOutput()
    _WATCHING.set(seeing)
    try:
        yield seeing
    finally:
        _WATCHING.set(before)
