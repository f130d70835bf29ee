"""Plain formats: a list of messages, a request body, a list of artifacts, one message per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compact.messages.dialects import get
from compact.tools.transcripts.conversation import text_or_empty
from compact.tools.transcripts.recorded_session import RecordedSession
from compact.tools.transcripts.transcript_file import (
    FORMATS_HINT,
    JsonLine,
    TranscriptFile,
    fail,
    keys_in_words,
)

_LISTS = ("messages", "artifacts", "input")
_SPEECH = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
"""What a message with a role has at least one of."""
ITEMS = frozenset(
    {
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "compaction_summary",
        "computer_call",
        "computer_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "function_call",
        "function_call_output",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "reasoning",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
"""The types of OpenAI Responses items. Items of other types are read only among these."""
_ITEM_FIELDS = frozenset({"id", "call_id", "status", "summary", "encrypted_content", "approval_request_id"})


def recognises_session(value: Any) -> bool:
    """Whether a value is a whole session: a list, or an object with a list of messages, artifacts or input items."""
    if isinstance(value, list):
        return True
    if not isinstance(value, dict) or "role" in value:
        return False
    return any(isinstance(value.get(key), list) for key in _LISTS) or (
        isinstance(value.get("input"), str) and "type" not in value
    )


def read_session(line: JsonLine, name: str, file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a value that is a whole session."""
    value = line.value
    if isinstance(value, list):
        messages = _understood(value, line.line, file)
        yield RecordedSession(id=name, messages=messages, format="messages")
        return
    session_id = str(value.get("id") or value.get("session_id") or name)
    if isinstance(value.get("artifacts"), list):
        artifacts = value["artifacts"]
        yield RecordedSession(id=session_id, messages=artifacts, format="artifacts", dialect="harness")
        return
    own = "messages" if isinstance(value.get("messages"), list) else "input"
    messages = value[own]
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    bedrock = value.get("toolConfig")
    tools = bedrock.get("tools") if isinstance(bedrock, dict) else value.get("tools")
    model = value.get("model", value.get("modelId"))
    yield RecordedSession(
        id=session_id,
        messages=_understood(messages, line.line, file),
        format="session" if own == "messages" else "responses_request",
        dialect="responses" if own == "input" else None,
        system=value.get("system") if own == "messages" else value.get("instructions"),
        tools=tools if isinstance(tools, list) else None,
        model=model if isinstance(model, str) else None,
    )


def recognises_message(value: Any) -> bool:
    """Whether a value can be a message of some dialect."""
    return isinstance(value, dict) and _problem(value, among_items=True) is None


def read_messages(lines: Iterator[JsonLine], file: TranscriptFile) -> Iterator[RecordedSession]:
    """Read a file with one message per line."""
    found = list(lines)
    among_items = any(map(_is_item, (line.value for line in found)))
    messages = []
    for line in found:
        problem = _problem(line.value, among_items)
        if problem is None:
            messages.append(line.value)
        else:
            file.reject(line.line, f"it is not a message: {problem}")
    yield RecordedSession(id=file.name, messages=messages, format="message_lines")


def _understood(entries: Sequence[Any], line: int, file: TranscriptFile) -> list[Any]:
    """Check that every entry of a list is a message. Raises an error, or skips it if lenient."""
    among_items = any(map(_is_item, entries))
    messages = []
    for place, entry in enumerate(entries):
        problem = _problem(entry, among_items)
        if problem is None:
            messages.append(entry)
            continue
        what = f"messages[{place}] is not a message: {problem}"
        if not file.lenient:
            fail(file.path, what, line=line, hint=_advice(entry) or FORMATS_HINT)
        file.note(line, what)
    return messages


def refusal(value: Any) -> tuple[str, str] | None:
    """For a shape that is known but not supported: what it is, and what to do."""
    first = value[0] if isinstance(value, list) and value else value
    advice = _advice(first) if isinstance(first, dict) else ""
    return (f"it has {keys_in_words(first)}", advice) if advice else None


def _problem(entry: Any, among_items: bool) -> str | None:
    """Why an entry is not a message of any dialect; None if it is one."""
    if not isinstance(entry, dict):
        return f"it is a single {type(entry).__name__}"
    if _advice(entry) or not (_is_speech(entry) or _is_item(entry) or _is_artifact(entry)):
        # A newer type of item is carried along among known ones.
        is_new_item = among_items and isinstance(entry.get("type"), str) and "role" not in entry
        return None if is_new_item and _ITEM_FIELDS & entry.keys() else f"it has {keys_in_words(entry)}"
    return None


def _is_speech(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("role"), str) and bool(_SPEECH & entry.keys())


def _is_item(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and text_or_empty(entry.get("type")) in ITEMS
        and bool(_ITEM_FIELDS & entry.keys())
    )


def _is_artifact(entry: dict[str, Any]) -> bool:
    # A kind of the wrong type also counts, so that the error will be about the kind.
    return "kind" in entry or get("harness").claim(entry) == 2


def _advice(entry: Any) -> str:
    """What to do with an entry of a known format that is not supported; empty for any other."""
    if not isinstance(entry, dict):
        return ""
    parts = entry.get("parts")
    if isinstance(parts, list) and "content" not in entry and isinstance(entry.get("role"), str):
        return "These are UI messages of the AI SDK: convert them first, with convertToModelMessages"
    if text_or_empty(entry.get("type")) in ("thread.started", "turn.started", "item.completed"):
        return "This is the event stream of `codex exec --json`: name the rollout file in ~/.codex/sessions"
    return ""
