"""One extractor for each kind of fact. Each returns its facts with the most important first.

Facts about goals, constraints, decisions and next steps come from the agent's own words and calls alone. Where a fact tells
what a tool said, that is quoted behind the call that it answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from compact.messages.cues import (
    BLOCKED,
    BLOCKS,
    BOX,
    CONSTRAINT,
    DEFINITION,
    GOAL,
    IN_PROGRESS,
    NEXT,
    NEXT_STEP,
    QUESTION,
    RATIONALE,
    REASON,
    RESOLVED,
    SMALL_TALK,
    TROUBLE,
)
from compact.summaries.extracting.calls import (
    LOOKED_AT,
    TODO_KEYS,
    call_text,
    has_failed,
    is_task_list,
    key_of,
    leads_on,
    outcome_of,
    runs,
)
from compact.summaries.extracting.decisions import choice_of, is_decision
from compact.summaries.extracting.findings import establishes, find, topic_of
from compact.summaries.extracting.session_reading import Done, Reading, Said, flat
from compact.summaries.ledger.forms import form, word_count
from compact.summaries.ledger.kinds import GOES_ON
from compact.summaries.ledger.phrases import YES
from compact.summaries.ledger.sentences import sentences
from compact.summaries.voices import AGENT, PERSON, attribute, closed, defuse, quote


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
_LAST_STATES = 4
"""Only the newest replies can say what is in progress."""
_CODE = re.compile(r"`[^`\n]*`")
_WORD = re.compile(r"\w{2,}")
_NO_REASON, _NO_INPUTS, _NO_OUTCOME = "no reason given", "no inputs", "no outcome yet"
"""What the ledger says where the session says nothing."""
_NOTHING = re.compile(
    r"\W*(?:none|nothing|no(?:body| one)?|n/?a|nichts|keine?|rien|aucun|nada|ningun[oa]|niente|нет|ничего|yok|brak|无|没有|なし|없음)\b.{0,12}",
    re.IGNORECASE,
)
_COMMA = re.compile("[,，、]")
_AGREES_IN = 4
"""A person who agrees in more words may say something else with it."""
_TELLING_CHARS = 24
"""A shorter first sentence is a greeting or a confirmation."""


def next_steps(reading: Reading) -> list[Fact]:
    """What comes next: what is called so, what the agent asks or says it will do, calls without a result, open points of the
    newest task list. How things stand is told by `state`.
    """
    places = sorted({said.place for said in reading.said})[-_LAST_REPLIES:]
    last = [said for said in reversed(reading.said) if said.place in places]
    telling = [said for said in last if not (SMALL_TALK.fullmatch(said.text) or _has_label(said))]
    ahead = [
        Fact(said.place, said.text)
        for said in telling
        if NEXT.search(said.text) or QUESTION.search(said.text)
    ]
    named = [Fact(said.place, text) for said, text in _labelled(reading, NEXT_STEP)]
    newest = [fact for fact in named if fact.place in places]
    open_calls = [done for done in reading.done if done.result is None][-2:]
    found = [Fact(done.place, f"Unfinished: {call_text(done)}") for done in open_calls]
    found = [*(newest or ahead[:1]), *found, *_todos(reading, done=False), *ahead[0 if newest else 1 :]]
    return [*found, *(fact for fact in named if fact not in newest)]


def goals(reading: Reading) -> list[Fact]:
    """The goals as the agent understood them: how it takes up the task, its words about goals, and the whole newest task list."""
    named = [
        Fact(said.place, said.text)
        for said in reading.said
        if GOAL.search(said.text) and not (_has_label(said) or establishes(said.text))
    ]
    plan = [Fact(fact.place, f"Plan: {fact.text}") for fact in _todos(reading, done=None)]
    return [*_opening(reading), *named[:3], *plan, *reversed(named[3:])]


def _opening(reading: Reading) -> list[Fact]:
    """The agent's first words about the task. What it says after a call, or later on, tells how things stand."""
    if reading.goes_on:
        return []
    turns = [place for place, message in enumerate(reading.messages) if message.starts_turn]
    ends = min([*(done.place + 1 for done in reading.done[:1]), *turns[1:2]], default=len(reading.messages))
    return [
        Fact(said.place, said.text)
        for said in reading.said
        if said.place < ends
        and len(said.text) > _TELLING_CHARS
        and not (NEXT.search(said.text) or QUESTION.search(said.text))  # "I'll look at the files first"
        and not (_has_label(said) or leads_on(said.text) or establishes(said.text))
    ][:1]


