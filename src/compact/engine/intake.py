"""What happens to messages when they are first seen: they are read, made legal, and huge results go to the archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compact.engine.effects import Asking, Emit, KeepRemoved
from compact.engine.rows import Desk, Row
from compact.engine.stages.offload import is_large, offload
from compact.engine.state import Working
from compact.errors import ArchiveError
from compact.events import Failure
from compact.messages import Message, dialects, hygiene
from compact.messages.dialects import Dialect
from compact.messages.dialects.wire import is_plain, plain
from compact.messages.hygiene.verified import Verified
from compact.tokens import Meter


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The messages of one call, held against what was seen of the session before."""

    meter: Meter
    desk: Callable[[Dialect], Desk]
    verified: Verified
    moved: dict[int, tuple[Any, Any]]
    """Results that went to the archive, by their place in the host's list, and what stands for them."""
    max_turns: int | None

    def dialect(self, named: str | None, items: Sequence[Any]) -> tuple[int, Dialect]:
        """How many of the messages were looked at before, and the dialect of all."""
        seen, known = self.verified.seen(items)
        if named is not None:
            wanted = dialects.get(named)
            return seen if wanted is known else 0, wanted
        if known is None or not all(_fits(item, known) for item in items[seen:]):
            return 0, dialects.detect(items)
        return seen, known

    def cleaned(self, working: Working, dialect: Dialect, seen: int) -> Asking[Working]:
        """A legal list. What is removed lies in the archive first; if it cannot, the list stays as it is."""
        if self.max_turns is None and self.verified.is_legal(working.items, dialect, seen):
            return working
        report = hygiene.clean_report(working.items, self.max_turns, dialect.NAME)
        if report.messages is working.items:
            return working
        try:
            yield KeepRemoved(
                [removed.message for removed in report.removed],
                [removed.reason for removed in report.removed],
            )
        except ArchiveError as problem:
            yield Emit(Failure.of(problem, "none"))
            return working
        places = {id(item): source for item, source in zip(working.items, working.sources, strict=True)}
        sources = [places.get(id(item)) for item in report.messages]
        desk = self.desk(dialect)
        # What was mended is compact's own writing: masked, so that it is the same after a restart.
        items = [
            item if id(item) in places else dialect.write(desk.rewrite(dialect.read(item)))
            for item in report.messages
        ]
        return Working(items, sources)

    def offloaded(self, working: Working, dialect: Dialect, seen: int) -> Asking[Working]:
        """A huge result goes to the archive when it is first seen, whatever the total."""
        desk = self.desk(dialect)
        large = [
            n
            for n in range(seen, len(working.items))
            if self.meter.count_item(working.items[n], dialect) > desk.large_result_tokens
        ]
        if not large and not self.moved:
            return working
        items, sources = list(working.items), list(working.sources)
        changed = self._moved_before(items, sources)
        for n in large:
            message = dialect.read(items[n])
            if message.protected or not any(is_large(result.text, desk) for result in message.results):
                continue
            callers = _callers(items[:n], dialect, message)
            if any(caller.protected for caller in callers):
                continue  # a protected call protects its pair
            names = {call.id: call.name for caller in callers for call in caller.calls}
            row = Row(message, desk.large_result_tokens + 1, sources[n])
            try:
                (moved,) = yield from offload([row], desk, names=names)
            except ArchiveError as problem:
                yield Emit(Failure.of(problem, "none"))
                continue
            if moved is not row:
                pointer, source = dialect.write(moved.message), sources[n]
                if source is not None:
                    self.moved[source] = (items[n], pointer)
                items[n], sources[n], changed = pointer, None, True
        return Working(items, sources) if changed else working

    def _moved_before(self, items: list[Any], sources: list[int | None]) -> bool:
        """A host that passes its full history shows us a moved result again: the same pointer takes its place."""
        changed = False
        for n, source in enumerate(sources):
            before = self.moved.get(source) if source is not None else None
            if before is not None and items[n] == before[0]:
                items[n], sources[n], changed = before[1], None, True
        return changed


def _callers(items: Sequence[Any], dialect: Dialect, message: Message) -> list[Message]:
    """The messages with the calls that a message answers, found from the end."""
    wanted = {result.call_id for result in message.results}
    found: list[Message] = []
    for item in reversed(items):
        if not wanted:
            break
        caller = dialect.read(item)
        if wanted & {call.id for call in caller.calls}:
            wanted -= {call.id for call in caller.calls}
            found.append(caller)
    return found


def _fits(item: Any, dialect: Dialect) -> bool:
    try:
        return is_plain(item) or bool(dialect.claim(plain(item)))
    except ValueError:
        return False
