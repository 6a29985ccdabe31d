# walk: a check in every tenth step that reads a number out of an expensive decomposition
# first line: -
# first finding: BS102 | singular = torch.linalg.svdvals(y.expand(64, -1, -1)).max().item()
# exit: scan 0, check 1, bench 0
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x, check):
        y = self.first(x)
        if check:
            singular = torch.linalg.svdvals(y.expand(64, -1, -1)).max().item()
            y = y / max(1.0, singular)
        return self.second(y.relu())


torch.manual_seed(0)
net = torch.compile(Net())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    net(torch.randn(4, 16), step % 10 == 0).square().mean().backward()
    optimizer.step()
