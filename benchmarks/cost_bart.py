"""bart-base in fp16: what a scan says its breaks cost, and what removing all of them by hand gains.

    python benchmarks/cost_bart.py [--mode default|reduce-overhead] [--json FILE]

It needs a GPU and transformers 4.52.4.

``--step N`` makes it the script that is scanned. By hand means: the fp16 overflow check clamps always (which
changes nothing in the range of the check), and ``logger.warning_once`` does nothing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

MODULE = "transformers.models.bart.modeling_bart"
ROUNDS, STEPS, WARM = 20, 6, 6


def repaired() -> Any:
    """The model's module without its breaks, beside the real one."""
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text()
    text, checks = re.subn(
        r"if hidden_states\.dtype == torch\.float16 and \(\s*torch\.isinf\(hidden_states\)\.any\(\) or "
        r"torch\.isnan\(hidden_states\)\.any\(\)\s*\):",
        "if hidden_states.dtype == torch.float16:",
        text,
    )
    assert checks, "the overflow check is not where it was"
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


def measured(mode: str, device: str) -> dict[str, float]:
    """Median step in milliseconds as it is and repaired, taking turns."""
    arms = {}
    for name, module in (("as it is", importlib.import_module(MODULE)), ("repaired", repaired())):
        model, ids = make(module, device)
        arms[name] = (compiled(model, mode), ids)
    times: dict[str, list[float]] = {name: [] for name in arms}
    with torch.no_grad():
        for model, ids in arms.values():
            for _ in range(WARM):
                step(model, ids, mode)
        for _ in range(ROUNDS):
            for name, (model, ids) in arms.items():
                step(model, ids, mode)
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(STEPS):
                    step(model, ids, mode)
                torch.cuda.synchronize()
                times[name].append((time.perf_counter() - begin) / STEPS * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def scanned(mode: str, device: str) -> Any:
    """The report of a scan of this file."""
    import breakscope

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        script = [__file__, "--step", "60", "--mode", mode, "--device", device]
        how = ["--backend", "as-script" if device == "cuda" else "eager"]
        subprocess.run(
            [sys.executable, "-m", "breakscope", "scan", "-q", *how, "-o", str(report), *script], check=True
        )
        return breakscope.load(report)


def main() -> None:
    """Scan, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="default")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--step", type=int)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.step:
        model, ids = make(importlib.import_module(MODULE), args.device)
        model = compiled(model, args.mode)
        with torch.no_grad():
            for _ in range(args.step):
                step(model, ids, args.mode)
        return
    found = scanned(args.mode, args.device)
    print(f"mode {args.mode}: {found.timing}")
    for finding in found.findings:
        at = f"{finding.location.function}:{finding.location.line}"
        cost = f"{finding.cost.ms_per_step:.4f} ms" if finding.cost else finding.not_measured
        print(f"  {finding.code} {at:<45} {finding.counts.crossings} crossings, {cost}")
    real = measured(args.mode, args.device) if args.device == "cuda" else {"as it is": 0, "repaired": 0}
    gain = real["as it is"] - real["repaired"]
    total = sum(finding.cost.ms_per_step for finding in found.findings if finding.cost)
    ratio = f"{total / gain:.2f}" if gain > 0 else "none"
    print(f"  alone {real['as it is']:.3f} ms, repaired {real['repaired']:.3f} ms: gained {gain:.3f} ms")
    print(f"  predicted {total:.3f} ms, ratio {ratio}")
    if args.json:
        regions = [[r.function, r.ops, r.calls, r.ms] for r in found.regions]
        args.json.write_text(json.dumps({"measured": real, "predicted": total, "regions": regions}, indent=1))


if __name__ == "__main__":
    main()
