"""What a sentence is: a rule, a choice, a fact, or none of these. Pure, without a model.

The longer a message, the more a sentence must say to count: in a few words that a person typed, everything normative counts;
in a report of three thousand words only what nobody would write about anything but a rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from compact.summaries.ledger.changes import ENDS
from compact.summaries.ledger.entry import Kind
from compact.summaries.ledger.forms import form, is_question, word_count
from compact.summaries.ledger.pasted import own_paragraphs
from compact.summaries.ledger.phrases import (
    AGAIN,
    ASKS,
    CONTRASTS,
    CORRECTS,
    DECIDES,
    FAILS,
    FIRST_PERSON,
    NO,
    NOT_STRONG,
    PERMITS,
    PREFERS,
    REQUESTS,
    RULE,
    STATES,
    STRONG,
    THANKS,
    YES,
    is_english,
)
from compact.summaries.ledger.sentences import Sentence, sentences
from compact.summaries.ledger.topics import topic

SHORT = 60
"""Words. In a message this short, everything normative counts, and every choice and value."""
_MIDDLE = 260
"""Words. Up to here a sentence with a weaker word counts if it is short itself."""
SENTENCE = 32
"""Words of a sentence that is read with weaker words in a message of middle length."""
_STATEMENT = 15
"""Words. A message this short with a value in it states a fact."""
_LONGEST = 90
"""Words. A longer sentence is a description, whatever words are in it, unless the message is short."""
_CHOICE = 12
"""Words. An order this short that names one of known alternatives chooses it: "run the tests with pytest"."""
_PLAIN = 22
"""Words. In a message this short a plain statement is a fact for the agent to know, even without a value in it."""
_LEAST_PLAIN = 3
_PASTED = 2
_BARE_WORDS = 2
_THANKS = 4
_GRATEFUL = 8
_COMMAND = re.compile(r"^ (?:(?:and|now|okay|ok|then|so) ,? ?){0,3}/[\w:.-]+ $")
GOES_ON = re.compile(
    r"^ (?:(?:ok|okay|yes|good|great|thanks|and|now|please|just) ,? ?){0,2}(?:keep (?:going|at it|it up|on)|go on|go ahead|carry on|continue|proceed|next(?: one| step)?|resume|move on|onwards?|and then|weiter|mach weiter|continue[rz]?|sigue|continúa|continua|avanti|vai avanti|segue|ga door|verder|dalej|kontynuuj|дальше|продолжай|devam|devam et|继续|続けて|계속|أكمل|जारी रखो)(?: please| bitte)? (?:[.!…] ?)*$"
)
"""A word that only lets the agent work on."""
_BINDS = re.compile(
    r" (?:can't|cant|cannot|can not) (?:use|rely|depend|touch|upgrade|install|exceed|ship|have) |^ (?:please )?(?:explain|tell|describe|teach|show|present) "
)
"""What binds the agent, though somebody says it about themselves."""
_FOUND_NOTHING = re.compile(r"^ no (?:\S+ ){1,3}found | nothing to (?:sync|commit|do|show|push) |^ e\.g\. ")
_QUOTED = 4
"""Words. A quotation this long is what somebody else says, not a name."""
_VALUE = re.compile(
    r"\d{2,}|\d[.,:]\d|#\w{2,}|[$€£¥]\s?\d|\d\s?(?:%|k\b|h\b|ms\b|[kmg]b\b)|\S@\S|https?://|\b[\w-]{2,}\.(?:com|org|net|io|dev|local|internal|de|fr|app|cloud|co|example|test|lan)\b|`[^`\n]{1,80}`|\"[^\"\n]{1,60}\"|“[^”\n]{1,60}”|\b[A-Z][A-Z0-9]*[-_][A-Z0-9-_]+\b"
    r"|\bv\d|\b\w+_\w*\d\w*\b|(?:^|\s)(?:~|\.{0,2})/[\w.-]+/[\w./-]+|<REDACTED>|\b(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december|montag|dienstag|mittwoch|donnerstag|freitag|lundi|mardi|mercredi|jeudi|vendredi|lunes|martes|miércoles|jueves|viernes)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r" (?:please|pls|plz|kindly|bitte|s'il te plaît|s'il vous plaît|por favor|per favore|per piacere|graag|alsjeblieft|alstublieft|proszę|пожалуйста|lütfen|من فضلك|لو سمحت|कृपया) |请|請|ください|下さい|お願い|주세요|부탁"
)
_LASTING = re.compile(
    r" (?:never|always|from now on|going forward|in future|in the future|make sure|keep|avoid|use|stop|do not|don't|not|only|no|stick|leave|remember|each|every|everything|everywhere|throughout|skip|before|immer|nie|niemals|ab jetzt|ab sofort|künftig|nicht|toujours|jamais|désormais|siempre|nunca|sempre|mai|altijd|nooit|vanaf nu|zawsze|nigdy|od teraz|всегда|никогда|отныне) |以后|不要|今後|必ず|앞으로|항상"
)
_ASKED_TO = re.compile(
    r"(?:^|,) (?:(?:hi|hey|ok|okay|also|and|so|but|please) ,? ?){0,3}(?:can|could|would|will) (?:you|we) "
)
_HABIT = re.compile(
    r" (?:not just|not only|rather than|instead of|whenever|every time|each time|before you|before (?:any|each|every)|after (?:any|each|every)|in the future|next time|as you go|along the way|by default|in general|generally|(?:answers|replies|explanations|summaries|messages|bullets|bullet points|tables|diffs|steps|step by step|one at a time|one by one|in order|(?:plain|simple) (?:words|language|english|terms)|shorter|briefer|simpler|slower|in full)) "
)
"""How a thing is to be done whenever it is done."""
_REASON = re.compile(
    r" (?:so (?:that )?(?:i|we) (?:can|don't|won't|know|see|understand|have|get)|because (?:i|we)|since (?:i|we)|, (?:and )?i(?:'m| am| have to| like| learn| read| work| hate| love| only| always| never| usually| often| can't)|that's how i|that way i|helps me|easier (?:for me|to)) "
)
"""Why somebody wants a thing done as they say."""
_TELLS_HOW = re.compile(
    r"^ (?:(?:and|also|please|so|ok|okay|then|but) ,? ?){0,2}(?:give|show|tell|explain|write|list|put|describe|summari[sz]e|report|answer|reply|phrase|word|format|present|start|begin|end|finish|mark|number|quote|cite|name|say|point|walk|teach|ask|offer|suggest|state|mention|spell|draw|compare) "
)
_POINTS_AT = re.compile(r" (?:this|that|these|those|it|them|here|above|below|now) ")
_CLEFT = re.compile(
    r"^ (?:(?:and|but|so|also|oh) ,? ?){0,2}(?:what|all|whatever) (?:i|we|my \S+|our \S+) (?:\S+ ){1,10}?(?:is|are|isn't|aren't|was|were) "
)
"""A statement that begins like a question: "what we want is ..."."""
_LEAST_WISH = 5
_BLOB_CHARS = 160
_BLOB = re.compile(rf"[!-~]{{{_BLOB_CHARS}}}")
"""No word of a person is that long."""
_CODE_LIKE = re.compile(r"[{}\[\]();=<>|\\&$^]")
LEFT_OUT = "[...]"
"""Stands where a part of a long entry is left out."""
_ONLY = re.compile(r" (?:only|always|never|each time|every time|without asking) ")
_TALK = re.compile(
    r" (?:i|we|i've|we've) (?:just |also |still |already |really )?(?:tried|got|get|see|saw|noticed|ran|guess|hope|wonder|thought|found|checked|clicked|opened|messed|know|understand|remember|looked|am trying|was trying|appreciate) "
    r"| (?:it|this|that|these|those|they) (?:just |still |now |also |really )?(?:works?|worked|looks?|looked|seems?|happens?|happened|did|does|sounds?|helps?|helped|makes sense|made sense|is (?:great|fine|perfect|good|weird|strange|broken|correct|right|done|nice|awesome|all)|was (?:great|good|quick|it|fast|helpful)|'s (?:great|fine|perfect|good|weird|strange|broken|correct|right|done|nice|all|it)) "
    r"| (?:that's|it's) (?:great|fine|perfect|good|weird|strange|broken|correct|right|done|nice|all|it|everything) | (?:let me|hope|sounds (?:good|great|perfect)|looks (?:good|great)|appreciate|good (?:job|work|catch|point)|well done|nice work|you (?:did|were|forgot|missed|broke|got)|(?:you have|you've) (?:been|done|made|given|helped|fixed|broken)|still (?:not|no|the same|failing|broken)|same (?:error|issue|problem|thing)|happens when|what happened) "
    r"|^ (?:lol|haha|wow|ugh|hmm+) "
)
"""Talk about what goes on. It says nothing that must stay."""
_PASSING = 12
"""Words of a sentence that only talks about what goes on."""
_THIS = re.compile(r" (?:it|this|that|these|those|again|now|and push|and commit) ")
_CONDITION = re.compile(r"^ (?:when|where|whenever|wherever) [^?]{1,120} ,? ")
_MANNER = re.compile(
    r"^ (?:please )?(?:reply|answer|respond|write|speak|talk|explain|comment|document|format|log) (?:only |just )?(?:in|with|as|to me in) | (?:by default|like (?:i'm|im|i am|we're|we are)|as if|as though|in (?:english|german|french|spanish)|without \S+) |^ write (?:\S+ ){1,3}first [.!]? ?$|^ (?:\S+ ){1,3}(?:before|after|when|while) \S+ing [.!]? ?$"
)
_DIRECT = re.compile(
    r"^ (?:(?:and|but|so|also|important :|note :|oh|btw|one (?:more )?thing :) ,? ?)?(?:please|never|always|do not|don't|from now on|under no|make sure|you must|i want|i'd|bitte|nie|niemals|s'il|ne |jamais|toujours|nunca|siempre|no |non |sempre|não|nooit|altijd|nigdy|zawsze|proszę|никогда|всегда|не |пожалуйста|asla|lütfen|لا |कभी|कृपया|हमेशा)|^ (?:请|請|不要|绝不|必须|絶対|必ず|절대|항상|반드시)"
)
"""How a person's own order begins inside a document."""
_ADDRESS = re.compile(
    r"^ (?:use|prefer|keep|never|always|only|no|avoid|stick|all|every|each|follow|limit|leave|drop|ignore|skip|exclude|include|treat|sort) | (?:i|i'd|i'll|i'm|we|we'll|we're|you|please|let's|lets|my|our|us|me|your|as far as|as soon as|whenever|every time) "
)
_UNSURE = re.compile(
    r" (?:bug|bugs|fails?|failed|failing|errors?|broken|crash\w*|issue|doesn't|didn't|isn't|wasn't|hasn't|haven't|wonder|seems?|might|probably|perhaps|i guess|i wonder|weird|strange) "
)
_ERRORS_AS_OBJECT = re.compile(
    r" (?:treat|log|report|handle|raise|wrap|swallow|return|as|no|on) (?:\S+ ){0,2}errors? "
)
_LOOKS = re.compile(
    r" (?:and )?let's (?:take a (?:\S+ )?look|think about|see|check|look|get|review|continue|talk|discuss|think|try again|go back|test|find|debug|investigate|start by looking) "
)
_PLANS = re.compile(
    r" (?:i'm|i am|we're|we are) (?:getting|seeing|trying|wondering|not|sorry|still|going|looking|confused|done|back|happy|having|a bit|a little|calling|hoping|unsure|afraid|really|so|just|also|very|quite|concerned|questioning|guessing|thinking) | i have (?:a feeling|no idea|an idea|a question|a couple|some|questions|to|no) "
)
_RIGHT = re.compile(
    r"^ (?:oh ,? ?)?(?:you're right|you are right|right|correct|(?:no|nope) ,? ?(?:i think |i guess |thank|that's (?:all|it|everything|fine|ok)|problem|worries|need)|nope ,? ?(?:thank|that's (?:all|it|everything))|nein ,? ?danke|non ,? ?merci|no ,? ?gracias|no ,? ?grazie|não ,? ?obrigad[oa]) "
)
_EVERYDAY = frozenset(
    (
        "weekday",
        "month",
        "length",
        "manner",
        "hour",
        "frequency",
        "seat",
        "sorting",
        "spelling",
        "currency",
        "paper",
    )
)
_YES_NO = re.compile(
    r"^ (?:is|are|do|does|did|was|were|should|has|have|isn't|don't|doesn't|didn't|what|why|how|but|so) "
)
_CORRECTION_FIRST = re.compile(
    r"^ (?:no ,|nope|wrong|that's wrong|that is wrong|i said|i meant|actually|nein ,|non ,|нет ,|hayır ,|não ,) "
)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a sentence stands."""

    words: int
    """Words that the person typed in the message."""
    replies: bool
    """The agent said something before."""
    pasted_lines: int = 0
    """Lines of the message that are code, a log or the like. What stands beside them may be more of it."""
    is_document: bool = False
    """It is a text with headings: a plan, a command's instructions. Few of them are typed."""


