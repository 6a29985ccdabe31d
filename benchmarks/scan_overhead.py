"""What a scan costs: ``breakscope scan S`` against ``python S'``, side by side.

``S'`` is the same script with ``torch.compile(backend="eager")`` written into it: the same compiles,
without the scan. Pairs of runs alternate, so that a busy machine is busy for both; the figure is the
median of the pairs. The bar is at most 1.10x plus 0.6 s.

    python benchmarks/scan_overhead.py [--pairs 5]

Needs transformers (the extra ``models``).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGFORMER = """
import torch
from transformers import LongformerConfig, LongformerModel

torch.manual_seed(0)
config = LongformerConfig(
    vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=128, attention_window=16, max_position_embeddings=600,
)
model = torch.compile(LongformerModel(config).eval(){backend})
with torch.no_grad():
    for _ in range(10):
        model(torch.randint(3, 200, (2, 64)))
"""

BART = """
import torch
from transformers import BartConfig, BartForConditionalGeneration

torch.manual_seed(0)
config = BartConfig(
    vocab_size=200, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=128,
)
model = BartForConditionalGeneration(config)
{compiled}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(20):
    ids = torch.randint(3, 200, (2, 16))
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

SCRIPTS = {
    "longformer": (LONGFORMER.format(backend=""), LONGFORMER.format(backend=', backend="eager"')),
    "bart loop": (
        BART.format(compiled=""),
        BART.format(compiled='model = torch.compile(model, backend="eager")'),
    ),
}


def timed(command: list[str], cwd: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(name: str, pairs: int, folder: Path) -> bool:
    scanned, plain = folder / "scanned.py", folder / "plain.py"
    scanned.write_text(SCRIPTS[name][0])
    plain.write_text(SCRIPTS[name][1])
    scan = [sys.executable, "-m", "breakscope", "scan", str(scanned)]
    run = [sys.executable, str(plain)]
    timed(run, folder)  # bytecode and page cache are warm for both
    timed(scan, folder)
    results = [(timed(scan, folder), timed(run, folder)) for _ in range(pairs)]
    ratio = statistics.median(ours / theirs for ours, theirs in results)
    extra = statistics.median(ours - theirs for ours, theirs in results)
    over = statistics.median(ours - 1.10 * theirs for ours, theirs in results)
    base = statistics.median(theirs for _, theirs in results)
    verdict = "within" if over <= 0.6 else "OVER"
    print(
        f"{name:12} python {base:6.2f} s   scan {base + extra:6.2f} s   ratio {ratio:.3f}   "
        f"scan - 1.10 x python = {over:+.2f} s   {verdict} the bar of 0.6 s   ({pairs} pairs)"
    )
    return over <= 0.6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as folder:
        good = [measure(name, pairs, Path(folder)) for name in SCRIPTS]
    began = time.perf_counter()
    helps = [timed([sys.executable, "-m", "breakscope", "--help"], Path.cwd()) for _ in range(9)]
    print(f"breakscope --help: median {statistics.median(helps):.3f} s of 9")
    del began
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
