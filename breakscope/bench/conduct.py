"""The arms in turn: all started side by side, one at a time at work.

Rounds interleave them: in a round each process makes the same few steps of the script, in an order that
changes from round to round. So all arms meet the same inputs and the same moods of the machine.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakscope.bench import afterwards, gpu_state, scout, slow_turns, stats
from breakscope.bench.conducted import Conducted
from breakscope.bench.players import Player, attempt, start, wait_until_ready
from breakscope.errors import ScriptTooShortError
from breakscope.inside.bench import pace
from breakscope.inside.bench.plan import Arm, ArmSettings, Options
from breakscope.inside.bench.wire import RUN
from breakscope.run.launch import Program

ROUNDS = 10
# Where turns met a slow CPU. Steps of an optimizer cannot be repeated, and some must be left to profile.
_MOST_ROUNDS = {"call": 2 * ROUNDS, "optimizer": ROUNDS + ROUNDS // 2}
MOST_STEPS = 200  # timed, per process, where nobody asks for a number
_WARM_CHUNK = 4
_MOST_WARM_STEPS = 60
_MOST_WARM_S = 20.0
_LONG_STEP_MS = 200.0
# A process that has waited finds cold caches and a slow CPU clock; so long it works before it is timed. All
# make the same number of steps, to stay together; where these are short, the rest of the time is spun away.
_SETTLE_MS = 60.0
_AT_THE_LIMIT_MS = 300.0  # a card at its power limit is faster for so long after a rest
_LEAST_SETTLE_STEPS = 3
_MOST_SETTLE_STEPS = 100
_GRACE_S = 4.0


class Conductor:
    """Runs the processes of all arms to their ends.

    Args:
        meanwhile: done while the processes start.
        say: takes the live line.
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        shared: ArmSettings,
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        self._program = program
        self._options = options
        self._shared = shared
        self._folder = folder
        self._say = say
        self._began = time.monotonic()
        self._most_warm_steps = _MOST_WARM_STEPS
        self._scouting: Player | None = None
        self._best_pace: float | None = None
        self._random = random.Random(options.seed)  # noqa: S311 -- the order of rounds
        self.found = Conducted(spent=dict.fromkeys(("startup_s", "warmup_s", "timed_s", "kernels_s"), 0.0))

    def run(self, meanwhile: Callable[[], None]) -> Conducted:
        """Start, warm up, measure in rounds, compare, end. An arm that fails is left with its reason.

        Raises:
            ScriptTooShortError: the script makes too few steps for a verdict.
            KeyboardInterrupt: before anything was measured. Later, what was measured is returned.
        """
        arms = self._options.arms()
        try:
            with self._timed("startup_s"):
                self._scouting = self._start_scout(arms[0])
                players = self._long_enough(self._start_all(arms))
                meanwhile()
            self._perform(players)
            self._again_alone()
        except KeyboardInterrupt:
            self._kill_all()
            if not any(player.timed_steps for player in self.found.players):
                raise
            self._interrupted()
            return self.found
        except BaseException:
            self._kill_all()
            raise
        self._end_all()
        return self.found

    def _kill_all(self) -> None:
        """Nobody waits for scripts to end by themselves."""
        for player in self.found.players:
            player.kill()
        if self._scouting is not None:
            self._scouting.kill()

    def _interrupted(self) -> None:
        """Some minutes of measuring are not thrown away."""
        self.found.interrupted = True
        if not any(one.measured for one in self.found.players):
            ready = [one for one in self.found.players if one.failed is None]
            self.found.slow_turns = slow_turns.leave_out(ready, ROUNDS // 2)
        for player in self.found.players:
            if player.alive and player.timed_steps:
                player.lost = "it was interrupted"
            elif player.alive:
                player.failed = "it was interrupted before its steps were timed"

    def _end_all(self) -> None:
        """Let the scripts end by themselves, all at once, and end those that do not."""
        for player in self.found.players:
            player.ask_to_end()
        deadline = time.monotonic() + _GRACE_S
        for player in self.found.players:
            player.end(max(0.1, deadline - time.monotonic()))

    def _start(self, arm: Arm, number: int, again: str = "") -> Player:
        index = self._options.arms().index(arm)
        folder = self._folder / f"arm{index}{again}" / f"process{number}"
        player = start(self._program, arm, number, self._options, self._shared, folder)
        self.found.players.append(player)
        return player

    def _start_all(self, arms: Sequence[Arm], again: str = "") -> list[Player]:
        return [self._start(arm, number, again) for number in range(self._options.processes) for arm in arms]

    # -- scripts that are too short ----------------------------------------------------------------

    def _start_scout(self, eager: Arm) -> Player | None:
        if self._options.function is not None or self._shared.unit == "call":
            return None
        return start(self._program, eager, 0, self._options, self._shared, self._folder / "scout")

    def _long_enough(self, players: list[Player]) -> list[Player]:
        """The players, once it is known that the script makes enough steps for them."""
        if self._scouting is None:
            return players
        self._say("counting the script's steps")
        deadline = time.monotonic() + self._options.timeout_s
        made = scout.steps_of_script(self._scouting, self._plan, deadline)
        wanted = self._plan(1.0)
        if made is None:
            return players
        if made >= wanted.least:
            # Some are left to be timed.
            self._most_warm_steps = min(_MOST_WARM_STEPS, made - wanted.least + wanted.warmup)
            return players
        if not self._options.repeat:
            raise ScriptTooShortError(scout.too_few(made, wanted))
        return self._start_all_again([player.arm for player in players], scout.repeated(made))

    def _plan(self, step_ms: float) -> scout.Plan:
        return scout.plan(3 * _WARM_CHUNK, ROUNDS, *self._round_of(step_ms, optimizer=True))

    def _start_all_again(self, arms: Sequence[Arm], note: str) -> list[Player]:
        """With a step that is a call, which can be repeated."""
        self._kill_all()
        self.found.players = []
        self.found.notes.append(note)
        self._shared = replace(self._shared, unit="call")
        return self._start_all(tuple(dict.fromkeys(arms)), "-repeated")

    def _perform(self, players: Sequence[Player]) -> None:
        with self._timed("startup_s"):
            deadline = time.monotonic() + self._options.timeout_s
            for player in players:
                self._say(f"starting {player.arm.name}")
                attempt(wait_until_ready, player, deadline)
        with self._timed("warmup_s"):
            for player in players:
                if player.alive:
                    self._say(f"compiling and warming up {player.arm.name} ({_which(player)})")
                    attempt(self._warm_up, player)
            self._align(players)
        with self._timed("timed_s"):
            self._rounds(players)
        for player in players:
            player.measured = player.alive
        with self._timed("kernels_s"):
            afterwards.compare_outputs(self.found, players)
            afterwards.look_into(players, self._options, self._folder, self._say)

    # -- warm-up -----------------------------------------------------------------------------------

    def _warm_up(self, player: Player) -> None:
        began = time.monotonic()
        while True:
            long = bool(player.warmup) and player.warmup[-1]["ms"] > _LONG_STEP_MS
            chunk = 2 if long else _WARM_CHUNK
            reply = player.ask(RUN, steps=chunk, settle=0, timed=False)
            player.warmup += reply["samples"]
            recent = player.warmup[-2 * chunk :]
            quiet = [sample["ms"] for sample in recent if not sample["compiles"]]
            if len(quiet) == len(recent) and stats.steady(quiet, window=chunk):
                player.steady = True
                break
            compiled_s = sum(sample["compile_s"] for sample in player.warmup)
            tired = time.monotonic() - began - compiled_s > _MOST_WARM_S and len(player.warmup) >= 2 * chunk
            if reply["ended"] or tired or len(player.warmup) >= self._most_warm_steps:
                break
        player.warmed = dict(player.last)

    def _align(self, players: Sequence[Player]) -> None:
        """Bring all to the same step of the script, so that rounds see the same inputs."""
        furthest = max((player.last.get("steps", 0) for player in players if player.alive), default=0)
        for player in players:
            missing = furthest - player.last.get("steps", 0)
            if player.alive and missing > 0 and not player.last.get("ended"):
                attempt(self._more, player, missing)

    def _more(self, player: Player, steps: int) -> None:
        player.warmup += player.ask(RUN, steps=steps, settle=0, timed=False)["samples"]
        player.warmed = dict(player.last)

    # -- rounds ------------------------------------------------------------------------------------

    def _rounds(self, players: Sequence[Player]) -> None:
        ready = [player for player in players if player.alive and not player.last.get("ended")]
        if not ready:
            return
        steps, settle = self._round_size(ready)
        self._best_pace = pace.best_of_all_ms()
        for number in range(min(_MOST_ROUNDS[player.unit] for player in ready)):
            turn = [player for player in ready if player.alive and not player.last.get("ended")]
            if not turn or (number >= ROUNDS and slow_turns.enough(turn, ROUNDS)):
                break
            self._random.shuffle(turn)
            first = max(settle, self._steps_to_tire(turn))
            for player in turn:
                self._say(f"round {number + 1} of {ROUNDS}: {player.arm.name}")
                attempt(self._round, player, number, steps, first)
            self._after_round(ready)
        self.found.slow_turns = slow_turns.leave_out(ready, ROUNDS // 2)

    def _round_size(self, players: Sequence[Player]) -> tuple[int, int]:
        """(timed steps, steps before them) of one process in one round; the same for all."""
        slowest = max(_typical_ms(player) for player in players)
        return self._round_of(slowest, optimizer=any(player.unit == "optimizer" for player in players))

    def _round_of(self, slowest: float, *, optimizer: bool) -> tuple[int, int]:
        if self._options.steps is not None:
            total = self._options.steps
        else:
            total = int(min(MOST_STEPS, max(ROUNDS, self._options.seconds * 1e3 / max(slowest, 1e-3))))
        if optimizer and self._options.steps is None:
            total = min(total, 5 * ROUNDS)  # the script's own steps are all there is
        # The script's own steps are scarce where a step cannot be repeated.
        most = 2 if optimizer else _MOST_SETTLE_STEPS
        wanted = max(_LEAST_SETTLE_STEPS, math.ceil(_SETTLE_MS / max(slowest, 1e-3)))
        return math.ceil(total / ROUNDS), min(most, wanted)

    def _steps_to_tire(self, players: Sequence[Player]) -> int:
        """Steps until a card at its limit is as slow as in a script that makes no pauses."""
        if not self.found.gpu or not self.found.gpu[-1].throttle or players[0].unit == "optimizer":
            return 0
        return math.ceil(_AT_THE_LIMIT_MS / max(min(map(_typical_ms, players)), 1e-3))

    def _round(self, player: Player, number: int, steps: int, settle: int) -> None:
        spin_ms = max(0.0, _SETTLE_MS - settle * _typical_ms(player))
        known = (self._best_pace, slow_turns.best(self.found.players))
        best = min((ms for ms in known if ms is not None), default=None)
        reply = player.ask(RUN, steps=steps, settle=settle, timed=True, spin_ms=spin_ms, best_pace_ms=best)
        before, after = reply["pace_ms"]
        kept = []
        for sample in reply["samples"]:
            if sample["settle"]:
                continue
            if sample["compiles"] or reply.get("tuned"):
                reason = "something was compiled in it"
                player.discarded[reason] = player.discarded.get(reason, 0) + 1
            else:
                kept.append(sample)
        player.compiled_why += reply.get("compiled_why", ())
        while len(player.rounds) <= number:
            player.rounds.append([])
            player.paces.append((before, after))
        player.rounds[number] = kept
        player.peak_mib = max(player.peak_mib or 0.0, float(reply["peak_mib"]))

    def _after_round(self, players: Sequence[Player]) -> None:
        if not any(player.last.get("on_gpu") for player in players):
            return
        uuid = next((info["device_uuid"] for info in _infos(players) if info.get("device_uuid")), None)
        device = f"GPU-{uuid}" if uuid and not str(uuid).startswith("GPU-") else uuid
        pids = [player.popen.pid for player in self.found.players]
        state = gpu_state.read(time.monotonic() - self._began, device, pids)
        if state is not None:
            self.found.gpu.append(state)

    # -- what did not fit --------------------------------------------------------------------------

    def _again_alone(self) -> None:
        """Arms that ran out of memory in company get the machine to themselves."""
        if len(self.found.players) < 2:
            return
        poor = [player.arm for player in self.found.players if player.out_of_memory]
        if not poor:
            return
        self._end_all()
        for arm in dict.fromkeys(poor):
            reason = next(one.failed for one in self.found.of(arm) if one.out_of_memory)
            self.found.players = [one for one in self.found.players if one.arm != arm]
            again = self._start(arm, 0, again="-alone")
            self._perform([again])
            again.ask_to_end()
            again.end(_GRACE_S)
            if again.failed is None:
                self.found.alone[arm.name] = f"it did not fit beside the other arms ({_short(reason)})"

    def _timed(self, part: str) -> _Timer:
        return _Timer(self.found.spent, part)


class _Timer:
    def __init__(self, spent: dict[str, float], part: str) -> None:
        self._spent = spent
        self._part = part

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_error: object) -> None:
        self._spent[self._part] += time.monotonic() - self._began


def _typical_ms(player: Player) -> float:
    quiet = [sample["ms"] for sample in player.warmup[-_WARM_CHUNK:] if not sample["compiles"]]
    return statistics.median(quiet) if quiet else 1.0


def _infos(players: Sequence[Player]) -> list[dict[str, Any]]:
    return [player.last.get("info") or {} for player in players]


def _which(player: Player) -> str:
    return "empty cache" if player.number == 0 else "filled cache"


def _short(text: str | None) -> str:
    return (text or "").split("\n")[0][:120]
