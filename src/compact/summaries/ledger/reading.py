"""Read what people wrote and keep what stands: rules, corrections, preferences, decisions, answers. Pure, without a model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compact.redaction import MASK
from compact.summaries.ledger.changes import Standing, changed_by, changes, rest_of
from compact.summaries.ledger.earlier import (
    earlier_than,
    is_about,
    nearness,
    part_that_is_meant,
    says_only_a_value,
)
from compact.summaries.ledger.entry import Entry, Kind, entry_id
from compact.summaries.ledger.forms import form, is_used
from compact.summaries.ledger.judged import Judged
from compact.summaries.ledger.judging import judge
from compact.summaries.ledger.pasted import own_paragraphs
from compact.summaries.ledger.phrases import TAKES_BACK_LAST, WITHDRAWS
from compact.summaries.ledger.replies import Asked, asked_in
from compact.summaries.ledger.taking_back import reminds, takes_back
from compact.summaries.ledger.topics import Topic, topic, weight
from compact.summaries.ledger.typed import typed
from compact.summaries.ledger.withdrawals import (
    is_said_of_things,
    is_taken_back,
    names_only,
    taken_back_by,
)

_OPENING = 8
"""The first request of a session stands in one of its first messages, at most this many."""
_GREETING_CHARS = 16
_MOST_BEFORE = 300
"""Characters in the brackets of an entry. What is longer stands by itself."""
_SHORT = 400
"""Characters of a message in which the agent tells nothing of its own."""
_TELLS = 2
"""The weight of the words of its own with which the agent tells something. "Understood" tells nothing."""
_PLACE = re.compile(r"(?:v(\d{1,9}) )?m(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of a person or of the agent, with secrets masked. Tool results are not heard."""

    said_in: str
    voice: Literal["user", "agent"]
    text: str


def extend(entries: Sequence[Entry], heard: Sequence[Heard]) -> tuple[Entry, ...]:
    """Return the entries after these further messages. Later words win: changed entries say so.

    `heard` are the messages since the last time, in order. For an answer at their beginning, the agent's last message before
    them should be the first. A message that was heard before adds and changes nothing.
    """
    ledger = _Ledger(entries)
    agents = ""
    before_it: list[Heard] = []
    for message, words in _with_typed(heard):
        if message.voice == "agent":
            agents = message.text if message.text.strip() else agents
            before_it.append(message)
            continue
        if words:
            ledger.hear(message.said_in, words, asked_in(agents), before_it)
            agents = ""
        before_it = [message]
    return tuple(ledger.entries)


def _said_right_before(said_in: str, before: Sequence[Heard]) -> str | None:
    """Where a person said what they speak of right behind it: the agent did no work since and told of none.

    `before` is what they said last and what the agent said since.
    """
    places = [_order(place) for place in (*(each.said_in for each in before), said_in)]
    if not before or before[0].voice != "user" or not all(map(_follows, places, places[1:])):
        return None  # A call and its result lie between.
    said = topic(before[0].text[:_SHORT])
    for each in before[1:]:
        if len(each.text) > _SHORT:
            return None
        told = topic(each.text)
        if weight(told.words - said.words) >= _TELLS or told.values - said.values:
            return None
    return before[0].said_in


def _follows(first: tuple[int, int] | None, second: tuple[int, int] | None) -> bool:
    return first is not None and second is not None and second == (first[0], first[1] + 1)


def find_said(wanted: str, heard: Iterable[Heard]) -> str | None:
    """Return the place of the first message in which a person says these words; None if nobody does.

    What a program put into a message, what is pasted into it and what is quoted in it is nobody's word, as for the entries.
    """
    wanted = _flat(wanted)
    for message, words in _with_typed(heard):
        # What is taken out must not bring together what stood apart.
        if wanted in _flat(message.text) and is_used(wanted, _flat(" ".join(own_paragraphs(words)))):
            return message.said_in
    return None


