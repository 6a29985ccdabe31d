# walk: torch's encoder, which asks whether its mask is causal, and a head
# first line: -
# first finding: BS102 | x = self.encoder(self.embed(tokens), mask=mask)
# told: is_causal=True
# exit: scan 0, check 1, bench 0
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 4)

    def forward(self, tokens, mask):
        x = self.encoder(self.embed(tokens), mask=mask)
        return self.head(x.mean(1))


torch.manual_seed(0)
model = torch.compile(Model().eval())
with torch.no_grad():
    for _ in range(30):
        tokens = torch.randint(50, (4, 10))
        model(tokens, nn.Transformer.generate_square_subsequent_mask(10))
