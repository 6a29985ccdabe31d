"""What is asked once all steps are timed: do outputs agree, and what are the kernels?

Whatever happens here costs no arm its times. What endangers a process comes last: its kernels are run again
on inputs of ours only when everything else that it knows has left it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from breakscope.bench.conducted import Conducted
from breakscope.bench.players import ArmFailedError, Player, attempt
from breakscope.inside.bench.plan import Options
from breakscope.inside.bench.wire import COMPARE, KERNELS, RUN

_PROFILED_STEPS = 3


def compare_outputs(found: Conducted, players: Sequence[Player]) -> None:
    """Hold every arm's outputs against eager's. Any living process can do it: it has torch loaded."""
    base = next((one for one in found.players if one.arm.variant == "eager" and not one.number), None)
    asked = next((one for one in players if one.alive), None)
    if base is None or asked is None or not any((base.folder / "outputs").iterdir()):
        return
    others = {
        player.arm.name: str(player.folder / "outputs")
        for player in players
        if player.number == 0 and player.alive and player is not base
    }
    folder = str(base.folder / "outputs")
    attempt(lambda: found.outputs.update(asked.ask(COMPARE, base=folder, others=others)["results"]))


def look_into(players: Sequence[Player], options: Options, folder: Path, say: Callable[[str], None]) -> None:
    """How busy the device is, by the first process of each arm; with ``--kernels``, with what."""
    chosen = [
        player
        for player in players
        if not player.number and player.alive and (options.kernels or player.last.get("on_gpu"))
    ]
    for player in chosen:
        say(f"profiling {player.arm.name}")
        attempt(_profile, player)
    if not options.kernels:
        return
    compiled = [player for player in chosen if player.arm.variant != "eager"]
    for player in compiled:
        say(f"kernels of {player.arm.name}")
        attempt(_details, player, options, folder)
    for player in compiled:
        _alone(player, say)


def _profile(player: Player) -> None:
    reply = player.ask(RUN, steps=_PROFILED_STEPS, settle=1, timed=False, purpose="profile")
    if not reply["ended"]:
        player.profile = reply


def _details(player: Player, options: Options, folder: Path) -> None:
    """Which op or kernel of Inductor's launched what, and on what inputs."""
    if player.last["ended"]:
        return
    exported = None
    if options.export is not None:
        exported = str(folder / "export" / f"arm{options.arms().index(player.arm)}")
    reply = player.ask(RUN, steps=1, settle=0, timed=False, purpose="kernels", export=exported)
    if not reply["ended"]:
        player.profile = {**player.profile, "details": reply.get("details")}


def _alone(player: Player, say: Callable[[str], None]) -> None:
    """Have every kernel run again, group by group; what is lost with the process is said of each."""
    details = player.profile.get("details") or {}
    waiting: dict[int, dict[str, Any]] = {
        one["number"]: one for one in details.get("kernels", ()) if "alone_why" not in one
    }
    why = None
    while waiting and player.alive and why is None:
        say(f"kernels of {player.arm.name}: {len(waiting)} to run alone")
        try:
            reply = player.ask(KERNELS)
        except ArmFailedError as error:
            why = f"its process did not survive: {error}"
            break
        for record in reply["records"]:
            ran = waiting.pop(record["number"])
            if "alone_us" in record or "alone_why" in record:
                ran.update(record)
            else:
                ran["alone_why"] = reply["lost"]
        why = reply["lost"]
        if not reply["left"]:
            break
    for one in waiting.values():
        one["alone_why"] = why or player.lost or "it was not reached"
