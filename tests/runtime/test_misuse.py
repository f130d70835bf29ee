"""Misuse is answered by name, before anything is done."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, ConfigError
from compact.archive import Archive
from compact.checks import violations
from compact.integrations.calls import check_manager
from compact.integrations.hooks import abefore_model_call, before_model_call
from compact.integrations.recall import RecallTools
from compact.redaction import Redactor
from compact.testing import CapturingExporter

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
WRONG_IDS = [
    42,
    "",
    " ",
    "\n",
    "\u3000\t",
    b"id",
    "\ud800",
    "ok\udfff",
    1.5,
    True,
    ["id"],
    {"id": 1},
    object(),
]
ARGUMENTS: dict[str, Any] = {
    "messages": HELLO,
    "model_call": lambda messages: "reply",
    "result": "text",
    "tool_name": "t",
    "tool_call_id": "c",
    "input_tokens": 5,
    "code": "ineffective",
    "message": "text",
    "text": "text",
    "value": "text",
    "entry_id": "e",
}
MAY_BE_LEFT_OUT = {
    "process_tool_result",
    "aprocess_tool_result",
    "offload",
    "manage_context",
    "recall_tools",
    "recovery_tools",
}


def methods() -> dict[str, inspect.Signature]:
    """Every public method of the manager that takes a session id."""
    found = {}
    for name in dir(CompactManager):
        if name.startswith("_") or name == "wrap":
            continue
        value = getattr(CompactManager, name)
        if callable(value) and "session_id" in inspect.signature(value).parameters:
            found[name] = inspect.signature(value)
    return found


def call(manager: CompactManager, name: str, session_id: Any) -> Any:
    needed = [
        each.name
        for each in methods()[name].parameters.values()
        if each.default is each.empty and each.name not in ("self", "session_id")
    ]
    method: Callable[..., Any] = getattr(manager, name)
    found = method(session_id=session_id, **{each: ARGUMENTS[each] for each in needed})
    return finish(found)


def finish(found: Any) -> Any:
    return asyncio.run(awaited(found)) if inspect.isawaitable(found) else found


async def awaited(value: Any) -> Any:
    return await value


def a_manager() -> tuple[CompactManager, CapturingExporter]:
    seen = CapturingExporter()
    return CompactManager(model="gpt-4o", archive={"adapter": "memory"}, exporters=[seen]), seen


def test_there_are_methods_to_try() -> None:
    assert {
        "preflight",
        "apreflight",
        "call",
        "observe",
        "reset",
        "recall_tools",
        "last_outcome",
    } <= methods().keys()
    assert methods().keys() >= MAY_BE_LEFT_OUT


@pytest.mark.parametrize("name", methods())
def test_a_wrong_session_id_is_refused_before_anything_is_done(name: str) -> None:
    manager, seen = a_manager()
    with manager:
        for wrong in WRONG_IDS + ([] if name in MAY_BE_LEFT_OUT else [None]):
            with pytest.raises(ConfigError, match="session_id must") as caught:
                call(manager, name, wrong)
            assert caught.value.path == "session_id"
            assert caught.value.hint
        manager.flush()
        assert seen.events == []
        assert manager.archive.sessions() == []
        assert len(manager.sessions) == 0


@pytest.mark.parametrize("name", methods())
def test_a_good_session_id_is_taken(name: str) -> None:
    manager, _ = a_manager()
    with manager:
        # There is no such entry to withdraw, but the id of the session is fine.
        expected = (
            pytest.raises(ConfigError, match="has no ledger entry") if "unpin" in name else nullcontext()
        )
        with expected:
            call(manager, name, "s")


@settings(max_examples=50, deadline=None)
@given(
    st.one_of(
        st.text(), st.text(st.characters(categories=["Cs", "Ll"])), st.none(), st.integers(), st.binary()
    )
)
def test_any_value_is_a_session_or_an_error_that_names_it(value: Any) -> None:
    manager, _ = a_manager()
    is_good = (
        isinstance(value, str)
        and bool(value.strip())
        and not any(0xD800 <= ord(sign) <= 0xDFFF for sign in value)
    )
    with manager:
        if is_good:
            assert manager.preflight(value, HELLO) is HELLO
            return
        with pytest.raises(ConfigError, match="session_id must"):
            manager.preflight(value, HELLO)


@pytest.mark.parametrize("wrong", [wrong for wrong in WRONG_IDS if wrong is not None])
def test_wrap_refuses_a_wrong_session_id_at_once_and_in_a_call(wrong: Any) -> None:
    import openai

    manager, seen = a_manager()
    with manager:
        client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:1", max_retries=0)
        with pytest.raises(ConfigError, match="session_id must"):
            manager.wrap(client, session_id=wrong)
        wrapped: Any = manager.wrap(client)
        with pytest.raises(ConfigError, match="session_id must"):
            wrapped.chat.completions.create(model="gpt-4o", messages=HELLO, session_id=wrong)
    assert seen.events == []


@pytest.mark.parametrize(
    "name", ["preflight", "apreflight", "manual_compact", "call", "acall", "reduce", "estimate"]
)
def test_a_model_is_a_name(name: str) -> None:
    manager, _ = a_manager()
    more = [ARGUMENTS["model_call"]] if name in ("call", "acall") else []
    given = [HELLO] if name == "estimate" else ["s", HELLO, *more]

    async def run() -> None:
        found = getattr(manager, name)(*given, model=42)
        if inspect.isawaitable(found):
            await found

    with manager, pytest.raises(ConfigError, match="model must be a string, got int"):
        asyncio.run(run())


@pytest.mark.parametrize("wrong", ["5", -5, 5.0, None, True, [5]], ids=repr)
def test_observe_takes_a_number_of_tokens(wrong: Any) -> None:
    manager, _ = a_manager()
    with manager, pytest.raises(ConfigError, match="input_tokens must be a whole number") as caught:
        manager.observe("s", input_tokens=wrong)
    assert caught.value.path == "input_tokens"


@pytest.mark.parametrize("wrong", [None, "gpt-4o", 42, HELLO], ids=repr)
def test_a_model_call_is_a_function(wrong: Any) -> None:
    manager, _ = a_manager()
    with manager:
        for name in ("call", "acall"):
            with pytest.raises(ConfigError, match="model_call must be a function") as caught:
                finish(getattr(manager, name)("s", HELLO, wrong))
            assert caught.value.path == "model_call"


class SchemaOfAFramework:
    """Has no `model_dump`, as the tools of some frameworks."""


@pytest.mark.parametrize("name", ["preflight", "apreflight", "manual_compact", "call", "acall", "estimate"])
@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        *(
            ("tools", wrong)
            for wrong in ("x", 5, [3], [print], print, [None], ["x"], [SchemaOfAFramework], [len, {}])
        ),
        *(("system", wrong) for wrong in (3, 2.5, [3], object())),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value).partition(" at 0x")[0][:30],
)
def test_what_goes_beside_the_messages_is_refused_by_its_own_name(
    name: str, argument: str, wrong: Any
) -> None:
    manager, _ = a_manager()
    more = [ARGUMENTS["model_call"]] if name in ("call", "acall") else []
    given = [HELLO] if name == "estimate" else ["s", HELLO, *more]
    with manager:
        with pytest.raises(ConfigError, match=f"^{argument} must be") as caught:
            finish(getattr(manager, name)(*given, **{argument: wrong}))
        assert caught.value.path == argument
        assert caught.value.hint
        good: dict[str, Any] = {
            "tools": [{"name": "f"}, SchemaOfAFramework()],
            "system": [{"type": "text", "text": "Be brief."}],
        }
        assert manager.preflight("s", HELLO, **good) is HELLO


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("gpt-4o", r"Did you mean CompactManager\(model='gpt-4o'\)"),
        ({"model": "gpt-4o"}, r"CompactManager\(\*\*settings\)"),
        (CompactConfig, "Settings are keywords"),
        (42, "Settings are keywords"),
    ],
)
def test_a_manager_takes_a_configuration(wrong: Any, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"config must be a CompactConfig, got .*{hint}"):
        CompactManager(wrong)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("summarizer", "gpt-4o-mini"),
        ("summarizer", object()),
        ("archive", "./archive"),
        ("archive", 42),
        ("exporters", "jsonl"),
        ("exporters", 42),
        ("exporters", {"jsonl": True}),
        ("exporters", ["jsonl"]),
        ("exporters", print),
        ("redactor", "pii"),
        ("redactor", Redactor),
        ("clock", "2026-01-01"),
        ("clock", 42),
        ("stages", 42),
        ("stages", ["offload"]),
    ],
)
def test_a_part_of_the_wrong_kind_is_refused_by_its_name(part: str, wrong: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        CompactManager(**{part: wrong})
    assert caught.value.path == part
    assert part.rstrip("s") in caught.value.message


@pytest.mark.parametrize("make", [before_model_call, abefore_model_call, RecallTools])
@pytest.mark.parametrize("wrong", [CompactConfig(), "gpt-4o", None, CompactManager])
def test_an_integration_takes_a_manager(make: Any, wrong: Any) -> None:
    with pytest.raises(ConfigError, match=f"{make.__name__} takes a CompactManager, got"):
        make(wrong)


def test_litellms_hook_takes_a_manager_and_a_function_that_sends_a_conversation() -> None:
    from compact.integrations.litellm import CompactHook

    with pytest.raises(ConfigError, match="CompactHook takes a CompactManager, got CompactConfig"):
        CompactHook(CompactConfig())  # type: ignore[arg-type]
    manager, _ = a_manager()

    def embedding(model: str, texts: list[str]) -> None:
        """Sends no conversation."""

    with manager:
        with pytest.raises(ConfigError, match="send a conversation, got 'embedding'"):
            CompactHook(manager)(embedding)
        for wrong in ("x", 42, None, manager):
            with pytest.raises(ConfigError, match="CompactHook wraps functions"):
                CompactHook(manager)(wrong)  # type: ignore[arg-type]


def test_what_is_a_manager_is_returned() -> None:
    manager, _ = a_manager()
    with manager:
        assert check_manager(manager, "anything") is manager


# --- settings as keywords


def test_settings_are_keywords_too() -> None:
    with CompactManager(
        model="gpt-4o-mini",
        max_context_tokens=9_000,
        policy={"trigger_pct": 0.5},
        archive={"adapter": "memory"},
    ) as manager:
        assert manager.config == CompactConfig(
            model="gpt-4o-mini",
            max_context_tokens=9_000,
            policy={"trigger_pct": 0.5},
            archive={"adapter": "memory"},
        )
        assert manager.archive.adapter == "memory"


def test_keywords_win_over_a_configuration_and_leave_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CompactConfig(
        model="gpt-4o", policy={"trigger_pct": 0.5, "target_pct": 0.3}, archive={"adapter": "memory"}
    )
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.6")  # it was overruled when the configuration was made
    with CompactManager(config, model="gpt-4.1", policy={"target_pct": 0.4}) as manager:
        found = manager.config
        assert (found.model, found.policy.trigger_pct, found.policy.target_pct) == ("gpt-4.1", 0.5, 0.4)
        assert found.archive.adapter == "memory"
        assert found.sources["policy.target_pct"] == "argument"
        assert found.sources["policy.keep_recent_turns"] == "default"
    assert (config.model, config.policy.target_pct) == ("gpt-4o", 0.3)


def test_a_preset_can_be_changed_by_keywords() -> None:
    with CompactManager(CompactConfig.preset("selective"), archive={"adapter": "memory"}) as manager:
        assert manager.config.policy.layout == "selective"
        assert manager.config.sources["policy.layout"] == "preset selective"


def test_an_archive_object_is_the_part_and_a_mapping_is_settings() -> None:
    with CompactManager(model="gpt-4o", archive={"adapter": "memory"}) as manager:
        archive: Archive = manager.archive
    with CompactManager(model="gpt-4o", archive=archive) as manager:
        assert manager.archive is archive

    class Files:
        def write_file(self, path: str, content: str) -> None: ...

    with CompactManager(model="gpt-4o", archive=Files()) as manager:
        assert manager.archive.adapter == "backend"


def test_a_wrong_keyword_is_a_wrong_setting() -> None:
    for other in ("window", "context_window", "max_tokens"):
        with pytest.raises(ConfigError, match="did you mean max_context_tokens"):
            CompactManager(**{other: 32_000})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="modle"):
        CompactManager(modle="gpt-4o")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"policy\.trigger_pct must be"):
        CompactManager(policy={"trigger_pct": 1.7})
    with pytest.raises(ConfigError, match=r"archive\.adapter"):
        CompactManager(archive={"adapter": "cloud"})


def test_a_number_that_json_does_not_know_does_not_stop_a_compaction() -> None:
    history: list[Any] = [{"role": "user", "content": "go"}]
    for n in range(30):
        asked = {"type": "tool_use", "id": f"c{n}", "name": "f", "input": {"n": n, "x": float("nan")}}
        told = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "alpha beta " * 300}
        history += [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [told]}]
    with CompactManager(
        model="claude-sonnet-4-5", max_context_tokens=9_000, archive={"adapter": "memory"}
    ) as manager:
        sent = manager.preflight("s", history)
        assert len(sent) < len(history)
        assert violations(sent) == []
        kept = manager.archive.restore("s").messages
    inputs = [block["input"] for message in kept[1::2] for block in message["content"]]
    assert inputs == [{"n": n, "x": "NaN"} for n in range(30)]
