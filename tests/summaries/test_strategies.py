"""The kinds of summaries: what each consists of, and how a user adds one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.summaries import session, summary

from compact.errors import ConfigError
from compact.summaries import strategies, templates
from compact.summaries.strategies import Section, Strategy


@pytest.mark.parametrize("name", ["task_state", "decision_log", "code_delta", "brief"])
def test_the_prompt_names_every_heading_in_its_order_and_shows_an_example(name: str) -> None:
    strategy = strategies.get(name)
    prompt = templates.load(templates.SUMMARIZE).fill(templates.values_for(strategy, 500, "summary"))
    listed = prompt[prompt.index("Use these headings, in this order") :]
    places = [listed.index(heading) for heading in strategy.headings]
    assert places == sorted(places)
    record, example = prompt.partition("Example of its summary:\n")[::2]
    assert "Example of a record:" in record
    assert example.startswith("## Next step")
    shown = re.findall(r"^## .+$", example.partition("\n\n")[0], re.MULTILINE)
    assert shown == [heading for heading in strategy.headings if heading in shown]


def test_an_unknown_strategy_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"task_state, decision_log, code_delta, brief.*got 'haiku'"):
        strategies.get("haiku")
    with pytest.raises(ConfigError):
        summary(session("entire-ce"), "haiku")


def test_a_strategy_of_ones_own() -> None:
    strategies.register(
        Strategy(name="ran", sections=(Section("## Ran", ("commands",), 1.0),), prompt="List what ran.")
    )
    text = summary(session("entire-ce"), "ran", 400)
    assert text.startswith("## Ran\n- Bash `")
    assert text.count("## ") == 1


SECTION = Section("## Ran", ("commands",), 1.0)


def made_of(**parts: Any) -> Any:
    return Strategy(**{"name": "x", "sections": (SECTION,), "prompt": "List what ran.", **parts})


def with_section(heading: Any = "## X", extractors: Any = ("commands",), share: Any = 1.0) -> Any:
    return made_of(sections=(Section(heading, extractors, share),))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("incident", "must be a Strategy, got str"),
        (made_of(name="two words"), "name must be letters, digits, _ and -, got 'two words'"),
        (made_of(name=None), "name must be letters, digits, _ and -, got None"),
        (made_of(name="brief"), "'brief' is a built-in strategy.*replace_built_in=True"),
        (made_of(prompt=None), "prompt that is not text but NoneType"),
        (made_of(prompt=["a"]), "prompt that is not text but list"),
        (made_of(sections=()), "no sections"),
        (made_of(sections=SECTION), "not a tuple of Section"),
        (made_of(sections=("## Ran",)), "not a tuple of Section"),
        (made_of(sections=(SECTION, SECTION)), "a heading twice"),
        (with_section(heading="Ran"), "heading is not a line like ## Words"),
        (with_section(heading="## Ran\n## Won"), "heading is not a line like ## Words"),
        (with_section(heading=None), "heading is not a line like ## Words"),
        (with_section(share="all"), "share is 'all'"),
        (with_section(share=0), "share is 0"),
        (with_section(share=float("nan")), "share is nan"),
        (with_section(extractors=("magic",)), "names the extractor 'magic'.*next_steps"),
        (with_section(extractors=("commands")), "not a tuple of names: 'commands'"),
        (with_section(extractors=()), "not a tuple of names"),
        (with_section(extractors=("commands", "details")), "mixes 'details' with other extractors"),
    ],
)
def test_a_strategy_that_could_not_work_is_refused_with_what_is_wrong(given: Any, problem: str) -> None:
    brief = strategies.get("brief")
    with pytest.raises(ConfigError, match=problem):
        strategies.register(given)
    assert strategies.get("brief") is brief
    with pytest.raises(ConfigError):
        strategies.get("x")


def test_a_built_in_strategy_is_replaced_only_when_asked() -> None:
    brief, own = strategies.get("brief"), made_of(name="brief")
    try:
        strategies.register(own, replace_built_in=True)
        assert strategies.get("brief") is own
    finally:
        strategies.register(brief, replace_built_in=True)
    own = made_of(name="mine")
    strategies.register(made_of(name="mine", prompt="An older one."))
    strategies.register(own)
    assert strategies.get("mine") is own
