"""The table of examples is true: torch compiles every one of them.

Nightly: it checks a table that the other tests of lint read, and that seldom changes.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from lint_examples import BREAKS, CLEAN, MISSED
from lint_setup import function
from scanning import run_python

CHILD = """
import json, logging, sys, warnings
import torch

warnings.simplefilter("ignore")
records = []

class Records(logging.Handler):
    def emit(self, record):
        artifact = (getattr(record, "metadata", None) or {}).get("artifact")
        if artifact and artifact["name"] == "dynamo_graph_break_reason":
            records.append(1)

trace = logging.getLogger("torch.__trace")
trace.setLevel(logging.DEBUG)
trace.addHandler(Records())
verdicts = []
for path in json.load(open(sys.argv[1])):
    names = {}
    exec(compile(open(path).read(), path, "exec"), names)
    torch._dynamo.reset()
    records.clear()
    try:
        torch.compile(names["f"], backend="eager")(
            torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1, 2, 3, 2]), torch.tensor([True, False, True, False])
        )
    except Exception:
        pass
    verdicts.append(bool(records))
json.dump(verdicts, open(sys.argv[2], "w"))
"""


@pytest.mark.nightly
@pytest.mark.torch
@pytest.mark.slow
def test_torch_agrees_with_the_table(tmp_path: Path) -> None:
    if version("torch").split(".")[:2] != ["2", "13"]:
        pytest.skip(f"the table is about torch 2.13, this is {version('torch')}")
    expected = [
        *((body, True) for _, body in BREAKS),
        *((body, True) for body in MISSED),
        *((body, False) for body in CLEAN),
    ]
    paths = []
    for number, (body, _) in enumerate(expected):
        path = tmp_path / f"example_{number}.py"
        path.write_text(function(body))
        paths.append(str(path))
    (tmp_path / "paths.json").write_text(json.dumps(paths))
    words = "-c", CHILD, str(tmp_path / "paths.json"), str(tmp_path / "verdicts.json")
    run_python(*words, timeout=900, check=True, OMP_NUM_THREADS="1")
    verdicts = json.loads((tmp_path / "verdicts.json").read_text())
    wrong = [
        f"{'breaks' if broke else 'does not break'}: {body}"
        for (body, breaks), broke in zip(expected, verdicts, strict=True)
        if breaks != broke
    ]
    assert wrong == []
