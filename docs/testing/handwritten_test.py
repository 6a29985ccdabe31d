"""What a project writes by hand to notice that its model breaks under torch.compile again."""

import logging
import re
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

from model import Model, example_inputs

PROJECT = Path(__file__).resolve().parent

# Breaks that we live with: (file, function, part of the reason). Line numbers drift, so they are left out,
# and then two breaks in one function look alike.
ALLOWED = {
    ("model.py", "forward", "logging"),
}

# The text changes from release to release; this one fits 2.13.
RECORD = re.compile(r"Graph Break Reason: (?:Encountered graph break[^\n]*\s+)?(?P<reason>[^\n]+)")
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


class Capture(logging.Handler):
    """Keeps what Dynamo logs about graph breaks and recompiles."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.breaks = []
        self.recompiles = []

    def emit(self, record):
        message = record.getMessage()
        if "Graph break" in message or "graph break" in message:
            self.breaks.append(message)
        elif "Recompiling function" in message:
            self.recompiles.append(message)


@pytest.fixture
def dynamo_logs():
    """Dynamo from scratch, with the two logs open and read by us."""
    torch._dynamo.reset()
    counters.clear()
    capture = Capture()
    loggers = [
        logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks"),
        logging.getLogger("torch._dynamo.guards.__recompiles"),
    ]
    torch._logging.set_logs(graph_breaks=True, recompiles=True)
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(capture)
        logger.setLevel(logging.DEBUG)
    try:
        yield capture
    finally:
        for logger, level, propagate in before:
            logger.removeHandler(capture)
            logger.setLevel(level)
            logger.propagate = propagate
        torch._logging.set_logs()
        torch._dynamo.reset()


def attribute(message):
    """(file, function, reason) of a record, by the innermost frame of our own code; None for torch's own."""
    frames = list(FRAME.finditer(message))
    ours = [frame for frame in frames if PROJECT in Path(frame["file"]).resolve().parents]
    if not ours:
        return None
    reason = RECORD.search(message)
    frame = ours[-1]
    return (
        Path(frame["file"]).name,
        frame["function"].rpartition(".")[2],
        reason["reason"] if reason else message.splitlines()[0],
    )


def is_allowed(found):
    file, function, reason = found
    return any(
        file == allowed_file and function == allowed_function and part.lower() in reason.lower()
        for allowed_file, allowed_function, part in ALLOWED
    )


def test_model_compiles_without_breaks(dynamo_logs):
    torch.manual_seed(0)
    model = Model().eval()
    inputs = example_inputs()
    with torch.no_grad():
        expected = model(*inputs)

    # Eager, so that the test neither needs a C++ compiler nor takes a minute.
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        actual = compiled(*inputs)
        compiled(*inputs)
        recompiles_of_warm_up = len(dynamo_logs.recompiles)
        compiled(*inputs)

    # Without this, a model that Dynamo gives up on as a whole passes.
    assert counters["stats"]["unique_graphs"] > 0, "nothing was compiled"

    found = [attribute(message) for message in dynamo_logs.breaks]
    unexpected = Counter(one for one in found if one is not None and not is_allowed(one))
    lines = [f"  {' '.join(where)} ({count}x)" for where, count in unexpected.items()]
    assert not unexpected, "graph breaks:\n" + "\n".join(lines)

    late = dynamo_logs.recompiles[recompiles_of_warm_up:]
    assert not late, "recompiles after the warm-up:\n" + "\n".join(late)

    torch.testing.assert_close(actual, expected)
