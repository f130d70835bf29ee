"""Replay: play a recorded session through the engine, call by call, as a host would."""

from __future__ import annotations

from compact.tokens.prices import Price, Prices, read_prices
from compact.tools.replay.playing import Job, Policy, play
from compact.tools.replay.results import Cost, Played, Run, Step
from compact.tools.replay.running import Summary, as_data, replay, summarize, summary_cells

__all__ = [
    "Cost",
    "Job",
    "Played",
    "Policy",
    "Price",
    "Prices",
    "Run",
    "Step",
    "Summary",
    "as_data",
    "play",
    "read_prices",
    "replay",
    "summarize",
    "summary_cells",
]
