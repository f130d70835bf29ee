"""Settings for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from support.archive import AWS, moto_server

# A deadline measures the machine, not the code; what is slow has a benchmark.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of an S3 server, started for the first test that asks for it."""
    with moto_server() as address:
        yield address


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's credentials, and none of this machine's own."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