def kind_of(text: str) -> Kind:
    """The kind of words that stand alone; a fact if nothing says more."""
    for paragraph in own_paragraphs(text) if text.strip() else ():
        for one in sentences(paragraph):
            kind = sentence_kind(one, Setting(word_count(one.text), replies=True))
            if kind is not None:
                return kind
    return "fact"


def normative_part(text: str) -> str:
    """The sentences of a long entry that carry rules and choices; those with facts if none does, and else its first one."""
    said = [
        one for number, paragraph in enumerate(text.split("\n\n")) for one in sentences(paragraph, number)
    ]
    setting = Setting(SHORT, replies=True)
    kinds = [_kind_by_words(one, setting) for one in said]
    orders = any(kind not in (None, "fact") for kind in kinds)
    kept = [kind is not None and not (orders and kind == "fact") for kind in kinds]
    if len(said) < 2 or all(kept):
        return text
    if not any(kept):
        kept[0] = True
    parts = [one.text if stays else LEFT_OUT for one, stays in zip(said, kept, strict=True)]
    return " ".join(
        part
        for number, part in enumerate(parts)
        if part != LEFT_OUT or parts[number - 1 : number] != [LEFT_OUT]
    )


def sentence_kind(one: Sentence, setting: Setting) -> Kind | None:
    """The kind of a sentence; None if nothing of it must stay.

    In a short message of a person, whatever tells the agent something stays, whether or not its words are those of a rule.
    """
    kind = _kind_by_words(one, setting)
    if kind is not None or setting.words > SHORT or setting.is_document:
        return kind
    if _wishes(one):
        return "preference"
    return "fact" if _tells(one) else None


