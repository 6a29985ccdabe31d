"""``--against``: is an arm slower than a stored one, beyond the noise? Pure."""

from __future__ import annotations

from breakscope.bench.stats import REPEATABILITY
from breakscope.errors import UsageError
from breakscope.report.benchmark import Benchmark

_SLOWER_HOST = 1.05


def exceeded(new: Benchmark, old: Benchmark) -> list[str]:
    """A sentence for each arm of the stored benchmark that is slower now, has failed, or is gone.

    An arm is slower only if the two intervals do not touch and the medians differ by more than two runs of
    one arm do.

    Raises:
        UsageError: if the two were not measured on the same device, or time different things.
    """
    for what in ("device", "unit"):
        stored, here = getattr(old, what), getattr(new, what)
        if stored != here:
            raise UsageError(
                f"--against: its {what} is {stored!r}, this one's is {here!r}; they cannot be compared"
            )
    pace = _pace(new, old)
    arms = {arm.name: arm for arm in new.arms}
    found = []
    for before in old.arms:
        if before.step is None:
            continue
        now = arms.get(before.name)
        if now is None:
            found.append(f"{before.name}: in the earlier report, but not measured")
        elif now.step is None:
            found.append(f"{before.name}: failed: {now.reason}")
        elif now.step.low > before.step.high and now.step.median > (1 + REPEATABILITY) * before.step.median:
            found.append(
                f"{before.name}: {now.step.median:.4g} ms a step, "
                f"{now.step.median / before.step.median:.2f}x the stored {before.step.median:.4g} ms "
                f"(intervals {now.step.low:.4g} to {now.step.high:.4g} and "
                f"{before.step.low:.4g} to {before.step.high:.4g}){pace}"
            )
    return found


def _pace(new: Benchmark, old: Benchmark) -> str:
    """Whether the host itself was slower this time: whoever reads of a slower arm must know."""
    if new.pace_ms is None or old.pace_ms is None or new.pace_ms <= _SLOWER_HOST * old.pace_ms:
        return ""
    return (
        f"; but the host was slower too: the same piece of Python work took {new.pace_ms:.3g} ms, "
        f"and {old.pace_ms:.3g} ms then"
    )
