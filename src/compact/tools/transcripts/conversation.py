"""Anthropic messages out of a log that has one line per block, per result, or per retry."""

from __future__ import annotations

from typing import Any


class Conversation:
    """Grows a list of messages so that one reply is one message, and one batch of results is one message."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._reply: dict[str, Any] | None = None
        self._reply_id: str | None = None
        self._results: dict[str, Any] | None = None

    def user(self, content: Any, *, injected: bool = False) -> None:
        """What a person wrote, or, when `injected`, what the host put in the person's mouth."""
        self._reply = self._reply_id = self._results = None
        self._add("user", content, {"injected": True} if injected else {})

    def reply(
        self, blocks: list[Any], reply_id: str | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Blocks of the model's reply. More of the same reply may come even after its first results."""
        if self._reply is not None and reply_id is not None and reply_id == self._reply_id:
            self._reply["content"].extend(blocks)
            return
        self._reply = self._add("assistant", list(blocks), meta or {})
        self._reply_id = reply_id
        self._results = None

    def results(self, blocks: list[Any]) -> None:
        """Results of the reply's calls, wherever else the line has text behind them."""
        if self._results is None:
            self._results = self._add("user", list(blocks), {})
            return
        together = self._results["content"] + blocks
        # Providers want all results of a batch first, then text.
        together.sort(key=lambda block: block.get("type") != "tool_result")
        self._results["content"] = together

    def _add(self, role: str, content: Any, meta: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": role, "content": content}
        if meta:
            message["meta"] = meta
        self.messages.append(message)
        return message