def _wishes(one: Sentence) -> bool:
    """Whether a request says how something is to be done whenever it is done, or why somebody wants it so."""
    lowered = form(one.text)
    return (
        REQUESTS.found(lowered)
        and not (one.is_heading or is_question(one.text) or looks_like_code(one.text))
        and word_count(one.text) >= _LEAST_WISH
        and (
            CONTRASTS.found(lowered)
            or _is_manner(lowered)
            or (_HABIT.search(lowered) or _REASON.search(lowered)) is not None
        )
    )


def _is_manner(lowered: str) -> bool:
    """Whether words of what the agent says and shows point at nothing that is there: "give options as a table, cheapest first"."""
    clause = lowered.partition(" , ")[0] + " "
    return _TELLS_HOW.match(lowered) is not None and not _POINTS_AT.search(clause)


def _tells(one: Sentence) -> bool:
    """Whether a sentence tells something: it is neither a question, nor work to be done now, nor talk about what goes on."""
    lowered = form(one.text)
    words = word_count(one.text)
    if words < _LEAST_PLAIN or one.is_heading or is_question(one.text) or looks_like_code(one.text):
        return False
    if REQUESTS.found(lowered) and not _CLEFT.match(lowered):
        return False
    if _COMMAND.match(lowered) or GOES_ON.match(lowered) or ENDS.search(lowered):
        return False
    if words <= _PASSING and (_TALK.search(lowered) or _REPORTS.search(lowered)):
        return False
    if " “” " in lowered and words - word_count(lowered) >= _QUOTED:
        return False
    return not (
        (THANKS.found(lowered) and words <= _GRATEFUL)
        or (words <= _THANKS and (YES.found(lowered) or NO.found(lowered)))
        or _CONFUSED.search(lowered)
    )


