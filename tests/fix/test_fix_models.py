"""Bar 2: transformers as installed; the breaks of real models go by proved patches of library code.

Nightly: minutes for each model; the rules that do it are proved one by one in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned, run_cold

import breakscope
from breakscope.report.model import Finding

pytest.importorskip("transformers", reason="needs the extra 'models'")
pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.nightly]

Scan = Callable[..., Scanned]

BART = """
import torch
from transformers import BartConfig, BartModel

torch.manual_seed(0)
config = BartConfig(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                    decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64)
model = BartModel(config).eval().half()
with torch.no_grad():
    for length in (8, 12, 5, 7, 9, 3, 11, 6):
        ids = torch.randint(3, 128, (2, length))
        model(input_ids=ids, decoder_input_ids=ids[:, :1])
"""
T5 = """
import torch
from transformers import T5Config, T5Model

torch.manual_seed(0)
config = T5Config(vocab_size=128, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
model = T5Model(config).eval()
with torch.no_grad():
    for length in (8, 12, 5, 7, 9, 4, 11, 6):
        ids = torch.randint(3, 128, (2, length))
        model(input_ids=ids, decoder_input_ids=ids[:, :4])
"""
# Short prompts after long ones: an update of the rope that writes into a buffer that is shared goes wrong here.
PHI3 = """
import torch
from transformers import Phi3Config, Phi3Model

torch.manual_seed(0)
config = Phi3Config(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64,
                    original_max_position_embeddings=16, pad_token_id=0,
                    rope_scaling={"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8})
model = Phi3Model(config).eval()
with torch.no_grad():
    for length in (8, 32, 8, 20, 5, 16, 17, 4):
        model(input_ids=torch.randint(3, 128, (2, length)), use_cache=False)
"""
WHISPER = """
import torch
from transformers import WhisperConfig, WhisperModel

torch.manual_seed(0)
config = WhisperConfig(vocab_size=128, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                       decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16,
                       max_source_positions=32, max_target_positions=32, pad_token_id=0, bos_token_id=1,
                       eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
                       begin_suppress_tokens=None)
model = WhisperModel(config).eval()
with torch.no_grad():
    for length in (8, 12, 5, 7, 9, 3, 11, 6):
        model(input_features=torch.randn(2, 16, 64), decoder_input_ids=torch.randint(3, 128, (2, length)))
"""
LONGFORMER = """
import torch
from transformers import LongformerConfig, LongformerModel

torch.manual_seed(0)
config = LongformerConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                          intermediate_size=128, attention_window=[4, 4], max_position_embeddings=64, pad_token_id=1)
model = LongformerModel(config).eval()
with torch.no_grad():
    for length in (8, 12, 5, 7, 9, 3, 11, 6):
        model(input_ids=torch.randint(3, 128, (2, length)))
"""


def fixed(scan: Scan, script: str) -> tuple[list[Finding], str]:
    """Breaks with their answers, and what was printed."""
    folder: Path = scan(script, timeout=300).folder
    done = run_cold("fix", "--no-inductor", "--all", folder=folder, timeout=1500)
    report = breakscope.load(folder / ".breakscope" / "latest.json")
    return [one for one in report.findings if one.kind != "recompile"], done.stdout


@pytest.mark.parametrize(
    ("script", "codes"),
    [(BART, {"BS101", "BS104"}), (T5, {"BS104"}), (PHI3, {"BS101"}), (WHISPER, {"BS104"})],
    ids=["bart fp16", "t5", "phi3 longrope", "whisper"],
)
def test_every_break_goes_by_a_proved_patch(scan: Scan, script: str, codes: set[str]) -> None:
    findings, text = fixed(scan, script)
    assert {one.code for one in findings} == codes
    for suggestion in (one.suggestion for one in findings):
        assert suggestion is not None
        assert suggestion.status == "proved", text
        whole = suggestion.evidence["whole_script"]
        assert whole["sites"][1] == 0
        assert whole["bitwise"] is True
        assert whole["outermost_calls"] >= 8


def test_a_number_that_python_decides_with_is_refused(scan: Scan) -> None:
    findings, text = fixed(scan, LONGFORMER)
    assert "BS104" in {one.code for one in findings}
    for one in findings:
        assert one.suggestion is not None
        if ".any().item()" in (one.location.source or ""):
            assert one.suggestion.status == "refused"
            assert "for Python to decide with" in one.suggestion.why
        else:
            assert one.suggestion.status == "proved", text
