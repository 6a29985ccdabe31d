"""What older versions of torch wrote, record by record (2.6: seen in a trace and a log of torch 2.6.0)."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_writer import Writer, imported

FILE = "/job/model.py"

# No id, no outer frames, another label before the reason.
TORCH_26 = """\
Graph break in user code at {file}:{line}
Reason: {reason}
User code traceback:
  File "{file}", line 20, in torch_dynamo_resume_in_outer_at_18
    return forward(y)
  File "{file}", line {line}, in {name}
    if y.sum() > 0:

Traceback (most recent call last):
  File "/lib/python3.12/site-packages/torch/_dynamo/symbolic_convert.py", line 659, in wrapper
    return inner_fn(self, inst)
torch._dynamo.exc.Unsupported: {reason}
"""


@pytest.mark.parametrize(
    ("reason", "code", "told"),
    [
        ("Data-dependent jump", "BS101", "Data-dependent jump"),
        ("generic_jump TensorVariable()", "BS101", "generic_jump TensorVariable()"),
        ("Unsupported: Tensor.item", "BS102", "Tensor.item"),
        ("Unsupported: dynamic shape operator: aten.nonzero.default", "BS105", None),
        ("Unsupported: builtin: print [<class 'ConstantVariable'>] False", "BS104", None),
        ("Unsupported: call torch._dynamo.disable() wrapped function <function f at 0x7f>", "BS108", None),
        ("Unsupported: 'skip function graph_break in file /x/torch/_dynamo/decorators.py'", "BS109", None),
        ("Unsupported: 'skip function f in file /x/site-packages/lib/f.py'", "BS107", None),
    ],
)
def test_breaks_of_torch_2_6(tmp_path: Path, reason: str, code: str, told: str | None) -> None:
    writer = Writer()
    writer.start("0/0", FILE, "forward", 10)
    payload = TORCH_26.format(file=FILE, line=12, name="forward", reason=reason)
    writer.record({"artifact": {"name": "dynamo_graph_break_reason"}}, "0/0", payload)
    writer.record({"dynamo_output_graph": {}}, "0/0", "graph")
    writer.ended("0/0", FILE, "forward", 10)
    report = imported(writer.save(tmp_path / "a.log"))
    [finding] = report.findings
    assert (finding.code, finding.gb_id) == (code, None)
    assert finding.reason == (told or reason.removeprefix("Unsupported: "))
    assert (finding.location.line, finding.location.function) == (12, "forward")
    assert [frame.function for frame in finding.stack] == ["outer", "forward"]


def test_a_function_given_up_by_torch_2_9(tmp_path: Path) -> None:
    """It says has_guarded_code all the same; that there are no guards tells."""
    writer = Writer()
    writer.start("0/0", FILE, "loop", 10)
    writer.broke("0/0", FILE, "loop", 12)
    writer.ended("0/0", FILE, "loop", 10, guard_count=None, graph_op_count=None, has_guarded_code=True)
    [finding] = imported(writer.save(tmp_path / "a.log")).findings
    assert [skip.function for skip in finding.skipped] == ["loop"]
    assert finding.skipped[0].calls is None


def test_a_break_that_torch_2_9_reports_when_its_compile_is_over(tmp_path: Path) -> None:
    writer = Writer()
    writer.start("0/0", FILE, "loop", 10)
    failure = {"fail_type": "Unsupported", "fail_reason": "x", "has_guarded_code": False}
    writer.ended("0/0", FILE, "loop", 10, guard_count=None, graph_op_count=None, **failure)
    writer.broke("0/0", FILE, "loop", 12)
    report = imported(writer.save(tmp_path / "a.log"))
    [finding] = report.findings
    assert finding.location.line == 12
    assert [skip.function for skip in finding.skipped] == ["loop"]
    assert not any("a.log" in note for note in report.run.notes)


def test_a_text_log_of_torch_2_6(tmp_path: Path) -> None:
    prefix = "V1121 14:00:0{second}.000000 1 torch/_dynamo/symbolic_convert.py:435] [{cid}] [__graph_breaks] "
    first = TORCH_26.format(file=FILE, line=12, name="forward", reason="Data-dependent jump")
    again = f"Graph break (details suppressed) in user code at {FILE}:12\nReason: Data-dependent jump"
    lines = [prefix.format(second=1, cid="0/0") + line for line in first.split("\n")]
    lines += [prefix.format(second=2, cid="0/1") + line for line in again.split("\n")]
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    [finding] = imported(tmp_path / "job.log").findings
    assert (finding.code, finding.counts.occurrences) == ("BS101", 2)
    assert finding.counts.compile_ids == ("0/0", "0/1")


def test_what_a_trace_without_a_version_may_lack_is_said(tmp_path: Path) -> None:
    writer = Writer()
    writer.compiled("0/0", FILE, "forward", 10)
    report = imported(writer.save(tmp_path / "a.log"))
    assert report.run.torch is None
    assert any("does not name its torch" in note for note in report.run.notes)
    version = '{\n"pytorch_version": "2.13.0",\n"oss": true\n}'
    writer.record({"artifact": {"name": "torch_version", "encoding": "json"}}, None, version)
    report = imported(writer.save(tmp_path / "b.log"))
    assert report.run.torch == "2.13.0"
    assert not any("does not name its torch" in note for note in report.run.notes)
