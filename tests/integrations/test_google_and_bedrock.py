"""The wrapped clients of google-genai and boto3, against stand-ins that refuse what Google and Bedrock refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from support.integrations import agent_manager

from compact import CompactManager, ConfigError
from compact.archive.recall import offered_prefix
from compact.integrations.google_genai import as_contents
from compact.integrations.nested_requests import list_tools
from compact.integrations.recall import RecallTools
from compact.messages import dialects
from compact.tools.standins import Call, Provider, Received, Refusal, Reply, Rules, serving

genai = pytest.importorskip("google.genai")
boto3 = pytest.importorskip("boto3")
types = genai.types
# What google-genai makes of aiohttp, where that is installed.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

GEMINI = "gemini-2.5-pro"
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
TASK = "Read all reports and never change the units. " * 3
REPORTS = 30
WINDOW = 16_000
SIGNED = Rules(signing_key=b"stand-in", thought_signatures=True)
TOOL: Any = {
    "name": "get_report",
    "description": "Gives a report.",
    "parameters": {"type": "OBJECT", "properties": {"number": {"type": "INTEGER"}}},
}


def report(number: int) -> str:
    return "\n".join(
        f"report {number}, line {line}: {line * number % 97} units were shipped" for line in range(60)
    )


def reads_all(request: Received) -> Reply:
    """A model that asks for one report after the other, thinks before each, and says how many it read."""
    number = request.number
    if number > REPORTS:
        return Reply("All is read.")
    return Reply("", [Call("get_report", {"number": number})], f"I need report {number}.")


@contextmanager
def google(provider: Provider) -> Iterator[Any]:
    with genai.Client(api_key="none", vertexai=False, http_options={"base_url": provider.url}) as client:
        yield client


@contextmanager
def bedrock(provider: Provider) -> Iterator[Any]:
    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    config = boto3.session.Config(retries={"total_max_attempts": 1})
    client = boto3.client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=provider.url, config=config, **keys
    )
    with closing(client):
        yield client


@contextmanager
def agent(model: str, **settings: Any) -> Iterator[tuple[CompactManager, Any]]:
    manager, seen = agent_manager(WINDOW, windows={model: WINDOW}, **settings)
    with manager:
        yield manager, seen


class GeminiLoop:
    """A loop over contents, as people write it: it keeps the full history."""

    model = GEMINI
    client = staticmethod(google)

    def __init__(self) -> None:
        self.contents: list[Any] = [types.UserContent(TASK)]
        self.config: Any = {
            "system_instruction": "You read reports.",
            "tools": [{"function_declarations": [TOOL]}],
        }

    def whole(self, client: Any) -> str | None:
        return self.took(
            client.models.generate_content(model=GEMINI, contents=self.contents, config=self.config)
        )

    def streamed(self, client: Any) -> str | None:
        chunks = list(
            client.models.generate_content_stream(model=GEMINI, contents=self.contents, config=self.config)
        )
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
        return self.took_parts(parts)

    async def awaited(self, client: Any) -> str | None:
        return self.took(
            await client.aio.models.generate_content(model=GEMINI, contents=self.contents, config=self.config)
        )

    async def streamed_async(self, client: Any) -> str | None:
        stream = await client.aio.models.generate_content_stream(
            model=GEMINI, contents=self.contents, config=self.config
        )
        return self.took_parts([part async for chunk in stream for part in chunk.candidates[0].content.parts])

    def took(self, reply: Any) -> str | None:
        return self.took_parts(reply.candidates[0].content.parts)

    def took_parts(self, parts: list[Any]) -> str | None:
        self.contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        answers = [
            types.FunctionResponse(
                id=call.id, name=call.name, response={"output": report(call.args["number"])}
            )
            for call in calls
        ]
        if answers:
            self.contents.append(types.UserContent([types.Part(function_response=each) for each in answers]))
            return None
        return "".join(part.text or "" for part in parts if not part.thought)


class ConverseLoop:
    """The same over Bedrock's Converse."""

    model = CLAUDE
    client = staticmethod(bedrock)

    def __init__(self) -> None:
        self.messages: list[Any] = [{"role": "user", "content": [{"text": TASK}]}]
        spec = {
            "name": "get_report",
            "description": "Gives a report.",
            "inputSchema": {"json": {"type": "object"}},
        }
        self.more = {"system": [{"text": "You read reports."}], "toolConfig": {"tools": [{"toolSpec": spec}]}}

    def whole(self, client: Any) -> str | None:
        reply = client.converse(modelId=CLAUDE, messages=self.messages, **self.more)
        return self.took(reply["output"]["message"]["content"])

    def streamed(self, client: Any) -> str | None:
        blocks: dict[int, dict[str, Any]] = {}
        with closing(
            client.converse_stream(modelId=CLAUDE, messages=self.messages, **self.more)["stream"]
        ) as stream:
            for event in stream:
                self._add(blocks, event)
        return self.took(list(blocks.values()))

    def _add(self, blocks: dict[int, dict[str, Any]], event: Any) -> None:
        import json

        if start := event.get("contentBlockStart"):
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        if stop := event.get("contentBlockStop"):
            use = blocks[stop["contentBlockIndex"]].get("toolUse")
            if use is not None:
                use["input"] = json.loads(use["input"])
        if "contentBlockDelta" not in event:
            return
        place, delta = event["contentBlockDelta"]["contentBlockIndex"], event["contentBlockDelta"]["delta"]
        if "text" in delta:
            blocks.setdefault(place, {"text": ""})["text"] += delta["text"]
        elif "toolUse" in delta:
            blocks[place]["toolUse"]["input"] += delta["toolUse"]["input"]
        else:
            empty = {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}}
            said = blocks.setdefault(place, empty)["reasoningContent"]["reasoningText"]
            for key, value in delta["reasoningContent"].items():
                said[key] += value

    def took(self, blocks: list[Any]) -> str | None:
        self.messages.append({"role": "assistant", "content": blocks})
        results = [
            {
                "toolResult": {
                    "toolUseId": use["toolUseId"],
                    "content": [{"text": report(use["input"]["number"])}],
                }
            }
            for use in (block["toolUse"] for block in blocks if "toolUse" in block)
        ]
        if results:
            self.messages.append({"role": "user", "content": results})
            return None
        return "".join(block.get("text", "") for block in blocks)


