"""Settings of single agents: the `agents:` part of a file, over the settings that all agents share.

    agents:
      coder:
        model: claude-sonnet-4-5
        compact: {token_threshold: 60000, retention_window: 6}

Each agent takes the same keys as the file. A list of mappings with an `id`, or a `name`, is accepted too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compact.config.problems import WrongSetting, config_error, show
from compact.config.sources import Given, from_settings
from compact.errors import ConfigError

AGENTS = "agents"
_NAMES = ("id", "name")


def settings_of_agents(agents: Any, origin: str) -> dict[str, dict[str, Given]]:
    """Return the settings of each agent by its name.

    Raises:
        ConfigError: an agent is not a mapping of settings, or has no name of its own. Lists all such agents.
    """
    found: dict[str, dict[str, Given]] = {}
    problems: list[WrongSetting] = []
    for path, name, settings in _entries(agents):
        if not isinstance(settings, Mapping | None):
            what = f"{path} must be a mapping of settings, got {show(settings)}"
        elif not isinstance(name, str) or not name:
            what = f"{path} must have an id: a name of its own, got {show(name)}"
        elif name in found:
            what = f"{path} must have an id of its own, got {show(name)} a second time"
        else:
            found[name] = from_settings(settings or {}, f"{origin}, {AGENTS}.{name}")
            continue
        problems.append(WrongSetting(path, f"{what} ({origin})"))
    if problems:
        raise config_error(problems)
    return found


def of_agent(agents: Mapping[str, dict[str, Given]], name: str, where: str) -> dict[str, Given]:
    """Return the settings of one agent.

    Raises:
        ConfigError: there is no such agent. Lists those that there are.
    """
    if name not in agents:
        known = f"there are {', '.join(agents)}" if agents else "it names no agents"
        raise ConfigError(f"there is no agent {show(name)} in {where}; {known}", path=AGENTS)
    return agents[name]


def _entries(agents: Any) -> Iterator[tuple[str, Any, Any]]:
    """The path, the name and the settings of each agent."""
    if isinstance(agents, Mapping):
        for name, settings in agents.items():
            yield f"{AGENTS}.{name}", name, settings
    elif isinstance(agents, list):
        for place, entry in enumerate(agents):
            is_mapping = isinstance(entry, Mapping)
            name = next((entry[key] for key in _NAMES if key in entry), None) if is_mapping else None
            rest = {key: value for key, value in entry.items() if key not in _NAMES} if is_mapping else entry
            yield f"{AGENTS}[{place}]", name, rest
    elif agents is not None:
        yield AGENTS, None, agents
