"""One extractor for each kind of fact. Each returns its facts with the most important first.

Facts about goals, constraints, decisions and next steps come from the agent's own words and calls alone. Where a fact tells
what a tool said, that is quoted behind the call that it answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest

from compact.messages.cues import (
    BOX,
    CONSTRAINT,
    DECISION,
    DEFINITION,
    GOAL,
    NEXT,
    QUESTION,
    RATIONALE,
    TROUBLE,
)
from compact.summaries.extracting.session_reading import Done, Reading, flat
from compact.summaries.voices import AGENT, PERSON, attribute, closed, defuse, quote, speaker_of


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a summary, and the message it comes from."""

    place: int
    text: str
    speaker: str = AGENT
    """Who says it, if it is a quote. Its text then has quotation marks."""
    cite: str = ""
    """The citation of a fact that was carried over; empty if it stands in the text."""


Extractor = Callable[[Reading], list[Fact]]
_LAST_REPLIES = 2
"""Only the newest replies can say what comes next; older intentions were carried out or dropped."""
_REASONS = "because|since|so that|as otherwise|in order to|due to|weil|damit|parce que|afin de|porque|ya que|para que|потому что"
_REASON_BEHIND = re.compile(
    rf"(?P<decision>.{{8,}}?),?\s+(?P<reason>(?:{_REASONS})\s.+)", re.IGNORECASE | re.DOTALL
)
_REASON_AHEAD = re.compile(
    rf"(?P<reason>(?:{_REASONS})\s[^,]+),\s+(?P<decision>.+)", re.IGNORECASE | re.DOTALL
)
_TODO_KEYS = ("todos", "items", "tasks", "plan")
_OUTCOME_CHARS = 160
_LOOKED_AT = 2_000
"""Characters of a line that are read to shorten it."""
_LOOKING = re.compile(
    r"(?:cd \S+ *(?:&&|;) *)?(?:grep|rg|find|cat|head|tail|ls|tree|wc|sed -n|git (?:grep|log|show|diff|blame)) [^;&]*"
)
_SHELL_SAYS = re.compile(r"[\w./-]+: .{0,200}(?:No such file|Permission denied|Is a directory|not found)")
"""How a command line tool reports an error: its name first."""
_TELLING_CHARS = 24
"""A shorter first sentence is a greeting or a confirmation."""


def next_steps(reading: Reading) -> list[Fact]:
    """What comes next: the agent's last words, calls without a result, open points of the newest task list."""
    places = sorted({said.place for said in reading.said})[-_LAST_REPLIES:]
    last = [said for said in reversed(reading.said) if said.place in places]
    ahead = [
        Fact(said.place, said.text) for said in last if NEXT.search(said.text) or QUESTION.search(said.text)
    ]
    open_calls = [done for done in reading.done if done.result is None][-2:]
    found = [Fact(done.place, f"Unfinished: {_call(done)}") for done in open_calls]
    found = [*ahead[:1], *found, *_todos(reading, done=False), *ahead[1:]]
    if last:
        found.append(Fact(last[0].place, last[0].text))
    return found


def goals(reading: Reading) -> list[Fact]:
    """The goals as the agent understood them: its first words about them, and the whole newest task list."""
    said = [said for said in reading.said if GOAL.search(said.text)]
    named = [Fact(entry.place, entry.text) for entry in said]
    plan = [Fact(fact.place, f"Plan: {fact.text}") for fact in _todos(reading, done=None)]
    opening = [
        Fact(entry.place, entry.text)
        for entry in reading.said
        if len(entry.text) > _TELLING_CHARS and not NEXT.search(entry.text)  # "I'll look at the files first"
    ]
    return [*opening[:1], *named[:3], *plan, *reversed(named[3:])]


def constraints(reading: Reading) -> list[Fact]:
    """What must and must not be done, newest first. The user's own words are carried over elsewhere."""
    return [Fact(said.place, said.text) for said in reversed(reading.said) if CONSTRAINT.search(said.text)]