def _with_typed(heard: Iterable[Heard]) -> Iterator[tuple[Heard, str]]:
    """The messages, each with what a person typed in it; nothing for the agent's."""
    before = ""
    for message in heard:
        is_agents = message.voice == "agent"
        yield message, "" if is_agents else typed(message.text, before)
        before = "" if is_agents else message.text


def _flat(text: str) -> str:
    return " ".join(text.split())


class _Ledger:
    """The entries, and those that stand, by what they are about."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = list(entries)
        self._places = {entry.id: place for place, entry in enumerate(self.entries)}
        self._standing = Standing()
        self._withdrawn = Standing()
        self._bracketed = Standing()
        """Those that another entry is shown with, and that may still hold. Some are so no more."""
        self._ended_by: dict[str, set[int]] = defaultdict(set)
        self._has_goal = any(entry.source == "user" for entry in self.entries)
        for entry in self.entries:
            if entry.status == "stands":
                self._standing.add(entry)
            elif entry.status == "withdrawn":
                self._withdrawn.add(entry)
            elif entry.replaced_by is not None:
                self._ended_by[entry.replaced_by].add(self._places[entry.id])
        for entry in self.entries:
            if entry.status == "stands":
                self._remember_brackets(entry)

    def hear(self, said_in: str, words: str, asked: Asked, before: Sequence[Heard]) -> None:
        """Take in one message of a person. `before` is what they said last and what the agent said since."""
        order = _order(said_in)
        is_first = not self._has_goal and (order is None or order[1] <= _OPENING)
        self._has_goal = self._has_goal or len(words) > _GREETING_CHARS
        for found in judge(words, asked, is_first=is_first):
            if found.kind is None or takes_back(found.text):
                if self._take_back(said_in, found, before):
                    continue
                if found.kind is None:
                    if is_said_of_things(found.text):
                        continue
                    # What may be meant is shown behind the words that take it back.
                    self._add(said_in, replace(found, only_if_changes=True), "rule")
                    continue
            self._add(said_in, found, found.kind)

    def _add(self, said_in: str, found: Judged, kind: Kind) -> None:
        entry = Entry(
            id=entry_id(kind, found.text, said_in),
            kind=kind,
            text=found.text,
            said_in=said_in,
            answers=found.answers or None,
            masked=found.text.count(MASK),
        )
        if entry.id in self._places:
            return
        if reminds(found.text):
            self._append(entry)
            return
        older = [
            old
            for old in changed_by(entry, self._standing, corrects=found.corrects)
            if _is_before(old.said_in, said_in)
            # What counts only as a change changes what was said before its own message.
            and not (found.only_if_changes and old.said_in == said_in)
        ] or [
            self._release(old)
            for old in changed_by(entry, self._bracketed, corrects=found.corrects)
            if self._is_bracketed(old)
            and _is_before(old.said_in, said_in)
            and old.said_in != said_in
            # Who goes back to it says it of what came between.
            and topic(old.text) != topic(entry.text)
        ]
        before = None if older else earlier_than(entry, self._standing)
        if before is not None and found.only_if_changes and before.said_in == said_in:
            return
        if before is not None and _is_before(before.said_in, said_in):
            self._append(self._beside(entry, before))
            return
        if found.only_if_changes and not older:
            return
        if older and kind == "fact" and any(old.kind != "fact" for old in older):
            # What takes the place of a rule or a choice counts as much.
            entry = replace(entry, kind="correction")
        for old in older:
            entry = self._follow(entry, old)
        if len(older) == 1 and entry.text != older[0].text and says_only_a_value(entry.text, older[0].text):
            was = f"{entry.was} {older[0].text}" if entry.was else older[0].text
            entry = replace(entry, was=was)
        self._append(entry)

    def _follow(self, entry: Entry, old: Entry) -> Entry:
        """End an entry that these words surely change. Returns the new one with what it is shown with."""
        ended = replace(old, status="replaced", replaced_by=entry.id)
        if old.text == entry.text:
            # Who repeats it says nothing new on what stood beside it.
            self._end(ended, entry.text)
            return self._takes_over(replace(entry, was=old.was), old)
        self._end(ended, entry.text)
        return self._part_from(old, entry)

    def _beside(self, entry: Entry, before: Entry) -> Entry:
        """The entry with what was said on the same matter before, which goes into it.

        Sentences of that one about something else go on alone, and so does what it was shown with itself.
        """
        if before.was and nearness(entry.text, before.was) > nearness(entry.text, before.text):
            # What that one was shown with is nearer: it goes over to these words.
            self._show_with(before, None)
            return self._takes_over(replace(entry, was=before.was), before)
        meant, rest = part_that_is_meant(before.text, entry.text)
        self._set(replace(before, status="replaced", replaced_by=entry.id))
        if rest and (left := entry_id(before.kind, rest, before.said_in)) not in self._places:
            self._append(replace(before, id=left, text=rest, was=None, masked=rest.count(MASK)))
        return self._part_from(before, replace(entry, was=meant))

    def _part_from(self, old: Entry, entry: Entry) -> Entry:
        """Decide on what an entry was shown with, now that the entry ends. Returns the new one with what it is shown with.

        It ends, too, if the new words surely change it and say of what. If all surely speak of the same, it stays in brackets. Else it
        stands again.
        """
        shown = self._shown_with(old)
        named = [place for place in shown if says_only_a_value(entry.text, self.entries[place].text)]
        left = [place for place in shown if place in named or not changes(entry, self.entries[place])]
        if not (old.was and left):
            return entry
        was = old.was if left == shown else " ".join(self.entries[place].text for place in left)
        both = f"{was} {entry.was}" if entry.was else was
        is_one = left == named or (is_about(old.text, was) and is_about(entry.text, was))
        if is_one and len(both) <= _MOST_BEFORE:
            return self._takes_over(replace(entry, was=both), old)
        self._stand_again(left)
        return entry

    def _shown_with(self, old: Entry) -> list[int]:
        """The places of the entries that were shown in the brackets of another one."""
        return [
            place
            for place in sorted(self._ended_by[old.id])
            if self.entries[place].replaced_by == old.id and _holds(old, self.entries[place])
        ]

    def _takes_over(self, entry: Entry, old: Entry) -> Entry:
        """The entry, with whose words those stand from now on that the old one was shown with."""
        for place in self._shown_with(old):
            self.entries[place] = replace(self.entries[place], replaced_by=entry.id)
            self._ended_by[entry.id].add(place)
        return entry

    def _stand_again(self, places: Sequence[int]) -> None:
        for place in places:
            self.entries[place] = replace(self.entries[place], status="stands", replaced_by=None)
            self._standing.add(self.entries[place])

    def _append(self, entry: Entry) -> None:
        self._places[entry.id] = len(self.entries)
        self.entries.append(entry)
        self._standing.add(entry)
        self._remember_brackets(entry)

    def _remember_brackets(self, entry: Entry) -> None:
        for place in self._shown_with(entry):
            self._bracketed.add(self.entries[place])

    def _in_brackets(self, about: Topic) -> list[Entry]:
        """What is shown in the brackets of others and shares a word with a topic."""
        return [entry for entry in self._bracketed.about([about]) if self._is_bracketed(entry)]

    def _is_bracketed(self, entry: Entry) -> bool:
        """Whether an entry is shown in the brackets of one that stands."""
        now = self.entries[self._places[entry.id]]
        holder = None if now.replaced_by is None else self._places.get(now.replaced_by)
        return (
            holder is not None
            and now.status == "replaced"
            and (self.entries[holder].status == "stands" and _holds(self.entries[holder], now))
        )

    def _release(self, entry: Entry) -> Entry:
        """Let an entry that is shown in the brackets of another one stand alone again, so that words may end it."""
        place = self._places[entry.id]
        holder = self.entries[self._places[self.entries[place].replaced_by or ""]]
        rest = (holder.was or "").replace(entry.text, "").strip() if holder.was != entry.text else ""
        self._show_with(holder, None if rest == holder.was or not rest else rest)
        self._stand_again([place])
        return self.entries[place]

    def _show_with(self, entry: Entry, was: str | None) -> None:
        """Show an entry that stands with other words in its brackets, or with none."""
        entry = replace(entry, was=was)
        self.entries[self._places[entry.id]] = entry
        self._standing.entries[entry.id] = entry

    def _end(self, entry: Entry, change: str) -> None:
        """Let an entry stand no more. Of a sentence with several rules the others go on."""
        self._set(entry)
        rest = "" if change == entry.text else rest_of(entry.text, change)
        if rest and (left := entry_id(entry.kind, rest, entry.said_in)) not in self._places:
            self._append(
                replace(
                    entry,
                    id=left,
                    text=rest,
                    was=None,
                    status="stands",
                    replaced_by=None,
                    masked=rest.count(MASK),
                )
            )

    def _set(self, entry: Entry) -> None:
        place = self._places[entry.id]
        self.entries[place] = entry
        self._standing.remove(entry)
        if entry.status == "withdrawn":
            self._withdrawn.add(entry)
        if entry.replaced_by is not None:
            self._ended_by[entry.replaced_by].add(place)

    def _take_back(self, said_in: str, found: Judged, before: Sequence[Heard]) -> bool:
        """Withdraw what a sentence takes back. Returns whether there was such an entry and the sentence says nothing else."""
        lowered = form(found.text)
        if TAKES_BACK_LAST.found(lowered) and not WITHDRAWS.found(lowered):
            named = topic(TAKES_BACK_LAST.removed(lowered))
            names_it = bool(named.weight or named.values)
            last = self._last_said(said_in, before)
            if last is None:
                # It is about work, or about what was said long ago.
                return not names_it
            if names_it and not names_only(named, topic(last.text)):
                return False
            self._set(replace(last, status="withdrawn"))
            self._stand_again(self._shown_with(last))
            return not found.goes_on
        target = found.target or found.text
        old = taken_back_by(target, self._standing, self._in_brackets)
        if old is not None and self._is_bracketed(old):
            old = self._release(old)
        if old is not None and found.text in old.text:
            return False  # the words themselves, kept as a part of what the message says
        if old is None or old.source == "host" or not _is_before(old.said_in, said_in):
            gone = taken_back_by(target, self._withdrawn)
            return gone is not None and _is_before(gone.said_in, said_in) and not found.goes_on
        self._end(replace(old, status="withdrawn"), target)
        self._stand_again(
            [place for place in self._shown_with(old) if not is_taken_back(target, self.entries[place])]
        )
        return not found.goes_on

    def _last_said(self, said_in: str, before: Sequence[Heard]) -> Entry | None:
        """What "scratch that" is about: what the same message said last, or the one thing that the message right before said."""
        if here := self._said_in(said_in):
            return here[-1]
        place = _said_right_before(said_in, before)
        said = self._said_in(place) if place else []
        return said[0] if len(said) == 1 else None

    def _said_in(self, place: str) -> list[Entry]:
        return [
            entry
            for entry in self.entries
            if entry.said_in == place and entry.status == "stands" and entry.source == "user"
        ]


def _holds(holder: Entry, entry: Entry) -> bool:
    """Whether an entry has another one in its brackets, or a part of it."""
    return bool(holder.was and (holder.was in entry.text or entry.text in holder.was))


def _is_before(said_in: str, place: str) -> bool:
    """Whether a place is not behind another one. Places of another form are in the order in which they were heard."""
    first, second = _order(said_in), _order(place)
    return first is None or second is None or first <= second


def _order(said_in: str) -> tuple[int, int] | None:
    found = _PLACE.fullmatch(said_in)
    return None if found is None else (int(found[1] or 1), int(found[2]))
