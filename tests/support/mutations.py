"""Ways in which real sessions break: messages lost, doubled, out of order, cut; ids swapped; calls corrupted.

`mutated` breaks chat messages, `damaged` breaks a list of any wire format in that format's own ways.
"""

from __future__ import annotations

import copy
import random
from typing import Any

Item = dict[str, Any]


def mutated(messages: list[Item], seed: int) -> list[Item]:
    """A copy of a chat session with one to four things wrong; the same for the same seed."""
    chance = random.Random(seed)
    items = copy.deepcopy(messages)
    for _ in range(chance.randint(1, 4)):
        if items:
            chance.choice(MUTATIONS)(items, chance)
    return items


def _drop(items: list[Item], chance: random.Random) -> None:
    del items[chance.randrange(len(items))]


def _duplicate(items: list[Item], chance: random.Random) -> None:
    items.insert(chance.randrange(len(items) + 1), copy.deepcopy(chance.choice(items)))


def _reorder(items: list[Item], chance: random.Random) -> None:
    here, there = chance.randrange(len(items)), chance.randrange(len(items))
    items[here], items[there] = items[there], items[here]


def _truncate(items: list[Item], chance: random.Random) -> None:
    place = chance.randrange(len(items))
    if chance.random() < 0.5:
        del items[place:]
    else:
        del items[:place]


def _swap_ids(items: list[Item], chance: random.Random) -> None:
    results = [item for item in items if item["role"] == "tool"]
    if len(results) > 1:
        one, two = chance.sample(results, 2)
        one["tool_call_id"], two["tool_call_id"] = two["tool_call_id"], one["tool_call_id"]


def _corrupt_call(items: list[Item], chance: random.Random) -> None:
    asking = [item for item in items if item.get("tool_calls")]
    if not asking:
        return
    call = chance.choice(chance.choice(asking)["tool_calls"])
    function = call["function"]
    match chance.randrange(5):
        case 0:
            function["arguments"] = (function["arguments"] or "{}")[:-1]
        case 1:
            function["name"] = chance.choice(["", " read me", "x" * 80, "ok "])
        case 2:
            call["id"] = chance.choice(["", "x" * 100, None, "id with spaces"])
        case 3:
            function["arguments"] = '{"text": "\ud800\x00"}'
        case 4:
            function["arguments"] = None


def _corrupt_text(items: list[Item], chance: random.Random) -> None:
    item = chance.choice(items)
    item["content"] = chance.choice([None, "", "  ", "a\x00b", "half \ud83d", [], ["bare"]])


def _abort(items: list[Item], chance: random.Random) -> None:
    spoken = [item for item in items if item["role"] == "assistant"]
    if spoken:
        chance.choice(spoken)["stop_reason"] = chance.choice(["aborted", "error"])


def _repeat_id(items: list[Item], chance: random.Random) -> None:
    asking = [item for item in items if item.get("tool_calls")]
    if len(asking) > 1:
        one, two = chance.sample(asking, 2)
        two["tool_calls"][0]["id"] = one["tool_calls"][0]["id"]


MUTATIONS = [
    _drop,
    _duplicate,
    _reorder,
    _truncate,
    _swap_ids,
    _corrupt_call,
    _corrupt_text,
    _abort,
    _repeat_id,
]


# --- damage in the format's own words


def damaged(items: list[Item], seed: int) -> list[Item]:
    """A copy of a chat, Responses or Anthropic list with one to four things wrong; the same for the same seed."""
    chance = random.Random(seed)
    found = copy.deepcopy(items)
    for _ in range(chance.randint(1, 4)):
        if found:
            chance.choice(DAMAGES)(found, chance)
    return found


_EMPTY: list[Any] = [
    None,
    "",
    "  ",
    [],
    [{"type": "text", "text": ""}],
    [{"type": "text", "text": " "}],
    ["bare"],
]
_TEXTS = ["a\x00b", "half \ud83d", "", " \n"]
_IDS: list[Any] = ["", None, "x" * 100, "id with spaces", "a.b:c"]
_NAMES: list[Any] = ["", None, " read me", "x" * 80, "x" * 200, "ok ", "functions.read"]
_ROLES = ["critic", "model", "system", "developer", "function", "assistant", "user"]


