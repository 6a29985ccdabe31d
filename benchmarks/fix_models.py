"""What ``breakscope fix`` does with models of transformers as installed: scan and fix, one row a model.

    python benchmarks/fix_models.py --unsafe --out results.json   # all, some minutes a model
    python benchmarks/fix_models.py --unsafe --set train bart whisper      # some

Models are small and random; nothing is downloaded. Uses transformers and torch of the Python that runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HEAD = """
import torch
import transformers as tf

torch.manual_seed(0)
NEW = int(tf.__version__.split(".")[0]) >= 5
def tokens(*shape):
    return torch.randint(3, 128, shape)
"""
INFERRING = """
model = model.eval()
with torch.no_grad():
    for length in (8, 12, 5, 7, 9, 3, 11, 6):
        model({call})
"""
TRAINING = """
model = model.train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for length in (8, 12, 5, 7, 9, 4, 11, 6):
    optimizer.zero_grad()
    out = model({call})
    (out.{out}.float() ** 2).mean().backward()
    optimizer.step()
"""
_BART = """
model = tf.BartModel(tf.BartConfig(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64{more}))
"""
_WHISPER = """
model = tf.WhisperModel(tf.WhisperConfig(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
    num_mel_bins=16,
    max_source_positions=32, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None{more}))
"""
_WHISPER_CALL = "input_features=torch.randn(2, 16, 64), decoder_input_ids=tokens(2, length)"
_TEXT = "input_ids=tokens(2, length)"

INFER = {
    "bart fp16": (
        _BART.format(more="") + "model = model.half()",
        "input_ids=(ids := tokens(2, length)), decoder_input_ids=ids[:, :1]",
    ),
    "t5": (
        """
model = tf.T5Model(tf.T5Config(vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2,
    num_heads=4))
""",
        "input_ids=(ids := tokens(2, length)), decoder_input_ids=ids[:, :3]",
    ),
    "whisper": (_WHISPER.format(more=""), _WHISPER_CALL),
    "longformer": (
        """
model = tf.LongformerModel(tf.LongformerConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2,
    num_attention_heads=4, intermediate_size=128, attention_window=[4, 4], max_position_embeddings=64,
    pad_token_id=1))
""",
        _TEXT,
    ),
    "phi3 longrope": (
        """
factors = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
if NEW:
    more = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 7}
    rope = {"rope_parameters": {**more, "partial_rotary_factor": 1.0, **factors}}
else:
    rope = {"rope_scaling": {"type": "longrope", **factors}}
model = tf.Phi3Model(tf.Phi3Config(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64,
    original_max_position_embeddings=7, pad_token_id=0, **rope))
""",
        _TEXT + ", use_cache=False",
    ),
}  # fmt: skip
TRAIN = {
    "bart": (
        _BART.format(more=", encoder_layerdrop=0.3, decoder_layerdrop=0.3"),
        _TEXT + ", use_cache=False",
        "last_hidden_state",
    ),
    "opt": (
        """
model = tf.OPTModel(tf.OPTConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, ffn_dim=128,
    num_attention_heads=4,
    max_position_embeddings=64, word_embed_proj_dim=64, layerdrop=0.3))
""",
        _TEXT + ", use_cache=False",
        "last_hidden_state",
    ),
    "whisper": (
        _WHISPER.format(more=", encoder_layerdrop=0.3, decoder_layerdrop=0.3"),
        _WHISPER_CALL,
        "last_hidden_state",
    ),
    "led": (
        """
model = tf.LEDModel(tf.LEDConfig(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, attention_window=[4, 4],
    max_encoder_position_embeddings=64, max_decoder_position_embeddings=64, encoder_layerdrop=0.3,
    decoder_layerdrop=0.3))
""",
        _TEXT + ", use_cache=False",
        "last_hidden_state",
    ),
    "speech to text": (
        """
model = tf.Speech2TextModel(tf.Speech2TextConfig(vocab_size=128, d_model=32, encoder_layers=2,
    decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64,
    decoder_ffn_dim=64, encoder_layerdrop=0.3, decoder_layerdrop=0.3, input_feat_per_channel=16,
    conv_channels=32))
""",
        "input_features=torch.randn(2, 8 * length, 16), decoder_input_ids=tokens(2, length), use_cache=False",
        "last_hidden_state",
    ),
    "informer": (
        """
model = tf.InformerModel(tf.InformerConfig(prediction_length=4, context_length=8, lags_sequence=[1, 2],
    num_time_features=1,
    d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
    encoder_ffn_dim=32, decoder_ffn_dim=32))
""",
        """past_values=torch.randn(2, 10), past_time_features=torch.randn(2, 10, 1),
        past_observed_mask=torch.ones(2, 10), future_values=torch.randn(2, 4),
        future_time_features=torch.randn(2, 4, 1)""",
        "last_hidden_state",
    ),
    "reformer": (
        """
model = tf.ReformerModel(tf.ReformerConfig(vocab_size=128, hidden_size=64, attention_head_size=16,
    num_attention_heads=4,
    feed_forward_size=128, attn_layers=["local", "lsh"], local_attn_chunk_length=4, lsh_attn_chunk_length=4,
    axial_pos_embds=False, max_position_embeddings=64, num_buckets=4, num_hashes=2, is_decoder=False))
""",
        "input_ids=tokens(2, 4 * length)",
        "last_hidden_state",
    ),
    "ibert": (
        """
model = tf.IBertModel(tf.IBertConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128, max_position_embeddings=64, quant_mode=True))
""",
        _TEXT,
        "last_hidden_state",
    ),
    "flaubert": (
        """
model = tf.FlaubertModel(tf.FlaubertConfig(vocab_size=128, n_words=128, emb_dim=64, n_layers=2, n_heads=4,
    max_position_embeddings=64, layerdrop=0.3))
