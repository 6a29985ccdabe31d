"""How long ``breakscope fix`` takes and where the time goes: two checkouts in turns, one row a script.

    python benchmarks/fix_speed.py OLD_CHECKOUT NEW_CHECKOUT                    # every script, once each
    python benchmarks/fix_speed.py OLD NEW marian t5 --repeat 3 --cpus 0,1      # medians, on two cores

Models are small and random; nothing is downloaded. Uses torch and transformers of the Python that runs it.
Each script is scanned once with each checkout; then ``fix`` runs on a copy of that report, old and new in
turns, because a machine that others use is slower at one time than at another: the ratio says more than
either figure. ``cached`` is a second ``fix``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import fix_models

_MARIAN = """
model = tf.MarianModel(tf.MarianConfig(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
    max_position_embeddings=64, pad_token_id=0, decoder_start_token_id=0)).half()
"""
_OWN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        x = torch.relu(self.inner(x))
        if x.abs().max() > 4:
            x = x.clamp(-4, 4)
        return self.outer(x)

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(12):
    optimizer.zero_grad()
    loss = net(torch.randn(8, 16)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(f"step {step}: {loss.item():.6f}")
"""


def _inferring(build: str, call: str) -> str:
    return fix_models.HEAD + build + fix_models.INFERRING.format(call=call)


def _training(build: str, call: str, out: str) -> str:
    return fix_models.HEAD + build + fix_models.TRAINING.format(call=call, out=out)


