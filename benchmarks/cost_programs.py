"""Twelve programs with breaks that can be taken out one by one: what cost_truth.py scans and measures.

    python benchmarks/cost_programs.py NAME [--device cuda] [--without BREAK ...] [--steps 60]

What is computed for a break is computed without it too, so that leaving it out takes away the break alone.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import turns
from torch import nn

WARM, BLOCK = 12, 32

logger = logging.getLogger("cost_programs")
logger.addHandler(logging.NullHandler())
logger.propagate = False


@dataclass(frozen=True)
class Program:
    """One regime.

    Attributes:
        make: gives the network without some of its breaks, and its inputs, for a device.
        train: whether a step learns.
    """

    breaks: tuple[str, ...]
    make: Callable[[str, tuple[str, ...]], tuple[nn.Module, tuple[torch.Tensor, ...]]]
    mode: str = "default"
    train: bool = False
    device: str | None = None


@torch.compiler.disable
def on_the_host(h: torch.Tensor) -> list[float]:
    """A few numbers through numpy, as debugging code looks at them."""
    return h[0, :8].detach().float().cpu().numpy().tolist()  # type: ignore[no-any-return]


@torch.compiler.disable
def all_on_the_host(h: torch.Tensor) -> float:
    """A whole tensor through the host."""
    return float(h.float().cpu().numpy()[::64].sum())


class Block(nn.Module):
    """Two layers."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.nn.functional.gelu(self.first(x)))


