"""What the user said and expects to stand: is it still known after many compactions, with who said it?

`python -m bench.rules` prints a table; `--help` shows how to choose windows, presets, kinds of host, rounds and sessions.

METHOD. `bench.planted` says what is planted, and how. Each session is played call by call, without a model, until so many
compactions have happened, everything has been said, and a quarter as many compactions have happened since. A host of the kind `keeps`
keeps the list that `preflight` returned and appends to it; one of the kind `full` passes the whole history each time. The context of
the last call is read: `bench.known` defines what is known, shown as standing, and promoted.

*Known* is the share of what stands, of all kinds but *withdrawn*. *Shown* is the share of changed and withdrawn things whose old value is
still shown as standing. *Ledger* is the size of the user's entries in tokens, against a tenth of the target or 600 tokens.

`--at-once` reads all that is said into one ledger instead, without a pass: the context is that ledger alone.

Controls play the same calls: they make a pass when the list reaches the same trigger, down to the same target.

A session of the bank belongs to the half `even` or `odd` by the first byte of the SHA-256 of its id, and is planted into recorded sessions
of the same half. Settings are chosen on the even half; the odd half is the measurement.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from bench import Figure, Skipped, recorded, run_to_end, whole_number
from bench.known import (
    Context,
    clauses,
    is_answered,
    is_known,
    is_promoted,
    is_shown_as_standing,
    read_context,
)
from bench.many_passes import model_calls, sizes
from bench.methods import METHODS, Item, Method, cost_of, tokens_in
from bench.planted import KINDS, LANGUAGES, Person, Said, Scene, bank, made_up, scene
from compact import CompactConfig, CompactError, CompactManager
from compact.engine.user_words import list_entries
from compact.messages import dialects
from compact.summaries import ledger
from compact.tokens.counter import counter_for

Host = Literal["keeps", "full"]
Half = Literal["even", "odd"]

WINDOWS = {"8k": 8_000, "16k": 16_000, "32k": 32_000, "64k": 64_000, "128k": 128_000}
PRESETS = ("plain", "layered", "selective", "progressive")
HOSTS: tuple[Host, ...] = ("keeps", "full")
CONTROLS: dict[str, Method] = {name: METHODS[name] for name in ("last N", "masking", "word bag", "id list")}
ROUNDS = 20
KNOWN, MOST_SHOWN = 0.97, 0.02
LEDGER_SHARE, LEAST_LEDGER = 0.1, 600
_MODEL = "gpt-4o"
_PASTE_SHARE = 0.1
"""Words that a paste may have, as a share of the window in tokens."""
_FEW = 4
"""Sessions for the figures, and by default."""
_DEFAULT_WINDOWS = ("16k", "32k")
_SHOWN_CHARS = 240
_SETTLED = 4
"""The part of the rounds that must come after the last thing was said is one in so many."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a session is played."""

    window: str
    preset: str = "plain"
    host: Host = "keeps"
    crowded: bool = False

    def config(self) -> CompactConfig:
        """The settings of the preset, with nothing else chosen than the window."""
        given: Any = {
            "model": _MODEL,
            "max_context_tokens": WINDOWS[self.window],
            "archive": {"adapter": "memory"},
        }
        return (
            CompactConfig(**given) if self.preset == "plain" else CompactConfig.preset(self.preset, **given)
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What has become of one planted item."""

    id: str
    kind: str
    lang: str
    is_known: bool
    is_shown: bool | None = None
    """The old value is shown as standing; None if there is none."""


@dataclass(frozen=True, slots=True)
class Played:
    """One session played with one method."""

    whose: Person
    method: str
    setting: Setting
    rounds: int
    calls: int
    results: tuple[Result, ...]
    promoted: tuple[str, ...]
    injected: int
    ledger_tokens: int
    ledger_limit: int
    entries: tuple[str, ...]
    """The user's entries as they stand in the context."""
    ended: str | None = None
    """Why it was not played far enough. What was then not said is not known."""

    @property
    def person(self) -> str:
        """The id of the session of the bank."""
        return self.whose.id


def bench_rules() -> Iterator[Figure]:
    """User's rules still known after 20 compactions, with who said it, in 16k and 32k tokens."""
    if not recorded():
        raise Skipped.for_want_of_data("the few bundled sessions are too short for 20 compactions")
    for window in ("16k", "32k"):
        people = chosen("odd", _FEW)
        settings = [Setting(window, host=host) for host in HOSTS]
        ours = [one for setting in settings for one in play_all(people, setting)]
        controls = {
            name: [play_control(person, name, Setting(window)) for person in people] for name in CONTROLS
        }
        about = f"{window}, {len(people)} sessions, both kinds of host"
        others = ", ".join(f"{name} {known_in(rows):.2f}" for name, rows in controls.items())
        yield Figure(
            f"{about}: known after {ROUNDS} compactions ({others})", known_in(ours), "", KNOWN, at_least=True
        )
        yield Figure(f"{about}: replaced or withdrawn, shown as standing", shown_in(ours), "", MOST_SHOWN)
        yield Figure(f"{about}: injected and promoted", sum(len(one.promoted) for one in ours), "", 0)
        largest = max(one.ledger_tokens / one.ledger_limit for one in ours)
        yield Figure(f"{about}: largest ledger, of what it may take", largest, "x", 1)


# --- playing


def play_all(people: Iterable[Person], setting: Setting, rounds: int = ROUNDS) -> Iterator[Played]:
    """Play each session with compact."""
    for person in people:
        yield play(person, setting, rounds)


@dataclass(slots=True)
class Counted:
    """How far a session was played."""

    rounds: int
    settled: int
    calls: int = 0
    passes: int = 0
    done: int = 0
    _enough: int | None = None

    def call(self, place: int, *, is_pass: bool) -> bool:
        """Count one more call. Returns whether the session was played far enough."""
        self.calls += 1
        self.passes += is_pass
        self.done = place
        if self._enough is None and place >= self.settled:
            self._enough = max(self.rounds, self.passes + self.rounds // _SETTLED)
        return self._enough is not None and self.passes >= self._enough


def play(person: Person, setting: Setting, rounds: int = ROUNDS) -> Played:
    """Play one session with compact until there were enough compactions, and read its last context."""
    made = _scene(person, setting, rounds)
    config = setting.config()
    counted = Counted(rounds, made.settled)
    last: list[Item] = []
    outcome: Any = None
    ended: str | None = "the traffic has ended"
    with CompactManager(config) as manager:
        for place in model_calls(made.messages):
            start = 0 if setting.host == "full" else counted.done
            given = [*(() if setting.host == "full" else last), *made.messages[start:place]]
            try:
                last = list(manager.preflight(person.id, given))
            except CompactError as problem:
                ended = f"{problem.code}: {problem}"
                break
            now = manager.last_outcome(person.id)
            is_pass = now is not None and now is not outcome and now.step is not None
            outcome = now
            if counted.call(place, is_pass=is_pass):
                ended = None
                break
    _, target = sizes(config, WINDOWS[setting.window])
    limit = max(LEAST_LEDGER, round(LEDGER_SHARE * target))
    return _played(made, "ours", setting, counted, last, limit, ended)


def read_at_once(person: Person, setting: Setting, rounds: int = ROUNDS) -> Played:
    """Read all that is said in one session into a ledger, without a pass: what reading and the ledger's room come to."""
    made = _scene(person, setting, rounds)
    _, target = sizes(setting.config(), WINDOWS[setting.window])
    limit = max(LEAST_LEDGER, round(LEDGER_SHARE * target))
    entries = list_entries(dialects.read(made.messages[: made.settled])[1])
    written = ledger.write(entries, limit, counter_for("o200k_base").count, "/history.md")
    last = [{"role": "assistant", "content": f"<COMPACT-LEDGER v1>\n{written.text}"}]
    return _played(made, "at once", setting, Counted(0, made.settled), last, limit, None)


def play_control(person: Person, name: str, setting: Setting, rounds: int = ROUNDS) -> Played:
    """Play one session with a plain method, which makes a pass whenever the list reaches the trigger."""
    made = _scene(person, setting, rounds)
    trigger, target = sizes(setting.config(), WINDOWS[setting.window])
    counted = Counted(rounds, made.settled)
    last: list[Item] = []
    size = 0
    ended: str | None = "the traffic has ended"
    for place in model_calls(made.messages):
        new = made.messages[counted.done : place]
        last, size = [*last, *new], size + sum(map(cost_of, new))
        is_pass = size >= trigger
        if is_pass:
            last = CONTROLS[name](last, target)
            size = tokens_in(last)
        if counted.call(place, is_pass=is_pass):
            ended = None
            break
    return _played(made, name, setting, counted, last, target, ended)


def _scene(person: Person, setting: Setting, rounds: int) -> Scene:
    window = WINDOWS[setting.window]
    trigger, target = sizes(setting.config(), window)
    expected = trigger + rounds * (trigger - target)
    return scene(person, expected, round(window * _PASTE_SHARE), crowded=setting.crowded)


def _played(
    made: Scene,
    method: str,
    setting: Setting,
    counted: Counted,
    last: Sequence[Item],
    limit: int,
    ended: str | None,
) -> Played:
    context = read_context(last)
    count = counter_for("o200k_base").count
    person = made.person
    return Played(
        whose=person,
        method=method,
        setting=setting,
        rounds=counted.passes,
        calls=counted.calls,
        results=tuple(result_of(one, context) for one in person.items),
        promoted=tuple(one.id for one in person.injected if is_promoted(context, one.words)),
        injected=len(person.injected),
        ledger_tokens=count("\n".join(entry.text for entry in context.ledger)),
        ledger_limit=limit,
        entries=tuple(entry.text for entry in context.ledger),
        ended=ended,
    )


def result_of(one: Said, context: Context) -> Result:
    """What a context knows of one item."""
    if one.way == "withdrawn":
        shown = is_shown_as_standing(context, one.gone, clauses(one.later))
        return Result(one.id, one.kind, one.lang, not shown, shown)
    if one.ask:
        known = is_answered(context, one.words, one.ask, one.say, is_choice=one.way == "answer")
    else:
        known = is_known(context, one.words)
    shown_old = is_shown_as_standing(context, one.gone, one.words) if one.gone else None
    return Result(one.id, one.kind, one.lang, known, shown_old)


# --- shares


def known_in(played: Iterable[Played], kind: str | None = None, lang: str | None = None) -> float:
    """The share of what stands that is known; of one kind or language, if so asked."""
    found = [
        result.is_known
        for one in played
        for result in one.results
        if (result.kind == kind if kind else result.kind != "withdrawn") and lang in (None, result.lang)
    ]
    return mean(found) if found else float("nan")


def shown_in(played: Iterable[Played]) -> float:
    """The share of changed and withdrawn things that are shown as they stood before."""
    found = [r.is_shown for one in played for r in one.results if r.is_shown is not None]
    return mean(found) if found else float("nan")


def chosen(half: Half | None, count: int | None) -> list[Person]:
    """So many sessions of the bank, spread evenly; all of them if it has fewer."""
    found = [person for person in bank() if half in (None, person.half)]
    if count is None or count >= len(found):
        return found
    return [found[n * len(found) // count] for n in range(count)]


# --- the command


def main(words: Sequence[str] | None = None) -> int:
    """Print a line for each session, and the shares by method, kind and language."""
    asked = _parser().parse_args(words)
    people = [*chosen(asked.half, asked.sessions), *made_up(asked.seed or 0, asked.made)]
    settings = [
        Setting(window, preset, host, crowded=asked.crowded)
        for window in asked.window or _DEFAULT_WINDOWS
        for preset in asked.preset or ("plain",)
        for host in asked.host or HOSTS
    ]
    everything: list[Played] = []
    for setting in settings:
        print(f"{setting.window}, {setting.preset}, host {setting.host}, {asked.rounds} rounds")
        played = []
        way = read_at_once if asked.at_once else play
        for one in (way(person, setting, asked.rounds) for person in people):
            print(line_of(one), flush=True)
            played.append(one)
            if asked.missed:
                print(missed_in(one))
        print(f"{summary_of('ours', played)}\n")
        everything += played
    if not asked.no_controls:
        for window in dict.fromkeys(setting.window for setting in settings):
            print(f"controls at {window}")
            for name in CONTROLS:
                setting = Setting(window, crowded=asked.crowded)
                rows = [play_control(person, name, setting, asked.rounds) for person in people]
                print(summary_of(name, rows))
            print()
    print(table(everything))
    print(sample(everything, asked.sample), end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(
        prog="python -m bench.rules",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    asked.add_argument(
        "--window", action="append", choices=tuple(WINDOWS), help="default: 16k and 32k; can be repeated"
    )
    asked.add_argument("--preset", action="append", choices=PRESETS, help="default: plain; can be repeated")
    asked.add_argument("--host", action="append", choices=HOSTS, help="default: both")
    asked.add_argument("--rounds", type=whole_number(1), default=ROUNDS, metavar="N", help="compactions")
    asked.add_argument("--half", choices=("even", "odd"), default="even", help="default: even, to choose by")
    asked.add_argument(
        "--sessions",
        type=whole_number(0),
        default=_FEW,
        metavar="N",
        help=f"of the bank; default: {_FEW}; 99: all",
    )
    asked.add_argument("--made", type=whole_number(0), default=0, metavar="N", help="sessions made of frames")
    asked.add_argument("--seed", type=whole_number(0), metavar="N", help="of the frames' slots; default: 0")
    asked.add_argument("--crowded", action="store_true", help="further sessions' users speak too")
    asked.add_argument(
        "--at-once",
        action="store_true",
        help="read all that is said without a pass: a first look, in seconds",
    )
    asked.add_argument("--no-controls", action="store_true", help="play with compact alone")
    asked.add_argument(
        "--missed", action="store_true", help="print what is not known, and what is wrongly shown"
    )
    asked.add_argument("--sample", type=whole_number(0), default=0, metavar="N", help="print so many entries")
    return asked


def line_of(one: Played) -> str:
    """One session in one line."""
    standing = [result for result in one.results if result.kind != "withdrawn"]
    unknown = [result.id.partition(".")[2] for result in standing if not result.is_known]
    cells = [
        f"  {one.person:<5} {one.rounds:>3} rounds {one.calls:>5} calls",
        f"known {len(standing) - len(unknown):>2} of {len(standing)}",
        f"ledger {one.ledger_tokens:>5} of {one.ledger_limit}",
        f"shown {sum(bool(result.is_shown) for result in one.results)}",
        f"promoted {len(one.promoted)}",
    ]
    stopped = f"; stopped: {one.ended}" if one.ended else ""
    return f"{', '.join(cells)}{'; not known: ' if unknown else ''}{' '.join(unknown)}{stopped}"


def summary_of(name: str, played: Sequence[Played]) -> str:
    """The shares of one method."""
    over = sum(one.ledger_tokens > one.ledger_limit for one in played)
    return (
        f"  {name:<9} known {known_in(played):.3f}, shown as standing {shown_in(played):.3f}, "
        f"promoted {sum(len(one.promoted) for one in played)} of {sum(one.injected for one in played)}, "
        f"ledger {mean(one.ledger_tokens for one in played):.0f} tokens, {over} over its limit, "
        f"{sum(one.ended is not None for one in played)} stopped"
    )


def missed_in(one: Played) -> str:
    """What is wrong with a session, with what was said."""
    said = {item.id: item for item in one.whose.items}
    lines = []
    for result in one.results:
        item = said[result.id]
        if not result.is_known and result.kind != "withdrawn":
            lines.append(f"    not known {result.id}: {' | '.join(item.words)}")
        if result.is_shown:
            lines.append(f"    shown     {result.id}: {item.gone}")
    lines += [f"    promoted  {name}" for name in one.promoted]
    return "\n".join(lines)


def table(played: Sequence[Played]) -> str:
    """The shares by kind, window and language."""
    windows = list(dict.fromkeys(one.setting.window for one in played))
    lines = [f"{'kind':<12}{''.join(f'{window:>7}' for window in windows)}"]
    for kind in KINDS:
        cells = [
            known_in([one for one in played if one.setting.window == window], kind) for window in windows
        ]
        lines.append(f"{kind:<12}{''.join(f'{cell:>7.2f}' for cell in cells)}")
    spoken = [(lang, known_in(played, "foreign", lang)) for lang in LANGUAGES]
    return "\n".join(
        [*lines, "not in English: " + ", ".join(f"{lang} {share:.2f}" for lang, share in spoken)]
    )


def sample(played: Sequence[Played], count: int) -> str:
    """So many of the user's entries, spread evenly, to be judged by a reader."""
    entries = [(one, entry) for one in played for entry in one.entries]
    if not count or not entries:
        return ""
    chosen_ones = entries[:: max(1, -(-len(entries) // count))][:count]
    lines = [
        f"  {one.person} {one.setting.window}: {' '.join(entry.split())[:_SHOWN_CHARS]}"
        for one, entry in chosen_ones
    ]
    return f"\n{len(chosen_ones)} of {len(entries)} entries\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    run_to_end(main)
