"""Hypothesis strategies: whole sessions in every dialect, with everything that real ones contain."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

Item = dict[str, Any]


def examples(full: int) -> int:
    """How many examples a test draws that wants `full` of them: fewer in `make test`, by the profile in use."""
    return max(10, full * settings().max_examples // 100)


words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60
).filter(lambda text: bool(text.strip()))
names = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
arguments = st.dictionaries(
    st.sampled_from(["path", "content", "query", "n"]),
    words | st.integers(-9, 9) | st.none() | st.lists(words, max_size=2),
    max_size=3,
)
extra_keys = st.dictionaries(
    st.sampled_from(["x_trace", "annotations", "meta"]), st.fixed_dictionaries({"k": words}), max_size=2
)


@st.composite
def chat_sessions(draw: st.DrawFn, max_turns: int = 5) -> list[Item]:
    """A legal chat session: turns with text, images, parallel calls, refusals, protected messages, unknown keys."""
    messages: list[Item] = []
    if draw(st.booleans()):
        messages.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(words)})
    number = 0
    for _ in range(draw(st.integers(1, max_turns))):
        messages.append({"role": "user", "content": draw(_user_content), **draw(extra_keys)})
        for _ in range(draw(st.integers(0, 3))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                text = json.dumps(draw(arguments))
                function = {"name": draw(names), "arguments": text}
                calls.append({"id": f"call_{number}", "type": "function", "function": function})
            content = draw(st.none() | words)
            messages.append({"role": "assistant", "content": content, "tool_calls": calls})
            for call in calls:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": draw(words)})
        messages.append({"role": "assistant", "content": draw(words), **draw(extra_keys)})
    if draw(st.booleans()):
        index = draw(st.integers(0, len(messages) - 1))
        messages[index] = {**messages[index], "meta": {"protected": True}}
    return messages


_image = st.builds(
    lambda url, detail: {"type": "image_url", "image_url": {"url": url, "detail": detail}},
    st.sampled_from(["https://example.com/a.png", "data:image/png;base64,iVBORw0KGgo="]),
    st.sampled_from(["low", "high", "auto"]),
)
_text_block = st.builds(lambda text: {"type": "text", "text": text}, words)
_unknown_block = st.builds(lambda text: {"type": "future_thing", "payload": {"deep": [text]}}, words)
_user_content = words | st.lists(_text_block | _image | _unknown_block, min_size=1, max_size=3)

_thinking = st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "sig=="}, words)


@st.composite
def anthropic_sessions(draw: st.DrawFn) -> list[Item]:
    """A legal Anthropic session: thinking with signatures, cache marks, several results in one user message."""
    messages: list[Item] = [{"role": "user", "content": draw(words)}]
    number = marks = 0
    for _ in range(draw(st.integers(0, 4))):
        blocks: list[Item] = draw(st.lists(_thinking, max_size=1)) + draw(st.lists(_text_block, max_size=1))
        results: list[Item] = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            call_id = f"toolu_{number}"
            blocks.append({"type": "tool_use", "id": call_id, "name": draw(names), "input": draw(arguments)})
            result: Item = {"type": "tool_result", "tool_use_id": call_id}
            if draw(st.booleans()):
                result["content"] = draw(words | st.lists(_text_block, min_size=1, max_size=2))
            if marks < 4 and draw(st.booleans()):
                marks += 1
                result["cache_control"] = {"type": "ephemeral"}
            results.append(result)
        if not results:
            blocks.append({"type": "text", "text": draw(words)})
        messages.append({"role": "assistant", "content": blocks})
        tail = draw(st.lists(_text_block, min_size=0 if results else 1, max_size=1))
        messages.append({"role": "user", "content": [*results, *tail]})
    return messages


@st.composite
def responses_sessions(draw: st.DrawFn) -> list[Item]:
    """A legal list of Responses items: reasoning, messages, function and custom calls, built-in calls."""
    items: list[Item] = []
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        items.append({"role": "user", "content": draw(words)})
        for _ in range(draw(st.integers(0, 2))):
            number += 1
            if draw(st.booleans()):
                items.append(
                    {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x" * 40}
                )
            call_id = f"call_{number}"
            kind = draw(st.sampled_from(["function_call", "custom_tool_call", "computer_call"]))
            call: Item = {
                "type": kind,
                "id": f"{'ctc' if kind == 'custom_tool_call' else 'fc'}_{number}",
                "call_id": call_id,
            }
            output: Any = draw(words)
            if kind == "function_call":
                call |= {"name": draw(names), "arguments": json.dumps(draw(arguments))}
            elif kind == "custom_tool_call":
                call |= {"name": draw(names), "input": draw(words)}
            else:
                call |= {"action": {"type": "click", "x": 1, "y": 2}, "status": "completed"}
                output = {"type": "computer_screenshot", "image_url": "https://example.com/s.png"}
            items += [call, {"type": f"{kind}_output", "call_id": call_id, "output": output}]
        if draw(st.booleans()):
            items.append(
                {"type": "web_search_call", "id": f"ws_{turn}", "status": "completed", "action": {"q": "x"}}
            )
        block = {"type": "output_text", "text": draw(words), "annotations": []}
        items.append(
            {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{turn}",
                "status": "completed",
                "content": [block],
            }
        )
    return items


@st.composite
def ai_sdk_sessions(draw: st.DrawFn) -> list[Item]:
    """A legal AI-SDK session in both generations' spelling, and with text results that only name their tool."""
    messages: list[Item] = [{"role": "system", "content": draw(words)}]
    for number in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(words)})
        call_id, name = f"c{number}", draw(names)
        field = draw(st.sampled_from(["args", "input"]))
        part = {"type": "tool-call", "toolCallId": call_id, "toolName": name, field: draw(arguments)}
        messages.append({"role": "assistant", "content": [*draw(st.lists(_text_block, max_size=1)), part]})
        form = draw(st.integers(0, 2))
        if form == 0:
            messages.append({"role": "tool", "content": draw(words), "metadata": {"tool_name": name}})
        else:
            answer = (
                {"result": draw(words)} if form == 1 else {"output": {"type": "text", "value": draw(words)}}
            )
            result = {"type": "tool-result", "toolCallId": call_id, "toolName": name, **answer}
            messages.append({"role": "tool", "content": [result]})
    return messages


