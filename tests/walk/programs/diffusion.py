# walk: a denoiser that is trained, and sampled from without gradients
# first line: healthy
# first finding: none
# expected: BS212
# exit: scan 0, check 0, bench 0
import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 16)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16))

    def forward(self, x, step):
        return self.body(x + self.time(step))


@torch.no_grad()
def sample(model, betas, count):
    kept = torch.cumprod(1 - betas, 0)
    x = torch.randn(count, 16)
    for step in reversed(range(len(betas))):
        noise = model(x, torch.full((count,), step))
        x = (x - betas[step] / (1 - kept[step]).sqrt() * noise) / (1 - betas[step]).sqrt()
        if step:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(0)
model = torch.compile(Denoiser())
betas = torch.linspace(1e-4, 0.02, 50)
kept = torch.cumprod(1 - betas, 0)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(80):
    x, noise, step = torch.randn(8, 16), torch.randn(8, 16), torch.randint(50, (8,))
    scale = kept[step].unsqueeze(1)
    loss = (model(scale.sqrt() * x + (1 - scale).sqrt() * noise, step) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(sample(model, betas, 8).shape)
