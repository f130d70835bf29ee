"""A file found in the current folder names no address, key, prompt, path or exporter."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import yaml

from bench.attack import Attack, Trial
from compact import CompactConfig, ConfigError
from compact.config.sections import SETTINGS
from compact.config.sources import BLOCK_FIELDS, FILE_NAMES, VARIABLES, variable_of
from compact.tools.cli.app import run

FREE_TEXTS = {"model", "policy.strategy", "policy.layout", "policy.thinking", "policy.economy"}
GROWING = "policy.roles_never_prune"
"""The rule, said once more: numbers, booleans outside redaction, `windows`, these texts, and this list if it grows."""
_BLOCK = {path: name for name, path in BLOCK_FIELDS.items()}


def placed(seed: Random, size: int) -> Iterator[Trial]:
    """Drawn settings in drawn forms, in a file that nobody named: refused as a whole, or harmless."""
    with _folder() as folder:
        for number in range(size):
            drawn = {
                path: _value(seed, path) for path in seed.sample(sorted(SETTINGS), seed.choice([1, 1, 2, 5]))
            }
            name, text = _written(seed, drawn)
            (folder / name).write_text(text, encoding="utf-8")
            refused = {path for path in drawn if not _may(path, drawn[path])}
            try:
                config = CompactConfig.load(
                    agent=seed.choice([None, None, "a"]) if "agents" in text else None
                )
                held, came = not refused and _is_harmless(config), "taken"
            except ConfigError as error:
                came = str(error)
                held = (
                    "--config" in came and all(path in came for path in refused)
                    if refused
                    else "--config" not in came
                )
            # What is refused here is right if somebody names the file, the variable or the argument.
            held = held and _works_when_named(seed, folder / name, drawn)
            (folder / name).unlink()
            yield Trial(f"{number}: {name} with {sorted(drawn)}: {came[:80]}", held)


def commands(seed: Random, size: int) -> Iterator[Trial]:
    """The commands themselves, in a folder with a drawn file: exit code 2, the key and --config are named, nothing is written."""
    talk = json.dumps([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}])
    paths = sorted(path for path in SETTINGS if path != GROWING and not _may(path, None))
    calls = (
        ["apply", "talk.json"],
        ["count", "talk.json"],
        ["replay", "talk.json"],
        ["stats"],
        ["config", "show"],
    )
    with _folder() as folder, _silence(folder) as printed:
        for _ in range(max(1, size // 2)):
            path = seed.choice(paths)
            (folder / "talk.json").write_text(talk)
            name, text = _written(seed, {path: _value(seed, path)})
            (folder / name).write_text(text)
            before = sorted(folder.rglob("*"))
            call = seed.choice(calls)
            code = run(call)
            err = printed()
            held = code == 2 and path in err and "--config" in err and sorted(folder.rglob("*")) == before
            (folder / name).unlink()
            yield Trial(f"compact {' '.join(call)} with {path} in {name}: {err[:100]}", held)


def monsters(seed: Random, size: int) -> Iterator[Trial]:
    """Files that stand for more than they hold, or say a thing twice: a `ConfigError`, and a small one."""
    with _folder() as folder:
        for _ in range(size):
            what, text, name = _monster(seed)
            data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
            (folder / name).write_bytes(data)
            try:
                CompactConfig.load(seed.choice([None, folder / name]))
                came = "taken"
            except ConfigError as error:
                came = str(error)
            (folder / name).unlink()
            yield Trial(f"{what} in {name}: {came[:80]}", came != "taken" and len(came) < 20_000)


def _monster(seed: Random) -> tuple[str, str | bytes, str]:
    key, depth = (
        seed.choice(["windows", "policy", "agents", "compact", "model"]),
        seed.choice([41, 500, 5_000]),
    )
    anchor = "".join(seed.choices("abcxyz", k=seed.choice([1, 8])))
    levels = [
        f"k{n}: &{anchor}{n} [{', '.join([f'*{anchor}{n - 1}'] * 9) if n else 'x'}]"
        for n in range(seed.randint(2, 9))
    ]
    twice = seed.choice(
        ["model: a\nmodel: b", "policy: {max_turns: 1, max_turns: 2}", "policy: {}\n'policy': {}"]
    )
    drawn: dict[str, tuple[str | bytes, str]] = {
        "aliases": ("\n".join(levels), ".yaml"),
        "an alias": (f"{key}: &{anchor} {{}}\nmore: *{anchor}", ".yaml"),
        "a loop": (f"{key}: &{anchor} [*{anchor}]", ".yaml"),
        "a merged alias": (f"{key}: &{anchor} {{max_turns: 1}}\nmore: {{<<: *{anchor}}}", ".yaml"),
        "deep lists": (f"{key}: {'[' * depth}{']' * depth}", ".yaml"),
        "deep mappings": (f"{key}: " + "{a: " * depth + "1" + "}" * depth, ".yaml"),
        "deep JSON": (f'{{"{key}": ' + "[" * 20 * depth + "]" * 20 * depth + "}", ".json"),
        "a key twice": (twice, ".yaml"),
        "a JSON key twice": ('{"model": "a", "policy": {}, "model": "b"}', ".json"),
        "digits": (
            f"max_context_tokens: {seed.choice(['9' * 200, '9' * 5_000, '1:' * 3_000 + '1'])}",
            ".yaml",
        ),
        "size": (f"# {'x' * seed.randint(256_000, 400_000)}\nmodel: a", ".yaml"),
        "bytes": (b"model: " + bytes(seed.randrange(128, 256) for _ in range(9)), ".yaml"),
        "a surrogate": ('{"model": "\ud800"}', ".json"),
        "a program": (f"{key}: !!python/object/apply:os.system ['true']", ".yaml"),
        "not a number": (
            f"policy: {{trigger_pct: {seed.choice(['.nan', '.inf', '-.inf', '1e400'])}}}",
            ".yaml",
        ),
        "too much": (f"summary: {{max_tokens: {10 ** seed.randint(13, 60)}}}", ".yaml"),
        "a list": ("- a\n- b", ".yaml"),
    }
    what = seed.choice(sorted(drawn))
    text, ending = drawn[what]
    return (
        what,
        text,
        seed.choice(
            [
                name
                for name in FILE_NAMES
                if name.endswith(ending) or (ending == ".yaml" and name.endswith(".yml"))
            ]
        ),
    )


def _may(path: str, value: Any) -> bool:
    """Whether a file that was only found may set this."""
    if path == GROWING:
        return isinstance(value, list) and {"system", "developer"} <= set(value)
    if path.startswith("redaction."):
        return False
    schema = SETTINGS[path].model_json_schema()["properties"][path.rpartition(".")[2]]
    types = {choice["type"] for choice in schema.get("anyOf", [schema])} - {"null"}
    return types <= {"integer", "number", "boolean"} or path in FREE_TEXTS or path == "windows"


def _is_harmless(config: CompactConfig) -> bool:
    """Whether everything that such a file must not touch is as it was."""
    plain = CompactConfig()
    kept = (
        config.redaction,
        config.tracing.exporters,
        config.tracing.ariadne_url,
        config.archive.root,
        config.archive.endpoint_url,
    )
    also = (config.summary.base_url, config.summary.prompt, config.summary.model, config.archive.adapter)
    defaults = (
        plain.redaction,
        plain.tracing.exporters,
        plain.tracing.ariadne_url,
        plain.archive.root,
        plain.archive.endpoint_url,
    )
    roles = set(config.policy.roles_never_prune) >= set(plain.policy.roles_never_prune)
    return kept == defaults and also == (None, None, None, "fs") and roles


def _works_when_named(seed: Random, file: Path, drawn: Mapping[str, Any]) -> bool:
    """Whether the same is accepted, or refused for another reason, once a person stands behind it."""
    ways = [lambda: CompactConfig.load(file), lambda: CompactConfig(**_nested(drawn))]
    with _variables({"COMPACT_CONFIG": str(file)}):
        ways.append(CompactConfig.load)
        problems = [_problem(way) for way in ways]
    path = seed.choice(sorted(drawn))
    text = drawn[path] if isinstance(drawn[path], str) else json.dumps(drawn[path])
    file.rename(file.with_suffix(".away"))
    with _variables({variable_of(path): text}):
        problems.append(_problem(CompactConfig.load))
    file.with_suffix(".away").rename(file)
    return not any("--config" in problem for problem in problems)


def _problem(way: Any) -> str:
    try:
        way()
    except ConfigError as error:
        return str(error)
    return ""


def _value(seed: Random, path: str) -> Any:
    """A value that the field would accept, most of the time."""
    word = "".join(seed.choices("abcdefgh", k=6))
    texts = {
        "summary.base_url": f"https://{word}.example/v1",
        "archive.endpoint_url": f"http://{word}.example",
        "tracing.ariadne_url": f"http://{word}.example",
        "tracing.otlp_endpoint": f"https://{word}.example",
        "summary.fallback": "pruning-only",
        "archive.adapter": "memory",
        "redaction.live": "secrets",
        "redaction.rules": seed.choice(["digits", "pii", ["pii"]]),
        "redaction.extra": ["pii"],
        "policy.layout": seed.choice(["layered", "selective"]),
        "policy.strategy": seed.choice(["brief", word]),
        "policy.thinking": seed.choice(["strip", "keep"]),
        "policy.economy": seed.choice(["auto", "off"]),
        "windows": {word: seed.randint(5_000, 10**6)},
        "tracing.exporters": seed.sample(["jsonl", "console", "ariadne", "otlp"], 2),
        "offload.write_tools": [word],
        GROWING: seed.choice(
            [["system"], ["user"], [], ["system", "developer", word], ["developer", "system"]]
        ),
        "redaction.enabled": seed.choice([True, False]),
    }
    if path in texts:
        return texts[path]
    schema = SETTINGS[path].model_json_schema()["properties"][path.rpartition(".")[2]]
    types = {choice["type"] for choice in schema.get("anyOf", [schema])}
    if "null" in types and seed.random() < 0.2:
        return None
    if "number" in types:
        return seed.choice([0.5, 0.6, 1])
    return seed.randint(1, 2_000) if "integer" in types else word


def _nested(drawn: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for path, value in drawn.items():
        section, _, field = path.rpartition(".")
        if section:
            content.setdefault(section, {})[field] = value
        else:
            content[field] = value
    return content


def _written(seed: Random, drawn: Mapping[str, Any]) -> tuple[str, str]:
    """Write the settings in one of the forms that a file may have."""
    content: dict[str, Any] = {}
    for path, value in drawn.items():
        form = seed.choice(["nested", "dotted", "block", "agent", "listed"])
        if form == "block" and path in _BLOCK:
            content.setdefault("compact", {})[_BLOCK[path]] = value
        elif form in ("agent", "listed") and "agents" not in content:
            own = _nested({path: value}) if seed.random() < 0.5 else {path: value}
            if path in _BLOCK and seed.random() < 0.5:
                own = {"compact": {_BLOCK[path]: value}}
            content["agents"] = {"a": own} if form == "agent" else [{"id": "a", **own}]
        elif form == "dotted":
            content[path] = value
        else:
            section, _, field = path.rpartition(".")
            (content.setdefault(section, {}) if section else content)[field] = value
    name = seed.choice(FILE_NAMES)
    if name.endswith("json"):
        return name, json.dumps(content, indent=seed.choice([None, 2]))
    return name, yaml.safe_dump(
        content, default_flow_style=seed.choice([None, True, False]), sort_keys=seed.random() < 0.5
    )


@contextmanager
def _folder() -> Iterator[Path]:
    """An empty current folder, and no variable that sets anything."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name, _variables({}):
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(here)


@contextmanager
def _variables(settings: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in before:
        if name in VARIABLES or name.startswith("COMPACT_"):
            del os.environ[name]
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _silence(folder: Path) -> Iterator[Any]:
    """Catch what commands print; yields a function that returns what went to stderr since the last call."""
    import io
    from contextlib import redirect_stderr, redirect_stdout

    err = io.StringIO()

    def printed() -> str:
        text = err.getvalue()
        err.seek(0)
        err.truncate()
        return text.replace(str(folder), "")

    with redirect_stdout(io.StringIO()), redirect_stderr(err):
        yield printed


ATTACKS: tuple[Attack, ...] = (
    Attack("placed", "a file that nobody named sets numbers, booleans and closed choices only", placed),
    Attack("commands", "a command in such a folder stops, and names the key and --config", commands),
    Attack("monsters", "a settings file is refused that stands for more than it holds", monsters),
)
