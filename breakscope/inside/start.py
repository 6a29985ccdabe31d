"""How an agent comes into a process: the variables with which Python starts it. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# In the name of a child's file: stands for its process id.
PID = "%pid%"
BOOT = Path(__file__).resolve().parent / "boot"
# The boot file reads these and takes them away again before the script can see them.
ENV_MODULE = "BREAKSCOPE_AGENT_MODULE"
ENV_SETTINGS = "BREAKSCOPE_AGENT_SETTINGS"
ENV_PYTHONPATH = "BREAKSCOPE_AGENT_PYTHONPATH"
ENV_AHEAD = "BREAKSCOPE_AGENT_AHEAD"
ENV_EVENTS = "BREAKSCOPE_AGENT_EVENTS"
# Set where the environment's own sitecustomize fails, and has been reported already.
ENV_TOLD = "BREAKSCOPE_AGENT_TOLD"
# Names a variable that is there for torch alone: the script does not see it.
ENV_PATIENT = "BREAKSCOPE_AGENT_PATIENT"
# Threads sleep while they wait for work. By default they spin, on cores that other runs need, and a small
# model takes up to ten times as many seconds of processors. OpenMP reads this when torch is loaded.
_PATIENT = ("OMP_WAIT_POLICY", "passive")
_SAYS_HOW_TO_WAIT = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


@dataclass(frozen=True, slots=True)
class Agent:
    """What is started inside the script's process before its first line.

    Attributes:
        module: a module of breakscope with a function ``start(settings: str)``. It must not import torch
            by itself: it waits (``inside.imports``) until the script does. Empty for none.
        settings: handed to ``start``.
        environment: variables that are set for the script too.
        events: file where the boot file says that the process began and ended (of a child, whose file has
            :data:`PID` in its name, it says nothing). The module is then loaded when the script, or a fork of
            it, has imported torch, and its ``start(settings, began_ns, forked=...)`` returns what is to be
            called at the end, or None. None: it is loaded before the script's first line.
        ahead: a module that is loaded before the script's first line in any case, and whose
            ``start(settings)`` leaves no module loaded. None for none.
        patient: OpenMP's threads sleep while they wait, unless the environment says how they are to. For runs
            that are not timed.
    """

    module: str
    settings: str
    environment: Mapping[str, str] = field(default_factory=dict)
    events: str | None = None
    ahead: str | None = None
    patient: bool = False


def with_agent(variables: Mapping[str, str], agent: Agent) -> dict[str, str]:
    """The variables of a process, with those that make Python start the agent in it."""
    environment = dict(variables)
    path = environment.get("PYTHONPATH")
    if path is not None:
        environment[ENV_PYTHONPATH] = path
    environment["PYTHONPATH"] = os.pathsep.join([str(BOOT), *([path] if path else [])])
    environment[ENV_MODULE] = agent.module
    environment[ENV_SETTINGS] = agent.settings
    environment.update({ENV_EVENTS: agent.events} if agent.events else {})
    environment.update({ENV_AHEAD: agent.ahead} if agent.ahead else {})
    if agent.patient and not any(environment.get(one) for one in _SAYS_HOW_TO_WAIT):
        name, value = _PATIENT
        environment |= {name: value, ENV_PATIENT: name}
    return environment
