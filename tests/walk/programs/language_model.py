# walk: a language model whose last batch is smaller
# first line: healthy
# first finding: none
# expected: BS201
# exit: scan 0, check 0, bench 0
import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, words=64, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        attended = nn.functional.scaled_dot_product_attention(
            self.query(x), self.key(x), self.value(x), is_causal=True
        )
        return self.head(x + attended)


torch.manual_seed(0)
text = torch.randint(64, (58, 17))
model = torch.compile(LanguageModel())
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(20):
    for batch in text.split(16):  # the last one has 10
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
