"""Live masking: secrets and personal data never reach the model, and the host's own list is never changed."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects import to_ai_sdk, to_anthropic, to_responses
from support.engine import Item, events, manager, pair, says, turns, user
from support.redaction import letters

from compact import CompactConfig, CompactManager
from compact.checks import violations
from compact.errors import CompactError, MaskingError
from compact.redaction.live import LiveMasking
from compact.redaction.scan import Scanner

KEY = f"sk-proj-{letters('live key', 30)}"
TOKEN = f"ghp_{letters('live token', 36)}"
PASSWORD = "Tr0ub4dor&3xQ"
PLANTED = [
    KEY,
    TOKEN,
    PASSWORD,
    "ann.b@example.org",
    "+49 170 1234567",
    "4111 1111 1111 1111",
    "555-123-4567",
]
SENTENCES = {
    KEY: f"use {KEY} for this",
    TOKEN: f"Authorization: Bearer {TOKEN}",
    PASSWORD: f'the database has password="{PASSWORD}" now',
    **{value: f"please write to {value}, thanks" for value in PLANTED[3:]},
}
PLACEHOLDER = re.compile(r"<[A-Z]+_\d+>")
DIALECTS: dict[str, Callable[[list[Item]], list[Any]]] = {
    "chat": lambda items: items,
    "responses": to_responses,
    "anthropic": to_anthropic,
    "ai_sdk": to_ai_sdk,
}


def live(root: Path | None = None, window: int = 128_000, how: str = "pii", **more: Any) -> CompactManager:
    archive = {"adapter": "memory"} if root is None else {"root": str(root)}
    return manager(window, archive=archive, redaction={"live": how}, **more)


def text_of(messages: Any) -> str:
    return json.dumps(messages, ensure_ascii=False, default=str)


def leaked(messages: Any) -> list[str]:
    text = text_of(messages)
    return [value for value in PLANTED if value in text]


def agent_turn(number: int, said: str, argument: str, result: str) -> list[Item]:
    """A person's words, a call, its result, and the reply."""
    arguments = json.dumps({"query": argument, "number": number})
    return [
        user(f"Turn {number}: {said}"),
        *pair(f"c{number}", result, "search", arguments),
        says(f"Done {number}."),
    ]


def planted_session(count: int = 6) -> list[Item]:
    found: list[Item] = [{"role": "system", "content": f"You work for {PLANTED[3]}."}]
    for n in range(count):
        values = [PLANTED[(n + k) % len(PLANTED)] for k in range(3)]
        found += agent_turn(n, *(SENTENCES[value] for value in values))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_planted_value_is_returned_and_everything_can_be_turned_back(dialect: str) -> None:
    made, items = live(), DIALECTS[dialect](planted_session())
    before = copy.deepcopy(items)
    sent = made.preflight("s", items, dialect=dialect)
    assert leaked(items)
    assert leaked(sent) == []
    assert items == before
    assert violations(sent, dialect=dialect) == violations(items, dialect=dialect) == []
    assert made.unmask("s", sent) == items


def test_placeholders_are_numbered_by_first_appearance() -> None:
    made = live()
    sent = made.preflight(
        "s", [user(f"mail ann.b@example.org, key {KEY}, mail ann.b@example.org, call +49 170 1234567")]
    )
    assert sent[0]["content"] == "mail <EMAIL_1>, key <SECRET_2>, mail <EMAIL_1>, call <PHONE_3>"


def test_off_is_the_default_and_returns_the_hosts_own_list() -> None:
    items = planted_session()
    made = manager()
    assert made.preflight("s", items) is items
    assert made.unmask("s", "<SECRET_1>") == "<SECRET_1>"
    assert made.mask("s", KEY) == KEY


def test_secrets_alone_leaves_personal_data() -> None:
    sent = live(how="secrets").preflight("s", [user(f"{KEY} ann.b@example.org")])
    assert sent[0]["content"] == "<SECRET_1> ann.b@example.org"


def test_a_message_without_anything_to_mask_is_the_same_object() -> None:
    items = [user("hello"), says("hi"), user(f"key {KEY}"), says("ok")]
    sent = live().preflight("s", items)
    assert [new is old for new, old in zip(sent, items, strict=True)] == [True, True, False, True]


# --- calls and processes

arguments = st.lists(st.sampled_from([*SENTENCES.values(), "hello there"]), min_size=1, max_size=3)
pieces = st.lists(
    st.sampled_from(
        [
            *SENTENCES.values(),
            "hello there",
            "an <EMAIL_1> and <SECRET_3>",
            '{"password": "Zx9Qw8Er7"}',
            "<TEXT_2>",
        ]
    ),
    min_size=1,
    max_size=3,
)
histories = st.lists(st.tuples(pieces, arguments, pieces), min_size=1, max_size=5)


