"""Settings of the process that a call may leave changed: grad mode, autocast, levels of loggers."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from breakscope.inside.prove.compat import modes_entered, print_options

_AUTOCAST = ("cpu", "cuda")
# Changed by what is imported at a first call as well, such as torch's compiler; Inductor raises the last.
_ONCE = frozenset(
    {"the filters of warnings", "the levels of loggers", "the recursion limit", "the environment"}
)


class _Environment(dict[str, str]):
    """Variables of the environment, which may hold secrets: nothing of them is said."""

    def __repr__(self) -> str:
        return f"with {len(self)} variables of such values"


# The environment as it was read last: its raw variables, and what was made of them.
_last_read: tuple[Mapping[Any, Any], _Environment] = ({}, _Environment())


def _environment() -> _Environment:
    """Each variable is decoded when it is read, which takes long, and few test calls change one."""
    global _last_read  # noqa: PLW0603
    raw = getattr(os.environ, "_data", None)
    if raw is None:  # the script has put something else there
        return _Environment(os.environ)
    if raw != _last_read[0]:
        _last_read = dict(raw), _Environment(os.environ)
    return _last_read[1]


def now() -> Mapping[str, Any]:
    """Every mode as it is, by the name that a reader knows it by."""
    found: dict[str, Any] = {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "the default dtype": torch.get_default_dtype(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the number of function modes": modes_entered(),
        "anomaly detection": torch.is_anomaly_enabled(),
        "the precision of float32 matmul": torch.get_float32_matmul_precision(),
        "the number of threads": torch.get_num_threads(),
        "the filters of warnings": tuple(warnings.filters),
        "the level that logging disables": logging.root.manager.disable,
        "the levels of loggers": _levels(),
        "numpy's handling of errors": _numpy_errors(),
        "the garbage collector": gc.isenabled(),
        "the recursion limit": sys.getrecursionlimit(),
        "how tensors are printed": print_options(),
        "the environment": _environment(),
    }
    for device in _AUTOCAST:
        found[f"autocast on {device}"] = torch.is_autocast_enabled(device)
        found[f"the dtype of autocast on {device}"] = torch.get_autocast_dtype(device)
    return found


def lasting(modes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those that a second call leaves as the first did."""
    return {name: mode for name, mode in modes.items() if name not in _ONCE}


def _levels() -> Mapping[str, tuple[int, bool, bool]]:
    """Level, whether it is disabled and whether it propagates, of each logger that somebody has set up."""
    # Of the hundreds that there are, in a few words: this is asked three times for each test call.
    return {
        one.name: (one.level, one.disabled, one.propagate)
        for one in (logging.root, *logging.root.manager.loggerDict.values())
        if isinstance(one, logging.Logger) and (one.level or one.disabled or not one.propagate)
    }


def _numpy_errors() -> Mapping[str, str]:
    numpy = sys.modules.get("numpy")
    return numpy.geterr() if numpy is not None else {}


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Put back what a call leaves otherwise: a test must not change the script."""
    before = now()
    try:
        yield
    finally:
        after = now()
        if after["grad mode"] != before["grad mode"]:
            torch.set_grad_enabled(before["grad mode"])
        if after["the default dtype"] is not before["the default dtype"]:
            torch.set_default_dtype(before["the default dtype"])
        if after["deterministic algorithms"] != before["deterministic algorithms"]:
            torch.use_deterministic_algorithms(before["deterministic algorithms"])
        _put_back(before, after)
        for device in _AUTOCAST:
            torch.set_autocast_enabled(device, before[f"autocast on {device}"])
            torch.set_autocast_dtype(device, before[f"the dtype of autocast on {device}"])


def _put_back(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Put settings back that were changed. Who calls this does it for filters of warnings."""

    def changed(name: str) -> bool:
        return bool(before[name] != after[name])

    if changed("anomaly detection"):
        torch.autograd.set_detect_anomaly(before["anomaly detection"])
    if changed("the precision of float32 matmul"):
        torch.set_float32_matmul_precision(before["the precision of float32 matmul"])
    if changed("the number of threads"):
        torch.set_num_threads(before["the number of threads"])
    if changed("the level that logging disables"):
        logging.disable(before["the level that logging disables"])
    if changed("the levels of loggers"):
        was, now = before["the levels of loggers"], after["the levels of loggers"]
        for name in was.keys() | now.keys():
            logger = logging.getLogger(name) if name != "root" else logging.root
            level, logger.disabled, logger.propagate = was.get(name, (logging.NOTSET, False, True))
            logger.setLevel(level)
    if changed("how tensors are printed"):
        torch.set_printoptions(**before["how tensors are printed"])
    if changed("numpy's handling of errors") and before["numpy's handling of errors"]:
        sys.modules["numpy"].seterr(**before["numpy's handling of errors"])
    _put_back_pythons_own(before, after)


def _put_back_pythons_own(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    known, found = before["the environment"], after["the environment"]
    if known != found:
        os.environ.update(known)
        for name in found.keys() - known.keys():
            del os.environ[name]
    if before["the garbage collector"] != after["the garbage collector"]:
        (gc.enable if before["the garbage collector"] else gc.disable)()
    if before["the recursion limit"] != after["the recursion limit"]:
        sys.setrecursionlimit(before["the recursion limit"])
