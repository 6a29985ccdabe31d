"""How an agent comes into a process: the variables with which Python starts it. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

BOOT = Path(__file__).resolve().parent / "boot"
# The boot file reads these and takes them away again before the script can see them.
ENV_MODULE = "BREAKSCOPE_AGENT_MODULE"
ENV_SETTINGS = "BREAKSCOPE_AGENT_SETTINGS"
ENV_PYTHONPATH = "BREAKSCOPE_AGENT_PYTHONPATH"


@dataclass(frozen=True, slots=True)
class Agent:
    """What is started inside the script's process before its first line.

    Attributes:
        module: a module of breakscope with a function ``start(settings: str)``. It must not import torch
            by itself: it waits (``child.imports``) until the script does.
        settings: handed to ``start``.
        environment: variables that are set for the script too.
    """

    module: str
    settings: str
    environment: Mapping[str, str] = field(default_factory=dict)


def with_agent(variables: Mapping[str, str], agent: Agent) -> dict[str, str]:
    """The variables of a process, with those that make Python start the agent in it."""
    environment = dict(variables)
    path = environment.get("PYTHONPATH")
    if path is not None:
        environment[ENV_PYTHONPATH] = path
    environment["PYTHONPATH"] = os.pathsep.join([str(BOOT), *([path] if path else [])])
    environment[ENV_MODULE] = agent.module
    environment[ENV_SETTINGS] = agent.settings
    return environment