LOOPS: list[Any] = [GeminiLoop, ConverseLoop]


def run(loop: Any, client: Any, way: str) -> str:
    async def awaited() -> str:
        while (said := await getattr(loop, way)(client)) is None:
            pass
        return str(said)

    if way in ("awaited", "streamed_async"):
        return asyncio.run(awaited())
    while (said := getattr(loop, way)(client)) is None:
        pass
    return str(said)


@pytest.mark.parametrize(
    ("kind", "way"),
    [*((GeminiLoop, way) for way in ("whole", "streamed", "awaited", "streamed_async")), (ConverseLoop, "whole"), (ConverseLoop, "streamed")],
)  # fmt: skip
def test_an_agent_reads_more_than_its_window_holds_and_no_request_is_refused(kind: Any, way: str) -> None:
    with (
        agent(kind.model) as (manager, seen),
        serving(reads_all, window=WINDOW, rules=SIGNED) as provider,
        kind.client(provider) as client,
    ):
        assert run(kind(), manager.wrap(client), way) == "All is read."
    assert provider.refused == []
    assert len(provider.accepted) == REPORTS + 1
    assert "never change the units" in str(provider.accepted[-1].messages)
    assert seen.named("pruned_messages"), "something had to go"


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize("late", [False, True])
def test_a_request_that_the_provider_finds_too_long_is_made_smaller_and_sent_again(
    kind: Any, way: str, late: bool
) -> None:
    with (
        agent(kind.model) as (manager, _),
        serving(reads_all, window=9_000, rules=SIGNED, late_refusals=late) as provider,
        kind.client(provider) as client,
    ):
        assert run(kind(), manager.wrap(client), way) == "All is read."
    assert provider.refused, "the window is smaller than compact was told"
    assert all("too long" in why or "exceeds the maximum" in why for why in provider.refused)