def _empty_content(items: list[Item], chance: random.Random) -> None:
    place = chance.choice(_places_of_content(items))
    key = "output" if "output" in place else "content"
    if chance.random() < 0.2:
        place.pop(key, None)
    else:
        value = copy.deepcopy(chance.choice(_EMPTY))
        if isinstance(value, list) and value and isinstance(value[0], dict) and _is_responses(items):
            value[0]["type"] = "output_text" if place.get("role") == "assistant" else "input_text"
        place[key] = value


def _damage_text(items: list[Item], chance: random.Random) -> None:
    place = chance.choice(_places_of_content(items))
    key = "output" if "output" in place else "content"
    blocks = place.get(key)
    texts = (
        [block for block in blocks if isinstance(block, dict) and "text" in block]
        if isinstance(blocks, list)
        else []
    )
    if texts:
        chance.choice(texts)["text"] = chance.choice(_TEXTS)
    else:
        place[key] = chance.choice(_TEXTS)


def _damage_call(items: list[Item], chance: random.Random) -> None:
    calls = _calls(items)
    if not calls:
        return
    call = chance.choice(calls)
    inner = call.get("function", call)
    arguments = "input" if call.get("type") == "tool_use" else "arguments"
    match chance.randrange(5):
        case 0:
            call["call_id" if "call_id" in call else "id"] = chance.choice(_IDS)
        case 1:
            inner["name"] = chance.choice(_NAMES)
        case 2:
            inner[arguments] = chance.choice([None, "{", "", "[]", "\ud800", {}, [], "text"])
        case 3:
            inner.pop(chance.choice(["name", arguments]), None)
        case 4:
            other = chance.choice(calls)
            key = "call_id" if "call_id" in call else "id"
            call[key] = other.get(key)


def _damage_result(items: list[Item], chance: random.Random) -> None:
    results = _results(items)
    if not results:
        return
    result = chance.choice(results)
    key = next(name for name in ("tool_call_id", "tool_use_id", "call_id") if name in result)
    if chance.random() < 0.5:
        result[key] = chance.choice(_IDS)
    else:
        result[key] = chance.choice(results).get(key)


def _change_role(items: list[Item], chance: random.Random) -> None:
    spoken = [item for item in items if "role" in item]
    if spoken:
        chance.choice(spoken)["role"] = chance.choice(_ROLES)


def _move_block(items: list[Item], chance: random.Random) -> None:
    long = [item["content"] for item in items if isinstance(item.get("content"), list) and item["content"]]
    if long:
        blocks = chance.choice(long)
        block = blocks.pop(chance.randrange(len(blocks)))
        target = blocks if chance.random() < 0.5 else chance.choice(long)
        target.insert(chance.randrange(len(target) + 1), block)


def _split_message(items: list[Item], chance: random.Random) -> None:
    index = chance.randrange(len(items))
    blocks = items[index].get("content")
    if isinstance(blocks, list) and len(blocks) > 1:
        cut = chance.randrange(1, len(blocks))
        items[index : index + 1] = [
            {**items[index], "content": blocks[:cut]},
            {**items[index], "content": blocks[cut:]},
        ]


def _lose_calls(items: list[Item], chance: random.Random) -> None:
    asking = [item for item in items if item.get("tool_calls")]
    if asking:
        item = chance.choice(asking)
        match chance.randrange(3):
            case 0:
                item["tool_calls"] = []
            case 1:
                del item["tool_calls"]
            case 2:
                item["tool_calls"] = None


def _is_responses(items: list[Item]) -> bool:
    return any(item.get("type") in ("message", "function_call", "function_call_output") for item in items)


def _blocks(items: list[Item]) -> list[Item]:
    lists = [item["content"] for item in items if isinstance(item.get("content"), list)]
    return [block for blocks in lists for block in blocks if isinstance(block, dict)]


