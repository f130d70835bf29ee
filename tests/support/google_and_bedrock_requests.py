"""Requests to Google and Bedrock: what each accepts, and each refusal with the words that it answers."""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]

HI: Item = {"text": "Hi"}

KEY = b"key"


def google(*contents: Any, **more: Any) -> Item:
    return {"contents": list(contents), **more}


def asks(*parts: Any) -> Item:
    return {"role": "user", "parts": list(parts) or [HI]}


def model(*parts: Any) -> Item:
    return {"role": "model", "parts": list(parts) or [HI]}


def call(name: Any = "read", **more: Any) -> Item:
    return {"functionCall": {"name": name, **more}}


def answer(name: Any = "read", **more: Any) -> Item:
    return {"functionResponse": {"name": name, "response": {}, **more}}


DECLARED = {"functionDeclarations": [{"name": "read"}]}

LEGAL_GOOGLE = {
    "plain": google(asks()),
    "no role": google({"parts": [HI]}),
    "a pair": google(asks(), model(call()), asks(answer())),
    "snake case": google(asks(), model({"function_call": {"name": "read"}}), asks({"function_response": {"name": "read", "response": {}}})),
    "parallel calls in any order": google(asks(), model(call("a"), call("b")), asks(answer("b"), answer("a"))),
    "ids": google(asks(), model(call(id="1", args={})), asks(answer(id="1"))),
    "words beside a response": google(asks(), model(HI, call()), asks(answer(), HI), model()),
    "neighbours of one role": google(asks(), asks(), model(), model(), asks()),
    "calls in a row": google(asks(), model(call()), asks(answer()), model(call()), asks(answer())),
    "thoughts": google(asks(), model({"text": "Hm.", "thought": True}, {"text": "", "thoughtSignature": "c2ln"})),
    "media and code": google(
        asks({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"fileData": {"fileUri": "https://x"}}),
        model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}, {"toolCall": {}})),
    "a system prompt and tools": google(asks(), systemInstruction={"parts": [HI]}, tools=[DECLARED]),
    "a blank text": google(asks({"text": " "})),
}  # fmt: skip

ILLEGAL_GOOGLE: dict[str, tuple[Any, str]] = {
    "not an object": ([], "Invalid JSON payload"),
    "a lone surrogate": (google(asks({"text": "\ud83d"})), "Invalid JSON payload"),
    "contents of another kind": ({"contents": "Hi"}, "Invalid value at 'contents'"),
    "no contents": ({}, "contents is not specified"),
    "empty contents": (google(), "contents is not specified"),
    "a content of another kind": (google("Hi"), "Invalid value at 'contents[0]'"),
    "an unknown field": (google({**asks(), "meta": {}}), "Unknown name \"meta\" at 'contents[0]'"),
    "an unknown role": (google(asks(), {"role": "assistant", "parts": [HI]}), "Please use a valid role: user, model."),
    "parts of another kind": (google({"role": "user", "parts": "Hi"}), "Invalid value at 'contents[0].parts'"),
    "no parts": (google({"role": "user"}), "contents.parts must not be empty"),
    "empty parts": (google({"role": "user", "parts": []}), "contents.parts must not be empty"),
    "a bare string": (google({"role": "user", "parts": ["Hi"]}), "Invalid value at 'contents[0].parts[0]'"),
    "an unknown part": (google(asks({"type": "text", "text": "Hi"})), "Unknown name \"type\" at 'contents[0].parts[0]'"),
    "a part without data": (google(asks({"thought": True})), "required oneof field 'data' must have one initialized field"),
    "a signature alone": (google(asks(), model({"thoughtSignature": "x"})), "required oneof field 'data'"),
    "a part with two": (google(asks({"text": "x", "fileData": {}})), "oneof field 'data' is already set"),
    "data of another kind": (google(asks({"fileData": "x"})), "Invalid value at 'contents[0].parts[0].fileData'"),
    "a text of another kind": (google(asks({"text": 5})), "(TYPE_STRING)"),
    "an empty text": (google(asks({"text": ""})), "must have a text parameter"),
    "a blob without a type": (google(asks({"inlineData": {"data": "aGk="}})), "a blob has data and a mime_type"),
    "a call without a name": (google(asks(), model(call(""))), "function_call.name: Name cannot be empty."),
    "a bad name": (google(asks(), model(call("read file"))), "function_call.name: Invalid function name."),
    "an id of another kind": (google(asks(), model(call(id=5))), "function_call.id' (TYPE_STRING)"),
    "arguments as text": (google(asks(), model(call(args="{}"))), "function_call.args' (type.googleapis.com/google.protobuf.Struct)"),
    "an unknown field of a call": (google(asks(), model(call(arguments={}))), 'Unknown name "arguments"'),
    "a response without a name": (google(asks(), model(call()), asks(answer(None))), "function_response.name: Name cannot be empty."),
    "a response as text": (google(asks(), model(call()), asks(answer(response="x"))), "function_response.response' (type.googleapis.com"),
    "no response": (google(asks(), model(call()), asks({"functionResponse": {"name": "read"}})), "function_response.response'"),
    "a bad system prompt": (google(asks(), systemInstruction="Obey."), "Invalid value at 'system_instruction'"),
    "a bad declaration": (google(asks(), tools=[{"functionDeclarations": [{"name": "a b"}]}]), "Invalid function name"),
    "a declaration twice": (google(asks(), tools=[DECLARED, DECLARED]), "Duplicate function declaration found: read"),
    "the model begins": (google(model(), asks()), "First content should be with role 'user'"),
    "a call by the user": (google(asks(call()), asks(answer())), "function calls are in a content with role 'model'"),
    "a call behind words": (google(asks(), model(), model(call()), asks(answer())), "function call turn comes immediately after a user turn"),
    "a response by the model": (google(asks(), model(call()), model(answer())), "function responses are in a content with role 'user'"),
    "an orphan": (google(asks(), model(), asks(answer())), "function response turn comes immediately after a function call turn"),
    "a late response": (google(asks(), model(call()), asks(), asks(answer())), "number of function response parts is equal"),
    "no response at the end": (google(asks(), model(call())), "number of function response parts is equal"),
    "one of two responses": (google(asks(), model(call(), call()), asks(answer())), "number of function response parts is equal"),
    "two responses": (google(asks(), model(call()), asks(answer(), answer())), "number of function response parts is equal"),
    "another name": (google(asks(), model(call("a")), asks(answer("b"))), "the name of each function response matches"),
    "another id": (google(asks(), model(call(id="1")), asks(answer(id="2"))), "the id of each function response matches"),
}  # fmt: skip


