"""The economy of a manager's sessions."""

from __future__ import annotations

from compact.config import EconomyConfig
from compact.events import Warned
from compact.runtime.economy.deciding import SessionEconomy
from compact.runtime.model_rules import KnownModel
from compact.runtime.services import Services
from compact.runtime.session_cache import Session


def open_economy(
    session: Session, known: KnownModel, settings: EconomyConfig, services: Services
) -> SessionEconomy | None:
    """What weighs the passes of a session with this model; None: money decides nothing, or there is no price."""
    session.cache.life_s = max(session.cache.life_s, (known.card and known.card.life_s) or 0.0)
    if known.card is None:
        return None

    def warn_of_clock(ahead_s: float) -> None:
        message = (
            f"the session's last call lies {ahead_s:,.0f} s ahead of this process's clock, so the age of the provider's "
            "cache is not known: no pass is made for it"
        )
        services.warn_once(session, Warned(code="clock_unknown", severity="low", message=message))

    return SessionEconomy(
        card=known.card,
        cache=session.cache,
        least=settings.min_tokens,
        summary_tokens=known.rules.summary_tokens + known.rules.ledger_tokens,
        asks_model=services.asks_model(None) or services.asks_provider,
        warn_of_clock=warn_of_clock,
    )
