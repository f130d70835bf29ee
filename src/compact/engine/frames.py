"""The text of the message that stands for folded history, and how it is read again. Pure.

    <COMPACT-SUMMARY v3>                                       <COMPACT-LEDGER v3>
    ## What the user asked, in their words, newest first       ## What the user asked, in their words, newest first
    - ...                                                      - ...

    the summary                                                [Archived: read_file("..."), ...]
                                                               </COMPACT-LEDGER>
    [Archived: read_file("..."), ...]
    </COMPACT-SUMMARY>

A ledger stands where nobody wrote a summary. Both carry the user's instructions verbatim and say where the archive keeps
what they replace.
"""

from __future__ import annotations

import re

from compact.messages.message import LEDGER_OPENS, SUMMARY_OPENS
from compact.summaries.request import cite_step
from compact.summaries.voices import INSTRUCTIONS

_SUMMARY = (SUMMARY_OPENS, "</COMPACT-SUMMARY>")
_LEDGER = (LEDGER_OPENS, "</COMPACT-LEDGER>")
_ARCHIVED = "[Archived:"
_OPENED = r"<(?P<kind>COMPACT-(?:SUMMARY|LEDGER)) v(?P<step>\d{1,9})>\n"
_FRAME = re.compile(
    rf"^{_OPENED}(?P<body>.*?)^{re.escape(_ARCHIVED)} [^\n]*\]\n</(?P=kind)>$", re.DOTALL | re.MULTILINE
)
_CARRYING = re.compile(rf"{_OPENED}{re.escape(INSTRUCTIONS)}\n")


def frame(step: int, instructions: str, summary: str, where: str) -> str:
    """The text for the context: a summary with its instructions, or a ledger if there is no summary."""
    reading = f'{_ARCHIVED} read_file("{where}"), grep("...", "/conversation_history/"), search("...")]'
    opens, closes = _SUMMARY if summary else _LEDGER
    pieces = [piece for piece in (instructions, summary, reading) if piece]
    return f"{opens}{step}>\n" + "\n\n".join(pieces) + f"\n{closes}"


def is_frame(text: str) -> bool:
    """Whether a text has the form of one whole frame. Anybody can write such a text; see `SessionState.summaries`."""
    found = _FRAME.match(text)
    return found is not None and found.end() == len(text)


def step_of(text: str) -> int:
    """The step of the first summary in a text; of a ledger if there is no summary, and 0 without either."""
    steps = {found["kind"]: int(found["step"]) for found in reversed(list(_FRAME.finditer(text)))}
    return steps.get("COMPACT-SUMMARY") or next(iter(steps.values()), 0)


def instructions_in(text: str) -> list[str]:
    """The user's instructions that frames carry."""
    found: list[str] = []
    # Only directly after the opening marker, because anywhere else the heading may be quoted text.
    for opened in _CARRYING.finditer(text):
        first = len(found)
        for line in text[opened.end() :].splitlines():
            if line.startswith("- "):
                found.append(line[2:])
            elif line.startswith("  ") and len(found) > first:
                found[-1] += f"\n{line[2:]}"
            else:
                break
    return found


def summary_in(text: str) -> str:
    """What summarizers wrote into frames: no markers, no carried instructions. A text without a frame is returned as it is.

    Citations name their step, except those of the first summary, whose step is `step_of(text)`.
    """
    own = step_of(text)
    bodies = [(int(found["step"]), _without_instructions(found["body"])) for found in _FRAME.finditer(text)]
    if not bodies:
        return text.strip()
    return "\n\n".join(body if step == own else cite_step(body, step) for step, body in bodies if body)


def _without_instructions(body: str) -> str:
    if body.startswith(f"{INSTRUCTIONS}\n"):
        body = body.partition("\n\n")[2]
    return body.strip()
