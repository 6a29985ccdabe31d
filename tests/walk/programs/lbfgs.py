# walk: an optimizer that calls the model several times in a step
# first line: healthy
# first finding: none
# exit: scan 0, check 0, bench 0
import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 64).unsqueeze(1)
y = torch.sin(2 * x)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
model = torch.compile(net)
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    return loss


for _ in range(80):
    loss = optimizer.step(closure)
print(f"loss {loss.item():.4f}")
