"""When a pass pays: prices, what the provider's cache probably holds, and one decision from both."""

from __future__ import annotations

from compact.runtime.economy.cache_state import CacheState
from compact.runtime.economy.deciding import MARGIN_S, SessionEconomy, early_target
from compact.runtime.economy.worth import Worth, worth_it

__all__ = ["MARGIN_S", "CacheState", "SessionEconomy", "Worth", "early_target", "worth_it"]
