"""``breakscope fix`` from a scan to a repaired file, on real scripts in real child processes.

Nightly are the way of one large script (`observed/` takes a small one through the same commands in every run), further kinds of
fixes that take the same way (layer drop, remedies, a recompile without one), a source that
has changed (``test_overlay.py`` and ``test_write.py`` hold that nothing is then changed), and ``--select``.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned, run_cold, run_python
from warm_scanning import run_command

import breakscope
from breakscope.report.model import Report

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

SCRIPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if not torch.isfinite(y).all():  # keep it finite
            y = torch.clamp(y, -9, 9)
        return y * 2


torch.manual_seed(0)
net = Net()
for step in range(3):
    print(net(torch.randn(2 + step, 4)).sum().item())
"""


def fix(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        "fix", "--no-inductor", *options, folder=folder, torch=True, timeout=500, **environment
    )


def latest(folder: Path) -> Report:
    return breakscope.load(folder / ".breakscope" / "latest.json")


def sites(folder: Path, *options: str) -> int:
    run_cold("scan", "-q", "-o", "again.json", *options, "script.py", folder=folder, check=True)
    return breakscope.load(folder / "again.json").totals.sites


@pytest.mark.nightly
def test_from_a_scan_to_a_repaired_file(scan: Scan) -> None:
    folder = scan(SCRIPT).folder
    file = folder / "script.py"
    before = file.read_bytes()
    done = fix(folder, "--select", "BS1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 proved" in done.stdout
    assert file.read_bytes() == before

    (finding,) = [one for one in latest(folder).findings if one.kind == "graph_break"]
    suggestion = finding.suggestion
    assert suggestion is not None
    assert suggestion.status == "proved"
    evidence = suggestion.evidence
    assert evidence["branches"][0]["true"] > 0
    assert evidence["branches"][0]["false"] > 0
    assert evidence["compared"] >= 50
    assert evidence["whole_script"]["sites"] == [1, 0]
    assert evidence["whole_script"]["bitwise"] is True
    assert suggestion.diff in done.stdout
    (edit,) = suggestion.edits
    lines = before.decode().splitlines(keepends=True)
    first, last = lines[edit.line - 1][: edit.column - 1], lines[edit.end_line - 1][edit.end_column - 1 :]
    edited = "".join([*lines[: edit.line - 1], first, edit.text, last, *lines[edit.end_line :]])

    # The fixes apply without touching the file,
    assert sites(folder) == 1
    assert sites(folder, "--fixes", ".breakscope/fixes") == 0
    plain = run_python("script.py", folder=folder, check=True).stdout
    patched = run_cold("run", "script.py", folder=folder, check=True).stdout
    assert plain == patched != ""

    # git takes them, and --write makes the same of the file.
    file.chmod(0o755)
    (patch,) = (folder / ".breakscope" / "fixes").glob("*.patch")
    subprocess.run(["git", "apply", str(patch)], cwd=folder, check=True)
    by_git = file.read_bytes()
    file.write_bytes(before)
    assert fix(folder, "--select", "BS1", "--write").returncode == 0
    assert file.read_bytes() == by_git != before
    assert edited.encode() == by_git
    assert file.stat().st_mode & 0o777 == 0o755
    assert b"# keep it finite" in by_git
    assert sites(folder) == 0


HALF = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        y = x * 1.1
        if torch.isinf(y).any():
            y = torch.clamp(y, min=-1e4, max=1e4)
        return y - x


torch.manual_seed(0)
net = torch.compile(Net())
with torch.no_grad():
    for step in range({steps}):
        net(torch.randn(64, 64, dtype=torch.bfloat16))
"""


@pytest.mark.slow
def test_what_fused_code_rounds_less_often_is_no_difference(scan: Scan) -> None:
    """Without the break, y is never rounded to bfloat16: what is left of y - x is another number."""
    folder = scan(HALF.format(steps=30)).folder
    assert run_command("fix", folder=folder, torch=True).returncode == 0
    (finding,) = latest(folder).findings
    assert finding.suggestion is not None
    assert finding.suggestion.status == "proved"
    inductor = finding.suggestion.evidence["inductor"]
    assert inductor["verdict"] == "agrees"
    assert inductor["after"] > 0.01 > inductor["before"]
    assert inductor["why"].endswith("within 0 where Inductor rounds as eager does")


KEPT_AND_TESTED = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        self.loss = x.sum().item()
        if self.loss > 99:
            raise RuntimeError(self.loss)
        return x * 2

net = torch.compile(Net(), backend="eager")
for _ in range(2):
    net(torch.ones(3))
"""


def test_a_setting_with_which_the_break_only_moves_is_no_repair(scan: Scan) -> None:
    folder = scan(KEPT_AND_TESTED).folder
    done = run_command("fix", "--no-inductor", "--select", "BS1", folder=folder, torch=True)
    assert done.stdout.endswith("0 proved, 1 unproved\n"), done.stdout
    (finding,) = latest(folder).findings
    assert finding.suggestion is not None
    assert finding.suggestion.why.startswith("with it as many places break, now at script.py:7 (")


def test_a_file_that_cannot_be_written_because_it_changes_is_no_success(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    run_command("scan", "-q", "script.py", folder=tmp_path, torch=True)
    words = ["fix", "--no-inductor", "--select", "BS1", "--write"]
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as another process that is writing the file
        done = run_command(*words, folder=tmp_path, torch=True)
    assert "1 proved" in done.stdout
    assert "not written: script.py: it has changed since the rewrite was made; scan again" in done.stdout
    assert "as written" not in done.stdout
    assert done.returncode == 1
    assert file.read_text() == SCRIPT


@pytest.mark.nightly
def test_what_is_wrong_is_refused_with_the_input_that_shows_it_and_nothing_is_written(scan: Scan) -> None:
    """The result of a branch not taken is the argument itself: a caller can tell."""
    folder = scan(
        """
        import torch

        def step(x):
            if x.sum() > 0:
                x = x + 1
            return x

        compiled = torch.compile(step)
        for value in (1.0, 2.0):
            compiled(torch.full((3,), value)).add_(1)
        """
    ).folder
    before = (folder / "script.py").read_bytes()
    done = fix(folder, "--write", "--all")
    assert done.returncode == 1
    assert "0 proved" in done.stdout
    assert (folder / "script.py").read_bytes() == before
    manifest = json.loads((folder / ".breakscope" / "fixes" / "manifest.json").read_text())
    assert manifest["files"] == []


@pytest.mark.nightly
def test_library_code_is_never_written_but_exported(cold_scan: Scan, tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "somelib"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("")
    (library / "net.py").write_text(SCRIPT.partition("torch.manual_seed")[0])
    path = str(library.parent)
    folder = cold_scan(
        """
        import torch
        from somelib.net import Net

        torch.manual_seed(0)
        net = Net()
        print(net(torch.randn(2, 4)).sum().item())
        """,
        PYTHONPATH=os.pathsep.join([path, os.environ.get("PYTHONPATH", "")]),
    ).folder
    environment = {"PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])}
    before = (library / "net.py").read_bytes()
    done = fix(folder, "--write", "--export-overlay", "fixes_here.py", **environment)
    assert "1 proved" in done.stdout, done.stdout + done.stderr
    assert "not a file of the project" in done.stdout
    assert (library / "net.py").read_bytes() == before

    use = "import fixes_here, sys, inspect\nimport somelib.net\nprint('where' in somelib.net.Net.forward.__code__.co_names)"
    words = "-W", "always", "-c", use
    run = run_python(*words, folder=folder, check=True, PYTHONPATH=path)
    assert run.stdout.strip() == "True"
    (library / "net.py").write_bytes(before + b"\n")
    run = run_python(*words, folder=folder, check=True, PYTHONPATH=path)
    assert run.stdout.strip() == "False"
    assert "has changed since its fix was made" in run.stderr


@pytest.mark.nightly
def test_a_source_that_changed_since_the_scan_is_refused(scan: Scan) -> None:
    folder = scan(SCRIPT).folder
    with (folder / "script.py").open("a") as file:
        file.write("# more\n")
    done = fix(folder)
    assert done.returncode == 1
    assert "has changed since the scan" in done.stdout


@pytest.mark.nightly
def test_ignored_findings_are_left_alone(scan: Scan) -> None:
    folder = scan(SCRIPT).folder
    done = fix(folder, "--ignore", "bs1,bs2")
    assert done.returncode == 0
    assert "nothing to fix" in done.stdout
    assert fix(folder, "--select", "BS3").stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.json"], "cannot read nothing.json: no such file"),
        (["--interactive"], "--interactive needs a terminal"),
        (["--budget", "0"], "budget"),
    ],
)
def test_bad_input_is_a_sentence(scan: Scan, words: list[str], sentence: str) -> None:
    folder = scan("print(1)\n").folder
    done = fix(folder, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_rules_are_listed_without_a_report(tmp_path: Path) -> None:
    done = fix(tmp_path, "--rules")
    assert done.returncode == 0
    assert re.search(r"^branch-to-where  \(BS101", done.stdout, re.MULTILINE)
    assert not (tmp_path / ".breakscope").exists()


LAYER_DROP = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        names = [str(number) for number in range(len(self.layers))]
        for layer in self.layers:
            if self.training:
                p = torch.rand([])
                if p < 0.4:
                    continue
            x = layer(x)
        return x, names


torch.manual_seed(0)
net = Net()
for step in range(8):
    net(torch.randn(2, 4))[0].sum().backward()
"""


@pytest.mark.nightly
def test_layer_drop_goes_with_consent_only(scan: Scan) -> None:
    folder = scan(LAYER_DROP).folder
    assert fix(folder).returncode == 1
    (finding,) = (one for one in latest(folder).findings if "< 0.4" in (one.location.source or ""))
    assert finding.suggestion is not None
    assert finding.suggestion.rule == "random-skip"
    assert "random numbers" in finding.suggestion.why
    assert not finding.suggestion.evidence["accepted"]
    done = fix(folder, "--unsafe")
    assert done.returncode == 0, done.stdout
    for one in latest(folder).findings:
        if one.kind != "recompile":
            assert one.suggestion is not None
            assert one.suggestion.evidence["accepted"]
            assert one.suggestion.evidence["whole_script"]["sites"][1] == 0


RECOMPILES = """\
import torch


@torch.compile
def f(x, n):
    y = x * n
    if not torch.isfinite(y).all():
        y = torch.clamp(y, -9, 9)
    return y * 2


for n in (1.5, 2.5, 3.5):
    print(f(torch.ones(2), n))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_remedies_for_recompiles_are_fixes_beside_the_rewrites(scan: Scan) -> None:
    folder = scan(RECOMPILES).folder
    file = folder / "script.py"
    before = file.read_bytes()
    done = fix(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    suggestions = {one.kind: one.suggestion for one in latest(folder).findings if one.code != "BS213"}
    rewrite, remedy = suggestions["graph_break"], suggestions["recompile"]
    assert rewrite is not None
    assert remedy is not None
    assert (rewrite.rule, remedy.rule) == ("branch-to-where", "scalar-to-tensor")
    assert remedy.status == "proved"
    # On top of the rewrite: no break and no recompile is left, and the script computes the same.
    whole = remedy.evidence["whole_script"]
    assert whole["sites"] == [1, 0]
    assert whole["recompiles"][1] == 0 < whole["recompiles"][0]
    assert whole["bitwise"] is True
    assert remedy.diff in done.stdout

    patches = sorted((folder / ".breakscope" / "fixes").glob("*.patch"))
    assert [one.name[4:] for one in patches] == [
        "-BS101-branch-to-where.patch",
        "-BS207-scalar-to-tensor.patch",
    ]
    subprocess.run(["git", "apply", *map(str, patches)], cwd=folder, check=True)
    by_git = file.read_bytes()
    file.write_bytes(before)
    assert fix(folder, "--write").returncode == 0
    assert file.read_bytes() == by_git != before
    assert sites(folder) == 0
    assert breakscope.load(folder / "again.json").totals.recompiles == 0


@pytest.mark.nightly
@pytest.mark.slow
def test_a_remedy_that_changes_what_others_see_needs_consent(scan: Scan) -> None:
    script = """\
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rate = 1.0

            def forward(self, x):
                self.rate = self.rate * 0.5
                return x * self.rate


        net = torch.compile(Net())
        for step in range(6):
            print(net(torch.ones(3)))
        """
    folder = scan(script).folder
    before = (folder / "script.py").read_bytes()
    done = fix(folder, "--select", "BS209", "--write")
    (finding,) = (one for one in latest(folder).findings if one.code == "BS209")
    assert finding.suggestion is not None
    assert finding.suggestion.rule == "attribute-to-buffer"
    assert done.returncode == 1
    assert "needs consent" in done.stdout
    assert (folder / "script.py").read_bytes() == before
    assert fix(folder, "--select", "BS209", "--unsafe", "--write").returncode == 0
    assert b'register_buffer("rate"' in (folder / "script.py").read_bytes()


@pytest.mark.nightly
def test_a_recompile_without_a_remedy_says_why(scan: Scan) -> None:
    script = "import torch\n\n\n@torch.compile\ndef f(x):\n    return x * 2\n\n\n"
    folder = scan(script + "for t in (torch.float32, torch.float64):\n    f(torch.ones(2, dtype=t))\n").folder
    done = fix(folder)
    assert done.returncode == 1
    assert re.search(r"^refused  BS2\d\d .*\n.*A version for each dtype of x", done.stdout, re.MULTILINE)
