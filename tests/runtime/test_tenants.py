"""The same session id under two tenants is two sessions in every respect."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.engine import Item, manager, ratio, says, turns, user

from compact import CompactConfig, CompactManager, ConfigError
from compact.events.session_key import SessionKey
from compact.integrations.hooks import abefore_model_call, before_model_call
from compact.middleware import ContextManagementMiddleware

LONG = turns(40, words=60)


def talk(name: str | None) -> list[Item]:
    return [user(f"I am {name}."), says("Hello."), *turns(8)]


def on(root: Path, **settings: Any) -> CompactManager:
    return CompactManager(model="gpt-4o", max_context_tokens=16_000, archive={"root": str(root)}, **settings)


# --- whose a call is


def test_two_tenants_with_one_id_share_no_state_and_no_archive() -> None:
    made = manager(16_000)
    for name in (None, "acme", "beta"):
        made.manual_compact("s", talk(name), tenant=name)
        made.offload(f"the output of {name}", "read", "c1", "s", tenant=name)
    made.manual_compact("s", [*talk("acme"), *turns(9)[16:]], tenant="acme")
    for name, steps in ((None, [1]), ("acme", [1, 2]), ("beta", [1])):
        archive = made.archive if name is None else made.for_tenant(name).archive
        assert archive.steps("s") == steps
        assert archive.restore("s", 1).messages[0]["content"] == f"I am {name}."
        shown = made.recall_tools("s", tenant=name)["grep"]("I am|output of")
        assert f"I am {name}." in shown
        assert {f"the output of {other}" in shown for other in {None, "acme", "beta"} - {name}} == {False}
        outcome = made.last_outcome("s", tenant=name)
        assert outcome is not None
        assert outcome.step == steps[-1]
    assert made.archive.tenants() == ["acme", "beta"]


def test_the_configured_tenant_is_the_default_and_an_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    made = manager(16_000, tenant="acme")
    assert made.tenant == "acme"
    made.manual_compact("s", talk("acme"))
    made.manual_compact("s", talk("beta"), tenant="beta")
    assert made.archive.restore("s").messages[0]["content"] == "I am acme."
    assert made.for_tenant("beta").archive.restore("s").messages[0]["content"] == "I am beta."
    assert made.services.archive.sessions() == []
    monkeypatch.setenv("COMPACT_TENANT", "42")
    assert CompactConfig().tenant == "42"


def test_a_tenants_view_is_the_manager_with_another_default() -> None:
    made = manager(16_000)
    acme = made.for_tenant("acme")
    assert (made.tenant, acme.tenant, acme.for_tenant("beta").tenant) == (None, "acme", "beta")
    standing = acme.manual_compact("s", talk("acme"))
    assert made.preflight("s", standing, tenant="acme") == standing
    assert acme.sessions.get("s", "acme") is made.sessions.get("s", "acme")
    assert acme.resolver is made.for_tenant("acme").resolver
    assert acme.resolver is not made.resolver
    with acme:
        acme.preflight("s", standing)
    assert made.preflight("t", talk("x")), "closing a view closes nothing"
    assert [event.name for event in acme.archive.events("s")][-1] == "compact.trigger_decision"


def test_the_async_twins_take_a_tenant_too() -> None:
    made = manager(16_000)

    async def run() -> None:
        await made.amanual_compact("s", talk("acme"), tenant="acme")
        await made.apreflight("s", talk("beta"), tenant="beta")
        await made.acall("s", talk("beta"), lambda sent: len(sent), tenant="beta")
        await made.manage_context(talk("gamma"), session_id="s", tenant="gamma")
        await made.aprocess_tool_result("x", "t", "c", "s", tenant="acme")
        await made.areset("s", tenant="acme")

    asyncio.run(run())
    assert made.last_request("s", tenant="beta") is not None
    assert made.last_request("s", tenant="acme") is None
    assert made.for_tenant("acme").archive.is_forgotten("s", 1)
    assert made.archive.sessions() == []


def test_another_process_of_the_same_tenant_continues_its_named_session(tmp_path: Path) -> None:
    with on(tmp_path) as first:
        standing = first.manual_compact("s", talk("acme"), tenant="acme")
    with on(tmp_path, tenant="acme") as second, on(tmp_path) as stranger:
        assert second.preflight("s", talk("acme")) == standing
        assert stranger.preflight("s", talk("acme"), tenant="beta") == talk("acme")
        assert stranger.preflight("s", talk("acme")) == talk("acme")


def test_a_reset_forgets_one_tenants_session(tmp_path: Path) -> None:
    with on(tmp_path) as made:
        for name in ("acme", "beta"):
            made.manual_compact("s", talk("x"), tenant=name)
        made.reset("s", tenant="acme")
        assert made.preflight("s", talk("x"), tenant="acme") == talk("x")
        assert made.preflight("s", talk("x"), tenant="beta") != talk("x")


def test_one_tenants_work_does_not_hold_up_anothers() -> None:
    """They have a lane each, though the session has the same id."""
    busy, go_on = threading.Event(), threading.Event()

    def summarize(request: Any) -> str:
        if "I am slow" in str(request.messages):
            busy.set()
            assert go_on.wait(20)
        return "## Goal\nNothing"

    made = manager(16_000, summarizer=summarize)
    slow = threading.Thread(target=lambda: made.manual_compact("s", talk("slow"), tenant="slow"))
    slow.start()
    try:
        assert busy.wait(20)
        assert made.preflight("s", talk("quick"), tenant="quick") == talk("quick")
    finally:
        go_on.set()
        slow.join()


# --- what is learned


def refuse_once(limit: int, took: int) -> Any:
    """A provider that refuses the first request and answers the others."""
    asked: list[int] = []

    def send(sent: list[Item]) -> str:
        asked.append(len(sent))
        if len(asked) == 1:
            raise RuntimeError(
                f"context_length_exceeded: This model's maximum context length is {limit} tokens. However, your "
                f"messages resulted in {took} tokens."
            )
        return "ok"

    return send


def test_a_limit_that_one_tenants_provider_named_holds_for_this_tenant_alone() -> None:
    made = manager(32_000)
    made.call("s", LONG, refuse_once(7_000, made.estimate(LONG).total), tenant="acme")
    assert made.for_tenant("acme").models.window(None, "s").tokens == 7_000
    assert made.for_tenant("beta").models.window(None, "s").tokens == 32_000
    assert made.models.window(None, "s").tokens == 32_000
    assert made.preflight("s", LONG, tenant="beta") == LONG


def test_observed_counts_belong_to_a_tenants_session() -> None:
    made = manager(32_000)
    for name in ("acme", "beta"):
        made.preflight("s", turns(20), tenant=name)
    made.observe("s", input_tokens=9_000, tenant="acme")
    assert ratio(made.sessions.get("s", "acme"), "gpt-4o") > 1
    assert ratio(made.sessions.get("s", "beta"), "gpt-4o") == 1


def test_a_summarizer_that_failed_one_tenant_is_still_asked_for_another() -> None:
    asked: list[str] = []

    def summarize(request: Any) -> str:
        asked.append(str(request.messages[0]))
        raise RuntimeError("down")

    made = manager(16_000, summarizer=summarize)
    for n in range(5):
        made.manual_compact(f"s{n}", talk("acme"), tenant="acme")
    paused = len(asked)
    made.manual_compact("t", talk("acme"), tenant="acme")
    assert len(asked) == paused, "it is paused for this tenant"
    made.manual_compact("t", talk("beta"), tenant="beta")
    assert len(asked) > paused


def test_redactors_and_placeholders_belong_to_a_tenants_session() -> None:
    made = manager(16_000, redaction={"live": "secrets"})
    password = "kX9!vQ2#mZ7pLw4R"
    masked = made.preflight("s", [user(f"password={password}")], tenant="acme")[0]["content"]
    assert password not in masked
    assert password in made.unmask("s", masked, tenant="acme")
    assert made.unmask("s", masked, tenant="beta") == masked
    assert made.unmask("s", masked) == masked
    redactors = {made.services.redactor(SessionKey("s", name)) for name in (None, "acme", "beta")}
    assert len(redactors) == 3


def test_statistics_are_a_tenants_own_and_add_up() -> None:
    made = manager(16_000)
    made.manual_compact("s", talk("acme"), tenant="acme")
    made.manual_compact("s", talk("beta"), tenant="beta")
    made.offload("words " * 3_000, "read", "c", "s", tenant="beta")
    whole = made.get_compaction_stats()
    parts = [made.get_compaction_stats(tenant=name) for name in ("acme", "beta", "none yet")]
    assert [part["compaction_events"] for part in parts] == [1, 2, 0]
    assert sum(part["total_tokens_saved"] for part in parts) == whole["total_tokens_saved"]
    assert sum(part["sent_tokens"] for part in parts) == whole["sent_tokens"]
    assert made.for_tenant("acme").get_compaction_stats() == parts[0]
    assert parts[0]["exporters"] == {}


def test_events_of_two_tenants_are_two_traces_and_no_exporter_mixes_them() -> None:
    seen: list[Any] = []
    with manager(16_000, exporters=[seen.append]) as made:
        for name in (None, "acme", "beta"):
            made.manual_compact("s", talk(name), tenant=name)
    assert {event["session_id"] for event in seen} == {"s"}
    assert len({event["trace_id"] for event in seen}) == 3
    for name in (None, "acme", "beta"):
        archive = made.archive if name is None else made.for_tenant(name).archive
        own = {event.trace_id for event in archive.events("s")}
        assert len(own) == 1


# --- integrations


def test_a_conversation_without_an_id_is_known_to_its_own_tenant_alone() -> None:
    made = manager(16_000)
    acme, beta = made.for_tenant("acme"), made.for_tenant("beta")
    said = [user("Hi"), says("Hello"), user("Go on")]
    name = acme.resolver.resolve(said)
    assert acme.resolver.find([*said, says("Yes"), user("More")]) == name
    assert beta.resolver.find([*said, says("Yes"), user("More")]) is None
    acme.resolver.enter(name)
    assert (acme.resolver.running, beta.resolver.running, made.resolver.running) == (name, None, None)
    assert "no session is known" in beta.recall_tools()["ls"]("/")


def test_a_plain_hook_takes_the_tenant_from_its_context() -> None:
    made = manager(4_000)
    for name in ("acme", None):
        before_model_call(made)(SimpleNamespace(session_id="s", messages=LONG, tenant=name))
    asyncio.run(abefore_model_call(made)(SimpleNamespace(session_id="t", messages=LONG, tenant="acme")))
    before_model_call(made)(SimpleNamespace(session_id="u", messages=LONG))
    assert made.for_tenant("acme").archive.sessions() == ["s", "t"]
    assert made.archive.sessions() == ["s", "u"]


def test_the_addendums_middleware_takes_a_tenant() -> None:
    files: dict[str, str] = {}
    disk = SimpleNamespace(write_file=files.__setitem__)
    for name in ("acme", "beta"):
        made = ContextManagementMiddleware(filesystem_backend=disk, session_id="s", tenant=name)
        path, _ = made.offload_large_result(f"the words of {name}", "read", "c1")
        assert path.startswith(f"/_tenants/{name}/tool_outputs/")
        assert files[path] == f"the words of {name}"


# --- many


def test_many_tenants_leave_little_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compact.runtime.tenants.MOST_TENANTS", 5)
    monkeypatch.setattr("compact.archive.recent.MOST_SESSIONS", 5)
    made = manager(16_000, policy={"sessions_in_memory": 3})
    kept = made.for_tenant("t0")
    threads = threading.active_count()
    for n in range(40):
        made.preflight("s", turns(2), tenant=f"t{n}")
    made.flush()
    assert len(made.sessions) == 3
    assert threading.active_count() <= threads + 1
    assert made.sessions.get("s", "t0").tenant.resolver is kept.resolver, (
        "one that is in use is never made twice"
    )
    assert len(made.archive.tenants()) == 40


@pytest.mark.parametrize("tenant", ["", " ", 5, b"acme", ["acme"], "\ud800"])
def test_what_is_no_tenant_is_refused_before_anything_is_done(tenant: Any) -> None:
    made = manager(16_000)
    for act in (
        lambda: made.preflight("s", LONG, tenant=tenant),
        lambda: made.estimate(LONG, tenant=tenant),
        lambda: made.recall_tools("s", tenant=tenant),
        lambda: made.for_tenant(tenant),
        lambda: manager(16_000, tenant=tenant),
    ):
        with pytest.raises(ConfigError, match="tenant must") as refused:
            act()
        assert refused.value.path == "tenant"
    assert made.services.archive.tenants() == []
