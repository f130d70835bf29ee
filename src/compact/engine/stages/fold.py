"""Write one summary message for a number of rows. The message says where the archive keeps what it replaces.

What a summarizer writes is verified before it stands for anything. If verification fails, the summarizer is asked again where
that can help; otherwise the fallback is used. The user's words are added behind the stages (`engine.user_words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from compact.engine.context import Context, Desk, Fold, Row, total
from compact.engine.effects import Asking, Emit
from compact.engine.frames import frame, step_of, summary_in
from compact.events import Failure, Fallback
from compact.messages import Message, Part, Text
from compact.messages.dialects import Dialect
from compact.messages.hygiene.sanitizing import valid_text
from compact.messages.legality import MARKED
from compact.messages.message import is_cache_point
from compact.summaries.checking.attribution import Heard
from compact.summaries.checking.claims import SourceText
from compact.summaries.checking.facts import appendix, facts_of
from compact.summaries.checking.verification import Defect, Expected, Verdict, verify
from compact.summaries.request import LEAST_ASKED, Reply, SummaryRequest, cite_step
from compact.summaries.voices import defuse_summary, fitting_lines

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
    asked = min(context.rules.summary_tokens, room)
    folded = {id(row) for row in (*rows, *earlier)}
    request = SummaryRequest(
        messages=tuple(row.quotable for row in rows),
        dialect=desk.dialect.NAME,
        around=_said_around(rows, context),
        strategy=context.rules.strategy,
        max_tokens=asked,
        record_tokens=room - asked,
        kept=tuple(row.quotable for row in context.rows if id(row) not in folded),
        values=context.values,
        previous=summary_in(previous),
        positions=(places[0], places[-1]),
        numbers=tuple(place + 1 for place in places[: len(rows)]),
        previous_step=step_of(previous),
        pointers=desk.written.pointers,
        instructions=tuple(entry.text for entry in context.ledger if entry.status == "stands"),
        withdrawn=tuple(entry.text for entry in context.ledger if entry.status != "stands"),
    )
    body = yield from _write_body(request, desk, total(rows), by_code or not rows)
    step, summary = context.step, body.text
    if not summary and request.previous and request.max_tokens >= _LEAST_BODY:
        step = request.previous_step
        summary = _cut_to_fit(cite_step(request.previous, step), request, desk)
    # Arguments of a call may carry a NUL as data. In a text it would make the whole list illegal.
    text = frame(step, "", valid_text(summary), where)
    message = Message("assistant", summary_parts(text, [*earlier, *rows], desk.dialect))
    return Fold(
        row=Row(message, desk.count(message), None, "summary" if summary else "ledger"),
        text=text,
        input_tokens=total(rows) + total(earlier),
        input_messages=len(rows) or len(earlier),
        is_empty=not (body.text or body.failed or (carry_instructions and context.ledger)),
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
            return (yield from _complete(verdict, request, asked.strategy, desk))
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


def _said_around(rows: Sequence[Row], context: Context) -> tuple[str, ...]:
    """What people say in the rest of the context. A summary of the agent's work may speak of what it was asked."""
    folded = {id(row) for row in rows}
    rest = (
        row
        for row in context.rows
        if row.message.starts_turn and id(row) not in folded and not context.is_summary(row.message)
    )
    return tuple(row.quotable.text for row in rest)


def _verify(reply: Reply, request: SummaryRequest, desk: Desk, input_tokens: int) -> Verdict:
    """Verify a reply against the available room. A retry asks for less, but whatever fits is accepted."""
    expected = Expected(
        source=SourceText.of(request.messages, request.previous, *request.instructions, *request.around),
        limit=request.max_tokens,
        count=desk.count_text,
        by_model=reply.by_model,
        previous=request.previous,
        input_tokens=input_tokens,
        heard=Heard.of(request.messages, request.previous, (*request.instructions, *request.around)),
    )
    return verify(desk.redact(reply.text), expected, cut_off=reply.cut_off, refused=reply.refused)


def _complete(verdict: Verdict, request: SummaryRequest, strategy: str, desk: Desk) -> Asking[Body]:
    """Add the facts that the text forgot, and the record, as far as they fit."""
    text = verdict.text
    room = request.max_tokens - desk.count_text(text) - 2
    added = desk.redact(
        appendix(facts_of(request.messages, desk.write_tools, request.pointers), text, room, desk.count_text)
    )
    whole = f"{text}\n\n{added}" if added else text
    # Masks may be longer than what they hide.
    text = whole if desk.count_text(whole) <= request.max_tokens else text
    record = yield from _write_record(request, text, desk)
    return Body(f"{text}\n\n{record}" if record else text, "configured", strategy, verdict.struck)


def _write_record(request: SummaryRequest, summary: str, desk: Desk) -> Asking[str]:
    """Return the record beside a summary: what room it has is what the summary left."""
    room = _room(request) - desk.count_text(summary) - 2
    if not request.record_tokens or room < _LEAST_BODY:
        return ""
    said = Message("assistant", (Text(summary),))
    asked = replace(request, source="record", record_tokens=room, kept=(*request.kept, said))
    try:
        reply = _as_reply((yield asked))
    except Exception as problem:
        yield _failure(type(problem).__name__, str(problem), "none", asked, desk)
        return ""
    record = desk.redact(reply.text.strip())
    return record if desk.count_text(record) <= room else fitting_lines(record, room, desk.count_text)


def _room(request: SummaryRequest) -> int:
    """Tokens for a summary and its record together."""
    return request.max_tokens + request.record_tokens


def _cut_to_fit(text: str, request: SummaryRequest, desk: Desk) -> str:
    masked = desk.redact(text.strip())
    if desk.count_text(masked) <= _room(request):
        return masked
    return fitting_lines(masked, _room(request), desk.count_text)


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


def without_mark_of_kept(made: Fold, gone: Sequence[Row], desk: Desk) -> Fold:
    """The fold with the cache mark of the rows that really go. One that stays carries its mark itself."""
    if desk.dialect.NAME not in MARKED:
        return made
    message = Message("assistant", summary_parts(made.row.message.text, gone, desk.dialect))
    return replace(made, row=replace(made.row, message=message))


def summary_parts(text: str, rows: Sequence[Row], dialect: Dialect) -> tuple[Part, ...]:
    """The parts of a summary: its text. It takes over a cache mark of what it replaces."""
    for row in reversed(rows if dialect.NAME in MARKED else ()):
        for part in row.message.parts:
            if is_cache_point(part):
                return Text(text), part
            mark = part.origin.get("cache_control") if isinstance(part.origin, dict) else None
            if mark is not None:
                return (Text(text, origin={"type": "text", "text": text, "cache_control": mark}),)
    return (Text(text),)
