"""A compiled ``generate()``: one finding says to compile the model instead, and the others go with it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from warm_scanning import WarmScans

from breakscope.report.model import Report

pytestmark = pytest.mark.torch

GENERATION = """
    import copy

    import torch


    class Config:
        pass


    class GenerationMixin:
        @torch.no_grad()
        def generate(self, ids, config, **options):
            config = copy.deepcopy(config)
            ids = ids * 1
            while int(ids[0, -1]) < 3:
                ids = self._next(ids, self(ids))
            return ids

        def _next(self, ids, scores):
            print(end="")
            return torch.cat((ids, scores[:, -1:] + 1), 1)
"""
MODEL = """
    import sys

    sys.path.insert(0, "site-packages")
    import torch
    from transformers.generation.utils import Config, GenerationMixin


    class Model(torch.nn.Module, GenerationMixin):
        def forward(self, ids):
            ids = ids * 1
            print(end="")
            return ids + 0


    model = Model()
    ids, config = torch.zeros(2, 1, dtype=torch.long), Config()
"""


def scanned(warm: WarmScans, folder: Path, calls: str) -> Report:
    package = folder / "site-packages" / "transformers" / "generation"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "utils.py").write_text(textwrap.dedent(GENERATION))
    return warm.scan(folder, textwrap.dedent(MODEL) + textwrap.dedent(calls))


def test_what_breaks_in_generate_leads_back_to_one_finding(warm: WarmScans, tmp_path: Path) -> None:
    report = scanned(warm, tmp_path, "generate = torch.compile(model.generate)\ngenerate(ids, config)\n")
    inside = [one for one in report.findings if one.location.file.endswith("utils.py")]
    (lead,) = (one for one in inside if one.caused_by is None)
    assert len(inside) > 2
    assert {one.caused_by for one in inside if one is not lead} == {lead.fingerprint}
    assert "model.forward = torch.compile(model.forward), and call generate() as it is" in str(lead.advice)
    assert f"; {len(inside) - 1} more findings go with this one" in str(lead.advice)
    (own,) = (one for one in report.findings if one.code == "BS104" and one is not lead)
    assert own.location.function == "Model.forward"
    assert own.caused_by is None
    assert "generate" not in str(own.advice)


def test_what_wraps_a_compiled_generate_goes_with_it(warm: WarmScans, tmp_path: Path) -> None:
    calls = """
        generate = torch.compile(model.generate)
        for size in (1, 2, 3):
            generate(ids[:, :1].expand(2, size).clone(), config=config, **dict.fromkeys("ab"[: size - 1]))
    """
    report = scanned(warm, tmp_path, calls)
    again = [one for one in report.findings if one.kind == "recompile"]
    wrapped = [one for one in again if (one.location.function or "").endswith("generate")]
    assert wrapped
    assert all(one.caused_by is not None for one in wrapped)


def test_a_compiled_function_that_calls_generate_is_told_where(warm: WarmScans, tmp_path: Path) -> None:
    calls = """
        @torch.compile
        def answer(ids):
            return model.generate(ids * 1, config)

        answer(ids)
    """
    report = scanned(warm, tmp_path, calls)
    (lead,) = (one for one in report.findings if "in place of generate()" in str(one.advice))
    assert "call generate() outside of what is compiled (at script.py:21)" in str(lead.advice)


def test_what_is_done_as_advised_has_no_finding_in_generate(warm: WarmScans, tmp_path: Path) -> None:
    calls = "model.forward = torch.compile(model.forward)\nmodel.generate(ids, config)\n"
    report = scanned(warm, tmp_path, calls)
    assert [one.location.function for one in report.findings if one.kind != "recompile"] == ["Model.forward"]