_NARRATES = re.compile(
    r"^ (?:\S+ ){1,6}?(?:was|were|had|met|went|came|saw|heard|wrote|told|said|got|gave|took|brought|showed|spent|felt|[a-z]{3,12}(?<!ne)ed) "
)
_REPORTS = re.compile(
    r"^ (?:(?:and|but|so|now|hmm+|ok|okay|oh|also|well|still|again) ,? ?){0,3}(?:there(?:'s| is| are| was| were) (?:an?|some|no|still)|it (?:still )?(?:fails?|crash\w*|breaks?|hangs?|says?|said|gives?|gave|shows?|throws?|returns?|doesn't|didn't|won't|can't|isn't|wasn't)|(?:the )?(?:build|tests?|ci|page|app|server|login|deploy\w*|job|pipeline|command|script)s? (?:is|are|was|were)? ?(?:still )?(?:fail\w*|broken|red|down|crash\w*|hang\w*|stuck)|i (?:still )?(?:can't|cannot|couldn't|don't (?:see|get|understand|know|remember|recall|have)|didn't)) "
)
"""Somebody reports trouble."""
_CONFUSED = re.compile(
    r"^ (?:sorry|oops|my (?:bad|mistake)|i(?:'m| am) (?:not sure|confused|sorry|lost|stuck|back|done|ready|here)|no idea|not sure|good (?:question|point|morning|evening|afternoon|night)|have a|see you|talk (?:soon|later)|brb|wait|one (?:sec|moment)|hold on)(?: [^,]{0,40})? [.!…]? ?$"
)


