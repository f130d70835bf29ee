"""What a person typed: a message without what programs put into it. Pure, in linear time.

Agents' programs write into the user's role: reminders, the environment, commands and their output, notes about the editor,
instructions from files, summaries of an earlier session. None of that is a person's word.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict

_WHOLE = re.compile(
    r"\s*(?:\[Request interrupted by user|This session is being continued from a previous conversation"
    r"|Caveat: The messages below were generated|Base directory for this skill:|# AGENTS\.md instructions|#? ?CLAUDE\.md\b[^\n]{0,80}\n"
    r"|Operation stopped by hook|(?:\w{3,30} )?[Hh]ook (?:feedback|additional context|blocking error|success|error)\b|\w{3,30}:\w{3,30} hook\b"
    r"|Observations?:|Call id: |Calling tools:|\[FACTS LIST\]|\[compact: |\[compact recovery\]"
    r"|(?:API Error|Tool loaded\.|\(no content\)|No response requested\.)|EXECUTION RESULT of|OBSERVATION:"
    r"|Invoke the [\w:.-]{1,80} skill and follow it|\[SYSTEM|Continue from where you left off\.\s*$|Your task is to create a detailed summary of the conversation)"
)
"""The beginnings of messages that a program wrote as a whole."""
_LABELLED = re.compile(
    r"\s*\[(?:"
    # A label in brackets that names a program, or a call of one, in front of the text or around it.
    r"(?:[\w-]{1,20} ){0,2}(?:system|automated|automatic|cron|scheduled|scheduler|webhook|hook|bot|tool|notification|error|heartbeat|monitor)"
    r"\b[^\]\n]{0,60}|(?-i:[a-z]\w{0,40}_\w{1,60})\b[^\]\n]{0,120}"
    r")\](?!\()"
    r"|\s*\[(?:system|automated|automatic|auto)[ -]?\w{0,20}:[^\]]{0,4000}\]\s*$",
    re.IGNORECASE,
)
_GO_ON = re.compile(
    r"\s*(?:please )?(?:continue|keep|proceed)(?: \w+){0,3} the (?:task|work|interaction)\b(?=.{0,600}\b(?:finish|human help|complete_task|submit)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""The prompt with which an agent's program lets it work on, without a person."""
_CONTEXT = re.compile(
    r"\s*#{1,6} [^\n]{0,60}\b(?:(?:relevant|related|retrieved|recalled) (?!rules|constraints|requirements|guidelines|conventions|preferences)\w+|memories|search results)\b[^\n]{0,60}\n",
    re.IGNORECASE,
)
"""The heading over what a program looked up for a message."""
_ASKED_BEHIND = re.compile(
    r"^(?:#{1,6} |\*\*)?(?:the )?(?:user|human|question|query|request)(?:'s)?(?: \w{1,12})?:?(?:\*\*)?:?(?:[ \t]+(?=\S)|[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_REST = re.compile(
    r"^(?:Observation:|ARGUMENTS: |\[Request interrupted by user|Caveat: The messages below were generated)",
    re.MULTILINE,
)
"""The beginnings of lines from which on a message is a program's."""
_MARKERS = re.compile(
    r"#{3}[A-Z][A-Z-]{2,24}#{3}|\[Request interrupted by user[^\]\n]{0,40}\]|\[(?:[Ii]mage|Pasted text|[Ff]ile|[Aa]ttachment)(?: #?\d{1,4}[^\]\n]{0,60})?\]"
)
_AFTER_REQUEST = re.compile(r"^## My request for Codex:[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,60})(?:[ \t][^<>]{0,400})?>")
_PERSONS_LIST = (
    "user_query user-query user_message user-message user_request user-request user_prompt user-prompt user_input user-input"
    " command-args query question request prompt task feedback answer response message"
)
_PERSONS = frozenset(_PERSONS_LIST.split())
"""Tags in which programs wrap what a person typed."""
_MARKUP_LIST = (
    "a b i u s p em strong br hr li ul ol div span code pre sub sup kbd h1 h2 h3 h4 img table tr td th mark small del ins"
    " rules rule requirements constraints guidelines t"
)
_MARKUP = frozenset(_MARKUP_LIST.split())
"""Tags that people type themselves, around words of theirs."""
_HOSTS = re.compile(
    r"[a-z0-9]+(?:[-_:.][a-z0-9]+)+"
    r"|system|environment|context|attachments?|documents?|files?|instructions?|output|stdout|stderr|results?|error|logs?|email|page|webpage"
    r"|website|article|content|data|transcript|conversation|chat|source|diff|patch|trace|observation|tool|caveat|notification|reminder"
    r"|memory|skill|hook|important|admin|assistant|user|human|instruct|html|body|head|script|style|svg|xml|issue|ticket|comment|quote|example"
    r"|examples|summary|snippet|selection|thinking|search|paste|text|input|response|info|metadata",
    re.IGNORECASE,
)
"""Tags around what is not a person's word: those of hosts, which are made of several words, and those around pasted text."""
_NOTHING_LEFT = re.compile(r"[\s.…-]*")
TAKEN_OUT = "<element/>"
"""The line that stands for an element that was taken out. Like what is pasted, it ends what was announced before it."""
_COMMAND = re.compile(r"<command-(?:name|message)>")
_LEAST_EXPANSION_CHARS = 240