def decisions(reading: Reading) -> list[Fact]:
    """What was decided, with the reason if one was given. Decisions with a reason come first, then the newest."""
    found: list[tuple[bool, Fact]] = []
    for said, after in zip_longest(reading.said, reading.said[1:]):
        if not DECISION.search(said.text) or QUESTION.search(said.text):
            continue
        text, reasoned = said.text, bool(RATIONALE.search(said.text))
        if not reasoned and after is not None and after.place == said.place and RATIONALE.search(after.text):
            text, reasoned = f"{text} {after.text}", True
        found.append((reasoned, Fact(said.place, f"Decided: {text}")))
    return [fact for wanted in (True, False) for reasoned, fact in reversed(found) if reasoned is wanted]


def changes(reading: Reading) -> list[Fact]:
    """Every changed file, with what was touched and why, newest first."""
    found = []
    for path, writes in reading.writes().items():
        added = sum(len(write.new_text.splitlines()) for write in writes)
        removed = sum(len(write.old_text.splitlines()) for write in writes)
        touched = list(dict.fromkeys(name for write in writes for name in _defined(write)))
        what = ", ".join(touched[-8:]) or flat(defuse(writes[-1].new_text[:_LOOKED_AT]), 100)
        why = next((write.words for write in reversed(writes) if write.words), "")
        times = f" in {len(writes)} edits" if len(writes) > 1 else ""
        text = f"{defuse(path)}: +{added} -{removed}{times}: {what}" + (
            f" (why: {flat(why, 160)})" if why else ""
        )
        failed = next((write for write in reversed(writes) if _failed(write)), None)
        if failed is writes[-1]:
            text += f" (failed: {attribute(speaker_of(failed.name), [_outcome(failed)], '')})"
        found.append(Fact(writes[-1].place, text))
    return sorted(found, key=lambda fact: -fact.place)


def edits(reading: Reading) -> list[Fact]:
    """The lines that were added and removed, as in a diff, newest first."""
    found = []
    for done in reversed(reading.done):
        if not done.writes:
            continue
        before, after = done.old_text.splitlines(), done.new_text.splitlines()
        gone = [f"- {flat(line, 120)}" for line in before if line.strip() and line not in set(after)]
        new = [f"+ {flat(line, 120)}" for line in after if line.strip() and line not in set(before)]
        new.sort(key=lambda line: not DEFINITION.match(line[2:]))
        shown = [*gone[:2], *new[:4]]
        if shown:
            found.append(Fact(done.place, defuse(f"{done.path}: " + " | ".join(shown))))
    return found


def reads(reading: Reading) -> list[Fact]:
    """Files that were looked at and not changed, newest first."""
    found = sorted(reading.reads().values(), key=lambda done: (-done.place, done.path))
    return [Fact(done.place, f"Read {defuse(done.path)}") for done in found]


def commands(reading: Reading) -> list[Fact]:
    """What was run and how it ended: the newest run of each command, newest first."""
    newest: dict[str, Done] = {}
    for done in reading.done:
        if done.writes or _lists(done) or (done.path and not done.command):
            continue
        newest[_call(done)] = done
    ran = sorted(newest.items(), key=lambda pair: -pair[1].place)
    return [Fact(done.place, f"{call} -> {_outcome(done)}") for call, done in ran]


def state(reading: Reading) -> list[Fact]:
    """The current state: the last outcome, the agent's last account, what is done of the newest task list."""
    found = []
    last = next((done for done in reversed(reading.done) if not _lists(done)), None)
    if last is not None:
        found.append(Fact(last.place, f"Last call: {_call(last)} -> {_outcome(last)}"))
    place = reading.said[-1].place if reading.said else -1
    found += [Fact(said.place, said.text) for said in reading.said if said.place == place]
    found += [Fact(fact.place, f"Done: {fact.text}") for fact in _todos(reading, done=True)]
    return found


