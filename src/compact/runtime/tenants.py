"""What a manager keeps of each tenant beside its sessions. None of it is seen by another tenant."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from weakref import WeakValueDictionary

from compact.archive.keys import check_tenant
from compact.config import CompactConfig
from compact.runtime.continuing import make_belongs
from compact.runtime.model_rules import Models
from compact.runtime.resolver import SessionResolver
from compact.runtime.services import Services
from compact.runtime.session_cache import Statistics
from compact.runtime.summarizing import Breaker
from compact.runtime.tool_results import ToolResults

MOST_TENANTS = 1024
"""Tenants that are remembered without a session in memory. Others begin anew, with what the archive holds."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Tenant:
    """One tenant of a manager."""

    name: str | None
    """None: the sessions that belong to no tenant."""
    models: Models
    """Meters, windows and rules by model, with what providers have told this tenant."""
    breaker: Breaker
    """Pauses the summarizer if it failed this tenant repeatedly."""
    statistics: Statistics
    resolver: SessionResolver
    """Names the sessions of calls that have no explicit id."""
    tool_results: ToolResults
    """Tool results that hosts hand in one by one."""


class Tenants:
    """The tenants of one manager, by name. Thread-safe."""

    def __init__(
        self,
        config: CompactConfig,
        services: Services,
        models: Models,
        results_of: Callable[[str | None, SessionResolver], ToolResults],
        *,
        warn: Callable[..., None],
        new_id: Callable[[], str] | None,
    ) -> None:
        self._config = config
        self._services = services
        self._models = models
        self._results_of = results_of
        self._warn = warn
        self._new_id = new_id
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[str | None, Tenant] = WeakValueDictionary()
        """A tenant that somebody uses is never made twice."""
        self._recent: OrderedDict[str | None, Tenant] = OrderedDict()

    def get(self, name: str | None) -> Tenant:
        """Return a tenant.

        Raises:
            ConfigError: the name is not a non-empty string.
        """
        if name is not None:
            check_tenant(name)
        with self._lock:
            found = self._known.get(name)
            if found is None:
                found = self._known[name] = self._make(name)
            self._recent[name] = found
            self._recent.move_to_end(name)
            if len(self._recent) > MOST_TENANTS:
                self._recent.popitem(last=False)
        return found

    def _make(self, name: str | None) -> Tenant:
        recovery, whole = self._config.recovery, self._services.statistics
        clock = self._services.recorder.clock
        belongs = make_belongs(self._services, name)
        resolver = SessionResolver(
            new_id=self._new_id, warn=partial(self._warn, tenant=name), belongs=belongs
        )
        return Tenant(
            name,
            self._models if name is None else self._models.apart(),
            Breaker(recovery.breaker_failures, recovery.breaker_pause_s, clock),
            whole if name is None else Statistics(whole),
            resolver,
            self._results_of(name, resolver),
        )
