# an autoencoder that adds noise in training only
import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 6), nn.ReLU())
        self.decoder = nn.Linear(6, 12)

    def forward(self, x):
        if self.training:
            x = x + 0.1 * torch.randn_like(x)
        return self.decoder(self.encoder(x))


torch.manual_seed(0)
model = torch.compile(Autoencoder())
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(30, 12)
for _ in range(4):
    model.train()
    for x in data.split(8):
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
    model.eval()
    # nobody turned the gradients off: the mode of the module is all that differs
    print((model(data[:8]) - data[:8]).square().mean().item())