def constraints(reading: Reading) -> list[Fact]:
    """What must and must not be done, newest first. The user's own words are carried over elsewhere."""
    return [
        Fact(said.place, said.text)
        for said in reversed(reading.said)
        if CONSTRAINT.search(said.text) and not (establishes(said.text) or is_decision(said))
    ]


def decisions(reading: Reading) -> list[Fact]:
    """What was decided, with the reason if one was given. Decisions with a reason come first, then the newest."""
    found: list[tuple[bool, Fact]] = []
    for said, after in zip_longest(reading.said, reading.said[1:]):
        if is_decision(said):
            text, reason = said.text.rstrip(":："), choice_of(said.text).reason or _reason_behind(said, after)
            text = text if not reason or reason in text else f"{text} {reason}"
            found.append((bool(reason), Fact(said.place, f"Decided: {text}")))
    return [fact for wanted in (True, False) for reasoned, fact in reversed(found) if reasoned is wanted]


def findings(reading: Reading) -> list[Fact]:
    """What was established, each by its last statement: causes and measured results first, then the newest."""
    return [Fact(said.place, said.text) for said in find(reading)]


def changes(reading: Reading) -> list[Fact]:
    """Every changed file, with what was touched and why, newest first."""
    found = []
    for path, writes in reading.writes().items():
        added = sum(len(write.new_text.splitlines()) for write in writes)
        removed = sum(len(write.old_text.splitlines()) for write in writes)
        touched = list(dict.fromkeys(name for write in writes for name in _defined(write)))
        what = ", ".join(touched[-8:]) or flat(defuse(writes[-1].new_text[:LOOKED_AT]), 100)
        why = next((write.words for write in reversed(writes) if write.words), "")
        times = f" in {len(writes)} edits" if len(writes) > 1 else ""
        text = f"{defuse(path)}: +{added} -{removed}{times}: {what}" + (
            f" (why: {flat(why, 160)})" if why else ""
        )
        failed = next((write for write in reversed(writes) if has_failed(write)), None)
        if failed is writes[-1]:
            text += " (failed)"  # how is told among the problems
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
    """What was run and how it ended: the newest run of each command, newest first. `problems` tells how one failed."""
    newest = {call_text(done): done for done in reading.done if runs(done)}
    ran = sorted(newest.items(), key=lambda pair: -pair[1].place)
    return [
        Fact(done.place, f"{call} -> {'failed' if has_failed(done) else outcome_of(done, reading)}")
        for call, done in ran
    ]


def state(reading: Reading) -> list[Fact]:
    """The current state: the last call, the agent's last account, what is done of the newest task list.

    How a command ended is told among the commands, and how a call failed among the problems.
    """
    found = []
    last = next((done for done in reversed(reading.done) if not is_task_list(done)), None)
    if last is not None:
        ended = " failed" if has_failed(last) else "" if runs(last) else f" -> {outcome_of(last, reading)}"
        found.append(Fact(last.place, f"Last call: {call_text(last)}{ended}"))
    place = reading.said[-1].place if reading.said else -1
    newest = sorted({said.place for said in reading.said})[-_LAST_STATES:]
    found += [
        Fact(said.place, f"In progress: {text}")
        for said, text in _labelled(reading, IN_PROGRESS)
        if said.place in newest
    ]
    found += [
        Fact(said.place, said.text)
        for said in reading.said
        if said.place == place and not SMALL_TALK.fullmatch(said.text) and not _has_label(said)
    ]
    found += [Fact(fact.place, f"Done: {fact.text}") for fact in _todos(reading, done=True)]
    return found


