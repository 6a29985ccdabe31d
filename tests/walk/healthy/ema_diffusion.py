# a denoiser with a slow copy of its weights, from which images are sampled while it trains
import copy

import torch
from torch import nn


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(10, 8)
        self.down, self.middle, self.up = (
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.Conv2d(8, 8, 3, 1, 1),
            nn.ConvTranspose2d(8, 1, 2, 2),
        )

    def forward(self, x, step):
        h = torch.relu(self.down(x)) + self.time(step)[:, :, None, None]
        return self.up(torch.relu(self.middle(h)) + h)


@torch.no_grad()
def sample(model, count):
    x = torch.randn(count, 1, 8, 8)
    for step in reversed(range(10)):
        x = x - 0.1 * model(x, torch.full((count,), step))
    return x


torch.manual_seed(0)
net = UNet()
slow = copy.deepcopy(net).eval().requires_grad_(False)
model, slow_model = torch.compile(net), torch.compile(slow)
optimizer = torch.optim.AdamW(net.parameters())
data = torch.randn(22, 1, 8, 8)
for _ in range(3):
    for x in data.split(8):
        step, noise = torch.randint(10, (len(x),)), torch.randn_like(x)
        optimizer.zero_grad()
        (model(x + noise, step) - noise).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(slow.parameters(), net.parameters()):
                old.lerp_(new, 0.01)
    print(sample(slow_model, 4).shape)
