"""The request's own model decides its window, its tokenizer and what is learned from it."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import ratio
from support.hosts import ChatLoop

from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.testing import CapturingExporter
from compact.tokens import Meter
from compact.tools.standins import Provider, Received, serving

# LiteLLM writes its log in a task of its own, which the end of an event loop cuts off.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SMALL = "small-8k"
SIZES = {"gpt-4o": 128_000, SMALL: 8_000, "claude-sonnet-5": 60_000, "nobody-knows-it": 24_000}


def talk(turns: int, words: int = 60) -> list[Any]:
    found: list[Any] = [{"role": "user", "content": "Read the reports, and never change their units."}]
    for n in range(turns):
        found.append(
            {"role": "assistant", "content": f"Report {n}: " + f"row {n} has value {n * 31}. " * words}
        )
        found.append({"role": "user", "content": f"Now number {n + 1}."})
    return found


def manager(**more: Any) -> CompactManager:
    given = {"model": "gpt-4o", "archive": {"adapter": "memory"}, **more}
    return CompactManager(CompactConfig(**given))


# --- windows


def window(made: CompactManager, model: str) -> tuple[int, bool]:
    found = made.models.window(model)
    return found.tokens, found.known


def test_max_context_tokens_is_the_window_of_the_configured_model_under_all_its_names() -> None:
    made = manager(max_context_tokens=9_000, windows={"mine": 20_000})
    with made:
        for name in ("gpt-4o", "gpt-4o-2024-08-06", "openai/gpt-4o", "azure/gpt-4o", "ft:gpt-4o:org::id"):
            assert window(made, name) == (9_000, True), name
        assert window(made, "gpt-4o-mini") == (128_000, True), "another row of the table"
        assert window(made, "claude-sonnet-4-5")[0] == Meter("claude-sonnet-4-5").estimate([]).max_tokens
        assert window(made, "mine") == (20_000, True)
        assert window(made, "nobody-knows-it") == (9_000, True)


def test_a_model_that_nobody_knows_gets_the_default_and_a_warning() -> None:
    seen = CapturingExporter()
    made = CompactManager(model="gpt-4o", archive={"adapter": "memory"}, exporters=[seen])
    with made:
        made.preflight("s", talk(1), model="nobody-knows-it")
        assert window(made, "nobody-knows-it") == (128_000, False)
        made.preflight("s", talk(1))
    assert [event["properties"]["code"] for event in seen.named("warning")] == ["unknown_model"]


def test_an_estimate_is_made_for_the_model_that_is_asked_about() -> None:
    with manager(windows={SMALL: 8_000}) as made:
        items = talk(10)
        for model in ("gpt-4o", "claude-sonnet-4-5", SMALL):
            found = made.estimate(items, model=model)
            assert found.total == Meter(model).estimate(items).total
            assert found.usage_pct == pytest.approx(found.total / made.models.window(model).tokens, rel=0.01)


# --- what is learned


class Refusing:
    """A model call that refuses what is larger than the model's window, in a provider's words."""

    def __init__(self, model: str, size: int) -> None:
        self.model, self.size = model, size
        self.sent: list[int] = []

    def __call__(self, messages: Any) -> Any:
        tokens = Meter(self.model).estimate(messages).total
        if tokens > self.size:
            raise RuntimeError(
                f"This model's maximum context length is {self.size} tokens. However, your messages resulted in "
                f"{tokens} tokens. Please reduce the length of the messages."
            )
        self.sent.append(tokens)
        return {"usage": {"prompt_tokens": tokens}}


@pytest.mark.parametrize("same_session", [True, False])
def test_an_overflow_of_one_model_changes_nothing_for_another(same_session: bool) -> None:
    items = talk(110)
    with manager() as made:
        full = made.estimate(items).total
        assert 50_000 < full < 100_000
        small = Refusing(SMALL, 8_000)
        made.call("s" if same_session else "other", items, small, model=SMALL)
        assert 0 < max(small.sent) <= 8_000
        assert made.models.window(SMALL, "s" if same_session else "other").tokens == 8_000
        assert window(made, "gpt-4o") == (128_000, True)
        big = Refusing("gpt-4o", 128_000)
        fresh = talk(110)
        made.call("fresh", fresh, big, model="gpt-4o")
        assert big.sent == [full], "the whole of it is sent"
        assert made.preflight("fresh 2", fresh) is fresh


def test_what_a_provider_counts_belongs_to_its_model() -> None:
    with manager() as made:
        items = talk(20)
        made.preflight("s", items, model="gpt-4o")
        made.observe("s", input_tokens=made.estimate(items).total * 2)
        session = made.sessions.get("s")
        assert ratio(session, "gpt-4o") == pytest.approx(2.0, rel=0.01)
        assert ratio(session, "gpt-4.1") == 1
        made.preflight("s", items, model="gpt-4.1")
        made.observe("s", input_tokens=made.estimate(items, model="gpt-4.1").total)
        assert ratio(session, "gpt-4.1") == pytest.approx(1.0, rel=0.01)
        assert ratio(session, "gpt-4o") == pytest.approx(2.0, rel=0.01)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(sorted(SIZES)), min_size=2, max_size=6), st.booleans())
def test_any_sequence_of_models_in_one_session_fits_each(models: list[str], keeps: bool) -> None:
    """Smaller and larger ones in turn, for a host that keeps what was sent and for one that passes everything."""
    with manager(windows={model: size for model, size in SIZES.items() if model != "gpt-4o"}) as made:
        items = talk(30)
        for n, model in enumerate(models):
            items = [*items, *talk(4)[1:], {"role": "user", "content": f"turn {n}"}]
            sent = made.preflight("s", items, model=model)
            assert Meter(model).estimate(sent).total <= made.config.budget(SIZES[model])
            assert violations(sent) == []
            assert sent[-1] is items[-1]
            again = made.preflight("s", sent if keeps else items, model=model)
            assert again == sent
            if keeps:
                items = list(sent)


# --- through the integrations


def conversation(provider: Provider, model: str) -> list[Received]:
    return [request for request in provider.accepted if request.body["model"] == model]


@pytest.mark.parametrize(
    "way",
    ["chat", "responses", "anthropic", "litellm", pytest.param("litellm-async", marks=pytest.mark.sweep)],
)
def test_every_way_passes_the_requests_model_on(way: str) -> None:
    """The provider's small model has 8,000 tokens, which nobody told us: its refusal is not learned for the other."""
    names = ("small-one", "gpt-4o")
    sizes = {"small-one": 8_000, "gpt-4o": 128_000}
    items = talk(40)
    with manager() as made, serving(["ok"], window=sizes) as provider:
        for model in names:
            send(made, provider, way, model, items)
        refused = len(provider.refused)
        for model in names:
            send(made, provider, way, model, items)
        assert 1 <= refused == len(provider.refused), "what it said once is known"
        bodies = {model: conversation(provider, model) for model in names}
        assert all(request.tokens <= 8_000 for request in bodies["small-one"])
        assert [len(request.messages) for request in bodies["gpt-4o"]] == [len(items)] * 2


