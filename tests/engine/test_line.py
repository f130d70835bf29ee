"""The line before and after a pass: what it asks for, when it acts, what it tells, and what it does when it loses a race."""

from __future__ import annotations

from typing import Any

import pytest
from support.engine import Item, assert_good, events, manager, of_size, pass_rules, says, turns, user

from compact import CompactManager
from compact.engine.effects import Begin, Commit, Effect, Load
from compact.errors import ArchiveError, InsufficientBudget
from compact.runtime.run import Run
from compact.tokens import Meter
from compact.tokens.meter import REPLY_TOKENS


def watch_effects(made: CompactManager, lose_races: int = 0) -> list[Effect]:
    """Everything that the line asks for from the first slow effect on. The first commits lose to another worker."""
    effects: list[Effect] = []
    serve = made.services.serve

    def watch(run: Run, effect: Effect) -> Any:
        effects.append(effect)
        if isinstance(effect, Commit) and sum(isinstance(n, Commit) for n in effects) <= lose_races:
            return False
        return serve(run, effect)

    made.services.serve = watch  # type: ignore[method-assign]
    return effects


def count(effects: list[Effect], kind: type[Effect]) -> int:
    return sum(isinstance(effect, kind) for effect in effects)


def reasons(made: CompactManager) -> list[str]:
    return [event["properties"]["reason"] for event in events(made, name="trigger_decision")]


def test_the_archive_is_asked_for_a_sessions_state_at_first_and_before_a_pass() -> None:
    made = manager(8000)
    effects = watch_effects(made)
    history = turns(3)
    for n in range(4):
        history = [*made.preflight("s", history), user(f"next {n}"), says("ok")]
    history = [*made.preflight("s", [*history, *turns(40)]), user("and on")]
    made.preflight("s", history)
    assert made.archive.steps("s") == [1]
    assert count(effects, Load) == 2, "another worker may have been faster since"


def test_a_lost_race_is_run_again_and_gives_the_same() -> None:
    lost, first = manager(8000), manager(8000)
    watch_effects(lost, lose_races=2)
    assert lost.preflight("s", turns(40)) == first.preflight("s", turns(40))


def test_who_loses_every_race_goes_on_if_it_fits() -> None:
    made = manager(8000, policy={"trigger_pct": 0.5})
    effects = watch_effects(made, lose_races=99)
    items = of_size(made, turns(10), 6500)
    assert made.preflight("s", items) is items, "above the trigger, within the budget"
    assert count(effects, Begin) == 4
    assert [e["properties"]["outcome"] for e in events(made, name="finished")] == ["adopted"] * 4


def test_who_loses_every_race_fails_if_it_does_not_fit() -> None:
    made = manager(8000)
    effects = watch_effects(made, lose_races=99)
    with pytest.raises(ArchiveError, match="other workers were faster 4 times") as caught:
        made.preflight("s", of_size(made, turns(10), 6501))
    assert caught.value.reason == "taken"
    assert count(effects, Begin) == 4


@pytest.mark.parametrize(("tokens", "refused"), [(6330, False), (6350, True), (6503, True)])
def test_a_fixed_part_that_leaves_no_room_to_work_is_refused(tokens: int, refused: bool) -> None:
    """A fiftieth of the window, 160 tokens, must be left of the budget of 6,500."""
    made = manager(8000)
    items = of_size(made, [], tokens)
    items[0]["meta"] = {"protected": True}
    if not refused:
        assert made.preflight("s", items) is items
        return
    with pytest.raises(InsufficientBudget, match="the fixed part of the request takes") as caught:
        made.preflight("s", items)
    assert caught.value.shares["protected messages"] == tokens - 3, "all but the reply's own tokens"
    assert [e["properties"]["fallback"] for e in events(made, name="error")] == ["none"]


