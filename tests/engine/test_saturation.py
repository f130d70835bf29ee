"""Sessions that live at their limit for hundreds of turns: every preset, both kinds of host, small and large windows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import pytest
from support.engine import Clock, Item, events, pair, says, user

from compact import CompactConfig, CompactManager
from compact.checks import violations

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover

WORDS = [
    f"{word}{n}" for word in ("file", "path", "error", "build", "cache", "node", "graph") for n in range(90)
]


@dataclass
class Life:
    """One session of `turns` turns. Each takes about a sixtieth of the window, so the window is filled several times."""

    preset: str
    window: int
    host: str
    policy: dict[str, Any] = field(default_factory=dict)
    offload: dict[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    calls: int = 0
    edits: int = 0
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings: dict[str, Any] = {
            "model": "gpt-4o",
            "max_context_tokens": self.window,
            "archive": {"adapter": "memory"},
            "policy": self.policy,
            "offload": self.offload,
        }
        named = self.preset != "default"
        self.config = CompactConfig.preset(self.preset, **settings) if named else CompactConfig(**settings)
        self.made = CompactManager(self.config, clock=Clock())
        self.chance = random.Random(f"{self.preset} {self.window}")
        self.history: list[Item] = [{"role": "system", "content": "You are an agent."}]
        self.sent: list[Item] = []
        """What the provider got last."""
        self.taken = 0

    def text(self, tokens: float) -> str:
        return " ".join(self.chance.choice(WORDS) for _ in range(max(3, int(tokens / 3))))

    def live(self, turns: int, take_turn: Callable[[Life, int], None]) -> Life:
        for turn in range(turns):
            take_turn(self, turn)
        self.made.flush()
        return self

    def call(self, *new: Item) -> None:
        """Append messages and send them. `new` has not been sent before, so the model must see all of it."""
        self.history += new
        given = [*self.sent, *self.history[self.taken :]] if self.host == "keeps" else list(self.history)
        self.taken = len(self.history)
        found = self.made.preflight("s", given)
        self.calls += 1
        is_edited = found[: len(self.sent)] != self.sent
        assert not is_edited or violations(found) == []
        size = self.made.estimate(found).total
        assert size <= self.config.budget(self.window)
        for item in new:
            assert any(item is sent for sent in found), "what is new is sent whole"
        newest = next(item for item in reversed(self.history) if item["role"] == "user")
        assert any(item is newest for item in found), "the user's newest message is sent as it is"
        if is_edited:
            self.edits += 1
            self.look_at_pairs(found)
        self.sent = list(found)
        self.sizes.append(size)

    def reply(self, item: Item) -> None:
        self.history.append(item)

    def look_at_pairs(self, found: list[Item]) -> None:
        """After a pass, the newest pairs stand whole."""
        if self.config.policy.layout == "selective" or self.config.policy.recent_share is not None:
            return
        results = [item for item in self.history if item["role"] == "tool"]
        for result in results[-self.config.policy.keep_tool_io_pairs :]:
            assert any(item is result for item in found)

    @property
    def leaves_room(self) -> bool:
        """Whether a late pass still leaves room to grow: what earlier passes left does not pile up."""
        late = self.sizes[len(self.sizes) * 2 // 3 :]
        return min(late) <= 0.85 * self.config.policy.trigger_pct * self.window

    @property
    def passes(self) -> int:
        return len(self.made.archive.steps("s"))


def work(life: Life, turn: int) -> None:
    """A question, a tool call, an answer."""
    share = life.window / 60
    life.call(user(f"Request {turn}: {life.text(share / 10)}"))
    call, result = pair(f"c{turn}", life.text(share * life.chance.choice([0.2, 0.5, 1.0, 1.5])))
    life.reply(call)
    life.call(result)
    life.reply(says(f"Done {turn}: {life.text(share / 10)}"))


def talk(life: Life, turn: int) -> None:
    """A conversation without tools: short questions, long answers."""
    life.call(user(f"Question {turn}: {life.text(life.window / 600)}"))
    life.reply(says(f"Answer {turn}: {life.text(life.window / 50)}"))


def talk_in_text(life: Life, turn: int) -> None:
    """An agent without tool calls: observations are user messages."""
    life.call(user(f"Observation {turn}: {life.text(life.window / 40)}"))
    life.reply(says(f"Thought {turn}: {life.text(life.window / 200)}"))


def explore(life: Life, turn: int) -> None:
    """One long turn of tool calls."""
    if not turn:
        life.call(user("Find the cause and fix it."))
    call, result = pair(f"c{turn}", life.text(life.window / 60))
    life.reply({**call, "content": f"Looking at {turn}."})
    life.call(result)


def _cases() -> Iterator[Any]:
    """Every preset, host and window; other kinds of agents at the smallest window."""
    for preset in ("default", "layered", "selective", "progressive"):
        for window in (16_000, 32_000, 128_000):
            for host in ("keeps", "full"):
                marks = [] if (window, host) == (16_000, "keeps") else [pytest.mark.sweep]
                if window > 16_000 and (host == "full" or preset != "default"):
                    marks.append(pytest.mark.slow)
                yield pytest.param(preset, window, host, work, marks=marks)
        for kind in (talk, talk_in_text, explore):
            yield pytest.param(preset, 16_000, "keeps", kind, marks=pytest.mark.sweep)


@pytest.mark.parametrize(("preset", "window", "host", "take_turn"), [*_cases()])
def test_a_session_at_its_limit_is_compacted_rarely_and_sees_its_newest_results(
    preset: str, window: int, host: str, take_turn: Callable[[Life, int], None]
) -> None:
    turns = 180 if window == 16_000 else 300  # three windows full, and far more passes than asked for
    life = Life(preset, window, host).live(turns, take_turn)
    assert life.passes >= 3, "the session lived at its limit"
    assert life.edits <= life.passes
    assert life.passes * 3 <= turns
    assert life.leaves_room, "what was folded is folded again"


def test_a_threshold_far_below_the_window_is_kept_too() -> None:
    policy = {"token_threshold": 7_000}
    life = Life("selective", 16_000, "keeps", policy).live(180, work)
    assert life.passes * 3 <= 180
    assert life.leaves_room


@pytest.mark.parametrize("tokens", [15_000, 40_000, 61_000, 100_000])
def test_the_newest_pairs_stay_whole_in_an_automatic_pass_as_long_as_they_fit(tokens: int) -> None:
    """However large one of them is: not the target decides, but the budget."""
    life = Life("layered", 128_000, "keeps", offload={"large_result_tokens": 110_000})
    life.history.append(user("Go on."))
    for n in range(120):
        life.history += pair(f"c{n}", " a" * 900)
    life.history += pair("large", " b" * tokens)
    for n in range(3):
        life.history += pair(f"d{n}", " c" * 2_000)
    found = life.made.preflight("s", life.history)
    life.look_at_pairs(found)
    (done,) = events(life.made, name="pruned_messages")
    assert done["properties"]["kept"]["tool_pairs"] == 4


@pytest.mark.parametrize("window", [16_000, 32_000])
def test_user_messages_stay_in_the_selective_layout_as_long_as_they_fit(window: int) -> None:
    """Also where only single answers stand between them."""
    life = Life("selective", window, "keeps").live(60, talk)
    people = [item for item in life.history if item["role"] == "user"]
    assert life.passes >= 1
    assert life.made.estimate(people).total < life.config.budget(window) / 3
    assert all(any(item is sent for sent in life.sent) for item in people)


def test_what_was_really_kept_is_reported_when_less_fits() -> None:
    life = Life("layered", 16_000, "keeps")
    life.history += [user("Go on."), *(m for n in range(9) for m in pair(f"c{n}", " word" * 5_000))]
    found = life.made.preflight("s", life.history)
    whole = sum(any(item is m for m in found) for item in life.history if item["role"] == "tool")
    (done,) = events(life.made, name="pruned_messages")
    assert done["properties"]["kept"]["tool_pairs"] == whole
    assert 1 <= whole < 4
