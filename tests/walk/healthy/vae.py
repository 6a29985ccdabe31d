# a variational autoencoder: noise in the forward pass, samples decoded after each epoch
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(20, 16)
        self.mean, self.variance = nn.Linear(16, 4), nn.Linear(16, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20), nn.Sigmoid())

    def decode(self, z):
        return self.decoder(z)

    def forward(self, x):
        h = F.relu(self.body(x))
        mean, variance = self.mean(h), self.variance(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * variance)
        return self.decode(z), mean, variance


def loss_of(seen, x, mean, variance):
    rest = -0.5 * torch.sum(1 + variance - mean.pow(2) - variance.exp())
    return F.binary_cross_entropy(seen, x, reduction="sum") + rest


torch.manual_seed(0)
data = torch.rand(44, 20)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    model.train()
    for x in data.split(16):
        optimizer.zero_grad()
        loss_of(*((out := model(x))[:1]), x, *out[1:]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(sum(loss_of(*((out := model(x))[:1]), x, *out[1:]).item() for x in data[:24].split(16)))
        model.decode(torch.randn(6, 4))
