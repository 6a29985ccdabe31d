# walk: generate() with a cache, called on what torch.compile gave back
# first line: VACUOUS: nothing was compiled: Decoder was given to torch.compile at generate.py
# first finding: none
# exit: scan 0, check 3, bench 1
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, words=64, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, cache):
        x = self.embed(tokens)
        keys, values = self.key(x), self.value(x)
        if cache is not None:
            keys, values = torch.cat([cache[0], keys], 1), torch.cat([cache[1], values], 1)
        x = x + nn.functional.scaled_dot_product_attention(self.query(x), keys, values)
        return self.head(x), (keys, values)

    @torch.no_grad()
    def generate(self, tokens, new):
        cache = None
        last = tokens
        for _ in range(new):
            logits, cache = self(last, cache)
            last = logits[:, -1:].argmax(-1)
            tokens = torch.cat([tokens, last], 1)
        return tokens


torch.manual_seed(0)
model = Decoder()
model = torch.compile(model)
model.eval()
print(model.generate(torch.randint(64, (2, 5)), new=12).shape)
