"""Environment variables never reach a report, a page, or anything else that a scan leaves behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned

from breakscope.cli import main
from breakscope.diagnose.compare import compare
from breakscope.render import FORMATS, Options, html

SECRET = "hunter2"
SCRIPT = """
    import os

    import torch

    token = os.environ["SECRET_TOKEN"]

    class Net(torch.nn.Module):
        def forward(self, x, scale):
            if x.sum() > 0:
                x = x + 1
            return x * scale

    net = torch.compile(Net())
    for n in (3, 4, 5):
        net(torch.ones(n), n / 2)
    assert len(token) == 7
    raise RuntimeError("the service refused the token")
"""


@pytest.mark.torch
def test_a_secret_in_the_environment_reaches_no_file(warm_scan: Callable[..., Scanned]) -> None:
    scanned = warm_scan(SCRIPT, SECRET_TOKEN=SECRET)
    assert scanned.exit_code == 1
    assert (
        "the service refused the token" in scanned.stderr
    )  # the script did run, with the secret, to its end
    report = scanned.report
    assert report.run.status == "script_error"
    assert {one.kind for one in report.findings} == {"graph_break", "recompile"}
    latest = scanned.folder / ".breakscope" / "latest.json"
    assert main(["report", str(latest), "--html"]) == 0
    assert main(["diff", str(latest), str(latest), "--html"]) == 0
    left = [path for path in scanned.folder.rglob("*") if path.is_file()]
    assert {"latest.json", "breakscope.html", "diff.html"} <= {path.name for path in left}
    assert [path for path in left if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.torch
def test_a_secret_in_the_environment_reaches_no_format(warm_scan: Callable[..., Scanned]) -> None:
    report = warm_scan(SCRIPT, SECRET_TOKEN=SECRET).report
    texts = [FORMATS[name](report, Options()) for name in FORMATS if name != "parquet"]
    texts += [
        html.render(report, sources=html.OnDisk(lambda _file: True)),
        html.render_diff(compare(report, report), root=None),
    ]
    assert [text for text in texts if SECRET in str(text)] == []
