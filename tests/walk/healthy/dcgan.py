# a generator and a discriminator of convolutions, labels as many as the batch has images
import torch
from torch import nn

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(6, 8, 4),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(8, 1, 4), nn.Sigmoid()
        )

    def forward(self, images):
        return self.main(images).view(-1)


generator, discriminator = Generator(), Discriminator()
steps_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
steps_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
loss = nn.BCELoss()
data = torch.randn(42, 1, 8, 8)
for _ in range(3):
    for real in data.split(16):
        count = real.size(0)
        ones, zeros = torch.ones(count), torch.zeros(count)
        steps_d.zero_grad()
        loss(discriminator(real), ones).backward()
        made = generator(torch.randn(count, 6, 1, 1))
        loss(discriminator(made.detach()), zeros).backward()
        steps_d.step()
        steps_g.zero_grad()
        loss(discriminator(made), ones).backward()
        steps_g.step()
