"""The judge can fail: wrong rewrites planted by hand are reported, each, and what no observer can tell is not."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pipeline
import planted_faults
import pytest
import script_judge
from observed_program import PRELUDE, QUIET, Program
from planted_faults import FAULTS, Fault
from script_judge import Ran, UnstableError, judge
from test_observed_programs import PROGRAMS
from warm import Warm

pytestmark = pytest.mark.torch

CLIP = """
class Clip(nn.Module):
    last = None

    def forward(self, x):
        {body}
        self.last = x
        return x * 2


net = Clip()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    x.tag = i
    y = run(x)
"""
OLD_BODY = "if x.abs().max() > 2.5:\n            x = x.clamp(-2.5, 2.5)"
NEW_BODY = "x = torch.where(x.abs().max() > 2.5, x.clamp(-2.5, 2.5), x)"
CHECK = """
CALLS = []


def f(x):
    CALLS.append(1)
    {check}
    return x + 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    {call}
print(len(CALLS))
"""
RAISES = "if x.max() > 8:\n        raise ValueError('large')"


def clip(body: str, observed: str) -> str:
    return CLIP.format(body=body) + f"    {observed}\n"


# What is observed -> the script before, and after a rewrite that somebody might make.
WRONG = {
    "identity": (clip(OLD_BODY, "print(net.last is x)"), clip(NEW_BODY, "print(net.last is x)")),
    "memory": (
        clip(OLD_BODY, "print(net.last.data_ptr() == x.data_ptr())"),
        clip(NEW_BODY, "print(net.last.data_ptr() == x.data_ptr())"),
    ),
    "attribute": (
        clip(OLD_BODY, "print(hasattr(net.last, 'tag'))"),
        clip(NEW_BODY, "print(hasattr(net.last, 'tag'))"),
    ),
    "write of the caller": (
        clip(OLD_BODY, "x.zero_(); print(net.last.sum().item())"),
        clip(NEW_BODY, "x.zero_(); print(net.last.sum().item())"),
    ),
    "value": (
        clip(OLD_BODY, "print(y.sum().item())"),
        clip(NEW_BODY.replace("(-2.5, 2.5)", "(-2.5, 2.4)"), "print(y.sum().item())"),
    ),
    "type of the exception": (
        CHECK.format(check=RAISES, call="run(batch(i))"),
        CHECK.format(check=RAISES.replace("ValueError", "RuntimeError"), call="run(batch(i))"),
    ),
    "no exception": (
        CHECK.format(check=RAISES, call="run(batch(i))"),
        CHECK.format(check="pass", call="run(batch(i))"),
    ),
    "effect before an exception": (
        CHECK.format(check=RAISES, call="try: run(batch(i))\n    except ValueError: pass"),
        CHECK.format(check=RAISES, call="try: run(batch(i))\n    except ValueError: CALLS.pop()"),
    ),
    "lost warning": (
        "import warnings\n" + CHECK.format(check="warnings.warn('told')", call="run(batch(i))"),
        "import warnings\n" + CHECK.format(check="pass", call="run(batch(i))"),
    ),
    "lost message on stderr": (
        "import sys\n" + CHECK.format(check="print('told', file=sys.stderr)", call="run(batch(i))"),
        "import sys\n" + CHECK.format(check="pass", call="run(batch(i))"),
    ),
    "exit status": ("print('end')\nraise SystemExit(3)", "print('end')"),
    "a crash": ("print('end')", "print('end', flush=True)\nos.kill(os.getpid(), 9)"),
    "mode left": (
        "torch.set_grad_enabled(True)\nprint(torch.is_grad_enabled())",
        "torch.set_grad_enabled(False)\nprint(torch.is_grad_enabled())",
    ),
    "what is said at exit": (
        "import atexit\natexit.register(print, 'bye')",
        "import atexit\natexit.register(print, 'by')",
    ),
}
RIGHT = {
    "moved lines": (
        "import warnings\nwarnings.warn('told')\n1 / 0",
        "\n\nimport warnings\n\nwarnings.warn('told')\nif True:\n    1 / 0",
    ),
    "other breaks": (
        clip(OLD_BODY, "print(round(y.sum().item(), 4))"),
        clip(NEW_BODY, "print(round(y.sum().item(), 4))"),
    ),
    "what torch says of recompiles": (
        """
