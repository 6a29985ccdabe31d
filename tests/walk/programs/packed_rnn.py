# walk: an LSTM over packed sequences inside of the model
# first line: -
# first finding: BS302 | hidden, _ = self.rnn(packed)
# told: allow_rnn
# exit: scan 0, check 1, bench 0
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.rnn = nn.LSTM(8, 16, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = self.rnn(packed)
        padded, _ = pad_packed_sequence(hidden, batch_first=True, total_length=tokens.shape[1])
        return self.head(padded)


torch.manual_seed(0)
model = torch.compile(Tagger())
optimizer = torch.optim.Adam(model.parameters())
for _ in range(80):
    tokens, lengths = torch.randint(50, (4, 12)), torch.randint(1, 13, (4,))
    optimizer.zero_grad()
    model(tokens, lengths).square().mean().backward()
    optimizer.step()