def send(made: CompactManager, provider: Provider, way: str, model: str, items: list[Any]) -> None:
    session = {"session_id": f"of {model}"}
    if way == "anthropic":
        import anthropic

        wrapped: Any = made.wrap(anthropic.Anthropic(base_url=provider.url, api_key="none", max_retries=0))
        wrapped.messages.create(model=model, messages=items, max_tokens=100, **session)
    elif way.startswith("litellm"):
        import litellm

        from compact.integrations.litellm import CompactHook

        hook = CompactHook(made)
        where = {"api_base": provider.openai_url, "api_key": "none", "num_retries": 0}
        # LiteLLM routes by the name's first part and sends the rest.
        request = {"model": f"openai/{model}", "messages": items, **where, **session}
        if way == "litellm":
            hook(litellm.completion)(**request)
        else:
            asyncio.run(hook(litellm.acompletion)(**request))
    else:
        wrapped = made.wrap(openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
        if way == "chat":
            wrapped.chat.completions.create(model=model, messages=items, **session)
        else:
            wrapped.responses.create(model=model, input=items, **session)


def test_a_hooks_context_may_name_the_model() -> None:
    from types import SimpleNamespace

    from compact.integrations.hooks import before_model_call

    with manager(windows={SMALL: 8_000}) as made:
        ctx = SimpleNamespace(session_id="s", messages=talk(40), model=SMALL)
        before_model_call(made)(ctx)
        assert made.estimate(ctx.messages, model=SMALL).total < 8_000


# --- two conversations through one wrapped client


@pytest.mark.parametrize("rebuilt", [False, True], ids=["kept objects", "rebuilt objects"])
def test_interleaved_conversations_through_one_client_break_no_prefix(rebuilt: bool) -> None:
    """Two agents with the same task and one client, no session id: each keeps its own session and its prefix."""
    import copy

    from compact.tools.standins import Call, Reply, prefix_breaks

    def script(request: Received) -> Reply:
        who = "one" if "agent one" in str(request.messages[1]) else "two"
        asked = len(mine(who))
        return (
            Reply("Done.")
            if asked > 24
            else Reply(calls=[Call("get_report", {"number": asked + (who == "two") * 99})])
        )

    def mine(who: str) -> list[Received]:
        return [request for request in provider.accepted if f"agent {who}" in str(request.messages)]

    seen = CapturingExporter()
    made = CompactManager(
        model="gpt-4o", max_context_tokens=8_000, archive={"adapter": "memory"}, exporters=[seen]
    )
    with made, serving(script, window=8_000) as provider:
        wrapped = made.wrap(openai.OpenAI(base_url=provider.openai_url, api_key="none", max_retries=0))
        loops = {"one": ChatLoop(), "two": ChatLoop()}
        for who, loop in loops.items():
            loop.messages[1] = {"role": "user", "content": f"I am agent {who}. Read all reports."}
        for _ in range(24):
            for loop in loops.values():
                if rebuilt:
                    loop.messages = copy.deepcopy(loop.messages)
                loop.took(loop.create(wrapped))
    assert provider.refused == []
    names = {event["session_id"] for event in seen.named("token_estimate")}
    assert len(names) == 2
    steps = {
        name: len([e for e in seen.named("pruned_messages") if e["session_id"] == name]) for name in names
    }
    for who in loops:
        assert len(mine(who)) == 24
        assert prefix_breaks(mine(who)) <= max(steps.values()), "only a pass changes what was sent"
    assert all(1 <= count <= 8 for count in steps.values())
    assert [event["properties"]["code"] for event in seen.named("warning")].count("new_conversation") == 2
