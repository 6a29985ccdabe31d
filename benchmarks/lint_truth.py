"""What ``breakscope lint`` is worth: its guesses held against scans of the same code.

    python benchmarks/lint_truth.py [--only NAME ...] [--show] [--json FILE]

Every script of ``fixtures/`` and every model of ``lint_corpus.py`` is scanned in a child process
(backend eager), and run once more without torch.compile under a line tracer, which says what ran. Then
both trees are linted as a user would lint them: ``fixtures/`` as one file set, the whole of transformers
as another.

A *site* is a place where the scan says that the graph broke (codes BS1xx, BS301, BS302, BS306), once
however many scripts find it. A lint finding is *confirmed* if a site lies on its lines, or, for a cause
of recompiles (BS2xx), if the scan has that code in that function.

- precision at "likely": of the likely findings in functions that ran, those that are confirmed.
  Functions count, not lines: a finding on a branch that was not taken counts as wrong.
- recall at "possible": of the sites in the linted files, those on which there is a finding of either
  level.

The second figure for precision counts only findings whose line ran in a frame that Dynamo did not give
up on: there the scan could have seen it.

Needs transformers 4.52.4 (the extra ``models``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from lint_corpus import SEEN, UNSEEN

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
SITE_CODES = ("BS1", "BS301", "BS302", "BS306")

TRACER = """
import json, os, runpy, sys

out, roots, script = sys.argv[1], tuple(json.loads(sys.argv[2])), sys.argv[3]
sys.argv = sys.argv[3:]
ran = {}

def trace(frame, event, arg):
    code = frame.f_code
    if not code.co_filename.startswith(roots):
        return None
    lines = ran.setdefault(code.co_filename, {}).setdefault(code.co_qualname, set())
    def local(frame, event, arg):
        lines.add(frame.f_lineno)
        return local
    lines.add(frame.f_lineno)
    return local

sys.path[0] = os.path.dirname(script)
sys.settrace(trace)
try:
    runpy.run_path(script, run_name="__main__")
except BaseException as error:
    print(type(error).__name__, error, file=sys.stderr)
finally:
    sys.settrace(None)
    with open(out, "w") as file:
        json.dump({f: {q: sorted(n) for q, n in qs.items()} for f, qs in ran.items()}, file)