def built(history: Sequence[tuple[list[str], list[str], list[str]]]) -> list[Item]:
    return [
        item
        for n, (said, argument, result) in enumerate(history)
        for item in agent_turn(n, " ".join(said), " ".join(argument), "\n".join(result))
    ]


@settings(max_examples=25)
@given(histories, st.sampled_from(sorted(DIALECTS)))
def test_a_full_history_host_gets_stable_bytes_from_every_process(
    history: list[tuple[list[str], list[str], list[str]]], dialect: str
) -> None:
    """Prefixes are stable, a second process gives the same bytes, and nothing planted is ever sent."""
    items = DIALECTS[dialect](built(history))
    first, store = live(), []
    before: list[Any] = []
    for count in range(1, len(items) + 1):
        sent = first.preflight("s", items[:count], dialect=dialect)
        assert leaked(sent) == []
        if count < len(items) and violations(items[:count], dialect=dialect):
            continue  # a call without its result yet: it is answered for the while
        assert text_of(sent)[: len(text_of(before)) - 1] == text_of(before)[:-1]
        before = sent
        store.append(sent)
    assert first.unmask("s", before) == items
    second = CompactManager(first.config, archive=first.archive)
    again = second.preflight("s", copy.deepcopy(items), dialect=dialect)
    assert text_of(again) == text_of(before)
    assert second.unmask("s", again) == items


@settings(max_examples=15)
@given(st.lists(st.tuples(arguments, arguments, arguments), min_size=1, max_size=4))
def test_a_host_that_keeps_the_list_gets_stable_bytes_from_every_process(
    history: list[tuple[list[str], list[str], list[str]]],
) -> None:
    """Two processes take turns. What was sent is never changed, and each value has one placeholder."""
    one = live()
    two = CompactManager(one.config, archive=one.archive)
    kept: list[Item] = []
    before: list[Item] = []
    for n, item in enumerate(built(history)):
        kept = [*kept, item]
        if "tool_calls" in item:
            continue
        sent = (one, two)[n % 2].preflight("s", kept)
        assert leaked(sent) == []
        assert sent[: len(before)] == before
        before = kept = list(sent)
    numbers = re.findall(r"<([A-Z]+)_(\d+)>", text_of(kept))
    assert len({number for _, number in numbers}) == len(set(numbers))


def test_another_process_gives_a_known_value_its_placeholder(tmp_path: Path) -> None:
    """A host that keeps the list no longer has the value. The archive has its keyed hash."""
    kept = live(tmp_path).preflight("s", [user(f"key {KEY}"), says("ok")])
    sent = live(tmp_path).preflight("s", [*kept, user(f"again {KEY}, and ann.b@example.org")])
    assert [item["content"] for item in sent] == [
        "key <SECRET_1>", "ok", "again <SECRET_1>, and <EMAIL_2>"
    ]  # fmt: skip


def test_another_process_turns_back_what_the_hosts_list_still_holds(tmp_path: Path) -> None:
    items = planted_session()
    sent = live(tmp_path).preflight("s", items)
    new = live(tmp_path)
    assert new.unmask("s", sent) == sent
    new.preflight("s", items)
    assert new.unmask("s", sent) == items


def test_no_value_lies_in_clear_in_the_archive(tmp_path: Path) -> None:
    made = live(tmp_path, window=16_000)
    items = [*planted_session(), *turns(80, 60), user("Go on.")]
    made.preflight("s", items)
    made.close()
    assert (tmp_path / "s" / "state-001.json").exists()
    stored = {path: path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()}
    assert [(path, value) for path, text in stored.items() for value in PLANTED if value in text] == []


def test_the_archive_holds_what_was_sent() -> None:
    """What has a placeholder is clean: the archive does not mask it once more."""
    made = live(window=16_000)
    items = [*planted_session(), *turns(80, 60), user("Go on.")]
    sent = live().preflight("s", items)
    made.preflight("s", items)
    assert made.archive.restore("s", 1).messages == sent


def test_a_stored_tool_result_is_masked_like_the_messages() -> None:
    made, result = live(), "\n".join(f"row {n}: write to ann.b@example.org" for n in range(4_000))
    shown = made.process_tool_result(result, "search", "c1", "s")
    assert leaked(shown) == []
    path = re.search(r"/tool_outputs/\S+?\.txt", shown)
    assert path
    stored = made.recall_tools("s")["read_file"](path=path[0])
    assert leaked(stored) == []
    assert "<EMAIL_1>" in stored
    assert made.preflight("s", [user("mail ann.b@example.org")])[0]["content"] == "mail <EMAIL_1>"