_google_text: st.SearchStrategy[Item] = st.builds(lambda text: {"text": text}, words)
_blob = {"data": "iVBORw0KGgo=", "mimeType": "image/png"}
_google_media: st.SearchStrategy[Item] = st.sampled_from(
    [
        {"inlineData": _blob},
        {"inline_data": {"data": "iVBORw0KGgo=", "mime_type": "image/png"}},
        {"inlineData": {"data": "JVBERi0=", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "https://example.com/a.png", "mimeType": "image/png"}},
        {"file_data": {"file_uri": "https://example.com/a.mp4", "mime_type": "video/mp4"}},
    ]
)
_google_extra: st.SearchStrategy[Item] = st.sampled_from(
    [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH", "args": {}}},
    ]
)


@st.composite
def gemini_sessions(draw: st.DrawFn) -> list[Item]:
    """A legal list of Gemini contents: both spellings, thoughts, signatures, calls with and without ids, media, code."""
    contents: list[Item] = []
    number = 0
    signs = draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        first: Item = {"parts": draw(st.lists(_google_text | _google_media, min_size=1, max_size=3))}
        has_role = draw(st.booleans()) or bool(contents)
        contents.append({"role": "user", **first} if has_role else first)
        for _ in range(draw(st.integers(0, 3))):
            snake, with_ids = draw(st.booleans()), draw(st.booleans())
            parts: list[Item] = []
            if draw(st.booleans()):
                parts.append({"text": draw(words), "thought": True})
            parts += draw(st.lists(_google_text, max_size=1))
            answers: list[Item] = []
            for place in range(draw(st.integers(1, 3))):
                number += 1
                name = draw(names)
                own = {"id": f"fc_{number}"} if with_ids else {}
                made = {
                    **own,
                    "name": name,
                    **draw(st.sampled_from([{}, {"args": {}}, {"args": {"path": "a"}}])),
                }
                call: Item = {"function_call" if snake else "functionCall": made}
                if signs and not place:
                    call["thought_signature" if snake else "thoughtSignature"] = "c2lnbmVk"
                parts.append(call)
                said = draw(
                    st.sampled_from(
                        [
                            {"output": "x"},
                            {"result": "y"},
                            {"error": "z"},
                            {"output": "x", "code": 0},
                            {},
                            {"n": 1},
                        ]
                    )
                )
                media = {"parts": [{"inlineData": _blob}]} if draw(st.booleans()) else {}
                answer = {**own, "name": name, "response": said, **media}
                answers.append({"function_response" if snake else "functionResponse": answer})
            contents.append({"role": "model", "parts": parts})
            contents.append({"role": "user", "parts": answers})
        last = [{"text": draw(words)}, *draw(st.lists(_google_extra, max_size=1))]
        if signs:
            last.append({"text": "", "thoughtSignature": "c2lnbmVk"})
        contents.append({"role": "model", "parts": last, **draw(extra_keys)})
    return contents