def problems(reading: Reading) -> list[Fact]:
    """Errors with their text. Those without a later success come first, then the newest."""
    passed = {_key(done): done.place for done in reading.done if not _failed(done)}
    found: list[tuple[bool, Fact]] = []
    for done in reversed(reading.done):
        if _failed(done):
            over = passed.get(_key(done), -1) > done.place
            found.append(
                (over, Fact(done.place, f"{'Was' if over else 'Open'}: {_call(done)} -> {_outcome(done)}"))
            )
    said = [Fact(s.place, s.text) for s in reversed(reading.said) if TROUBLE.search(s.text)]
    return [fact for wanted in (False, True) for over, fact in found if over is wanted] + said


def ledger(reading: Reading) -> list[Fact]:
    """`decision :: rationale :: inputs :: outputs` for what the agent decided or did, the most important first.

    Talk without a decision or a call is no entry, and neither is a decision of which the session says nothing else.
    """
    by_place: dict[int, list[Done]] = {}
    for done in reading.done:
        by_place.setdefault(done.place, []).append(done)
    spoken: dict[int, list[str]] = {}
    for said in reading.said:
        spoken.setdefault(said.place, []).append(said.text)
    weighed = []
    for place in sorted(by_place.keys() | spoken.keys()):
        calls, words = by_place.get(place, []), spoken.get(place, [])
        decided = next((text for text in words if DECISION.search(text) and not QUESTION.search(text)), None)
        if not calls and decided is None:
            continue
        said_last = decided or (words[-1] if words else f"call {', '.join(call.name for call in calls)}")
        decision, why = _split_reason(said_last)
        why = why or next((text for text in words if RATIONALE.search(text) and text != said_last), "")
        why = why or next(
            (text for text in [*words[:1], *(call.words for call in calls)] if text != said_last), ""
        )
        inputs = "; ".join(_call(call, 110) for call in calls[:3]) or _came_before(reading, place)
        outputs = "; ".join(_outcome(call, 110) for call in calls[:3]) or _came_after(reading, place)
        parts = [flat(decision, 180), *(closed(flat(part, 140)) or "-" for part in (why, inputs, outputs))]
        if parts[1:] == ["-", "-", "-"]:
            continue
        text = " :: ".join(part.replace(" :: ", " : ") for part in parts)
        weight = 2 * (decided is not None) + any(map(_failed, calls)) + any(call.writes for call in calls)
        weighed.append((weight, Fact(place, text)))
    return [fact for _, fact in sorted(weighed, key=lambda pair: (-pair[0], -pair[1].place))]


def _split_reason(sentence: str) -> tuple[str, str]:
    """A decision and the reason that the same sentence gives; the reason is empty if it gives none."""
    if behind := _REASON_BEHIND.fullmatch(sentence):
        return behind["decision"], behind["reason"]
    if ahead := _REASON_AHEAD.fullmatch(sentence):
        return ahead["decision"], ahead["reason"]
    return sentence, ""


def _came_before(reading: Reading, place: int) -> str:
    """What a decision without a call rests on: the call before it, or else what the user said."""
    for before in range(place - 1, -1, -1):
        done = next((done for done in reading.done if done.place == before), None)
        if done is not None:
            return _call(done, 110)
        if reading.messages[before].starts_turn:
            return attribute(PERSON, [quote(flat(reading.messages[before].text, 110), PERSON)], "")
    return ""


def _came_after(reading: Reading, place: int) -> str:
    """What a decision without a call led to: the next call of its turn, and how that ended."""
    turn_ends = next(
        (n for n in range(place + 1, len(reading.messages)) if reading.messages[n].starts_turn),
        len(reading.messages),
    )
    after = next((done for done in reading.done if place < done.place < turn_ends), None)
    return "" if after is None else f"{_call(after, 80)} -> {_outcome(after, 50)}"


