"""ChatGPT exports: `conversations.json`, a list of conversations, each a tree of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compact.messages import to_json
from compact.tools.transcripts.chat_messages import call, content_of, injected, reply, result, text_block
from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

TEXT_FIELDS = {
    "code": ("text",),
    "execution_output": ("text",),
    "sonic_webpage": ("title", "url", "text"),
    "model_editable_context": ("model_set_context", "repository"),
    "system_error": ("name", "text"),
    "tether_browsing_code": ("text",),
    "tether_browsing_display": ("result", "summary"),
    "tether_quote": ("title", "url", "text"),
    "user_editable_context": ("user_profile", "user_instructions"),
}
"""The content types that are not made of parts, and their fields with text."""
_PARTS = ("text", "multimodal_text")
_HOST_CONTEXT = ("user_editable_context", "model_editable_context")


def recognises(value: Any) -> bool:
    """Whether a value is a conversation, or a list of them."""
    found = value if isinstance(value, list) else [value]
    return bool(found) and all(
        isinstance(each, dict) and isinstance(each.get("mapping"), dict) for each in found
    )


def read(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read each conversation as OpenAI chat messages: the branch that the user saw last."""
    found = line.value if isinstance(line.value, list) else [line.value]
    for place, value in enumerate(found, 1):
        own = text_or_empty(value.get("conversation_id")) or text_or_empty(value.get("id"))
        talk = _Talk(file, line.line)
        branch = _branch(value)
        for node in branch:
            talk.add(node.get("message"))
        spoken = [
            node for node in value["mapping"].values() if isinstance(node, dict) and node.get("message")
        ]
        file.leave_out(
            "message of another branch", len(spoken) - sum(1 for node in branch if node.get("message"))
        )
        yield RecordedSession(
            id=own or (name if len(found) == 1 else f"{name}-{place}"),
            messages=talk.finish(),
            format="chatgpt",
            dialect="chat",
            model=talk.model or text_or_empty(value.get("default_model_slug")) or None,
        )


