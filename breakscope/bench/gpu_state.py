"""Which card is used, and its state between rounds as nvidia-smi tells it: read, never set."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Sequence

from breakscope.report.benchmark import GpuState

_FIELDS = (
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
)
# The newer name first.
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_TIMEOUT_S = 10
# Bits of the throttle reasons that mean "slower than it could be"; idle and settings of the user do not.
_THROTTLE = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
_CLOCK_SPREAD = 0.05


def read(at_s: float, device: str | None, ours: Collection[int]) -> GpuState | None:
    """The card's state; None where nvidia-smi is not there or does not answer.

    Args:
        at_s: seconds since the benchmark began.
        device: UUID of the card, or None for the first one.
        ours: process ids that are not to be counted as others.
    """
    rows: list[list[str]] = []
    for name in _REASONS:
        rows = rows or _ask([f"--query-gpu={','.join((*_FIELDS, name))}"], device)
    if not rows or len(rows[0]) != len(_FIELDS) + 1:
        return None
    sm, max_sm, memory, temperature, power, reasons = rows[0]
    return GpuState(
        at_s=round(at_s, 3),
        sm_mhz=_number(sm),
        max_sm_mhz=_number(max_sm),
        memory_mhz=_number(memory),
        temperature_c=_number(temperature),
        power_w=_number(power),
        throttle=_reasons(reasons),
        other_processes=_others(device, ours),
    )


def _ask(query: list[str], device: str | None) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    which = [f"--id={device}"] if device else []
    command = [program, *query, "--format=csv,noheader,nounits", *which]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _reasons(text: str) -> str | None:
    try:
        bits = int(text, 16)
    except ValueError:
        return None
    return ", ".join(name for bit, name in _THROTTLE.items() if bits & bit)


def _others(device: str | None, ours: Collection[int]) -> int | None:
    rows = _ask(["--query-compute-apps=pid"], device)
    pids = {int(row[0]) for row in rows if row[0].isdigit()}
    # In a container the driver names the host's pids, or none; then they cannot be told from our own.
    known = pids & set(ours)
    if not known:
        return None
    return len(pids - set(ours))


def noise(states: Sequence[GpuState]) -> list[str]:
    """Why the figures deserve less trust, as sentences."""
    found = []
    clocks = [state.sm_mhz for state in states if state.sm_mhz is not None]
    if clocks and min(clocks) < (1 - _CLOCK_SPREAD) * max(clocks):
        found.append(f"the SM clock moved between {min(clocks):.0f} and {max(clocks):.0f} MHz")
    reasons = sorted({state.throttle for state in states if state.throttle})
    if reasons:
        found.append(f"the card was throttled: {'; '.join(reasons)}")
    if any("power cap" in reason for reason in reasons):
        found.append("a script that makes no pauses, as turns do, meets its power cap at a lower clock still")
    others = max((state.other_processes or 0 for state in states), default=0)
    if others:
        found.append(f"{others} other process{'es' if others > 1 else ''} used the card")
    return found


def load_average() -> float | None:
    """The host's load over the last minute, per CPU."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None


def visible(device: str) -> str:
    """CUDA_VISIBLE_DEVICES that leaves one device; the index counts among those that are visible now."""
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return ""
    now = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    place = int(index or "0")
    return now[place] if place < len(now) else str(place)
