"""Codex rollouts: a header, then one item per line, bare in older files and in an envelope in newer ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.recorded_session import Marker, RecordedSession
from compact.tools.transcripts.transcript_file import JsonLine, TranscriptFile

ENVELOPES = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "security_risk_score",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
    }
)
"""The types of lines in newer files. Each has its content under `payload`."""
CONVERTED = frozenset(
    {
        "message",
        "agent_message",
        "reasoning",
        "local_shell_call",
        "local_shell_call_output",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
        "image_generation_call",
        "compaction",
        "compaction_summary",
        "context_compaction",
    }
)
"""The types of items that are part of the conversation."""
LEFT_OUT = frozenset({"additional_tools", "compaction_trigger", "ghost_snapshot", "other"})
"""The types of items that are not."""
_HEADER = frozenset(
    {"id", "timestamp", "instructions", "git", "cwd", "cli_version", "originator", "source", "model_provider"}
)
"""The keys of the first line of older files, which has no type."""
_HOST_TEXTS = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>")


def recognises(value: Any) -> bool:
    """Whether a value is a line of such a file, or the header of an older one."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind is None:
        return isinstance(value.get("id"), str) and "timestamp" in value and value.keys() <= _HEADER
    return isinstance(kind, str) and kind in ENVELOPES and isinstance(value.get("payload"), dict)


def recognises_record(value: Any) -> bool:
    """Whether a value is a whole file of the oldest kind: one object with a session and its items."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("session"), dict)
        and isinstance(value.get("items"), list)
    )


def read(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read the conversation as Responses items.

    Everything that was said is kept. What a compaction of Codex put in its place is added behind a marker; turns that were
    rolled back are left out. Events repeat for the interface what the items say, and are left out.
    """
    rollout = _Rollout(file)
    for line in lines:
        rollout.add(line)
    yield rollout.session()


def read_record(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a file of the oldest kind."""
    del name
    rollout = _Rollout(file)
    rollout.begin(line.value["session"])
    for item in line.value["items"]:
        rollout.add(JsonLine(line.line, item))
    yield rollout.session()


class _Rollout:
    """A rollout in the reading."""

    def __init__(self, file: TranscriptFile) -> None:
        self._file = file
        self._items: list[dict[str, Any]] = []
        self._markers: list[Marker] = []
        self._id = self._system = self._model = ""

    def session(self) -> RecordedSession:
        return RecordedSession(
            id=self._id or self._file.name,
            messages=self._items,
            format="codex",
            dialect="responses",
            system=self._system or None,
            model=self._model or None,
            markers=self._markers,
        )

    def add(self, line: JsonLine) -> None:
        value = line.value
        if not isinstance(value, dict):
            self._file.reject(line.line, "it is not a Codex record")
            return
        kind, payload = value.get("type"), value.get("payload")
        if recognises(value) and kind is None:
            self.begin(value)
        elif kind is None and "record_type" in value:
            self._file.leave_out(f"record {value['record_type']!s:.40}")
        elif not isinstance(kind, str):
            self._file.note(line.line, "it is not a Codex record: it has no type")
        elif kind not in ENVELOPES:
            self._item(value, line.line)
        elif not isinstance(payload, dict):
            self._file.note(line.line, f"its payload is a {type(payload).__name__}, not an object")
        elif kind == "session_meta":
            self.begin(payload)
        elif kind == "response_item":
            self._item(payload, line.line)
        elif kind == "inter_agent_communication":
            self._item({"type": "agent_message", **payload}, line.line)
        elif kind == "compacted":
            self._compacted(payload, line.line)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            self._roll_back(payload.get("num_turns"))
        else:
            self._model = text_or_empty(payload.get("model")) or self._model
            self._file.leave_out(kind)

    def begin(self, header: dict[str, Any]) -> None:
        """Take what the header says. A fork repeats the header of the session it came from; the first one counts."""
        base = header.get("base_instructions")
        base = base.get("text") if isinstance(base, dict) else base
        self._id = self._id or text_or_empty(header.get("id"))
        self._system = self._system or text_or_empty(base) or text_or_empty(header.get("instructions"))
        self._model = self._model or text_or_empty(header.get("model"))

    def _item(self, item: dict[str, Any], line: int) -> None:
        kind = text_or_empty(item.get("type"))
        if kind in LEFT_OUT:
            self._file.leave_out(kind)
        elif kind not in CONVERTED:
            self._file.note(line, f"its type {kind!r:.60} is not known")
        elif kind == "message" and not isinstance(item.get("role"), str):
            self._file.note(line, "its message has no role")
        else:
            self._items.append(_as_sent(item))

    def _compacted(self, payload: dict[str, Any], line: int) -> None:
        """Mark the place, and add what is new in the history that replaced the old one."""
        summary = text_or_empty(payload.get("message"))
        self._markers.append(Marker(len(self._items), "boundary", summary))
        replacement = payload.get("replacement_history")
        if not isinstance(replacement, list):
            said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}
            replacement = [said] if summary else []
        known = [{**item, "meta": None} for item in self._items]
        for item in replacement:
            if not isinstance(item, dict):
                self._file.note(line, "an item of its replacement history is not an object")
            elif {**_as_sent(item), "meta": None} not in known:
                place = len(self._items)
                self._item(item, line)
                if len(self._items) > place and item.get("role") == "user":
                    self._items[place] = {**self._items[place], "meta": {"injected": True}}
                    self._markers.append(Marker(place, "summary"))

    def _roll_back(self, turns: Any) -> None:
        wanted = turns if isinstance(turns, int) else 0
        starts = [
            n for n, item in enumerate(self._items) if item.get("role") == "user" and "meta" not in item
        ]
        if wanted <= 0 or not starts:
            return
        cut = starts[max(0, len(starts) - wanted)]
        self._file.leave_out("rolled-back item", len(self._items) - cut)
        self._items = self._items[:cut]
        self._markers = [marker for marker in self._markers if marker.index <= cut]


def _as_sent(item: dict[str, Any]) -> dict[str, Any]:
    """An item as the model got it. Texts that Codex writes in the user's role are marked."""
    if item.get("type") == "agent_message":
        said = item.get("content")
        return {**item, "type": "message", "role": "user", "content": said, "meta": {"injected": True}}
    output = item.get("output")
    if isinstance(output, dict) and "content" in output:  # older files: {"content", "success"}
        item = {**item, "output": output["content"]}
    if item.get("role") == "user" and _first_text(item).startswith(_HOST_TEXTS):
        return {**item, "meta": {"injected": True}}
    return item


def _first_text(item: dict[str, Any]) -> str:
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else content
    return text_or_empty(first.get("text") if isinstance(first, dict) else first).lstrip()