def test_what_was_sent_is_never_masked_later() -> None:
    """A value that was not recognised stays as it was sent. From the message that reveals it on, it is masked."""
    made, value = live(), "Zx9Qw8Er7Ty6Ui5Op"
    items = [user(f"take {value}"), says("ok")]
    assert made.preflight("s", items) == items
    items += [user(f"{value} is it: password={value}"), says("ok"), user(f"so {value}")]
    sent = made.preflight("s", items)
    assert [item["content"] for item in sent] == [
        f"take {value}", "ok", "<SECRET_1> is it: password=<SECRET_1>", "ok", "so <SECRET_1>"
    ]  # fmt: skip
    assert live().preflight("s", items) == sent


@pytest.mark.parametrize("place", ["before", "inside", "after", "later"])
def test_a_placeholder_that_somebody_typed_is_not_ours(place: str) -> None:
    typed, secret = user("what is <SECRET_1>?"), user(f"key {KEY}")
    made = live()
    lists = {
        "before": [[typed, secret]],
        "inside": [[user(f"<SECRET_1> or {KEY}")]],
        "after": [[secret, typed]],
        "later": [[secret], [secret, says("fine"), typed]],
    }[place]
    for items in lists:
        sent = made.preflight("s", items)
        assert leaked(sent) == []
        assert made.unmask("s", sent) == items


def test_a_models_placeholder_is_ours() -> None:
    made = live()
    items = [user(f"key {KEY}"), says("I use <SECRET_1> now."), user("go on")]
    assert made.preflight("s", items)[1] is items[1]
    assert made.unmask("s", "curl -H <SECRET_1>") == f"curl -H {KEY}"


def test_values_come_back_into_json_and_data_as_they_were() -> None:
    made, odd = live(), 'Zx9"Qw8\\Er7Ty6'
    data = {
        "password": odd,
        "card": 4111111111111111,
        "text": "4111111111111111",
        "deep": json.dumps({"password": odd}),
    }
    items = [user("run"), *pair("c1", "ok", "pay", json.dumps(data))]
    sent = made.preflight("s", items)
    arguments = sent[1]["tool_calls"][0]["function"]["arguments"]
    assert odd not in text_of(json.loads(arguments))
    assert json.loads(made.unmask("s", arguments)) == data
    assert made.unmask("s", json.loads(arguments)) == data
    assert made.unmask("s", sent) == items


def test_what_a_tool_taught_masks_results_and_never_a_persons_words() -> None:
    made, words, value = live(), "correct horse battery staple", "xK9mQ2vLpR7tWz4c"
    taught = f'password="{words}"\nDB_PASSWORD={value}'
    items = [user("look"), *pair("c1", taught), user(f"{words} {value}"), *pair("c2", f"{words} {value}")]
    sent = made.preflight("s", items)
    assert words not in sent[2]["content"]
    assert value not in sent[2]["content"]
    assert sent[3] is items[3]
    assert sent[5]["content"] == f"{words} <SECRET_2>"


# --- what is never touched


def test_ids_names_roles_and_signed_blocks_stay(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": f"the key {KEY}", "signature": letters("signature", 120)}
    sealed = {"type": "redacted_thinking", "data": letters("sealed", 200)}
    call = {
        "type": "tool_use",
        "id": "toolu_5551234567",
        "name": "mail_ann",
        "input": {"name": "ann.b@example.org"},
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_5551234567",
        "content": f"sent, password={PASSWORD}",
    }
    items: list[Any] = [
        {"role": "user", "content": "mail her"},
        {"role": "assistant", "content": [thinking, sealed, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "and 555-123-4567"}]},
    ]
    sent = live(tmp_path).preflight("s", items, dialect="anthropic")
    assert sent[1]["content"][0] is thinking
    assert sent[1]["content"][1] is sealed
    assert sent[1]["content"][2] == {**call, "input": {"name": "<EMAIL_1>"}}
    assert sent[2]["content"][0] == {**result, "content": "sent, password=<SECRET_2>"}
    assert sent[2]["content"][1]["text"] == "and <PHONE_3>"


def test_pictures_stay() -> None:
    url = f"data:image/png;base64,{letters('picture', 300)}"
    items = [user([{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "look"}])]  # type: ignore[arg-type]
    assert live().preflight("s", items)[0] is items[0]