def _calls(items: list[Item]) -> list[Item]:
    found = [call for item in items for call in item.get("tool_calls") or ()]
    found += [item for item in items if item.get("type") == "function_call"]
    return found + [block for block in _blocks(items) if block.get("type") == "tool_use"]


def _results(items: list[Item]) -> list[Item]:
    found = [item for item in items if "tool_call_id" in item or item.get("type") == "function_call_output"]
    return found + [block for block in _blocks(items) if block.get("type") == "tool_result"]


def _places_of_content(items: list[Item]) -> list[Item]:
    return [item for item in items if item.get("type") != "function_call"] + [
        block for block in _blocks(items) if block.get("type") == "tool_result"
    ] or items


def _mark_blocks(items: list[Item], chance: random.Random) -> None:
    """Put Anthropic's cache marks on blocks, as hosts do that never take the old ones off."""
    blocks = [block for block in _blocks(items) if block.get("type") in ("text", "tool_use", "tool_result")]
    if _is_responses(items) or any("tool_calls" in item for item in items):
        return
    for block in chance.sample(blocks, min(len(blocks), chance.randint(1, 6))):
        block["cache_control"] = {"type": "ephemeral"}
        inner = block.get("content")
        if isinstance(inner, str) and inner.strip() and chance.random() < 0.5:
            block["content"] = [{"type": "text", "text": inner, "cache_control": {"type": "ephemeral"}}]


def _add_items(items: list[Item], chance: random.Random) -> None:
    """Put in what only Responses lists have: references to items that the provider keeps, and reasoning."""
    if not _is_responses(items):
        return
    number = chance.randrange(100)
    extra: Item = chance.choice(
        [
            {"type": "item_reference", "id": f"fc_{number}"},
            {"type": "reasoning", "id": f"rs_{number}", "summary": []},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        ]
    )
    items.insert(chance.randrange(len(items) + 1), extra)


DAMAGES = [
    _drop,
    _duplicate,
    _reorder,
    _truncate,
    _empty_content,
    _empty_content,
    _damage_text,
    _damage_call,
    _damage_call,
    _damage_result,
    _change_role,
    _move_block,
    _split_message,
    _lose_calls,
    _mark_blocks,
    _add_items,
]


# --- damage in the words of Gemini and of Bedrock Converse, whose blocks have no type


def damaged_untyped(items: list[Item], seed: int) -> list[Item]:
    """A copy of a list of Gemini contents or of Converse messages with one to four things wrong."""
    chance = random.Random(seed)
    found = copy.deepcopy(items)
    key = "parts" if any("parts" in item for item in found) else "content"
    for _ in range(chance.randint(1, 4)):
        if found:
            chance.choice(UNTYPED_DAMAGES)(found, key, chance)
    return found


def _any_list(items: list[Item], key: str, chance: random.Random) -> None:
    chance.choice([_drop, _duplicate, _reorder, _truncate])(items, chance)


def _no_blocks(items: list[Item], key: str, chance: random.Random) -> None:
    item = chance.choice(items)
    blank: Any = chance.choice([None, [], [{"text": ""}], [{"text": " "}], ["bare"], [{}], [{"text": None}]])
    item[key] = copy.deepcopy(blank)


def _blocks_at(items: list[Item], key: str) -> list[Item]:
    lists = [item.get(key) for item in items]
    return [
        block for blocks in lists if isinstance(blocks, list) for block in blocks if isinstance(block, dict)
    ]


def _bad_text(items: list[Item], key: str, chance: random.Random) -> None:
    texts = [block for block in _blocks_at(items, key) if "text" in block]
    for block in _blocks_at(items, key):
        inner = (block.get("toolResult") or {}).get("content")
        texts += [each for each in inner if isinstance(each, dict)] if isinstance(inner, list) else []
    if texts:
        chance.choice(texts)["text"] = chance.choice([*_TEXTS, None])


def _calls_at(items: list[Item], key: str) -> list[tuple[Item, str]]:
    """Every call with the name of the field that holds its id."""
    return [
        (block[name], field) for block in _blocks_at(items, key) for name, field in _CALLS if block.get(name)
    ]