def bedrock(*messages: Any, **more: Any) -> Item:
    tools = {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]}
    return {"messages": list(messages), "toolConfig": tools, **more}


def user(*blocks: Any) -> Item:
    return {"role": "user", "content": list(blocks) or [HI]}


def says(*blocks: Any) -> Item:
    return {"role": "assistant", "content": list(blocks) or [HI]}


def use(call_id: Any = "a", **more: Any) -> Item:
    return {"toolUse": {"toolUseId": call_id, "name": "read", "input": {}, **more}}


def result(call_id: Any = "a", **more: Any) -> Item:
    return {"toolResult": {"toolUseId": call_id, "content": [HI], **more}}


def thought(text: str = "Hm.", signature: str = "sig") -> Item:
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}


POINT: Item = {"cachePoint": {"type": "default"}}

PICTURE: Item = {"image": {"format": "png", "source": {"bytes": "aGk="}}}

PAPER: Item = {"document": {"format": "txt", "name": "a", "source": {"bytes": "aGk="}}}

LEGAL_BEDROCK = {
    "plain": bedrock(user()),
    "a pair": bedrock(user(), says(thought(), use()), user(result())),
    "words behind results": bedrock(user(), says(use("a"), use("b")), user(result("b"), result("a"), HI)),
    "a result without content": bedrock(user(), says(use()), user(result(content=[]))),
    "results of all kinds": bedrock(user(), says(use()), user(result(content=[{"json": {}}, PICTURE], status="error"))),
    "cache points": bedrock(user(HI, POINT), says(), user(HI, POINT), system=[HI, POINT]),
    "a point behind a result": bedrock(user(), says(use("a"), use("b")), user(result("a"), POINT, result("b"))),
    "media": bedrock(user(HI, PICTURE, PAPER, {"guardContent": {"text": {"text": "x"}}})),
    "sealed thinking": bedrock(user(), says({"reasoningContent": {"redactedContent": "aGk="}}, HI), user()),
    "prefill": bedrock(user(), says({"text": "The answer is ("})),
}  # fmt: skip

