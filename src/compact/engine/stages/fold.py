"""Write one summary message for a number of rows. The message says where the archive keeps what it replaces.

Code carries the user's own instructions verbatim, whoever writes the rest. What a summarizer writes is verified before it
stands for anything. If verification fails, the summarizer is asked again where that can help; otherwise the fallback is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from compact.engine.context import Context, Desk, Fold, Row, total
from compact.engine.effects import Asking, Emit
from compact.engine.frames import frame, instructions_in, step_of, summary_in
from compact.events import Failure, Fallback
from compact.messages import Message, Text
from compact.messages.cues import CONSTRAINT
from compact.messages.dialects import Dialect
from compact.messages.excerpts import head_and_tail
from compact.messages.hygiene.sanitizing import valid_text
from compact.summaries.checking.attribution import Heard
from compact.summaries.checking.claims import SourceText
from compact.summaries.checking.facts import appendix, facts_of
from compact.summaries.checking.verification import Defect, Expected, Verdict, verify
from compact.summaries.request import LEAST_ASKED, Reply, SummaryRequest, cite_step
from compact.summaries.voices import INSTRUCTIONS, defuse_summary, fitting_lines

_TAGGED = re.compile(r"<([a-z]+(?:-[a-z]+)+)>.*?</\1>", re.DOTALL)
_LONGEST_FRAMING = 8_000
_INSTRUCTION_SHARE = 3
"""The user's own words take at most one part in this many of a summary."""
_ONE_INSTRUCTION = 2
"""A single instruction takes at most one part in this many of that."""
_LEAST_BODY = 8
"""Tokens. Less room than this is not filled at all."""
_SHORTER_RETRIES = 2
"""How often a summary that is too long is requested again, each time with half the tokens."""
_LEAST_STRATEGY = "brief"
"""The strategy that a model which refused is asked for instead."""
_SHOWN_CHARS = 500


@dataclass(frozen=True, slots=True)
class Body:
    """The text of a summary for the context. The fields are those of `Fold`."""

    text: str
    writer: Literal["configured", "extractive", "none"]
    strategy: str
    struck: tuple[str, ...] = ()
    failed: bool = False
    """Whether every summarizer failed, so that the history is pruned without a summary."""


