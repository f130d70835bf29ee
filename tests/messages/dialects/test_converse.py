"""Bedrock Converse messages: what is read, what stays as it is, and what is mended."""

from __future__ import annotations

from typing import Any

from compact import checks, hygiene
from compact.messages import Image, Opaque, Reasoning, Text, dialects
from compact.tokens import Meter

Item = dict[str, Any]
ASK: Item = {"role": "user", "content": [{"text": "Read a.txt."}]}
POINT: Item = {"cachePoint": {"type": "default"}}
THOUGHT: Item = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}}


def call(call_id: str = "a", name: Any = "read") -> Item:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {}}}


def result(call_id: str = "a", *content: Item) -> Item:
    return {"toolResult": {"toolUseId": call_id, "content": list(content or ({"text": "x"},))}}


def reply(*blocks: Item) -> Item:
    return {"role": "assistant", "content": list(blocks)}


def said(*blocks: Item) -> Item:
    return {"role": "user", "content": list(blocks)}


def rules(items: list[Item]) -> list[str]:
    return [found.rule for found in checks.violations(items, "converse", in_flight=False)]


def test_blocks_are_read_by_their_keys() -> None:
    guarded = {"guardContent": {"text": {"text": "Is it safe?"}}}
    items = [
        said({"text": "Look."}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}, guarded),
        reply(THOUGHT, {"reasoningContent": {"redactedContent": b"x"}}, call()),
        said(result("a", {"json": {"rows": [1]}}), POINT),
        reply({"text": "Done."}),
    ]
    known, messages = dialects.read(items)
    assert known.NAME == "converse"
    text, image, guard = messages[0].parts
    assert text == Text("Look.")
    assert image == Image("iVBORw==")
    assert guard == Text("Is it safe?")
    assert [part.signed for part in messages[1].parts if isinstance(part, Reasoning)] == [True, True]
    assert messages[2].results[0].text == '{"rows":[1]}'
    assert messages[2].is_only_results
    assert rules(items) == []
    assert hygiene.clean(items) is items


def test_a_source_that_a_guardrail_compares_with_is_nobodys_word() -> None:
    inner = {"text": "Never deploy.", "qualifiers": ["grounding_source"]}
    items = [said({"guardContent": {"text": inner}}, {"text": "Is it so?"})]
    assert dialects.read(items)[1][0].text == "Is it so?"
    assert rules(items) == []


def test_a_cache_point_costs_nothing_and_is_no_content() -> None:
    meter = Meter("claude-sonnet-4-5")
    assert meter.count_item(said({"text": "Hi"}, POINT), "converse") == meter.count_item(
        said({"text": "Hi"}), "converse"
    )
    items = [ASK, reply({"text": "Yes."}), said(POINT), reply({"text": "So?"})]
    assert "empty_content" in rules(items)
    assert POINT not in [block for item in hygiene.clean(items) for block in item["content"]]


def test_more_than_four_cache_points_are_reported_and_taken_off() -> None:
    items = [item for n in range(6) for item in (said({"text": f"part {n}"}, POINT), reply({"text": "Yes."}))]
    assert rules(items) == ["cache_marks"]
    after = hygiene.clean(items)
    assert rules(after) == []
    assert sum(POINT in item["content"] for item in after) == 4
    assert POINT in after[-2]["content"], "the newest stay"


def test_a_cache_point_stays_with_the_result_that_it_stands_behind() -> None:
    items = [ASK, reply(call("a"), call("b")), said(result("b"), POINT, result("a")), reply({"text": "So."})]
    assert rules(items) == ["result_order"]
    assert hygiene.clean(items)[2] == said(result("a"), result("b"), POINT)
    orphan = [ASK, reply({"text": "Hm."}), said(result("z"), POINT), reply({"text": "So."})]
    assert POINT not in [block for item in hygiene.clean(orphan) for block in item["content"]]


def test_an_open_batch_may_carry_a_cache_point() -> None:
    items = [ASK, reply(call("a"), call("b")), said(result("a"), POINT)]
    assert checks.violations(items) == []
    assert hygiene.clean(items) is items


def test_reasoning_does_not_end_a_reply() -> None:
    items = [ASK, reply({"text": "Yes."}, THOUGHT, POINT), said({"text": "Go on."})]
    assert rules(items) == ["reasoning_separated"]
    assert hygiene.clean(items)[1] == reply({"text": "Yes."})


def test_contents_of_other_forms_are_mended() -> None:
    items: list[Item] = [
        {"role": "user", "content": "Read a.txt."},
        reply(call()),
        said({"toolResult": {"toolUseId": "a", "content": "x"}}),
        {"role": "assistant", "content": ["So."]},
    ]
    assert rules(items) == ["bare_string", "bare_string", "bare_string"]
    assert hygiene.clean(items, dialect="converse") == [
        ASK,
        reply(call()),
        said(result()),
        reply({"text": "So."}),
    ]
    null = [ASK, reply(call()), said({"toolResult": {"toolUseId": "a", "content": None}})]
    assert rules(null) == ["empty_content"]
    assert hygiene.clean(null)[2]["content"][0]["toolResult"]["content"] == []


def test_blank_texts_and_forbidden_ids_are_mended() -> None:
    items = [ASK, reply({"text": " "}, call("a b")), said(result("a b"))]
    assert sorted(rules(items)) == ["bad_id", "empty_block"]
    after = hygiene.clean(items)
    assert rules(after) == []
    assert len(after[1]["content"]) == 1


def test_unknown_blocks_pass_untouched() -> None:
    items = [said({"text": "Hi"}, {"futureBlock": {"k": 1}}), reply({"text": "Yes."})]
    assert isinstance(dialects.read(items)[1][0].parts[1], Opaque)
    assert hygiene.clean(items) is items
