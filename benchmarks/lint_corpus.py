"""The models that ``lint_truth.py`` scans: built from a small config with random weights, in seconds on a
CPU.

``SEEN`` were looked at while the rules of ``breakscope lint`` were written. ``UNSEEN`` were chosen
before the rules were measured on them, and no rule was changed for them afterwards: they stand for other
people's models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TINY = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
ENCODER = {**TINY, "intermediate_size": 64, "max_position_embeddings": 128}
SEQ2SEQ = {
    "vocab_size": 100,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
T5 = {"vocab_size": 100, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
ROUTED = {"num_local_experts": 4, "num_experts_per_tok": 2}
SERIES = {
    "prediction_length": 4,
    "context_length": 12,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 1,
}
SPEECH = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "conv_dim": (16, 16),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_length": 2,
    "vocab_size": 40,
}

IDS = "ids = torch.randint(5, 90, (2, 32))"
SERIES_INPUTS = """
inputs = dict(
    past_values=torch.randn(2, 15), past_time_features=torch.randn(2, 15, 1),
    past_observed_mask=torch.ones(2, 15),
    future_values=torch.randn(2, 4), future_time_features=torch.randn(2, 4, 1),
)"""


@dataclass(frozen=True)
class Model:
    """One model of the corpus.

    Attributes:
        cls: the model's class in transformers; ``config`` the config's.
        settings: what makes the config small.
        inputs: a statement that makes ``inputs``, a dict.
        mode: "eval" or "train".
        dtype: of the weights.
    """

    cls: str
    config: str
    settings: dict[str, Any] = field(default_factory=dict)
    inputs: str = f"{IDS}; inputs = dict(input_ids=ids)"
    mode: str = "eval"
    dtype: str = "float32"

    def script(self) -> str:
        """The script to scan."""
        return (
            "import torch\nimport transformers\n\n"
            "torch.manual_seed(0)\n"
            f"config = transformers.{self.config}(**{self.settings!r})\n"
            f"model = transformers.{self.cls}(config).{self.mode}().to(torch.{self.dtype})\n"
            f"{self.inputs.strip()}\n"
            "compiled = torch.compile(model, backend='eager')\n"
            "with torch.no_grad():\n"
            "    for _ in range(3):\n"
            "        compiled(**inputs)\n"
        )


BOTH = f"{IDS}; inputs = dict(input_ids=ids, decoder_input_ids=ids[:, :1])"
AUDIO = "inputs = dict(input_values=torch.randn(2, 2000))"
LABELS = f"{IDS}; inputs = dict(input_ids=ids, labels=ids)"

SEEN: dict[str, Model] = {
    "t5": Model("T5ForConditionalGeneration", "T5Config", T5, BOTH),
    "bart fp16": Model("BartModel", "BartConfig", SEQ2SEQ, BOTH, dtype="float16"),
    "whisper": Model(
        "WhisperModel",
        "WhisperConfig",
        {
            **SEQ2SEQ,
            "num_mel_bins": 8,
            "max_source_positions": 50,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 3,
        },
        "ids = torch.randint(4, 90, (2, 4)); "
        "inputs = dict(input_features=torch.randn(2, 8, 100), decoder_input_ids=ids)",
    ),
    "longformer": Model("LongformerModel", "LongformerConfig", {**ENCODER, "attention_window": 8}),
    "phi3 longrope": Model(
        "Phi3ForCausalLM",
        "Phi3Config",
        {
            **ENCODER,
            "original_max_position_embeddings": 64,
            "num_key_value_heads": 2,
            "pad_token_id": 0,
            "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8},
        },
    ),
    "opt train": Model(
        "OPTForCausalLM",
        "OPTConfig",
        {**ENCODER, "ffn_dim": 64, "word_embed_proj_dim": 32, "layerdrop": 0.1},
        LABELS,
        mode="train",
    ),
    "flaubert": Model(
        "FlaubertModel", "FlaubertConfig", {"vocab_size": 100, "emb_dim": 32, "n_layers": 2, "n_heads": 2}
    ),
    "switch_transformers": Model(
        "SwitchTransformersModel",
        "SwitchTransformersConfig",
        {**T5, "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
        BOTH,
    ),
}

UNSEEN: dict[str, Model] = {
    "led": Model(
        "LEDModel",
        "LEDConfig",
        {**SEQ2SEQ, "attention_window": 8, "max_encoder_position_embeddings": 64},
        BOTH,
    ),
    "reformer": Model(
        "ReformerModel",
        "ReformerConfig",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "attention_head_size": 16,
            "num_attention_heads": 2,
            "feed_forward_size": 64,
            "axial_pos_shape": (4, 8),
            "axial_pos_embds_dim": (16, 16),
            "local_attn_chunk_length": 8,
            "lsh_attn_chunk_length": 8,
            "attn_layers": ["local", "lsh"],
            "num_buckets": 4,
        },
    ),
    "bigbird": Model(
        "BigBirdModel",
        "BigBirdConfig",
        {**ENCODER, "block_size": 4, "num_random_blocks": 1},
        "inputs = dict(input_ids=torch.randint(5, 90, (2, 96)))",
    ),
    "ibert": Model("IBertModel", "IBertConfig", {**ENCODER, "quant_mode": True}),
    "mixtral": Model("MixtralForCausalLM", "MixtralConfig", {**ENCODER, **ROUTED, "num_key_value_heads": 2}),
    "xlnet": Model(
        "XLNetModel",
        "XLNetConfig",
        {"vocab_size": 100, "d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64},
    ),
    "prophetnet train": Model(
        "ProphetNetModel",
        "ProphetNetConfig",
        {
            "vocab_size": 100,
            "hidden_size": 32,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 2,
            "num_decoder_attention_heads": 2,
        },
        BOTH,
        mode="train",
    ),
    "wav2vec2 train": Model("Wav2Vec2Model", "Wav2Vec2Config", SPEECH, AUDIO, mode="train"),
    "bert classifier": Model(
        "BertForSequenceClassification",
        "BertConfig",
        {**ENCODER, "pad_token_id": 0},
        "inputs = dict(input_ids=torch.randint(0, 90, (2, 32)), labels=torch.tensor([0, 1]))",
    ),
    "gpt2": Model(
        "GPT2ForSequenceClassification",
        "GPT2Config",
        {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 2, "pad_token_id": 0},
    ),
    "funnel": Model(
        "FunnelModel",
        "FunnelConfig",
        {"vocab_size": 100, "block_sizes": [1, 1], "d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 64},
    ),
    "informer": Model("InformerModel", "InformerConfig", {**SERIES, "sampling_factor": 2}, SERIES_INPUTS),
    "autoformer": Model(
        "AutoformerModel", "AutoformerConfig", {**SERIES, "moving_average": 3}, SERIES_INPUTS
    ),
    "vits": Model(
        "VitsModel",
        "VitsConfig",
        {
            **TINY,
            "ffn_dim": 32,
            "flow_size": 16,
            "spectrogram_bins": 17,
            "upsample_initial_channel": 16,
            "upsample_rates": [4],
            "upsample_kernel_sizes": [8],
            "resblock_kernel_sizes": [3],
            "resblock_dilation_sizes": [[1, 3]],
            "prior_encoder_num_flows": 1,
            "prior_encoder_num_wavenet_layers": 1,
            "posterior_encoder_num_wavenet_layers": 1,
            "duration_predictor_num_flows": 2,
            "num_speakers": 1,
        },
        "inputs = dict(input_ids=torch.randint(5, 30, (1, 8)))",
    ),
    "fsmt": Model(
        "FSMTModel",
        "FSMTConfig",
        {
            **{k: v for k, v in SEQ2SEQ.items() if k != "vocab_size"},
            "src_vocab_size": 100,
            "tgt_vocab_size": 100,
            "langs": ["a", "b"],
        },
        BOTH,
    ),
    "roformer": Model("RoFormerForMaskedLM", "RoFormerConfig", ENCODER, LABELS),
    "deberta": Model("DebertaV2Model", "DebertaV2Config", {**ENCODER, "relative_attention": True}),
    "qwen2 vl": Model(
        "Qwen2VLForConditionalGeneration",
        "Qwen2VLConfig",
        {
            **ENCODER,
            "num_key_value_heads": 2,
            "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
            "vision_config": {
                "depth": 1,
                "embed_dim": 16,
                "hidden_size": 32,
                "num_heads": 2,
                "patch_size": 4,
            },
            "image_token_id": 95,
            "vision_start_token_id": 96,
            "vision_end_token_id": 97,
            "video_token_id": 98,
        },
        """
ids = torch.randint(5, 90, (1, 32)); ids[0, 4] = 96; ids[0, 5:9] = 95
inputs = dict(input_ids=ids, pixel_values=torch.randn(16, 96), image_grid_thw=torch.tensor([[1, 4, 4]]))""",
    ),
}
