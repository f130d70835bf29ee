"""The soak run in short: `make soak` has a thousand sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.soak import Soak, TooLong
from compact.errors import ContextOverflow

# Long, and covered by short tests: tracing would double its time.
pytestmark = pytest.mark.no_cover


@pytest.mark.sweep
def test_a_few_long_sessions_in_one_process_lose_nothing_and_leak_nothing(tmp_path: Path) -> None:
    done = Soak(6, 45, tmp_path).run()
    assert (done.refused, done.illegal, done.lost, done.left_behind) == (0, 0, 0, 0)
    assert done.steps >= 12, "every session was compacted, more than once"
    first, last = done.samples[len(done.samples) // 2], done.samples[-1]
    # One or two may be in use at the moment of a sample; a leak in each of some twelve steps would be more.
    assert last.files <= first.files + 2
    assert last.threads <= first.threads + 2


def test_the_provider_of_the_soak_refuses_what_is_too_long_or_illegal(tmp_path: Path) -> None:
    soak = Soak(1, 1, tmp_path)
    with pytest.raises(TooLong):
        soak.provider([{"role": "user", "content": "word " * 9_000}])
    soak.provider([{"role": "tool", "tool_call_id": "nobody", "content": "orphan"}])
    assert (soak.requests, soak.refused, soak.illegal) == (2, 1, 1)


def test_a_session_that_is_never_compacted_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run must be able to fail: a window that the manager takes for larger than it is gets refused."""
    monkeypatch.setattr("bench.soak.WINDOW", 4_100)
    soak = Soak(1, 45, tmp_path)
    monkeypatch.setattr(soak, "count", lambda sent: 9_000)
    with pytest.raises((TooLong, ContextOverflow)):
        soak.run()
    assert soak.refused
