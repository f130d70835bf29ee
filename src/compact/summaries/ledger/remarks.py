"""The remarks in a long message: a sentence or two of the person's own, beside what they pasted. Pure, in linear time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compact.summaries.ledger.forms import form, word_count
from compact.summaries.ledger.kinds import SHORT
from compact.summaries.ledger.pasted import is_pasted_line
from compact.summaries.ledger.sentences import Sentence

_PASSING_WORDS, _SENTENCES = 45, 3
"""Words and sentences of a paragraph that is a remark beside what is pasted."""
_BULK = 4
"""Sentences of a paragraph that is not said in passing."""
_SPEAKS = re.compile(
    r"^ (?:\( )?(?:(?:and|but|so|also|oh) ,? ?)?(?:please|as (?:i|we|far as)|mind you|by the way|btw|we |our |i |i'd|i'm|my |for us|for me|note that|remember|never |always |don't |do not |just |you )"
    r"| (?:mind you|as i said|by the way|i (?:want|need|expect|said|told)|you|your|please|reorder|bitte|s'il te plaît|por favor|per favore|пожалуйста) "
)
"""The voice of somebody who speaks to the agent."""

_HERE_IS = re.compile(
    r"^ (?:\S+ ){0,4}?(?:here(?:'s| is| are| comes)?|this is|these are|pasting|pasted|paste|attach\w*|append\w*|below|following|see|full|whole|complete|entire|last (?:\S+ )?(?:hour|run|log|events|output)|dump|copied|raw|sent|wrote|said|says|writes|posted|mailed|forwarded|replied|answered) "
)
"""Words before what is pasted that say only what it is."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A paragraph of a long message that is a sentence or two of the person's own."""

    words: int
    leads_to_paste: bool
    """What is pasted stands directly behind it."""


def introduces(one: Sentence, remark: Remark | None, *, has_paste: bool) -> bool:
    """Whether a sentence only says what is pasted behind it."""
    leads = has_paste if remark is None else remark.leads_to_paste
    return leads and _HERE_IS.search(form(one.text)) is not None


def remarks_in(said: Sequence[Sentence], text: str, paragraphs: Sequence[str]) -> dict[int, Remark]:
    """The paragraphs of a long message that are a sentence or two of the person's own.

    Such paragraphs open or close the message, stand alone inside what is pasted, or speak to the agent. Whatever is pasted around
    them, they are read as what they are: short remarks.
    """
    by_block = _by_block(said)
    words = {block: sum(word_count(one.text) for one in ones) for block, ones in by_block.items()}
    short = short_paragraphs(said).keys()
    beside = _pasted_beside(text, paragraphs)
    blocks = sorted(by_block)
    own: set[int] = set()
    leads: set[int] = set()
    for order, side in ((blocks, 0), (blocks[::-1], 1)):
        for block in order:
            if block not in short:
                break
            own.add(block)
            if side == 0:
                leads.add(block)
            if beside[block][1 - side]:
                break
    for place, block in enumerate(blocks):
        before, behind = beside[block]
        before = before or (place > 0 and _is_bulk(by_block[blocks[place - 1]]))
        behind = behind or (place + 1 < len(blocks) and _is_bulk(by_block[blocks[place + 1]]))
        if behind:
            leads.add(block)
        speaks = words[block] <= _PASSING_WORDS and any(
            _SPEAKS.search(form(one.text)) for one in by_block[block]
        )
        if block in short and ((before and behind) or speaks):
            own.add(block)
    return {block: Remark(words[block], block in leads) for block in own}


def short_paragraphs(said: Sequence[Sentence]) -> dict[int, int]:
    """The words of the paragraphs of a sentence or two, which are no list."""
    return {
        block: words
        for block, ones in _by_block(said).items()
        if len(ones) <= _SENTENCES
        and (words := sum(word_count(one.text) for one in ones)) <= SHORT
        and not any(one.in_list or one.is_heading for one in ones[:-1])
        and not ones[-1].in_list
    }


def _by_block(said: Sequence[Sentence]) -> dict[int, list[Sentence]]:
    found: dict[int, list[Sentence]] = defaultdict(list)
    for one in said:
        found[one.block].append(one)
    return found


def _is_bulk(ones: Sequence[Sentence]) -> bool:
    """Whether a paragraph is long or a list: what people paste, not what they say in between."""
    return len(ones) >= _BULK or sum(one.in_list for one in ones) > _SENTENCES


def _pasted_beside(text: str, paragraphs: Sequence[str]) -> list[tuple[bool, bool]]:
    """For each paragraph, whether lines of a log, code or the like stand directly before it and behind it."""
    lines = [line for line in text.split("\n") if line.strip()]
    found: list[tuple[bool, bool]] = []
    at = 0
    for paragraph in paragraphs:
        own = [line for line in paragraph.split("\n") if line.strip()]
        start = next((n for n in range(at, len(lines)) if own and lines[n] == own[0]), at)
        at = start + len(own)
        found.append(
            (
                start > 0 and is_pasted_line(lines[start - 1]),
                at < len(lines) and is_pasted_line(lines[at]),
            )
        )
    return found