class Five(nn.Module):
    """Six blocks with a break of another kind after each but the last."""

    def __init__(self, width: int, inner: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.b0, self.b1, self.b2 = Block(width, inner), Block(width, inner), Block(width, inner)
        self.b3, self.b4, self.b5 = Block(width, inner), Block(width, inner), Block(width, inner)
        self.breaks = breaks
        self.seen: list[Any] = []

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        x = self.b0(x)
        peak = x.abs().max()
        if "branch" in self.breaks and peak > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b1(x)
        mean = x.mean()
        if "item" in self.breaks and mean.item() > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b2(x)
        if "logger" in self.breaks:
            logger.info("block %s is done", 2)
        x = self.b3(x)
        if "numpy" in self.breaks:
            on_the_host(x)
        x = self.b4(x)
        total = counts + 1
        if "tolist" in self.breaks and sum(total.tolist()) < 0:
            x = x.clamp(-1e4, 1e4)
        x = self.b5(x)
        return x.float().square().mean() + peak + mean + total.sum()


class Large(nn.Module):
    """Large products, a few breaks in a full queue: one that waits, one that need not, one that is small."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.b0, self.b1, self.b2 = Block(width, width), Block(width, width), Block(width, width)
        self.b3, self.b4 = Block(width, width), Block(width, width)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.b0(x)
        if "early_logger" in self.breaks:
            logger.info("block %s is done", 0)
        x = self.b1(x)
        peak = x.abs().max()
        if "branch" in self.breaks and peak > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b2(x)
        if "late_logger" in self.breaks:
            logger.info("block %s is done", 2)
        x = self.b3(x)
        mean = x.mean()
        if "item" in self.breaks and mean.item() > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b4(x)
        return x.float().square().mean() + peak + mean


class Copies(nn.Module):
    """Inputs come from the host, and some values go back to it."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.b0, self.b1, self.b2 = Block(width, width), Block(width, width), Block(width, width)
        self.b3 = Block(width, width)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.to(self.b0.first.weight.device, non_blocking=True)
        x = self.b0(x)
        if "all_host" in self.breaks:
            all_on_the_host(x)
        x = self.b1(x)
        peak = x.abs().max()
        if "branch" in self.breaks and peak > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b2(x)
        if "numpy" in self.breaks:
            on_the_host(x)
        x = self.b3(x)
        return x.float().square().mean() + peak


class Convolutions(nn.Module):
    """Blocks of a small convolutional net, each of which looks at a number of its own."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.c0, self.c1 = self._block(width), self._block(width)
        self.c2, self.c3 = self._block(width), self._block(width)
        self.breaks = breaks

    @staticmethod
    def _block(width: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.c0(self.stem(x))
        first = x.mean()
        if "first" in self.breaks and first.item() > 1e4:
            x = x * 0.5
        x = x + self.c1(x)
        second = x.abs().amax()
        if "second" in self.breaks and second.item() > 1e4:
            x = x * 0.5
        x = x + self.c2(x)
        third = x.mean()
        if "third" in self.breaks and third.item() > 1e4:
            x = x * 0.5
        x = x + self.c3(x)
        return x.mean((2, 3)).float().square().mean() + first + second + third


class Decoder(nn.Module):
    """One token of a loop that generates: attention over a cache, and what such loops ask in between."""

    def __init__(self, width: int, length: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.b0, self.b1, self.head = Block(width, 4 * width), Block(width, width), nn.Linear(width, 512)
        self.register_buffer("keys", torch.zeros(8, length, width))
        self.register_buffer("values", torch.zeros(8, length, width))
        self.breaks = breaks

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        self.keys.index_copy_(1, position, key)
        self.values.index_copy_(1, position, value)
        if "progress" in self.breaks:
            logger.info("one more token")
        x = x + self.out(torch.nn.functional.scaled_dot_product_attention(query, self.keys, self.values))
        x = self.b0(x)
        broken = x.isnan().any()
        if "check" in self.breaks and broken:
            x = torch.zeros_like(x)
        x = self.b1(x)
        token = self.head(x).argmax(-1)
        ended = (token == 600).all()
        if "end" in self.breaks and ended.item():
            token = token * 0
        return torch.nn.functional.one_hot(token, 512).float().mean() + broken + ended


class WithLstm(nn.Module):
    """Layers around an LSTM, at which Dynamo breaks. Without the break the LSTM runs after the step,
    eagerly."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.b0, self.b1 = Block(width, width), Block(width, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.b0(x)
        if "lstm" in self.breaks:
            x = self.lstm(x)[0]
        return self.b1(x).float().square().mean()

    def after(self, x: torch.Tensor) -> None:
        if "lstm" not in self.breaks:
            self.lstm(x)


@torch.compiler.disable
def summary(x: torch.Tensor) -> torch.Tensor:
    """A few operations that stay, in eager: statistics that somebody keeps."""
    return torch.stack([x.float().mean(), x.float().std(), x.float().abs().amax()])


class Ranking(nn.Module):
    """Items of a list are embedded, look at each other and get a score, with checks between the layers."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.items, self.norm = nn.Embedding(4096, width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.b0, self.b1, self.score = Block(width, 2 * width), Block(width, 2 * width), nn.Linear(width, 1)
        self.breaks = breaks

    def forward(self, items: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.items(items))
        temperature = float(scale) if "scale" in self.breaks else 1.0
        query, key, value = (self.qkv(x) * temperature).chunk(3, -1)
        x = x + self.out(torch.nn.functional.scaled_dot_product_attention(query, key, value))
        if "print" in self.breaks:
            print(end="")
        x = self.b0(x)
        if "summary" in self.breaks:
            seen = summary(x)
        else:
            seen = torch.stack([x.float().mean(), x.float().std(), x.float().abs().amax()])
        x = self.b1(x)
        best = self.score(x).squeeze(-1)
        if "finite" in self.breaks and not best.isfinite().all():
            best = best.clamp(-1e4, 1e4)
        return best.softmax(-1).float().square().mean() + seen.sum()


class Looks(nn.Module):
    """Equal blocks with equal breaks in equal places, but for the way in which each looks at its number."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.b0, self.b1, self.b2 = Block(width, width), Block(width, width), Block(width, width)
        self.b3, self.b4, self.b5 = Block(width, width), Block(width, width), Block(width, width)
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.b0(x)
        first = x.mean()
        if "print_early" in self.breaks:
            print(end="")
        x = self.b1(x)
        second = x.mean()
        if "item" in self.breaks and second.item() > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b2(x)
        third = x.mean()
        if "print_late" in self.breaks:
            print(end="")
        x = self.b3(x)
        fourth = x.mean()
        if "float" in self.breaks and float(fourth) > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b4(x)
        fifth = x.mean()
        if "branch" in self.breaks and fifth > 1e4:
            x = x.clamp(-1e4, 1e4)
        x = self.b5(x)
        return x.float().square().mean() + first + second + third + fourth + fifth


class Tagging(nn.Module):
    """A convolutional tagger of texts that asks for lengths and reports on itself."""

    def __init__(self, width: int, breaks: frozenset[str]) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(4096, width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Conv1d(width, width, 5, padding=2), nn.Conv1d(width, width, 3, padding=1)
        self.b0, self.b1, self.head = Block(width, 2 * width), Block(width, 2 * width), nn.Linear(width, 32)
        self.breaks = breaks

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        longest = lengths.amax()
        if "longest" in self.breaks and int(longest) > 4096:
            words = words[:, :4096]
        x = self.norm(self.words(words)).transpose(1, 2)
        x = torch.nn.functional.gelu(self.narrow(torch.nn.functional.gelu(self.wide(x)))).transpose(1, 2)
        size = x.float().square().mean()
        if "report" in self.breaks:
            logger.info("activations %.3f", size)
        x = self.b0(x)
        spread = x.float().std()
        if "narrow" in self.breaks and not spread > -1:
            x = torch.zeros_like(x)
        x = self.b1(x)
        tags = self.head(x).argmax(-1)
        counts = torch.nn.functional.one_hot(tags, 32).sum((0, 1))
        if "counts" in self.breaks and max(counts[:4].tolist()) < 0:
            counts = counts * 0
        return counts.float().square().mean() + size + spread + longest


def _sizes(device: str, gpu: tuple[int, ...], cpu: tuple[int, ...]) -> tuple[tuple[int, ...], torch.dtype]:
    return (cpu, torch.float32) if device == "cpu" else (gpu, torch.float16)


def five(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Small regions: the host sets the pace."""
    (rows, width, inner), dtype = _sizes(device, (2048, 512, 512), (16, 64, 64))
    net = Five(width, inner, frozenset(FIVE) - set(without)).to(device, dtype).eval()
    counts = torch.ones(4, device=device, dtype=torch.int64)
    return net, (torch.randn(rows, width, device=device, dtype=dtype), counts)


def learning(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The same in float32, to be trained."""
    width = 512 if device != "cpu" else 64
    net = Five(width, width, frozenset(FIVE) - set(without)).to(device).train()
    counts = torch.ones(4, device=device, dtype=torch.int64)
    return net, (torch.randn(512 if device != "cpu" else 16, width, device=device), counts)


def large(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Large regions: the device sets the pace."""
    (rows, width), dtype = _sizes(device, (4096, 4096), (64, 256))
    net = Large(width, frozenset(LARGE) - set(without)).to(device, dtype).eval()
    return net, (torch.randn(rows, width, device=device, dtype=dtype),)


def copies(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Copies in both directions between regions of medium size."""
    (rows, width), dtype = _sizes(device, (2048, 1536), (32, 128))
    net = Copies(width, frozenset(COPIES) - set(without)).to(device, dtype).eval()
    x = torch.randn(rows, width, dtype=dtype)
    return net, (x.pin_memory() if device != "cpu" else x,)


def with_lstm(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A skipped function whose work stays, whatever one does."""
    (rows, length, width), dtype = _sizes(device, (64, 64, 256), (4, 16, 64))
    net = WithLstm(width, frozenset(LSTM) - set(without)).to(device, dtype).eval()
    return net, (torch.randn(rows, length, width, device=device, dtype=dtype),)


def convolutions(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A convolutional net with a number out of each block."""
    (images, side, width), dtype = _sizes(device, (32, 32, 64), (2, 8, 16))
    net = Convolutions(width, frozenset(CONVOLUTIONS) - set(without)).to(device, dtype).eval()
    return net, (torch.randn(images, 3, side, side, device=device, dtype=dtype),)


def decoder(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A step of a loop that generates."""
    (length, width), dtype = _sizes(device, (1024, 512), (32, 64))
    net = Decoder(width, length, frozenset(DECODER) - set(without)).to(device, dtype).eval()
    x = torch.randn(8, 1, width, device=device, dtype=dtype)
    return net, (x, torch.tensor([length // 2], device=device))


def ranking(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Lists of items to be put in order."""
    (lists, length, width), dtype = _sizes(device, (64, 128, 384), (4, 16, 64))
    net = Ranking(width, frozenset(RANKING) - set(without)).to(device, dtype).eval()
    items = torch.arange(lists * length, device=device).reshape(lists, length) % 4096
    return net, (items, torch.ones((), device=device, dtype=dtype))


def looks(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """One kind of break against another, all else equal."""
    (rows, width), dtype = _sizes(device, (2048, 512), (16, 64))
    net = Looks(width, frozenset(LOOKS) - set(without)).to(device, dtype).eval()
    return net, (torch.randn(rows, width, device=device, dtype=dtype),)


def tagging(device: str, without: tuple[str, ...]) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Texts to be tagged."""
    (texts, length, width), dtype = _sizes(device, (32, 128, 256), (4, 16, 64))
    net = Tagging(width, frozenset(TAGGING) - set(without)).to(device, dtype).eval()
    words = torch.arange(texts * length, device=device).reshape(texts, length) % 4096
    return net, (words, torch.full((texts,), length, device=device))


FIVE = ("branch", "item", "logger", "numpy", "tolist")
LARGE = ("early_logger", "branch", "late_logger", "item")
COPIES = ("all_host", "branch", "numpy")
LSTM = ("lstm",)
CONVOLUTIONS = ("first", "second", "third")
DECODER = ("progress", "check", "end")
RANKING = ("scale", "print", "summary", "finite")
LOOKS = ("print_early", "item", "print_late", "float", "branch")
TAGGING = ("longest", "report", "narrow", "counts")

PROGRAMS = {
    "host_bound": Program(FIVE, five),
    "device_bound": Program(LARGE, large),
    "copies": Program(COPIES, copies),
    "reduce_overhead": Program(FIVE, five, mode="reduce-overhead"),
    "training": Program(FIVE, learning, train=True),
    "lstm": Program(LSTM, with_lstm),
    "cpu": Program(FIVE, five, device="cpu"),
    "convolutions": Program(CONVOLUTIONS, convolutions),
    "decoder": Program(DECODER, decoder),
    "ranking": Program(RANKING, ranking),
    "looks": Program(LOOKS, looks),
    "tagging": Program(TAGGING, tagging),
}


def steps_of(name: str, device: str, without: tuple[str, ...]) -> Callable[[], object]:
    """One step of a program, compiled."""
    program = PROGRAMS[name]
    torch.manual_seed(0)
    net, inputs = program.make(program.device or device, without)
    mode = None if program.mode == "default" else program.mode
    compiled = torch.compile(net, mode=mode)
    if program.train:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

        def learn() -> None:
            optimizer.zero_grad()
            compiled(*inputs).backward()
            optimizer.step()

        return learn

    def infer() -> torch.Tensor:
        with torch.no_grad():
            if mode is not None:
                torch.compiler.cudagraph_mark_step_begin()
            result = compiled(*inputs)
            if hasattr(net, "after"):
                net.after(*inputs)
            return result  # type: ignore[no-any-return]

    return infer


def main() -> None:
    """Run some steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--without", nargs="*", default=())
    parser.add_argument("--turns", nargs=2, metavar=("GO", "DONE"), help="run blocks of steps in turns")
    args = parser.parse_args()
    step = steps_of(args.name, args.device, tuple(args.without))

    def block(number: int) -> None:
        for _ in range(number):
            step()
        if args.device != "cpu":
            torch.cuda.synchronize()

    if args.turns:
        block(WARM)
        turns.blocks(args.turns, lambda: block(BLOCK))
    else:
        block(args.steps)


if __name__ == "__main__":
    main()