EXTRACTORS: dict[str, Extractor] = {
    "next_steps": next_steps,
    "goals": goals,
    "constraints": constraints,
    "decisions": decisions,
    "changes": changes,
    "edits": edits,
    "reads": reads,
    "commands": commands,
    "state": state,
    "problems": problems,
    "ledger": ledger,
}
"""The extractors by the names that sections use."""


def _todos(reading: Reading, *, done: bool | None) -> list[Fact]:
    """Points of the newest task list: a tool's, or lines with checkboxes."""
    for call in reversed(reading.done):
        for key in _TODO_KEYS:
            points = call.arguments.get(key)
            if isinstance(points, list) and points:
                return [
                    Fact(call.place, text)
                    for point in points
                    for text, closed in [_point(point)]
                    if text and (done is None or closed is done)
                ]
    boxes = [(said.place, box) for said in reading.said for box in [BOX.match(said.text)] if box is not None]
    newest = boxes[-1][0] if boxes else -1
    return [
        Fact(place, box["text"])
        for place, box in boxes
        if place == newest and (done is None or (box["done"] in "xX") is done)
    ]


def _lists(done: Done) -> bool:
    """Whether a call only updates a task list."""
    return any(isinstance(done.arguments.get(key), list) for key in _TODO_KEYS)


def _point(point: object) -> tuple[str, bool]:
    if not isinstance(point, dict):
        return flat(defuse(str(point))), False
    text = next(
        (str(point[key]) for key in ("content", "title", "task", "step", "text") if point.get(key)), ""
    )
    return flat(defuse(text)), str(point.get("status", "")).lower() in ("completed", "done", "complete")


def _defined(done: Done) -> Iterable[str]:
    for line in done.new_text.splitlines():
        found = DEFINITION.match(line)
        if found is not None and len(found["name"]) > 2:
            yield found["name"]


def _call(done: Done, limit: int = 180) -> str:
    """A call on one line: its tool, and its short arguments."""
    if done.command:
        return f"{defuse(done.name)} `{flat(defuse(done.command[:_LOOKED_AT]), limit)}`"
    if not done.arguments:
        return flat(
            defuse(f"{done.name} {done.raw[:_LOOKED_AT]}" if done.raw not in ("", "{}") else done.name), limit
        )
    short = [
        f"{key}={flat(str(value), 80)}" for key, value in done.arguments.items() if len(str(value)) < 200
    ]
    return flat(defuse(f"{done.name} {', '.join(short)}"), limit)


def _outcome(done: Done, limit: int = _OUTCOME_CHARS) -> str:
    """What a call led to, quoted: the line that reports an error, else the last line of a command, else the first line."""
    if done.stored_in:
        return f"in {done.stored_in}"
    lines = [line.strip() for line in (done.result or "").splitlines() if line.strip()]
    if not lines:
        return "no result" if done.result is None else "empty"
    if _only_looks(done):
        return _quote_line(lines[0], limit)
    trouble = next((line for line in lines if TROUBLE.search(line)), None)
    plain = lines[-1] if done.command else lines[0]
    return _quote_line(trouble or plain, limit)


def _quote_line(line: str, limit: int) -> str:
    return quote(flat(defuse(line[:_LOOKED_AT]), limit))


def _failed(done: Done) -> bool:
    """Whether a call failed. If it shows a file, only the beginning counts: the file may speak of errors."""
    if done.is_error:
        return True
    head = (done.result or "")[:400]
    if done.path or _only_looks(done):
        return TROUBLE.match(head.lstrip("<[( ")) is not None or _SHELL_SAYS.match(head) is not None
    return TROUBLE.search(head) is not None


def _only_looks(done: Done) -> bool:
    """Whether a command only shows content, so that its output says nothing about its outcome."""
    return bool(done.command) and _LOOKING.fullmatch(done.command) is not None


def _key(done: Done) -> str:
    return f"{done.name} {done.command or done.path or done.raw}"