# --- with compaction


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps the list", "full history"])
@pytest.mark.parametrize("preset", ["layered", "selective", "progressive", None])
def test_nothing_is_sent_in_clear_before_in_and_after_passes(
    preset: str | None, keeps: bool, tmp_path: Path
) -> None:
    base = CompactConfig() if preset is None else CompactConfig.preset(preset)
    config = base.model_copy(
        update={
            "max_context_tokens": 8_000,
            "archive": base.archive.model_copy(update={"root": str(tmp_path)}),
            "redaction": base.redaction.model_copy(update={"live": "pii"}),
        }
    )
    made, history, kept = CompactManager(config), [], []  # type: CompactManager, list[Item], list[Item]
    steps = 0
    for n in range(21):
        values = [PLANTED[(n + k) % len(PLANTED)] for k in range(3)]
        filler = " ".join(f"w{n}x{k}" for k in range(180))
        for new in agent_turn(
            n, SENTENCES[values[0]], SENTENCES[values[1]], f"{SENTENCES[values[2]]}\n{filler}"
        ):
            history.append(new)
            kept.append(new)
            if "tool_calls" in new:
                continue
            sent = made.preflight("s", kept if keeps else history)
            assert leaked(sent) == []
            kept = list(sent)
        if n % 7 == 6:
            made.close()
            made = CompactManager(config)  # another process goes on
        steps = max([0, *made.archive.steps("s")])
    assert steps > 0
    warned = [event["properties"]["code"] for event in events(made, name="warning")]
    assert "state_reset" not in warned


def test_async_and_manual_calls_are_masked_too() -> None:
    made, items = live(), [*planted_session(), *turns(10), user("Go on.")]

    async def run() -> list[Any]:
        return [
            await made.apreflight("s", items),
            await made.amanual_compact("s", items),
            await made.manage_context(items),
        ]

    assert leaked(asyncio.run(run())) == []
    assert leaked(made.manual_compact("t", items)) == []
    assert leaked(made.reduce("u", items)) == []


def test_a_model_call_is_masked_and_so_is_every_retry() -> None:
    made, seen = live(), []

    def model_call(messages: list[Item]) -> str:
        seen.append(copy.deepcopy(messages))
        if len(seen) == 1:
            raise ValueError("maximum context length is 6000 tokens, however you requested 9000 tokens")
        return "ok"

    assert made.call("s", [*planted_session(), *turns(30), user("Go on.")], model_call) == "ok"
    assert len(seen) > 1
    assert leaked(seen) == []


def test_a_host_that_writes_to_its_list_meanwhile_sends_nothing_in_clear() -> None:
    made, items = live(), [user("hello"), says("hi"), user("go")]
    sent = made.preflight("s", items)
    items.append(user(f"key {KEY}"))
    assert sent is not items
    assert leaked(sent) == []


# --- beside the list


def test_what_is_sent_beside_the_list_is_masked_with_the_same_placeholders() -> None:
    made = live()
    sent = made.preflight("s", [user("mail ann.b@example.org")])
    tools = [
        {"type": "function", "function": {"name": "mail", "description": f"as ann.b@example.org with {KEY}"}}
    ]
    assert sent[0]["content"] == "mail <EMAIL_1>"
    assert made.mask("s", "You are ann.b@example.org") == "You are <EMAIL_1>"
    assert made.mask("s", tools)[0]["function"] == {
        "name": "mail",
        "description": "as <EMAIL_1> with <SECRET_2>",
    }
    blocks = [{"type": "text", "text": f"key {KEY}", "cache_control": {"type": "ephemeral"}}]
    assert made.mask("s", blocks) == [{**blocks[0], "text": "key <SECRET_2>"}]


# --- it fails closed


def test_nothing_goes_out_if_masking_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made = live()
    sent: list[Any] = []

    def fail(self: LiveMasking, text: str) -> list[Any]:
        raise RuntimeError(f"cannot scan {text}")

    monkeypatch.setattr(LiveMasking, "find", fail)
    for work in (
        lambda: made.preflight("s", planted_session()),
        lambda: made.manual_compact("s", planted_session()),
        lambda: made.call("s", planted_session(), sent.append),
        lambda: made.mask("s", KEY),
    ):
        with pytest.raises(MaskingError, match="RuntimeError") as raised:
            work()
        assert isinstance(raised.value, CompactError)
        assert leaked(str(raised.value)) == []
        assert raised.value.__cause__ is None
    assert sent == []


def test_nothing_goes_out_if_masking_takes_too_long() -> None:
    made = live(policy={"timeout_s": 0.000_001})
    with pytest.raises(MaskingError, match="has not finished"):
        made.preflight("s", planted_session())


def test_an_archive_that_fails_does_not_stop_masking(tmp_path: Path) -> None:
    made = live(tmp_path / "file")
    (tmp_path / "file").write_text("not a folder")
    assert leaked(made.preflight("s", planted_session())) == []


# --- it is remembered


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps the list", "full history"])
def test_a_message_is_looked_at_once(keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made, items = live(), [*planted_session(), *turns(50)]
    sent = made.preflight("s", items)
    texts: list[str] = []
    find = Scanner.find

    def note(self: Scanner, text: str) -> list[Any]:
        texts.append(text)
        return find(self, text)

    monkeypatch.setattr(Scanner, "find", note)
    made.preflight("s", [*(sent if keeps else items), user("one more")])
    made.flush()
    assert [text for text in texts if text.startswith(("Turn", "Question", "word"))] == []
