"""Requests with a conversation, read with the one before at hand."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compact.integrations.nested_requests import list_tools
from compact.integrations.proxy.codings import decode
from compact.integrations.proxy.endpoints import Endpoint, Headers, Route
from compact.integrations.proxy.naming import client_id, head_id, is_session
from compact.integrations.proxy.splicing import Body, Unreadable, read_body

_REMEMBERED, _REMEMBERED_CHARS = 128, 32_000_000
"""Bodies, and their text, that are kept, so that the next request of a session is read quickly."""
_HEAD_BYTES = 512
_OUTPUT = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A request with a conversation that compact knows."""

    endpoint: Endpoint
    body: Body
    model: str
    system: Any
    tools: Any
    given: str | None
    """The client's own id, or the name of the list's head. None: it is no session (a probe, a request for a title), or the
    provider keeps its history."""

    @property
    def items(self) -> Sequence[Any]:
        """The client's messages."""
        return self.body.items


class Conversations:
    """Reads the requests of all clients."""

    def __init__(self, max_body_bytes: int) -> None:
        self._most = max_body_bytes
        self._known: OrderedDict[tuple[str, str, bytes], Body] = OrderedDict()
        self._chars = 0

    def read(self, route: Route, headers: Headers, raw: bytes) -> Conversation:
        """Read a request.

        Raises:
            Undecodable: it is in a coding that is not known, or not in the one that it names.
            TooLarge: unpacked, it is longer than a body may be.
            Unreadable: it is not the JSON of a request, or not in UTF-8.
        """
        endpoint = route.endpoint
        assert endpoint is not None
        body = self._read_body(
            endpoint, headers, decode(raw, headers.get("content-encoding", ""), self._most)
        )
        model = route.model or body.get("model")
        if not isinstance(model, str) or not model:
            raise Unreadable("the request names no model")
        tools = body.get("tools", "functions")
        if endpoint.provider == "gemini":
            tools = list_tools(tools)
        system = body.get(*endpoint.prompts) if endpoint.prompts else None
        given = None
        is_kept = any(body.get(name) is not None for name in endpoint.shape.server_managed)
        if body.items and not is_kept and is_session(body.items, tools, body.get(*_OUTPUT)):
            given = client_id(headers) or head_id(body.items, headers, endpoint)
        return Conversation(
            endpoint=endpoint, body=body, model=model, system=system, tools=tools, given=given
        )

    def _read_body(self, endpoint: Endpoint, headers: Headers, raw: bytes) -> Body:
        key = (endpoint.name, client_id(headers) or "", raw[:_HEAD_BYTES])
        before = self._known.pop(key, None)
        self._chars -= 0 if before is None else len(before.text)
        try:
            text = raw.decode()
        except UnicodeDecodeError as problem:
            raise Unreadable("the body is not UTF-8") from problem
        body = read_body(text, endpoint.shape.messages, before)
        self._known[key] = body
        self._chars += len(text)
        while len(self._known) > _REMEMBERED or (self._chars > _REMEMBERED_CHARS and len(self._known) > 1):
            self._chars -= len(self._known.popitem(last=False)[1].text)
        return body
