"""A scanned script runs exactly as ``python SCRIPT ARGS`` runs it.

Nightly: a model that raises, under more options.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned, clean_environment, command, elsewhere, run_cold, run_python

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

SELF_PORTRAIT = """
    import dataclasses, os, pickle, sys, threading, atexit

    print(sys.argv, sys.path, __name__, __file__, __spec__, __package__, __doc__, type(__loader__))
    print(sys.flags, sys.stdin.read(), os.getcwd())
    print(sorted(f"{k}={v}" for k, v in os.environ.items() if k not in ("_", "PWD", "OLDPWD", "SHLVL")))
    print(sys.modules["__main__"].__file__, sys.excepthook, sys.meta_path[-1])

    @dataclasses.dataclass
    class Point:
        x: int = 1

    print(pickle.loads(pickle.dumps(Point(3))), Point.__module__)
    atexit.register(print, "bye")
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    exec(open("configurator.py").read())
    print("from the configurator", learning_rate, file=sys.stderr)
    sys.exit(7)
"""


@pytest.mark.parametrize("python_path", [None, "/nowhere:/elsewhere"])
def test_a_script_sees_what_it_would_see_without_us(tmp_path: Path, python_path: str | None) -> None:
    (tmp_path / "portrait.py").write_text(textwrap.dedent(SELF_PORTRAIT))
    (tmp_path / "configurator.py").write_text("learning_rate = 0.5\n")
    environment = clean_environment(**({"PYTHONPATH": python_path} if python_path else {}))
    if not python_path:
        environment.pop("PYTHONPATH", None)
    words = ["portrait.py", "--help", "--", "-o", "x", "--", ""]
    done = [
        subprocess.run(
            start + words, cwd=tmp_path, input=b"typed", capture_output=True, env=environment, check=False
        )
        for start in ([sys.executable], command("scan", "-q"))
    ]
    plain, scanned = done
    assert plain.returncode == scanned.returncode == 7
    assert scanned.stdout.decode().splitlines() == plain.stdout.decode().splitlines()
    assert scanned.stderr == plain.stderr == b"from the configurator 0.5\n"


def test_a_module_runs_as_python_m_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(
        "import sys\nfrom . import __name__ as parent\n"
        "print(sys.argv, sys.path[0], __name__, __package__, __spec__.name, parent)\nsys.exit(4)\n"
    )
    words = ["-m", "pkg.train", "--epochs", "1", "-m"]
    plain = run_python(*words, folder=tmp_path)
    scanned = run_cold("scan", "-q", *words, folder=tmp_path)
    assert plain.returncode == scanned.returncode == 4
    assert scanned.stdout == plain.stdout
    assert scanned.stderr == plain.stderr == ""


CRASH = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.fc(x)

    def main():
        net = Net()
        net(torch.ones(2, 4))
        raise KeyError("the script's own mistake")

    main()
"""


def test_a_crash_shows_the_scripts_own_traceback(scan: Scan) -> None:
    scanned = scan(CRASH)
    plain = run_python("script.py", folder=scanned.folder)
    assert scanned.exit_code == plain.returncode == 1
    assert scanned.stderr == plain.stderr
    assert "breakscope" not in scanned.stderr
    assert scanned.report.run.status == "script_error"
    assert scanned.report.totals.regions == 1


def test_a_crash_behind_a_chain_of_calls_shows_its_own_line(scan: Scan) -> None:
    """Dynamo gives the function up, and a copy of it that counts runs in its place, with lines of torch's making."""
    scanned = scan(
        """
        import torch

        @torch.compile
        def f(x):
            for _ in range(2):
                total = (
                    x.abs()
                    .clamp(0, 1)
                    .sum()
                )
                if total > 0.5:
                    x = x + 1
                assert total.item() > 100, "too small"
            return x

        f(torch.ones(3))
        """
    )
    plain = run_python("script.py", folder=scanned.folder)
    own = [
        [line for line in said.splitlines() if "script.py" in line] for said in (scanned.stderr, plain.stderr)
    ]
    assert own[0] == own[1]
    assert len(own[0]) == 2


@pytest.mark.parametrize(
    "options",
    [
        (),
        pytest.param(("--compile", "forward_twice"), marks=pytest.mark.nightly),
        pytest.param(("--steps", "50"), marks=pytest.mark.nightly),
    ],
)
def test_no_frame_of_ours_shows_where_the_model_raises(scan: Scan, options: tuple[str, ...]) -> None:
    scanned = scan(
        """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(4, 4)

            def forward(self, x):
                print("before")
                raise RuntimeError("inside forward")

        def forward_twice(net, x):
            return net(net(x))

        forward_twice(Net(), torch.ones(2, 4))
        """,
        *options,
    )
    assert scanned.exit_code == 1
    assert "RuntimeError: inside forward" in scanned.stderr
    assert "breakscope" not in elsewhere(scanned.stderr)


