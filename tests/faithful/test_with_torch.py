"""What stays as it was when torch has been imported and something was compiled."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest
from faithful.twice import World, run, twice
from scanning import command

import breakscope

pytestmark = pytest.mark.torch

AFTER_TORCH = """
import json, os, sys
fresh = os.open(os.devnull, os.O_RDONLY)
os.close(fresh)
import random
random.seed(3)
import torch
net = torch.nn.Linear(2, 2)
torch.manual_seed(1)
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
net(torch.ones(1, 2))
again = os.open(os.devnull, os.O_RDONLY)
os.close(again)
import gc, logging, signal, threading, warnings
low = [n for n in range(64) if os.path.exists(f"/proc/self/fd/{n}")]
library = sorted(n for n in sys.modules if n.partition(".")[0] in sys.stdlib_module_names)
for name, value in {
    "descriptors": [fresh, again, low],
    "library": library,
    "others": [n for n in ("sitecustomize", "torch._dynamo") if n in sys.modules],
    "finders": [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path],
    "path": sys.path,
    "environment": sorted(os.environ),
    "signals": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
    "threads": [t.name for t in threading.enumerate()],
    "warnings": [repr(one) for one in warnings.filters],
    "root logger": [logging.root.level, logging.root.handlers],
    "random": [random.random(), torch.rand(2).tolist()],
    "torch": [torch.get_num_threads(), str(torch.get_default_dtype()), torch.is_grad_enabled()],
    "specs": [repr(torch.__spec__.loader)[:40], repr(torch.__loader__)[:40]],
    "garbage": [gc.isenabled(), gc.get_threshold()],
    "module": [sorted(vars(net)), type(net).__call__ is torch.nn.Module.__call__],
}.items():
    print(json.dumps({name: value}))
"""


def torch_version() -> str:
    return importlib.metadata.version("torch")


def test_after_torch_the_world_is_the_same(tmp_path: Path) -> None:
    # It compiles by itself: what Dynamo brings with it is there on both sides.
    words = ["script.py"]
    plain, scanned = twice(tmp_path, words, World(files={"script.py": AFTER_TORCH}))
    assert scanned.stderr == plain.stderr
    differing = {
        line: other
        for line, other in zip(plain.stdout.splitlines(), scanned.stdout.splitlines(), strict=True)
        if line != other
    }
    assert differing == {}


def test_modules_beside_a_script_that_trains_stay_its_own(tmp_path: Path) -> None:
    source = (
        "import importlib.util; importlib.util.find_spec('torch')\n"  # as transformers does, before it imports torch
        "import torch, sysconfig, settings, events\n"  # the agent needs these, and torch none of them to be loaded
        "print(sysconfig.__file__, settings.__file__, events.__file__)\n"
    )
    names = ("sysconfig", "settings", "events")
    world = World(files={"script.py": source, **{f"{name}.py": "" for name in names}})
    plain = run(tmp_path, [sys.executable, "script.py"], world)
    (tmp_path / "installed.py").write_text("from breakscope.cli import main\nraise SystemExit(main())\n")
    scan = [sys.executable, str(tmp_path / "installed.py"), "scan", "-q", "script.py"]
    assert run(tmp_path, scan, world) == plain
    assert breakscope.load(tmp_path / "here/.breakscope/latest.json").run.torch == torch_version()


def test_what_is_loaded_ahead_for_a_function_is_not_left_to_the_script(tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "print([n for n in ('ast', 'json', 'hashlib', 'breakscope') if n in sys.modules])\n"
        "import json; print(json.__file__)\n"
        "def step(x):\n    return x + 1\n"
        "if len(sys.argv) > 1:\n    import torch\n    step(torch.ones(1))\n"
    )
    world = World(files={"script.py": source, "json.py": ""})
    (tmp_path / "installed.py").write_text("from breakscope.cli import main\nraise SystemExit(main())\n")
    scan = [sys.executable, str(tmp_path / "installed.py"), "scan", "-q", "--compile", "step", "script.py"]
    ran = run(tmp_path, scan, world)
    assert ran.stdout.decode().split("\n")[:2] == ["[]", str(tmp_path / "here" / "json.py")]


@pytest.mark.nightly
def test_a_function_is_compiled_by_name_after_that(tmp_path: Path) -> None:
    source = "def step(x):\n    return x + 1\nimport torch\nstep(torch.ones(1))\n"
    words = command("scan", "-q", "--compile", "step", "script.py")
    ran = run(tmp_path, words, World(files={"script.py": source}))
    assert (ran.code, ran.stderr) == (0, b"")
    assert breakscope.load(tmp_path / "here/.breakscope/latest.json").run.compiled == ("step",)
