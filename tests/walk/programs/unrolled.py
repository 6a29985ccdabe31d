# walk: a loop over time that becomes 160 copies of the cell
# first line: -
# first finding: BS401 | for x in series:
# told: scan or while_loop
# exit: scan 0, check 1, bench 0
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.write, self.keep = nn.Linear(4, 8), nn.Linear(4, 8)

    def forward(self, x, h):
        gate = torch.sigmoid(self.keep(x) + h)
        return gate * h + (1 - gate) * torch.tanh(self.write(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()
        self.head = nn.Linear(8, 1)

    def forward(self, series):
        h = series.new_zeros(series.shape[1], 8)
        for x in series:
            h = self.cell(x, h)
        return self.head(h)


torch.manual_seed(0)
net = torch.compile(Net())
optimizer = torch.optim.Adam(net.parameters())
for _ in range(60):
    optimizer.zero_grad()
    net(torch.randn(160, 2, 4)).square().mean().backward()
    optimizer.step()