"""

Ran = dict[str, dict[str, set[int]]]


@dataclass
class Site:
    """A place where a scan says that the graph broke."""

    file: str
    first: int
    last: int
    code: str
    function: str
    source: str
    scripts: set[str] = field(default_factory=set)


@dataclass
class Truth:
    """What scans and traces of many scripts say together."""

    sites: dict[tuple[str, int, int], Site] = field(default_factory=dict)
    recompiles: set[tuple[str, str, str]] = field(default_factory=set)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    ran: Ran = field(default_factory=dict)

    def add(self, report: dict, ran: Ran, script: str) -> None:
        for finding in report["findings"]:
            place = finding["location"]
            if finding["kind"] == "recompile":
                self.recompiles.add((place["file"], place["function"], finding["code"]))
            elif finding["code"].startswith(SITE_CODES):
                key = (place["file"], place["line"], place["end_line"] or place["line"])
                site = Site(*key, finding["code"], place["function"], place["source"] or "")
                self.sites.setdefault(key, site).scripts.add(script)
            for one in finding["skipped"]:
                self.skipped.add((one["file"], one["function"]))
        for file, functions in ran.items():
            known = self.ran.setdefault(file, {})
            for name, lines in functions.items():
                known.setdefault(name, set()).update(lines)

    def confirms(self, finding: dict) -> bool:
        place = finding["location"]
        if finding["code"].startswith("BS2"):
            return (place["file"], place["function"], finding["code"]) in self.recompiles
        return any(overlap(site, place) for site in self.sites.values())


def overlap(site: Site, place: dict) -> bool:
    return site.file == place["file"] and site.first <= place["end_line"] and place["line"] <= site.last


def child(words: Iterable[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def measure(script: Path, roots: list[str], folder: Path) -> tuple[dict, Ran]:
    report, traced = folder / "report.json", folder / "ran.json"
    report.unlink(missing_ok=True)
    scan = child(["-m", "breakscope", "scan", "-q", "-o", str(report), str(script)], folder)
    if not report.exists():
        raise SystemExit(f"{script.name}: the scan left no report: {scan.stderr[-500:]}")
    tracer = folder / "tracer.py"
    tracer.write_text(TRACER)
    run = child([str(tracer), str(traced), json.dumps(roots), str(script)], folder, TORCH_COMPILE_DISABLE="1")
    if not traced.exists():
        raise SystemExit(f"{script.name}: the trace failed: {run.stderr[-500:]}")
    ran = {
        file: {name: set(lines) for name, lines in functions.items()}
        for file, functions in json.loads(traced.read_text()).items()
    }
    return json.loads(report.read_text()), ran


def lint(tree: Path) -> list[dict]:
    done = child(
        ["-m", "breakscope", "lint", "--no-cache", "--level", "possible", "--format", "json", str(tree)], ROOT
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"lint failed: {done.stderr}")
    return json.loads(done.stdout)["possible"]


@dataclass
class Score:
    """Counts of one group of scripts."""

    sites: int = 0
    recalled: int = 0
    likely: int = 0
    confirmed: int = 0
    reached: int = 0
    possible: int = 0

    @property
    def precision(self) -> float | None:
        return self.confirmed / self.likely if self.likely else None

    @property
    def recall(self) -> float | None:
        return self.recalled / self.sites if self.sites else None


def score(truth: Truth, findings: list[dict], tree: str, show: bool) -> Score:
    result = Score()
    for site in truth.sites.values():
        if not site.file.startswith(tree):
            continue
        hits = [one for one in findings if overlap(site, one["location"])]
        result.sites += 1
        result.recalled += bool(hits)
        if show and not hits:
            where = f"{site.file.removeprefix(tree)}:{site.first}"
            print(f"    missed  {site.code} {where} {site.source}  {site.function}")
    for one in findings:
        place = one["location"]
        lines = truth.ran.get(place["file"], {}).get(place["function"])
        if lines is None:
            continue
        if one["level"] == "possible":
            result.possible += 1
            continue
        confirmed = truth.confirms(one)
        result.likely += 1
        result.confirmed += confirmed
        ran = any(number in lines for number in range(place["line"], place["end_line"] + 1))
        visible = ran and (place["file"], place["function"]) not in truth.skipped
        result.reached += confirmed or visible
        if show and not confirmed:
            note = "" if visible else "  (did not run, or in a skipped frame)"
            where = f"{place['file'].removeprefix(tree)}:{place['line']}"
            print(f"    wrong   {one['code']} {where} {place['source']}  {place['function']}{note}")
    return result


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def row(name: str, one: Score) -> str:
    visible = percent(one.confirmed / one.reached if one.reached else None)
    return (
        f"| {name} | {one.sites} | {one.recalled} | {percent(one.recall)} | {one.likely} | {one.confirmed} "
        f"| {percent(one.precision)} | {visible} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="*", help="models to scan (default: all, and the fixtures)")
    parser.add_argument("--group", choices=("fixtures", "seen", "unseen"), help="one group only")
    parser.add_argument("--show", action="store_true", help="print what was missed and what was wrong")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument(
        "--keep", type=Path, help="folder for scans and traces; those in it are not made again"
    )
    arguments = parser.parse_args()
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        raise SystemExit("transformers is not installed: pip install 'torch-breakscope[models]'")
    transformers = str(Path(spec.origin).parent) + os.sep
    groups: dict[str, dict[str, str | Path]] = {
        "fixtures": {path.stem: path for path in sorted(FIXTURES.glob("*.py"))},
        "seen": {name: model.script() for name, model in SEEN.items()},
        "unseen": {name: model.script() for name, model in UNSEEN.items()},
    }
    results: dict[str, Score] = {}
    linted: dict[str, list[dict]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for group, scripts in groups.items():
            if arguments.group not in (None, group):
                continue
            tree = f"{FIXTURES}{os.sep}" if group == "fixtures" else transformers
            truth = Truth()
            for name, source in scripts.items():
                if arguments.only and name not in arguments.only:
                    continue
                truth.add(*scanned(name, source, tree, folder), name)
                print(f"  {name}", file=sys.stderr)
            if tree not in linted:
                linted[tree] = lint(Path(tree))
            if arguments.show:
                print(f"{group}:")
            results[group] = score(truth, linted[tree], tree, arguments.show)
    total = Score(
        *(sum(getattr(one, name) for one in results.values()) for name in Score.__dataclass_fields__)
    )
    print("| scripts | sites | found | recall | likely | confirmed | precision | where the scan could see |")
    print("|---|---|---|---|---|---|---|---|")
    for name, one in results.items():
        print(row(name, one))
    print(row("all", total))
    if arguments.json:
        figures = {name: one.__dict__ for name, one in {**results, "all": total}.items()}
        arguments.json.write_text(json.dumps(figures, indent=1))


def scanned(name: str, source: str | Path, tree: str, folder: Path) -> tuple[dict, Ran]:
    own = folder / name.replace(" ", "_")
    done = own / "done.json"
    if done.exists():
        report, ran = json.loads(done.read_text())
        return report, {file: {q: set(n) for q, n in qs.items()} for file, qs in ran.items()}
    own.mkdir(exist_ok=True)
    script = source if isinstance(source, Path) else own / "script.py"
    if isinstance(source, str):
        script.write_text(source)
    report, ran = measure(script, [tree], own)
    plain = {file: {q: sorted(n) for q, n in qs.items()} for file, qs in ran.items()}
    done.write_text(json.dumps([report, plain]))
    return report, ran


if __name__ == "__main__":
    main()
