# walk: a classifier that trains and evaluates; the last batch is smaller
# first line: healthy
# first finding: none
# expected: BS201, BS212
# exit: scan 0, check 0, bench 0
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(4 * 6 * 6, 3)

    def forward(self, images):
        return self.head(self.dropout(self.features(images)))


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(70, 1, 8, 8), torch.randint(3, (70,)))
    train = DataLoader(data, batch_size=16)  # the last batch has 6
    model = torch.compile(Classifier())
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(16):
        model.train()
        for images, labels in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for images, labels in train:
                right += (model(images).argmax(1) == labels).sum().item()
        print(f"accuracy {right / len(data):.2f}")


main()
