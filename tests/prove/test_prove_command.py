"""`breakscope prove` as it is called: what it reads, what it compares, what it leaves alone, and how it ends."""

from __future__ import annotations

from pathlib import Path

import asking
import pytest
import right
import wrong
from patches import PRELUDE, SCRIPT, Patched, diff
from scanning import run_cold
from warm import Warm

pytestmark = pytest.mark.torch

BY_NAME = {one.name: one for one in (*right.PATCHES, *wrong.PATCHES)}
MODEL = """
import torch


def _part(x):
    return x.sum(), x.mean()


def chosen(x):
    total, mean = _part(x)
    if total > 0:
        return x * 2
    return x - mean
"""
USES = """
from model import chosen

run = torch.compile(chosen)
for x in batches(3, 4):
    print(run(x).sum().item())
"""


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def two_files(change: dict[str, str], model: str = MODEL, script: str = USES) -> tuple[dict[str, str], str]:
    """A script with a module, and the diff of changes of the module."""
    new = model
    for before, after in change.items():
        assert new.count(before) == 1
        new = new.replace(before, after)
    return {"model.py": model, SCRIPT: PRELUDE + script}, diff(model, new, "model.py")


def test_git_diff_of_a_tree_that_has_the_change_comes_by_standard_input(tmp_path: Path) -> None:
    patched = BY_NAME["relu_by_where"]
    (tmp_path / SCRIPT).write_text(patched.patched)
    ran = run_cold(
        "prove", "-", "--no-inductor", "--budget", "20", "--", SCRIPT, folder=tmp_path, stdin=patched.diff
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    first, *lines = ran.stdout.splitlines()
    assert first.startswith("refused: the rewrite computes something else: on NaN in one element")
    assert "  counterexample: Net.forward, input: NaN in one element" in lines
    assert [line for line in lines if "old: result" in line] != [
        line for line in lines if "new: result" in line
    ]
    assert (tmp_path / SCRIPT).read_text() == patched.patched


def test_a_break_that_only_moves_to_another_line_is_left_and_not_new(tmp_path: Path, product: Warm) -> None:
    branch = "    if x.max() > 3:\n        x = x.clamp(-3, 3)\n"
    model = f'def chosen(x):\n    x = x + 1\n{branch}    print("told")\n    return x * 2\n'
    files, text = two_files(
        {branch: "    x = torch.where(x.max() > 3, x.clamp(-3, 3), x)\n"}, "import torch\n" + model
    )
    written(tmp_path, {**files, "my.patch": text})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert asked.status == "proved", asked.why
    breaks = asked.answer["breaks"]
    assert [found["code"] for found in breaks["gone"]] == ["BS101"]
    assert [(found["code"], found["line"]) for found in breaks["left"]] == [("BS104", 5)]
    assert breaks["new"] == []


def test_a_file_is_held_against_what_it_was(tmp_path: Path, product: Warm) -> None:
    patched = BY_NAME["roots_by_where"]
    written(tmp_path, {SCRIPT: patched.patched, "before.py": patched.script})
    asked = asking.ask(product, tmp_path, SCRIPT, "--against", "before.py")
    assert (asked.exit_code, asked.status) == (1, "refused")
    assert asked.answer["files"][0]["on_disk"] == "new"


@pytest.mark.nightly
def test_the_script_of_a_report_is_run_as_it_was_scanned(tmp_path: Path, product: Warm) -> None:
    patched = BY_NAME["branch_by_hand"]
    written(tmp_path, {SCRIPT: patched.script, "my.patch": patched.diff})
    product.commands([("scan", "-q", "--no-cost", SCRIPT)], tmp_path, tmp_path / "log")
    asked = asking.ask(product, tmp_path, "my.patch", script=())
    assert (asked.exit_code, asked.status) == (0, "proved"), asked.why
    assert asked.answer["breaks"]["gone"][0]["code"] == "BS101"


def test_functions_of_a_module_that_change_together_are_compared_together(
    tmp_path: Path, product: Warm
) -> None:
    files, patch = two_files(
        {
            "    return x.sum(), x.mean()\n": "    return x.sum() > 0, x.mean()\n",
            "    total, mean = _part(x)\n    if total > 0:\n        return x * 2\n    return x - mean\n": (
                "    positive, mean = _part(x)\n    return torch.where(positive, x * 2, x - mean)\n"
            ),
        }
    )
    written(tmp_path, {**files, "my.patch": patch})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert (asked.exit_code, asked.status) == (0, "proved"), asked.why
    assert asked.answer["evidence"]["through"] == ["_part: compared through the functions that call it"]
    assert f"within {len(asked.answer['evidence']['limits'])} limit" in asked.why


def test_a_helper_that_others_use_is_not_excused_by_one_caller(tmp_path: Path, product: Warm) -> None:
    """`_part` gives something else; `other`, which the script does not call, takes it for what it was."""
    model = MODEL + "\n\ndef other(x):\n    return _part(x)[0] * 2\n"
    files, patch = two_files(
        {
            "    return x.sum(), x.mean()\n": "    return x.sum() > 0, x.mean()\n",
            "    total, mean = _part(x)\n    if total > 0:\n        return x * 2\n    return x - mean\n": (
                "    positive, mean = _part(x)\n    return torch.where(positive, x * 2, x - mean)\n"
            ),
        },
        model,
    )
    written(tmp_path, {**files, "my.patch": patch})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert (asked.exit_code, asked.status) == (1, "unproved")
    assert "`_part` is not compared by itself, and model.py:15 uses it" in asked.why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            {"import torch\n": "import torch\nfrom torch import sum\n", "x.sum()": "sum(x)"}, "", id="unread"
        ),
        pytest.param(
            {"import torch\n": "import torch\n\ntorch.set_num_threads(1)\n"}, "adds code outside", id="code"
        ),
        pytest.param(
            {
                "    if total > 0:\n        return x * 2\n    return x - mean\n": (
                    "    if x.shape[0] * 3 == 1002:\n        return x\n"
                    "    return torch.where(total > 0, x * 2, x - mean)\n"
                )
            },
            "x.shape[0] * 3 == 1002 (in the new code)",
            id="a condition that no input drives",
        ),
        pytest.param(
            {
                "    return x - mean\n": "    for _ in range(x.shape[0] * 2 - 90000):\n        mean = mean + 1\n    return x - mean\n"
            },
            "for _ in range(x.shape[0] * 2 - 90000): runs",
            id="a loop that never runs",
        ),
        pytest.param(
            {"    return x - mean\n": "    torch.backends.cudnn.benchmark = False\n    return x - mean\n"},
            "`torch.backends.cudnn.benchmark` is set in one of the forms only",
            id="a setting of torch",
        ),
        pytest.param(
            {"def chosen(x):\n": "class Part:\n    torch.set_num_threads(2)\n\n\ndef chosen(x):\n"},
            "adds code outside of functions",
            id="code in a class",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            {
                "    return x - mean\n": (
                    "    try:\n        return x - mean\n    except RuntimeError:\n        return x\n"
                )
            },
            "except RuntimeError: is reached",
            id="a handler that is never reached",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_nobody_compared_is_not_called_proved(
    change: dict[str, str], why: str, tmp_path: Path, product: Warm
) -> None:
    files, patch = two_files(change)
    written(tmp_path, {**files, "my.patch": patch})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert asked.status == ("unproved" if why else "proved"), asked.why
    assert why in asked.why


def test_a_builtin_that_is_bound_anew_for_code_that_did_not_change(tmp_path: Path, product: Warm) -> None:
    """The forms of the changed function agree; `low`, in which nothing changes, calls another `min` now."""
    model = MODEL + "\n\ndef low(x):\n    return min(x.tolist()[0])\n"
    files, patch = two_files(
        {"import torch\n\n": "import torch\nfrom torch import min\n\n", "x - mean": "(x - mean) * 1"}, model
    )
    written(tmp_path, {**files, "my.patch": patch})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert (asked.exit_code, asked.answer["level"]) == (1, "whole script")
    assert "it binds `min`" in asked.why


@pytest.mark.nightly
def test_a_method_that_a_base_class_has_as_well(tmp_path: Path, product: Warm) -> None:
    script = right.BRANCH
    patched = Patched(
        "overriding",
        "state",
        script,
        script.replace(
            "        return x.relu()\n",
            "        return x.relu() * 1\n\n    def extra_repr(self):\n        return 'mine'\n",
        ),
    )
    asked = asking.prove(product, patched, tmp_path)
    assert (asked.exit_code, asked.answer["level"]) == (1, "whole script")
    assert "which a base class has as well" in asked.why


def test_a_library_is_loaded_with_the_patch_and_not_written(tmp_path: Path, product: Warm) -> None:
    files, patch = two_files(
        {
            "    if total > 0:\n        return x * 2\n    return x - mean\n": "    return torch.where(total > 0, x * 2, x - mean)\n"
        },
        script="import sys\n\nsys.path.insert(0, 'site-packages')\n" + USES,
    )
    library = tmp_path / "site-packages"
    library.mkdir()
    written(
        tmp_path, {SCRIPT: files[SCRIPT], "my.patch": patch.replace("model.py", "site-packages/model.py")}
    )
    written(library, {"model.py": MODEL})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert (asked.exit_code, asked.status) == (0, "proved"), asked.why
    assert (library / "model.py").read_text() == MODEL


@pytest.mark.nightly
def test_a_patch_with_which_the_script_fails_is_refused(tmp_path: Path, product: Warm) -> None:
    files, patch = two_files({"import torch\n": "import torch\nimport no_such_module\n"})
    written(tmp_path, {**files, "my.patch": patch})
    asked = asking.ask(product, tmp_path, "my.patch")
    assert (asked.exit_code, asked.status) == (1, "refused")
    assert "No module named 'no_such_module'" in asked.why


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing.patch", "--", SCRIPT), "cannot read the patch nothing.patch"),
        (("my.patch", "--", "nothing.py"), "there is no file nothing.py"),
        (("my.patch",), "name the script to prove it on"),
        (("my.patch", "--report", "a.json", "--", SCRIPT), "not both"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence_and_exit_code_2(
    words: tuple[str, ...], sentence: str, tmp_path: Path, product: Warm
) -> None:
    patched = BY_NAME["branch_by_hand"]
    written(tmp_path, {SCRIPT: patched.script, "my.patch": patched.diff})
    code = product.commands([("prove", *words)], tmp_path, tmp_path / "log")
    assert code == 2
    assert sentence in (tmp_path / "log.err").read_text()
