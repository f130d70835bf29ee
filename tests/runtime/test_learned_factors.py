"""What observed usage teaches beyond one session: kept by tenant and model, believed by the next session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.engine import Clock, events, turns

from compact import CompactConfig, CompactManager
from compact.tokens import Meter

MODEL = "claude-sonnet-4-5"
TRUE = 1.05
"""What the provider of these tests counts for each raw token."""


def manager(root: Path) -> CompactManager:
    config = CompactConfig(model=MODEL, archive={"adapter": "fs", "root": str(root)})
    return CompactManager(config, clock=Clock())


def teach(made: CompactManager, session: str = "taught", tenant: str | None = None, size: int = 30) -> None:
    """A session whose provider counts `TRUE` for each raw token."""
    meter, items = Meter(MODEL), list[Any]()
    for n in range(size):
        items += turns(2, words=400)[-2:]
        items[-2]["content"] += f" {n}"
        made.preflight(session, items, tenant=tenant)
        raw = sum(meter.count_item(item, "chat") for item in items)
        made.observe(session, input_tokens=round(raw * TRUE), tenant=tenant)


def first_estimate(made: CompactManager, session: str, tenant: str | None = None) -> int:
    made.preflight(session, turns(10, words=400), tenant=tenant)
    made.flush()
    archive = made.archive if tenant is None else made.archive.for_tenant(tenant)
    lines = (event.to_json() for event in archive.events(session))
    found: int = next(
        line["properties"]["t_est"] for line in lines if line["name"] == "compact.token_estimate"
    )
    return found


def test_the_next_session_starts_from_what_was_learned_in_this_and_in_a_new_process(tmp_path: Path) -> None:
    with manager(tmp_path) as made:
        untaught = first_estimate(made, "before")
        teach(made)
        assert first_estimate(made, "after") < untaught
        learned = json.loads((tmp_path / "_models" / f"{MODEL}.json").read_text())
        assert learned["factor"] == TRUE
    with manager(tmp_path) as again:
        taught = first_estimate(again, "again")
        assert abs(taught - untaught * TRUE / Meter(MODEL).factor) <= 2
        assert again.archive.verify() == []


def test_what_is_learned_at_the_end_is_written_when_the_manager_closes(tmp_path: Path) -> None:
    with manager(tmp_path) as made:
        teach(made)
    assert (tmp_path / "_models" / f"{MODEL}.json").is_file()


def test_a_session_keeps_its_factor_until_its_next_step(tmp_path: Path) -> None:
    with manager(tmp_path) as made:
        before = first_estimate(made, "steady")
        teach(made)
        first_estimate(made, "other")  # what was learned is known now
        assert first_estimate(made, "steady") == before


def test_one_tenants_usage_teaches_no_other(tmp_path: Path) -> None:
    with manager(tmp_path) as made:
        untaught = first_estimate(made, "s", "beta")
        teach(made, tenant="acme")
        assert first_estimate(made, "t", "acme") < untaught
        assert first_estimate(made, "t", "beta") == untaught == first_estimate(made, "t")
        made.flush()
        assert (tmp_path / "_tenants" / "acme" / "_models").is_dir()
        assert not (tmp_path / "_tenants" / "beta" / "_models").exists()


def test_a_few_replies_teach_nothing(tmp_path: Path) -> None:
    with manager(tmp_path) as made:
        untaught = first_estimate(made, "before")
        teach(made, size=5)
        assert first_estimate(made, "after") == untaught


def test_a_damaged_file_is_a_warning_and_never_fatal(tmp_path: Path) -> None:
    (tmp_path / "_models").mkdir()
    (tmp_path / "_models" / f"{MODEL}.json").write_text("{ not json")
    with manager(tmp_path) as made:
        untaught = Meter(MODEL).estimate(turns(10, words=400)).total
        assert first_estimate(made, "s") == untaught
        codes = [event["properties"]["code"] for event in events(made, "s", "warning")]
        assert codes == ["factor_damaged"]
        assert [defect.code for defect in made.archive.verify()] == ["damaged"]
        teach(made)
        assert first_estimate(made, "t") < untaught
        assert made.archive.verify() == []


def test_an_exact_count_learns_nothing(tmp_path: Path) -> None:
    with manager(tmp_path) as made:
        items = turns(40, words=400)
        for n in range(2, 40, 2):
            made.preflight("s", items[:n], model="gpt-4o")
            made.observe("s", input_tokens=2 * made.estimate(items[:n], model="gpt-4o").total)
    assert not (tmp_path / "_models").exists()
