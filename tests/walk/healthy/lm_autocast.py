# a language model trained under autocast on texts of many lengths, and evaluated in full precision
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 40)
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens):
        x = self.embed(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.dropout(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.out(x)


torch.manual_seed(0)
model = torch.compile(Model())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model.train()
    for length in (12, 9, 16, 11, 14):
        tokens = torch.randint(40, (4, length + 1))
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for length in (10, 13):
            model(torch.randint(40, (4, length)))
