"""Every way to send through a wrapped client: found by looking at the real clients, tried against strict stand-ins."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import anthropic
import litellm
import openai
import pytest

from compact import CompactConfig, CompactManager, ConfigError
from compact.integrations.clients import PASSED, REFUSED, SENT, canonical
from compact.integrations.litellm import CompactHook
from compact.messages.cache_marks import count_marks
from compact.testing import CapturingExporter
from compact.tools.standins import Call, Provider, Received, Reply, serving

CLIENTS: dict[str, Any] = {
    "openai": openai.OpenAI,
    "openai-async": openai.AsyncOpenAI,
    "anthropic": anthropic.Anthropic,
    "anthropic-async": anthropic.AsyncAnthropic,
}
INPUTS = {"messages", "input", "prompt", "requests", "thread"}
WINDOW = 8_000
MODELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-5"}
NOT_IN_TABLES = {"beta.threads", "batches.create", "evals", "fine_tuning", "conversations", "chatkit"}


def client(kind: str, provider: Provider | None = None) -> Any:
    url = None if provider is None else (provider.openai_url if kind.startswith("openai") else provider.url)
    return CLIENTS[kind](base_url=url, api_key="none", max_retries=0)


def manager(window: int = WINDOW, **settings: Any) -> tuple[CompactManager, CapturingExporter]:
    seen = CapturingExporter()
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=window,
        windows={"claude": window},
        archive={"adapter": "memory"},
        **settings,
    )
    return CompactManager(config, exporters=[seen]), seen


def long_list(turns: int = 20) -> list[Any]:
    found = [{"role": "user", "content": "Read the reports, and never change their units."}]
    for n in range(turns):
        found.append({"role": "assistant", "content": f"Report {n}: " + f"row {n} has value {n * 31}. " * 60})
        found.append({"role": "user", "content": f"Now number {n + 1}."})
    return found


# --- what there is


def methods(found: Any, path: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every public method under an object of a client's package, with its parameters."""
    own = {name for name in vars(found) if not name.startswith("_")}
    for name in sorted({name for name in dir(type(found)) if not name.startswith("_")} | own):
        kind = inspect.getattr_static(type(found), name, None)
        place = f"{path}.{name}" if path else name
        if name in ("copy", "with_options") or path.count(".") > 6:
            continue
        if isinstance(kind, property | cached_property):
            try:
                value = getattr(found, name)
            except Exception:  # needs a setting that is not given, such as a websocket's address
                continue
            if (
                type(value).__module__.split(".")[0] in ("openai", "anthropic")
                and "resources" in type(value).__module__
            ) or name in ("with_raw_response", "with_streaming_response"):
                yield from methods(value, place)
        elif callable(getattr(found, name)):
            try:
                yield place, set(inspect.signature(getattr(found, name)).parameters)
            except (TypeError, ValueError):
                continue


@cache
def ways(kind: str) -> list[str]:
    """The methods that take a conversation, or could."""
    found = methods(client(kind))
    return [path for path, names in found if names & INPUTS and ("model" in names or "requests" in names)]


def is_listed(path: str) -> bool:
    plain = canonical(path)
    return any(plain == name or plain.endswith(f".{name}") or plain.startswith(f"{name}.") for name in PASSED)


@pytest.mark.parametrize("kind", CLIENTS)
def test_every_method_that_takes_a_conversation_is_covered_refused_or_listed_with_a_reason(kind: str) -> None:
    found = ways(kind)
    assert len(found) > 20, "the search finds something"
    assert {canonical(path) for path in found} >= {
        *(
            {"chat.completions.create", "responses.create"}
            if kind.startswith("openai")
            else {"messages.create"}
        )
    }
    unknown = [
        path
        for path in found
        if canonical(path) not in SENT
        and canonical(path) not in REFUSED
        and canonical(path) not in ("beta.messages.tool_runner", "beta.messages.thread")
        and not is_listed(path)
        and not any(canonical(path).startswith(name) for name in NOT_IN_TABLES)
    ]
    assert unknown == []


