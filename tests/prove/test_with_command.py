"""`fix --with COMMAND`: a command proposes, breakscope proves; nothing that it does harms."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from patches import PRELUDE, SCRIPT
from warm import Warm

from breakscope.fix import outside
from breakscope.fix.outside import OutsideError

SOURCE = (
    PRELUDE
    + """\
@torch.compile
@torch.no_grad()
def halved(x):
    steps = 0
    while x.abs().sum() > 1 and steps < 5:
        x = x * 0.5
        steps += 1
    return x.sin()


for x in batches(3, 4):
    print(halved(x).sum().item())
"""
)
# First forgets the condition; once it has seen an input that shows it, it does better.
PROPOSER = '''
import difflib, json, sys

request = json.load(sys.stdin)
with open("requests.jsonl", "a") as file:
    print(json.dumps(request), file=file)
old = open(request["finding"]["file"]).read()
loop = old[old.index("    steps = 0"):old.index("    return x.sin()")]
if not request["earlier"]:
    better = "    x = x * 0.5\\n"
else:
    assert request["earlier"][-1]["counterexample"]["old"] != request["earlier"][-1]["counterexample"]["new"]
    better = """\\
    def more(steps, x):
        return (x.abs().sum() > 1) & (steps < 5)

    def halve(steps, x):
        return steps + 1, x * 0.5

    _, x = torch.while_loop(more, halve, (torch.zeros((), dtype=torch.int64), x))
"""
new = old.replace(loop, better)
sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/script.py", "b/script.py"))
'''
OUTSIDE_ITS_PROJECT = """
import sys
print("--- a/{0}\\n+++ b/{0}\\n@@ -1 +1 @@\\n-old = 1\\n+new = 1".format(sys.argv[1]))
"""


def python(*words: str) -> str:
    return " ".join([sys.executable, *words])


def fixed(warm: Warm, folder: Path, command: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Scan the script and fix it with a command. Returns exit code and answer."""
    (folder / SCRIPT).write_text(SOURCE)
    log = folder / "log"
    usual = ("--no-inductor", "--budget", "10", "--timeout", "60", "--write", "--format", "json")
    scan = ("scan", "-q", "--no-cost", SCRIPT)
    code = warm.commands([scan, ("fix", "--with", command, *usual, *words)], folder, log)
    text = log.read_text()
    assert "{\n" in text, log.with_suffix(".err").read_text()
    return code, json.loads(text[text.index("{\n") : text.rindex("}") + 1])


@pytest.mark.torch
def test_a_proposer_that_is_given_the_counterexample_gets_it_right(tmp_path: Path, product: Warm) -> None:
    (tmp_path / "proposer.py").write_text(PROPOSER)
    code, answer = fixed(product, tmp_path, python("proposer.py"))
    (finding,) = answer["findings"]
    assert (code, finding["status"], finding["rule"]) == (0, "proved", "with-command"), finding["why"]
    assert "torch.while_loop" in (tmp_path / SCRIPT).read_text()
    first, second = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert first["earlier"] == []
    assert first["function"]["name"] == "halved"
    assert first["parameters"]["x"]["tensors"][0]["shape"] == [3, 4]
    assert {one["rule"] for one in first["refusals"]} >= {"branch-to-where", "loop-exit"}
    assert second["earlier"][0]["status"] == "refused"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        pytest.param("print('I would use torch.cond there.')", "this is no unified diff", id="rubbish"),
        pytest.param(
            f"open('{SCRIPT}', 'a').write('import os')",
            f"the command itself changed {SCRIPT}",
            id="writes by itself",
        ),
    ],
)
def test_a_proposer_that_gives_no_diff_changes_nothing(
    program: str, sentence: str, tmp_path: Path, product: Warm
) -> None:
    (tmp_path / "proposer.py").write_text(program)
    code, answer = fixed(product, tmp_path, python("proposer.py"), "--tries", "1")
    (finding,) = answer["findings"]
    assert (code, finding["status"]) == (1, "refused")
    assert sentence in finding["why"]
    assert (tmp_path / SCRIPT).read_text() == SOURCE


@pytest.mark.torch
def test_a_diff_of_a_file_outside_of_the_project_is_not_tried(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, product: Warm
) -> None:
    other = tmp_path_factory.mktemp("other") / "other.py"
    other.write_text("old = 1\n")
    (tmp_path / "proposer.py").write_text(OUTSIDE_ITS_PROJECT)
    command = python("proposer.py", f"../{other.parent.name}/other.py")
    code, answer = fixed(product, tmp_path, command, "--tries", "1")
    assert code == 1
    assert "which is not of this project" in answer["findings"][0]["why"]
    assert other.read_text() == "old = 1\n"


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        pytest.param("import time; time.sleep(60)", "it took longer than 1 s", id="hangs"),
        pytest.param(
            "import os; os.close(1); import time; time.sleep(60)",
            "it took longer than 1 s",
            id="hangs without output",
        ),
        pytest.param("while True: print('x' * 65536)", "it wrote more than 1 MiB", id="floods"),
        pytest.param("raise SystemExit(3)", "ended with exit status 3", id="fails"),
        pytest.param("pass", "wrote nothing", id="silent"),
        pytest.param("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", "no text", id="bytes"),
    ],
)
def test_a_command_that_misbehaves_is_one_sentence(program: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "proposer.py").write_text(program)
    with pytest.raises(OutsideError, match=sentence) as raised:
        outside.ask(
            python(str(tmp_path / "proposer.py")), b"{}", [], timeout_s=1 if "sleep" in program else 30
        )
    assert "\n" not in str(raised.value)


@pytest.mark.nightly
def test_what_the_command_starts_ends_with_it(tmp_path: Path) -> None:
    started = tmp_path / "started.py"
    started.write_text(
        f"import os, time; open(r'{tmp_path}/pid', 'w').write(str(os.getpid())); time.sleep(60)"
    )
    waiting = f"import subprocess, sys, time, os\nsubprocess.Popen([sys.executable, r'{started}'])\n"
    waiting += f"while not os.path.exists(r'{tmp_path}/pid'): time.sleep(0.01)\ntime.sleep(0.1)\n"
    (tmp_path / "proposer.py").write_text(waiting)
    with pytest.raises(OutsideError):
        outside.ask(python(str(tmp_path / "proposer.py")), b"{}", [], timeout_s=2)
    pid = (tmp_path / "pid").read_text()
    while is_alive(pid):  # the test's own time limit ends it
        time.sleep(0.01)


def is_alive(pid: str) -> bool:
    status = Path(f"/proc/{pid}/status")
    try:
        return "zombie" not in status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_file_that_the_command_changed_is_put_back(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("kept = 1\n")
    (tmp_path / "proposer.py").write_text(f"open(r'{file}', 'w').write('gone = 1')\nprint('--- a')")
    with pytest.raises(OutsideError, match=r"changed model[.]py, which was put back"):
        outside.ask(python(str(tmp_path / "proposer.py")), b"{}", [str(file)])
    assert file.read_text() == "kept = 1\n"
