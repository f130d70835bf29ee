"""The kinds of summaries: what each consists of, and how a user adds one."""

from __future__ import annotations

import pytest
from support_summaries import session, summary

from compact.errors import ConfigError
from compact.summarizers import strategies
from compact.summarizers.strategies import Section, Strategy


@pytest.mark.parametrize("name", ["task_state", "decision_log", "code_delta", "brief"])
def test_the_prompt_names_every_heading_in_its_order_and_shows_an_example(name: str) -> None:
    strategy = strategies.get(name)
    places = [strategy.prompt.index(section.heading) for section in strategy.sections]
    assert places == sorted(places)
    assert "Example of a record:" in strategy.prompt
    assert "Example of its summary:\n## Next step" in strategy.prompt
    assert "Invent nothing" in strategy.prompt


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
