"""What the texts that compiles produce are called, in the order of most use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `breakscope show --help` needs no report
    from breakscope.report.model import ArtifactKind

TITLES: dict[ArtifactKind, str] = {
    "code": "Inductor's code",
    "graph": "Dynamo's graph",
    "aot_joint": "AOT graph, forward and backward together",
    "aot_forward": "AOT graph, forward",
    "aot_backward": "AOT graph, backward",
    "aot_inference": "AOT graph, inference",
    "guards": "guards",
    "bytecode_before": "bytecode, as Python compiled it",
    "bytecode_after": "bytecode, as Dynamo rewrote it",
}
