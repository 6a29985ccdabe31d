"""The scoreboard's rows that are no models: short programs of the kinds that people compile.

Each has a function ``step(batch, length)`` that gives tensors; the rest of the script is that of the models.
"""

from __future__ import annotations

_HEAD = '''"""{title}: {about}

Made by benchmarks/scoreboard.py. With ``--save FILE`` it goes on with other shapes and keeps what comes out.
"""

import sys

import torch
{body}
SHAPES = ((2, 8), (2, 12), (3, 5), (1, 7), (2, 9), (2, 6))
OTHER_SHAPES = ((2, 10), (3, 13), (1, 5), (4, 16), (2, 7), (3, 4), (2, 15), (1, 11))


def save(path):
    kept = []
    for number, (batch, length) in enumerate(OTHER_SHAPES):
        torch.manual_seed(100 + number)
        try:
            kept.append([torch.as_tensor(one).detach().clone() for one in step(batch, length)])
        except Exception as error:
            kept.append(f"{{type(error).__name__}}: {{error}}")
    torch.save(kept, path)


for number, (batch, length) in enumerate(SHAPES):
    torch.manual_seed(number)
    step(batch, length)
if len(sys.argv) == 3 and sys.argv[1] == "--save":
    save(sys.argv[2])
'''

_PROGRAMS: dict[str, tuple[str, str]] = {
    "reinforce": (
        "an episode of a policy that samples its actions",
        """
torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))


def act(state):
    probabilities = torch.softmax(policy(state), -1)
    action = torch.multinomial(probabilities, 1).item()
    return action, torch.log(probabilities[action])


compiled = torch.compile(act, backend="eager")


def step(batch, length):
    state, logs, rewards = torch.randn(4), [], []
    for _ in range(length):
        action, log = compiled(state)
        state = state * 0.9 + (0.1 if action else -0.1)
        logs.append(log)
        rewards.append(float(-state.abs().sum()))
    loss = -(torch.stack(logs) * torch.tensor(rewards)).sum()
    policy.zero_grad()
    loss.backward()
    return [loss, *(one.grad for one in policy.parameters())]

""",
    ),
    "actor_critic": (
        "advantages over episodes that end at different times, with normalisation only where it can be done",
        """

def advantages(rewards, values, done, gamma=0.99, smoothing=0.95):
    last, kept = torch.zeros_like(rewards[:, 0]), []
    for moment in reversed(range(rewards.shape[1] - 1)):
        alive = 1.0 - done[:, moment].float()
        delta = rewards[:, moment] + gamma * values[:, moment + 1] * alive - values[:, moment]
        last = delta + gamma * smoothing * alive * last
        kept.append(last)
    advantage = torch.stack(kept[::-1], 1)
    if advantage.std() > 1e-6:
        advantage = (advantage - advantage.mean()) / advantage.std()
    return advantage, advantage + values[:, :-1]


compiled = torch.compile(advantages, backend="eager")


def step(batch, length):
    return compiled(torch.randn(batch, length), torch.randn(batch, length), torch.rand(batch, length) < 0.2)

""",
    ),
    "q_learning": (
        "a step of deep Q-learning: masks of ended episodes, a target network that is copied now and then",
        """
import copy
import random

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
target = copy.deepcopy(network)
optimizer = torch.optim.SGD(network.parameters(), lr=1e-2)


def loss_of(state, action, reward, after, done):
    ahead = torch.zeros_like(reward)
    ahead[~done] = target(after[~done]).max(1).values.detach()
    chosen = network(state).gather(1, action[:, None]).squeeze(1)
    error = reward + 0.9 * ahead - chosen
    if error.abs().max() > 10:
        error = error.clamp(-10, 10)
    return error.pow(2).mean()


compiled = torch.compile(loss_of, backend="eager")


def step(batch, length):
    rows = 4 * length
    done = torch.rand(rows) < 0.3
    action, reward = torch.randint(3, (rows,)), torch.randn(rows)
    loss = compiled(torch.randn(rows, 6), action, reward, torch.randn(rows, 6), done)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return [loss, *(one.grad for one in network.parameters())]

""",
    ),
    "graph_scatter": (
        "two rounds of message passing; how many nodes there are is read from the edges",
        """
torch.manual_seed(0)


class Round(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.message = torch.nn.Linear(16, 16)
        self.update = torch.nn.Linear(32, 16)

    def forward(self, nodes, edges):
        count = int(edges.max()) + 1
        sent = self.message(nodes)[edges[0]]
        gathered = torch.zeros(count, 16).index_add(0, edges[1], sent)
        degree = torch.bincount(edges[1], minlength=count).clamp(min=1)
        return torch.relu(self.update(torch.cat([nodes[:count], gathered / degree[:, None]], 1)))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rounds = torch.nn.ModuleList([Round(), Round()])

    def forward(self, nodes, edges):
        for one in self.rounds:
            nodes = one(nodes, edges)
        return nodes.mean(0)


network = Network()
compiled = torch.compile(network, backend="eager")


def step(batch, length):
    nodes = 4 * length
    edges = torch.randint(nodes, (2, 6 * nodes))
    edges[:, 0] = nodes - 1
    out = compiled(torch.randn(nodes, 16), edges)
    network.zero_grad()
    out.sum().backward()
    return [out, *(one.grad for one in network.parameters())]

""",
    ),
    "graph_pooling": (
        "graphs of different sizes, pooled by their number; empty graphs are left out",
        """
torch.manual_seed(0)
linear = torch.nn.Linear(8, 8)


def pool(features, graph):
    total = graph.max().item() + 1
    places = graph[:, None].expand_as(features)
    sums = torch.zeros(total, features.shape[1]).scatter_add(0, places, linear(features))
    counts = torch.zeros(total).scatter_add(0, graph, torch.ones_like(graph, dtype=torch.float))
    return sums / counts.clamp(min=1)[:, None], counts


compiled = torch.compile(pool, backend="eager")


def step(batch, length):
    graph = torch.randint(batch + 1, (5 * length,)).sort().values
    return compiled(torch.randn(5 * length, 8), graph)

""",
    ),
    "nms": (
        "suppression of boxes that overlap, as a loop",
        """

def overlap(box, boxes):
    low, high = torch.maximum(box[:2], boxes[:, :2]), torch.minimum(box[2:], boxes[:, 2:])
    common = (high - low).clamp(min=0).prod(1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return common / (area + (box[2:] - box[:2]).prod() - common)


def suppress(boxes, scores, threshold=0.5):
    order, kept = scores.argsort(descending=True), []
    while order.numel() > 0:
        first = order[0]
        kept.append(first)
        order = order[1:][overlap(boxes[first], boxes[order[1:]]) <= threshold]
    return torch.stack(kept)


compiled = torch.compile(suppress, backend="eager")


def step(batch, length):
    corner = torch.rand(4 * length, 2)
    boxes = torch.cat([corner, corner + 0.1 + torch.rand(4 * length, 2)], 1)
    return [compiled(boxes, torch.rand(4 * length))]

""",
    ),
    "detection_filter": (
        "the end of a detector: boxes over a threshold, small ones removed, the best few kept",
        """

def choose(boxes, logits, threshold=0.05, most=20):
    scores, labels = torch.softmax(logits, -1).max(-1)
    keep = torch.nonzero(scores > threshold).squeeze(1)
    boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
    sides = boxes[:, 2:] - boxes[:, :2]
    keep = torch.where((sides > 0.01).all(1))[0]
    boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
    best = scores.topk(min(most, scores.shape[0])).indices
    return boxes[best], scores[best], labels[best]


compiled = torch.compile(choose, backend="eager")


def step(batch, length):
    corner = torch.rand(6 * length, 2)
    return compiled(torch.cat([corner, corner + torch.rand(6 * length, 2)], 1), torch.randn(6 * length, 5))

""",
    ),
    "generation": (
        "tokens one by one, until all rows have ended",
        """
torch.manual_seed(0)
embedding, head = torch.nn.Embedding(32, 16), torch.nn.Linear(16, 32)
END = 3


def generate(tokens, steps):
    ended = torch.zeros(tokens.shape[0], dtype=torch.bool)
    for _ in range(steps):
        logits = head(embedding(tokens).mean(1))
        following = logits.argmax(-1)
        following = torch.where(ended, END, following)
        tokens = torch.cat([tokens, following[:, None]], 1)
        ended = ended | (following == END)
        if ended.all():
            break
    return tokens


compiled = torch.compile(generate, backend="eager")


def step(batch, length):
    with torch.no_grad():
        return [compiled(torch.randint(4, 32, (batch, length)), 6)]

""",
    ),
    "nucleus": (
        "filters on logits before a draw: temperature, the best k, the nucleus",
        """

def draw(logits, temperature, best, nucleus):
    if temperature != 1.0:
        logits = logits / temperature
    if best > 0:
        logits = logits.masked_fill(logits < logits.topk(best).values[:, -1:], float("-inf"))
    ordered, places = logits.sort(descending=True)
    removed = torch.softmax(ordered, -1).cumsum(-1) - torch.softmax(ordered, -1) > nucleus
    logits = logits.masked_fill(removed.scatter(1, places, removed), float("-inf"))
    probabilities = torch.softmax(logits, -1)
    if torch.isnan(probabilities).any():
        raise ValueError("probabilities are no numbers")
    return torch.multinomial(probabilities, 1)


compiled = torch.compile(draw, backend="eager")


def step(batch, length):
    return [compiled(torch.randn(batch, 4 * length), 0.7, 10, 0.9)]

""",
    ),
    "beam_search": (
        "a step of beam search that keeps its finished sentences in lists",
        """
torch.manual_seed(0)
table = torch.randn(24, 24)


def search(tokens, scores, width, steps):
    finished = []
    for _ in range(steps):
        logits = torch.log_softmax(table[tokens[:, -1]], -1) + scores[:, None]
        scores, flat = logits.flatten().topk(width)
        rows, following = flat // 24, flat % 24
        tokens = torch.cat([tokens[rows], following[:, None]], 1)
        for row, token in enumerate(following.tolist()):
            if token == 3:
                finished.append(scores[row])
    best = torch.stack(finished).max() if finished else scores.max()
    return tokens, scores, best


compiled = torch.compile(search, backend="eager")


def step(batch, length):
    return compiled(torch.randint(24, (3, length)), torch.zeros(3), 3, 4)

""",
    ),
    "packed_rnn": (
        "an LSTM over sequences of different lengths",
        """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(32, 16)
        self.rnn = torch.nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(32, 5)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(out)


network = Tagger()
compiled = torch.compile(network, backend="eager")


def step(batch, length):
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[0] = length
    out = compiled(torch.randint(32, (batch, length)), lengths)
    network.zero_grad()
    out.pow(2).mean().backward()
    return [out, *(one.grad for one in network.parameters())]

""",
    ),
    "length_mask": (
        "attention over sequences whose longest length is read from a tensor",
        """
torch.manual_seed(0)
linear = torch.nn.Linear(8, 8)


def attend(x, lengths):
    longest = lengths.max().item()
    x = linear(x[:, :longest])
    mask = torch.arange(longest)[None] < lengths[:, None]
    weights = torch.softmax((x @ x.transpose(1, 2)).masked_fill(~mask[:, None], -1e9), -1)
    return (weights @ x) * mask[:, :, None]


compiled = torch.compile(attend, backend="eager")


def step(batch, length):
    return [compiled(torch.randn(batch, length, 8), torch.randint(1, length + 1, (batch,)))]

""",
    ),
    "adam_by_hand": (
        "an optimizer written by hand that skips what is not finite and reads its own step count",
        """
torch.manual_seed(0)
network = torch.nn.Linear(6, 6)
state = {one: (torch.zeros_like(one), torch.zeros_like(one)) for one in network.parameters()}
count = torch.zeros(())


def update(parameter, gradient, first, second, count, rate=1e-2):
    if not torch.isfinite(gradient).all():
        return parameter
    first.mul_(0.9).add_(gradient, alpha=0.1)
    second.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
    moment = first / (1 - 0.9 ** count.item())
    scale = (second / (1 - 0.99 ** count.item())).sqrt() + 1e-8
    return parameter - rate * moment / scale


compiled = torch.compile(update, backend="eager")


def step(batch, length):
    network.zero_grad()
    network(torch.randn(length, 6)).pow(2).mean().backward()
    count.add_(1)
    with torch.no_grad():
        for one, (first, second) in state.items():
            one.copy_(compiled(one, one.grad, first, second, count))
    return [one.detach() for one in network.parameters()]

""",
    ),
    "clipping": (
        "mixed precision by hand: a loss scale, a norm that is clipped, a step that is skipped",
        """
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
scale = torch.tensor(1024.0)


def clip(gradients, most=1.0):
    norm = torch.stack([one.norm() for one in gradients]).norm()
    if norm > most:
        gradients = [one * (most / norm) for one in gradients]
    return gradients, norm


def unscale(gradients, scale):
    gradients = [one / scale for one in gradients]
    broken = torch.stack([(~torch.isfinite(one)).any() for one in gradients]).any()
    if broken:
        scale.mul_(0.5)
        return None, broken
    return clip(gradients)


compiled = torch.compile(unscale, backend="eager")


def step(batch, length):
    network.zero_grad()
    (network(torch.randn(length, 8)).pow(2).mean() * scale).backward()
    gradients, norm = compiled([one.grad for one in network.parameters()], scale)
    return [norm.float(), scale, *(gradients or [])]

""",
    ),
    "conjugate_gradient": (
        "a solver that stops when the residual is small",
        """

def solve(matrix, right, steps=12, small=1e-4):
    x = torch.zeros_like(right)
    residual = right - matrix @ x
    direction = residual
    square = residual @ residual
    for _ in range(steps):
        if square.sqrt() < small:
            break
        along = matrix @ direction
        size = square / (direction @ along)
        x = x + size * direction
        residual = residual - size * along
        after = residual @ residual
        direction = residual + after / square * direction
        square = after
    return x, square


compiled = torch.compile(solve, backend="eager")


def step(batch, length):
    root = torch.randn(length, length)
    return compiled(root @ root.T + length * torch.eye(length), torch.randn(length))

""",
    ),
    "k_means": (
        "clusters that are moved until they stand still",
        """

def cluster(points, count, small=1e-3):
    centres = points[:count].clone()
    moved, rounds = float("inf"), 0
    while moved > small and rounds < 8:
        nearest = torch.cdist(points, centres).argmin(1)
        new = torch.stack([points[nearest == one].mean(0) for one in range(count)])
        moved = (new - centres).abs().max().item()
        centres, rounds = new, rounds + 1
    return centres


compiled = torch.compile(cluster, backend="eager")


def step(batch, length):
    return [compiled(torch.randn(8 * length, 3), 3)]

""",
    ),
    "experts": (
        "a mixture of experts, routed with a loop over the experts",
        """
torch.manual_seed(0)


class Mixture(torch.nn.Module):
    def __init__(self, experts=4, best=2):
        super().__init__()
        self.gate = torch.nn.Linear(16, experts)
        self.experts = torch.nn.ModuleList([torch.nn.Linear(16, 16) for _ in range(experts)])
        self.best = best

    def forward(self, x):
        flat = x.reshape(-1, 16)
        weights, chosen = torch.softmax(self.gate(flat), -1).topk(self.best, -1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            row, place = torch.where(chosen == number)
            if row.numel() == 0:
                continue
            out.index_add_(0, row, expert(flat[row]) * weights[row, place, None])
        return out.reshape(x.shape)


network = Mixture()
compiled = torch.compile(network, backend="eager")


def step(batch, length):
    out = compiled(torch.randn(batch, length, 16))
    network.zero_grad()
    out.pow(2).mean().backward()
    return [out, *(one.grad for one in network.parameters() if one.grad is not None)]

""",
    ),
    "hard_negatives": (
        "a contrastive loss over the pairs that are hard, if there are any",
        """
torch.manual_seed(0)
encoder = torch.nn.Linear(12, 8)


def contrast(x, labels, margin=0.5):
    z = torch.nn.functional.normalize(encoder(x), dim=-1)
    near = z @ z.T
    same = labels[:, None] == labels[None]
    hard = (~same) & (near > margin)
    loss = (1 - near[same]).mean()
    if hard.any():
        loss = loss + (near[hard] - margin).mean()
    return loss


compiled = torch.compile(contrast, backend="eager")


def step(batch, length):
    loss = compiled(torch.randn(2 * length, 12), torch.randint(3, (2 * length,)))
    encoder.zero_grad()
    loss.backward()
    return [loss, encoder.weight.grad]

""",
    ),
    "augmentation": (
        "masks over time and frequency that numpy draws, and a step that now and then is left out",
        """
import numpy as np

torch.manual_seed(0)
linear = torch.nn.Linear(8, 8)


def augment(x, widest=3):
    for _ in range(2):
        width = int(np.ceil(np.log1p(x.shape[1])))
        start = torch.randint(0, max(1, x.shape[1] - width), (1,)).item()
        x = x.clone()
        x[:, start : start + width] = 0
    x = linear(x)
    if x.abs().mean() > 0.1:
        x = x / x.abs().mean()
    return x


compiled = torch.compile(augment, backend="eager")


def step(batch, length):
    return [compiled(torch.randn(batch, length, 8))]

""",
    ),
    "logged_step": (
        "a training step that says how it goes, and warns",
        """
import logging
import warnings

log = logging.getLogger("training")
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def loss_of(x, labels):
    logits = network(x)
    if x.shape[0] > 30:
        warnings.warn("a large batch")
    loss = torch.nn.functional.cross_entropy(logits, labels)
    log.info("a loss was computed")
    if torch.isnan(loss):
        print("the loss is no number")
    right = (logits.argmax(-1) == labels).float().mean()
    return loss, right


compiled = torch.compile(loss_of, backend="eager")


def step(batch, length):
    loss, right = compiled(torch.randn(4 * length, 8), torch.randint(4, (4 * length,)))
    network.zero_grad()
    loss.backward()
    return [loss, right, *(one.grad for one in network.parameters())]

""",
    ),
}


def program_names() -> list[str]:
    """The rows, as ``programs/nms``."""
    return [f"programs/{name}" for name in _PROGRAMS]


def program_text(name: str) -> str:
    """The script of a row."""
    about, body = _PROGRAMS[name.removeprefix("programs/")]
    return _HEAD.format(title=name, about=about, body=body)