def _kind_by_words(one: Sentence, setting: Setting) -> Kind | None:
    """The kind of a sentence by the words in it."""
    text = one.text
    words = word_count(text)
    lowered = form(text)
    if (
        not lowered.strip()
        or one.is_heading
        or (words > _LONGEST and setting.words > SHORT)
        or looks_like_code(text)
    ):
        return None
    rest = NOT_STRONG.removed(lowered)
    if is_question(text):
        return _kind_of_question(rest, lowered, setting)
    if setting.is_document and (one.in_list or not _DIRECT.match(rest)):
        return None
    if (
        _COMMAND.match(lowered)
        or GOES_ON.match(lowered)
        or (words <= _GRATEFUL and THANKS.found(lowered) and not _POLITE.search(lowered))
    ):
        return None
    if STRONG.found(rest):
        return _sharpened("rule", lowered, setting)
    if RULE.found(rest) and _POLITE.search(rest) and not REQUESTS.found(lowered):
        return "rule"
    if setting.words > _MIDDLE:
        begins = lowered[:48] + " "
        if PREFERS.found(begins) and not FAILS.found(lowered):
            return "preference"
        return None
    if setting.words > SHORT and (words > SENTENCE or (is_english(lowered) and not _ADDRESS.search(lowered))):
        return None
    return _weaker_kind(text, rest, lowered, words, setting)


def _weaker_kind(text: str, rest: str, lowered: str, words: int, setting: Setting) -> Kind | None:
    """The kind of a sentence in a message that is not long."""
    if _FOUND_NOTHING.search(lowered):
        return None
    asks = ASKS.found(first_words(text, 2)) and words > 2 and not _CLEFT.match(lowered)
    if asks and not CORRECTS.found(lowered) and not _CONDITION.search(lowered):
        return None
    is_short = setting.words <= SHORT
    fails = FAILS.found(lowered)
    corrects = CORRECTS.found(lowered) or CONTRASTS.found(lowered)
    if corrects and (is_short or not fails) and not (_is_bare(lowered) or _RIGHT.search(lowered)):
        return "correction"
    looks = _LOOKS.search(lowered) is not None
    if PREFERS.found(lowered) and not fails and not looks:
        return "preference"
    decides = DECIDES.found(lowered) and not looks
    speaks_of_self = FIRST_PERSON.found(lowered) and not _PLANS.search(lowered)
    if is_short and not fails and speaks_of_self and not decides and not _BINDS.search(rest):
        return "fact"
    unsure = _UNSURE.search(lowered) is not None and not _ERRORS_AS_OBJECT.search(lowered)
    if unsure or (fails and not is_short):
        return None
    if decides:
        return "decision"
    if setting.pasted_lines >= _PASTED and is_english(lowered) and not _ADDRESS.search(lowered):
        return None
    if _orders(rest, lowered) or (not fails and _orders_briefly(text, rest, lowered, words, setting)):
        return "rule"
    if (fails and not speaks_of_self) or setting.pasted_lines >= _PASTED:
        return None
    return _statement_kind(text, lowered, words, setting)


