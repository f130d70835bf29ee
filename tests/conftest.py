"""Settings and fixtures for every test."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support.archive import AWS, moto_server
from support.browser import chromium

import compact.engine.ladder  # noqa: F401  # loaded with the first pass of a process, which may have little time in a test

# A deadline would measure the machine, not the code: what has to be fast has a benchmark.
settings.register_profile("full", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=25)
settings.load_profile("full")

NOBODY = 65534
"""The number of the user and of the group with the fewest rights, on every Linux."""

# A shell starts background jobs with SIGINT ignored. Children inherit that, and Ctrl-C could not be tested in them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--never-skip",
        default="",
        metavar="MARK,MARK",
        help="fail instead of skipping a test with one of these marks, or a whole file",
    )


def _marks_never_skipped(config: pytest.Config) -> set[str]:
    return set(filter(None, config.getoption("--never-skip").split(",")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a browser or a server, and exclude sweeps and real models from coverage.

    Shorter tests cover the same lines, and tracing would double the time.
    """
    for item in items:
        for fixture, mark in (("browser", "browser"), ("moto", "server"), ("cluster", "server")):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
        if item.get_closest_marker("sweep") or item.get_closest_marker("model"):
            item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        marks = {mark.name for mark in item.iter_markers()}
        if marks & _marks_never_skipped(item.config):
            report.outcome = "failed"
            report.longrepr = f"must not be skipped here: {report.longrepr[2]}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and _marks_never_skipped(collector.config):
        report.outcome = "failed"
        report.longrepr = f"must not be skipped here: {report.longrepr[2]}"
    return report


@pytest.fixture
def unprivileged_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of an ordinary user, who also runs the test: root ignores permissions, so nothing could be refused."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp())
    shutil.chown(folder, NOBODY, NOBODY)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(0)
        os.setegid(0)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    with chromium() as started:
        yield started


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