_bedrock_text: st.SearchStrategy[Item] = st.builds(lambda text: {"text": text}, words)
_bedrock_media: st.SearchStrategy[Item] = st.sampled_from(
    [
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n"}}},
        {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b.png"}}}},
        {"document": {"format": "pdf", "name": "paper", "source": {"bytes": b"%PDF-"}}},
        {"guardContent": {"text": {"text": "Is this safe?", "qualifiers": ["guard_content"]}}},
    ]
)
_bedrock_said: st.SearchStrategy[list[Item]] = st.sampled_from(
    [
        [],
        [{"text": "x"}],
        [{"json": {"rows": [1, 2]}}],
        [{"text": "x"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}],
    ]
)
_bedrock_thought: st.SearchStrategy[Item] = st.sampled_from(
    [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig=="}}},
        {"reasoningContent": {"redactedContent": b"sealed"}},
    ]
)


@st.composite
def converse_sessions(draw: st.DrawFn) -> list[Item]:
    """A legal list of Converse messages: signed reasoning, cache points, several results in one user message, bytes."""
    opening = [*draw(st.lists(_bedrock_media, max_size=2)), {"text": draw(words)}]
    messages: list[Item] = [{"role": "user", "content": opening}]
    number = marks = 0
    for _ in range(draw(st.integers(0, 4))):
        blocks: list[Item] = draw(st.lists(_bedrock_thought, max_size=1)) + draw(
            st.lists(_bedrock_text, max_size=1)
        )
        results: list[Item] = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            call_id = f"tooluse_{number}"
            blocks.append({"toolUse": {"toolUseId": call_id, "name": draw(names), "input": draw(arguments)}})
            status = draw(st.sampled_from([{}, {"status": "success"}, {"status": "error"}]))
            content = draw(_bedrock_said) or ([{"text": "failed"}] if status.get("status") == "error" else [])
            result = {"toolUseId": call_id, "content": content, **status}
            results.append({"toolResult": result})
        if not results:
            blocks.append({"text": draw(words)})
        messages.append({"role": "assistant", "content": blocks})
        tail = draw(st.lists(_bedrock_text, min_size=0 if results else 1, max_size=1))
        if marks < 4 and draw(st.booleans()):
            marks += 1
            tail.append({"cachePoint": {"type": "default"}})
        messages.append({"role": "user", "content": [*results, *tail]})
    return messages


artifacts = st.lists(
    st.builds(
        lambda kind, text, key: {key: kind, "content": text, "id": "a1", "priority": 3},
        st.sampled_from(["system", "task", "message", "tool_output"]),
        words,
        st.sampled_from(["kind", "type"]),
    ),
    min_size=1,
    max_size=6,
)

SESSIONS = {
    "chat": chat_sessions(),
    "responses": responses_sessions(),
    "anthropic": anthropic_sessions(),
    "ai_sdk": ai_sdk_sessions(),
    "harness": artifacts,
    "gemini": gemini_sessions(),
    "converse": converse_sessions(),
}
