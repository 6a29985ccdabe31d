# planted: BS211 | def forward(self, x, seen):
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.dropout, self.second = nn.Linear(6, 8), nn.Dropout(0.1), nn.Linear(8, 2)

    def forward(self, x, seen):
        h = self.first(x)
        h = h + 0.1 * sum(seen)
        return self.second(self.dropout(h).relu())


torch.manual_seed(0)
model = torch.compile(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data, labels = torch.randn(30, 6), torch.randint(2, (30,))
seen = []
for _ in range(3):
    model.train()
    for x, y in zip(data.split(8), labels.split(8)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, seen), y).backward()
        optimizer.step()
        seen.append(torch.tensor(0.1))
    model.eval()
    with torch.no_grad():
        model(data[:8], seen)
