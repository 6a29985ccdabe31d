# walk: a policy that acts without gradients and learns with them
# first line: healthy
# first finding: none
# expected: BS212
# exit: scan 0, check 0, bench 0
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.action, self.value = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, states):
        x = self.body(states)
        return self.action(x), self.value(x).squeeze(-1)


torch.manual_seed(0)
policy = torch.compile(Policy())
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
state = torch.randn(8, 4)
for _ in range(80):
    states, actions, rewards = [], [], []
    for _ in range(6):
        with torch.no_grad():
            logits, _ = policy(state)
        action = torch.distributions.Categorical(logits=logits).sample()
        states.append(state)
        actions.append(action)
        state = torch.randn(8, 4)
        rewards.append((action == (state[:, 0] > 0)).float())
    logits, values = policy(torch.cat(states))
    returns = torch.cat(rewards)
    chosen = torch.distributions.Categorical(logits=logits).log_prob(torch.cat(actions))
    loss = -(chosen * (returns - values.detach())).mean() + (returns - values).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
