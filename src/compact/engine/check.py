"""The promises, checked on a result before it replaces anything; and the error that says what takes the room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.engine.context import Context, Row
from compact.engine.plan import newest_of_user
from compact.errors import CompactError, InsufficientBudget
from compact.messages import legality
from compact.messages.compaction_blocks import has_block
from compact.messages.legality import ModelRules, Violation, message_violations, structure_violations
from compact.tokens.meter import REPLY_TOKENS
from compact.tokens.models import model_table

__all__ = ["Violation", "check_budget", "check_pinned", "check_protected", "check_result", "violations"]


def violations(
    messages: Sequence[Any] | Mapping[str, Any],
    dialect: str | None = None,
    in_flight: bool = True,
    model: str | None = None,
    previous: Sequence[Any] | Mapping[str, Any] | None = None,
) -> list[Violation]:
    """Return every reason why a provider would refuse this list, in the order of the messages; empty means legal.

    Args:
        messages: The host's list, in any dialect, or a request body with `system`, `tools` and `messages`.
        dialect: Its dialect; detected if not given.
        in_flight: Whether the newest batch of calls may still wait for results. True suits a history between two
            steps, False a request that is about to be sent.
        model: The model that is asked. Without it, no rule of a single model is looked at.
        previous: What was sent before, as a list or a request body. For a model that checks what stands before a thinking
            block, every block is reported whose prefix has changed since, and every one behind a block that was left out.

    Raises:
        MessageError: the list is not recognisable, or an entry is not a message.
    """
    rules = ModelRules(checks_prefixes=model is not None and model_table().thinking(model).preserved)
    return legality.violations(messages, dialect, in_flight, rules, previous)


def check_pinned(context: Context) -> None:
    """Refuse a pass that cannot succeed.

    Raises:
        InsufficientBudget: what is pinned is larger than the budget.
    """
    pinned = sum(context.tokens_of(unit) for unit in context.units if unit.pinned)
    if pinned > context.rules.budget:
        last = max((place for place, unit in enumerate(context.units) if unit.kind != "summary"), default=-1)
        users = newest_of_user(context)
        stays = [
            n
            for place, unit in enumerate(context.units)
            if unit.pinned or place == last or unit.start in users
            for n in range(unit.start, unit.stop)
        ]
        raise _insufficient(context.with_rows([context.rows[n] for n in stays]))


def check_budget(context: Context) -> None:
    """Refuse rows that do not fit.

    Raises:
        InsufficientBudget: they are larger than the budget; says what takes the room.
    """
    if context.tokens > context.rules.budget:
        raise _insufficient(context)


def check_result(before: Sequence[Row], after: Context) -> None:
    """Refuse a result that breaks a promise.

    Raises:
        CompactError: it is illegal for its dialect, a protected message is missing, moved or changed, or a message that
            a stage wrote is passed off as the host's own.
        InsufficientBudget: it does not fit.
    """
    dialect = after.desk.dialect
    problems = structure_violations([row.message for row in after.rows], dialect)
    for row in after.rows:
        if row.source is None:  # a message that compact wrote
            problems += message_violations(dialect.read(dialect.write(row.message)), dialect)
    if problems:
        raise CompactError(f"the result would be illegal: {problems[0].message}", rule=problems[0].rule)
    check_budget(after)
    check_protected(before, after)
    own = {row.source: row.own for row in before}
    if any(row.source is not None and row.own is not own.get(row.source) for row in after.rows):
        raise CompactError(
            "the result would pass off a changed message as the host's own",
            hint="A stage makes the row of a changed message with `context.desk.row`",
        )


def check_protected(before: Sequence[Row], after: Context) -> None:
    """Refuse an empty result, and one in which a protected message is missing, moved or changed.

    Raises:
        CompactError: it is one of these.
    """
    if before and not after.rows:
        raise CompactError("the result would be an empty list")
    # What the provider compacted before is in its newest block.
    pinned = [
        id(row.own)
        for row in before
        if after.is_pinned(row.own) and not (after.native is not None and has_block(row.own))
    ]
    found = set(pinned)
    standing = [place for row in after.rows if (place := id(row.own)) in found]
    if not found.issubset(standing):
        raise CompactError("the result would lack a protected message")
    if standing != pinned:
        raise CompactError("the result would move or repeat a protected message")


def _insufficient(context: Context) -> InsufficientBudget:
    """The error that names the largest pieces, in the model's own tokens, and what moves each."""
    rules, scale = context.rules, context.desk.scale
    shares: dict[str, int] = {}
    for what, tokens in _pieces(context):
        shares[what] = shares.get(what, 0) + tokens
    shares[_REPLY] = REPLY_TOKENS
    shares = {what: scale(tokens) for what, tokens in shares.items()}
    if rules.fixed:
        shares[_BESIDE] = rules.fixed
    largest = sorted(shares, key=lambda what: -shares[what])
    needed = sum(shares.values())
    table = ", ".join(f"{what} {shares[what]:,}" for what in largest)
    return InsufficientBudget(
        f"what must stay takes {needed:,} tokens, the budget is {rules.request_budget:,} of a window of "
        f"{rules.window:,} ({table})",
        hint="; ".join([_advice(what) for what in largest[:2] if shares[what] * 10 >= needed] + [_LARGER]),
        needed=needed,
        budget=rules.request_budget,
        shares=shares,
    )


_BESIDE = "tools and system prompt"
_REPLY = "the start of the reply"
_USERS = "the user's newest message"
_NEWEST_CALL, _NEWEST_RESULT, _NEWEST_WORDS = "the newest call", "the newest result", "the newest message"
_LARGER = "use a model with a larger window, or keep less of it free (policy.hard_cap_buffer, policy.reserve_output_tokens)"
_ADVICE = {
    _BESIDE: "Send fewer or shorter tools, or shorten the system prompt",
    _USERS: "Put long material of the user into a file or a tool result, which can be moved out",
    _NEWEST_CALL: "Let the agent write in smaller pieces: the arguments of the newest call stay whole",
    _NEWEST_RESULT: "Return pictures and documents as paths: only text can be moved out (offload.large_result_tokens)",
}


def _advice(what: str) -> str:
    if what in _ADVICE:
        return _ADVICE[what]
    if what.endswith("prompt"):
        return f"Shorten the {what}"
    return (
        "Protect less (policy.roles_never_prune)" if what.startswith("protected") else "Send shorter messages"
    )


def _pieces(context: Context) -> Iterator[tuple[str, int]]:
    """What every row is, with its raw tokens."""
    users = newest_of_user(context)
    last = context.units[-1] if context.units else None
    for unit in context.units:
        for n in range(unit.start, unit.stop):
            row = context.rows[n]
            message = row.message
            if unit.pinned:
                is_prompt = message.role in ("system", "developer")
                yield f"{message.role} prompt" if is_prompt else f"protected {message.role}", row.tokens
            elif n in users:
                yield _USERS, row.tokens
            elif unit is last:
                yield (
                    (_NEWEST_CALL if message.calls else _NEWEST_RESULT if message.results else _NEWEST_WORDS),
                    row.tokens,
                )
            else:
                yield message.role, row.tokens
