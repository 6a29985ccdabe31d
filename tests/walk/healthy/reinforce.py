# one state at a time, an update after each episode of another length
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.dropout, self.second = nn.Linear(4, 16), nn.Dropout(0.6), nn.Linear(16, 2)

    def forward(self, state):
        return torch.softmax(self.second(torch.relu(self.dropout(self.first(state)))), 1)


torch.manual_seed(0)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(6):
    logs = []
    for _ in range(5 + episode):
        chosen = torch.distributions.Categorical(policy(torch.randn(1, 4)))
        logs.append(chosen.log_prob(chosen.sample()))
    optimizer.zero_grad()
    (-torch.cat(logs) * torch.linspace(1, -1, len(logs))).sum().backward()
    optimizer.step()
