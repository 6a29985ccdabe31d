# proximal policy optimisation: acts without gradients, learns in minibatches with a smaller last one
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, states):
        return self.actor(states), self.critic(states).squeeze(-1)


torch.manual_seed(0)
agent = torch.compile(Agent())
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
for _ in range(3):
    states, actions, logs, values = [], [], [], []
    for _ in range(5):
        state = torch.randn(4, 4)
        with torch.no_grad():
            logits, value = agent(state)
        policy = torch.distributions.Categorical(logits=logits)
        action = policy.sample()
        (
            states.append(state),
            actions.append(action),
            logs.append(policy.log_prob(action)),
            values.append(value),
        )
    states, actions, logs, values = map(torch.cat, (states, actions, logs, values))
    returns = values + torch.randn(20)
    for chosen in torch.randperm(20).split(8):
        logits, value = agent(states[chosen])
        ratio = (
            torch.distributions.Categorical(logits=logits).log_prob(actions[chosen]) - logs[chosen]
        ).exp()
        gain = returns[chosen] - values[chosen]
        loss = (
            -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            + (value - returns[chosen]).pow(2).mean()
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
with torch.inference_mode():
    agent(torch.randn(1, 4))
