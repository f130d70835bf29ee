"""Is this error a context overflow, and what does it say about the window? Pure; no SDK is imported.

    layers     an error and its causes, outermost first (evidence.py)
    names      codes, types and class names: `context_length_exceeded`, `ContextWindowExceededError` (wording.py)
    wording    sentences that say that a prompt does not fit, in any provider's words (compact.errors)
    numbers    which number in them is the limit and which the request (numbers.py)
    echoes     what an error repeats of the request is not the provider's word (echoes.py)

The outermost layer with a verdict decides. A disconnect that was raised from an overflow is a disconnect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compact.errors import CompactError, says_overflow
from compact.runtime.overflow import echoes, evidence, numbers, wording
from compact.runtime.overflow.evidence import Evidence

__all__ = ["Overflow", "recognise", "recognise_reply"]


@dataclass(frozen=True, slots=True)
class Overflow:
    """A provider refused a request as too long. Numbers are the provider's tokens; None if it did not say."""

    limit: int | None
    """The most that it accepts: input alone, or input and output if it counts them together."""
    requested: int | None
    """What the request would have taken, output included where the provider counts it."""
    output: int | None
    """The part of `requested` that was reserved for the reply. For a reply that was cut, its length."""
    message: str
    """The provider's message, in one line."""
    in_reply: bool = False
    """The request was accepted, but its reply reached the end of the window and is incomplete."""
    by_code: bool = False
    """The provider said it by a code or an error class, not only in words, and the request does not contain that name."""

    @property
    def input(self) -> int | None:
        """What the provider counted for the messages and tools alone."""
        return None if self.requested is None else self.requested - (self.output or 0)

    @property
    def is_output_alone(self) -> bool:
        """Whether the reply's share exceeds the limit even without any message, so that no smaller request can help."""
        return self.limit is not None and self.output is not None and self.output >= self.limit


def recognise(problem: Any, sent: Any = None) -> Overflow | None:
    """Return the overflow that an exception, a response, an error body or an error's text reports; None for other errors.

    Other errors are rate limits and quotas, an output limit that alone is too large, timeouts, refused parameters, and
    every error that compact itself raises. What an error repeats of `sent`, the messages of the request, tells nothing, and
    numbers and names that stand there too are no evidence of a limit.
    """
    if isinstance(problem, CompactError):
        return None
    for layer in evidence.layers(problem):
        if sent is not None:
            layer.texts = echoes.without_echoes(layer.texts, sent)
        verdict = _verdict(layer)
        if verdict is not None:
            return _overflow(layer, sent) if verdict and not _only_repeats(layer, sent) else None
    return None


def recognise_reply(reply: Any, sent: Any = None) -> Overflow | None:
    """Return the overflow that a reply reports instead of an answer, or that cut it; None for every other reply.

    A reply that was cut at its own limit (`max_tokens`) is an answer, because a smaller request would not make it longer.
    """
    reported = evidence.reported_error(reply)
    if reported is not None:
        return recognise(reported, sent)
    if evidence.stop_reasons(reply) & wording.WINDOW_ENDED:
        said = "the reply ran into the end of the context window"
        return Overflow(None, None, evidence.reply_tokens(reply), said, in_reply=True)
    return None


def _verdict(layer: Evidence) -> bool | None:
    """Return True for an overflow, False for clearly another error, and None if this layer does not say."""
    text = layer.text
    if any(map(wording.names_another_error, layer.names)):
        return False
    if any(map(wording.names_overflow, layer.names)):
        return True
    if any(map(wording.names_refused_content, layer.codes)):
        return False
    if any(wording.names_overflow(name) for said in layer.texts for name in wording.identifiers(said)):
        return True
    if layer.statuses & wording.OTHER_STATUSES or wording.says_another_error(text):
        return False
    if says_overflow(text):
        found = numbers.read(text)
        # A reply longer than the window never fits, so the request is not the problem.
        return not (found.limit and found.output and found.output >= found.limit)
    return True if wording.TOO_LARGE_STATUS in layer.statuses else None


def _only_repeats(layer: Evidence, sent: Any) -> bool:
    """Whether an error says by its code what it is, and has the word about a length from the request."""
    if sent is None or not any(map(wording.names_its_own_error, layer.codes)):
        return False
    return not _unrepeated_names(layer, echoes.text_of(sent)) and echoes.contains(sent, layer.texts)


def _overflow(layer: Evidence, sent: Any) -> Overflow:
    found = numbers.read(layer.text)
    limit, requested = layer.limit or found.limit, layer.requested or found.requested
    said = "" if sent is None else echoes.text_of(sent)
    by_code = bool(_unrepeated_names(layer, said))
    overflow = Overflow(limit, requested, found.output, _headline(layer), by_code=by_code)
    return _without_numbers(overflow, numbers.values_in(said))


def _unrepeated_names(layer: Evidence, sent: str) -> list[str]:
    """The names of an overflow that the request's own text does not contain."""
    spoken = sent.casefold()
    return [name for name in layer.names if wording.names_overflow(name) and name.casefold() not in spoken]


def _without_numbers(overflow: Overflow, known: set[int]) -> Overflow:
    """The overflow without the numbers that the request contains. Who wrote them there may have written them here too."""
    if overflow.limit in known:
        overflow = replace(overflow, limit=None)
    if overflow.requested in known or overflow.output in known:
        overflow = replace(overflow, requested=None, output=None)
    return overflow


def _headline(layer: Evidence) -> str:
    """Return the shortest text that says it. The text of an exception repeats that of the body, with more around it."""
    telling = [text for text in layer.texts if says_overflow(text)] or layer.texts or [*layer.names]
    return " ".join(min(telling, key=len, default="").split())[:500].rstrip(". ")
