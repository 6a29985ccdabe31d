# walk: requests of many lengths for a model that is compiled with dynamic=False
# first line: -
# first finding: BS201 | def forward(self, tokens):
# told: dynamic=False
# exit: scan 0, check 1, bench 0
import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.score = nn.Linear(16, 1)

    def forward(self, tokens):
        return self.score(self.embed(tokens).mean(1)).squeeze(-1)


torch.manual_seed(0)
ranker = torch.compile(Ranker().eval(), dynamic=False)
with torch.inference_mode():
    for request in range(60):
        tokens = torch.randint(100, (4, 5 + request % 20))
        ranker(tokens)
