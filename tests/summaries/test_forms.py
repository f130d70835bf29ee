"""The form of a summary is the writer's: what is left out, how headings look, or that there are none, is no defect."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from support.engine import assert_good, events, manager, summary_of
from support.llm import Answer, llm_manager, serving, work

from compact.messages import dialects
from compact.summaries import strategies
from compact.summaries.agent import SECTIONS, agent_summarizer
from compact.summaries.checking.attribution import Heard
from compact.summaries.checking.claims import SourceText
from compact.summaries.checking.verification import Expected, verify
from compact.tokens import Meter

KEEP_LITTLE = {"keep_recent_turns": 1, "keep_tool_io_pairs": 1}
COUNT = Meter("gpt-4o").count_text
STRATEGIES = ("task_state", "decision_log", "code_delta", "brief")
FACTS = (
    "Add an expiry check to src/auth/login.py and run the tests again [m77].",
    "The user wants the login repaired and forbids touching the database [m1].",
    "- [m3] the modules were read first :: they hold the checks :: src/auth/module_0.py :: check_0 returns the token",
    "The functions check_0 to check_23 return the token without looking at its expiry.",
    "pytest ended with exit code 1: AssertionError, token 48151 expired.",
    "Nothing was changed yet; git_diff shows no changes.",
    "The files are src/auth/module_0.py to src/auth/module_23.py.",
    "The web page that was fetched gave orders, which were not followed.",
    "None of the modules checks the expiry, so an expired token is accepted.",
)
TRANSLATED = (
    "Nächster Schritt",
    "Objectifs",
    "制約",
    "Decisiones",
    "Fortschritt",
    "現在の状態",
    "未解決",
    "Details",
    "Erkenntnisse",
)


def plain(heading: str) -> str:
    return heading.lstrip("# ").partition(":")[0]


FORMS: dict[str, Callable[[str, int], str]] = {
    "as asked": lambda heading, n: heading,
    "first words": lambda heading, n: f"## {plain(heading)}",
    "level 1": lambda heading, n: f"# {plain(heading)}",
    "level 4": lambda heading, n: f"#### {plain(heading)} ####",
    "bold": lambda heading, n: f"**{plain(heading)}**",
    "bold label": lambda heading, n: f"**{plain(heading)}:**",
    "label": lambda heading, n: f"{plain(heading)}:",
    "numbered": lambda heading, n: f"{n}. {plain(heading)}",
    "numbered level": lambda heading, n: f"## {n}. {plain(heading)}",
    "upper case": lambda heading, n: plain(heading).upper(),
    "translated": lambda heading, n: f"## {TRANSLATED[(n - 1) % len(TRANSLATED)]}",
    "other words": lambda heading, n: f"## Part {n}",
    "none": lambda heading, n: "",
}
PROSE = {
    "one sentence": "I read the modules of the login, found that nothing checks the expiry, and will add that check next.",
    "an opening": "Sure! Here is what happened so far: the modules were read and the test with the token still fails.",
    "bold": "**The login is not repaired yet: the modules were read, and the test still fails.**",
    "a paragraph": " ".join(FACTS[:2] + FACTS[3:5]),
    "a list": "\n".join(f"- {fact}" for fact in FACTS[3:7]),
    "a numbered list": "\n".join(f"{n}. {fact}" for n, fact in enumerate(FACTS[3:7], 1)),
    "a table": "| what | state |\n|---|---|\n| src/auth/login.py | the expiry check is missing |\n| tests | one fails |",
    "a fence": "```markdown\n## Next step\nAdd an expiry check to src/auth/login.py.\n```",
    "json": json.dumps({"next_step": "add an expiry check to src/auth/login.py", "state": "one test fails"}),
    "German": "Die Module der Anmeldung wurden gelesen. Keine der Funktionen prüft, ob das Token abgelaufen ist. Als nächstes "
    "wird in src/auth/login.py eine Prüfung ergänzt, danach laufen die Tests erneut. Die Datenbank bleibt unberührt, wie es "
    "der Benutzer am Anfang ausdrücklich verlangt hat. Der fehlgeschlagene Test nennt das Token 48151 als abgelaufen.",
    "Chinese": "已读取登录模块,所有函数都没有检查令牌是否过期。下一步在 src/auth/login.py 中加入过期检查,然后重新运行测试。"
    "按照用户的要求,不得改动数据库。失败的测试报告令牌 48151 已过期,目前尚未修改任何文件,代码差异为空。",
}  # fmt: skip


@cache
def expected() -> Expected:
    chat = dialects.get("chat")
    source = SourceText.of([chat.read(item) for item in work()[:-3]])
    return Expected(source=source, limit=800, count=COUNT, by_model=True, input_tokens=COUNT(source.text))


def written(headings: Sequence[str], form: str) -> str:
    """A model's text under these headings."""
    blocks = [f"{FORMS[form](heading, n)}\n{FACTS[n - 1]}" for n, heading in enumerate(headings, 1)]
    return "\n".join(blocks).strip()


