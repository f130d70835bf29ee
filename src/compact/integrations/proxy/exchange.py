"""One request of a conversation and its answer: sent, and sent again if the provider calls it too long or illegal.

The proxy repeats nothing else. Clients repeat a request themselves after 408, 409, 429 and 5xx, and respect Retry-After; a
second one who repeats would only multiply the requests.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compact.integrations.proxy.editing import Editor, Outgoing
from compact.integrations.proxy.endpoints import RESPONSES_CREATE, Route, join_url
from compact.integrations.proxy.measuring import Metrics
from compact.integrations.proxy.upstream import Answer, RawHeaders, Unreachable, Upstream, forwarded
from compact.runtime.overflow import recognise
from compact.runtime.overflow.streams import StreamRefused

log = logging.getLogger("compact")

_MOST_OF_AN_ERROR = 1_000_000
_ILLEGAL = (400, 422)
_FAMILIAR = 1.02
_MODELS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request of a client."""

    method: str
    route: Route
    query: str
    headers: RawHeaders
    raw: bytes | AsyncIterator[bytes] | None
    """The body: whole if it is a conversation's, piece by piece if it is passed through."""


class Refused(Exception):
    """A provider refused a request. The answer is kept for the client."""

    def __init__(self, answer: Answer, body: Any) -> None:
        super().__init__("the provider refused the request")
        self.answer = answer
        self.status_code = answer.status
        self.body = body


@dataclass(frozen=True, slots=True)
class _Accepted:
    """A reply that has begun. `manager.acall` looks for its usage, which has not arrived."""

    answer: Answer


class Exchanges:
    """Sends requests, and recovers those that are refused."""

    def __init__(
        self, editor: Editor, upstream: Upstream, metrics: Metrics, urls: Callable[[str], str], hold_s: float
    ) -> None:
        self._editor = editor
        self._upstream = upstream
        self._metrics = metrics
        self._url_of = urls
        self._hold_s = hold_s
        self._accepted: dict[str, int] = {}
        """The largest request that each model took, in our tokens."""

    async def pass_through(self, incoming: Incoming) -> Answer:
        """Send a request as it is. Raises Unreachable."""
        return await self._open(incoming, incoming.raw)

    async def send(self, incoming: Incoming, outgoing: Outgoing) -> Answer:
        """Send a request of a conversation, and return the answer for the client.

        Raises:
            Unreachable: there is none.
        """
        content = outgoing.content()
        answer = await self._open(incoming, content, is_new=content is not None)
        if outgoing.session is None or outgoing.conversation.endpoint.counts:
            return answer
        try:
            refused = await self._refusal(answer, is_familiar=self._is_familiar(outgoing))
            if refused is None:
                self._note_accepted(outgoing)
                return answer
            if recognise(refused.problem, outgoing.items) is not None:
                return await self._recover(incoming, outgoing, refused)
            if answer.status in _ILLEGAL and outgoing.clean is not None:
                return await self._repair(incoming, outgoing, answer)
        except BaseException:
            await answer.close()
            raise
        return answer

    async def _open(
        self,
        incoming: Incoming,
        content: bytes | AsyncIterator[bytes] | None,
        *,
        is_new: bool = False,
    ) -> Answer:
        route = incoming.route
        headers = forwarded(incoming.headers, drop=(b"content-encoding",) if is_new else ())
        if not isinstance(content, bytes):
            content = incoming.raw
        if isinstance(content, AsyncIterator):  # its length goes on with it, if the client gave one
            headers += [(name, value) for name, value in incoming.headers if name == b"content-length"]
        url = join_url(self._url_of(route.provider), route, incoming.query)
        return await self._upstream.open(incoming.method, url, headers, content)

    def _is_familiar(self, outgoing: Outgoing) -> bool:
        """Whether the model took a request of this size before, so that nothing has to be held back to see whether it does.

        A request grows a little in every turn. Only Responses refuse inside a stream as a rule, so there that little counts.
        """
        slack = 1.0 if outgoing.conversation.endpoint is RESPONSES_CREATE else _FAMILIAR
        return 0 < outgoing.tokens <= self._accepted.get(outgoing.conversation.model, 0) * slack

    def _note_accepted(self, outgoing: Outgoing) -> None:
        model = outgoing.conversation.model
        if model in self._accepted or len(self._accepted) < _MODELS:
            self._accepted[model] = max(outgoing.tokens, self._accepted.get(model, 0))

    async def _refusal(self, answer: Answer, *, is_familiar: bool = False) -> _Refusal | None:
        """Why a provider refuses; None: it answers. Of a stream only the beginning is read, unless its size is familiar."""
        if answer.status >= 400:
            body = await answer.read_all(_MOST_OF_AN_ERROR)
            return None if body is None else _Refusal(answer, Refused(answer, _parse(body)))
        if not is_familiar:
            await answer.hold(self._hold_s)
        said = answer.reader.refusal
        return None if said is None else _Refusal(answer, StreamRefused([said], answer))

    # --- sending again

    async def _recover(self, incoming: Incoming, outgoing: Outgoing, refusal: _Refusal) -> Answer:
        """Make the request smaller until the provider takes it. If that fails, the client gets its first refusal."""
        conversation, manager = outgoing.conversation, self._editor.manager
        assert outgoing.session is not None
        answered = [refusal.problem]

        async def send(kept: Sequence[Any]) -> _Accepted:
            if answered:
                raise answered.pop()  # the first request has its answer already
            smaller = Outgoing(conversation, outgoing.session, kept, edited=True, fields=outgoing.fields)
            answer = await self._open(incoming, smaller.content(), is_new=True)
            try:
                found = await self._refusal(answer)
            except BaseException:
                await answer.close()
                raise
            if found is not None:
                await answer.close()
                raise found.problem
            return _Accepted(answer)

        try:
            accepted = await manager.acall(
                outgoing.session,
                conversation.items,
                send,
                conversation.tools,
                system=conversation.system,
                dialect=conversation.endpoint.shape.dialect,
                model=conversation.model,
            )
        except Refused as other:  # something else is wrong with it, which the client should know
            if other.answer is not refusal.answer:
                await refusal.answer.close()
            return other.answer
        except Exception as problem:
            # Nothing smaller can be made, or the provider does not take it: the client decides what to do.
            log.warning("compact proxy: a refusal goes to the client: %s", type(problem).__name__)
            self._metrics.count("recovered", kind="none")
            return refusal.answer
        await refusal.answer.close()
        self._metrics.count("recovered", kind="overflow")
        answer: Answer = accepted.answer
        return answer

    async def _repair(self, incoming: Incoming, outgoing: Outgoing, refused: Answer) -> Answer:
        """Send the repaired list, once. If that is refused too, the client gets its first refusal."""
        assert outgoing.clean is not None
        repaired = Outgoing(outgoing.conversation, outgoing.session, outgoing.clean, edited=True)
        try:
            answer = await self._open(incoming, repaired.content(), is_new=True)
        except Unreachable:
            return refused
        if answer.status >= 400:
            await answer.close()
            return refused
        await refused.close()
        self._metrics.count("recovered", kind="illegal")
        return answer


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refusal, and the answer that says it."""

    answer: Answer
    problem: Exception


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
