"""The kinds of summaries: what each consists of, and how a user adds one."""

from __future__ import annotations

import re

import pytest
from support_summaries import session, summary

from compact.errors import ConfigError
from compact.summarizers import strategies, templates
from compact.summarizers.strategies import Section, Strategy


@pytest.mark.parametrize("name", ["task_state", "decision_log", "code_delta", "brief"])
def test_the_prompt_names_every_heading_in_its_order_and_shows_an_example(name: str) -> None:
    strategy = strategies.get(name)
    prompt = templates.load(templates.SUMMARIZE).filled(templates.values_for(strategy, 500, "summary"))
    listed = prompt[prompt.index("Use these headings, in this order") :]
    places = [listed.index(heading) for heading in strategy.headings]
    assert places == sorted(places)
    record, example = prompt.partition("Example of its summary:\n")[::2]
    assert "Example of a record:" in record
    assert example.startswith("## Next step")
    shown = re.findall(r"^## .+$", example.partition("\n\n")[0], re.MULTILINE)
    assert shown == [heading for heading in strategy.headings if heading in shown]


@pytest.mark.parametrize("name", ["task_state", "decision_log", "code_delta", "brief"])
def test_what_a_strategy_requires_of_a_model_are_headings_of_its_own(name: str) -> None:
    strategy = strategies.get(name)
    for wanted in strategy.required:
        assert sum(heading.startswith(f"## {wanted}") for heading in strategy.headings) == 1


def test_an_unknown_strategy_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"task_state, decision_log, code_delta, brief.*got 'haiku'"):
        strategies.get("haiku")
    with pytest.raises(ConfigError):
        summary(session("entire-ce"), "haiku")


def test_a_strategy_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "_known", dict(strategies._known))
    strategies.register(
        Strategy(name="ran", sections=(Section("## Ran", ("commands",), 1.0),), prompt="List what ran.")
    )
    text = summary(session("entire-ce"), "ran", 400)
    assert text.startswith("## Ran\n- Bash `")
    assert text.count("## ") == 1


def test_a_section_without_an_extractor_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"names the extractor 'magic'.*next_steps"):
        strategies.register(Strategy(name="x", sections=(Section("## X", ("magic",), 1.0),), prompt=""))
    with pytest.raises(ConfigError, match="no sections"):
        strategies.register(Strategy(name="x", sections=(), prompt=""))
