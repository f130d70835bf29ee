"""Build Anthropic messages from a log with one line per block, per result, or per retry."""

from __future__ import annotations

from typing import Any


def text_or_empty(value: Any) -> str:
    """A value that should be text, or nothing."""
    return value if isinstance(value, str) else ""


def as_blocks(content: Any) -> Any:
    """Content that may be plain text, as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def chat_message(role: Any, source: dict[str, Any]) -> dict[str, Any]:
    """An OpenAI chat message with the content and the calls of another."""
    message = {"role": role, "content": source.get("content")}
    return {**message, "tool_calls": source["tool_calls"]} if source.get("tool_calls") else message


def message_problem(message: Any) -> str | None:
    """What is wrong with a message of text or blocks; None if nothing is."""
    if not isinstance(message, dict):
        return f"its message is a {type(message).__name__}, not an object"
    content = as_blocks(message.get("content"))
    if not isinstance(content, list):
        return "its message has no content"
    if not all(isinstance(block, dict) for block in content):
        return "its message's content is not made of blocks"
    return None


class Conversation:
    """Messages in the making. Each reply becomes one message, and so does each batch of results."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._reply: dict[str, Any] | None = None
        self._reply_id: str | None = None
        self._results: dict[str, Any] | None = None

    def user(self, content: Any, *, injected: bool = False) -> None:
        """Add what a person wrote, or, with `injected`, what the host wrote in the user's role."""
        self._reply = self._reply_id = self._results = None
        self._add("user", content, {"injected": True} if injected else {})

    def reply(
        self, blocks: list[Any], reply_id: str | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        """Add blocks of the model's reply. More of the same reply may follow, even after its first results."""
        if self._reply is not None and reply_id is not None and reply_id == self._reply_id:
            self._reply["content"].extend(blocks)
            return
        self._reply = self._add("assistant", list(blocks), meta or {})
        self._reply_id = reply_id
        self._results = None

    def results(self, blocks: list[Any]) -> None:
        """Add results of the reply's calls, and any text that follows them."""
        if self._results is None:
            self._results = self._add("user", list(blocks), {})
            return
        # Providers want all results of a batch first, then text.
        together = self._results["content"] + blocks
        self._results["content"] = sorted(together, key=lambda block: block.get("type") != "tool_result")

    def _add(self, role: str, content: Any, meta: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": role, "content": content}
        if meta:
            message["meta"] = meta
        self.messages.append(message)
        return message
