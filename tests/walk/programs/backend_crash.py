# walk: a backend that fails on the model's graph and ends the script
# first line: FAILED with exit status 1
# first finding: BS306 | def forward(self, x):
# told: this accelerator has no kernel for aten.tanh
# exit: scan 1, check 3, bench 1
# options: --backend as-script
import torch
from torch import nn


def backend(graph, inputs):
    if len(graph.graph.nodes) > 6:
        raise NotImplementedError("this accelerator has no kernel for aten.tanh in float64")
    return graph.forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


net = torch.compile(Net(), backend=backend)
with torch.no_grad():
    for size in (4, 8, 8, 8):
        net(torch.randn(size, 8))