ILLEGAL_BEDROCK: dict[str, tuple[Any, str]] = {
    "not an object": (None, "not valid JSON"),
    "a lone surrogate": (bedrock(user({"text": "\ud83d"})), "not valid JSON"),
    "no messages": ({}, "The messages field is empty"),
    "empty messages": (bedrock(), "The messages field is empty"),
    "a system prompt as text": (bedrock(user(), system="Obey."), "system: expected type: JSONArray"),
    "a blank system prompt": (bedrock(user(), system=[{"text": " "}]), "SystemContentBlock object at system.0 is blank"),
    "a picture as a system prompt": (bedrock(user(), system=[PICTURE]), "system.0: extraneous key [image]"),
    "a message of another kind": (bedrock("Hi"), "messages.0: expected type: JSONObject"),
    "an unknown role": (bedrock({"role": "model", "content": [HI]}), "satisfy enum value set: [user, assistant]"),
    "an unknown field": (bedrock({**user(), "meta": {}}), "extraneous key [meta]"),
    "content as text": (bedrock({"role": "user", "content": "Hi"}), "messages.0.content: expected type: JSONArray"),
    "no content": (bedrock({"role": "user"}), "The content field in the Message object at messages.0 is empty"),
    "empty content": (bedrock({"role": "user", "content": []}), "The content field in the Message object at messages.0 is empty"),
    "a bare string": (bedrock(user("Hi")), "messages.0.content.0: expected type: JSONObject"),
    "a block with a type": (bedrock(user({"type": "text", "text": "Hi"})), "exactly one member, got 2"),
    "an empty block": (bedrock(user({})), "exactly one member, got 0"),
    "an unknown block": (bedrock(user({"thing": {}})), "extraneous key [thing]"),
    "a blank text": (bedrock(user({"text": " "})), "The text field in the ContentBlock object at messages.0.content.0 is blank"),
    "a text of another kind": (bedrock(user({"text": None})), "text: expected type: String"),
    "a block of another kind": (bedrock(user({"image": "x"})), "image: expected type: JSONObject"),
    "a point alone": (bedrock(user(), says(), user(POINT)), "a cachePoint must follow the content"),
    "a point of another type": (bedrock(user(HI, {"cachePoint": {"type": "x"}})), "satisfy enum value set: [default]"),
    "a point of another life": (bedrock(user(HI, {"cachePoint": {"type": "default", "ttl": "1d"}})), "satisfy enum value set: [5m, 1h]"),
    "five points": (bedrock(user(HI, POINT, HI, POINT, HI, POINT), says(), user(HI, POINT), system=[HI, POINT]), "Found 5."),
    "a document without words": (bedrock(user(PAPER)), "must also have a text block"),
    "21 pictures": (bedrock(user(HI, *[PICTURE] * 21)), "up to 20 images, found 21"),
    "six documents": (bedrock(user(HI, *[PAPER] * 6)), "up to 5 documents, found 6"),
    "a call by the user": (bedrock(user(use()), says()), "User messages cannot contain tool uses"),
    "a result by the assistant": (bedrock(user(), says(result())), "Assistant messages cannot contain tool results"),
    "thinking by the user": (bedrock(user(thought(), HI)), "User messages cannot contain reasoning content"),
    "a bad id": (bedrock(user(), says(use("a b")), user(result("a b"))), "toolUse.toolUseId' failed to satisfy constraint"),
    "no id": (bedrock(user(), says(use()), user(result(None))), "toolResult.toolUseId' failed to satisfy constraint"),
    "a bad name": (bedrock(user(), says(use(name="a b")), user(result())), "toolUse.name' failed to satisfy constraint"),
    "input as text": (bedrock(user(), says(use(input="{}")), user(result())), "toolUse.input is invalid. Provide a json object"),
    "an unknown status": (bedrock(user(), says(use()), user(result(status="ok"))), "enum value set: [success, error]"),
    "no result content": (bedrock(user(), says(use()), user(result(content=None))), "toolResult.content' failed to satisfy"),
    "an error without content": (bedrock(user(), says(use()), user(result(content=[], status="error"))), "cannot be empty when status value is error"),
    "an unknown block in a result": (bedrock(user(), says(use()), user(result(content=[POINT]))), "extraneous key [cachePoint]"),
    "a blank text in a result": (bedrock(user(), says(use()), user(result(content=[{"text": ""}]))), "must contain non-whitespace text"),
    "a text of another kind in a result": (bedrock(user(), says(use()), user(result(content=[{"text": 5}]))), "text: expected type: String"),
    "thinking without a text": (bedrock(user(), says({"reasoningContent": {"reasoningText": {}}}, HI)), "reasoningText.text' failed"),
    "empty thinking": (bedrock(user(), says({"reasoningContent": {}}, HI)), "exactly one member"),
    "the assistant begins": (bedrock(says(), user()), "A conversation must start with a user message"),
    "neighbours of one role": (bedrock(user(), user()), "must alternate between user and assistant roles"),
    "a blank end": (bedrock(user(), says({"text": "The answer "})), "cannot end with trailing whitespace"),
    "no result": (bedrock(user(), says(use()), user()), "Expected toolResult blocks at messages.2.content for the following Ids: a"),
    "no result at the end": (bedrock(user(), says(use())), "Expected toolResult blocks at messages.2.content"),
    "an orphan": (bedrock(user(), says(), user(result())), "exceeds the number of toolUse blocks of previous turn"),
    "another call's result": (bedrock(user(), says(use("a")), user(result("b"))), "answer no toolUse block of the previous turn"),
    "two results": (bedrock(user(), says(use("a"), use("b")), user(result("a"), result("a"))), "contain duplicate Ids: a, a"),
    "words before the result": (bedrock(user(), says(use()), user(HI, result())), "must be the first blocks of their message"),
    "an id twice": (bedrock(user(), says(use()), user(result()), says(use()), user(result())), "toolUse blocks at messages.3.content contain duplicate Ids: a"),
    "thinking at the end": (bedrock(user(), says(HI, thought(), POINT), user()), "final block in an assistant message cannot be `thinking`"),
    "no tools": ({"messages": [user(), says(use()), user(result())]}, "The toolConfig field must be defined"),
    "a tool twice": (bedrock(user(), toolConfig={"tools": [{"toolSpec": {"name": "read"}}] * 2}), "duplicate tool names"),
}  # fmt: skip