def _branch(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes from the root to the current one; without a current one, the longest branch."""
    nodes = {name: node for name, node in value["mapping"].items() if isinstance(node, dict)}
    current = text_or_empty(value.get("current_node"))
    ends = (
        [current] if current in nodes else [name for name, node in nodes.items() if not node.get("children")]
    )
    return max((_path_to(end, nodes) for end in ends), key=len, default=[])


def _path_to(name: str, nodes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    path: dict[str, dict[str, Any]] = {}
    while name in nodes and name not in path:  # a damaged file may go in a circle
        path[name] = nodes[name]
        name = text_or_empty(nodes[name].get("parent"))
    return list(path.values())[::-1]


class _Talk:
    """Messages in the making."""

    def __init__(self, file: TranscriptFile, line: int) -> None:
        self.model = ""
        self._messages: list[dict[str, Any]] = []
        self._file = file
        self._line = line
        self._thoughts: list[str] = []
        self._open: dict[str, str] = {}
        self._answer: dict[str, Any] | None = None

    def finish(self) -> list[dict[str, Any]]:
        """Return the messages. Thoughts that nothing followed are a reply of their own."""
        if self._thoughts:
            self._messages.append(reply("", reasoning=self._take_thoughts()))
        return self._messages

    def add(self, message: Any) -> None:
        """Add one message of the tree."""
        if message is None:
            return  # the root has none
        author = message.get("author") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(author, dict) or not isinstance(content, dict):
            self._file.note(self._line, "a message of it has no author or no content")
            return
        kind, role = text_or_empty(content.get("content_type")), text_or_empty(author.get("role"))
        if kind == "thoughts":
            self._thoughts += _thoughts(content)
            return
        if kind == "reasoning_recap":
            self._file.leave_out("reasoning_recap")
            return
        blocks = self._blocks(content)
        metadata = message.get("metadata")
        if blocks is None:
            return
        if not blocks and text_or_empty(author.get("name")) in self._open:
            blocks = [text_block("")]  # a tool that printed nothing has answered all the same
        if not blocks:
            self._file.leave_out(f"empty {role} message")
        elif role == "assistant":
            slug = metadata.get("model_slug") if isinstance(metadata, dict) else None
            self.model = text_or_empty(slug) or self.model
            self._reply(message, blocks)
        elif role == "tool":
            self._tool(text_or_empty(author.get("name")), blocks)
        elif role in ("user", "system"):
            said = {"role": role, "content": content_of(blocks)}
            self._answer = None
            self._messages.append(injected(said) if kind in _HOST_CONTEXT else said)
        else:
            self._file.note(self._line, f"messages of role {role!r:.40} are not known")

    def _reply(self, message: dict[str, Any], blocks: list[dict[str, Any]]) -> None:
        to = text_or_empty(message.get("recipient")) or "all"
        self._answer = None
        if to == "all":
            self._messages.append(reply(content_of(blocks), reasoning=self._take_thoughts()))
            return
        call_id = text_or_empty(message.get("id")) or f"call_{len(self._messages)}"
        text = "\n".join(text_or_empty(block.get("text")) for block in blocks)
        arguments = text if text.lstrip().startswith("{") else to_json({"input": text})
        name = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "_-") else "_" for sign in to)[
            :64
        ]
        self._open[to] = call_id
        self._messages.append(reply(None, [call(call_id, name, arguments)], self._take_thoughts()))

    def _tool(self, name: str, blocks: list[dict[str, Any]]) -> None:
        """Add what a tool returned: to the call that it answers, to its own earlier part, or as the host's words."""
        call_id = self._open.pop(name, None)
        if call_id is None and self._open and self._messages and self._messages[-1].get("tool_calls"):
            call_id = self._open.pop(next(reversed(self._open)))
        if call_id is not None:
            self._answer = result(call_id, content_of(blocks))
            self._messages.append(self._answer)
        elif self._answer is not None:
            before = self._answer["content"]
            earlier = ([text_block(before)] if before else []) if isinstance(before, str) else before
            self._answer["content"] = content_of([*earlier, *blocks])
        else:
            self._messages.append(injected({"role": "user", "content": content_of(blocks)}))

    def _blocks(self, content: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The blocks of a content that have anything to say; None if its type is not known and nothing in it is text."""
        kind = text_or_empty(content.get("content_type"))
        if kind in _PARTS or isinstance(content.get("parts"), list):
            texts = [_part(part) for part in _list(content.get("parts"))]
        elif kind in TEXT_FIELDS:
            texts = [text_or_empty(content.get(key)) for key in TEXT_FIELDS[kind]]
        else:
            texts = [text_or_empty(content.get(key)) for key in ("text", "result", "content")]
            if not any(texts):
                self._file.note(self._line, f"a message's content type {kind!r:.60} is not known")
                return None
        said = [text for text in texts if text]
        joined = kind in TEXT_FIELDS and len(said) > 1
        return [text_block(text) for text in (["\n".join(said)] if joined else said)]

    def _take_thoughts(self) -> str:
        found, self._thoughts = "\n".join(self._thoughts), []
        return found


def _part(part: Any) -> str:
    """A part as text. Pictures and sounds lie in other files of the export; their names are kept."""
    if not isinstance(part, dict):
        return text_or_empty(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    pointer = part.get("asset_pointer")
    what = text_or_empty(part.get("content_type")).removesuffix("_asset_pointer") or "part"
    return f"[{what} {pointer}]" if isinstance(pointer, str) else to_json(part)


def _thoughts(content: dict[str, Any]) -> list[str]:
    found = []
    for thought in _list(content.get("thoughts")):
        if isinstance(thought, dict):
            said = text_or_empty(thought.get("summary")), text_or_empty(thought.get("content"))
            found.append("\n".join(filter(None, said)))
    return [text for text in found if text]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
