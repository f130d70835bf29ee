"""One of each kind of event."""

from __future__ import annotations

from compact.events import (
    Archival,
    Breakdown,
    CallsShrunk,
    Failure,
    Finished,
    Kept,
    Layers,
    LedgerChanged,
    Offload,
    Planned,
    PolicyInForce,
    Properties,
    PrunedMessages,
    Recovery,
    Started,
    SummaryCreated,
    TokenEstimate,
    TriggerDecision,
    Warned,
)

POLICY = PolicyInForce(trigger_pct=0.85, hard_cap_buffer=1500, strategy="task_state")
ADDED_LATER = {"compact.pruned_messages": {"kept"}}
"""Properties that logs of earlier versions lack, by the event's name."""
EXAMPLES: list[Properties] = [
    TokenEstimate(
        model="gpt-4o",
        t_est=10,
        max_tokens=100,
        usage_pct=0.1,
        breakdown=Breakdown(system=1, developer=2, tools_schema=3, messages=4),
    ),
    TriggerDecision(triggered=False, reason="below", note=None, policy=POLICY),
    TriggerDecision(
        triggered=True,
        reason="manual",
        note="user-requested",
        policy=POLICY,
        planned=Planned(kept=Kept(pinned=1, recent_turns=6, tool_pairs=4), pruned_count=12),
    ),
    Archival(session_id="s", step=1, storage_adapter="fs", file_path="a/s/state-001.json"),
    Offload(
        tool_name="t", tool_call_id="c", tokens_before=9, tokens_after=1, file_path="/tool_outputs/x.txt"
    ),
    CallsShrunk(
        tool_name="t", tool_call_id="c", tokens_before=9, tokens_after=1, file_path="/tool_outputs/x.txt"
    ),
    SummaryCreated(strategy="brief", input_messages=3, summary_tokens=20, compression_ratio=0.2),
    PrunedMessages(
        layers=Layers(pinned=1, summary=1, recent=5),
        pruned_count=7,
        tokens_before=9,
        tokens_after=3,
        kept=Kept(pinned=1, recent_turns=5, tool_pairs=4),
    ),
    Started(reason="trigger", note=None),
    Finished(
        reason="trigger", note=None, outcome="compacted", duration_ms=1.5, tokens_before=9, tokens_after=3
    ),
    Failure(error_type="InsufficientBudget", message="too large", fallback="snapshot"),
    Warned(code="unknown_model", severity="low", message="no window is known for x"),
    Recovery(attempt=1, action="compact", learned_limit=None),
    LedgerChanged(action="added", entry_id="e0123abcd", kind="rule", source="user"),
]