_CALLS = (("functionCall", "id"), ("toolUse", "toolUseId"))
_ANSWERS = (("functionResponse", "id"), ("toolResult", "toolUseId"))


def _answers_at(items: list[Item], key: str) -> list[tuple[Item, str]]:
    return [
        (block[name], field)
        for block in _blocks_at(items, key)
        for name, field in _ANSWERS
        if block.get(name)
    ]


def _bad_call(items: list[Item], key: str, chance: random.Random) -> None:
    calls = _calls_at(items, key)
    if not calls:
        return
    call, field = chance.choice(calls)
    arguments = "args" if field == "id" else "input"
    match chance.randrange(5):
        case 0:
            call[field] = chance.choice(_IDS)
        case 1:
            call["name"] = chance.choice(_NAMES)
        case 2:
            call[arguments] = chance.choice(
                [None, "{", "", "[]", {"k": "\ud800"}, {}, [], "text", {"k": float("nan")}]
            )
        case 3:
            call.pop(chance.choice(["name", arguments, field]), None)
        case 4:
            call[field] = chance.choice(calls)[0].get(field)


def _bad_answer(items: list[Item], key: str, chance: random.Random) -> None:
    answers = _answers_at(items, key)
    if not answers:
        return
    answer, field = chance.choice(answers)
    content = "response" if field == "id" else "content"
    match chance.randrange(5):
        case 0:
            answer[field] = chance.choice(_IDS)
        case 1:
            answer[field] = chance.choice(answers)[0].get(field)
        case 2:
            answer[content] = chance.choice([None, "text", [], {}, [{"text": ""}], ["bare"]])
            if content == "content" and answer[content] == {}:
                answer[content] = [{"json": {}}]
        case 3:
            answer.pop(chance.choice([content, field, "name"]), None)
        case 4:
            answer["status" if field == "toolUseId" else "name"] = "error"


def _other_role(items: list[Item], key: str, chance: random.Random) -> None:
    chance.choice(items)["role"] = chance.choice([*_ROLES, "model", "tool"])


def _move_untyped(items: list[Item], key: str, chance: random.Random) -> None:
    lists = [item[key] for item in items if isinstance(item.get(key), list) and item[key]]
    if lists:
        blocks = chance.choice(lists)
        block = blocks.pop(chance.randrange(len(blocks)))
        target = chance.choice(lists)
        target.insert(chance.randrange(len(target) + 1), block)


def _split_untyped(items: list[Item], key: str, chance: random.Random) -> None:
    index = chance.randrange(len(items))
    blocks = items[index].get(key)
    if isinstance(blocks, list) and len(blocks) > 1:
        cut = chance.randrange(1, len(blocks))
        items[index : index + 1] = [{**items[index], key: blocks[:cut]}, {**items[index], key: blocks[cut:]}]


def _more_blocks(items: list[Item], key: str, chance: random.Random) -> None:
    """Put in what these formats have and chat messages do not: marks, thoughts, signatures, documents."""
    item = chance.choice(items)
    blocks = item.get(key)
    if not isinstance(blocks, list):
        return
    if key == "parts":
        extra: Any = chance.choice(
            [
                {"text": "Hm.", "thought": True},
                {"text": "", "thoughtSignature": "c2ln"},
                {"thoughtSignature": "c2ln"},
            ]
        )
    else:
        thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}}
        document = {"document": {"format": "txt", "name": "a", "source": {"bytes": b"a"}}}
        extra = chance.choice(
            [thought, {"cachePoint": {"type": "default"}}, {"cachePoint": {"type": "default"}}, document]
        )
    blocks.insert(chance.randrange(len(blocks) + 1), extra)