@torch.compile(backend="eager")
def f(n, x):
    return x + n


for n in range(12):
    f(n / 3, torch.ones(n + 2))
    f(str(n) and n % 2 == 0, torch.ones(2, n + 2))
print("end")
""",
        "print('end')",
    ),
}


def folders(at: Path, old: str, new: str) -> tuple[Path, Path]:
    sources = {"old": PRELUDE + old, "new": PRELUDE + new}
    made = [
        pipeline.written(at / name, {script_judge.SCRIPT: source + "\n"}) for name, source in sources.items()
    ]
    return made[0], made[1]


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_wrong_rewrite_is_reported(name: str, tmp_path: Path, judging: Warm) -> None:
    old, new = WRONG[name]
    assert judge(judging, *folders(tmp_path, old, new))
    # and it was the rewrite: the old script says the same as itself.
    assert judge(judging, *folders(tmp_path / "same", old, old)) == []


@pytest.mark.parametrize("name", RIGHT)
def test_what_no_observer_can_tell_is_not_reported(name: str, tmp_path: Path, judging: Warm) -> None:
    assert judge(judging, *folders(tmp_path, *RIGHT[name])) == []


def test_a_script_that_does_not_say_the_same_twice_is_not_judged(tmp_path: Path, judging: Warm) -> None:
    with pytest.raises(UnstableError):
        judge(
            judging,
            *folders(tmp_path, "print(os.urandom(8))", "print(os.urandom(8))"),
        )


def test_a_script_that_never_ends_is_killed(
    tmp_path: Path, judging: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_judge, "LIMIT_S", 3.0)
    found = judge(judging, *folders(tmp_path, "print('end')", "print('end', flush=True)\nwhile True: pass"))
    assert found == ["exit status 0 before, 124 after"]


def test_only_what_torch_says_of_compiling_is_left_out() -> None:
    lines = [
        "W1122 13:00:00.000000 4242 torch/_dynamo/convert_frame.py:1000] [0/8] recompile limit",
        "/lib/python3.11/site-packages/torch/_dynamo/x.py:12: UserWarning: slow",
        "  warnings.warn('slow')",
        "/home/me/script.py:7: UserWarning: mine",
        "  warnings.warn('mine')",
        "Traceback (most recent call last):",
        '  File "/home/me/script.py", line 9, in <module>',
        "    f(x)",
        "ValueError: bad",
        "  indented words of the script",
    ]
    assert script_judge.of_the_script(lines) == [
        "/home/me/script.py: UserWarning: mine",
        "ValueError: bad",
        "  indented words of the script",
    ]
    assert script_judge.differences(Ran(("a",), (), 0), Ran(("a", "b"), (), 0)) == [
        "stdout line 2: nothing before, 'b' after"
    ]


@pytest.mark.parametrize("module", ["script_judge", "warm", "warm_server"])
def test_the_judge_shares_no_code_with_breakscope(module: str) -> None:
    tree = ast.parse(Path(script_judge.__file__).with_name(f"{module}.py").read_text())
    imported = {
        name.split(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        )
    }
    assert imported <= {*sys.stdlib_module_names, "warm", "warm_server"}


def test_the_process_of_the_judge_has_not_loaded_breakscope(tmp_path: Path, judging: Warm) -> None:
    source = "import sys\nprint(any(one.split('.')[0] == 'breakscope' for one in sys.modules))\n"
    folder = pipeline.written(tmp_path / "script", {script_judge.SCRIPT: source})
    assert script_judge.run(judging, folder).stdout == ("False",)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_planted_in_the_proof_is_found(
    fault: Fault, tmp_path: Path, product: Warm, judging: Warm
) -> None:
    """At least one program comes out wrong with the fault in it; each is right without, at night (QUIET too).

    The scripts are quiet until they are judged, so that it is the proof that has to find the difference.
    """
    assert hasattr(planted_faults, fault.replacement)
    programs = [one for one in PROGRAMS if one.name in fault.programs]
    assert len(programs) == len(fault.programs)

    def wrong(program: Program) -> list[str]:
        planted = [(fault.target, fault.replacement)]
        faulty = pipeline.fix(product, program.files, tmp_path / program.name, planted, QUIET)
        return pipeline.wrong(judging, faulty, program.environments)

    assert any(map(wrong, programs))  # the first one that does is enough
