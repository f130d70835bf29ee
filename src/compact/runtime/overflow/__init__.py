"""Is this error a context overflow, and what does it say about the window? Pure; no SDK is imported.

    layers     an error and what it was raised from, outermost first (evidence.py)
    names      codes, types and class names: `context_length_exceeded`, `ContextWindowExceededError` (wording.py)
    wording    sentences that say that a prompt does not fit, in any provider's words (compact.errors)
    numbers    which number in them is the limit and which the request (numbers.py)

The outermost layer that says anything decides: a disconnect that was raised from an overflow is a disconnect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compact.errors import CompactError, says_overflow
from compact.runtime.overflow import evidence, numbers, wording
from compact.runtime.overflow.evidence import Evidence

__all__ = ["Overflow", "recognise", "recognise_reply"]


@dataclass(frozen=True, slots=True)
class Overflow:
    """A provider refused a request as too long. Numbers are its own tokens; None: it did not say."""

    limit: int | None
    """What it takes at most, input and output together where it counts them together."""
    requested: int | None
    """What the request would have taken, output included where the provider counts it."""
    output: int | None
    """The part of `requested` that was reserved for the reply; of a reply that was cut, what it took."""
    message: str
    """What it said, in one line."""
    in_reply: bool = False
    """The request was taken, and its reply ran into the end of the window: it is there, and not whole."""

    @property
    def input(self) -> int | None:
        """What the provider counted for the messages and tools alone."""
        return None if self.requested is None else self.requested - (self.output or 0)

    @property
    def is_output_alone(self) -> bool:
        """Whether the reply's reservation does not fit even without any message: nothing that is sent can help."""
        return self.limit is not None and self.output is not None and self.output >= self.limit


def recognise(problem: Any) -> Overflow | None:
    """The overflow that an exception, a response, an error body or an error's text reports; None: it is another error.

    Rate limits and quotas, an output limit that is too large by itself, timeouts, refused parameters and every error of
    compact's own are other errors.
    """
    if isinstance(problem, CompactError):
        return None
    for layer in evidence.layers(problem):
        verdict = _verdict(layer)
        if verdict is not None:
            return _overflow(layer) if verdict else None
    return None


def recognise_reply(reply: Any) -> Overflow | None:
    """The overflow that a reply reports instead of an answer, or that cut it; None for every other reply.

    A reply that was cut at its own limit (`max_tokens`) is an answer: a smaller request would not make it longer.
    """
    reported = evidence.reported_error(reply)
    if reported is not None:
        return recognise(reported)
    if evidence.stop_reasons(reply) & wording.WINDOW_ENDED:
        said = "the reply ran into the end of the context window"
        return Overflow(None, None, evidence.reply_tokens(reply), said, in_reply=True)
    return None


def _verdict(layer: Evidence) -> bool | None:
    """True: an overflow. False: clearly another error. None: this layer does not say."""
    text = layer.text
    if any(map(wording.names_another_error, layer.names)):
        return False
    heads = [name for said in layer.texts for name in wording.identifiers(said)]
    if any(map(wording.names_overflow, (*layer.names, *heads))):
        return True
    if layer.statuses & wording.OTHER_STATUSES or wording.says_another_error(text):
        return False
    if says_overflow(text):
        found = numbers.read(text)
        # A reply longer than the window fits no window: what was sent is not the problem.
        return not (found.limit and found.output and found.output >= found.limit)
    return True if wording.TOO_LARGE_STATUS in layer.statuses else None


def _overflow(layer: Evidence) -> Overflow:
    found = numbers.read(layer.text)
    limit, requested = layer.limit or found.limit, layer.requested or found.requested
    return Overflow(limit, requested, found.output, _headline(layer))


def _headline(layer: Evidence) -> str:
    """The shortest text that says it: an exception's own text repeats the body's, with more around it."""
    telling = [text for text in layer.texts if says_overflow(text)] or layer.texts or [*layer.names]
    return " ".join(min(telling, key=len, default="").split())[:500].rstrip(". ")
