# a classifier of images that breakscope compiles: train, evaluate, a smaller last batch in both
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(4 * 13 * 13, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return F.log_softmax(self.fc(self.dropout(torch.flatten(x, 1))), dim=1)


def train(model, batches, optimizer):
    model.train()
    for images, labels in batches:
        optimizer.zero_grad()
        F.nll_loss(model(images), labels).backward()
        optimizer.step()


def test(model, batches):
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in batches:
            right += (model(images).argmax(1) == labels).sum().item()
    return right


torch.manual_seed(0)
images, labels = torch.randn(38, 1, 28, 28), torch.randint(10, (38,))
batches = list(zip(images.split(16), labels.split(16)))
model = Net()
optimizer = torch.optim.Adadelta(model.parameters())
for _ in range(3):
    train(model, batches, optimizer)
    print(test(model, batches))
