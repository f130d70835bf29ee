"""What stays of an old output beside its pointer: the lines that name what nothing else in the context names."""

from __future__ import annotations

import json
import re
from typing import Any

from support.engine import assert_good, manager, pair, says, user

from compact.messages.excerpts import number_lines, pieces_of, read_numbered


def _session() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [user("Find the port.")]
    for n in range(40):
        lines = ["plain words that say nothing new at all"] * 60
        lines.insert(30, f"def open_channel_{n}(port=9{n:03d}):")
        items += pair(f"c{n}", "\n".join(lines), arguments=f'{{"path": "f{n}.py"}}')
    return [*items, says("Done."), user("Go on.")]


def test_a_pointer_keeps_the_telling_lines_with_their_numbers() -> None:
    made = manager(16_000, policy={"target_pct": 0.35})
    items = _session()
    out = made.preflight("s", items)
    assert_good(made, items, out)
    first = next(m["content"] for m in out if m["role"] == "tool")
    assert first.startswith("[compact: the output is in /tool_outputs/read_file_c0_")
    assert "@31 def open_channel_0(port=9000):" in first
    path = re.search(r"/tool_outputs/\S+?\.txt", first)
    assert path is not None
    whole = made.archive.read_text("s", path[0]).split("\n")
    assert whole[30] == "def open_channel_0(port=9000):", "the number is the line's own"


def test_a_second_pass_keeps_fewer_lines_of_the_same_pointer() -> None:
    made = manager(16_000, policy={"target_pct": 0.6})
    history = list(made.preflight("s", _session()))
    before = next(m["content"] for m in history if m["role"] == "tool")
    for n in range(40, 75):
        history += pair(f"c{n}", f"value_{n} = {n}\n" * 60, arguments=f'{{"path": "g{n}.py"}}')
        history = list(made.preflight("s", history))
    after = next((m["content"] for m in history if m["role"] == "tool"), "")
    assert len(made.archive.steps("s")) >= 2
    assert after.split(", ")[0].split(" is in ")[0] == before.split(", ")[0].split(" is in ")[0]
    assert made.estimate(history).total <= 16_000


def test_excerpts_are_masked_as_a_whole_before_lines_are_picked() -> None:
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7bq1\n" * 20 + "-----END RSA PRIVATE KEY-----"
    )
    items = [user("go")]
    for n in range(30):
        items += pair(f"c{n}", f"file_{n} = {n}\n{key}\n" + f"other_{n} line\n" * 80)
    out = manager(16_000, policy={"target_pct": 0.4}).preflight("s", [*items, user("next")])
    kept = [m["content"] for m in out if m["role"] == "tool" and m["content"].startswith("[compact: ")]
    assert kept
    assert not any("MIIEowIBAAKCAQEA7bq1" in text for text in kept)


def test_written_contents_keep_an_excerpt_and_stay_json() -> None:
    body = "\n".join(f"setting_{n} = {n * n}" for n in range(300))
    call = json.dumps({"path": "a.py", "content": body})
    items = [user("go"), *pair("w", "ok", name="write_file", arguments=call)]
    for n in range(30):
        items += pair(f"c{n}", f"out_{n} " * 300)
    out = manager(16_000, policy={"target_pct": 0.5}).preflight("s", [*items, user("next")])
    written = next(c for m in out for c in m.get("tool_calls") or [] if c["function"]["name"] == "write_file")
    arguments = json.loads(written["function"]["arguments"])
    assert list(arguments) == ["path", "content"]
    assert arguments["content"].startswith("[compact: the content that write_file wrote is in /tool_outputs/")


def test_pointers_alone_keep_no_lines() -> None:
    out = manager(16_000, policy={"target_pct": 0.35}, offload={"excerpt_share": 0.0}).preflight(
        "s", _session()
    )
    pointers = [m["content"] for m in out if m["role"] == "tool" and m["content"].startswith("[compact: ")]
    assert pointers
    assert not any("open_channel" in text for text in pointers)


def test_numbered_pieces_are_read_back_line_by_line() -> None:
    text = "\n".join("" if n % 5 == 0 else f"line {n}" for n in range(1, 60))
    pieces = pieces_of(text, 0)
    again = [(piece.line, piece.text) for piece in read_numbered(number_lines(pieces), 0)]
    assert again == [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line]
    assert len(pieces) < len(again), "short lines go together"
    assert "".join(p.text for p in pieces_of("word " * 200, 0)) == "word " * 200