def test_sizes_are_told_with_tools_and_a_system_prompt_outside_the_list() -> None:
    made = manager(8000, policy={"keep_recent_turns": 1})
    tools = [{"type": "function", "function": {"name": "f", "description": "does " * 300}}]
    system = "Be careful. " * 100
    items = turns(40)
    after = made.preflight("s", items, tools, system=system)
    assert made.estimate(after, tools, system=system).total <= 6500
    (finished,) = (e["properties"] for e in events(made, name="finished"))
    assert finished["tokens_before"] == made.estimate(items, tools, system=system).total
    assert finished["tokens_after"] == made.estimate(after, tools, system=system).total
    assert finished["tokens_after"] <= 4000, "the target is half of the window, all told"
    assert finished["outcome"] == "compacted"


def test_a_pass_that_finds_nothing_to_do_says_so_in_its_sizes() -> None:
    made = manager()
    items = turns(2)
    assert made.manual_compact("s", items) is items
    (finished,) = (e["properties"] for e in events(made, name="finished"))
    assert finished["outcome"] == "unchanged"
    assert finished["tokens_after"] == finished["tokens_before"] == made.estimate(items).total


def test_a_session_that_cannot_get_smaller_waits_until_it_has_grown_by_a_tenth_of_the_window() -> None:
    made = manager(16_000, policy={"trigger_pct": 0.5})
    items = of_size(made, [says("ok")], 9000)
    items[0]["meta"] = {"protected": True}
    for session, tokens, tried_again in (("s", 10_599, False), ("t", 10_600, True)):
        assert made.preflight(session, items) is items
        rest = [*items[1:], user("go")]
        filler = tokens - made.estimate([*items, *rest[1:], user("")]).total
        grown = [*items, *rest[1:], user(" a" * filler)]
        assert made.estimate(grown).total == tokens
        made.preflight(session, grown)
        found = [e["properties"]["reason"] for e in events(made, session, "trigger_decision")]
        assert found == ["trigger", "trigger" if tried_again else "ineffective"]


def test_a_count_that_what_is_kept_exceeds_does_not_fire_on_every_call() -> None:
    made = manager(policy={"message_threshold": 6, "keep_recent_turns": 4})
    history: list[Item] = []
    for n in range(12):
        history = [*made.preflight("s", [*history, user(f"q {n}"), says(f"a {n}")])]
    assert len(made.archive.steps("s")) <= 2
    assert "ineffective" in reasons(made)


def test_what_a_host_gave_in_another_list_comes_back_as_that_list() -> None:
    made = manager(8000)
    history = turns(40)
    first = made.preflight("s", history)
    grown = [*history, user("next")]
    out = made.preflight("s", grown)
    assert out == [*first, user("next")]
    assert_good(made, grown, out)
    assert made.preflight("s", out) is out


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_a_budget_is_turned_into_raw_tokens_that_it_pays_for_and_wastes_none(model: str) -> None:
    meter = Meter(model)

    def in_raw_tokens(budget: int) -> int:
        return pass_rules(budget=budget).for_messages(0, meter.factor, fold_all=False).budget

    rounding = 0 if meter.factor == 1.0 else 2  # each share of an estimate is rounded up
    for budget in range(10, 2000, 7):
        raw = in_raw_tokens(budget)
        assert (
            meter.scale(raw + REPLY_TOKENS) + rounding
            <= budget
            < meter.scale(raw + REPLY_TOKENS + 2) + rounding
        )
    assert in_raw_tokens(3) == 0


def test_the_time_of_a_pass_is_what_passed_between_its_start_and_its_end() -> None:
    made = manager(8000)
    made.preflight("s", turns(40))
    (finished,) = events(made, name="finished")
    assert 0 < finished["properties"]["duration_ms"] < 60_000


def test_a_worker_that_was_not_overtaken_begins_its_second_pass_at_once() -> None:
    made = manager(8000)
    history = [*made.preflight("s", turns(40)), user("and on")]
    effects = watch_effects(made)
    made.preflight("s", [*history, *turns(40)])
    assert made.archive.steps("s") == [1, 2]
    assert (count(effects, Load), count(effects, Begin)) == (1, 1)