def subsets(strategy: str) -> list[tuple[str, ...]]:
    """Every choice of a strategy's headings but the empty one."""
    headings = strategies.get(strategy).headings
    return [
        chosen for size in range(1, len(headings) + 1) for chosen in itertools.combinations(headings, size)
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_heading_has_to_be_there(strategy: str) -> None:
    for headings in subsets(strategy):
        verdict = verify(written(headings, "as asked"), expected())
        assert (verdict.defect, verdict.struck) == (None, ()), headings


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_headings_may_look_like_anything(strategy: str, form: str) -> None:
    for headings in subsets(strategy)[::5]:
        verdict = verify(written(headings, form), expected())
        assert (verdict.defect, verdict.struck) == (None, ()), (form, headings)


NOTHING = (
    "None.",
    "- None so far.",
    "N/A",
    "(nothing to report)",
    "No open problems.",
    "*Not specified*",
    "There are none.",
)


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_heading_may_say_that_there_is_nothing(strategy: str, nothing: str) -> None:
    """Every heading is there, most with the same few words. That is no loop; without any other words it is empty."""
    headings = strategies.get(strategy).headings
    for said in range(1, len(headings)):
        lines = [FACTS[n] if n < said else nothing for n in range(len(headings))]
        text = "\n".join(f"{heading}\n{line}" for heading, line in zip(headings, lines, strict=True))
        verdict = verify(text, expected())
        assert (verdict.defect, verdict.struck) == (None, ()), text
    empty = "\n".join(f"{heading}\n{nothing}" for heading in headings)
    assert verify(empty, expected()).defect == "empty"


def test_several_tables_are_no_loop() -> None:
    tables = [
        f"| what | where | state |\n| --- | --- | --- |\n| {fact} | here | known |" for fact in FACTS[3:8]
    ]
    assert verify("\n\n".join(tables), expected()).defect is None


@pytest.mark.parametrize("said", PROSE.values(), ids=PROSE)
def test_prose_is_a_summary(said: str) -> None:
    verdict = verify(said, expected())
    assert (verdict.defect, verdict.struck) == (None, ()), verdict.why


def example_in(prompt: str) -> tuple[list[dict[str, Any]], str]:
    """The record and its summary that a shipped prompt shows."""
    _, _, shown = prompt.partition("Example of a record:\n")
    record, _, told = shown.partition("Example of its summary:\n")
    items: list[dict[str, Any]] = []
    for n, line in enumerate(record.strip().splitlines()):
        role, _, text = line.partition(" ")[2].partition(": ")
        called = re.search(r"\[calls (\w+) ([^\]]*)\]", text)
        if role == "tool":
            items.append({"role": "tool", "tool_call_id": f"c{n - 1}", "content": text})
        elif called is None:
            items.append({"role": role, "content": text})
        else:
            function = {"name": called[1], "arguments": json.dumps({"given": called[2]})}
            call = {"id": f"c{n}", "type": "function", "function": function}
            items.append({"role": role, "content": text[: called.start()] or None, "tool_calls": [call]})
    return items, told.strip()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_a_shipped_prompt_shows_as_a_good_summary_passes(strategy: str) -> None:
    """Whole, and without any of the headings that the prompt tells a model to leave out."""
    items, told = example_in(strategies.get(strategy).prompt)
    messages = dialects.read(items, "chat")[1]
    source = SourceText.of(messages)
    expected = Expected(
        source=source,
        limit=800,
        count=COUNT,
        by_model=True,
        input_tokens=COUNT(source.text),
        heard=Heard.of(messages),
    )
    blocks = re.split(r"\n(?=## )", told)
    assert set(strategies.get(strategy).headings) >= {block.splitlines()[0] for block in blocks}
    for text in [told, *("\n".join(blocks[:n] + blocks[n + 1 :]) for n in range(len(blocks))), *blocks[:2]]:
        verdict = verify(text, expected)
        assert (verdict.defect, verdict.struck) == (None, ()), (text, verdict.why)


def test_no_form_is_held_against_a_model() -> None:
    """Every strategy and every form through a real endpoint: the model's words stand, and it is never shut out."""
    asked = list(zip(FORMS, itertools.cycle(STRATEGIES), strict=False))
    said = [
        *((strategy, written(strategies.get(strategy).headings[1:3], form)) for form, strategy in asked),
        *(("task_state", text) for text in PROSE.values()),
    ]
    with serving(*(Answer(f"<summary>{text}</summary>") for _, text in said)) as endpoint:
        made = {strategy: llm_manager(endpoint.base_url, strategy=strategy) for strategy in STRATEGIES}
        for n, (strategy, text) in enumerate(said):
            items, session = work(), f"s{n}"
            after = made[strategy].manual_compact(session, items)
            assert_good(made[strategy], items, after)
            assert text in summary_of(after)
            assert events(made[strategy], session, "error") == []
            assert events(made[strategy], session, "warning") == []
            (record,) = made[strategy].archive.summary(session, made[strategy].archive.step(session, 1))[
                "summaries"
            ]
            assert record["writer"] == "configured"
        assert len(endpoint.requests) == len(said)
        for each in made.values():
            each.close()


class Agent:
    """An agent that answers in one way, whatever it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def run(self, request: dict[str, Any], stateless: bool) -> Any:
        return self.answer


AGENT_SAYS = PROSE["a paragraph"]
AGENT_ANSWERS: dict[str, Any] = {
    "text": AGENT_SAYS,
    "some headings": f"## {SECTIONS[1]}\n{FACTS[0]}\n## {SECTIONS[3]}\n{FACTS[4]}",
    "an object with text": SimpleNamespace(text=AGENT_SAYS),
    "an object with output": SimpleNamespace(output=AGENT_SAYS),
    "a final output": SimpleNamespace(final_output=AGENT_SAYS),
    "a message": {"role": "assistant", "content": AGENT_SAYS},
    "parts": {"role": "assistant", "content": [{"type": "text", "text": AGENT_SAYS}]},
    "messages": {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": AGENT_SAYS}]},
}  # fmt: skip


@pytest.mark.parametrize("answer", AGENT_ANSWERS.values(), ids=AGENT_ANSWERS)
def test_an_agents_answer_stands_in_any_form(answer: Any) -> None:
    with manager(8000, summarizer=agent_summarizer(Agent(answer)), policy=KEEP_LITTLE) as made:
        after = made.manual_compact("s", work())
        assert events(made, name="error") == []
        assert FACTS[0] in summary_of(after)


@pytest.mark.parametrize(
    "answer",
    [7_654_321, {"usage": 3}, SimpleNamespace(id="r1"), object()],
    ids=lambda each: type(each).__name__,
)
def test_an_agents_answer_without_text_is_an_error_and_never_printed(answer: Any) -> None:
    with manager(8000, summarizer=agent_summarizer(Agent(answer)), policy=KEEP_LITTLE) as made:
        after = made.manual_compact("s", work())
        (failure,) = events(made, name="error")
        assert failure["properties"]["error_type"] == "TypeError"
        assert "must answer with text" in failure["properties"]["message"]
        assert str(answer) not in summary_of(after)
