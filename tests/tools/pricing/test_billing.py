"""The simulator of a provider's prompt cache, request by request, against bills that were worked out by hand."""

from __future__ import annotations

import pytest

from compact.errors import ConfigError
from compact.tokens.models import Price
from compact.tokens.prices import Card, built_in, card_named, card_names
from compact.tools.pricing import Sent, bill

PRICE = Price(input=5.0, output=25.0, cache_read=0.5, cache_write=6.25, cache_write_1h=10.0)
CARD = Card("five minutes", PRICE, 300, 1_024)


def sent(at_s: float | None, tokens: int, unchanged: int, output: int = 0, **more: float) -> Sent:
    return Sent(at_s=at_s, tokens=tokens, unchanged=unchanged, output=output, **more)  # type: ignore[arg-type]


def test_a_warm_request_reads_its_prefix_and_writes_the_rest() -> None:
    found = bill([sent(0, 10_000, 0), sent(300, 12_000, 10_000, 100)], CARD)
    assert (found.cache_read, found.cache_write, found.fresh, found.output) == (10_000, 12_000, 0, 100)
    assert found.cost == pytest.approx((10_000 * 0.5 + 12_000 * 6.25 + 100 * 25) / 1e6)


def test_behind_its_life_everything_is_written_again() -> None:
    found = bill([sent(0, 10_000, 0), sent(301, 12_000, 10_000)], CARD)
    assert (found.cache_read, found.cache_write) == (0, 22_000)


def test_every_use_begins_the_life_anew() -> None:
    requests = [sent(250 * n, 10_000, 10_000 if n else 0) for n in range(5)]
    assert bill(requests, CARD).cache_read == 40_000


def test_an_hour_costs_more_to_write_and_lasts_longer() -> None:
    hour = Card("an hour", PRICE, 3_600, 1_024)
    found = bill([sent(0, 10_000, 0), sent(3_000, 12_000, 10_000)], hour)
    assert found.cost == pytest.approx((10_000 * 10 + 2_000 * 10 + 10_000 * 0.5) / 1e6)


def test_a_request_can_have_a_life_of_its_own() -> None:
    found = bill([sent(0, 10_000, 0, life_s=3_600), sent(3_000, 10_000, 10_000)], CARD)
    assert found.cache_read == 10_000


def test_the_first_request_reads_what_an_earlier_session_left() -> None:
    assert bill([sent(0, 10_000, 8_000)], CARD).cache_read == 8_000


def test_without_times_every_cache_stays_warm() -> None:
    assert bill([sent(None, 10_000, 0), sent(None, 10_000, 10_000)], CARD).cache_read == 10_000


def test_too_short_a_prefix_is_never_cached() -> None:
    found = bill([sent(0, 1_000, 0), sent(1, 1_020, 1_000), sent(2, 5_000, 1_020)], CARD)
    assert (found.cache_read, found.fresh, found.cache_write) == (0, 2_020, 5_000)


def test_a_tier_holds_for_the_whole_request_and_only_for_it() -> None:
    card = card_named("gemini")
    small, large = bill([sent(0, 200_000, 0)], card), bill([sent(0, 200_001, 0, 10)], card)
    assert small.cost == pytest.approx(200_000 * 2 / 1e6)
    assert large.cost == pytest.approx((200_001 * 4 + 10 * 18) / 1e6)
    both = bill([sent(0, 200_000, 0), sent(1, 200_001, 200_000)], card)
    assert both.cost == pytest.approx((200_000 * 2 + 200_000 * 0.4 + 1 * 4) / 1e6)


def test_the_cards_are_those_of_the_contract() -> None:
    assert card_names() == (
        "anthropic-5m",
        "anthropic-1h",
        "anthropic-5m-read-05",
        "anthropic-5m-read-025",
        "openai-30m",
        "gemini",
    )
    cards = {name: card_named(name) for name in card_names()}
    assert [card.life_s for card in cards.values()] == [300, 3_600, 300, 300, 1_800, 300]
    shares = {name: card.price.cache_read / card.price.input for name, card in cards.items()}
    assert shares["anthropic-5m"] == pytest.approx(0.1)
    assert shares["anthropic-5m-read-05"] == pytest.approx(0.05)
    assert shares["anthropic-5m-read-025"] == pytest.approx(0.025)
    premiums = {name: card.price.write(card.life_s) / card.price.input for name, card in cards.items()}
    assert premiums == pytest.approx(
        {
            "anthropic-5m": 1.25,
            "anthropic-1h": 2.0,
            "anthropic-5m-read-05": 1.25,
            "anthropic-5m-read-025": 1.25,
            "openai-30m": 1.25,
            "gemini": 1.0,
        }
    )
    assert cards["openai-30m"].price.tiers[0][0] == 272_000
    assert cards["gemini"].price.tiers[0][0] == 200_000


def test_an_unknown_card_is_an_error_that_lists_them() -> None:
    with pytest.raises(ConfigError, match="there are anthropic-5m, anthropic-1h"):
        card_named("anthropic-6m")


def test_a_models_card_has_the_rules_of_its_cache() -> None:
    card = built_in().card("claude-opus-4-6")
    assert card is not None
    assert (card.life_s, card.min_tokens) == (300, 4_096)
    assert built_in().card("nobody-knows-it") is None