def reach(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = getattr(found, name)
    return found


def request_for(path: str, messages: list[Any]) -> dict[str, Any]:
    shape = SENT[canonical(path)]
    if shape.dialect == "anthropic":
        return {"model": MODELS["anthropic"], "messages": messages, "max_tokens": 100}
    return {"model": MODELS["openai"], shape.messages: messages}


def sent_ways(kind: str) -> list[str]:
    return [path for path in ways(kind) if canonical(path) in SENT]


@pytest.mark.parametrize("kind", [kind for kind in CLIENTS if not kind.endswith("async")])
def test_whatever_the_way_the_request_fits(kind: str) -> None:
    made, _ = manager()
    with serving(["ok"], window=WINDOW) as provider, made:
        wrapped = made.wrap(client(kind, provider))
        for path in sent_ways(kind):
            before = len(provider.requests)
            reply = reach(wrapped, path)(**request_for(path, long_list()), session_id=path)
            if hasattr(reply, "__enter__") and not hasattr(reply, "http_response"):
                with reply as opened:
                    read = getattr(opened, "read", None) or opened.until_done
                    read()
            assert len(provider.requests) == before + 1, path
            assert_short(provider.requests[-1], path)
    assert provider.refused == []


@pytest.mark.parametrize("kind", [kind for kind in CLIENTS if not kind.endswith("async")])
def test_the_mark_of_a_protected_message_is_not_sent(kind: str) -> None:
    """Only compact reads it. A provider may refuse a field that it does not know."""
    made, _ = manager()
    with serving(["ok"], window=WINDOW) as provider, made:
        wrapped = made.wrap(client(kind, provider))
        path = "messages.create" if kind == "anthropic" else "chat.completions.create"
        for items in (long_list()[:3], long_list()):
            rule = {"role": "user", "content": "Never touch the database.", "meta": {"protected": True}}
            reach(wrapped, path)(**request_for(path, [rule, {"role": "assistant", "content": "Ok."}, *items]))
            assert "Never touch the database." in str(provider.requests[-1])
            assert "meta" not in provider.requests[-1].body["messages"][0]
    assert provider.refused == []


@pytest.mark.parametrize("kind", [kind for kind in CLIENTS if kind.endswith("async")])
def test_whatever_the_way_the_request_fits_on_an_event_loop(kind: str) -> None:
    made, _ = manager()

    async def go() -> None:
        wrapped = made.wrap(client(kind, provider))
        for path in sent_ways(kind):
            before = len(provider.requests)
            reply = reach(wrapped, path)(**request_for(path, long_list()), session_id=path)
            if hasattr(reply, "__aenter__"):
                async with reply as opened:
                    await (getattr(opened, "read", None) or opened.until_done)()
            else:
                await reply
            assert len(provider.requests) == before + 1, path
            assert_short(provider.requests[-1], path)
        await wrapped.close()

    with serving(["ok"], window=WINDOW) as provider, made:
        asyncio.run(go())
    assert provider.refused == []


def assert_short(request: Received, path: str) -> None:
    assert len(request.messages) < 41, path
    assert 0 < request.tokens < WINDOW, path
    assert "session_id" not in request.body


@pytest.mark.parametrize("path", REFUSED)
def test_what_cannot_be_made_to_fit_is_refused_by_name(path: str) -> None:
    made, _ = manager()
    kind = "anthropic" if "messages" in path else "openai"
    with made, pytest.raises(ConfigError, match=path):
        reach(made.wrap(client(kind)), path)(requests=[])


def test_a_conversation_is_not_posted_by_its_address() -> None:
    made, _ = manager()
    with serving(["ok"]) as provider, made:
        wrapped = made.wrap(client("openai", provider))
        for place in ("/chat/completions", "/responses/", "responses?x=1"):
            with pytest.raises(ConfigError, match="does not post"):
                wrapped.post(place, cast_to=object, body={})
        with pytest.raises(openai.NotFoundError):
            wrapped.post("/other", cast_to=object, body={})


CONVERSATION = ("messages", "input", "system", "instructions", "tools", "functions", "previous_response_id")


@pytest.mark.parametrize("name", CONVERSATION)
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_part_of_the_conversation_is_not_hidden_in_extra_body(kind: str, name: str) -> None:
    made, _ = manager()

    async def send(way: Any, request: dict[str, Any]) -> None:
        found = way(**request)
        if inspect.isawaitable(found):
            await found

    with serving(["ok"]) as provider, made:
        wrapped = made.wrap(client(kind, provider))
        for path in sent_ways(kind):
            request = request_for(path, long_list(1)) | {"extra_body": {name: long_list()}}
            with pytest.raises(ConfigError, match=f"`{name}` inside extra_body") as raised:
                asyncio.run(send(reach(wrapped, path), request))
            assert f"{name}=" in raised.value.hint
    assert provider.requests == []


def test_other_fields_of_extra_body_are_sent_and_its_model_decides_the_window() -> None:
    config = CompactConfig(model="gpt-4o", windows={"claude": WINDOW}, archive={"adapter": "memory"})
    with serving(["ok"]) as provider, CompactManager(config) as made:
        create = made.wrap(client("openai", provider)).chat.completions.create
        request = request_for("chat.completions.create", long_list())
        body = {"top_k": 5, "note": "ann@example.org", "model": "claude-sonnet-5"}
        create(**request, extra_body={"top_k": 5}, session_id="large")
        create(**request, extra_body=body, session_id="small")
    large, small = provider.requests
    assert len(large.messages) == 41
    assert {name: small.body[name] for name in body} == body
    assert_short(small, "extra_body")


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_part_of_a_client_is_not_wrapped(kind: str) -> None:
    """What is reached from a part is not seen, so nothing would be made to fit."""
    made, _ = manager()
    plain = client(kind)
    parts = {path.rpartition(".")[0] for path in ways(kind)}
    parts |= {path.partition(".")[0] for path in parts} | {"with_raw_response", "with_streaming_response"}
    assert {"chat", "responses"} <= parts or {"messages", "beta.messages"} <= parts
    with made:
        for path in sorted(parts):
            with pytest.raises(ConfigError, match="takes a client itself") as raised:
                made.wrap(reach(plain, path))
            assert "Wrap the client" in raised.value.hint


def test_counting_passes_through() -> None:
    made, seen = manager()
    with serving(["ok"]) as provider, made:
        wrapped = made.wrap(client("anthropic", provider))
        counted = wrapped.messages.count_tokens(model=MODELS["anthropic"], messages=long_list())
    assert counted.input_tokens > WINDOW
    assert seen.events == []


# --- Anthropic's tool runner


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_runner_sends_through_the_wrapped_client(stream: bool) -> None:
    made, seen = manager()
    rows = "\n".join(f"row {n}: value {n * 31} measured" for n in range(120))

    @anthropic.beta_tool
    def get_report(number: int) -> str:
        """Gives a report."""
        return f"report {number}\n{rows}"

    def script(request: Received) -> Reply:
        turn = sum(message["role"] == "assistant" for message in request.messages)
        asked = len(provider.accepted)
        return (
            Reply("Done.") if asked > 12 else Reply(f"turn {turn}", [Call("get_report", {"number": asked})])
        )

    with serving(script, window=WINDOW) as provider, made:
        runner = made.wrap(client("anthropic", provider)).beta.messages.tool_runner(
            model=MODELS["anthropic"],
            max_tokens=100,
            tools=[get_report],
            messages=[{"role": "user", "content": "Read all reports."}],
            session_id="runner",
            stream=stream,
        )
        for message in runner:
            if stream:
                message.until_done()
    assert provider.refused == []
    assert len(provider.accepted) == 13
    assert {event["session_id"] for event in seen.events} == {"runner"}
    assert seen.named("pruned_messages")


# --- late refusals


@pytest.mark.parametrize("helper", [False, True], ids=["create", "helper"])
@pytest.mark.parametrize("path", ["chat.completions", "responses", "messages", "beta.messages"])
def test_a_refusal_inside_a_stream_is_survived_where_nothing_was_said(path: str, helper: bool) -> None:
    kind = "anthropic" if "messages" in path else "openai"

    def opened(wrapped: Any) -> Any:
        request = request_for(f"{path}.create", long_list()) | {"session_id": "s"}
        resource = reach(wrapped, path)
        return resource.stream(**request) if helper else resource.create(**request, stream=True)

    def script(request: Received) -> str:
        return f"All {len(request.messages)} read."

    async def iterated() -> list[Any]:
        wrapped = made.wrap(client(f"{kind}-async", provider))
        stream = opened(wrapped) if helper else await opened(wrapped)
        async with stream as events:
            found = [event async for event in events]
        await wrapped.close()
        return found

    for run in ("sync", "async"):
        made, seen = manager(3 * WINDOW)
        with serving(script, window=WINDOW, late_refusals=True) as provider, made:
            if run == "sync":
                with opened(made.wrap(client(kind, provider))) as events:
                    found = list(events)
            else:
                found = asyncio.run(iterated())
        assert len(provider.refused) == 1
        assert len(provider.accepted) == 1
        assert len(seen.named("recovery")) == 1
        assert "read." in str(found)


@pytest.mark.parametrize("inside_extra_body", [False, True])
def test_with_automatic_caching_a_request_has_four_marks_at_most(inside_extra_body: bool) -> None:
    mark = {"type": "ephemeral"}
    automatic = {"extra_body": {"cache_control": mark}} if inside_extra_body else {"cache_control": mark}
    system = [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    talk = long_list(24)
    for place in (-3, -1):
        talk[place]["content"] = [{"type": "text", "text": talk[place]["content"], "cache_control": mark}]
    made, seen = manager()
    with serving(["Yes."], window=WINDOW) as provider, made:
        wrapped = made.wrap(client("anthropic", provider))
        for count in (len(talk) - 2, len(talk)):
            wrapped.messages.create(
                model=MODELS["anthropic"],
                max_tokens=100,
                system=system,
                messages=[*talk[: count - 3], *talk[-3:]],
                session_id="s",
                **automatic,
            )
    assert provider.refused == []
    assert seen.named("pruned_messages")
    assert [count_marks(each.body["messages"], system) for each in provider.accepted] == [3, 3]


READERS = ("parse", "iter_lines", "iter_bytes")


@pytest.mark.parametrize("variant", ["with_raw_response", "with_streaming_response"])
@pytest.mark.parametrize("path", ["chat.completions", "responses", "messages", "beta.messages"])
def test_a_refusal_inside_a_raw_stream_is_survived_and_nothing_of_the_stream_is_lost(
    path: str, variant: str
) -> None:
    kind = "anthropic" if "messages" in path else "openai"
    request = request_for(f"{path}.create", long_list()) | {"session_id": "s", "stream": True}

    def read(reply: Any, reader: str) -> Any:
        return getattr(reply if reader == "parse" else getattr(reply, "http_response", reply), reader)()

    def sync(reader: str) -> list[Any]:
        reply = reach(made.wrap(client(kind, provider)), f"{path}.{variant}").create(**request)
        if variant == "with_raw_response":
            return list(read(reply, reader))
        with reply as opened:
            return list(read(opened, reader))

    async def on_a_loop(reader: str) -> list[Any]:
        async def collect(reply: Any) -> list[Any]:
            found = read(reply, reader if reader == "parse" else f"a{reader}")
            return [each async for each in (await found if inspect.isawaitable(found) else found)]

        wrapped = made.wrap(client(f"{kind}-async", provider))
        reply = reach(wrapped, f"{path}.{variant}").create(**request)
        if variant == "with_raw_response":
            found = await collect(await reply)
        else:
            async with reply as opened:
                found = await collect(opened)
        await wrapped.close()
        return found

    for reader in READERS:
        for run in (sync, on_a_loop):
            made, seen = manager(3 * WINDOW)
            with serving(["All read."], window=WINDOW, late_refusals=True) as provider, made:
                found = run(reader)
                text = str(asyncio.run(found) if inspect.iscoroutine(found) else found)
            assert (len(provider.refused), len(provider.accepted)) == (1, 1)
            assert len(seen.named("recovery")) == 1
            assert "read." in text
            assert "maximum" not in text
            begins = {"chat.completions": "assistant", "responses": "response.created"}
            assert text.count(begins.get(path, "message_start")) >= 1


@pytest.mark.parametrize("run", ["sync", "async"])
@pytest.mark.parametrize("listed", ["messages", "input"])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_refusal_inside_a_stream_of_litellm_is_survived(listed: str, run: str) -> None:
    made, seen = manager(3 * WINDOW)
    hook = CompactHook(made, session_id="s")
    whole, later = (
        (litellm.completion, litellm.acompletion)
        if listed == "messages"
        else (litellm.responses, litellm.aresponses)
    )

    async def iterated(request: dict[str, Any]) -> list[Any]:
        return [event async for event in await hook(later)(**request)]

    with serving(["All read."], window=WINDOW, late_refusals=True) as provider, made:
        request = {
            "model": "openai/gpt-4o",
            listed: long_list(),
            "stream": True,
            "api_base": provider.openai_url,
            "api_key": "none",
        }
        found = list(hook(whole)(**request)) if run == "sync" else asyncio.run(iterated(request))
    assert (len(provider.refused), len(provider.accepted)) == (1, 1)
    assert len(seen.named("recovery")) == 1
    assert "read." in str(found)


@pytest.mark.parametrize("run", ["sync", "async"])
def test_no_text_of_a_stream_is_lost_to_reading_ahead(run: str) -> None:
    made, _ = manager()
    request = request_for("messages.create", [{"role": "user", "content": "Hi"}])

    async def read() -> str:
        wrapped = made.wrap(client("anthropic-async", provider))
        async with wrapped.messages.stream(**request) as stream:
            found = "".join([text async for text in stream.text_stream])
            assert (await stream.get_final_message()).content[0].text == found
        await wrapped.close()
        return found

    with serving(["One two three."]) as provider, made:
        if run == "sync":
            with made.wrap(client("anthropic", provider)).messages.stream(**request) as stream:
                found = "".join(stream.text_stream)
                assert stream.get_final_message().content[0].text == found
                assert stream.get_final_text() == found
        else:
            found = asyncio.run(read())
    assert found == "One two three."


@pytest.mark.parametrize("variant", ["", "with_raw_response."])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_another_error_inside_a_stream_comes_where_it_came(kind: str, variant: str) -> None:
    from compact.tools.standins import Refusal

    made, _ = manager()
    path = "chat.completions" if kind == "openai" else "messages"
    package: Any = openai if kind == "openai" else anthropic
    with serving([Refusal(529, "The server is tired.", "overloaded_error", late=True)]) as provider, made:
        request = request_for(f"{path}.create", [{"role": "user", "content": "Hi"}])
        stream = reach(made.wrap(client(kind, provider)), f"{path}.{variant}create")(**request, stream=True)
        with pytest.raises(package.APIError, match="tired"):
            list(stream.parse() if variant else stream)
    assert len(provider.requests) == 1


# --- the wrapped client as an object


def test_attributes_may_be_set_and_reach_the_client() -> None:
    made, _ = manager()
    with serving(["ok"]) as provider, made:
        plain = client("openai", provider)
        wrapped = made.wrap(plain)
        wrapped.api_key = "other"
        wrapped.note = "mine"
        assert (plain.api_key, plain.note, wrapped.note) == ("other", "mine", "mine")
        del wrapped.note
        assert not hasattr(plain, "note")
        wrapped.chat.completions.create(model="gpt-4o", messages=long_list(1))
        assert provider.requests[0].headers["authorization"] == "Bearer other"
        assert "chat" in dir(wrapped)


def test_a_method_that_others_put_around_ours_is_used_and_may_be_taken_away() -> None:
    made, seen = manager()
    told: list[int] = []
    with serving(["ok"], window=WINDOW) as provider, made:
        plain = client("openai", provider)
        wrapped = made.wrap(plain, session_id="s")
        ours = wrapped.chat.completions.create

        def instrumented(**request: Any) -> Any:
            told.append(len(request["messages"]))
            return ours(**request)

        wrapped.chat.completions.create = instrumented
        wrapped.chat.completions.create(model="gpt-4o", messages=long_list())
        assert told == [41], "the others see what the host sends"
        assert len(provider.requests[0].messages) < 41, "and ours still makes it fit"
        plain.chat.completions.create(model="gpt-4o", messages=long_list(2))
        assert told == [41], "the client that was wrapped is as it was"
        del wrapped.chat.completions.create
        wrapped.chat.completions.create(model="gpt-4o", messages=long_list())
        assert told == [41]
    assert len(seen.named("token_estimate")) >= 2


def test_a_method_that_was_instrumented_before_is_called_by_ours() -> None:
    made, _ = manager()
    told: list[int] = []
    with serving(["ok"], window=WINDOW) as provider, made:
        plain = client("openai", provider)
        create = plain.chat.completions.create

        def instrumented(**request: Any) -> Any:
            told.append(len(request["messages"]))
            return create(**request)

        plain.chat.completions.create = instrumented
        made.wrap(plain).chat.completions.create(model="gpt-4o", messages=long_list())
    assert told == [len(provider.requests[0].messages)]


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_is_wrapped_once(kind: str) -> None:
    made, _ = manager()
    with made:
        wrapped = made.wrap(client(kind))
        for again in (wrapped, wrapped.with_options(timeout=1)):
            with pytest.raises(ConfigError, match="wrapped already"):
                made.wrap(again)
