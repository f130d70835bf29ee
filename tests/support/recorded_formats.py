"""One conversation, written in every format that transcripts can have.

The shapes follow the programs' own sources: openai/codex (Apache-2.0), google-gemini/gemini-cli (Apache-2.0), anomalyco/opencode
(MIT), cline/cline (Apache-2.0), langchain-ai/langchain (MIT, by the library itself), and public descriptions of ChatGPT's export.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from support.dialects import to_converse
from support.talks import Talk, anthropic, chat, contents, responses, steps_of

Writer: TypeAlias = Callable[[Talk, Path], Path]

WHEN = "2026-02-03T04:05:06.789Z"


def _json(folder: Path, value: Any, name: str = "talk.json") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, ensure_ascii=False, indent=2), "utf-8")
    return file


def _lines(folder: Path, values: Sequence[Any], name: str = "talk.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), "utf-8")
    return file


def codex_old(talk: Talk, folder: Path) -> Path:
    header = {
        "id": "5973b6c0-94b8-487b-a530-2aeb6098ae0e",
        "timestamp": WHEN,
        "instructions": "Be brief.",
        "git": {},
    }
    return _lines(folder, [header, {"record_type": "state"}, *responses(talk)], "rollout-1.jsonl")


def codex_oldest(talk: Talk, folder: Path) -> Path:
    session = {"id": "5973b6c0", "timestamp": WHEN, "instructions": ""}
    return _json(folder, {"session": session, "items": responses(talk)}, "rollout-0.json")


def codex_new(talk: Talk, folder: Path) -> Path:
    def line(kind: str, payload: Any) -> Any:
        return {"timestamp": WHEN, "type": kind, "payload": payload}

    meta: dict[str, Any] = {
        "id": "0199a213",
        "timestamp": WHEN,
        "cwd": "/p",
        "originator": "codex_cli_rs",
        "cli_version": "0.99.0",
    }
    meta |= {"source": "cli", "base_instructions": {"text": "Be brief."}, "model_provider": "openai"}
    lines = [line("session_meta", meta), line("turn_context", {"cwd": "/p", "model": "gpt-5-codex"})]
    host = {"type": "input_text", "text": "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"}
    lines.append(line("response_item", {"type": "message", "role": "user", "content": [host]}))
    for item in responses(talk):
        lines.append(line("response_item", item))
        lines.append(line("event_msg", {"type": "token_count", "info": None}))
    return _lines(folder, lines, "rollout-2.jsonl")


def claude_code(talk: Talk, folder: Path) -> Path:
    lines: list[Any] = [{"type": "summary", "summary": "A title", "leafUuid": "x"}]
    for place, message in enumerate(anthropic(talk)):
        for part, block in enumerate(message["content"]):
            said = {
                **message,
                "content": [block],
                **({"id": f"m{place}"} if message["role"] == "assistant" else {}),
            }
            lines.append(
                {
                    "type": message["role"],
                    "sessionId": "s",
                    "isSidechain": False,
                    "uuid": f"u{place}-{part}",
                    "message": said,
                }
            )
    return _lines(folder, lines)


def gemini_list(talk: Talk, folder: Path) -> Path:
    return _json(folder, contents(talk, ids=False))


def gemini_lines(talk: Talk, folder: Path) -> Path:
    return _lines(folder, contents(talk, ids=False))


def gemini_request(talk: Talk, folder: Path) -> Path:
    prompt = {"parts": [{"text": "Be brief."}]}
    return _json(
        folder, {"model": "models/gemini-2.5-pro", "systemInstruction": prompt, "contents": contents(talk)}
    )


def converse_list(talk: Talk, folder: Path) -> Path:
    return _json(folder, to_converse(chat(talk)))


def converse_request(talk: Talk, folder: Path) -> Path:
    tools = {"tools": [{"toolSpec": {"name": "grep", "inputSchema": {"json": {}}}}]}
    body = {
        "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "system": [{"text": "Be brief."}],
        "toolConfig": tools,
    }
    return _json(folder, {**body, "messages": to_converse(chat(talk))})


def converse_lines(talk: Talk, folder: Path) -> Path:
    return _lines(folder, to_converse(chat(talk)))


def gemini_checkpoint(talk: Talk, folder: Path) -> Path:
    return _json(folder, {"history": contents(talk), "authType": "oauth-personal"}, "checkpoint-a.json")


def gemini_restore(talk: Talk, folder: Path) -> Path:
    call = {"name": "write_file", "args": {}}
    shown = [{"type": "user", "text": "x"}]
    return _json(
        folder, {"history": shown, "clientHistory": contents(talk), "toolCall": call, "commitHash": "1"}
    )


def _gemini_records(talk: Talk, modern: bool = False) -> list[Any]:
    found: list[Any] = []
    numbers = count(1)
    for opens, step, uses in steps_of(talk):
        if opens:
            said = {
                "id": f"r{next(numbers)}",
                "timestamp": WHEN,
                "type": "user",
                "content": [{"text": opens.text}],
            }
            found.append(said)
        calls = [
            {
                "id": i,
                "name": u.name,
                "args": u.arguments,
                "status": "success",
                "timestamp": WHEN,
                "result": [{"functionResponse": {"id": i, "name": u.name, "response": {"output": u.output}}}],
                "resultDisplay": "shown",
            }
            for i, u in uses
        ]
        content: Any = step.text
        if modern:
            content = [{"text": "hm", "thought": True}, *([{"text": step.text}] if step.text else [])]
            content += [{"functionCall": {"id": i, "name": u.name, "args": u.arguments}} for i, u in uses]
        reply = {"id": f"r{next(numbers)}", "timestamp": WHEN, "type": "gemini", "content": content}
        thoughts = [{"subject": "Plan", "description": "look", "timestamp": WHEN}]
        found.append(
            {**reply, "toolCalls": calls, "thoughts": thoughts, "tokens": None, "model": "gemini-2.5-pro"}
        )
    return [*found, {"id": "i", "timestamp": WHEN, "type": "info", "content": "Saved."}]


def gemini_session(talk: Talk, folder: Path) -> Path:
    head = {"sessionId": "g1", "projectHash": "h", "startTime": WHEN, "lastUpdated": WHEN}
    return _json(folder, {**head, "messages": _gemini_records(talk)}, "session-1.json")


def gemini_session_lines(talk: Talk, folder: Path) -> Path:
    lines: list[Any] = [{"sessionId": "g1", "projectHash": "h", "startTime": WHEN, "kind": "main"}]
    for record in _gemini_records(talk, modern=True):
        lines += [{**record, "content": ""}, record, {"$set": {"lastUpdated": WHEN}}]
    gone = {"id": "gone", "timestamp": WHEN, "type": "user", "content": "rewound"}
    return _lines(folder, [*lines, gone, {"$rewindTo": "gone"}], "session-2.jsonl")


def _opencode_messages(talk: Talk) -> list[Any]:
    found: list[Any] = []
    numbers = count(1)
    for opens, step, uses in steps_of(talk):
        if opens:
            info = {
                "id": f"msg_{next(numbers):04}",
                "sessionID": "ses_1",
                "role": "user",
                "time": {"created": 1},
            }
            found.append({"info": info, "parts": [{"type": "text", "text": opens.text}]})
        info = {
            "id": f"msg_{next(numbers):04}",
            "sessionID": "ses_1",
            "role": "assistant",
            "modelID": "gpt-5",
        }
        parts: list[Any] = [
            {"type": "step-start"},
            *([{"type": "text", "text": step.text}] if step.text else []),
        ]
        for call_id, use in uses:
            state = {
                "status": "completed",
                "input": use.arguments,
                "output": use.output,
                "title": "",
                "metadata": {},
            }
            parts.append({"type": "tool", "callID": call_id, "tool": use.name, "state": state})
        parts.append({"type": "step-finish", "reason": "stop", "cost": 0, "tokens": {}})
        found.append({"info": info, "parts": parts})
    for message in found:
        for place, part in enumerate(message["parts"]):
            part |= {"id": f"prt_{place:04}", "sessionID": "ses_1", "messageID": message["info"]["id"]}
    return found


def opencode_export(talk: Talk, folder: Path) -> Path:
    head = {"id": "ses_1", "projectID": "p", "directory": "/p", "title": "A title", "time": {"created": 1}}
    return _json(folder, {"info": head, "messages": _opencode_messages(talk), "todos": []})


def opencode_storage(talk: Talk, folder: Path) -> Path:
    for message in _opencode_messages(talk):
        name = message["info"]["id"]
        _json(folder, message["info"], f"storage/message/ses_1/{name}.json")
        for part in message["parts"]:
            _json(folder, part, f"storage/part/{name}/{part['id']}.json")
    head = {"id": "ses_1", "projectID": "p", "directory": "/p", "title": "A title", "time": {"created": 1}}
    return _json(folder, head, "storage/session/p/ses_1.json")


def opencode_turns(talk: Talk, folder: Path) -> Path:
    """Older versions: one message holds all replies of a turn."""
    found: list[Any] = []
    for message in _opencode_messages(talk):
        role = message["info"]["role"]
        if found and role == "assistant" == found[-1]["info"]["role"]:
            found[-1]["parts"] += [part for part in message["parts"] if not part["type"].startswith("step-")]
        else:
            found.append(message)
    # Without the marks between them, a text that follows a call begins the next reply.
    return _json(folder, found)


def cline(talk: Talk, folder: Path) -> Path:
    info = {"modelId": "claude-sonnet-4-5", "providerId": "anthropic", "mode": "act"}
    notes = {"ts": 1770000000000, "modelInfo": info}
    return _json(
        folder, [{**message, **notes} for message in anthropic(talk)], "api_conversation_history.json"
    )


def pi(talk: Talk, folder: Path) -> Path:
    lines: list[Any] = [{"type": "session", "id": "p1", "timestamp": WHEN, "cwd": "/p"}]

    def add(message: Any) -> None:
        name = str(len(lines))
        lines.append({"type": "message", "id": name, "parentId": str(len(lines) - 1), "message": message})

    for opens, step, uses in steps_of(talk):
        if opens:
            add({"role": "user", "content": opens.text})
        blocks: list[Any] = [{"type": "text", "text": step.text}] if step.text else []
        blocks += [{"type": "toolCall", "id": i, "name": u.name, "arguments": u.arguments} for i, u in uses]
        add({"role": "assistant", "content": blocks, "stopReason": "stop"})
        for call_id, use in uses:
            said = [{"type": "text", "text": use.output}]
            add({"role": "toolResult", "toolCallId": call_id, "toolName": use.name, "content": said})
    return _lines(folder, lines)


def openhands(talk: Talk, folder: Path) -> Path:
    history: list[Any] = []
    numbers = count(1)
    for opens, step, uses in steps_of(talk):
        if opens:
            history.append({"action": "message", "source": "user", "args": {"content": opens.text}})
        if not uses:
            history.append({"action": "message", "source": "agent", "args": {"content": step.text}})
        calls = [
            {"id": i, "type": "function", "function": {"name": u.name, "arguments": json.dumps(u.arguments)}}
            for i, u in uses
        ]
        reply = {
            "id": f"r{next(numbers)}",
            "choices": [{"message": {"content": step.text, "tool_calls": calls}}],
        }
        for call_id, _ in uses:
            noted = {"tool_call_id": call_id, "model_response": reply}
            history.append({"action": "run", "source": "agent", "tool_call_metadata": noted})
        for call_id, use in uses:
            noted = {"tool_call_id": call_id}
            history.append({"observation": "run", "content": use.output, "tool_call_metadata": noted})
    return _lines(
        folder, [{"instance_id": "i", "history": [*history, {"observation": "agent_state_changed"}]}]
    )


def swe_agent(talk: Talk, folder: Path) -> Path:
    history = [{**message, "agent": "main", "message_type": "thought"} for message in chat(talk)]
    for message in history:
        if "tool_call_id" in message:
            message["tool_call_ids"] = [message.pop("tool_call_id")]
    return _json(folder, {"trajectory": [], "history": history, "info": {}}, "talk.traj")


def _langchain(talk: Talk) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    found: list[Any] = []
    for opens, step, uses in steps_of(talk):
        if opens:
            found.append(HumanMessage(opens.text))
        calls = [{"name": u.name, "args": u.arguments, "id": i} for i, u in uses]
        found.append(AIMessage(step.text, tool_calls=calls))
        found += [ToolMessage(u.output, tool_call_id=i, name=u.name) for i, u in uses]
    return found


def langchain_constructors(talk: Talk, folder: Path) -> Path:
    from langchain_core.load import dumpd

    return _json(folder, dumpd({"messages": _langchain(talk)}))


def langchain_data(talk: Talk, folder: Path) -> Path:
    from langchain_core.messages import messages_to_dict

    return _json(folder, messages_to_dict(_langchain(talk)))


def langchain_plain_lines(talk: Talk, folder: Path) -> Path:
    return _lines(folder, [message.model_dump() for message in _langchain(talk)])


def langchain_plain(talk: Talk, folder: Path) -> Path:
    return _json(folder, [message.model_dump() for message in _langchain(talk)])


def _chatgpt(talk: Talk, name: str) -> Any:
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    last = "root"

    def add(role: str, content: Any, **more: Any) -> None:
        nonlocal last
        here = f"n{len(nodes)}"
        author = {"role": role, "name": more.pop("name", None), "metadata": {}}
        message = {"id": here, "author": author, "content": content, "status": "finished_successfully"}
        message |= {"weight": 1.0, "recipient": "all", "metadata": {"model_slug": "gpt-5"}, **more}
        nodes[here] = {"id": here, "message": message, "parent": last, "children": []}
        nodes[last]["children"].append(here)
        last = here

    add("system", {"content_type": "text", "parts": [""]}, weight=0.0)
    for opens, step, uses in steps_of(talk):
        if opens:
            add("user", {"content_type": "text", "parts": [opens.text]})
        if step.text:
            add("assistant", {"content_type": "text", "parts": [step.text]})
        for _, use in uses:
            code = {"content_type": "code", "language": "json", "text": json.dumps(use.arguments)}
            add("assistant", code, recipient=use.name)
            add("tool", {"content_type": "execution_output", "text": use.output}, name=use.name)
    nodes["other"] = {
        "id": "other",
        "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["edited"]}},
        "parent": "root",
        "children": [],
    }
    nodes["root"]["children"].append("other")
    return {"title": "A title", "conversation_id": name, "id": name, "mapping": nodes, "current_node": last}


def chatgpt(talk: Talk, folder: Path) -> Path:
    return _json(folder, [_chatgpt(talk, "c1")], "conversations.json")


def chatgpt_alone(talk: Talk, folder: Path) -> Path:
    return _json(folder, {**_chatgpt(talk, "c1"), "current_node": None})


WRITERS: dict[str, Writer] = {
    "chat": lambda talk, folder: _json(folder, chat(talk)),
    "chat lines": lambda talk, folder: _lines(folder, chat(talk)),
    "anthropic": lambda talk, folder: _json(folder, {"model": "claude-x", "messages": anthropic(talk)}),
    "responses": lambda talk, folder: _json(folder, {"model": "gpt-5", "input": responses(talk)}),
    "responses lines": lambda talk, folder: _lines(folder, responses(talk)),
    "claude code": claude_code,
    "codex old": codex_old,
    "codex oldest": codex_oldest,
    "codex new": codex_new,
    "converse list": converse_list,
    "converse request": converse_request,
    "converse lines": converse_lines,
    "gemini list": gemini_list,
    "gemini lines": gemini_lines,
    "gemini request": gemini_request,
    "gemini checkpoint": gemini_checkpoint,
    "gemini restore": gemini_restore,
    "gemini session": gemini_session,
    "gemini session lines": gemini_session_lines,
    "opencode export": opencode_export,
    "opencode storage": opencode_storage,
    "opencode turns": opencode_turns,
    "cline": cline,
    "pi": pi,
    "openhands": openhands,
    "swe agent": swe_agent,
    "langchain constructors": langchain_constructors,
    "langchain data": langchain_data,
    "langchain plain": langchain_plain,
    "langchain plain lines": langchain_plain_lines,
    "chatgpt": chatgpt,
    "chatgpt alone": chatgpt_alone,
}
"""What writes a conversation to a file, by the format's name."""
