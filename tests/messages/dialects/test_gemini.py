"""Gemini contents: what is read, what stays as it is, and what is mended."""

from __future__ import annotations

from typing import Any

import pytest

from compact import checks, hygiene
from compact.messages import Image, Reasoning, Text, dialects
from compact.messages.hygiene.signatures import NO_SIGNATURE

Item = dict[str, Any]
ASK: Item = {"role": "user", "parts": [{"text": "Read a.txt and b.txt."}]}


def call(name: str = "read", call_id: str = "", signature: str = "", **arguments: Any) -> Item:
    made: Item = {"functionCall": {**({"id": call_id} if call_id else {}), "name": name, "args": arguments}}
    return {**made, "thoughtSignature": signature} if signature else made


def answer(text: str = "x", name: str = "read", call_id: str = "") -> Item:
    own = {"id": call_id} if call_id else {}
    return {"functionResponse": {**own, "name": name, "response": {"output": text}}}


def reply(*parts: Item) -> Item:
    return {"role": "model", "parts": list(parts)}


def said(*parts: Item) -> Item:
    return {"role": "user", "parts": list(parts)}


def rules(items: list[Item]) -> list[str]:
    return [found.rule for found in checks.violations(items, "gemini", in_flight=False)]


def test_both_spellings_mean_the_same() -> None:
    camel = [
        ASK,
        reply(call(signature="c2ln", path="a")),
        said(answer()),
        said({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
    ]
    snake = [
        ASK,
        reply({"function_call": {"name": "read", "args": {"path": "a"}}, "thought_signature": "c2ln"}),
        said({"function_response": {"name": "read", "response": {"output": "x"}}}),
        said({"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}}),
    ]
    assert dialects.detect(camel).NAME == dialects.detect(snake).NAME == "gemini"
    for one, other in zip(dialects.read(camel)[1], dialects.read(snake)[1], strict=True):
        assert one == other
    assert isinstance(dialects.read(camel)[1][3].parts[0], Image)


def test_calls_without_ids_are_answered_by_name_and_order() -> None:
    fine = [
        ASK,
        reply(call(path="a"), call(path="b"), call("grep")),
        said(answer("1"), answer("2"), answer("3", "grep")),
    ]
    assert rules(fine) == []
    swapped = [ASK, fine[1], said(answer("3", "grep"), answer("1"), answer("2"))]
    assert rules(swapped) == ["result_order"]
    assert hygiene.clean(swapped) == fine
    short = [ASK, fine[1], said(answer("1"), answer("3", "grep")), reply({"text": "Done."})]
    assert rules(short) == ["missing_result"]
    mended = hygiene.clean(short)
    assert [part["functionResponse"]["name"] for part in mended[2]["parts"]] == ["read", "read", "grep"]


def test_calls_with_ids_are_answered_by_id() -> None:
    items = [ASK, reply(call(call_id="a"), call(call_id="b")), said(answer(call_id="b"), answer(call_id="a"))]
    assert rules(items) == ["result_order"]
    assert hygiene.clean(items)[2] == said(answer(call_id="a"), answer(call_id="b"))


def test_a_response_of_any_form_becomes_an_object() -> None:
    for given, mended in (("x", {"output": "x"}), ([1], {"output": [1]}), (None, {}), (..., {})):
        response = {"name": "read"} if given is ... else {"name": "read", "response": given}
        items = [ASK, reply(call()), said({"functionResponse": response})]
        assert rules(items) == ["malformed"]
        assert hygiene.clean(items)[2]["parts"][0]["functionResponse"] == {"name": "read", "response": mended}


def test_a_response_without_a_name_gets_that_of_its_call() -> None:
    items = [ASK, reply(call(call_id="a")), said({"functionResponse": {"id": "a", "response": {}}})]
    assert rules(items) == ["bad_name", "unlike_call"]
    assert hygiene.clean(items)[2]["parts"][0]["functionResponse"]["name"] == "read"


def test_roles_of_other_formats_are_mended() -> None:
    items = [ASK, {"role": "assistant", "parts": [call()]}, {"role": "function", "parts": [answer()]}]
    assert rules(items) == ["unknown_role", "unknown_role"]
    assert [item["role"] for item in hygiene.clean(items)] == ["user", "model", "user"]


def test_a_content_without_a_role_is_the_users() -> None:
    items: list[Item] = [{"parts": [{"text": "Hi"}]}]
    assert dialects.detect(items).NAME == "gemini"
    assert rules(items) == []
    assert dialects.read(items)[1][0].starts_turn


def test_thoughts_and_signatures_are_read_and_an_empty_signed_text_stays() -> None:
    items = [
        ASK,
        reply({"text": "Hm.", "thought": True}, {"text": "Done.", "thoughtSignature": "c2ln"}),
        said({"text": "Go on."}),
        reply({"text": "Yes."}, {"text": "", "thoughtSignature": "c2ln"}),
    ]
    thought, text = dialects.read(items)[1][1].parts
    assert isinstance(thought, Reasoning)
    assert not thought.signed
    assert isinstance(text, Text)
    assert text.signed
    assert rules(items) == []
    assert hygiene.clean(items) is items


def test_an_empty_text_goes_and_a_blank_one_stays() -> None:
    items = [ASK, reply({"text": "\n"}, {"text": ""}, call()), said(answer())]
    assert rules(items) == ["empty_block"]
    assert hygiene.clean(items)[1] == reply({"text": "\n"}, call())


def test_a_call_that_lost_its_signature_among_signed_ones_gets_the_documented_mark() -> None:
    signed = [ASK, reply(call(call_id="a", signature="c2ln")), said(answer(call_id="a"))]
    lost = [
        *signed,
        reply(call(call_id="b"), call(call_id="c")),
        said(answer(call_id="b"), answer(call_id="c")),
    ]
    assert rules(lost) == ["missing_signature"]
    mended = hygiene.clean(lost)
    assert mended[:3] == signed
    assert [part.get("thoughtSignature") for part in mended[3]["parts"]] == [NO_SIGNATURE, None]
    assert hygiene.clean(mended) is mended
    # In an older turn nothing is asked for, and where no call is signed the model signs none.
    assert rules([*lost, reply({"text": "Done."}), ASK]) == []
    assert rules([ASK, reply(call()), said(answer())]) == []


def test_sdk_objects_are_read_and_come_back_as_the_same_objects() -> None:
    types = pytest.importorskip("google.genai.types")
    made = types.Part(
        function_call=types.FunctionCall(name="read", args={"path": "a"}), thought_signature=b"\xff\x01"
    )
    items = [
        types.Content(role="user", parts=[types.Part(text="Read a.")]),
        types.Content(role="model", parts=[made]),
        types.UserContent(
            parts=[types.Part.from_function_response(name="read", response={"output": "x\x00y"})]
        ),
    ]
    known, messages = dialects.read(items)
    assert known.NAME == "gemini"
    assert all(one is two for one, two in zip(items, dialects.write(known, messages), strict=True))
    cleaned = hygiene.clean(items)
    assert cleaned[:2] == items[:2]
    assert isinstance(cleaned[2], types.Content)
    assert cleaned[2].parts[0].function_response.response == {"output": "x\ufffdy"}


def test_unknown_parts_and_fields_pass_untouched() -> None:
    items = [
        {**ASK, "x_own": {"k": 1}},
        reply(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"futurePart": {"k": 1}},
            {"text": "Done."},
        ),
    ]
    assert rules(items) == []
    assert hygiene.clean(items) is items
