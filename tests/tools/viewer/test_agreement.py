"""What is shown is what is: viewer, `restore` and events agree with what a host passed and got, whatever was repaired."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support.data import bundled_sessions
from support.dialects import CONVERTERS
from support.engine import pair, says, turns, user
from support.mutations import mutated
from support.viewer import manager_on, opened

from compact import CompactConfig, CompactManager, hygiene
from compact.archive import Scribe
from compact.checks import violations
from compact.engine.context import Context
from compact.engine.effects import Asking
from compact.errors import CompactError
from compact.events import PrunedMessages
from compact.messages import Text
from compact.messages.message import GAP
from compact.redaction import Redactor
from compact.tools.cli.app import run
from compact.tools.viewer.steps import StepReader

CALLS = 6
SESSIONS = [session for session in bundled_sessions() if len(session["messages"]) >= 30]


def wire(items: Any) -> Any:
    """The list as JSON values: tuples become lists, and no object is shared."""
    return json.loads(json.dumps(items))


@dataclass
class Host:
    """Grows a session call by call, and knows what must be shown for every step."""

    root: Path
    keeps: bool
    """Whether it keeps what it was given. Otherwise it passes its full history every time."""
    restarts: bool
    dialect: str
    window: int
    layout: str = "layered"
    steps: dict[int, tuple[Any, Any, Any]] = field(default_factory=dict)
    """By step: the host's list, what stood, what was returned."""
    repaired: int = 0

    def manager(self) -> CompactManager:
        return CompactManager(
            CompactConfig(
                model="gpt-4o",
                max_context_tokens=self.window,
                policy={"hard_cap_buffer": 100, "layout": self.layout, "retention_window": 4},
                guard={"min_context_tokens": 1, "warn_context_tokens": 1, "min_room_share": 0.0},
                archive={"adapter": "fs", "root": str(self.root)},
                offload={
                    "large_result_tokens": 1_000_000
                },  # what is offloaded on arrival has a test of its own
                redaction={"enabled": False},
            )
        )

    def live(self, messages: list[Any]) -> None:
        """Pass the messages in portions."""
        manager = self.manager()
        size = -(-len(messages) // CALLS)
        given: list[Any] = []
        left: list[Any] = []
        """What the newest step left, and where the host's history went on."""
        since = 0
        for start in range(0, len(messages), size):
            given = [*given, *messages[start : start + size]]
            if self.restarts:
                manager.close()
                manager, given, left = self.manager(), wire(given), wire(left)
            seen = given if self.keeps else [*left, *given[since:]]
            stood = hygiene.clean(seen, dialect=self.dialect) if violations(seen, self.dialect) else seen
            before = manager.archive.steps("s")
            try:
                returned = manager.preflight("s", given, dialect=self.dialect)
            except CompactError:
                break  # it does not fit; the session ends here
            made = [step for step in manager.archive.steps("s") if step not in before]
            if made:
                self.steps[made[0]] = (wire(seen), wire(stood), wire(returned))
                self.repaired += wire(seen) != wire(stood)
                left, since = list(returned), len(given)
            if self.keeps:
                given = list(returned)
        manager.close()

    def check(self) -> None:
        """Everything that tells of a step tells the same."""
        archive = self.manager().archive
        facts = [e.properties for e in archive.events("s") if isinstance(e.properties, PrunedMessages)]
        for (number, (seen, stood, returned)), fact in zip(self.steps.items(), facts, strict=True):
            found = StepReader(archive).compare("s", number, "gpt-4o")
            shown = found.to_json()
            assert archive.restore("s", number).messages == seen, "restore"
            assert [each.message.origin for each in found.before] == stood, "before"
            assert [each.message.origin for each in found.after] == returned, "after"
            assert (shown["exact"], shown["given"]) == (True, len(seen))
            for side, tokens in (("before", fact.tokens_before), ("after", fact.tokens_after)):
                assert shown[f"tokens_{side}"] == tokens
                assert sum(each["tokens"] for each in shown[side]) == tokens
                assert sum(level[side] for level in shown["levels"]) == tokens
            self._check_levels(shown, stood, returned)
        assert archive.verify() == []

    def _check_levels(self, shown: Any, stood: list[Any], returned: list[Any]) -> None:
        for before, after, level in shown["pairs"]:
            if level == "kept":
                assert stood[before] == returned[after]
            if after is None:
                assert level in ("summarized", "pruned")
        lost = [stood[before] for before, after, _ in shown["pairs"] if after is None]
        gone = Counter(json.dumps(item) for item in lost if GAP not in str(item))  # markers are made anew
        stands = Counter(json.dumps(item) for item in returned)
        had = Counter(json.dumps(item) for item in stood)
        assert all(gone[text] <= had[text] - min(stands[text], had[text]) for text in gone), (
            "stands, shown as gone"
        )


def check_broken_sessions(
    root: Path, seeds: range, keeps: bool, restarts: bool, dialect: str
) -> Counter[str]:
    """Live through broken sessions and check what is shown of them. Counts steps, and steps after repairs."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        session = SESSIONS[seed % len(SESSIONS)]
        try:
            messages = CONVERTERS[dialect](mutated(session["messages"], seed))
        except (TypeError, AttributeError):
            continue  # some corruption has no counterpart in this dialect
        layout = "selective" if seed % 3 == 2 else "layered"
        host = Host(root / str(seed), keeps, restarts, dialect, 2_500 + 900 * (seed % 4), layout)
        host.live(copy.deepcopy(messages))
        host.check()
        counts.update(steps=len(host.steps), repaired=host.repaired)
    return counts


BOTH_HOSTS = pytest.mark.parametrize("keeps", [True, False], ids=["keeps", "full"])
WITH_RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["one process", "restarts"])
EVERY_DIALECT = pytest.mark.parametrize("dialect", sorted(CONVERTERS))


@BOTH_HOSTS
@WITH_RESTARTS
@EVERY_DIALECT
def test_every_step_of_a_broken_session_is_shown_as_it_was(
    tmp_path: Path, keeps: bool, restarts: bool, dialect: str
) -> None:
    counts = check_broken_sessions(tmp_path, range(4, 5), keeps, restarts, dialect)
    assert counts["steps"] > 1
    assert counts["repaired"] > 0


@pytest.mark.sweep
@pytest.mark.no_cover
@BOTH_HOSTS
@WITH_RESTARTS
@EVERY_DIALECT
def test_every_step_of_many_broken_sessions_is_shown_as_it_was(
    tmp_path: Path, keeps: bool, restarts: bool, dialect: str
) -> None:
    counts = check_broken_sessions(tmp_path, range(3), keeps, restarts, dialect)
    assert counts["steps"] > 3
    assert counts["repaired"] > 0


SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
ORPHAN = {"role": "tool", "tool_call_id": "nobody", "content": f"an orphan with {SECRET}"}
HALF = {"role": "user", "content": "half a character \ud83d"}


def broken_talk(turns: int = 30) -> list[Any]:
    """A session with a secret in every turn, and something wrong every few turns."""
    found: list[Any] = []
    for n in range(turns):
        words = " ".join(f"word{n}x{k}" for k in range(40))
        found += [user(f"Question {n}: {words}, {SECRET}"), *pair(f"c{n}", f"{words} {SECRET}"), says(words)]
        if n % 5 == 2:
            found += [ORPHAN, HALF, pair(f"open{n}", "")[0]]
    return [*found, user("And now?")]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_secrets_and_a_models_own_factor_change_no_place_and_no_figure(tmp_path: Path, model: str) -> None:
    given = broken_talk()
    with manager_on(tmp_path, 6_000, model=model) as manager:
        returned = manager.preflight("s", given)
    archive = opened(tmp_path)
    (fact,) = [e.properties for e in archive.events("s") if isinstance(e.properties, PrunedMessages)]
    found = StepReader(archive).compare("s", 1, model)
    masked = Redactor().session().redact_messages
    assert archive.restore("s", 1).messages == masked(given)
    assert [each.message.origin for each in found.before] == masked(hygiene.clean(given))
    assert [each.message.origin for each in found.after] == masked(returned)
    assert sum(each.tokens for each in found.before) == fact.tokens_before
    assert sum(each.tokens for each in found.after) == fact.tokens_after
    assert SECRET not in json.dumps(archive.step("s", 1).state)


def test_a_result_that_is_offloaded_on_arrival_is_restored_as_it_came(tmp_path: Path) -> None:
    huge = "\n".join(f"line {n} of a large output" for n in range(2_000))
    given = [*turns(40), *pair("c1", huge), user("And now?")]
    with manager_on(tmp_path, 9_000, offload={"large_result_tokens": 1_000}) as manager:
        returned = manager.preflight("s", given)
    archive = opened(tmp_path)
    found = StepReader(archive).compare("s", 1, None)
    assert archive.restore("s", 1).messages == given
    assert [each.message.origin for each in found.after] == returned
    assert len(found.before) == len(given)
    assert "line 1999" not in str(found.before[-2].message.origin), "what stood is the pointer"


def test_one_message_object_at_two_places_is_shown_at_both(tmp_path: Path) -> None:
    go_on = user("Go on.")
    given = [ORPHAN, *(m for n in range(60) for m in (go_on, says(f"Answer {n}: " + f"word{n} " * 40)))]
    with manager_on(tmp_path, 6_000) as manager:
        returned = manager.preflight("s", given)
    archive = opened(tmp_path)
    found = StepReader(archive).compare("s", 1, None)
    assert [each.message.origin for each in found.before] == given[1:]
    assert [each.message.origin for each in found.after] == returned


def test_a_stage_of_the_hosts_own_is_shown_by_what_it_returned(tmp_path: Path) -> None:
    def shorten(context: Context) -> Asking[Context]:
        yield from ()
        rows = [
            context.desk.row(row.message.with_parts((Text("short"),)), "cut") if n % 2 else row
            for n, row in enumerate(context.rows)
        ]
        return context.with_rows(rows)

    config = CompactConfig(
        model="gpt-4o", max_context_tokens=12_000, archive={"adapter": "fs", "root": str(tmp_path)}
    )
    with CompactManager(config, stages=[shorten]) as manager:
        returned = manager.manual_compact("s", [ORPHAN, *turns(40)])
    found = StepReader(opened(tmp_path)).compare("s", 1, None)
    assert [each.message.origin for each in found.after] == returned
    assert "short" in [item["content"] for item in returned]


def test_a_record_of_an_earlier_version_says_that_it_is_a_guess(tmp_path: Path) -> None:
    with manager_on(tmp_path, 6_000) as manager:
        returned = manager.preflight("s", turns(60))
    archive = opened(tmp_path)
    step = archive.step("s", 1)
    without = {key: value for key, value in step.state.items() if key != "sides"}
    (tmp_path / "s" / "state-001.json").write_bytes(
        Scribe(Redactor(), "s").state(replace(step, state=without)).data
    )
    shown = StepReader(archive).compare("s", 1, None)
    assert shown.to_json()["exact"] is False
    assert [each.message.origin for each in shown.after] == returned
    assert archive.sides("s", archive.step("s", 1)) is None


def test_apply_the_viewer_and_restore_tell_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also for a second file of the same name, whose session is another one or a later state of the first."""
    root, files = tmp_path / "archive", [tmp_path / "a" / "talk.json", tmp_path / "b" / "talk.json"]
    for file, given in zip(files, [broken_talk(30), broken_talk(45)[7:]], strict=True):
        file.parent.mkdir()
        file.write_text(json.dumps(given))
        out = file.with_name("out.json")
        assert run(["apply", str(file), "-o", str(out), "--window", "6k", "--root", str(root), "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        session, step = report["session"], report["step"]
        archive = opened(root)
        found = StepReader(archive).compare(archive.folder(session), step, "gpt-4o")
        masked = Redactor().session().redact_messages
        assert run(["archive", "restore", session, "--step", str(step), "--root", str(root)]) == 0
        restored = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert restored == masked(given)
        assert len(restored) == report["before"]["messages"]
        assert [each.message.origin for each in found.before] == masked(hygiene.clean(given))
        assert [each.message.origin for each in found.after] == masked(json.loads(out.read_text()))


def test_a_citation_names_the_message_that_stood_not_the_one_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with manager_on(tmp_path, 6_000) as manager:
        manager.manual_compact("s", [ORPHAN, ORPHAN, user("The rule: never push."), *turns(40)])
    page = opened(tmp_path).read_text("s", "/conversation_history/step-001.md")
    assert "## 1. user\n\nThe rule: never push." in page
    assert run(["archive", "show", "s", "--message", "1:1", "--root", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == "The rule: never push."
