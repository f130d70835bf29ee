"""`compact archive show`: what a summary stands for, and the message that a line of it cites."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.engine import pair, says, user
from typer.testing import CliRunner

from compact import CompactConfig, CompactManager
from compact.tools.cli.app import app


def _archived(root: Path) -> str:
    config = CompactConfig(
        model="gpt-4o", archive={"adapter": "fs", "root": str(root)}, policy={"keep_recent_turns": 1}
    )
    items = [user("Find the ports.")]
    for n in range(12):
        items += pair(f"c{n}", f"port of service_{n}: {9000 + n}\n" * 4)
    with CompactManager(config) as made:
        out = made.manual_compact("s", [*items, says("Found."), user("Go on.")])
    return str(out)


def test_a_citation_can_be_followed(tmp_path: Path) -> None:
    cited = re.search(r"port of (service_\d+): \d+[^\[]*\[m(\d+)\]", _archived(tmp_path))
    assert cited is not None
    shown = CliRunner().invoke(
        app, ["archive", "show", "s", "--message", f"1:{cited[2]}", "--root", str(tmp_path)]
    )
    assert shown.exit_code == 0, shown.output
    assert f"port of {cited[1]}: " in json.loads(shown.output)["content"]


def test_every_summary_says_what_it_covers(tmp_path: Path) -> None:
    _archived(tmp_path)
    shown = CliRunner().invoke(app, ["archive", "show", "s", "--root", str(tmp_path), "--json"])
    (summary,) = json.loads(shown.output)["summaries"]
    assert summary["step"] == 1
    assert 1 <= summary["first"] < summary["last"] <= 27
    assert summary["writer"] == "extractive"
    assert "m1 to m" in CliRunner().invoke(app, ["archive", "show", "s", "--root", str(tmp_path)]).output


def test_what_is_no_citation_is_refused(tmp_path: Path) -> None:
    _archived(tmp_path)
    for wanted in ("x", "1:0", "1:999", "1"):
        assert (
            CliRunner()
            .invoke(app, ["archive", "show", "s", "--message", wanted, "--root", str(tmp_path)])
            .exit_code
            == 2
        )
