"""Rules of other packages: found by the entry point `breakscope.rules`, listed, and proved like ours."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from patches import PRELUDE, SCRIPT
from scanning import run_cold

from breakscope.fix.installed_rules import answer_of
from breakscope.fix.patch import Refusal
from breakscope.fix.rule import Rule, Site, locate
from breakscope.inside.record.evidence import Evidence

RULE = """
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Rule


class {name}(Rule):
    name, codes, title = "print-dropped", ("BS104",), "a marked print goes"
    needs, hazards = (), ()
    before = ("quiet-messages",)

    def propose(self, site):
        {body}
"""
DROPS = """start, end = site.offsets(site.node)
        return Rewrite((Edit(start, end, "None"),), "no print")"""
SOURCE = (
    PRELUDE
    + """\
@torch.compile
def doubled(x):
    print("doubled")
    return x * 2


for x in batches(3, 4):
    print(doubled(x).sum().item())
"""
)


def installed(folder: Path, module: str, target: str = "my_rules:Mine") -> dict[str, str]:
    """A package with rules, on the path. Returns the environment."""
    (folder / "packages").mkdir()
    (folder / "packages" / "my_rules.py").write_text(module)
    info = folder / "packages" / "my_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[breakscope.rules]\nmine = {target}\n")
    root = Path(__file__).parent.parent.parent
    return {"PYTHONPATH": os.pathsep.join([str(folder / "packages"), str(root)])}


def ran(folder: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return run_cold(*words, folder=folder, **environment)


def test_a_rule_of_another_package_is_listed(tmp_path: Path) -> None:
    environment = installed(tmp_path, RULE.format(name="Mine", body="return None"))
    assert "print-dropped  (BS104)" in ran(tmp_path, environment, "fix", "--rules").stdout


@pytest.mark.parametrize(
    ("module", "target", "sentence"),
    [
        ("raise OSError('no disk')", "my_rules:Mine", "cannot be loaded: OSError: no disk"),
        ("Mine = 3", "my_rules:Mine", "is no class of breakscope.fix.rule.Rule"),
    ],
)
def test_rules_that_cannot_be_loaded_are_one_sentence(
    module: str, target: str, sentence: str, tmp_path: Path
) -> None:
    done = ran(tmp_path, installed(tmp_path, module, target), "fix", "--rules")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.torch
@pytest.mark.nightly
def test_what_a_rule_of_another_package_writes_is_not_believed(tmp_path: Path) -> None:
    environment = installed(tmp_path, RULE.format(name="Mine", body=DROPS))
    (tmp_path / SCRIPT).write_text(SOURCE)
    ran(tmp_path, environment, "scan", "-q", "--no-cost", SCRIPT)
    words = ("fix", "--no-inductor", "--budget", "10", "--format", "json")
    (finding,) = json.loads(ran(tmp_path, environment, *words).stdout)["findings"]
    assert finding["code"] == "BS104"
    assert not (finding["accepted"] and finding["rule"] == "print-dropped")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (KeyError("x"), "the rule print-dropped failed: KeyError: 'x'"),
        (3, "the rule print-dropped answered with a int"),
    ],
)
def test_a_rule_of_another_package_that_fails_refuses(answer: object, why: str) -> None:
    class Theirs(Rule):
        name, codes, title = "print-dropped", ("BS104",), "a print goes"
        needs, hazards = (), ()

        def propose(self, site: Site) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    source = "def f(x):\n    print(x)\n"
    site = locate(source, 2, 5, 2, 13, "BS104", "print", Evidence())
    assert site is not None
    assert answer_of(Theirs(), site) == Refusal(why)
