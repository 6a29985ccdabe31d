"""A translation model of real size in half precision, for ``fix_speed.py``.

    breakscope scan benchmarks/fix_real_size.py && breakscope fix

Two sites, as marian of transformers has them: a layer clamps what has become infinite, and the model logs.
"""

import logging

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

WORDS, WIDTH, HEADS, LAYERS, INNER = 58_101, 512, 8, 4, 2048
log = logging.getLogger(__name__)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = WIDTH, HEADS, WIDTH // HEADS
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, memory, mask=None):
        parts = self.query(x), self.key(memory), self.value(memory)
        mixed = scaled_dot_product_attention(*map(self.heads, parts), attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], self.embed_dim))


class Layer(nn.Module):
    def __init__(self, crosses):
        super().__init__()
        self.attention = Attention()
        self.crossing = Attention() if crosses else None
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.inner, self.outer = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, hidden_states, mask, memory=None):
        hidden_states = self.norms[0](hidden_states + self.attention(hidden_states, hidden_states, mask))
        if self.crossing is not None:
            hidden_states = self.norms[1](hidden_states + self.crossing(hidden_states, memory))
        hidden_states = self.norms[2](hidden_states + self.outer(torch.relu(self.inner(hidden_states))))
        if hidden_states.dtype == torch.float16 and (
            torch.isinf(hidden_states).any() or torch.isnan(hidden_states).any()
        ):
            most = torch.finfo(hidden_states.dtype).max - 1000
            hidden_states = torch.clamp(hidden_states, min=-most, max=most)
        return hidden_states


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.encoder, self.decoder = (
            nn.ModuleList(Layer(crosses) for _ in range(LAYERS)) for crosses in (False, True)
        )

    def forward(self, ids, made):
        log.warning("a batch of %s", tuple(ids.shape))
        memory, hidden_states = self.words(ids), self.words(made)
        size = made.shape[1]
        causal = torch.full((size, size), float("-inf"), dtype=memory.dtype, device=ids.device).triu(1)
        padded = torch.zeros_like(ids, dtype=memory.dtype).masked_fill(ids == 0, float("-inf"))
        for layer in self.encoder:
            memory = layer(memory, padded[:, None, None, :])
        for layer in self.decoder:
            hidden_states = layer(hidden_states, causal, memory)
        return hidden_states @ self.words.weight.T


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Model().half().eval().to(device)
with torch.no_grad():
    for length in (128, 96, 112, 80):
        ids = torch.randint(1, WORDS, (4, length), device=device)
        model(ids, ids[:, : length // 4])