def typed(text: str, after: str = "") -> str:
    """Return what a person typed in a message of the user's role; empty if a program wrote all of it.

    `after` is the user's message directly before it, without a word of the agent between them: where that calls a command,
    a long text behind it is the command's.
    """
    if _is_programs(text) or (_is_expansion(text) and _COMMAND.search(after)):
        return ""
    if _CONTEXT.match(text) is not None:
        asked = list(_ASKED_BEHIND.finditer(text))
        text = text[asked[0].end() :] if len(asked) == 1 else text
    if (request := _AFTER_REQUEST.search(text)) is not None:
        text = text[request.end() :]
    text = _without_blocks(text)
    if (rest := _REST.search(text)) is not None:
        text = text[: rest.start()]
    text = "\n".join(_MARKERS.sub("", text).splitlines()).strip()
    said = text.replace(TAKEN_OUT, "").strip()
    return "" if _NOTHING_LEFT.fullmatch(said) or _is_programs(said) else text


def _is_programs(text: str) -> bool:
    return any(form.match(text) for form in (_WHOLE, _LABELLED, _GO_ON)) or _is_data(text)


def _is_data(text: str) -> bool:
    """Whether a text is one JSON object, or a list of them."""
    stripped = text.strip()
    if not (stripped.startswith(("{", "[{")) and stripped.endswith(("}", "]"))):
        return False
    try:
        json.loads(stripped)
    except (ValueError, RecursionError):
        return False
    return True


def _is_expansion(text: str) -> bool:
    return len(text) >= _LEAST_EXPANSION_CHARS and (
        text[:1].isspace() or "\n#" in text or text.startswith(("#", "You are "))
    )


def _without_blocks(text: str) -> str:
    """Take out the elements whose tags are hosts', and the tags around what a person typed."""
    if "<" not in text:
        return text
    tags = list(_TAG.finditer(text))
    places: dict[str, list[int]] = defaultdict(list)
    for number, tag in enumerate(tags):
        places[tag[2].lower()].append(number)
    kept: list[str] = []
    position = 0
    seen: dict[str, int] = defaultdict(int)
    for number, tag in enumerate(tags):
        name = tag[2].lower()
        seen[name] += 1
        if tag.start() < position:
            continue
        if name in _PERSONS:
            kept.append(text[position : tag.start()])
            position = tag.end()
        elif name not in _MARKUP and _HOSTS.fullmatch(name):
            kept.append(text[position : tag.start()])
            kept.append(f"\n\n{TAKEN_OUT}\n\n" if _begins_line(text, tag.start()) else "\n")
            position = (
                tag.end() if tag[1] else _end_of(tags, places[name], seen[name] - 1, len(text), tag.end())
            )
            del number
    kept.append(text[position:])
    return "".join(kept)


def _begins_line(text: str, place: int) -> bool:
    return not text[text.rfind("\n", 0, place) + 1 : place].strip()


def _end_of(tags: list[re.Match[str]], places: list[int], first: int, end: int, single: int) -> int:
    """Where the element ends that the tag at `places[first]` opens.

    An element that is not closed as often as opened ends at its last closing tag; without one only a host's runs to the end.
    """
    depth, last = 0, -1
    for place in places[first:]:
        tag = tags[place]
        if tag[1]:
            depth, last = depth - 1, tag.end()
            if depth == 0:
                return last
        else:
            depth += 1
    if last >= 0:
        return last
    if not _begins_line(tags[places[first]].string, tags[places[first]].start()) and any(
        tags[place][1] for place in places[:first]
    ):
        return single  # words about the element above
    return end if re.fullmatch(r"[a-z]+(?:[-_][a-z]+)+", tags[places[first]][2]) else single