def test_spawned_and_forked_workers_and_subprocesses_are_left_alone(scan: Scan) -> None:
    scanned = scan(
        """
        import multiprocessing, os, subprocess, sys
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Squares(Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, i):
                assert not [k for k in os.environ if k.startswith("BREAKSCOPE")]
                return torch.tensor([float(i)])

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(1, 1)
            def forward(self, x):
                return self.fc(x)

        if __name__ == "__main__":
            net = Net()
            for context in ("fork", "spawn"):
                for batch in DataLoader(Squares(), 4, num_workers=2, multiprocessing_context=context):
                    net(batch)
            child = subprocess.run([sys.executable, "-c", "import sys; print('breakscope' in sys.modules)"],
                                   capture_output=True, text=True)
            print(child.stdout.strip())
        """,
        "--no-children",
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert scanned.text.strip() == "False"
    assert scanned.report.totals.regions == 1
    assert scanned.report.regions[0].calls == 4


def test_binary_output_passes_through(scan: Scan) -> None:
    data = bytes(range(256)) * 5
    scanned = scan("import sys; sys.stdout.buffer.write(bytes(range(256)) * 5)")
    assert scanned.exit_code == 0
    assert scanned.stdout == data


def test_a_script_that_closes_its_output_is_scanned(scan: Scan) -> None:
    scanned = scan("import os, sys, torch; sys.stdout.close(); os.close(1); os.close(2); torch.ones(1)")
    assert scanned.exit_code == 0
    assert scanned.report.run.status == "ok"


def test_a_script_that_closes_every_descriptor_keeps_its_report(scan: Scan) -> None:
    scanned = scan(
        """
        import os, torch
        os.closerange(3, 256)
        net = torch.nn.Linear(2, 2)
        net(torch.ones(1, 2))
        """
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert scanned.report.totals.regions == 1


def test_a_file_that_gets_our_descriptor_stays_as_the_script_wrote_it(scan: Scan, tmp_path: Path) -> None:
    scanned = scan(
        """
        import os, torch
        os.closerange(3, 256)
        files = [open(f"{number}.txt", "w") for number in range(8)]
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
        for file in files:
            file.write("mine")
        """
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert {(tmp_path / f"{number}.txt").read_text() for number in range(8)} == {"mine"}
    assert scanned.report.totals.regions == 1


def test_a_script_that_changes_directory_leaves_its_report_where_it_began(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    scanned = scan("import os, torch; os.chdir('sub'); torch.nn.Linear(2, 2)(torch.ones(1, 2))")
    assert scanned.report.totals.regions == 1
    assert not (tmp_path / "sub" / ".breakscope").exists()


def test_settings_made_before_torch_is_imported_still_count(scan: Scan) -> None:
    scanned = scan(
        """
        import os
        os.environ["OMP_NUM_THREADS"] = "2"
        os.environ["TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"] = "1"
        import torch
        print(torch.get_num_threads())

        @torch.compile
        def f(x):
            return x + x.sum().item()

        f(torch.ones(3))
        """
    )
    assert scanned.text == "2\n"
    assert scanned.report.totals.sites == 0
    assert scanned.report.totals.regions == 1


def test_an_environment_with_its_own_sitecustomize_keeps_it(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.greeting = 'hello'\n")
    scanned = scan("print(greeting)", PYTHONPATH=str(tmp_path / "site"))
    assert scanned.text == "hello\n"


def test_torch_logs_are_printed_as_without_us(scan: Scan) -> None:
    source = """
        import torch

        @torch.compile(backend="eager")
        def f(x):
            print("break")
            return x + 1

        f(torch.ones(3))
    """
    silent = scan(source)
    assert "Graph break" not in silent.stderr
    loud = scan(source, TORCH_LOGS="graph_breaks")
    assert "Graph break in user code" in loud.stderr


@pytest.mark.parametrize("name", ["with space.py", "weird-ñame.py", "no_ending"])
def test_any_name_of_a_script_will_do(scan: Scan, name: str) -> None:
    scanned = scan("print('ran')", name=name)
    assert scanned.text == "ran\n"
    assert scanned.report.run.script == name


def test_a_user_without_a_writable_home_can_scan(scan: Scan) -> None:
    scanned = scan("print('ran')", HOME="/nonexistent")
    assert scanned.exit_code == 0
    assert os.listdir(scanned.folder / ".breakscope")


def test_graphs_are_called_as_directly_as_without_us(scan: Scan) -> None:
    # Dynamo exchanges a graph's lazy forward for the real one only if a backend hands it over bare.
    scanned = scan(
        """
        import sys
        import torch

        @torch.compile(backend="eager")
        def f(x):
            return torch.relu(x) + 1

        seen = []
        for _ in range(3):
            f(torch.ones(2))
        sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code.co_name))
        f(torch.ones(2))
        sys.setprofile(None)
        print("_lazy_forward" in seen, "_call_impl" in seen, "region" in seen)
        """
    )
    assert scanned.text.split() == ["False", "False", "True"]
