"""`breakscope.prove` and the fixture's `assert_same`: a rewritten function is held to the proof in a user's test."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import run_python

pytestmark = pytest.mark.torch

MODULE = """
import torch


def old(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def right(x):
    return torch.where(x.sum() > 0, x * 2, x - 1)


def wrong(x):
    return torch.where(x.mean() >= 0, x * 2, x - 1)


def at_one_size(x):
    if x.shape[0] * 3 == 1002:
        return x
    return torch.where(x.sum() > 0, x * 2, x - 1)


SEEN = torch.zeros(())


def counted(x):
    SEEN.add_(1)
    return x * 2


def counted_anew(x):
    global SEEN
    SEEN = SEEN + 1
    return x * 2


def scaled(limit):
    def inner(x):
        return x if x.max() < limit else x / limit

    return inner
"""
TESTS = """
import breakscope as product
import pytest
import torch
from functions import at_one_size, counted, counted_anew, old, right, scaled, wrong

X = torch.randn(3, 4)


def test_right(breakscope):
    assert breakscope.assert_same(old, right, X).status == "proved"


def test_wrong(breakscope):
    with pytest.raises(AssertionError, match="wrong is refused: the rewrite computes something else: on zeros"):
        breakscope.assert_same(old, wrong, [(X,), {"x": X + 1}])


def test_a_condition_of_the_new_code_that_no_input_drives(breakscope):
    with pytest.raises(AssertionError, match="at_one_size is unproved: .*x.shape.0. . 3 == 1002"):
        breakscope.assert_same(old, at_one_size, X)


def test_who_holds_a_tensor_that_is_replaced_is_a_limit():
    found = product.prove(counted, counted_anew, X)
    assert found.status == "proved", found.why
    assert any("where somebody else holds `.SEEN` itself" in one for one in found.evidence.limits)


def test_a_closure_is_shared():
    assert product.prove(scaled(2.0), scaled(2.0), X).status == "proved"
    assert product.prove(scaled(2.0), scaled(3.0), X * 9).status == "refused"


def test_what_has_no_source_is_said():
    with pytest.raises(product.api.UsageError, match="no plain Python function"):
        product.prove(torch.sin, torch.sin, X)
"""


def test_a_rewrite_is_proved_in_a_test_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(MODULE)
    (tmp_path / "test_functions.py").write_text(TESTS)
    ran = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_functions.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
