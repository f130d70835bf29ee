"""Every error that compact raises on purpose.

    CompactError
    ├── ConfigError          a setting is wrong; says which field, what is allowed, what was given
    ├── MessageError         an entry is not a message of its dialect; says which index
    ├── TranscriptError      a file cannot be read as a transcript; says which line
    ├── MissingExtra         an optional part is not installed; says the install line
    ├── RedactionError       a redaction rule is refused; says which and why
    ├── ArchiveError         the archive could not take or give back a record
    ├── WindowTooSmall       the model's window cannot hold a working session
    ├── InsufficientBudget   what must stay is larger than the budget
    └── ContextOverflow      the provider refused the request, and nothing smaller is left to try

Each carries `code` (its class name), `hint` (what to do next) and its numbers in `details`, readable as
attributes too: `error.index`, `error.budget`.
"""

from __future__ import annotations

from typing import Any


class CompactError(Exception):
    """What happened, with numbers; `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    @property
    def code(self) -> str:
        """A stable name for programs: the class's own."""
        return type(self).__name__

    def __getattr__(self, name: str) -> Any:
        # `details` itself is missing while an exception is being unpickled.
        details = self.__dict__.get("details", {})
        if name in details:
            return details[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process pools; the default would drop the keyword fields.
        return (_rebuild, (type(self), self.message, self.hint, self.details))


def _rebuild(kind: type[CompactError], message: str, hint: str, details: dict[str, Any]) -> CompactError:
    return kind(message, hint=hint, **details)


class ConfigError(CompactError):
    """A setting is wrong. `path` is the field's dotted path."""


class MessageError(CompactError):
    """An entry is not a message of its dialect. `index` is its place in the list."""


class TranscriptError(CompactError):
    """A file cannot be read as a transcript. `path` and, where there is one, `line` say where."""


class MissingExtra(CompactError):
    """An optional part is not installed. `extra` is its name."""

    @classmethod
    def named(cls, extra: str, needed_for: str) -> MissingExtra:
        """The error for a missing extra, with the exact line that installs it."""
        return cls(
            f"{needed_for} needs the extra {extra!r}",
            hint=f"Install it with: pip install 'compact-context[{extra}]'",
            extra=extra,
        )


class RedactionError(CompactError):
    """A redaction rule is refused. `rule` is its id."""


class ArchiveError(CompactError):
    """The archive could not take or give back a record. `key` names it."""


class WindowTooSmall(CompactError):
    """The model's window cannot hold a working session. `tokens`, `minimum`, `source`."""


class InsufficientBudget(CompactError):
    """What must stay is larger than the budget. `budget`, `needed` and a table in `shares`."""


class ContextOverflow(CompactError):
    """The provider refused the request as too long, and nothing smaller is left to try."""
