"""Requests to Anthropic and OpenAI: what each accepts, and each refusal with the words that it answers."""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]

MARK = {"type": "ephemeral"}


def text(words: str, **more: Any) -> Item:
    return {"type": "text", "text": words, **more}


def use(call_id: str, **more: Any) -> Item:
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {}, **more}


def result(call_id: str, **more: Any) -> Item:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "done", **more}


def user(*blocks: Item, **more: Any) -> Item:
    return {"role": "user", "content": list(blocks) or "Hi", **more}


def says(*blocks: Item) -> Item:
    return {"role": "assistant", "content": list(blocks) or "Hello"}


def thought(words: str = "Hm.", **more: Any) -> Item:
    return {"type": "thinking", "thinking": words, "signature": "s", **more}


def request(*messages: Any, **more: Any) -> Item:
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    return {"model": "claude", "max_tokens": 9, "messages": list(messages), "tools": tools, **more}


LEGAL_ANTHROPIC = {
    "plain": request(user()),
    "a pair": request(user(), says(use("a")), user(result("a"))),
    "words behind results": request(user(), says(use("a"), use("b")), user(result("b"), result("a"), text("Go on"))),
    "neighbours of one role": request(user(), user(), says(), says(), user()),
    "a result without content": request(user(), says(use("a")), user({"type": "tool_result", "tool_use_id": "a"})),
    "a result with empty content": request(user(), says(use("a")), user(result("a", content=""))),
    "prefill": request(user(), says(text("The answer is ("))),
    "an empty final reply": request(user(), {"role": "assistant", "content": ""}),
    "four marks": request(*[user(text("x", cache_control=MARK))] * 4),
    "long before short": request(user(text("x", cache_control={**MARK, "ttl": "1h"})), user(text("x", cache_control=MARK))),
    "the loop's first reply thinks": request(
        user(), says(thought(), use("a")), user(result("a")), says(use("b")), user(result("b")), thinking={"type": "enabled"}
    ),
    "a server's tool": request(
        user(),
        says({"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}},
             {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []}, text("x")),
        user(),
    ),
    "no tools, no blocks": {"model": "claude", "max_tokens": 9, "messages": [user()]},
}  # fmt: skip

ILLEGAL_ANTHROPIC = {
    "no model": ({"max_tokens": 9, "messages": [user()]}, "model: Field required"),
    "no limit": ({"model": "claude", "messages": [user()]}, "max_tokens: Field required"),
    "no list": ({"model": "claude", "max_tokens": 9}, "messages: Field required"),
    "empty list": (request(), "at least one message"),
    "not an object": (request("Hi"), "valid dictionary"),
    "a system prompt of another kind": (request(user(), system=5), "system: Input should be a valid list"),
    "a bad tool name": (request(user(), tools=[{"name": "read file"}]), "tools.0.custom.name: String should match"),
    "a tool twice": (request(user(), tools=[{"name": "read"}] * 2), "Tool names must be unique"),
    "sealed thinking without data": (request(user(), says({"type": "redacted_thinking"}, text("x"))), "redacted_thinking.data: Field required"),
    "a call without id": (request(user(), says({"type": "tool_use", "name": "read", "input": {}}), user()), "tool_use.id: Field required"),
    "a call without name": (request(user(), says({"type": "tool_use", "id": "a", "input": {}}), user(result("a"))), "tool_use.name: Field required"),
    "a result without id": (request(user(), says(use("a")), user({"type": "tool_result", "content": "x"})), "tool_use_id: Field required"),
    "a mark of another type": (request(user(text("x", cache_control={"type": "lasting"}))), "expected tags: 'ephemeral'"),
    "system inside": (request(user(), {"role": "system", "content": "x"}), 'Unexpected role "system"'),
    "tool role": (request(user(), {"role": "tool", "content": "x"}), "Input should be 'user' or 'assistant'"),
    "no role": (request({"content": "x"}), "Input should be 'user' or 'assistant'"),
    "assistant first": (request(says(), user()), 'first message must use the "user" role'),
    "another key": (request(user(id="msg_1")), "Extra inputs are not permitted"),
    "content null": (request({"role": "user", "content": None}), "content: Input should be a valid list"),
    "content missing": (request({"role": "user"}), "content: Field required"),
    "content empty": (request({"role": "user", "content": ""}), "must have non-empty content"),
    "content no blocks": (request({"role": "user", "content": []}), "must have non-empty content"),
    "content blank": (request({"role": "user", "content": " \n"}), "non-whitespace"),
    "an empty reply inside": (request(user(), {"role": "assistant", "content": ""}, user()), "must have non-empty content"),
    "text empty": (request(user(text(""))), "text content blocks must be non-empty"),
    "text blank": (request(user(text("x"), text(" "))), "non-whitespace"),
    "text null": (request(user({"type": "text", "text": None})), "text.text: Field required"),
    "text empty in a result": (request(user(), says(use("a")), user(result("a", content=[text("")]))), "must be non-empty"),
    "result null": (request(user(), says(use("a")), user(result("a", content=None))), "tool_result.content"),
    "a bare string": (request({"role": "user", "content": ["x"]}), "valid dictionary"),
    "an unknown block": (request(user({"type": "toolUse"})), "does not match any of the expected tags"),
    "a block without type": (request(user({"text": "x"})), "type: Field required"),
    "a mark on empty text": (request(user(text("", cache_control=MARK))), "cannot be set for empty text"),
    "a mark on thinking": (request(user(), says(thought(cache_control=MARK), text("x")), user()), "Extra inputs"),
    "five marks": (request(*[user(text("x", cache_control=MARK))] * 5), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    "marks in system and tools count": (
        request(*[user(text("x", cache_control=MARK))] * 3, system=[text("s", cache_control=MARK)],
                tools=[{"name": "read", "input_schema": {}, "cache_control": MARK}]), "Found 5"),
    "marks inside results count": (
        request(user(*[text("x", cache_control=MARK)] * 4), says(use("a")),
                user(result("a", content=[text("x", cache_control=MARK)]))), "Found 5"),
    "short before long": (request(user(text("x", cache_control=MARK)), user(text("x", cache_control={**MARK, "ttl": "1h"}))), "must not come after"),
    "an orphan": (request(user(result("a"))), "unexpected `tool_use_id`"),
    "an orphan behind words": (request(user(), says(), user(result("a"))), "unexpected `tool_use_id`"),
    "a late result": (request(user(), says(use("a")), user(), says(), user(result("a"))), "without `tool_result` blocks"),
    "no result": (request(user(), says(use("a")), user()), "without `tool_result` blocks immediately after: a."),
    "no result at the end": (request(user(), says(use("a"))), "without `tool_result` blocks"),
    "one of two results": (request(user(), says(use("a"), use("b")), user(result("a"))), "immediately after: b."),
    "results in two messages": (request(user(), says(use("a"), use("b")), user(result("a")), user(result("b"))), "immediately after: b."),
    "words before the result": (request(user(), says(use("a")), user(text("x"), result("a"))), "without `tool_result` blocks"),
    "two results": (request(user(), says(use("a")), user(result("a"), result("a"))), "must have a single result"),
    "an id twice": (request(user(), says(use("a")), user(result("a")), says(use("a")), user(result("a"))), "ids must be unique"),
    "a bad id": (request(user(), says(use("a b")), user(result("a b"))), "tool_use.id: String should match"),
    "an empty id": (request(user(), says(use("")), user(result(""))), "tool_use.id: String should match"),
    "a bad name": (request(user(), says(use("a", name="read file")), user(result("a"))), "tool_use.name"),
    "arguments as text": (request(user(), says(use("a", input="{}")), user(result("a"))), "tool_use.input: Input should be a valid dictionary"),
    "a call by the user": (request(user(use("a")), says()), "can only be in `assistant`"),
    "a result by the assistant": (request(user(), says(result("a")), user()), "can only be in `user`"),
    "a blank end": (request(user(), says(text("The answer "))), "trailing whitespace"),
    "thinking at the end": (request(user(), says(text("x"), thought()), user()), "final block in an assistant message cannot be `thinking`"),
    "thinking without signature": (request(user(), says({"type": "thinking", "thinking": "x"}, text("x")), user()), "signature: Field required"),
    "thinking left out of the loop": (
        request(user(), says(use("a")), user(result("a")), thinking={"type": "enabled"}), "Expected `thinking`"),
    "a lone surrogate": (request(user(text("\ud83d"))), "not valid JSON"),
    "a server's result alone": (
        request(user(), says({"type": "web_search_tool_result", "tool_use_id": "x", "content": []})), "`server_tool_use` block before it"),
    "no tools": ({"model": "claude", "max_tokens": 9, "messages": [user(), says(use("a")), user(result("a"))]}, "must define tools"),
}  # fmt: skip


def calls(*ids: Any, **more: Any) -> Item:
    listed = [{"id": i, "type": "function", "function": {"name": "read", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": listed, **more}


def tool(call_id: Any, content: Any = "done", **more: Any) -> Item:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def chat(*messages: Any) -> Item:
    return {"model": "gpt-4o", "messages": list(messages)}


def with_function(**fields: Any) -> Item:
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}", **fields}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


LEGAL_CHAT = {
    "plain": chat(user()),
    "a pair": chat(user(), calls("a"), tool("a")),
    "results in any order": chat(user(), calls("a", "b"), tool("b"), tool("a"), user()),
    "an id again later": chat(user(), calls("a"), tool("a"), calls("a"), tool("a")),
    "empty texts": chat({"role": "user", "content": ""}, {"role": "assistant", "content": ""}, calls("a"), tool("a", "")),
    "roles in any order": chat(says(), {"role": "system", "content": "x"}, user(), user(), {"role": "developer", "content": "x"}),
    "arguments that are no JSON": chat(user(), with_function(arguments="{"), tool("a")),
    "parts": chat(user(text("x"), {"type": "image_url", "image_url": {"url": "https://x"}}), says(text("x")), calls("a"), tool("a", [text("x")])),
    "a refusal": chat(user(), {"role": "assistant", "content": None, "refusal": "No."}),
    "the older form": chat(user(), {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                           {"role": "function", "name": "f", "content": "x"}),
}  # fmt: skip

ILLEGAL_CHAT = {
    "no list": ({"model": "gpt-4o"}, "Missing required parameter: 'messages'"),
    "no model": ({"messages": [user()]}, "model"),
    "a list of another kind": ({"model": "gpt-4o", "messages": "Hi"}, "expected an array of objects, but got a string"),
    "a part without a type": (chat(user({"text": "x"})), "Missing required parameter: 'messages[0].content[0].type'"),
    "a part's text of another kind": (chat(user({"type": "text", "text": 5})), "expected a string, but got an integer"),
    "calls of another kind": (chat(user(), {"role": "assistant", "content": "x", "tool_calls": {}}), "expected an array of objects"),
    "a call of another kind": (chat(user(), {"role": "assistant", "content": "x", "tool_calls": ["a"]}), "tool_calls[0]': expected an object"),
    "an id of another kind": (chat(user(), calls(5), tool("a")), "expected a string, but got an integer"),
    "a call without a type": (chat(user(), {"role": "assistant", "tool_calls": [{"id": "a"}]}), "tool_calls[0].type"),
    "a call of an unknown type": (chat(user(), {"role": "assistant", "tool_calls": [{"id": "a", "type": "tool"}]}), "Invalid value: 'tool'"),
    "a call without a function": (chat(user(), {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}), "tool_calls[0].function"),
    "a function of another kind": (chat(user(), {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": "f"}]}), "expected an object"),
    "a custom call without input": (
        chat(user(), {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f"}}]}), "custom.input"),
    "empty list": (chat(), "empty array"),
    "not an object": (chat("Hi"), "expected an object"),
    "no role": (chat({"content": "x"}), "Missing required parameter: 'messages[0].role'"),
    "an unknown role": (chat({"role": "model", "content": "x"}), "Invalid value: 'model'"),
    "a user's null": (chat({"role": "user", "content": None}), "expected a string, got null"),
    "a user's nothing": (chat({"role": "user"}), "expected a string, got null"),
    "a system's null": (chat({"role": "system", "content": None}, user()), "expected a string, got null"),
    "a tool's null": (chat(user(), calls("a"), tool("a", None)), "expected a string, got null"),
    "an assistant's null": (chat(user(), {"role": "assistant", "content": None}), "expected a string, got null"),
    "no parts": (chat({"role": "user", "content": []}), "empty array"),
    "a tool's no parts": (chat(user(), calls("a"), tool("a", [])), "empty array"),
    "a bare string": (chat({"role": "user", "content": ["x"]}), "expected an object, but got a string"),
    "a part of another dialect": (chat(user({"type": "input_text", "text": "x"})), "Invalid value: 'input_text'"),
    "a part without text": (chat(user({"type": "text"})), "Missing required parameter: 'messages[0].content[0].text'"),
    "an image by the assistant": (chat(user(), says({"type": "image_url", "image_url": {"url": "x"}})), "Invalid value: 'image_url'"),
    "content of another kind": (chat({"role": "user", "content": {"text": "x"}}), "but got an object"),
    "no calls": (chat(user(), {"role": "assistant", "content": "x", "tool_calls": []}), "empty array"),
    "an orphan": (chat(user(), tool("a")), "must be a response to a preceeding message"),
    "an orphan behind words": (chat(user(), calls("a"), tool("a"), user(), tool("a")), "must be a response"),
    "another call's result": (chat(user(), calls("a"), tool("a"), tool("b")), "not found in 'tool_calls' of previous message"),
    "two results": (chat(user(), calls("a"), tool("a"), tool("a")), "Duplicate value for 'tool_call_id' of 'a'"),
    "no result": (chat(user(), calls("a"), user()), "did not have response messages: a"),
    "no result at the end": (chat(user(), calls("a", "b"), tool("a")), "did not have response messages: b"),
    "words between": (chat(user(), calls("a"), user(), tool("a")), "did not have response messages: a"),
    "no id": (chat(user(), calls(None), tool("a")), "tool_calls[0].id"),
    "an empty id": (chat(user(), calls(""), tool("")), "tool_calls[0].id"),
    "a long id": (chat(user(), calls("x" * 65), tool("x" * 65)), "maximum length 64"),
    "an id twice": (chat(user(), calls("a", "a"), tool("a")), "duplicate value"),
    "a result without id": (chat(user(), calls("a"), {"role": "tool", "content": "x"}), "must have a 'tool_call_id'"),
    "a bad name": (chat(user(), with_function(name="read file"), tool("a")), "does not match pattern"),
    "a long name": (chat(user(), with_function(name="x" * 65), tool("a")), "maximum length 64"),
    "no name": (chat(user(), with_function(name=None), tool("a")), "function.name"),
    "arguments as an object": (chat(user(), with_function(arguments={}), tool("a")), "expected a string, but got an object"),
    "no arguments": (chat(user(), with_function(arguments=None), tool("a")), "function.arguments"),
    "a speaker with spaces": (chat(user(name="Ann B")), "does not match pattern"),
    "a function without name": (chat(user(), {"role": "function", "content": "x"}), "must have a 'name'"),
    "a lone surrogate": (chat(user(text("\ud83d"))), "could not parse the JSON body"),
}  # fmt: skip


def call(call_id: Any = "a", **more: Any) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}", **more}


def output(call_id: Any = "a", **more: Any) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": "done", **more}


def responses(*items: Any, **more: Any) -> Item:
    return {"model": "gpt-4o", "input": list(items), **more}


def reasoning(own: str | None = "rs_1") -> Item:
    return {"type": "reasoning", "summary": [], **({"id": own} if own else {})}


PERSON: Item = {"role": "user", "content": "Hi"}

ANSWER: Item = {"role": "assistant", "content": "Hello"}

LEGAL_RESPONSES = {
    "words": {"model": "gpt-4o", "input": "Hi"},
    "plain": responses(PERSON, ANSWER, PERSON),
    "a pair": responses(PERSON, call(), output()),
    "words between": responses(PERSON, call(), PERSON, output()),
    "an output of parts": responses(PERSON, call(), output(output=[{"type": "input_text", "text": "x"}])),
    "an empty output": responses(PERSON, call(), output(output="")),
    "reasoning with its call": responses(PERSON, reasoning(), call(), output()),
    "reasoning at the end without id": responses(PERSON, reasoning(None)),
    "an earlier response": responses(output(), previous_response_id="resp_1"),
    "a reference": responses(PERSON, {"type": "item_reference", "id": "fc_1"}, output()),
    "built-in tools": responses(PERSON, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}, ANSWER),
    "a compaction": responses({"type": "compaction", "encrypted_content": "x"}, PERSON),
}  # fmt: skip

ILLEGAL_RESPONSES = {
    "no input": ({"model": "gpt-4o"}, "must be provided"),
    "no model": ({"input": "Hi"}, "Missing required parameter: 'model'"),
    "input of another kind": ({"model": "gpt-4o", "input": 5}, "one of a string or array of objects, but got an integer"),
    "a trigger inside": (responses({"type": "compaction_trigger"}, PERSON), "must be the final input item"),
    "a compaction without its content": (responses({"type": "compaction", "id": "cmp_1"}, PERSON), "input[0].encrypted_content"),
    "an item id of another kind": (responses(PERSON, call(id=5), output()), "input[1].id': expected a string"),
    "a message without a role": (responses({"type": "message", "content": "x"}), "Missing required parameter: 'input[0].role'"),
    "a part of another kind": (responses({"role": "user", "content": ["x"]}), "expected an object, but got a string"),
    "a part without a type": (responses({"role": "user", "content": [{"text": "x"}]}), "input[0].content[0].type"),
    "a part without its text": (responses({"role": "user", "content": [{"type": "input_text"}]}), "input[0].content[0].text"),
    "a text of another kind": (responses({"role": "user", "content": [{"type": "input_text", "text": 5}]}), "expected a string, but got an integer"),
    "a computer's output of null": (
        responses(PERSON, {"type": "computer_call", "call_id": "a"}, {"type": "computer_call_output", "call_id": "a", "output": None}), "expected an object"),
    "not an object": (responses("Hi"), "expected an object"),
    "no type": (responses({"content": "x"}), "input[0].type"),
    "an unknown type": (responses({"type": "tool_use"}), "Invalid value: 'tool_use'"),
    "an unknown role": (responses({"role": "tool", "content": "x"}), "Invalid value: 'tool'"),
    "content null": (responses({"role": "user", "content": None}), "but got null"),
    "content missing": (responses({"role": "user"}), "Missing required parameter: 'input[0].content'"),
    "text of another dialect": (responses({"role": "user", "content": [text("x")]}), "Invalid value: 'text'"),
    "input by the assistant": (responses({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}), "'output_text', and 'refusal'"),
    "an orphan": (responses(PERSON, output()), "No tool call found for function call output with call_id a."),
    "an output before its call": (responses(PERSON, output(), call()), "No tool call found"),
    "no output": (responses(PERSON, call(), PERSON), "No tool output found for function call a."),
    "no output of a custom call": (responses({"type": "custom_tool_call", "call_id": "a", "name": "x", "input": "x"}), "No tool output found for custom tool call"),
    "two outputs": (responses(PERSON, call(), output(), output()), "multiple outputs"),
    "a call id twice": (responses(PERSON, call(), output(), call(), output()), "Duplicate 'call_id'"),
    "output null": (responses(PERSON, call(), output(output=None)), "but got null"),
    "output missing": (responses(PERSON, call(), {"type": "function_call_output", "call_id": "a"}), "Missing required parameter: 'input[2].output'"),
    "a long id": (responses(PERSON, call("x" * 65), output("x" * 65)), "maximum length 64"),
    "no id": (responses(PERSON, call(None), output()), "call_id"),
    "a bad name": (responses(PERSON, call(name="a.b"), output()), "does not match pattern"),
    "arguments as an object": (responses(PERSON, call(arguments={}), output()), "but got an object"),
    "an item twice": (responses(PERSON, call(id="fc_1"), output(), {"type": "message", "id": "fc_1", **PERSON}), "Duplicate item found with id fc_1"),
    "a wrong prefix": (responses(PERSON, call(id="call_1"), output()), "begins with 'fc'"),
    "a bad item id": (responses(PERSON, call(id="fc 1"), output()), "additional characters"),
    "reasoning alone": (responses(PERSON, reasoning(), PERSON), "without its required following item"),
    "reasoning at the end": (responses(PERSON, reasoning()), "without its required following item"),
    "a lone surrogate": (responses({"role": "user", "content": "\ud83d"}), "could not parse the JSON body"),
}  # fmt: skip