@pytest.mark.parametrize("kind", LOOPS)
def test_other_errors_reach_the_host_as_they_are(kind: Any) -> None:
    with (
        agent(kind.model) as (manager, _),
        serving([Refusal(403, "Not yours.")]) as provider,
        kind.client(provider) as client,
        pytest.raises(Exception, match="Not yours") as refused,
    ):
        kind().whole(manager.wrap(client))
    assert type(refused.value).__module__.partition(".")[0] in ("google", "botocore")


@pytest.mark.parametrize("kind", LOOPS)
def test_a_wrapped_client_is_what_it_was(kind: Any) -> None:
    with agent(kind.model) as (manager, _), serving(["Hi."]) as provider, kind.client(provider) as client:
        wrapped = manager.wrap(client)
        assert isinstance(wrapped, type(client))
        assert repr(wrapped).startswith("<compact: ")
        assert "close" in dir(wrapped)
        with pytest.raises(ConfigError, match="wrapped already"):
            manager.wrap(wrapped)


def test_a_session_is_named_for_the_client_or_for_a_call() -> None:
    with (
        agent(GEMINI) as (manager, seen),
        serving(["Hi."]) as provider,
        google(provider) as client,
        bedrock(provider) as other,
    ):
        ours = manager.wrap(client, session_id="mine")
        ours.models.generate_content(model=GEMINI, contents="Hello")
        ours.models.generate_content(model=GEMINI, contents="Hello", session_id="other")
        claude = manager.wrap(other, session_id="claude")
        claude.converse(modelId=CLAUDE, messages=[{"role": "user", "content": [{"text": "Hello"}]}])
    named = [event["session_id"] for event in seen.named("token_estimate")]
    assert named == ["mine", "other", "claude"]
    assert provider.accepted[0].messages == [{"role": "user", "parts": [{"text": "Hello"}]}]


def test_a_chat_of_google_is_made_to_fit() -> None:
    def says(request: Received) -> Reply:
        return Reply(f"Noted {request.number}. " + "word " * 300)

    with (
        agent(GEMINI) as (manager, seen),
        serving(says, window=WINDOW) as provider,
        google(provider) as client,
    ):
        chat = manager.wrap(client).chats.create(model=GEMINI)
        for number in range(60):
            chat.send_message(f"Point {number}: " + "detail " * 120)
    assert provider.refused == []
    assert len(provider.accepted) == 60
    assert seen.named("pruned_messages")


def test_what_cannot_be_made_to_fit_is_refused() -> None:
    with (
        agent(GEMINI) as (manager, _),
        serving(["Hi."]) as provider,
        google(provider) as client,
        bedrock(provider) as other,
    ):
        with pytest.raises(ConfigError, match=r"no batches\.create: a batch is not answered at once"):
            manager.wrap(client).batches.create(model=GEMINI)
        with pytest.raises(ConfigError, match=r"no live\.connect"):
            manager.wrap(client).aio.live.connect(model=GEMINI)
        with pytest.raises(ConfigError, match="no invoke_model: its body"):
            manager.wrap(other).invoke_model(modelId=CLAUDE, body=b"{}")
        with pytest.raises(ConfigError, match="wrap takes a client itself"):
            manager.wrap(client.models)
        with (
            closing(boto3.client("s3", region_name="us-east-1")) as objects,
            pytest.raises(ConfigError, match="got that of s3"),
        ):
            manager.wrap(objects)
    assert provider.requests == []


