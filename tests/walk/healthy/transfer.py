# transfer learning: the trunk is frozen for the first epochs, and trained with the head afterwards
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.head = nn.Linear(8, 3)

    def forward(self, images):
        return self.head(self.trunk(images))


torch.manual_seed(0)
net = Model()
model = torch.compile(net)
images, labels = torch.randn(26, 3, 8, 8), torch.randint(3, (26,))
for epoch in range(4):
    frozen = epoch < 2
    net.trunk.requires_grad_(not frozen)
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05)
    model.train()
    if frozen:
        net.trunk.eval()
    for x, y in zip(images.split(8), labels.split(8)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print((model(images[:8]).argmax(1) == labels[:8]).sum().item())
