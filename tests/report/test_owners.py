"""Whose code a file is, where packages lie in folders of their own: ``pip install --target``, PYTHONPATH."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path

import pytest

from breakscope.inside.loaded import own_files
from breakscope.report.owners import is_packaged, owner_of, stable_path

LIBRARY = """\
import logging

class Logger(logging.Logger):
    pass
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A folder of the project into which pip has installed the package ``listed``; ``own`` lies beside it."""
    folder = tmp_path / "vendor"
    for name in ("listed", "own"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(LIBRARY)
    (folder / "listed-1.0.dist-info").mkdir()
    (folder / "listed-1.0.dist-info" / "RECORD").write_text(
        "listed/__init__.py,sha256=0,0\n../../bin/run,,\n"
    )
    return folder


def test_what_an_installer_has_recorded_is_a_library_wherever_it_lies(target: Path) -> None:
    roots = (str(target.parent),)
    assert owner_of(str(target / "listed" / "deep" / "model.py"), roots) == "library"
    assert owner_of(str(target / "own" / "__init__.py"), roots) == "project"
    assert owner_of(str(target / "listed.py"), roots) == "project"
    assert not is_packaged("listed/__init__.py")  # where that is, nobody has said


def test_the_proof_asks_only_the_users_own_modules_who_could_tell(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(target))
    try:
        importlib.import_module("listed")
        importlib.import_module("own")
        files = own_files()
    finally:
        sys.modules.pop("listed", None)
        sys.modules.pop("own", None)
    assert str(target / "own" / "__init__.py") in files
    assert str(target / "listed" / "__init__.py") not in files


def test_a_project_installed_to_be_edited_stays_the_project(tmp_path: Path) -> None:
    (tmp_path / "mine-1.0.dist-info").mkdir()
    (tmp_path / "mine-1.0.dist-info" / "RECORD").write_text("__editable__.mine-1.0.pth,,\n")
    assert owner_of(str(tmp_path / "mine" / "model.py"), (str(tmp_path),)) == "project"


@pytest.mark.torch
@pytest.mark.parametrize(("package", "whose"), [("listed", "library"), ("own", "project")])
def test_a_librarys_class_of_loggers_is_no_listener_of_the_scripts(
    target: Path, monkeypatch: pytest.MonkeyPatch, package: str, whose: str
) -> None:
    from breakscope.inside.prove.surroundings import Surroundings

    monkeypatch.syspath_prepend(str(target))
    known = dict(logging.root.manager.loggerDict)
    try:
        logging.root.manager.loggerDict["net"] = importlib.import_module(package).Logger("net")
        around = Surroundings()
        around.note(sys._getframe())
        heard = [one for one in around.listeners if "loggers of its own class (Logger)" in one]
        assert bool(heard) == (whose == "project")
    finally:
        logging.root.manager.loggerDict.clear()
        logging.root.manager.loggerDict.update(known)
        sys.modules.pop(package, None)


def test_generated_code_has_one_name_in_all_runs() -> None:
    one, other = (f"<@beartype(layers.forward) at 0x{at}>" for at in ("7f21c0d3a4e0", "7fe402b1c9d0"))
    assert stable_path(one, ()) == stable_path(other, ()) == "<@beartype(layers.forward) at 0x>"
