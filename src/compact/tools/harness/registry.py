"""Parts by name: the built-in ones, those registered in Python, and those that installed packages offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from compact.errors import ConfigError

Part = TypeVar("Part", bound=Callable[..., Any])


class Registry(Generic[Part]):
    """The parts of one kind. A name that is not known here is looked for among the entry points of `group`."""

    def __init__(self, what: str, group: str, built_in: Mapping[str, Part]) -> None:
        self._what = what
        self._group = group
        self.parts = dict(built_in)
        """What is known so far, by name; entry points are added when they are first asked for."""

    @property
    def names(self) -> list[str]:
        """Every name that can be asked for."""
        return sorted({*self.parts, *(point.name for point in entry_points(group=self._group))})

    def register(self, name: str, part: Part) -> Part:
        """Makes a part known under a name, in the place of whatever had it."""
        self.parts[name] = part
        return part

    def get(self, wanted: str | Part) -> Part:
        """The part of that name, or the given one itself.

        Raises:
            ConfigError: there is none; lists those there are.
        """
        if not isinstance(wanted, str):
            return wanted
        if wanted not in self.parts:
            offered = [point for point in entry_points(group=self._group) if point.name == wanted]
            if not offered:
                raise ConfigError(
                    f"there is no {self._what} {wanted!r}", hint=f"Known: {', '.join(self.names)}"
                )
            self.parts[wanted] = offered[0].load()
        return self.parts[wanted]
