"""What the scoreboard holds breakscope's answers against; nothing of breakscope is used here.

python benchmarks/scoreboard_check.py plain.pt patched.pt     # how many runs gave the same tensors, as JSON
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

CLOSE = 1e-4  # of the largest value of a tensor: what a proof may allow where sums are taken in another order


def recorded_sites(folder: Path) -> set[tuple[str, int]]:
    """File and line of every graph break in what torch itself wrote to TORCH_TRACE."""
    places = set()
    for path in folder.glob("dedicated_log_torch_trace_*.log"):
        taken: list[str] | None = None
        for line in [*path.read_text(encoding="utf-8", errors="replace").split("\n"), "] {}"]:
            if line.startswith("\t"):
                if taken is not None:
                    taken.append(line[1:])
            elif "] {" in line:
                if taken is not None:
                    places.add(break_place("\n".join(taken)))
                envelope = json.loads(line[line.index("] {") + 2 :])
                artifact = envelope.get("artifact") or {}
                taken = [] if artifact.get("name") == "dynamo_graph_break_reason" else None
    return places


def break_place(payload: str) -> tuple[str, int]:
    """The innermost user frame of a record of a graph break."""
    head = re.match(r"Graph break in user code at (.+):(\d+)\n", payload)
    if head is not None:
        return head[1], int(head[2])
    # A frame that was skipped as a whole: the user's frames come last, or before Dynamo's own traceback.
    frames = re.findall(r'^  File "(.+)", line (\d+), in ', payload, re.MULTILINE)
    return next(
        ((file, int(line)) for file, line in reversed(frames) if "/torch/_dynamo/" not in file), ("?", 0)
    )


def compare(plain: list, patched: list) -> dict[str, object]:
    """How the runs of two forms of a script agree: each is a list of tensors, or words of an exception."""
    counted = {"bitwise": 0, "close": 0, "raised": 0, "different": 0}
    first = ""
    for number, (one, other) in enumerate(zip(plain, patched, strict=True)):
        verdict, words = _same_run(one, other)
        counted[verdict] += 1
        if verdict == "different" and not first:
            first = f"run {number}: {words}"
    return {**counted, "first": first}


def _same_run(one: object, other: object) -> tuple[str, str]:
    if isinstance(one, str) or isinstance(other, str):
        # torch's words about a shape may name other dimensions in a graph: the type must agree.
        alike = (
            str(one).split(":")[0] == str(other).split(":")[0]
            and isinstance(one, str)
            and isinstance(other, str)
        )
        return ("raised", "") if alike else ("different", f"{_brief(one)} | {_brief(other)}")
    if len(one) != len(other):
        return "different", f"{len(one)} tensors | {len(other)}"
    verdict = "bitwise"
    for number, (a, b) in enumerate(zip(one, other, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return "different", f"tensor {number}: {a.dtype} {tuple(a.shape)} | {b.dtype} {tuple(b.shape)}"
        if not _bitwise(a, b):
            verdict = "close"
            far = _distance(a, b)
            if not far <= CLOSE:
                return "different", f"tensor {number}: {far:.3g} of its largest value apart"
    return verdict, ""


def _brief(run: object) -> str:
    return run[:160] if isinstance(run, str) else "tensors"


def _bitwise(a, b) -> bool:
    import torch

    return bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) and torch.equal(a.isnan(), b.isnan()))


def _distance(a, b) -> float:
    import torch

    if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
        return float("inf")
    a, b = torch.nan_to_num(a).to(torch.complex128), torch.nan_to_num(b).to(torch.complex128)
    return float((a - b).abs().max() / a.abs().max().clamp(min=1e-6))


def run_script(script: str, kept: str) -> None:
    """Run a row's script in this process and keep what comes out."""
    words, sys.argv = sys.argv, [script, "--save", kept]
    runpy.run_path(script, run_name="__main__")
    sys.argv = words


def main() -> None:
    """Compare two forms of a script."""
    script, plain, patched = sys.argv[1:4]
    import torch

    if not Path(plain).exists():
        run_script(script, plain)
    both = [torch.load(path, weights_only=True) for path in (plain, patched)]
    print(json.dumps(compare(*both)))


if __name__ == "__main__":
    main()
