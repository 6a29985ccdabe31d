"""A small GPT trained on several ranks: the script that ``ranks_gpu.py`` scans.

    torchrun --standalone --nproc-per-node 2 benchmarks/gpt_ranks.py ddp|fsdp2 cuda|cpu [die]

Rank 1 gets a batch of another size at step 3; with ``die`` it is killed at step 5.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY, CONTEXT, STEPS = 256, 4, 2, 512, 64, 30


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    mode, kind = sys.argv[1:3]
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    device = torch.device(kind, local) if kind == "cuda" else torch.device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    torch.manual_seed(0)
    net = GPT().to(device)
    if mode == "ddp":
        net = nn.parallel.DistributedDataParallel(torch.compile(net), bucket_cap_mb=2)
    elif mode == "ddp-outside":
        net = torch.compile(nn.parallel.DistributedDataParallel(net, bucket_cap_mb=2))
    else:
        from torch.distributed.fsdp import fully_shard

        for block in net.blocks:
            block.compile()
            fully_shard(block)
        fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for step in range(STEPS):
        if rank == 1 and step == 5 and "die" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        batch = 6 if rank == 1 and step == 3 else 8
        tokens = torch.randint(VOCABULARY, (batch, CONTEXT), device=device)
        loss = nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
