"""The scripts that ``bench_gpu.py`` measures: random weights, no downloads, nothing of breakscope in them."""

from __future__ import annotations

_INFER = """
import torch
torch.manual_seed(0)
{build}
model = model.eval().half().cuda()
with torch.no_grad():
    for _ in range(400):
        model({call})
torch.cuda.synchronize()
"""

BART = _INFER.format(
    build="""
from transformers import BartConfig, BartModel
config = BartConfig(vocab_size=50265, d_model=768, encoder_layers=6, decoder_layers=6, encoder_ffn_dim=3072,
                    decoder_ffn_dim=3072, encoder_attention_heads=12, decoder_attention_heads=12)
model = BartModel(config)
ids = torch.randint(4, 50000, (8, 128)).cuda()
""",
    call="input_ids=ids, decoder_input_ids=ids, use_cache=False",
)

T5 = _INFER.format(
    build="""
from transformers import T5Config, T5Model
model = T5Model(T5Config(use_cache=False))
ids = torch.randint(4, 32000, (8, 128)).cuda()
""",
    call="input_ids=ids, decoder_input_ids=ids",
)

LONGFORMER = _INFER.format(
    build="""
from transformers import LongformerConfig, LongformerModel
config = LongformerConfig(vocab_size=50265, attention_window=512, max_position_embeddings=4098)
model = LongformerModel(config)
ids = torch.randint(4, 50000, (4, 1000)).cuda()
mask = torch.ones_like(ids)
""",
    call="input_ids=ids, attention_mask=mask",
)

PHI3 = _INFER.format(
    build="""
from transformers import Phi3Config, Phi3Model
import transformers
half = 1024 // 16 // 2
factors = {"short_factor": [1.0] * half, "long_factor": [2.0] * half}
if int(transformers.__version__.split(".")[0]) >= 5:
    rope = {"rope_parameters": {"rope_type": "longrope", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0,
                                "original_max_position_embeddings": 4096, **factors}}
else:
    rope = {"rope_scaling": {"type": "longrope", **factors}}
config = Phi3Config(
    vocab_size=32064, hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16,
    num_key_value_heads=16, max_position_embeddings=8192, original_max_position_embeddings=4096,
    pad_token_id=0, **rope,
)
model = Phi3Model(config)
ids = torch.randint(4, 32000, (8, 128)).cuda()
""",
    call="input_ids=ids, use_cache=False",
)

GPT = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)

class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.second(x))))

class GPT(torch.nn.Module):
    def __init__(self, width=512, depth=6, heads=8, words=8192, length=256):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, words)

    def forward(self, ids, targets):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
ids = torch.randint(0, 8192, (8, 257)).cuda()
for _ in range(240):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(ids[:, :-1], ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
"""

_MLP = """
import torch
torch.manual_seed(0)
layers = []
for _ in range(12):
    layers += [torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)]
model = torch.nn.Sequential(*layers).cuda()
x = torch.randn(64, 512, device="cuda")
{loop}
torch.cuda.synchronize()
"""
_EVAL = """
model.eval()
with torch.no_grad():
    for _ in range(400):
        model(x)
"""
_TRAIN = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(240):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""
MLP_EVAL = _MLP.format(loop=_EVAL)
MLP_TRAIN = _MLP.format(loop=_TRAIN)

_DENSE = """
import torch
torch.manual_seed(0)

class Dense(torch.nn.Module):
    def __init__(self, depth=16, growth=32):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 64, 3, padding=1)
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.BatchNorm2d(64 + growth * i), torch.nn.ReLU(),
                                torch.nn.Conv2d(64 + growth * i, growth, 3, padding=1)) for i in range(depth))
        self.head = torch.nn.Linear(64 + growth * depth, 10)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.head(x.mean((2, 3)))

model = Dense().cuda()
x = torch.randn(16, 3, 32, 32, device="cuda")
{loop}
torch.cuda.synchronize()
"""
DENSE_EVAL = _DENSE.format(loop=_EVAL)
DENSE_TRAIN = _DENSE.format(loop=_TRAIN)

# Name, source. The first five are those of the table in docs/benchmarks.md.
SCRIPTS = {
    "bart-base": BART,
    "t5-small": T5,
    "longformer-base": LONGFORMER,
    "phi3-12": PHI3,
    "gpt-train": GPT,
    "mlp-eval": MLP_EVAL,
    "mlp-train": MLP_TRAIN,
    "dense-eval": DENSE_EVAL,
    "dense-train": DENSE_TRAIN,
}
