# walk: two networks and two optimizers; the judge sees images that need gradients and images that do not
# first line: healthy
# first finding: none
# expected: BS205
# exit: scan 0, check 0, bench 0
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
make, judge = torch.compile(generator), torch.compile(discriminator)
loss = nn.BCEWithLogitsLoss()
real, fake = torch.ones(16, 1), torch.zeros(16, 1)

for _ in range(80):
    images = torch.randn(16, 8)
    made = make(torch.randn(16, 4))
    optimizer_d.zero_grad()
    (loss(judge(images), real) + loss(judge(made.detach()), fake)).backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss(judge(made), real).backward()
    optimizer_g.step()