def problems(reading: Reading) -> list[Fact]:
    """What blocks the work, and errors with their text. Those without a later success come first, then the newest."""
    failed = [has_failed(done) for done in reading.done]
    passed = {key_of(done): done.place for done, is_so in zip(reading.done, failed, strict=True) if not is_so}
    found: dict[str, tuple[bool, Fact]] = {}
    for done, is_so in zip(reversed(reading.done), reversed(failed), strict=True):
        if is_so:
            over = passed.get(key_of(done), -1) > done.place
            what = f"{call_text(done)} -> {outcome_of(done, reading)}"
            found.setdefault(what, (over, Fact(done.place, f"{'Was' if over else 'Open'}: {what}")))
    said = [Fact(s.place, s.text) for s in reversed(reading.said) if _tells_trouble(s)]
    blocked = [Fact(s.place, f"Blocked: {text}") for s, text in _blocked(reading)]
    return [
        *blocked,
        *(fact for wanted in (False, True) for over, fact in found.values() if over is wanted),
        *said,
    ]


def _tells_trouble(said: Said) -> bool:
    """Whether a sentence speaks of an error. What was established about it stands among the findings."""
    if not TROUBLE.search(_CODE.sub("", said.text)) or establishes(said.text):
        return False
    return not (NEXT.search(said.text) or leads_on(said.text) or _has_label(said))


def ledger(reading: Reading) -> list[Fact]:
    """`decision :: rationale :: inputs :: outputs` for what the agent decided or did, the most important first.

    Talk without a decision or a call is no entry.
    """
    by_place: dict[int, list[Done]] = {}
    for done in reading.done:
        by_place.setdefault(done.place, []).append(done)
    spoken: dict[int, list[Said]] = {}
    for said in reading.said:
        spoken.setdefault(said.place, []).append(said)
    weighed = []
    for place in sorted(by_place.keys() | spoken.keys()):
        calls, words = by_place.get(place, []), spoken.get(place, [])
        decided = [said for said in words if is_decision(said)]
        entries: list[Said | None] = [*decided] or [None] * (not all(map(is_task_list, calls)))
        for entry in entries:
            weight = (
                4 * (entry is not None) + any(map(has_failed, calls)) + any(call.writes for call in calls)
            )
            weighed.append((weight, Fact(place, _ledger_line(reading, place, entry, words, calls))))
    return [fact for _, fact in sorted(weighed, key=lambda pair: (-pair[0], -pair[1].place))]


def _ledger_line(
    reading: Reading, place: int, decided: Said | None, words: Sequence[Said], calls: Sequence[Done]
) -> str:
    """One entry. What the session does not say is worded, so that every part keeps its place."""
    telling = [
        said.text for said in words if not SMALL_TALK.fullmatch(said.text) and not QUESTION.search(said.text)
    ]
    if decided is not None:
        choice = choice_of(decided.text)
        after = next((said for before, said in pairwise(words) if before is decided), None)
        what, why = choice.decision, choice.reason or _reason_behind(decided, after)
    else:
        intent = next((text for text in reversed(telling) if NEXT.search(text)), "")
        choice = choice_of(intent or f"call {', '.join(call.name for call in calls)}")
        seen = [
            text for text in telling if text != intent and not leads_on(text) and len(_WORD.findall(text)) > 1
        ]
        what = choice.decision
        why = (
            choice.reason or next((text for text in seen if RATIONALE.search(text)), "") or "".join(seen[:1])
        )
    inputs = "; ".join(call_text(call, 110) for call in calls[:3]) or _came_before(reading, place)
    outputs = "; ".join(outcome_of(call, reading, 110) for call in calls[:3]) or _came_after(reading, place)
    parts = (
        flat(what.rstrip(":：,，"), 180),
        closed(flat(why, 140)) or _NO_REASON,
        closed(flat(inputs, 140)) or _NO_INPUTS,
        closed(flat(outputs, 140)) or _NO_OUTCOME,
    )
    return " :: ".join(part.replace(" :: ", " : ") for part in parts)


