"""Asking a driver's library, here a small one that answers as it is told, what it knows."""

from __future__ import annotations

import shutil
import subprocess
import types
from pathlib import Path

import pytest
import torch

from breakscope.inside import card as driver

pytestmark = pytest.mark.torch

LIBRARY = """
#include <string.h>
unsigned long long held = %d;
int nvmlInit_v2(void) { return %d; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **card) { *card = &held; return strcmp(uuid, "GPU-1-2"); }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *said) {
    *said = *(unsigned long long *)card;
    return %d;
}
int nvmlDeviceGetComputeMode(void *card, unsigned *mode) { *mode = %d; return %d; }
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Makes a library with what holds the clock down, and what its calls return."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    assert compiler is not None
    card = types.SimpleNamespace(uuid="1-2")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)

    def make(held: int = 0, begins: int = 0, answers: int = 0, mode: int = 0) -> types.SimpleNamespace:
        source, made = tmp_path / "nvml.c", tmp_path / f"nvml{len(list(tmp_path.iterdir()))}.so"
        source.write_text(LIBRARY % (held, begins, answers, mode, answers))
        language = ["-x", "c"]
        subprocess.run([compiler, *language, "-shared", "-fPIC", "-o", made, source], check=True)
        monkeypatch.setattr(driver, "_LIBRARY", str(made))
        return card

    return make


# 0x1: nothing to do; 0x4: the power limit; 0x20: heat; 0x80: the power supply.
@pytest.mark.parametrize(
    ("held", "limited"), [(0, False), (0x1, False), (0x4, True), (0x20, False), (0x85, True)]
)
def test_only_power_counts(library, held: int, limited: bool) -> None:  # type: ignore[no-untyped-def]
    library(held)
    assert driver.Card().at_power_limit() is limited


def test_a_card_that_does_not_tell_is_not_known(library) -> None:  # type: ignore[no-untyped-def]
    library(0x4, answers=3)
    assert driver.Card().at_power_limit() is None


@pytest.mark.parametrize("name", ["absent.so", None])
def test_without_the_library_or_the_card_there_is_nothing_to_ask(  # type: ignore[no-untyped-def]
    library, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    card = library(0x4)
    if name is None:
        card.uuid = "another"
    else:
        monkeypatch.setattr(driver, "_LIBRARY", name)
    with pytest.raises(OSError, match=r"absent|does not know the card"):
        driver.Card()


def test_a_library_that_does_not_begin_is_none(library) -> None:  # type: ignore[no-untyped-def]
    library(begins=9)
    with pytest.raises(OSError, match="does not know the card"):
        driver.Card()


def test_a_card_that_one_process_has_to_itself_has_room_for_one(  # type: ignore[no-untyped-def]
    library, monkeypatch: pytest.MonkeyPatch
) -> None:
    gib = 2**30
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (62 * gib, 80 * gib))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 2 * gib)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: 5 * gib)
    library()
    assert driver.room() == 4  # of 64 GiB, 16 for each
    library(mode=3)
    assert driver.room() == 1
    library(answers=3)
    assert driver.room() == 1  # nobody tells
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert driver.room() is None
