"""``breakscope.explain`` and ``breakscope.load``: the engine of a scan in the calling process.

Each test runs in a fork: Dynamo's state is the process's, and the hooks must not meet pytest's.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from scanning import run_python
from warm_scanning import warm_process

pytestmark = pytest.mark.torch

PRELUDE = """
import logging
import sys
import torch
import breakscope


def f(x, n=2):
    y = x * n
    print(end="")
    return y + 1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.fc(x)
        if y.sum() > 1e6:
            y = y * 2
        return y


def state():
    import torch._dynamo
    from torch._dynamo.convert_frame import CatchErrorsWrapper
    log = logging.getLogger("torch.__trace")
    return (
        torch.nn.Module._wrapped_call_impl.__code__,
        CatchErrorsWrapper.__call__,
        # torch takes its own idle handler away at the first record.
        [h for h in log.handlers if type(h).__module__.startswith("breakscope")], log.level, log.propagate,
        torch._dynamo.optimize, torch._dynamo.reset,
        len(torch._dynamo.convert_frame._bytecode_hooks),
        len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks),
        logging.getLogger("torch._dynamo.convert_frame.__graph_breaks").filters,
    )


def told(report):
    return [
        (f.code, f.location.function, f.location.line, f.location.column, f.counts.crossings, f.counts.occurrences)
        for f in report.findings
    ]


x = torch.ones(3)
"""


def child(folder: Path, source: str) -> str:
    """Run a script, without a scan; its output."""
    (folder / "script.py").write_text(
        "import warnings; warnings.simplefilter('ignore')" + PRELUDE + textwrap.dedent(source)
    )
    stdout, stderr = folder / "stdout", folder / "stderr"
    status = warm_process().python("script.py", folder, stdout, stderr)
    assert status == 0, stderr.read_text()
    return stdout.read_text()


def test_functions_modules_and_compiled_ones_are_explained(tmp_path: Path) -> None:
    child(
        tmp_path,
        """
        before = state()
        report = breakscope.explain(f)(x, n=3)
        assert isinstance(report, breakscope.Report)
        [(code, function, line, column, crossings, occurrences)] = told(report)
        assert (code, function, crossings, occurrences) == ("BS104", "f", 1, 1)
        assert open(__file__).read().splitlines()[line - 1].strip() == 'print(end="")'
        assert (column, report.findings[0].location.end_column) == (5, 18)
        assert report.totals.regions == 2
        assert report.reconciliation.unattributed == ()
        assert report.run.notes == breakscope.explain(f)(x).run.notes

        net = Net()
        [(code, function, *_rest, crossings, _occurrences)] = told(breakscope.explain(net)(x))
        assert (code, function, crossings) == ("BS101", "Net.forward", 1)
        assert told(breakscope.explain(torch.compile(f))(x)) == told(breakscope.explain(f)(x))
        assert told(breakscope.explain(torch.compile(net))(x)) == told(breakscope.explain(net)(x))
        net.compile(backend="eager")
        assert told(breakscope.explain(net)(x)) == told(breakscope.explain(Net())(x))
        assert told(breakscope.explain(lambda x: x + 1)(x)) == []
        assert state() == before

        # The process goes on as it was: compiled code works, and nothing counts it.
        compiled = torch.compile(f, backend="eager")
        assert torch.equal(compiled(x), f(x))
        """,
    )


def test_twice_gives_the_same(tmp_path: Path) -> None:
    child(
        tmp_path,
        """
        import dataclasses

        def without_times(report):
            run = dataclasses.replace(report.run, started_at="", duration_s=0.0)
            steps = [dataclasses.replace(s, at_s=None, ms=None, compile_ms=None) for s in report.steps]
            compiles = [
                dataclasses.replace(c, at_s=None, seconds=None, phases=sorted(c.phases))
                for c in report.compiles
            ]
            return dataclasses.replace(report, run=run, steps=steps, compiles=compiles)

        explained = breakscope.explain(f)
        first, second = [without_times(explained(x)) for _ in range(2)]
        assert first == second
        assert first.steps and first.compiles
        """,
    )


def test_an_exception_passes_and_leaves_no_hook(tmp_path: Path) -> None:
    child(
        tmp_path,
        """
        def fails(x):
            y = x + 1
            print(end="")
            raise KeyError("mine")

        before = state()
        for function, kind in ((fails, KeyError), (f, torch._dynamo.exc.Unsupported)):
            try:
                breakscope.explain(function, fullgraph=function is f)(x)
            except kind as error:
                caught = error
            else:
                raise AssertionError(f"{function} did not raise")
            assert state() == before
        """,
    )


def test_the_backend_may_be_ones_own(tmp_path: Path) -> None:
    child(
        tmp_path,
        """
        graphs = []

        def mine(graph_module, inputs):
            graphs.append(graph_module)
            return graph_module.forward

        report = breakscope.explain(f, backend=mine)(x)
        assert (len(graphs), report.totals.regions, report.run.backend) == (2, 2, "mine")
        assert breakscope.explain(f, backend="aot_eager", dynamic=True)(x).run.backend == "aot_eager"
        """,
    )


def test_a_report_is_saved_loaded_and_shown(tmp_path: Path) -> None:
    child(
        tmp_path,
        """
        from breakscope.report import schema

        report = breakscope.explain(f)(x)
        schema.save(report, "report.json")
        assert breakscope.load("report.json") == report
        assert len(report.to_frames()["findings"]) == 1
        """,
    )


def test_importing_breakscope_costs_nothing(tmp_path: Path) -> None:
    source = (
        "import sys, breakscope; heavy = {'torch', 'rich', 'pandas', 'typer', 'jinja2', 'libcst'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "breakscope.Report, breakscope.load, breakscope.explain;"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = run_python("-c", source, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_report_prints_as_on_a_terminal_and_is_saved(tmp_path: Path) -> None:
    out = child(
        tmp_path,
        """
        report = breakscope.explain(f)(x)
        text = str(report)
        assert "\\x1b" not in text and not text.endswith("\\n")
        assert "1 site, 1 crossing" in text and "BS104  warning  print, logging or warnings call" in text
        assert repr(report).startswith("Report(")
        report.save("kept.json")
        assert breakscope.load("kept.json") == report
        print(report)
        """,
    )
    assert re.search(r"script\.py:\d+:5  f", out)


def test_the_cells_of_a_notebook_are_the_project(tmp_path: Path) -> None:
    """ipykernel compiles a cell under the name of a file that is not there, in a folder of its process."""
    (tmp_path / "elsewhere").mkdir()
    out = child(
        tmp_path,
        '''
        import linecache, os
        os.chdir("elsewhere")
        del sys.modules["__main__"].__file__

        def cell(source):
            name = f"/tmp/ipykernel_{os.getpid()}/3141592653.py"
            linecache.cache[name] = (len(source), None, source.splitlines(True), name)
            exec(compile(source, name, "exec"), globals())

        cell("""
        def g(x):
            y = x * 2
            print(end="")
            return y

        report = breakscope.explain(g)(x)
        """.replace("\\n        ", "\\n"))
        [finding] = report.findings
        place = finding.location
        print(place.owner, place.line, place.source, finding.fingerprint)
        print(report)
        ''',
    )
    first, *text = out.splitlines()
    assert first.startswith('project 4 print(end="") ')
    said = "\n".join(text)
    assert "compiled: g (by the script)" in said
    assert "<cell 3141592653>:4:5  g" in said
    assert "ipykernel" not in said