def fold(
    rows: Sequence[Row],
    context: Context,
    *,
    max_tokens: int,
    places: Sequence[int],
    earlier: Sequence[Row] = (),
    carry_instructions: bool = True,
    by_code: bool = False,
) -> Asking[Fold]:
    """Write one assistant message for these rows, of at most `max_tokens` tokens in all.

    `places` says where each row stands in the archived transcript; `earlier` are the summaries that it takes in. They are never
    read as words of the agent, because they quote others. With `by_code`, and where there is nothing else, no model is asked. If nobody writes a summary, the earlier one goes on standing under its own number;
    without one, the message is a ledger.
    """
    desk, where = context.desk, context.history_path
    previous = "\n\n".join(row.message.text for row in earlier)
    empty = Message("assistant", (Text(frame(context.step, "", " ", where)),))
    room = max_tokens - desk.count(empty) - 2
    kept = _list_instructions(rows, previous, room // _INSTRUCTION_SHARE, desk) if carry_instructions else ""
    request = SummaryRequest(
        messages=tuple(row.quotable for row in rows),
        dialect=desk.dialect.NAME,
        strategy=context.rules.strategy,
        max_tokens=room - desk.count_text(kept),
        previous=summary_in(previous),
        positions=(places[0], places[-1]),
        numbers=tuple(place + 1 for place in places[: len(rows)]),
        previous_step=step_of(previous),
        pointers=desk.written.pointers,
        instructions=tuple(instructions_in(previous)),
    )
    body = yield from _write_body(request, desk, total(rows), by_code or not rows)
    step, summary = context.step, body.text
    if not summary and request.previous and request.max_tokens >= _LEAST_BODY:
        step = request.previous_step
        summary = _cut_to_fit(cite_step(request.previous, step), request, desk)
    if not summary and carry_instructions:
        kept = _list_instructions(rows, previous, room, desk)  # a ledger has the whole room for them
    # Arguments of a call may carry a NUL as data. In a text it would make the whole list illegal.
    text = frame(step, valid_text(kept), valid_text(summary), where)
    message = Message("assistant", (summary_part(text, [*earlier, *rows], desk.dialect),))
    return Fold(
        row=Row(message, desk.count(message), None, "summary" if summary else "ledger"),
        text=text,
        input_tokens=total(rows) + total(earlier),
        input_messages=len(rows) or len(earlier),
        is_empty=not (kept or body.text or body.failed),
        positions=request.positions,
        step=context.step,
        transcript=where,
        writer=body.writer if body.text else "none",
        strategy=body.strategy,
        struck=body.struck,
    )


# --- asking and checking


def _write_body(request: SummaryRequest, desk: Desk, input_tokens: int, by_code: bool) -> Asking[Body]:
    """Return the summary's text: the configured summarizer's, or else the fallback's."""
    if request.max_tokens < _LEAST_BODY:
        return Body("", "none", request.strategy)
    if by_code and desk.fallback != "extractive":
        return Body("", "none", request.strategy)
    if not by_code:
        body = yield from _ask(request, desk, input_tokens)
        if body is not None:
            return body
        if desk.fallback != "extractive":
            return Body("", "none", request.strategy, failed=True)
    return (yield from _extract(request, desk))


def _ask(request: SummaryRequest, desk: Desk, input_tokens: int) -> Asking[Body | None]:
    """Return a verified body of the configured summarizer, or None if it failed. Its failure is never raised."""
    asked, retries = request, _Retries()
    while True:
        try:
            reply = _as_reply((yield asked))
        except Exception as problem:
            yield _failure(type(problem).__name__, str(problem) or "no message", desk.fallback, asked, desk)
            return None
        if reply.trusted:
            return Body(_cut_to_fit(reply.text, request, desk), "extractive", asked.strategy)
        verdict = _verify(reply, request, desk, input_tokens)
        if verdict.defect is None:
            return _complete(verdict, request, asked.strategy, desk)
        again = retries.next_request(asked, verdict.defect)
        yield _rejection(verdict, asked, again, desk)
        if again is None:
            return None
        asked = again


@dataclass(slots=True)
class _Retries:
    """What may still be tried with a summarizer. Every retry uses up one of a fixed number."""

    shorter: int = _SHORTER_RETRIES
    simpler: int = 1

    def next_request(self, asked: SummaryRequest, defect: Defect) -> SummaryRequest | None:
        """The request to try next, or None if asking again cannot help."""
        if defect == "too_long" and self.shorter and asked.max_tokens // 2 >= LEAST_ASKED:
            self.shorter -= 1
            return replace(asked, max_tokens=asked.max_tokens // 2)
        if defect == "refusal" and self.simpler and asked.strategy != _LEAST_STRATEGY:
            self.simpler -= 1
            return replace(asked, strategy=_LEAST_STRATEGY)
        return None


def _extract(request: SummaryRequest, desk: Desk) -> Asking[Body]:
    """Return the body that code writes, or none if it fails."""
    extractive = replace(request, source="extractive")
    try:
        reply = _as_reply((yield extractive))
    except Exception as problem:
        yield _failure(type(problem).__name__, str(problem), "pruning-only", extractive, desk)
        return Body("", "none", request.strategy, failed=True)
    return Body(_cut_to_fit(reply.text, request, desk), "extractive", request.strategy)


def _as_reply(answer: Any) -> Reply:
    """The answer as text that can be sent: no lone surrogates, no control characters, none of our own markers."""
    reply = answer if isinstance(answer, Reply) else Reply("" if answer is None else answer)
    if not isinstance(reply.text, str):
        raise TypeError(f"a summarizer must give text, not {type(reply.text).__name__}")
    return reply if reply.trusted else replace(reply, text=defuse_summary(valid_text(reply.text)))


def _verify(reply: Reply, request: SummaryRequest, desk: Desk, input_tokens: int) -> Verdict:
    """Verify a reply against the available room. A retry asks for less, but whatever fits is accepted."""
    expected = Expected(
        source=SourceText.of(request.messages, request.previous),
        limit=request.max_tokens,
        count=desk.count_text,
        by_model=reply.by_model,
        previous=request.previous,
        input_tokens=input_tokens,
        heard=Heard.of(request.messages, request.previous, request.instructions),
    )
    return verify(desk.redact(reply.text), expected, cut_off=reply.cut_off, refused=reply.refused)


def _complete(verdict: Verdict, request: SummaryRequest, strategy: str, desk: Desk) -> Body:
    """Add the facts that the text forgot, as far as they fit."""
    text = verdict.text
    room = request.max_tokens - desk.count_text(text) - 2
    added = desk.redact(
        appendix(facts_of(request.messages, desk.write_tools, request.pointers), text, room, desk.count_text)
    )
    whole = f"{text}\n\n{added}" if added else text
    # Masks may be longer than what they hide.
    text = whole if desk.count_text(whole) <= request.max_tokens else text
    return Body(text, "configured", strategy, verdict.struck)


def _cut_to_fit(text: str, request: SummaryRequest, desk: Desk) -> str:
    masked = desk.redact(text.strip())
    if desk.count_text(masked) <= request.max_tokens:
        return masked
    return fitting_lines(masked, request.max_tokens, desk.count_text)


def _rejection(verdict: Verdict, asked: SummaryRequest, again: SummaryRequest | None, desk: Desk) -> Emit:
    fallback: Fallback = desk.fallback if again is None else "none"
    message = f"the summary was rejected ({verdict.defect}): {verdict.why}"
    if again is not None:
        message += f"; asked again for {again.strategy} in {again.max_tokens:,} tokens"
    details = {"reason": verdict.defect, "answer": verdict.text[:_SHOWN_CHARS]}
    return _failure("SummaryRejected", message, fallback, asked, desk, **details)


def _failure(
    kind: str, message: str, fallback: Fallback, asked: SummaryRequest, desk: Desk, **details: Any
) -> Emit:
    event = Failure(error_type=kind, message=desk.redact_output(valid_text(message)), fallback=fallback)
    context = {
        "strategy": asked.strategy,
        "max_tokens": asked.max_tokens,
        "source": asked.source,
        "input_messages": len(asked.messages),
    }
    return Emit(event, payload={**context, **details})


# --- the message


def summary_part(text: str, rows: Sequence[Row], dialect: Dialect) -> Text:
    """The text of a summary. It takes over a cache mark of what it replaces."""
    if dialect.NAME != "anthropic":
        return Text(text)
    for row in reversed(rows):
        for part in row.message.parts:
            mark = part.origin.get("cache_control") if isinstance(part.origin, dict) else None
            if mark is not None:
                return Text(text, origin={"type": "text", "text": text, "cache_control": mark})
    return Text(text)


def _list_instructions(rows: Sequence[Row], previous: str, room: int, desk: Desk) -> str:
    """List what the user said in these rows and before, newest first, as much as fits. A long entry is cut, not left out."""
    said = [row.quotable.text.strip() for row in rows if row.message.starts_turn]
    texts = list(dict.fromkeys([text for text in reversed(said) if text] + instructions_in(previous)))
    lines: dict[int, str] = {}
    room -= desk.count_text(INSTRUCTIONS) + 1
    all_fit = sum(desk.count_text(_as_bullet(text)) + 1 for text in texts) <= room
    for place in _by_weight(texts):
        text = texts[place]
        limit = room if all_fit else min(room, max(room // _ONE_INSTRUCTION, 24))
        if limit < 12:
            break
        fits = all_fit or desk.count_text(text) <= limit
        line = _as_bullet(text if fits else head_and_tail(text, limit, desk.count_text, "[...]"))
        cost = desk.count_text(line) + 1
        if cost <= room:
            lines[place] = line
            room -= cost
    return "\n".join([INSTRUCTIONS, *(lines[place] for place in sorted(lines))]) if lines else ""


def _as_bullet(text: str) -> str:
    return "- " + text.replace("\n", "\n  ")


def _by_weight(texts: Sequence[str]) -> list[int]:
    """Order instructions by their claim to room: the newest, the first of the session, rules, then the rest.

    Messages that the agent's own program wrote in the user's name come last.
    """
    framing = [_is_framing(text) for text in texts]
    own = [place for place, frame in enumerate(framing) if not frame]
    ends = (own[:1], own[-1:])
    return sorted(
        range(len(texts)),
        key=lambda place: (
            framing[place],
            *(place not in end for end in ends),
            CONSTRAINT.search(texts[place]) is None,
            place,
        ),
    )


def _is_framing(text: str) -> bool:
    """Whether a message consists only of blocks like `<local-command-caveat>...</local-command-caveat>`."""
    return len(text) < _LONGEST_FRAMING and not _TAGGED.sub("", text).strip()