def _sign_calls(items: list[Item], key: str, chance: random.Random) -> None:
    """Sign the first call of every reply, as a newer Gemini does, and lose a signature."""
    signed = []
    for item in items if key == "parts" else ():
        parts = item.get("parts")
        calls = (
            [part for part in parts if isinstance(part, dict) and "functionCall" in part]
            if isinstance(parts, list)
            else []
        )
        for part in calls[:1]:
            part["thoughtSignature"] = "c2ln"
            signed.append(part)
    if signed and chance.random() < 0.5:
        del chance.choice(signed)["thoughtSignature"]


UNTYPED_DAMAGES = [
    _any_list,
    _any_list,
    _any_list,
    _any_list,
    _no_blocks,
    _bad_text,
    _bad_call,
    _bad_call,
    _bad_answer,
    _bad_answer,
    _other_role,
    _move_untyped,
    _move_untyped,
    _split_untyped,
    _more_blocks,
    _more_blocks,
    _sign_calls,
]


# --- damage in the words of the AI-SDK and of harness artifacts


def damaged_parts(items: list[Item], seed: int) -> list[Item]:
    """A copy of a list of AI-SDK messages with one to four things wrong."""
    chance = random.Random(seed)
    found = copy.deepcopy(items)
    for _ in range(chance.randint(1, 4)):
        if found:
            chance.choice(PART_DAMAGES)(found, chance)
    return found


def _parts_of(items: list[Item], kind: str) -> list[Item]:
    return [block for block in _blocks(items) if block.get("type") == kind]


def _damage_part_call(items: list[Item], chance: random.Random) -> None:
    calls = _parts_of(items, "tool-call")
    if not calls:
        return
    call = chance.choice(calls)
    match chance.randrange(5):
        case 0:
            call["toolCallId"] = chance.choice(_IDS)
        case 1:
            call["toolName"] = chance.choice(_NAMES)
        case 2:
            call["args"] = chance.choice([None, "{", [], {}, {"k": "\ud800"}])
        case 3:
            call.pop(chance.choice(["toolCallId", "toolName", "args"]), None)
        case 4:
            call["toolCallId"] = chance.choice(calls).get("toolCallId")


def _damage_part_result(items: list[Item], chance: random.Random) -> None:
    results = _parts_of(items, "tool-result")
    if not results:
        return
    result = chance.choice(results)
    match chance.randrange(4):
        case 0:
            result["toolCallId"] = chance.choice(_IDS)
        case 1:
            result["toolCallId"] = chance.choice(results).get("toolCallId")
        case 2:
            result["result"] = chance.choice([None, "", " ", {}, [], "a\x00b", "\ud83d"])
        case 3:
            result.pop(chance.choice(["toolCallId", "toolName", "result"]), None)


def _empty_parts(items: list[Item], chance: random.Random) -> None:
    chance.choice(items)["content"] = copy.deepcopy(chance.choice(_EMPTY))


PART_DAMAGES = [
    _drop,
    _duplicate,
    _reorder,
    _truncate,
    _empty_parts,
    _damage_part_call,
    _damage_part_call,
    _damage_part_result,
    _damage_part_result,
    _change_role,
    _move_block,
    _split_message,
]


def damaged_artifacts(items: list[Item], seed: int) -> list[Item]:
    """A copy of a list of artifacts with one to four things wrong."""
    chance = random.Random(seed)
    found = copy.deepcopy(items)
    for _ in range(chance.randint(1, 4)):
        if found:
            chance.choice(ARTIFACT_DAMAGES)(found, chance)
    return found


def _damage_artifact(items: list[Item], chance: random.Random) -> None:
    item = chance.choice(items)
    match chance.randrange(5):
        case 0:
            item["content"] = chance.choice([*_TEXTS, "  ", "{", "x" * 300])
        case 1:
            item["title"] = chance.choice(["", "read me", "x" * 90, "functions.read", "\x00"])
        case 2:
            item["kind"] = chance.choice(["tool_call", "tool_output", "message", "note", "system", "task"])
        case 3:
            item["role"] = chance.choice(["user", "assistant"])
        case 4:
            item.pop("title", None)


ARTIFACT_DAMAGES = [_drop, _duplicate, _reorder, _truncate, _damage_artifact, _damage_artifact]
