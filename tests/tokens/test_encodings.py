from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import tiktoken_ext.openai_public as published  # type: ignore[import-untyped]
from support.tokens import NAMES

import compact.tokens.encodings as encodings
from compact.errors import CompactError
from compact.tokens.encodings import ENCODINGS

PACKAGE = Path(encodings.__file__).parents[1]

COUNT_OFFLINE = """
import os, sys

def refuse(event, args):
    if event.startswith("socket."):
        raise SystemExit("network: " + event)
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        raise SystemExit("write: " + str(args[0]))

sys.addaudithook(refuse)
assert "HOME" not in os.environ and "TIKTOKEN_CACHE_DIR" not in os.environ
from compact.tokens import Meter
for model in ("gpt-4", "gpt-4o"):
    meter = Meter(model, fast={fast})
    print(meter.counted_by, meter.count_text("hello world, offline"))
"""


@pytest.mark.parametrize("name", NAMES)
def test_pattern_and_ranks_are_those_that_tiktoken_publishes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def load(_: str, expected_hash: str) -> dict[bytes, int]:
        asked.append(expected_hash)
        return {b"x": 0}

    monkeypatch.setattr(published, "load_tiktoken_bpe", load)
    definition = published.ENCODING_CONSTRUCTORS[name]()
    assert ENCODINGS[name].pattern == definition["pat_str"]
    assert asked == [ENCODINGS[name].sha256]


@pytest.mark.parametrize("name", NAMES)
def test_ranks_are_the_second_column_of_the_file(name: str) -> None:
    lines = ENCODINGS[name].rank_file().splitlines()
    assert list(ENCODINGS[name].ranks().values()) == [int(line.split()[1]) for line in lines]


def test_a_file_with_another_content_is_refused() -> None:
    wrong = replace(ENCODINGS["cl100k_base"], sha256="0" * 64)
    with pytest.raises(CompactError, match="rank file of cl100k_base is damaged: its sha256 is 2239"):
        wrong.ranks()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"no gzip", id="garbage"),
        pytest.param(gzip.compress(b"IQ== 0\n" * 100)[:-20], id="truncated"),
        pytest.param(gzip.compress(b"IQ== 0\n"), id="other-content"),
    ],
)
def test_a_damaged_file_says_what_to_do(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ranks").mkdir()
    if content is not None:
        (tmp_path / "ranks" / "o200k_base.tiktoken.gz").write_bytes(content)
    monkeypatch.setattr(encodings, "files", lambda _: tmp_path)
    with pytest.raises(CompactError, match="o200k_base is damaged") as caught:
        ENCODINGS["o200k_base"].rank_file()
    assert "Install compact-context again" in caught.value.hint


@pytest.mark.parametrize("fast", [True, False])
def test_counting_needs_no_network_no_home_and_no_environment(fast: bool, tmp_path: Path) -> None:
    """A process that may neither open a socket nor write a file counts all the same."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", COUNT_OFFLINE.replace("{fast}", str(fast))],
        env={},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    by = "splintr" if fast else "tiktoken"
    assert (done.returncode, done.stdout.split()) == (0, [by, "4", by, "4"]), done.stderr


def test_rank_files_are_read_from_a_zip(tmp_path: Path) -> None:
    """The package works where it is no folder."""
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(PACKAGE.rglob("*")):
            if path.suffix in (".py", ".gz"):
                packed.write(path, Path("compact") / path.relative_to(PACKAGE))
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from compact.tokens import encodings\n"
        "assert '.zip' in encodings.__file__, encodings.__file__\n"
        "print(len(encodings.ENCODINGS['o200k_base'].ranks()))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={"PATH": os.environ.get("PATH", "")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "199998", done.stderr