SCRIPTS = {
    "marian": _inferring(_MARIAN, "input_ids=(ids := tokens(2, length)), decoder_input_ids=ids[:, :3]"),
    "t5": _inferring(*fix_models.INFER["t5"]),
    "own": _OWN,
    "ibert": _training(*fix_models.TRAIN["ibert"]),
    "real": Path(__file__).with_name("fix_real_size.py").read_text(),
}
# What a phase begins with, in the words that fix itself tells its progress with.
DRIVER = """
import os, sys, time
from pathlib import Path
from breakscope.cli import fix, main
log, began = open(sys.argv[1], "w", buffering=1), time.monotonic()
def spent():
    # Of this process and all below it, with those that have ended: seconds of processors.
    found = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(place.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, (above, _) in found.items() if above in ours} - ours:
        ours |= more
    return sum(found[pid][1] for pid in ours) / os.sysconf("SC_CLK_TCK")
def told(text):
    log.write(f"{time.monotonic() - began:.2f} {spent():.2f} {text}\\n")
fix.draw, _ = told, fix.draw  # the second raises where it is called otherwise by now
told("start")
code = main(sys.argv[2:])
told("end")
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """What was being done, and the seconds it took; without ``/proc`` those of processors are 0."""

    text: str
    seconds: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of ``fix``.

    Attributes:
        seconds: on the clock. cpu_s: of processors, of all its processes; on a machine that others use too,
            these say more. phases: by what was being done; what is begun ahead counts where it is at work.
        answers: status of every finding.
    """

    seconds: float
    cpu_s: float
    phases: tuple[Phase, ...]
    answers: tuple[tuple[str, str], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    names = f"scripts, or files of your own (default: all of {', '.join(SCRIPTS)})"
    parser.add_argument("names", nargs="*", help=names)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--cpus", help="cores to stay on, as for taskset")
    parser.add_argument("--only", choices=("old", "new"), help="measure one of the two")
    parser.add_argument("--phases", action="store_true", help="seconds of every phase of the median runs")
    parser.add_argument("--keep", type=Path, help="folder for scripts, reports and fixes")
    parser.add_argument("--fix", default="", help="further options of fix, in one word: '--no-inductor'")
    parser.add_argument("--cold", action="store_true", help="each fix with an empty cache of Inductor's")
    asked = parser.parse_args()
    options = asked.fix.split()
    if asked.cpus:
        os.sched_setaffinity(0, {int(one) for one in asked.cpus.split(",")})
    arms = {name: getattr(asked, name).resolve() for name in ("old", "new") if asked.only in (None, name)}
    root = asked.keep or Path(tempfile.mkdtemp(prefix="fix_speed_"))
    for name in asked.names or SCRIPTS:
        place = root / Path(name).stem
        folders = {arm: _scanned(checkout, name, place / arm) for arm, checkout in arms.items()}
        runs: dict[str, list[Ran]] = {arm: [] for arm in (*arms, "cached")}
        for _ in range(asked.repeat):
            for arm, checkout in arms.items():
                shutil.rmtree(folders[arm] / ".breakscope" / "proofs", ignore_errors=True)
                cache = Path(tempfile.mkdtemp(dir=place)) if asked.cold else None
                runs[arm].append(_fixed(checkout, folders[arm], options, cache))
            if "new" in arms:
                runs["cached"].append(_fixed(arms["new"], folders["new"], options, cache))
        _show(name, runs, phases=asked.phases)
    if asked.keep is None:
        shutil.rmtree(root)


def _run(
    checkout: Path, folder: Path, words: list[str], more: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    ours = {"PYTHONPATH": path, "TRANSFORMERS_VERBOSITY": "error"}
    environment = {**os.environ, **ours, **(more or {})}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


def _scanned(checkout: Path, name: str, folder: Path) -> Path:
    """A folder with the script and its report."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(SCRIPTS[name] if name in SCRIPTS else Path(name).read_text())
    done = _run(checkout, folder, ["-m", "breakscope", "scan", "model.py"])
    report = folder / ".breakscope" / "latest.json"
    if not report.exists() or json.loads(report.read_text())["run"]["status"] != "ok":
        sys.exit(f"{name}: the scan failed: {done.stderr[-500:]}")
    shutil.copy(report, folder / "report.json")
    return folder


def _fixed(checkout: Path, folder: Path, options: list[str], cache: Path | None) -> Ran:
    """A run of ``fix``; ``cache``: a folder for Inductor's."""
    report, log = folder / ".breakscope" / "latest.json", folder.with_suffix(".phases")
    shutil.copy(folder / "report.json", report)
    words = ["-c", DRIVER, str(log), "fix", "--all", "--unsafe", *options]
    more = {} if cache is None else {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    began, spent = time.monotonic(), _spent()
    done = _run(checkout, folder, words, more)
    seconds, cpu_s = time.monotonic() - began, _spent() - spent
    folder.with_suffix(".txt").write_text(done.stdout + done.stderr)
    if done.returncode not in (0, 1):
        sys.exit(f"fix failed: {done.stderr[-500:]}")
    stamps = [line.split(" ", 2) for line in log.read_text().splitlines()]
    phases = [
        Phase(text, float(end) - float(at), float(after) - float(before))
        for (at, before, text), (end, after, _) in itertools.pairwise(stamps)
    ]
    return Ran(seconds, cpu_s, tuple(phases), _answers(report))


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _answers(report: Path) -> tuple[tuple[str, str], ...]:
    found = []
    for finding in json.loads(report.read_text())["findings"]:
        suggestion = finding.get("suggestion")
        if suggestion is not None:
            evidence = suggestion.get("evidence") or {}
            status = "consent" if evidence.get("consent") else suggestion["status"]
            where = finding["location"]
            place = f"{finding['code']} {Path(where['file']).name}:{where['line']}:{where['column']}"
            found.append((place, status))
    return tuple(sorted(found))


def _show(name: str, runs: dict[str, list[Ran]], *, phases: bool) -> None:
    found = {arm: ran for arm, ran in runs.items() if ran}
    medians = {arm: statistics.median(one.seconds for one in ran) for arm, ran in found.items()}
    cpu = {arm: statistics.median(one.cpu_s for one in ran) for arm, ran in found.items()}
    line = " · ".join(f"{arm} {medians[arm]:.1f} s (processors {cpu[arm]:.1f} s)" for arm in found)
    if {"old", "new"} <= found.keys():
        line += f" · new/old {medians['new'] / medians['old']:.2f} (processors {cpu['new'] / cpu['old']:.2f})"
    each = {arm: " ".join(f"{one.seconds:.1f}" for one in ran) for arm, ran in found.items()}
    print(f"{name}: {line}   (each: {each})", flush=True)
    answers = {arm: dict(ran[0].answers) for arm, ran in found.items()}
    for place in sorted(set().union(*answers.values())):
        said = {arm: known.get(place, "nothing") for arm, known in answers.items()}
        same = len(set(said.values())) == 1
        print(f"    {place}: {next(iter(said.values())) if same else said}{'' if same else '  CHANGED'}")
    if phases:
        for arm, ran in found.items():
            print(f"  {arm}")
            for phase in sorted(ran, key=lambda one: one.seconds)[len(ran) // 2].phases:
                print(f"    {phase.seconds:6.1f} s  {phase.cpu_s:6.1f} s of processors  {phase.text}")


if __name__ == "__main__":
    main()
