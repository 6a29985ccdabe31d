"""The environment stays out of reports, also where Dynamo guards on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned

from breakscope.inside.capture.secrets import HIDDEN, Redactor

pytestmark = pytest.mark.torch

READS_THE_ENVIRONMENT = """
    import os
    import torch

    @torch.compile
    def scaled(x):
        return x * len(os.environ["SECRET_TOKEN"])

    @torch.compile
    def shifted(x):
        return x + len(os.environ["COLOUR"])

    for token, colour in (("hunter2", "bluish"), ("hunter33", "reddish")):
        os.environ["SECRET_TOKEN"], os.environ["COLOUR"] = token + "x", colour + "y"
        scaled(torch.ones(3))
        shifted(torch.ones(3))
"""


def test_guards_on_the_environment_do_not_tell_its_values(scan: Callable[..., Scanned]) -> None:
    scanned = scan(READS_THE_ENVIRONMENT, SECRET_TOKEN="hunter2", COLOUR="bluish", BYSTANDER="someone")
    assert scanned.exit_code == 0, scanned.stderr
    assert scanned.report.totals.recompiles == 2
    text = (scanned.folder / ".breakscope" / "latest.json").read_text()
    for secret in ("hunter2x", "hunter33x", "bluishy", "reddishy", "BYSTANDER", "someone"):
        assert secret not in text
    assert HIDDEN in text


def test_what_is_no_secret_is_left_alone() -> None:
    fields = {
        "payload": "0/0: L['mode'] == 'fast'  # if mode == 'fast':",
        "values": {"L['mode']": "'slow'"},
        "position": (1, 2, 1, 9),
        "frame": None,
        "depth": 0,
    }
    assert Redactor().clean(fields) == {**fields, "position": [1, 2, 1, 9]}


def test_every_side_of_a_comparison_with_the_environment_is_hidden() -> None:
    text = "G['os'].environ._data[b'A'] == b'it\\'s' and \"x\" != G['os'].environ._data[b'B']"
    cleaned = Redactor().clean({"payload": text})["payload"]
    assert "it" not in cleaned
    assert '"x"' not in cleaned
    assert "b'A'" in cleaned