def _orders(rest: str, lowered: str) -> bool:
    """Whether a sentence has a rule's words, and is not just work to be done now."""
    is_task = REQUESTS.found(lowered) and not (_LASTING.search(lowered) or _MANNER.search(lowered))
    return RULE.found(rest) and not is_task


def _orders_briefly(text: str, rest: str, lowered: str, words: int, setting: Setting) -> bool:
    """Whether a short sentence says how things are to be done: "write tests first", "commits in English, please"."""
    if words > _STATEMENT:
        return False
    if _ONLY.search(rest):
        return True
    if setting.words <= SHORT and _MANNER.search(lowered) and not _THIS.search(lowered):
        return True
    if setting.words > _STATEMENT:
        return False
    is_polite = words > 1 and _POLITE.search(lowered) is not None and not _LOOKS.search(lowered)
    return (words <= _CHOICE and _chooses(text)) or (is_polite and not REQUESTS.found(lowered))


def _statement_kind(text: str, lowered: str, words: int, setting: Setting) -> Kind | None:
    """The kind of a sentence that neither orders nor chooses: a fact, if it says one."""
    if REQUESTS.found(lowered) or ENDS.search(lowered) or (THANKS.found(lowered) and words <= _THANKS):
        return None
    if " “” " in lowered and words - word_count(lowered) >= _QUOTED:
        return None  # somebody else's words
    has_value = _VALUE.search(text) is not None and not (" “” " in lowered and words > _STATEMENT)
    if (
        has_value
        and words > 1
        and (setting.words <= _STATEMENT or (setting.words <= SHORT and STATES.found(lowered)))
    ):
        return "fact"
    if words < _LEAST_PLAIN or (setting.words > _PLAIN and words > SENTENCE) or _TALK.search(lowered):
        return None
    if setting.words > SHORT and narrates(lowered):
        return None
    turns = PERMITS.found(lowered) or (AGAIN.found(lowered) and not is_english(lowered))
    return "rule" if turns else "fact"


def narrates(lowered: str) -> bool:
    """Whether a sentence reports what happened. In a longer message that tells the agent nothing to keep."""
    return _NARRATES.search(lowered) is not None and is_english(lowered)


def _chooses(text: str) -> bool:
    """Whether a sentence names one of known alternatives. Days and the like are named in any talk."""
    return any(kind not in _EVERYDAY for kind, _ in topic(text).choices)


def _is_bare(lowered: str) -> bool:
    """Whether a sentence is only "no" or "actually", without a content."""
    return lowered.isascii() and len(re.findall(r"\w+", lowered)) <= _BARE_WORDS


def _kind_of_question(rest: str, lowered: str, setting: Setting) -> Kind | None:
    """A question is a rule if it asks for something that lasts: "could you please always ...?"."""
    if ASKS.found(f" {lowered.split()[0]} "):
        return None
    persistent = STRONG.found(rest) and _LASTING.search(lowered) is not None
    if (
        setting.words <= SHORT
        and _ASKED_TO.search(lowered)
        and (CONTRASTS.found(lowered) or _HABIT.search(lowered))
    ):
        return "preference"  # "could you give me hints instead of solutions?"
    if _ASKED_TO.search(lowered):
        return "rule" if persistent and (setting.words <= SHORT or _POLITE.search(lowered)) else None
    return "rule" if persistent and _POLITE.search(lowered) and not _YES_NO.search(lowered) else None


def _sharpened(kind: Kind, lowered: str, setting: Setting) -> Kind:
    """A rule that corrects what the agent just said is a correction, one that says what somebody likes a preference."""
    if setting.words <= SHORT and _CORRECTION_FIRST.search(lowered) and setting.replies:
        return "correction"
    if PREFERS.found(lowered[:40] + " "):
        return "preference"
    return kind


def looks_like_code(text: str) -> bool:
    """Whether a sentence has too many signs for one that a person says."""
    has_blob = len(text) >= _BLOB_CHARS and _BLOB.search(text) is not None
    return has_blob or len(_CODE_LIKE.findall(text)) > max(3, len(text) // 12)


def first_words(text: str, count: int) -> str:
    """The form of the first words of a text."""
    return " " + " ".join(form(text).split()[:count]) + " "
