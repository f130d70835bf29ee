"""What a stand-in is asked and what it answers, whatever the wire format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from compact.tools.standins.caching import Billed, CacheRules, Life, Looked, Place
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
    cached_tokens: int | None = None
    """How many of the input tokens are reported as read from the cache. None: what its own cache says."""
    written_tokens: int | None = None
    """How many are reported as written to it. None: what its own cache says."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that a script answers with, instead of a reply."""

    status: int
    message: str
    kind: str = ""
    """The `type` of the error. Empty: the provider's own for the status."""
    code: str | None = None
    param: str | None = None
    late: bool = False
    """Whether a streamed request gets it inside its stream, after the headers of a success."""
    behind: str = ""
    """What the model says in that stream before it."""
    headers: Mapping[str, str] = field(default_factory=dict)


FaultKind: TypeAlias = Literal["rate_limited", "server_error", "overloaded", "hang", "reset"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, instead of a reply: a refusal in the provider's own words, or a connection that fails.

    `rate_limited` is a 429 with Retry-After, `server_error` a 500, `overloaded` a 529 of Anthropic and a 503 of the others. `hang`
    answers nothing until the client or the stand-in ends. `reset` begins a reply and cuts the connection inside it.
    """

    kind: FaultKind
    retry_after_s: int = 1
    reply: Reply = Reply("This is begun and never ended.")
    """What `reset` begins."""
    after_events: int = 2
    """How many events of a stream come before the cut. What is not streamed is cut in the middle of its body."""


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
    turn: int = 0
    """How many replies of the model the conversation has had. It is found by the ids of the stand-in's calls, so it holds
    when the beginning of the list was compacted, when a request is repeated, and for several conversations at once."""
    has_tools: bool = False
    """Whether it offers tools. What clients ask beside a conversation, such as a title, has none."""
    looked: Looked = field(default_factory=Looked)
    """What the prompt cache had of it (`looked.billed`), and what the cache keeps of it once it is answered."""

    @property
    def accepted(self) -> bool:
        """Whether nothing was wrong with it."""
        return not self.problems


Answer: TypeAlias = Reply | Refusal | Fault | str
Script: TypeAlias = Callable[[Received], Answer] | Sequence[Answer]
"""A function of the request, or answers in turn; the last one is repeated."""


def by_turn(
    answers: Sequence[Answer | Sequence[Answer]], aside: Answer = "Yes."
) -> Callable[[Received], Answer]:
    """Make a script for sessions: one answer for each turn, and `aside` for what a client asks beside its conversation.

    `answers[0]` replies to a conversation without replies, `answers[1]` to one with a single reply, and so on; the last one is
    repeated. A list in the place of an answer is given try by try: `[Fault("overloaded"), Reply("Now.")]`. A request without
    tools is beside the conversation.
    """
    tries: Counter[tuple[int, str]] = Counter()

    def answer(request: Received) -> Answer:
        if not request.has_tools:
            return aside
        found = answers[min(request.turn, len(answers) - 1)]
        if not isinstance(found, list | tuple):
            return found  # type: ignore[return-value]  # a text is a sequence too
        asked = request.turn, json.dumps(request.messages[-1:], sort_keys=True)
        tries[asked] += 1
        return found[min(tries[asked], len(found)) - 1]  # type: ignore[no-any-return]

    return answer


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
    billed: Billed = field(default_factory=Billed)
    """What its own cache had of the request."""

    @property
    def read_tokens(self) -> int:
        """The input tokens that are reported as read from the cache."""
        return self.billed.read if self.reply.cached_tokens is None else self.reply.cached_tokens

    @property
    def written(self) -> Mapping[Life, int]:
        """The input tokens that are reported as written to the cache, by how long they are kept."""
        if self.reply.written_tokens is None:
            return self.billed.written
        return {"5m": self.reply.written_tokens}

    @property
    def written_tokens(self) -> int:
        """All input tokens that are reported as written to the cache."""
        return sum(self.written.values())

    @property
    def fresh_tokens(self) -> int:
        """The input tokens that are neither read from the cache nor written to it."""
        return max(0, self.tokens - self.read_tokens - self.written_tokens)

    def calls(self, prefix: str) -> Iterator[Call]:
        """The calls of the reply, each with an id."""
        return name_calls(self.reply, prefix, self.number)


def name_calls(reply: Reply, prefix: str, number: int) -> Iterator[Call]:
    """The calls of the reply to a request of this number, each with an id that is new in the session."""
    for place, call in enumerate(reply.calls):
        yield call if call.id else Call(call.name, call.arguments, f"{prefix}_{number:04}_{place}")


@dataclass(frozen=True, slots=True)
class Route:
    """What the path of a request says, where it says more than the endpoint."""

    model: str
    streamed: bool = False
    counting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address of a provider: how it judges a request and how it writes an answer."""

    name: str
    path: str
    """How the path of a request ends."""
    find_problems: Callable[[Any, Rules], list[Problem]]
    messages: str
    """The field of a request that holds its messages."""
    answer: Callable[[Told], Item]
    stream: Callable[[Told], Iterator[str | bytes]]
    """The events of a streamed answer, as they are sent."""
    error: Callable[[Problem], Item]
    late_error: Callable[[Told, Problem], Iterator[str | bytes]]
    """The events of an answer that turns into an error, behind what the reply says."""
    too_long: Callable[[int, int], Problem]
    """The refusal of a request that is larger than the model's window."""
    no_room: Callable[[int, int, int], Problem]
    """The refusal of a request that leaves no room for the output it asks for: its tokens, the output, the window."""
    unauthorized: Problem
    """The refusal of a request without a key."""
    too_large: Callable[[int], Problem]
    """Takes the largest size in bytes, and returns the refusal of a larger body."""
    max_bytes: int
    faults: Mapping[FaultKind, Problem]
    """What goes wrong at the provider itself."""
    kinds: Mapping[int, str]
    """The `type` of an error by its status."""
    places: Callable[[Item], list[Place]]
    """Where a request may be cut for the prompt cache."""
    cache: Callable[[Item], CacheRules]
    """How the prompt cache of a request's model works."""
    route: Callable[[str], Route | None] | None = None
    """Reads the path where it names the model; None if the path is another's. Without it, `path` and the body say all."""
    counting: str | None = None
    """How the path of a request ends that only asks for its size, where `route` does not say so."""
    counted_body: Callable[[Item], Item] = lambda body: body
    """The request inside the body of one that only asks for its size."""
    counted: Callable[[int], Item] = lambda tokens: {"input_tokens": tokens}
    """The answer to a request that only asks for its size."""
    call_prefix: str = "call"
    """How the ids of its calls begin."""
    prompt: Callable[[Item], Any] = lambda body: body.get("instructions") or body.get("system")
    """The system prompt beside the messages."""
    tools: Callable[[Item], Any] = lambda body: body.get("tools")
    """The schemas of a request's tools."""
    error_headers: Callable[[Problem], Mapping[str, str]] = lambda _: {}
    stream_type: str = "text/event-stream"

    def list_messages(self, body: Item) -> list[Any]:
        """The messages of a request; a text is one of the user's."""
        found = body.get(self.messages)
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        return found if isinstance(found, list) else []


def pieces(text: str) -> list[str]:
    """A text in the pieces in which a stream delivers it."""
    return [text[start : start + 40] for start in range(0, len(text), 40)]


def sent_event(data: Item, *, named: bool = False, end: str = "\n") -> str:
    """One server-sent event; `named` after the `type` of its data."""
    name = f"event: {data['type']}{end}" if named else ""
    return f"{name}data: {json.dumps(data)}{end}{end}"
