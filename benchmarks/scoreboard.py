"""What breakscope does with models and programs that it was not made for, a row each; can be continued.

    python benchmarks/scoreboard.py --jobs 4       # all that is installed; continues
    python benchmarks/scoreboard.py --rows "transformers/b* train" programs/*  # some
    python benchmarks/scoreboard.py --list
    python benchmarks/scoreboard.py --screened screen.jsonl --scripts scripts  # what scoreboard_screen.py saw
    python benchmarks/scoreboard_page.py scoreboard.jsonl docs/scoreboard.md   # the page of it

A row is a script (``--keep`` leaves it there): a small random model of transformers, timm or torchvision in
evaluation or in training, or a short program. It is scanned, fixed, and scanned with the fixes at eight other
shapes and values as well, where it must give what the plain script gives. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from scoreboard_check import recorded_sites
from scoreboard_models import Model, timm_models, torchvision_models, transformers_models
from scoreboard_programs import program_names, program_text
from scoreboard_screen import script_name

HERE = Path(__file__).resolve().parent
SITE_CODES = ("BS301", "BS302", "BS306")  # skipped frames that are sites of a break


@dataclass(frozen=True, slots=True)
class Row:
    """A model or program in one mode."""

    name: str
    mode: str
    model: Model | None = None

    @property
    def label(self) -> str:
        return f"{self.name} {self.mode}"


@dataclass(slots=True)
class Limits:
    seconds: float
    gigabytes: float
    budget: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", nargs="+", metavar="PATTERN", help="'transformers/b*', '*/bart train', @FILE of such"
    )
    parser.add_argument("--list", action="store_true", help="name the rows and what is known of them")
    parser.add_argument(
        "--out", type=Path, default=Path("scoreboard.jsonl"), help="a JSON line for each row; continued"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds for a row")
    parser.add_argument("--memory", type=float, default=8, help="gigabytes for a row and all its processes")
    parser.add_argument("--budget", type=float, default=20, help="seconds of comparisons for each rewrite")
    parser.add_argument(
        "--for", dest="whole", type=float, help="seconds for everything; what is not done stays undone"
    )
    parser.add_argument("--keep", type=Path, help="a folder for scripts, reports and fixes")
    parser.add_argument("--screened", type=Path, help="only models that broke here, and programs")
    parser.add_argument("--scripts", type=Path, help="scripts that are written already")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "MODE", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    limits = Limits(asked.limit, asked.memory, asked.budget)
    if asked.one:
        name, mode, folder = asked.one
        measure_row(name, mode, Path(folder), limits, asked.scripts)
        return 0
    rows = select_rows(all_rows(), asked.rows)
    if asked.screened:
        broke = {(one["row"], one["mode"]) for one in read_rows(asked.screened) if one.get("sites")}
        rows = [row for row in rows if row.model is None or row.model.remote or (row.name, row.mode) in broke]
    done = {(one["row"], one["mode"]) for one in read_rows(asked.out)}
    if asked.list:
        for row in rows:
            print(row.label, "(done)" if (row.name, row.mode) in done else "")
        return 0
    open_rows = [row for row in rows if (row.name, row.mode) not in done]
    print(f"{len(open_rows)} rows to do, {len(rows) - len(open_rows)} done", flush=True)
    deadline = None if asked.whole is None else time.monotonic() + asked.whole
    conduct(open_rows, asked, limits, deadline)
    return 0


def all_rows() -> list[Row]:
    """Every row that can be made of what is installed."""
    rows = [Row(name, "run") for name in program_names()]
    libraries: tuple[tuple[str, Callable[[], list[Model]]], ...] = (
        ("transformers", transformers_models),
        ("torchvision", torchvision_models),
        ("timm", timm_models),
    )
    for library, models in libraries:
        if find_spec(library) is None:
            continue
        try:
            found = models()
        except (
            ImportError,
            RuntimeError,
        ) as error:  # torchvision without its operators, timm without torchvision
            print(f"{library} cannot be used: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        rows += [Row(model.name, mode, model) for model in found for mode in model.modes]
    return rows


def select_rows(rows: list[Row], patterns: list[str] | None) -> list[Row]:
    """The rows that a pattern fits, in the order of the patterns."""
    if not patterns:
        return rows
    listed = [
        line.strip()
        for pattern in patterns
        for line in (Path(pattern[1:]).read_text().splitlines() if pattern.startswith("@") else [pattern])
        if line.strip()
    ]
    chosen: dict[str, Row] = {}
    for pattern in listed:
        for row in rows:
            if fnmatch(row.label, pattern) or fnmatch(row.name, pattern):
                chosen.setdefault(row.label, row)
    return list(chosen.values())


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


# --- all rows ---


def conduct(rows: list[Row], asked: argparse.Namespace, limits: Limits, deadline: float | None) -> None:
    """Measure rows in processes of their own and append each as it is done."""
    lock, finished = Lock(), Counter[str]()
    out, keep = asked.out, asked.keep

    def do(row: Row) -> None:
        if deadline is not None and time.monotonic() > deadline - 20:
            return
        with tempfile.TemporaryDirectory(prefix="scoreboard-") as scratch:
            folder = Path(scratch)
            found = _in_process(row, folder, asked.scripts, limits, deadline)
            if keep is not None:
                kept = keep / row.label.replace("/", "-").replace(" ", "-")
                shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=_left_by_a_kill)
        if found is None:
            return
        with lock, out.open("a") as file:
            file.write(json.dumps(found) + "\n")
            finished["rows"] += 1
            print(f"{finished['rows']:4}/{len(rows)}  {summary(found)}", flush=True)

    out.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for _ in pool.map(do, rows):
            pass


def _left_by_a_kill(folder: str, names: list[str]) -> set[str]:
    """What cannot be copied: pipes and sockets of a process that was killed."""
    return {name for name in names if not ((path := Path(folder, name)).is_file() or path.is_dir())}


def summary(row: dict[str, Any]) -> str:
    """A row in one line."""
    if row.get("trouble") and "sites" not in row:
        return f"{row['row']} {row['mode']}: {row['trouble']}"
    figures = f"{row['sites']} sites, {row.get('left_proved', row['sites'])} left"
    if "left_consent" in row:
        figures += f", {row['left_consent']} with consent"
    trouble = f" ({row['trouble']})" if row.get("trouble") else ""
    return f"{row['row']} {row['mode']}: {figures}, {row['seconds']:.0f} s{trouble}"


def _in_process(
    row: Row, folder: Path, scripts: Path | None, limits: Limits, deadline: float | None
) -> dict[str, Any] | None:
    words = [sys.executable, str(HERE / "scoreboard.py"), "--one", row.name, row.mode, str(folder)]
    words += ["--budget", str(limits.budget), "--limit", str(limits.seconds)]
    words += [] if scripts is None else ["--scripts", str(scripts.resolve())]
    started = time.monotonic()
    log = (folder / "log.txt").open("w")
    child = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    ended = ""
    while child.poll() is None:
        time.sleep(0.3)
        now = time.monotonic()
        if deadline is not None and now > deadline:
            _kill(child.pid)
            return None
        if now - started > limits.seconds:
            ended = f"over {limits.seconds:.0f} s"
        elif _resident(child.pid) > limits.gigabytes:
            ended = f"over {limits.gigabytes:g} GB"
        if ended:
            _kill(child.pid)
            child.wait()
    path = folder / "row.json"
    found: dict[str, Any] = (
        json.loads(path.read_text()) if path.exists() else {"row": row.name, "mode": row.mode}
    )
    if row.model is not None and row.model.graphmend is not None:
        found["graphmend"] = list(row.model.graphmend)
    if ended:
        found["trouble"] = ended
    elif child.returncode and not found.get("trouble"):
        found["trouble"] = "the benchmark failed: " + (folder / "log.txt").read_text().strip()[-200:]
    return {**found, "seconds": round(time.monotonic() - started, 1), "versions": versions()}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("torch", "transformers", "timm", "torchvision", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(rest[1]), []).append(int(path.parent.name))
    found, open_ones = [], [pid]
    while open_ones:
        one = open_ones.pop()
        found.append(one)
        open_ones += children.get(one, [])
    return found


def _resident(pid: int) -> float:
    """Gigabytes in memory of a process and all that it started; 0 where there is no /proc."""
    pages = 0
    for one in _descendants(pid):
        try:
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e9


def _kill(pid: int) -> None:
    for one in reversed(_descendants(pid)):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue


# --- one row ---


@dataclass(slots=True)
class Work:
    """A row under way: what is known is in ``row.json`` after each stage, so that a kill keeps it."""

    folder: Path
    limits: Limits
    found: dict[str, Any]
    started: float = field(default_factory=time.monotonic)

    def keep(self, **more: Any) -> None:
        self.found.update(more)
        path = self.folder / "row.json"
        path.with_suffix(".new").write_text(json.dumps(self.found))
        path.with_suffix(".new").replace(path)

    def run(self, stage: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        quiet = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **quiet, **environment},
        )
        took = round(time.monotonic() - began, 1)
        (self.folder / f"{stage}.txt").write_text(done.stdout + done.stderr)
        self.keep(stages={**self.found.get("stages", {}), stage: took})
        return done

    def breakscope(self, stage: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(stage, "-m", "breakscope", *words, **environment)


def measure_row(name: str, mode: str, folder: Path, limits: Limits, scripts: Path | None) -> None:
    """Write, scan, fix, scan again and check one row; leaves ``row.json`` in the folder."""
    work = Work(folder, limits, {"row": name, "mode": mode})
    work.keep()
    if not _write(work, scripts):
        return
    trace = str(folder / "trace")
    scan = ("scan", "--no-cost", "--no-children", "-q", "-o")
    done = work.breakscope("scan", *scan, "before.json", "row.py", TORCH_TRACE=trace)
    before = _report(work, "before.json", done)
    if before is None:
        return
    found = _sites(before)
    ours, dynamos = {_place(one) for one in found}, recorded_sites(Path(trace))
    work.keep(
        sites=len(found),
        places=len(ours),
        recorded=len(dynamos),
        equal=ours == dynamos,
        crossings=sum(one["counts"].get("crossings") or 0 for one in found),
        unattributed=len(before["reconciliation"]["unattributed"]),
        recompiles=before["totals"]["recompiles"],
        codes=dict(Counter(one["code"] for one in found)),
    )
    if not found:
        return
    shutil.copy(folder / "before.json", folder / "consented.json")
    _fix(work, "proved", "before.json")
    if work.found["answers"].get("consent"):
        _fix(work, "consent", "consented.json")


def _write(work: Work, scripts: Path | None) -> bool:
    name, mode = work.found["row"], work.found["mode"]
    script = work.folder / "row.py"
    if scripts is not None and (written := scripts / script_name(name, mode)).exists():
        shutil.copy(written, script)
        return True
    if name.startswith("programs/"):
        script.write_text(program_text(name))
        return True
    done = work.run("build", str(HERE / "scoreboard_models.py"), name, mode, str(script))
    if done.returncode:
        work.keep(trouble="not built: " + (done.stderr.strip().splitlines() or ["no word"])[-1][:300])
    return done.returncode == 0


def _report(work: Work, name: str, done: subprocess.CompletedProcess[str]) -> dict[str, Any] | None:
    path = work.folder / name
    report: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if report.get("run", {}).get("status") == "ok":
        return report
    errors = [line for line in done.stderr.splitlines() if "Error" in line or "breakscope" in line]
    work.keep(trouble=f"the scan did not end well: {(errors or ['no report'])[-1][:200]}")
    return None


def _fix(work: Work, kind: str, report: str) -> None:
    """Fix, with proved patches alone or with those that need consent; scan and run the result."""
    folder = work.folder
    words = [
        "fix",
        "--all",
        "--no-inductor",
        "--budget",
        str(work.limits.budget),
        "--fixes",
        f"fixes-{kind}",
        report,
    ]
    done = work.breakscope(f"fix-{kind}", *words, *["--unsafe"] * (kind == "consent"))
    answered = json.loads((folder / report).read_text())
    if kind == "proved":
        work.keep(**_answers(_sites(answered)))
    if done.returncode not in (0, 1):
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        work.keep(trouble=f"fix ended with {done.returncode}: {last}")
        return
    if not any(
        ((one.get("suggestion") or {}).get("evidence") or {}).get("accepted") for one in answered["findings"]
    ):
        work.keep(**{f"left_{kind}": work.found["sites"]})
        return
    # Scanned at the shapes that the fixes were made for, and at eight others.
    scan = (
        "scan",
        "--no-cost",
        "--no-children",
        "-q",
        "--fixes",
        f"fixes-{kind}",
        "-o",
        f"after-{kind}.json",
    )
    done = work.breakscope(f"scan-{kind}", *scan, "row.py", "--save", f"{kind}.pt")
    after = _report(work, f"after-{kind}.json", done)
    if after is None:
        return
    left = _sites(after)
    work.keep(**{f"left_{kind}": len(left), f"recompiles_{kind}": after["totals"]["recompiles"]})
    work.keep(**{f"check_{kind}": _check(work, kind)})


def _check(work: Work, kind: str) -> dict[str, Any]:
    """The plain script, uncompiled and without breakscope, against the patched one, compiled."""
    found = _compared(work, "plain.pt", f"{kind}.pt", TORCHDYNAMO_DISABLE="1")
    if found.get("different"):
        # Is it the patch, or what torch.compile makes of this script anyway?
        found["against_compiled"] = _compared(work, "compiled.pt", f"{kind}.pt")
    return found


def _compared(work: Work, one: str, other: str, **environment: str) -> dict[str, Any]:
    if not (work.folder / other).exists():
        return {"different": 1, "first": f"{other} was not written"}
    done = work.run("compare", str(HERE / "scoreboard_check.py"), "row.py", one, other, **environment)
    if done.returncode != 0:
        return {"different": 1, "first": done.stderr[-200:]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _sites(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in report["findings"] if one["kind"] == "graph_break" or one["code"] in SITE_CODES]


def _place(finding: dict[str, Any]) -> tuple[str, int]:
    return finding["location"]["file"], finding["location"]["line"]


def _answers(found: list[dict[str, Any]]) -> dict[str, Any]:
    answers: Counter[str] = Counter()
    open_sites = []
    for finding in found:
        suggestion = finding.get("suggestion") or {"status": "none", "why": "no answer"}
        evidence = suggestion.get("evidence") or {}
        status = "consent" if evidence.get("consent") else suggestion["status"]
        answers[status] += 1
        if not evidence.get("accepted"):
            where = finding["location"]
            open_sites.append(
                {
                    "code": finding["code"],
                    "place": "/".join([*Path(where["file"]).parts[-2:]]) + f":{where['line']}",
                    "source": (where.get("source") or "").strip(),
                    "status": status,
                    "rule": suggestion.get("rule"),
                    "why": suggestion.get("why") or "",
                }
            )
    return {"answers": dict(answers), "open": open_sites}


if __name__ == "__main__":
    sys.exit(main())
