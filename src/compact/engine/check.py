"""The promises, checked on a result before it replaces anything; and the error that says what takes the room."""

from __future__ import annotations

from collections.abc import Sequence

from compact.engine.context import Context, Row, total
from compact.errors import CompactError, InsufficientBudget
from compact.messages.legality import Violation, message_violations, structure_violations, violations

__all__ = ["Violation", "check_budget", "check_pinned", "check_result", "violations"]


def check_pinned(context: Context) -> None:
    """Refuse a pass that cannot succeed.

    Raises:
        InsufficientBudget: what is pinned is larger than the budget.
    """
    pinned = sum(context.tokens_of(unit) for unit in context.units if unit.pinned)
    if pinned > context.rules.budget:
        raise _insufficient(context)


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
    if before and not after.rows:
        raise CompactError("the result would be an empty list")
    if problems:
        raise CompactError(f"the result would be illegal: {problems[0].message}", rule=problems[0].rule)
    check_budget(after)
    pinned = [id(row.message) for row in before if after.is_pinned(row.message)]
    found = set(pinned)
    standing = [place for row in after.rows if (place := id(row.message)) in found]
    if not found.issubset(standing):
        raise CompactError("the result would lack a protected message")
    if standing != pinned:
        raise CompactError("the result would move or repeat a protected message")
    own = {row.source: row.message for row in before}
    if any(row.source is not None and row.message is not own.get(row.source) for row in after.rows):
        raise CompactError(
            "the result would pass off a changed message as the host's own",
            hint="A stage makes the row of a changed message with `context.desk.row`",
        )


def _insufficient(context: Context) -> InsufficientBudget:
    rules, shares = context.rules, dict[str, int]()
    for unit in context.units:
        for row in context.rows[unit.start : unit.stop]:
            what = f"protected {row.message.role}" if unit.pinned else row.message.role
            shares[what] = shares.get(what, 0) + row.tokens
    if rules.fixed:
        shares["tools and system prompt"] = rules.fixed
    table = ", ".join(f"{what} {tokens:,}" for what, tokens in sorted(shares.items(), key=lambda kv: -kv[1]))
    needed = total(context.rows)
    return InsufficientBudget(
        f"what must stay takes {needed:,} tokens, the budget for messages is {rules.budget:,} ({table})",
        hint="Protect less, shorten the system prompt or the tools, or use a model with a larger context window",
        needed=needed,
        budget=rules.budget,
        shares=shares,
    )