""",
        _TEXT + ", lengths=torch.tensor([length, length - 1])",
        "last_hidden_state",
    ),
    "rt_detr": (
        """
backbone = tf.RTDetrResNetConfig(embedding_size=8, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1],
    out_features=["stage2", "stage3", "stage4"])
model = tf.RTDetrModel(tf.RTDetrConfig(backbone_config=backbone, encoder_hidden_dim=32,
    encoder_in_channels=[16, 32, 32],
    feat_strides=[8, 16, 32], encoder_ffn_dim=64, encoder_attention_heads=2, d_model=32, num_queries=10,
    decoder_in_channels=[32, 32, 32], decoder_ffn_dim=64, decoder_layers=2, decoder_attention_heads=2,
    num_denoising=0, use_pretrained_backbone=False, num_labels=4)).float()
""",
        "pixel_values=torch.randn(2, 3, 64, 64)",
        "last_hidden_state",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one model.

    Attributes:
        sites: breaks and skipped frames of the scan. gone: those that are not in a scan with the fixes.
        answers: places by status: proved, consent, unproved, refused. reasons: one line a place that stays.
        seconds: of ``breakscope fix``.
    """

    model: str
    sites: int
    gone: int
    answers: dict[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    trouble: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models (default: all of the sets)")
    parser.add_argument("--set", choices=("infer", "train", "all"), default="all")
    parser.add_argument("--unsafe", action="store_true", help="accept what needs consent")
    parser.add_argument("--inductor", action="store_true", help="compare under Inductor as well")
    parser.add_argument("--budget", type=float, default=60, help="seconds of comparisons for each rewrite")
    parser.add_argument("--keep", type=Path, help="folder for scripts, reports and fixes")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    asked = parser.parse_args()
    rows = []
    for label, script in _scripts(asked.set, set(asked.names)):
        folder = (
            Path(tempfile.mkdtemp(prefix="fix_models_")) if asked.keep is None else asked.keep / _slug(label)
        )
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--budget", str(asked.budget)] + ["--unsafe"] * asked.unsafe
        rows.append(_one(label, script, folder, [*options, *["--no-inductor"] * (not asked.inductor)]))
        if asked.keep is None:
            shutil.rmtree(folder)
        print(_table(rows[-1:]).splitlines()[-1], flush=True)
    print("\n" + _table(rows))
    for row in rows:
        for reason in row.reasons:
            print(f"{row.model}: {reason}")
    if asked.out:
        asked.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def _scripts(which: str, names: set[str]) -> list[tuple[str, str]]:
    found = []
    if which in ("infer", "all"):
        found += [
            (name, HEAD + build + INFERRING.format(call=call))
            for name, (build, call) in INFER.items()
            if not names or name in names
        ]
    if which in ("train", "all"):
        found += [
            (f"{name} train", HEAD + build + TRAINING.format(call=call, out=out))
            for name, (build, call, out) in TRAIN.items()
            if not names or name in names
        ]
    return found


def _slug(label: str) -> str:
    return label.replace(" ", "-")


def _breakscope(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "breakscope", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"},
    )


def _one(label: str, script: str, folder: Path, options: list[str]) -> Row:
    (folder / "model.py").write_text(script)
    scan = _breakscope(folder, "scan", "model.py")
    report = folder / ".breakscope" / "latest.json"
    if not report.exists() or json.loads(report.read_text())["run"]["status"] != "ok":
        errors = [line for line in scan.stderr.splitlines() if "Error" in line]
        return Row(label, 0, 0, trouble=errors[-1] if errors else "the script did not run")
    started = time.monotonic()
    done = _breakscope(folder, "fix", "--all", *options)
    seconds = time.monotonic() - started
    (folder / "fix.txt").write_text(done.stdout + done.stderr)
    before = json.loads(report.read_text())
    (folder / "before.json").write_text(report.read_text())
    _breakscope(folder, "scan", "--fixes", ".breakscope/fixes", "model.py")
    after = json.loads(report.read_text())
    found, left = _sites(before), _sites(after)
    counted: Counter[str] = Counter()
    reasons = []
    for finding in found:
        suggestion = finding.get("suggestion") or {"status": "none", "why": done.stderr.strip()[-200:]}
        evidence = suggestion.get("evidence") or {}
        status = "consent" if evidence.get("consent") else suggestion["status"]
        counted[status] += 1
        if not evidence.get("accepted"):
            where = finding["location"]
            place = f"{finding['code']} {Path(where['file']).name}:{where['line']}"
            reasons.append(f"{place} `{(where.get('source') or '').strip()}` {status}: {suggestion['why']}")
    places = {_text(one) for one in left}
    gone = sum(_text(one) not in places for one in found)
    trouble = "" if done.returncode in (0, 1) else done.stderr.strip().splitlines()[-1]
    return Row(label, len(found), gone, dict(counted), tuple(reasons), round(seconds, 1), trouble)


def _sites(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in report["findings"] if one["kind"] in ("graph_break", "skip")]


def _text(finding: dict[str, Any]) -> tuple[str, str, str]:
    """A place by its text: lines move when a file is rewritten."""
    where = finding["location"]
    return where["file"], where.get("function") or "", (where.get("source") or "").strip()


def _table(rows: list[Row]) -> str:
    lines = [
        "| model | sites | proved | consent | unproved | refused | gone | seconds |",
        "|---|" + "---:|" * 7,
    ]
    for row in rows:
        figures = [row.answers.get(one, 0) for one in ("proved", "consent", "unproved", "refused")]
        cells = [row.sites, *figures, row.gone, row.trouble or round(row.seconds)]
        lines.append(f"| {row.model} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
