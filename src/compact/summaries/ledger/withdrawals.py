"""Which entries words take back: those that name a rule, or what it is about and nothing else. Pure, without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compact.summaries.ledger.changes import Standing, clauses
from compact.summaries.ledger.entry import Entry
from compact.summaries.ledger.forms import form
from compact.summaries.ledger.phrases import WITHDRAWS, is_english
from compact.summaries.ledger.topics import Topic, overlap, specific, topic, weight

_SUBJECT = re.compile(
    r"(?:^|[,;:.] | (?:so|and|but|because|since) )(?P<subject>[^,;:.]{1,100}?) (?:doesn't|don't|does not|do not|doesnt|dont|won't|will not|no longer|isn't|aren't|is not|are not|has become|have become|is|are)(?: really| no longer)? (?:matters?|apply|applies|counts?|holds?|needed|necessary|required|relevant|valid|moot|irrelevant|obsolete|unnecessary|history|important|off the table) "
)
"""What does not matter any more: "those two checks do not matter now"."""
_FORGETS = re.compile(
    r"^ (?:\S+ ){0,4}?(?:forget|ignore|disregard|retract|revoke|withdraw|scratch|strike|scrap|drop|skip|lift|take back|never mind|nevermind|vergiss|ignoriere?|oublie[sz]?|laisse tomber|olvida|olvídate|olvide|ignora|descarta|dimentica|scorda\S*|lascia perdere|esqueça|esquece|desconsidere|vergeet|negeer|zapomnij|zignoruj|забудь|игнорируй) (?:about |von |de |di |da |do |o |про |об )?"
)
_DELETES = re.compile(r"^ (?:\S+ ){0,4}?(?:cancel|undo|remove|delete|discard|nix|void|streiche?) ")
"""Orders to forget or to delete something, up to what they name."""
_RULE_NAMED = re.compile(
    r" (?:rules?|requirements?|instructions?|constraints?|restrictions?|conditions?|limits?|bans?|preferences?|policy|guidelines?|wish|request|said|told|asked|mentioned|wrote|thing|part|bit"
    r"|regeln?|vorgaben?|einschränkung|beschränkung|anforderung|wunsch|verbot|bedingung|gesagt|règles?|contraintes?|consignes?|limite|dit|reglas?|restricci\S+|norma|límite|dije|dicho|regol[ae]|vincol[oi]|detto|regras?|restriç\S+|disse|regels?|eis|gezegd|zasad\S+|reguł\S+|правил\S+|ограничени\S+|требовани\S+) "
)
"""Words that name what was asked for."""
_RULE_KINDS: frozenset[str] = frozenset(("rule", "correction", "preference"))
_ALL_KINDS = _RULE_KINDS | {"decision", "answer", "fact"}
_EXPLICIT = re.compile(
    r" (?:forget|ignore|disregard|drop|scrap|retract|revoke|withdraw|take|scratch|strike|said|told|never mind|nevermind|rule|requirement|limit|restriction|constraint|policy|preference) "
)
_BAN = re.compile(
    r" (?:bans?|embargo|freeze|prohibition|verbot|sperre|interdiction|prohibici[óo]n|veto|divieto|proibição|verbod|zakaz\w{0,2}|запрет\w{0,2}|yasa[kğ]\w{0,2}) |禁令|禁止令|금지령"
)
"""A rule that forbids something, by its name."""
_LEAST_TAKEN = 0.34
_LEAST_SHARED = 0.75


def taken_back_by(
    target: str, standing: Standing, further: Callable[[Topic], Sequence[Entry]] | None = None
) -> Entry | None:
    """The entry that a sentence takes back; `target` is that sentence. `further` lists others that it may be.

    It names a rule, or it repeats what the rule is about and nothing else.
    """
    lowered = form(target)
    wanted = _Wanted.of(target)
    about = topic(_RULE_NAMED.sub(" ", lowered))
    if wanted is not None and (wanted.about.weight >= 1 or wanted.about.values):
        about = wanted.about
    # "It is no longer needed" may be said of a thing. Only a rule is taken back by it.
    kinds = _ALL_KINDS if _EXPLICIT.search(lowered) or not is_english(lowered) else _RULE_KINDS
    best, found, sharing = 0.0, None, 0
    head = _head(lowered)
    forbids = _BAN.search(lowered) is not None
    for old in (*(further(about) if further else ()), *standing.about([about])):
        held = topic(old.text)
        if forbids and not (held.forbids or held.restricts):
            continue
        if (head is not None and not overlap(head, held)) or not (wanted is None or wanted.is_met_by(held)):
            continue
        shared = (
            weight(about.words & held.words)
            + len(about.numbers & held.numbers)
            + len(about.names & held.names)
            + len(about.choices & held.choices)
        )
        size = about.weight + len(about.numbers) + len(about.names)
        score = shared / size if size else 0.0
        rule_bonus = 0.05 if old.kind != "fact" else 0.0
        sharing += shared >= _LEAST_SHARED
        if shared >= _LEAST_SHARED and score + rule_bonus >= best:
            best, found = score + rule_bonus, old
    # Somebody who takes back one of several things that are alike says which.
    is_sure = best >= _LEAST_TAKEN or sharing == 1
    return found if found is not None and is_sure and found.kind in kinds else None


def is_said_of_things(target: str) -> bool:
    """Whether a sentence orders to delete something, and not to forget words: "delete the cache rule from nginx.conf"."""
    wanted = _Wanted.of(target)
    return wanted is not None and not wanted.of_words


def is_taken_back(target: str, entry: Entry) -> bool:
    """Whether a sentence takes back an entry, whether that one stands or not."""
    standing = Standing()
    standing.add(entry)
    return taken_back_by(target, standing) is not None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an order to forget something names."""

    about: Topic
    names_rule: bool
    """It says "rule", "what I said" or the like."""
    of_words: bool
    """It is said of words and not of a thing: a rule may be deleted from a file, too."""

    @classmethod
    def of(cls, target: str) -> _Wanted | None:
        """None: the sentence gives no such order; it tells that something is not needed."""
        clause = next((part for part in clauses(target) if WITHDRAWS.found(form(part))), target)
        lowered = form(clause)
        words, things = _FORGETS.match(lowered), _DELETES.match(lowered)
        order = words or things
        if order is None:
            return None
        named = lowered[order.end() :]
        return cls(
            topic(_RULE_NAMED.sub(" ", f" {named}")),
            _RULE_NAMED.search(lowered) is not None,
            words is not None,
        )

    def is_met_by(self, held: Topic) -> bool:
        """Whether an entry is what it names: "the staging bug" is not "the staging database"."""
        if self.names_rule and self.of_words:
            return not self.about.names or bool(self.about.names & held.names)
        core = len(specific(held)) + len(held.choices) + len(held.names)
        return names_only(self.about, held) and (self.names_rule or overlap(self.about, held) > core / 2)


def names_only(about: Topic, held: Topic) -> bool:
    """Whether a topic names what an entry is about and nothing else."""
    return not (specific(about) - held.words or about.names - held.names)


def _head(lowered: str) -> Topic | None:
    """The word for what no longer matters, if a form says so: "variants" in "those old variants do not matter now"."""
    found = _SUBJECT.search(lowered)
    if found is None:
        return None
    for word in reversed(found["subject"].split()):
        about = topic(word)
        if not _EXPLICIT.search(f" {word} ") and (about.weight >= 1 or about.values):
            return about
    return None
