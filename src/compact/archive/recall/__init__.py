"""Recall: reading back what left the context, by the agent's tools, grep and ranked search."""

from compact.archive.recall.answers import AnswerLimits
from compact.archive.recall.grep import LinePattern
from compact.archive.recall.search import Hit, SearchIndex
from compact.archive.recall.tools import RecallTool, no_session, offered_prefix, recall_tools, run

__all__ = [
    "AnswerLimits",
    "Hit",
    "LinePattern",
    "RecallTool",
    "SearchIndex",
    "no_session",
    "offered_prefix",
    "recall_tools",
    "run",
]
