"""bart-base in fp16: what a scan says its breaks cost, and what removing all of them by hand gains.

    python benchmarks/cost_bart.py [--mode default|reduce-overhead] [--rounds N] [--json FILE.gz]

It needs a GPU and transformers 4.52.4. Scan and measurement take turns (``turns.py``); ``--turns`` makes it
the script that is scanned. By hand means: ``torch.where`` chooses what the branch on the fp16 overflow check
chose, and ``logger.warning_once`` does nothing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from turns import Scan, blocks, keep, scanned

MODULE = "transformers.models.bart.modeling_bart"
STEPS, WARM, PER_TURN = 8, 6, 4


def repaired() -> Any:
    """The model's module without its breaks, beside the real one."""
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text()
    text, checks = re.subn(
        r"if hidden_states\.dtype == torch\.float16 and \(\s*(torch\.isinf\(hidden_states\)\.any\(\)) or "
        r"(torch\.isnan\(hidden_states\)\.any\(\))\s*\):",
        r"if hidden_states.dtype == torch.float16:\n            overflow = \1 | \2",
        text,
    )
    clamp = "torch.clamp(hidden_states, min=-clamp_value, max=clamp_value)"
    assert checks == text.count(f"hidden_states = {clamp}") > 0, "the overflow check is not where it was"
    text = text.replace(
        f"hidden_states = {clamp}", f"hidden_states = torch.where(overflow, {clamp}, hidden_states)"
    )
    text = text.replace("logger.warning_once(", "(lambda *words: None)(")
    made = importlib.util.module_from_spec(spec)
    made.__name__ = MODULE + "_repaired"
    sys.modules[made.__name__] = made
    exec(compile(text, spec.origin + ".repaired", "exec"), made.__dict__)
    return made


def make(module: Any, device: str) -> tuple[Any, torch.Tensor]:
    """bart-base by its own configuration, random weights; batch 8, sequence 128."""
    from transformers import BartConfig

    torch.manual_seed(0)
    width, heads = (768, 12) if device == "cuda" else (96, 12)
    config = BartConfig(
        d_model=width,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_layers=6,
        decoder_layers=6,
    )
    model = module.BartModel(config).to(device, torch.float16).eval()
    return model, torch.randint(3, 50000, (8, 128), device=device)


def step(model: Any, ids: torch.Tensor, mode: str) -> Any:
    """One forward."""
    if mode == "reduce-overhead":
        torch.compiler.cudagraph_mark_step_begin()
    return model(input_ids=ids)


def compiled(model: Any, mode: str) -> Any:
    """The model compiled."""
    return torch.compile(model, mode=None if mode == "default" else mode)


def window(model: Any, ids: torch.Tensor, mode: str) -> float:
    """Milliseconds a step of some steps in a row."""
    wait = torch.cuda.synchronize if ids.is_cuda else int
    wait()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step(model, ids, mode)
    wait()
    return (time.perf_counter() - begin) / STEPS * 1e3


def measured(mode: str, device: str, rounds: int, scan: Scan) -> dict[str, list[float]]:
    """Steps in milliseconds as it is and repaired, taking turns with each other and with the scan."""
    arms = {}
    for name, module in (("as it is", importlib.import_module(MODULE)), ("repaired", repaired())):
        model, ids = make(module, device)
        arms[name] = (compiled(model, mode), ids)
    times: dict[str, list[float]] = {name: [] for name in arms}
    with torch.no_grad():
        for model, ids in arms.values():
            for _ in range(WARM):
                step(model, ids, mode)
        for index in range(rounds):
            if index % PER_TURN == 0:
                scan.turn()
                window(*arms["as it is"], mode)  # threads and caches were the scan's: thrown away
            for name, (model, ids) in arms.items():
                step(model, ids, mode)
                times[name].append(window(model, ids, mode))
    return times


def scanned_script(turns: list[str], mode: str, device: str) -> None:
    """What the scan runs: blocks of steps."""
    model, ids = make(importlib.import_module(MODULE), device)
    model = compiled(model, mode)
    with torch.no_grad():
        blocks(turns, lambda: [window(model, ids, mode) for _ in range(PER_TURN)])


def main() -> None:
    """Scan, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="default")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--turns", nargs=2, metavar=("GO", "DONE"))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.turns:
        scanned_script(args.turns, args.mode, args.device)
        return
    how = ["--mode", args.mode, "--device", args.device]
    with scanned(Path(__file__).resolve(), how, "as-script") as scan:
        times = measured(args.mode, args.device, args.rounds, scan)
    found = scan.report
    print(f"mode {args.mode}: {found.timing}")
    for finding in found.findings:
        at = f"{finding.location.function}:{finding.location.line}"
        cost = f"{finding.cost.ms_per_step:.4f} ms" if finding.cost else finding.not_measured
        print(f"  {finding.code} {at:<45} {finding.counts.crossings} crossings, {cost}")
    gains = [one - other for one, other in zip(times["as it is"], times["repaired"], strict=True)]
    gain = statistics.median(gains)
    total = found.timing.gain_ms  # of all breaks together, as the repair is
    ratio = f"{total / gain:.2f}" if gain > 0 else "none"
    alone, repaired_ms = (statistics.median(values) for values in times.values())
    print(f"  alone {alone:.3f} ms, repaired {repaired_ms:.3f} ms: gained {gain:.3f} ms")
    print(f"  predicted {total:.3f} ms, ratio {ratio}")
    if args.json:
        keep(args.json, scan, {"rounds": times, "predicted": total})


if __name__ == "__main__":
    main()
