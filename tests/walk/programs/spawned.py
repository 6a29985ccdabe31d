# walk: training in spawned processes, with a branch on a tensor
# first line: -
# first finding: BS101 | if y.abs().max() > 1e4:
# told: torch.where
# exit: scan 0, check 1, bench 3
import torch
import torch.multiprocessing as mp
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        y = self.linear(x)
        if y.abs().max() > 1e4:
            y = y.clamp(-1e4, 1e4)
        return y.relu()


def train(rank):
    torch.manual_seed(rank)
    net = torch.compile(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        net(torch.randn(4, 8)).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
