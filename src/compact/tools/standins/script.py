"""What a stand-in is asked and what it answers, whatever the wire format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compact.tools.standins.problems import Item, Problem, Rules


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a reply. Without an `id` it gets one that is new in the session."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says."""

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""
    """Signed by the stand-in; it must come back unchanged or not at all."""
    output_tokens: int = 5
    cached_tokens: int = 0
    """How many of the input tokens are reported as read from the cache."""
    written_tokens: int = 0
    """How many are reported as written to it (Anthropic)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that a script answers with, instead of a reply."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    late: bool = False
    """Whether a streamed request gets it inside its stream, after the headers of a success."""

    @property
    def problem(self) -> Problem:
        """The same as a reason for a refusal."""
        return Problem(self.message, self.param, self.code, self.status, self.kind)


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it arrived."""

    number: int
    """Counted from 1, over all endpoints."""
    endpoint: str
    """`anthropic`, `chat`, `responses`, `gemini` or `converse`: also the name of the dialect of its messages."""
    body: Item
    headers: Mapping[str, str]
    messages: Sequence[Any]
    tokens: int = 0
    """Its size; 0 if it was refused for its form."""
    problems: Sequence[Problem] = ()
    """Why it was refused. Empty if it was accepted or if the script refused it."""
    counting: bool = False
    """Whether it only asked for its size."""
    model: str = ""
    """The model that was asked: from the body, or from the path."""
    compacting: bool = False
    """Whether it asked for the provider's own summary instead of a reply."""

    @property
    def accepted(self) -> bool:
        """Whether nothing was wrong with it."""
        return not self.problems


Answer: TypeAlias = Reply | Refusal | str
Script: TypeAlias = Callable[[Received], Answer] | Sequence[Answer]
"""A function of the request, or answers in turn; the last one is repeated."""


@dataclass(frozen=True, slots=True)
class Told:
    """A reply with what is needed to write it in a wire format."""

    reply: Reply
    number: int
    model: str
    tokens: int
    key: bytes
    body: Item = field(default_factory=dict)
    """The request that is answered."""

    def calls(self, prefix: str) -> Iterator[Call]:
        """The calls of the reply, each with an id."""
        for place, call in enumerate(self.reply.calls):
            yield call if call.id else Call(call.name, call.arguments, f"{prefix}_{self.number:04}_{place}")


@dataclass(frozen=True, slots=True)
class Route:
    """What the path of a request says, where it says more than the endpoint."""

    model: str
    streamed: bool = False
    counting: bool = False


_TOO_LARGE = Problem("Request exceeds the maximum size", status=413, kind="request_too_large")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a provider: how it judges a request and how it writes an answer."""

    name: str
    path: str
    """How the path of a request ends."""
    find_problems: Callable[[Any, Rules], list[Problem]]
    list_messages: Callable[[Item], list[Any]]
    answer: Callable[[Told], Item]
    stream: Callable[[Told], Iterator[str | bytes]]
    """The events of a streamed answer, as they are sent."""
    error: Callable[[Problem], Item]
    late_error: Callable[[Told, Problem], Iterator[str | bytes]]
    """The events of an answer that turns into an error."""
    too_long: Callable[[int, int], Problem]
    """The refusal of a request that is larger than the model's window."""
    no_room: Callable[[int, int, int], Problem]
    """The refusal of a request that leaves no room for the output it asks for: its tokens, the output, the window."""
    unauthorized: Problem
    """The refusal of a request without a key."""
    too_large: Problem = _TOO_LARGE
    """The refusal of a body of more than `max_bytes`."""
    max_bytes: int = 32_000_000
    route: Callable[[str], Route | None] | None = None
    """Reads the path where it names the model; None if the path is another's. Without it, `path` and the body say all."""
    prompt: Callable[[Item], Any] = lambda body: body.get("instructions") or body.get("system")
    """The system prompt beside the messages."""
    tools: Callable[[Item], Any] = lambda body: body.get("tools")
    """The schemas of a request's tools."""
    counted: Callable[[int], Item] = lambda tokens: {"input_tokens": tokens}
    """The answer to a request that only asks for its size."""
    error_headers: Callable[[Problem], Mapping[str, str]] = lambda _: {}
    stream_type: str = "text/event-stream"


def pieces(text: str) -> list[str]:
    """A text in the pieces in which a stream delivers it."""
    return [text[start : start + 40] for start in range(0, len(text), 40)]
