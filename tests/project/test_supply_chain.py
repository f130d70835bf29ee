"""What a release is built from is pinned by hash, listed, audited, and run with the least rights."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import pin_hashes, sbom

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HASHES = (ROOT / "constraints.hashes.txt").read_text(encoding="utf-8")
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job.get("steps", ())]


def test_the_hashes_cover_exactly_the_constraints() -> None:
    """If this fails: python -m scripts.pin_hashes > constraints.hashes.txt."""
    assert pin_hashes.pinned(HASHES) == pin_hashes.pinned(CONSTRAINTS)


def test_every_package_has_a_hash_and_no_address() -> None:
    blocks = re.split(r"\n(?=\S)", HASHES.partition("\n\n")[2].strip())
    assert len(blocks) == len(pin_hashes.pinned(CONSTRAINTS))
    line = re.compile(r"[a-z0-9-]+==[\w.+!]+( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert [block for block in blocks if not line.fullmatch(block)] == []
    assert "://" not in HASHES + CONSTRAINTS


def test_what_builds_a_release_is_among_them() -> None:
    build = set(
        yaml.safe_load(
            "["
            + re.findall(r"^requires = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.S | re.M)[
                0
            ].replace("\n", "\n ")
            + "]"
        )
    )
    names = {re.split(r"[<>=]", each)[0] for each in build}
    assert names
    assert names | {"build"} <= pin_hashes.pinned(HASHES).keys()


def test_a_package_without_a_hash_is_an_error() -> None:
    assert pin_hashes.written({"a": "1"}, [("a", "f" * 64), ("a", "0" * 64)]).endswith(
        f"\na==1 \\\n    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{'f' * 64}\n"
    )
    with pytest.raises(ValueError, match="b has no hash"):
        pin_hashes.written({"a": "1", "b": "2"}, [("a", "f" * 64)])


def test_some_packages_can_be_installed_alone() -> None:
    lines = pin_hashes.chosen(HASHES, ["pyproject_hooks", "build"])
    assert list(pin_hashes.pinned(lines)) == ["pyproject-hooks", "build"]
    assert lines.count("--hash=sha256:") == 2
    with pytest.raises(ValueError, match=r"not in constraints\.hashes\.txt: nonsense"):
        pin_hashes.chosen(HASHES, ["build", "nonsense"])


def test_what_is_needed_in_turn_is_found() -> None:
    needs = {
        "a": [
            "B.b[x]>=1; python_version < '3.12'",
            "never; sys_platform == 'win32'",
            "test-tool; extra == 'test'",
        ],
        "b-b": ["c; extra == 'x'", "d; extra == 'y'", "a"],
        "c": ["old; python_version < '3.11'"],
    }
    assert sbom.closure(["a>=2"], lambda name: needs.get(name, ())) == {"a", "b-b", "c"}


def test_the_bill_of_materials_lists_what_is_installed_and_every_file(tmp_path: Path) -> None:
    wheel = tmp_path / "compact_context-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    made = sbom.document(HASHES, [wheel], "1.2.3")
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    listed = {each["name"]: each["version"] for each in made["components"]}
    assert listed.items() <= pin_hashes.pinned(HASHES).items()
    assert {
        "tiktoken",
        "regex",
        "openai",
        "httpx",
        "starlette",
        "rich",
        "obstore",
        "distributed",
    } <= listed.keys()
    assert (
        not {"pytest", "hypothesis", "moto", "mypy", "ruff", "playwright", "build", "hatchling"}
        & listed.keys()
    )
    assert all(each["hashes"] and each["purl"] == each["bom-ref"] for each in made["components"])
    main = made["metadata"]["component"]
    assert (main["name"], main["version"]) == ("compact-context", "1.2.3")
    assert main["components"][0]["hashes"][0]["content"] == hashlib.sha256(b"wheel").hexdigest()
    (root,) = made["dependencies"]
    references = {each["bom-ref"] for each in made["components"]}
    assert {"tiktoken", "pydantic", "openai"} <= {
        each.partition("/")[2].partition("@")[0] for each in root["dependsOn"]
    }
    assert set(root["dependsOn"]) <= references
    assert json.dumps(made) == json.dumps(sbom.document(HASHES, [wheel], "1.2.3"))


def test_the_command_takes_the_version_from_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("compact_context-2.0.1.tar.gz", "compact_context-2.0.1-py3-none-any.whl"):
        (tmp_path / name).write_bytes(b"x")
    sbom.main([str(file) for file in tmp_path.iterdir()])
    assert json.loads(capsys.readouterr().out)["metadata"]["component"]["version"] == "2.0.1"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_commit(workflow: Path) -> None:
    lines = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
    pinned = re.compile(r"\./\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in lines if not pinned.fullmatch(line.strip())] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_have_the_least_rights(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        if str(step.get("uses")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        # An expression inside a script would run whatever a branch or a title says.
        assert "${{" not in str(step.get("run", ""))


def test_a_release_is_built_from_hashes_and_published_with_its_bill() -> None:
    scripts = "\n".join(str(step.get("run")) for step in steps(ROOT / ".github" / "workflows" / "ci.yml"))
    assert "--require-hashes" in scripts
    assert "python -m build --no-isolation" in scripts
    assert "scripts.sbom" in scripts
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "sbom" in release


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_what_is_kept_of_a_job_no_unpinned_package_could_touch(workflow: Path) -> None:
    for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
        steps = job.get("steps", ())
        if any(str(step.get("uses")).startswith("actions/upload-artifact@") for step in steps):
            lines = "\n".join(str(step.get("run", "")) for step in steps).splitlines()
            installing = [line for line in lines if re.search(r"\b(pip|uv|pipx|make)\b", line)]
            assert [line for line in installing if "--require-hashes" not in line] == []


def test_the_package_is_installed_after_it_was_kept() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["install"]["needs"] == jobs["sbom"]["needs"] == "package"
    for name in ("install", "sbom"):
        assert any(
            str(step.get("uses")).startswith("actions/download-artifact@") for step in jobs[name]["steps"]
        )
    assert "pip install dist/*.whl" in str(jobs["install"]["steps"])


def test_dependencies_are_audited_on_a_schedule() -> None:
    workflow = ROOT / ".github" / "workflows" / "audit.yml"
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert content[True]["schedule"], "YAML reads `on` as true"
    assert any(
        "pip-audit" in str(step.get("run")) and "constraints.hashes.txt" in str(step.get("run"))
        for step in steps(workflow)
    )


def test_both_policies_say_the_same_way_to_report() -> None:
    for page in (ROOT / "SECURITY.md", ROOT / "docs" / "SECURITY.md"):
        words = " ".join(page.read_text(encoding="utf-8").split())
        assert "Report a vulnerability" in words
        assert "private vulnerability reporting" in words
