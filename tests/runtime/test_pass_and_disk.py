"""A pass and the disk: how often it waits for it, and what a loss of power may take."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager
from compact.archive import keys
from compact.tokens import Meter

MOST = 8
"""fsyncs of a pass."""
PASS = """
import sys
from pathlib import Path
from compact import CompactConfig, CompactManager
from compact.tokens import Meter

root, outputs = sys.argv[1], int(sys.argv[2])
lines = "step {n}.{line}: compiled module_{line} in {line} ms, no warnings\\n"
talk = [{"role": "user", "content": "Fix the build."}]
for n in range(outputs):
    call = {"id": f"c{n}", "type": "function", "function": {"name": "run", "arguments": '{"n": %d}' % n}}
    talk.append({"role": "assistant", "content": None, "tool_calls": [call]})
    text = "".join(lines.format(n=n, line=line) for line in range(40))
    talk.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
talk.append({"role": "user", "content": "And now?"})
size = Meter("gpt-4o").estimate(talk).total
config = CompactConfig(model="gpt-4o", max_context_tokens=size, archive={"adapter": "fs", "root": root})
with CompactManager(config) as manager:
    manager.pin("s", "Keep the build green.")  # the archive and the session's folder are there
    print("begin", file=sys.stderr, flush=True)
    manager.preflight("s", talk)
    print("end", file=sys.stderr, flush=True)
assert len(list((Path(root) / "s" / "tool_outputs").iterdir())) > outputs // 3
"""


def fsyncs_of_a_pass(folder: Path, outputs: int) -> int:
    """How often a pass that takes so many outputs out of the context waits for the disk."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: fsyncs cannot be counted")
    folder.mkdir()
    log = folder / "strace.log"
    kinds = "fsync,fdatasync,sync,syncfs,sync_file_range,msync,write"
    command = [strace, "-f", "-e", f"trace={kinds}", "-o", str(log), sys.executable, "-c", PASS]
    done = subprocess.run(
        [*command, str(folder / "archive"), str(outputs)], capture_output=True, timeout=100, check=False
    )
    if b"ptrace" in done.stderr and done.returncode:
        pytest.skip("this system does not let strace trace")
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    lines = log.read_text().splitlines()
    begin, end = (
        next(n for n, line in enumerate(lines) if f'write(2, "{word}' in line) for word in ("begin", "end")
    )
    return sum("sync" in line and " resumed>" not in line for line in lines[begin:end])


def test_a_pass_syncs_as_often_for_sixty_outputs_as_for_fifteen(tmp_path: Path) -> None:
    few, many = (fsyncs_of_a_pass(tmp_path / str(outputs), outputs) for outputs in (15, 60))
    assert 0 < few == many <= MOST


def compacted(root: Path) -> tuple[CompactManager, dict[str, str]]:
    """A manager whose session made a pass, and what its outputs say, by their paths."""
    talk: list[dict[str, object]] = [{"role": "user", "content": "Look at the files."}]
    for n in range(12):
        function = {"name": "read", "arguments": f'{{"path": "src/part_{n}.py"}}'}
        talk.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
            }
        )
        text = "".join(f"def part_{n}_{line}(): return {line}\n" for line in range(120))
        talk.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    talk.append({"role": "user", "content": "Go on."})
    size = Meter("gpt-4o").estimate(talk).total
    config = CompactConfig(
        model="gpt-4o", max_context_tokens=size, archive={"adapter": "fs", "root": str(root)}
    )
    manager = CompactManager(config)
    manager.preflight("s", talk)
    archive = manager.archive
    files = [info.path for info in archive.files("s") if info.path.startswith(f"/{keys.OUTPUTS}/")]
    return manager, {path: archive.read_text("s", path) for path in files}


@pytest.mark.parametrize("lost", ["files", "half of each file", "files and list"])
def test_a_lost_copy_is_read_from_the_transcript(tmp_path: Path, lost: str) -> None:
    manager, texts = compacted(tmp_path)
    manager.close()
    assert len(texts) > 3
    folder = tmp_path / "s"
    for path in (folder / keys.OUTPUTS).iterdir():
        if lost == "half of each file":
            path.write_bytes(path.read_bytes()[:100])
        else:
            path.unlink()
    if lost == "files and list":
        for name in (keys.LISTED, f"seals-{keys.LISTED}"):
            (folder / name).unlink()
    with CompactManager(manager.config) as later:
        assert {path: later.archive.read_text("s", path) for path in texts} == texts


def test_copies_that_were_lost_are_written_again_by_repair(tmp_path: Path) -> None:
    manager, texts = compacted(tmp_path)
    manager.close()
    for path in (tmp_path / "s" / keys.OUTPUTS).iterdir():
        path.write_bytes(b"")
    (tmp_path / "s" / keys.HISTORY / "step-001.md").unlink()
    with CompactManager(manager.config) as later:
        assert len(later.archive.repair("s")) == len(texts) + 1
        assert later.archive.verify("s") == []


def test_a_session_record_that_was_lost_is_written_again(tmp_path: Path) -> None:
    manager, _ = compacted(tmp_path)
    manager.close()
    record = tmp_path / "s" / keys.SESSION
    before = record.read_bytes()
    record.write_bytes(b"\0" * 40)
    with CompactManager(manager.config) as later:
        later.preflight("s", [{"role": "user", "content": "Hello again"}])
    assert record.read_bytes() == before