def test_what_the_clients_take_beside_lists_is_a_content_of_the_user() -> None:
    part = types.Part(text="there")
    content = types.Content(role="model", parts=[part])
    assert as_contents("Hi") == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert as_contents(["Hi", "you"]) == [{"role": "user", "parts": [{"text": "Hi"}, {"text": "you"}]}]
    assert as_contents(content) == [content]
    mixed = as_contents([content, "Hi", part, [part]])
    assert [dialects.get("gemini").read(item).text for item in mixed] == ["there", "Hi\nthere", "there"]
    assert [dialects.get("gemini").read(item).role for item in mixed] == ["assistant", "user", "user"]


@pytest.mark.parametrize("kind", LOOPS)
def test_the_recall_tools_are_offered_answered_and_called_by_their_names(kind: Any) -> None:
    said = Reply("", [Call("mine_ls", {"path": "/"}), Call("other")])
    with agent(kind.model) as (manager, _), serving([said]) as provider, kind.client(provider) as client:
        tools = RecallTools(manager, "s", prefix="mine_")
        ours, is_google = manager.wrap(client, session_id="s"), kind is GeminiLoop
        if is_google:
            config = {"tools": tools.gemini}
            reply = ours.models.generate_content(model=GEMINI, contents="Look.", config=config)
        else:
            ask = [{"role": "user", "content": [{"text": "Look."}]}]
            reply = ours.converse(modelId=CLAUDE, messages=ask, toolConfig={"tools": tools.converse})
        (answer,) = tools.answers(reply)
    if is_google:
        (declared,) = provider.accepted[0].body["tools"]
        assert [each["name"] for each in declared["functionDeclarations"]][:1] == ["mine_read_file"]
        assert answer["functionResponse"]["name"] == "mine_ls"
    else:
        names = [tool["toolSpec"]["name"] for tool in provider.accepted[0].body["toolConfig"]["tools"]]
        assert names[:1] == ["mine_read_file"]
        assert answer["toolResult"]["toolUseId"] == "tooluse_0001_0"
    assert offered_prefix(list_tools(tools.gemini if is_google else tools.converse) or ()) == "mine_"


def test_functions_as_tools_are_counted_by_what_is_sent_of_them() -> None:
    def get_report(number: int) -> str:
        """Gives a report."""
        return str(number)

    with agent(GEMINI) as (manager, seen), serving(["Hi."]) as provider, google(provider) as client:
        config = types.GenerateContentConfig(tools=[get_report], system_instruction="You read reports.")
        manager.wrap(client).models.generate_content(model=GEMINI, contents="Hello", config=config)
    assert provider.accepted[0].body["tools"][0]["functionDeclarations"][0]["name"] == "get_report"
    assert seen.named("token_estimate")[0]["properties"]["breakdown"]["tools_schema"] > 0


def test_live_masking_holds_for_prompt_tools_and_messages() -> None:
    secret = "sk-live-4fXq9ZtR7LwB2nVc8KdY"
    with (
        agent(GEMINI, redaction={"live": "secrets"}) as (manager, _),
        serving(["Hi."]) as provider,
        google(provider) as client,
        bedrock(provider) as other,
    ):
        ours, claude = manager.wrap(client), manager.wrap(other)
        told: Any = {"function_declarations": [{"name": "ls", "description": f"The api key is {secret}."}]}
        prompt = types.GenerateContentConfig(system_instruction=f"The api key is {secret}.", tools=[told])
        ours.models.generate_content(model=GEMINI, contents=f"password: {secret}", config=prompt)
        ours.models.count_tokens(model=GEMINI, contents=f"password: {secret}")
        claude.converse(
            modelId=CLAUDE,
            messages=[{"role": "user", "content": [{"text": f"password: {secret}"}]}],
            system=[{"text": f"The api key is {secret}."}],
        )
    assert len(provider.accepted) == 2
    assert all(secret not in str(request.body) for request in provider.requests)