def _reason_behind(said: Said, after: Said | None) -> str:
    """The reason that the next sentence gives for a decision; empty if it gives none."""
    if (
        after is None
        or after.place != said.place
        or after.is_entry is not said.is_entry
        or is_decision(after)
    ):
        return ""
    is_reason = RATIONALE.search(after.text) or REASON.match(after.text)
    return after.text if is_reason and not QUESTION.search(after.text) else ""


def _labelled(reading: Reading, label: re.Pattern[str]) -> list[tuple[Said, str]]:
    """What stands behind a label or under a heading of this kind, in the newest message that has one."""
    found: dict[int, list[tuple[Said, str]]] = {}
    for said in reading.said:
        text = _behind(said, label)
        if text:
            found.setdefault(said.place, []).append((said, text))
    return found[max(found)] if found else []


def _behind(said: Said, label: re.Pattern[str]) -> str:
    """The text behind a label, or the sentence if its heading is the label; empty if neither is."""
    if labelled := label.match(said.text):
        return labelled["text"].strip("*_ ") if len(labelled["text"]) > 2 else ""
    return said.text if said.under and label.fullmatch(said.under) and not leads_on(said.text) else ""


def _has_label(said: Said) -> bool:
    """Whether a sentence has a label or stands under one, or is one."""
    return any(
        label.match(said.text) or (said.under and label.fullmatch(said.under))
        for label in (BLOCKED, IN_PROGRESS, NEXT_STEP)
    )


def _blocked(reading: Reading) -> list[tuple[Said, str]]:
    """What blocks the work and was not said to be over, newest first."""
    found: list[tuple[Said, str]] = []
    for said in reading.said:
        text = _behind(said, BLOCKED)
        if text and _NOTHING.fullmatch(text):
            found.clear()
        elif text:
            found.append((said, text))
        elif BLOCKS.search(said.text) and not (QUESTION.search(said.text) or leads_on(said.text)):
            found.append((said, said.text))
        elif found and RESOLVED.search(said.text):
            topic = topic_of(said.text)
            found = [(each, text) for each, text in found if not topic & topic_of(text)]
    return found[::-1]


def _lets_go_on(text: str) -> bool:
    """Whether a person only agrees, or tells the agent to go on."""
    said = list(sentences(text)) if word_count(text) <= _AGREES_IN else []
    if not said:
        return False
    last = form(_COMMA.split(said[-1].text)[-1])
    return YES.found(last) or GOES_ON.match(last) is not None


def _came_before(reading: Reading, place: int) -> str:
    """What a decision without a call rests on: the call before it, or else what the user said."""
    for before in range(place - 1, -1, -1):
        done = next((done for done in reading.done if done.place == before), None)
        if done is not None:
            return call_text(done, 110)
        if reading.messages[before].starts_turn:
            return attribute(PERSON, [quote(flat(reading.messages[before].text, 110), PERSON)], "")
    return ""


def _came_after(reading: Reading, place: int) -> str:
    """What a decision without a call led to: the next call before a person wants something else, and how that ended."""
    turn_ends = next(
        (
            n
            for n in range(place + 1, len(reading.messages))
            if reading.messages[n].starts_turn and not _lets_go_on(reading.messages[n].text)
        ),
        len(reading.messages),
    )
    after = next((done for done in reading.done if place < done.place < turn_ends), None)
    return "" if after is None else f"{call_text(after, 80)} -> {outcome_of(after, reading, 50)}"


EXTRACTORS: dict[str, Extractor] = {
    "next_steps": next_steps,
    "goals": goals,
    "constraints": constraints,
    "decisions": decisions,
    "findings": findings,
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
        for key in TODO_KEYS:
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
