"""What a scan costs under load, and what its report costs: ``python benchmarks/load.py [--quick]``.

Each load is a script that is scanned here, run by Python as well, and looked at once a tenth of a second:
resident memory of the script's process and of ours, wall time, size of the report and of the page, time of
``report``, and how soon its page, and that of a comparison in which every finding is new, can be used in a
browser (CHROMIUM, default /usr/bin/chromium; null without it). Processor time stands beside wall time, which
depends on what else the machine does. ``load_writes`` has what many writers, kills and full disks do to the
files that are written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

CALLS = """
    import torch, time
    @torch.compile(backend="eager")
    def f(x):
        y = x + 1
        {middle}
        return y * 2
    x = torch.ones(4)
    for _ in range(50): f(x)
    began = time.perf_counter()
    for i in range({count}): f(x)
    print((time.perf_counter() - began) / {count} * 1e6)
"""
RECOMPILES = """
    import torch
    torch._dynamo.config.cache_size_limit = 10**6
    torch._dynamo.config.accumulated_cache_size_limit = 10**6
    torch._dynamo.config.recompile_limit = 10**6
    torch._dynamo.config.accumulated_recompile_limit = 10**6
    @torch.compile(backend="eager", dynamic=False)
    def f(x, name):
        return x + len(name)
    x = torch.ones(2)
    for i in range({count}): f(x, "n%d" % i)
"""
SITES = """
    import torch
    torch._dynamo.config.recompile_limit = 10**6
    torch._dynamo.config.accumulated_recompile_limit = 10**6
    one = "def f{{i}}(x):\\n    y = x + {{i}}\\n    print(end='')\\n    return y\\n"
    x = torch.ones(2)
    for first in range(0, {count}, 100):  # a module for each hundred
        numbers = range(first, min(first + 100, {count}))
        open("many%d.py" % first, "w").write("".join(one.replace("{{i}}", str(i)) for i in numbers))
        many = __import__("many%d" % first)
        for i in numbers: torch.compile(getattr(many, "f%d" % i), backend="eager")(x)
"""
SKIPS = """
    import torch
    one = "def f{{i}}(x):\\n    for _ in range(2):\\n        x += 1\\n        print(end='')\\n    return x\\n"
    x = torch.ones(2)
    for first in range(0, {count}, 100):  # a module for each hundred
        numbers = range(first, min(first + 100, {count}))
        open("many%d.py" % first, "w").write("".join(one.replace("{{i}}", str(i)) for i in numbers))
        many = __import__("many%d" % first)
        for i in numbers: torch.compile(getattr(many, "f%d" % i), backend="eager")(x)
"""
STEPS = """
    import torch
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    compiled = torch.compile(net, backend="eager")
    x = torch.ones(2, 4)
    for i in range({count}):
        loss = compiled(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
# Name, script, how many, how many in a quick run.
LOADS = (
    ("compiled calls, no break", CALLS.replace("{middle}", "pass"), 200_000, 20_000),
    (
        "compiled calls, one break each",
        CALLS.replace("{middle}", "torch._dynamo.graph_break()"),
        200_000,
        20_000,
    ),
    ("recompiles", RECOMPILES, 2_000, 100),
    ("sites", SITES, 1_000, 100),
    ("skipped frames", SKIPS, 5_000, 100),
    ("steps (10 hours of one a third of a second)", STEPS, 108_000, 5_000),
)


@dataclass(frozen=True)
class Run:
    """One run: seconds, highest resident MB of the script's process and of ours, and what it printed."""

    seconds: float
    child_mb: float
    parent_mb: float
    said: str


def memory_mb(pid: int) -> float:
    """The largest resident set that a process has had."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def watch(command: list[str], folder: Path) -> Run:
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    ours = theirs = 0.0
    while process.poll() is None:
        ours = max(ours, memory_mb(process.pid))
        theirs = max([theirs, *map(memory_mb, children(process.pid))])
        time.sleep(0.1)
    said = process.stdout.read() if process.stdout else ""
    return Run(time.perf_counter() - began, theirs, ours, said.strip())


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds by the clock, and of processor time."""
    began, before = time.perf_counter(), os.times()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, used


def usable_after(page: Path, clicked: str) -> float | None:
    """Seconds from opening a page in a browser until a click at its end has been answered and drawn."""
    browser = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    if not browser.exists():
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        try:
            opened = running.new_page()
            began = time.perf_counter()
            opened.goto(page.as_uri(), wait_until="domcontentloaded")
            opened.locator(clicked).last.click()
            opened.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            return time.perf_counter() - began
        finally:
            running.close()


def measure(name: str, source: str, count: int, nothing: Path) -> dict[str, object]:
    """The figures of one load; ``nothing``: the report of a script without findings, to compare with."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "script.py").write_text(
            textwrap.dedent(source).replace("{count}", str(count)).replace("{{", "{").replace("}}", "}")
        )
        plain = watch([sys.executable, "script.py"], folder)
        scan = [sys.executable, "-m", "breakscope"]
        scanned = watch([*scan, "scan", "-q", "script.py"], folder)
        report = folder / ".breakscope" / "latest.json"
        shown, shown_cpu = timed([*scan, "report"], folder)
        page, page_cpu = timed([*scan, "report", "--html"], folder)
        usable = usable_after(report.parent / "breakscope.html", "html[data-ready] summary")
        timed([*scan, "diff", str(nothing), str(report), "--html", "-o", "diff.html"], folder)
        compared = usable_after(folder / "diff.html", "#words")
        return {
            "load": f"{count:,} {name}",
            "python_s": round(plain.seconds, 1),
            "scan_s": round(scanned.seconds, 1),
            "python_us_a_call": plain.said,
            "scan_us_a_call": scanned.said,
            "child_more_mb": round(scanned.child_mb - plain.parent_mb, 1),
            "parent_mb": round(scanned.parent_mb, 1),
            "report_kb": round(report.stat().st_size / 1024),
            "report_s": round(shown, 2),
            "report_cpu_s": round(shown_cpu, 2),
            "page_kb": round((report.parent / "breakscope.html").stat().st_size / 1024),
            "page_s": round(page, 2),
            "page_cpu_s": round(page_cpu, 2),
            "page_usable_s": None if usable is None else round(usable, 2),
            "comparison_usable_s": None if compared is None else round(compared, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as made:
        nothing = Path(made, "nothing.json")
        Path(made, "nothing.py").write_text("pass\n")
        scan = [sys.executable, "-m", "breakscope", "scan", "-q", "-o", str(nothing), "nothing.py"]
        subprocess.run(scan, cwd=made, check=True)
        for name, source, count, few in LOADS:
            if options.only in name:
                row = measure(name, source, few if options.quick else count, nothing)
                print(json.dumps(row), flush=True)
    if options.only in "writes":
        import load_writes

        with tempfile.TemporaryDirectory() as made:
            for row in load_writes.measure(Path(made), quick=options.quick):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
