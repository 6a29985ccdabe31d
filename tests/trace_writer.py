"""Traces for tests: real ones of small jobs, and made-up ones, record by record."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warm_scanning import warm_process

from breakscope.report.model import Finding, Report
from breakscope.traces.one_file import import_file

BREAK = """\
Graph break in user code at {file}:{line}
Graph Break Reason: Data-dependent branching
  Explanation: Detected data-dependent branching.
  Hint: Use `torch.cond` to express dynamic control flow.

  Developer debug context: attempted to jump with TensorVariable()

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html

User code traceback:
  File "{file}", line 99, in <module>
    main()
  File "{file}", line {line}, in {name}
    if x.sum() > 0:

NoneType: None
"""


def run_job(folder: Path, source: str, name: str = "job.py", **environment: str) -> Path:
    """Run a script without a scan, in a fork, under TORCH_TRACE, and return its trace."""
    (folder / name).write_text(textwrap.dedent(source))
    traces, errors = folder / "trace", folder / "stderr"
    variables = {"TORCH_TRACE": str(traces), **environment}
    status = warm_process().python(name, folder, folder / "stdout", errors, variables, limit_s=120)
    assert status == 0, errors.read_text()
    [trace] = traces.glob("dedicated_log_torch_trace_*.log")
    return trace


def imported(path: Path) -> Report:
    """The report of the one process that wrote a file."""
    [part] = import_file(str(path)).parts
    return part.report


def place(finding: Finding) -> tuple[object, ...]:
    """What a finding claims to be true: something of this kind happened at this place, for this cause.

    A damaged trace may lack findings, and may know less of them: without the end of a compile, a function
    that Dynamo gave up on shows as the break that made it give up. It must not claim anything else.
    """
    guard = finding.guard
    return (
        finding.location.file,
        finding.location.line,
        finding.location.function,
        (guard.cause, guard.source, guard.dimension) if guard else None,
    )


class Writer:
    """Writes records as torch does."""

    def __init__(self, pid: int = 1, at: float = 50.0) -> None:
        self.pid = pid
        self.at = at
        self.parts: list[str] = []

    def record(
        self, envelope: dict[str, Any], cid: str | None = "0/0", payload: str | None = None, **more: Any
    ) -> str:
        """Add one record, and return its text."""
        self.at += 0.25
        if cid is not None:
            frame, recompile = map(int, cid.split("/"))
            envelope |= {"frame_id": frame, "frame_compile_id": recompile, "attempt": 0}
        envelope |= more
        if payload is not None:
            checksum = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
            envelope = {**envelope, "has_payload": more.get("has_payload", checksum)}
        minutes, seconds = divmod(self.at, 60)
        text = f"V1121 14:{int(minutes):02}:{seconds:09.6f} {self.pid} torch/_dynamo/utils.py:10] {json.dumps(envelope)}\n"
        if payload is not None:
            text += "".join(f"\t{line}\n" for line in payload.split("\n"))
        self.parts.append(text)
        return text

    def start(self, cid: str, file: str, name: str, line: int) -> None:
        number = len(self.parts)
        self.record({"str": [file, number]}, None)
        self.record({"dynamo_start": {"stack": [{"line": line, "name": name, "filename": number}]}}, cid)

    def broke(self, cid: str, file: str, name: str, line: int, **more: Any) -> str:
        payload = BREAK.format(file=file, line=line, name=name)
        return self.record({"artifact": {"name": "dynamo_graph_break_reason"}}, cid, payload, **more)

    def recompiled(self, cid: str, reasons: Sequence[str]) -> str:
        payload = reasons[0] if len(reasons) == 1 else "[\n" + ",\n".join(map(json.dumps, reasons)) + "\n]"
        return self.record({"artifact": {"name": "recompile_reasons", "encoding": "json"}}, cid, payload)

    def ended(self, cid: str, file: str, name: str, line: int, **metrics: Any) -> str:
        known = {"co_filename": file, "co_name": name, "co_firstlineno": line}
        fields = {"compile_id": cid, **known, "guard_count": 3, "graph_op_count": 2, **metrics}
        return self.record({"compilation_metrics": fields}, cid)

    def compiled(self, cid: str, file: str, name: str, line: int, broke_at: int | None = None) -> None:
        """A whole compile."""
        self.start(cid, file, name, line)
        if broke_at is not None:
            self.broke(cid, file, name, broke_at)
        self.record({"dynamo_output_graph": {"sizes": {}}}, cid, "graph")
        self.ended(cid, file, name, line)

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def save(self, path: Path) -> Path:
        path.write_text(self.text)
        return path


def assert_only_what_a_trace_knows(report: Report) -> None:
    """Nothing that only a live scan can measure, and no zero in its place."""
    assert report.run.status == "unknown"
    assert report.run.exit_code is None
    assert (report.totals.crossings, report.totals.steps) == (None, None)
    assert all(finding.counts.crossings is None for finding in report.findings)
    assert all((f.cost, f.first_step, f.last_step) == (None, None, None) for f in report.findings)
    assert all(skip.calls is None for finding in report.findings for skip in finding.skipped)
    assert all(region.calls is None and region.ms is None for region in report.regions)
    assert any("not measured" in note for note in report.run.notes)
