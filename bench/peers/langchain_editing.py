"""LangChain: `ContextEditingMiddleware` clears the older tool outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from bench.peers import Compaction, Item, Native, Peer, _langchain

_KEPT = (256, 128, 64, 32, 16, 8, 4, 2, 1, 0)


class Tool(Peer):
    """Called as the agent calls it: a request and a handler."""

    TITLE = "LangChain context editing"
    DISTRIBUTION = "langchain"
    IMPORT = "from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware"
    CALLED = "`ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=budget)])`; for retention first `trigger=0` and `keep=` 256 to 0, then also `clear_tool_inputs=True`"
    BETTER = "one line in a LangChain agent; it removes no message, so the order of events stays readable"
    DEFAULT_KEEPS_MOST = False

    def load(self, messages: list[Item]) -> Native:
        """See `Peer.load`."""
        return _langchain.load(messages)

    def back(self, native: Native) -> list[Item]:
        """See `Peer.back`."""
        return _langchain.back(native)

    def below(self, native: Native) -> Callable[[Native], Any]:
        """See `Peer.below`."""
        return self.default(100_000_000)

    def default(self, budget: int) -> Compaction:
        """See `Peer.default`."""
        return _edited(ClearToolUsesEdit(trigger=budget))

    def tuned(self, budget: int) -> Iterator[Compaction]:
        """See `Peer.tuned`."""
        for kept in _KEPT:
            yield _edited(ClearToolUsesEdit(trigger=0, keep=kept))
        yield _edited(ClearToolUsesEdit(trigger=0, keep=0, clear_tool_inputs=True))


def _edited(edit: ClearToolUsesEdit) -> Compaction:
    middleware: ContextEditingMiddleware[Any, Any] = ContextEditingMiddleware(edits=[edit])
    model = FakeListChatModel(responses=["ok"])

    def compact(native: Native) -> Native:
        seen: list[Native] = []

        def answer(request: ModelRequest[Any]) -> ModelResponse[Any]:
            seen.append(list(request.messages))
            return ModelResponse(result=[AIMessage(content="ok")])

        middleware.wrap_model_call(ModelRequest(model=model, messages=native), answer)
        return seen[0]

    return compact
