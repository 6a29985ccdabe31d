"""Bug reports for torch: each reproducer is run, and shows what its report is about."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import BRANCH, CLEAN, HUNDRED
from scanning import run_python
from warm_scanning import run_command

from breakscope.cli import main
from breakscope.render import FORMATS, Options
from breakscope.report.model import Device

SCRIPT = """
    import sys

    import torch
    from torch import nn

    import sibling

    WIDTH = 4
    API_KEY = "sk-abcdefghijklmnopqrstuvwx"
    torch._dynamo.config.automatic_dynamic_shapes = False

    class Block(nn.Module):
        def __init__(self, width, scale=2.0):
            super().__init__()
            self.lin = nn.Linear(width, width)
            self.scale = scale

        def forward(self, x, mask=None):
            y = self.lin(x)
            if y.sum() > 0:
                y = y * self.scale
            return loud(y)

    def loud(y):
        assert len(API_KEY) > 3
        print("loud")
        return y + 1

    @torch.compile
    def summed(x, n):
        return x * n + x.mean().item()

    @torch.compile
    def rare(x):
        if x.max() > 0:
            print("rare")
        return x

    @torch.compile
    def sized(x):
        return x + 1

    @torch.compile
    def elsewhere(x):
        return sibling.helped(x)

    def main():
        net = torch.compile(Block(WIDTH, scale=3.0))
        local = torch.compile(lambda x: print(x))
        net(torch.randn(2, WIDTH))
        summed(torch.randn(3), 2)
        rare(torch.ones(3))
        elsewhere(torch.ones(3))
        local(torch.ones(3))
        for size in range(2, 8):
            sized(torch.ones(size))

    main()
"""
HELPER = "def helped(x):\n    print(x)\n    return x\n"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str, Path]:
    """The reports of one scan by the place that they are about, all of them, and the script's folder."""
    import textwrap

    folder = tmp_path_factory.mktemp("issue")
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    (folder / "sibling.py").write_text(HELPER)
    assert run_command("scan", "-q", "script.py", folder=folder, torch=True).returncode == 0
    latest = folder / ".breakscope" / "latest.json"
    said = io.StringIO()
    with redirect_stdout(said):
        assert main(["report", str(latest), "-f", "issue"]) == 0
    parts = said.getvalue().split("\n---\n\n")
    named = {
        re.search(r"^At \S+ in ([\w.&;#<>]+?)\.(?: Torch|$)", part, re.MULTILINE)[1]: part for part in parts
    }  # type: ignore[index]
    return named, said.getvalue(), folder


def script_of(issue: str) -> str:
    return issue.partition("## Reproducer\n\n```python\n")[2].partition("\n```")[0]


def stderr_of(script: str, folder: Path) -> str:
    (folder / "alone").mkdir(exist_ok=True)
    file = folder / "alone" / "shown.py"
    file.write_text(script)
    done = run_python(str(file), folder=file.parent)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.torch
@pytest.mark.parametrize(
    ("function", "gb_id", "line"),
    [
        ("Block.forward", "gb0170", "if y.sum() > 0:"),
        ("loud", "gb0059", 'print("loud")'),
        ("summed", "gb0124", "return x * n + x.mean().item()"),
    ],
)
def test_a_reproducer_alone_in_a_folder_breaks_as_the_script_did(
    function: str, gb_id: str, line: str, written: tuple[dict[str, str], str, Path]
) -> None:
    issues, _, folder = written
    shown = stderr_of(script_of(issues[function]), folder)
    assert f"/gb/{gb_id}.html" in shown
    assert line in shown
    assert gb_id.upper() in issues[function].partition("\n")[0]


@pytest.mark.torch
def test_a_reproducer_compiles_again_as_the_script_did(written: tuple[dict[str, str], str, Path]) -> None:
    issues, _, folder = written
    shown = stderr_of(script_of(issues["sized"]), folder)
    assert "Recompiling function sized" in shown
    assert "size mismatch at index 0. expected 2, actual 3" in shown


@pytest.mark.torch
@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("rare", "a tensor's value decides whether it gets there"),
        ("helped", "sibling comes from sibling, another file of the project"),
    ],
)
def test_where_no_reproducer_can_be_made_the_report_says_why(
    function: str, why: str, written: tuple[dict[str, str], str, Path]
) -> None:
    issues, _, _ = written
    made = [text for name, text in issues.items() if name == function]
    assert made, issues.keys()
    assert f"No script of its own can be made for this one: {why}." in "".join(made)
    assert script_of(made[0]) == ""


@pytest.mark.torch
def test_a_report_holds_no_secret_and_no_folder_of_the_user(
    written: tuple[dict[str, str], str, Path],
) -> None:
    _, text, folder = written
    assert "sk-abcdef" not in text
    assert "*" * 27 in script_of(written[0]["loud"])
    assert str(folder) not in text
    assert "site-packages/torch" in text or "/site-packages" not in text
    assert "- torch: " in text


def test_without_the_source_the_report_says_that_there_is_no_reproducer() -> None:
    text = FORMATS["issue"](replace(CLEAN, findings=(BRANCH,)), Options())
    assert "No script of its own can be made for this one: " in str(text)
    assert "gb0170.html" in str(text)


def test_a_healthy_run_has_nothing_to_report_and_a_limit_holds() -> None:
    assert str(FORMATS["issue"](CLEAN, Options())).startswith("Nothing to report to torch")
    assert str(FORMATS["issue"](HUNDRED, Options(limit=3))).count("## Versions") == 3


@pytest.mark.parametrize(("count", "said"), [(1, "- device: cpu\n"), (2, "- device: 2 x cpu\n")])
def test_a_device_is_named_once(count: int, said: str) -> None:
    run = replace(HUNDRED.run, device=Device("cpu", "CPU", count))
    assert said in str(FORMATS["issue"](replace(HUNDRED, run=run), Options(limit=1)))
