"""The suite itself: what must not be skipped fails, and its tests do not depend on who runs it or how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with the fixtures and hooks of this suite."""
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text("utf-8"), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser: x\n    sweep: x\n")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(TESTS)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(folder)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def test_a_mark_that_is_named_must_not_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import pytest\n"
        "@pytest.mark.browser\n"
        "def test_with_a_browser(): pytest.skip('no browser here')\n"
        "@pytest.mark.sweep\n"
        "def test_another(): pytest.skip('no reason')\n"
    )
    assert run_pytest(tmp_path).returncode == 0
    strict = run_pytest(tmp_path, "--never-skip", "browser")
    assert strict.returncode == 1
    assert "must not be skipped here: Skipped: no browser here" in strict.stdout
    assert "1 failed, 1 skipped" in strict.stdout


def test_a_file_must_not_be_skipped_as_a_whole_either(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import pytest\npytest.importorskip('a_package_that_is_missing')\n")
    assert run_pytest(tmp_path, "--never-skip", "browser").returncode == 2


def test_children_can_be_interrupted_though_the_suite_was_started_in_the_background() -> None:
    """A shell starts a background job with SIGINT ignored; the settings of the suite take that back."""
    program = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_root_has_no_more_rights_than_others_where_rights_are_tested(unprivileged_folder: Path) -> None:
    assert os.geteuid() != 0
    locked = unprivileged_folder / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(PermissionError):
        (locked / "file").touch()
