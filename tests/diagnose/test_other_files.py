"""What a value is for is told by the function that gets it, and that may stand in another file."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.project.sources import Sources
from breakscope.report.model import Report

Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))


HELPERS = """
    import torch

    def scaled(x, n):
        if n > 3:
            return x * n
        return x + n

    def weighed(rows):
        return rows.sum() / len(rows)

    def integrate(y, t):
        out = [y]
        for i in range(1, len(t)):
            out.append(out[-1] + t[i])
        return out

    class Head(torch.nn.Module):
        def forward(self, x, k):
            return x.new_zeros(k).sum() + x.sum()
"""
SCRIPT = """
    import torch
    from other_files_pkg import scaled
    import other_files_pkg.helpers as helpers
    from other_files_pkg.helpers import Head

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = Head()

        def forward(self, x, mask):
            n = x.sum().int().item()
            y = scaled(x, n)
            rows = x[mask]
            z = helpers.weighed(rows)
            v = x.max().int().item()
            return y.sum() + z + self.head(x, v)

    torch.compile(Net())(torch.ones(4), torch.tensor([True, True, False, True]))

    @torch.compile
    def solve(y, t):
        return sum(helpers.integrate(y, t))

    for n in (3, 4, 5):
        solve(torch.ones(2), torch.linspace(0, 1, n))
"""


@pytest.mark.torch
def test_a_value_is_followed_into_what_a_file_imports(scan: Scan, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "other_files_pkg/__init__.py": "from .helpers import scaled\n",
            "other_files_pkg/helpers.py": HELPERS,
        },
    )
    report = scan(SCRIPT)
    said = {one.location.line: str(one.advice) for one in report.findings}
    assert "It decides a branch in `if n > 3` (line 5 of helpers.py): drop the .item()" in said[13]
    assert "Reduce under the mask in `rows.sum` (line 10 of helpers.py)" in said[15]
    assert "for `x.new_zeros(k)` (line 20 of helpers.py)" in said[17]
    (size,) = coded(report, "BS201")
    assert "(a loop (line 14 of helpers.py))" in str(size.advice)


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from pkg.tools import f", "f"),
        ("from pkg.tools import f as g", "g"),
        ("from pkg import tools", "tools.f"),
        ("import pkg.tools as t", "t.f"),
        ("import pkg.tools", "pkg.tools.f"),
        ("from .tools import f", "f"),
        ("from . import tools", "tools.f"),
        ("from pkg import f", "f"),
        ("from ..pkg import tools", "tools.f"),
    ],
)
def test_a_name_is_found_where_it_is_imported_from(tmp_path: Path, imports: str, name: str) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from .tools import f\n",
            "pkg/tools.py": "def f(x):\n    return x\n",
            "pkg/run.py": f"{imports}\n",
        },
    )
    found = Sources().imported(str(tmp_path / "pkg/run.py"), name)
    assert found is not None
    assert found[1].name == "f"
    assert found[1] in found[0].body


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from pkg.tools import h", "h"),
        ("from pkg.none import f", "f"),
        ("import torch", "torch.stack"),
        ("from torch import stack", "stack"),
        ("import json", "json.dumps"),
        ("from . import run", "run.f"),
        ("", "f"),
    ],
)
def test_what_no_file_beside_it_has_is_not_found(tmp_path: Path, imports: str, name: str) -> None:
    write(
        tmp_path,
        {"pkg/__init__.py": "", "pkg/tools.py": "def f(x):\n    return x\n", "pkg/run.py": f"{imports}\n"},
    )
    assert Sources().imported(str(tmp_path / "pkg/run.py"), name) is None
