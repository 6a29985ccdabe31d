"""How fast ``breakscope import`` reads a TORCH_TRACE file, and with how much memory; tlparse beside it.

A real trace is made by compiling a small network with Inductor, and repeated with other frame ids until it
has the size asked for. Both programs read that file in the same run, each in a process of its own: wall
time, and the peak memory of the largest process. Then the same file stands for several ranks. As installed
by pip, modules have their bytecode: the first of several runs leaves it in a folder that goes in the end.

    python benchmarks/trace_import.py [--megabytes 250] [--ranks 16] [--tlparse PATH] [--json FILE]

The bars: at least 300 MB/s and under 100 MB of memory for each process. tlparse is from the package index
(``pip install tlparse==0.4.3`` into an environment of its own); without it its columns say "not measured".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO

JOB = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x):
        y = self.linear(x).relu()
        if y.sum() > 0:
            y = y * 2
        return torch.softmax(y, -1)

model = torch.compile(nn.Sequential(Layer(), Layer()))
for batch in (4, 8, 12):
    model(torch.randn(batch, 32)).sum().backward()
"""
MARK = b"] {"
FRAME_ID = re.compile(rb'"frame_id": (\d+)')
COMPILE_ID = re.compile(rb'"compile_id": "(\d+)/')
REASON_ID = re.compile(rb'(^|\n"?)(\d+)/(\d+): ')
APART = 1000


def make_real(folder: Path) -> Path:
    """The trace of a real run."""
    (folder / "job.py").write_text(JOB)
    environment = {**os.environ, "TORCH_TRACE": str(folder / "real"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "job.py"], cwd=folder, env=environment, check=True)
    [trace] = (folder / "real").glob("dedicated_log_torch_trace_*.log")
    return trace


def records(data: bytes) -> list[tuple[bytes, bytes]]:
    """Each envelope line of a trace with the payload lines under it."""
    found = []
    for match in re.finditer(rb"[^\n]*\n(?:\t[^\n]*\n)*", data):
        line, _, payload = match[0].partition(b"\n")
        found.append((line, payload))
    return found


def renumbered(line: bytes, payload: bytes, by: int) -> bytes:
    """A record of another frame, its checksum made anew."""
    line = FRAME_ID.sub(lambda m: b'"frame_id": %d' % (int(m[1]) + by), line)
    line = COMPILE_ID.sub(lambda m: b'"compile_id": "%d/' % (int(m[1]) + by), line)
    if b'"recompile_reasons"' in line:
        text = payload[1:].replace(b"\n\t", b"\n").removesuffix(b"\n")
        text = REASON_ID.sub(lambda m: b"%s%d/%s: " % (m[1], int(m[2]) + by, m[3]), text)
        checksum = hashlib.md5(text).hexdigest().encode()
        line = re.sub(rb'"has_payload": "\w+"', b'"has_payload": "%s"' % checksum, line)
        payload = b"\t" + text.replace(b"\n", b"\n\t") + b"\n"
    return line + b"\n" + payload


def make_large(real: Path, target: Path, size: int) -> int:
    """Repeat a trace until it has a size; returns how often."""
    parsed = records(real.read_bytes())
    times = 0
    with target.open("wb") as stream:
        while stream.tell() < size:
            write(stream, parsed, times * APART)
            times += 1
    return times


def write(stream: BinaryIO, parsed: list[tuple[bytes, bytes]], by: int) -> None:
    stream.writelines(renumbered(line, payload, by) for line, payload in parsed)


def run(command: list[str], cwd: Path) -> dict[str, Any]:
    """Wall seconds, processor seconds and the peak memory of the largest process of a command."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cwd / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        assert child.stderr is not None
        errors = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        "exit_code": child.returncode,
        "errors": errors[-500:],
    }


def row(name: str, megabytes: float, measured: dict[str, Any]) -> str:
    rate, cpu_rate = megabytes / measured["seconds"], megabytes / measured["cpu_seconds"]
    return (
        f"{name:34} {megabytes:7.0f} MB  {measured['seconds']:6.2f} s  {rate:6.0f} MB/s  "
        f"{cpu_rate:6.0f} MB per CPU second  peak {measured['peak_mb']:5.0f} MB  exit {measured['exit_code']}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3, help="best of so many runs")
    parser.add_argument("--tlparse", default=shutil.which("tlparse"))
    parser.add_argument("--trace", type=Path, help="a real trace, instead of making one")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"cpus": os.cpu_count(), "python": sys.version.split()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real = options.trace or make_real(folder)
        trace = folder / "dedicated_log_torch_trace_large.log"
        times = make_large(real, trace, options.megabytes * 10**6)
        size = trace.stat().st_size / 1e6
        print(f"{size:.0f} MB: a real trace of {real.stat().st_size / 1e6:.1f} MB, {times} times")
        ours = [sys.executable, "-m", "breakscope", "import", "-q", "-o", "report.json"]

        def best(label: str, command: list[str], megabytes: float, repeat: int) -> None:
            measured = [run(command, folder) for _ in range(repeat)]
            results[label] = min(measured, key=lambda one: one["seconds"]) | {"megabytes": megabytes}
            print(row(label, megabytes, results[label]), flush=True)
            assert not results[label]["exit_code"] or "tlparse" in label, results[label]

        best("breakscope, one file", [*ours, str(trace)], size, options.repeat)
        report = json.loads((folder / "report.json").read_text())
        results["report"] = report["totals"]
        print(f"{'':34} found {report['totals']}")
        small = folder / "dedicated_log_torch_trace_small.log"
        shutil.copyfile(real, small)
        best(
            "breakscope, the real trace alone",
            [*ours, str(small)],
            small.stat().st_size / 1e6,
            options.repeat,
        )
        if options.tlparse:
            for plain in ([], ["--plain-text"]):
                label = " ".join(["tlparse", *plain])
                command = [options.tlparse, *plain, "--no-browser", "--overwrite", "-o", "out", str(trace)]
                best(label, command, size, 1)
        else:
            print("tlparse: not measured, it is not installed")
        ranks = folder / "ranks"
        ranks.mkdir()
        for rank in range(options.ranks):
            os.link(trace, ranks / f"dedicated_log_torch_trace_rank_{rank}_x.log")
        best(f"breakscope, {options.ranks} ranks", [*ours, str(ranks)], size * options.ranks, 1)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
