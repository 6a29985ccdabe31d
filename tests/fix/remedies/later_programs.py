"""Scripts of which a short run says nothing of what a long one does: ``STEPS`` tells how long.

Each does something at step 20 that its first six steps did not, and that a remedy could change.
"""

from __future__ import annotations

import textwrap

HEAD = """
import os
import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "6"))
torch.manual_seed(0)
"""

_BODIES = {
    "a batch of size 1": """
        @torch.compile
        def double(x):
            return x * 2 + 1

        for step in range(STEPS):
            x = torch.ones(1 if step == 20 else 4 + step % 5, 3)
            y = double(x)
            print(step, y.shape[0], y.sum().item())
    """,
    "a size that other code fixes": """
        @torch.compile
        def add(x, table):
            return x * 2 + table

        for step in range(STEPS):
            x = torch.ones(8 if step == 20 else 4 + step % 3)
            table = torch.arange(8.0) if step == 20 else torch.ones(1)
            y = add(x, table)
            print(step, y.sum().item())
    """,
    "a mask that is None": """
        @torch.compile
        def pool(x, mask):
            return x.sum() if mask is None else (x * mask).sum()

        for step in range(STEPS):
            x = torch.ones(4 + step % 5)
            mask = None if step == 20 else torch.ones(4 + step % 5)
            y = pool(x, mask)
            print(step, y.item())
    """,
    "a mask that is None without a word of it": """
        @torch.compile
        def pool(x, mask):
            return x.sum() if mask is None else (x * mask).sum()

        masks = {20: None}
        for step in range(STEPS):
            x = torch.ones(4 + step % 5)
            mask = masks.get(step, torch.ones(4 + step % 5))
            y = pool(x, mask)
            print(step, y.item())
    """,
    "a tensor of fewer dimensions": """
        @torch.compile
        def total(x):
            return (x * 2).sum()

        for step in range(STEPS):
            x = torch.ones(4) if step == 20 else torch.ones(3, 4 + step % 5)
            y = total(x)
            print(step, y.item())
    """,
    "marks that travel with the tensor": """
        import io

        @torch.compile
        def double(x):
            return x * 2

        for step in range(STEPS):
            x = torch.ones(4 + step % 5)
            y = double(x)
            print(step, y.sum().item())
            if step == 20:
                file = io.BytesIO()
                torch.save(x, file)
                file.seek(0)
                print(torch.load(file, weights_only=True).shape, sorted(vars(x)))
    """,
    "one row that broadcasts": """
        @torch.compile
        def add(x, y):
            return x + y

        for step in range(STEPS):
            n = 1 + step % 3
            x, y = torch.ones(n, 4), torch.ones(1 if step == 20 else n, 4)
            z = add(x, y)
            print(step, z.shape[0], z.sum().item())
    """,
    "an integer tensor": """
        @torch.compile
        def scaled(x, factor):
            return x * factor

        for step in range(STEPS):
            x = torch.arange(4) if step == 20 else torch.arange(4.0)
            y = scaled(x, 0.5 + step / 8)
            print(step, y.dtype, y.sum().item())
    """,
    "a number that is asked for its type": """
        @torch.compile
        def scaled(x, factor, plain=False):
            if plain and isinstance(factor, float):
                return x * 2
            return x * factor

        for step in range(STEPS):
            y = scaled(torch.ones(4), 0.5 + step / 8, step == 20)
            print(step, y.sum().item())
    """,
    "a number that is kept": """
        kept = []

        @torch.compile
        def scaled(x, factor):
            kept.append(factor)
            return x * factor

        for step in range(STEPS):
            y = scaled(torch.ones(4), 0.5 + step / 8)
            print(step, y.sum().item())
            if step == 20:
                print(kept[:2])
    """,
    "a number for a shape": """
        @torch.compile
        def scaled(x, factor, pad=False):
            y = x * factor
            return torch.cat([y, torch.full((2,), factor)]) if pad else y

        for step in range(STEPS):
            y = scaled(torch.ones(4), 0.5 + step / 8, step == 20)
            print(step, y.dtype, y.sum().item())
    """,
    "a number that is an int": """
        @torch.compile
        def scaled(x, factor):
            return x * factor

        for step in range(STEPS):
            x = torch.arange(4) if step == 20 else torch.arange(4.0)
            factor = 3 if step == 20 else 0.5 + step / 8
            y = scaled(x, factor)
            print(step, y.dtype, y.sum().item())
    """,
    "a hook that sees the number": """
        class Scaled(nn.Module):
            def forward(self, x, factor=1.0):
                return x * factor

        seen = []
        net = Scaled()
        net.register_forward_pre_hook(lambda module, args, kwargs: seen.append(kwargs["factor"]), with_kwargs=True)
        compiled = torch.compile(net)
        for step in range(STEPS):
            factor = 0.5 + step / 8
            y = compiled(torch.ones(4), factor=factor)
            print(step, y.sum().item())
            if step == 20:
                print(seen[:3])
    """,
    "a learning rate in a checkpoint": """
        import json
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.125)

        @torch.compile
        def update():
            optimizer.step()

        for step in range(STEPS):
            optimizer.zero_grad()
            loss = net(torch.ones(3, 4)).square().mean()
            loss.backward()
            update()
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * 0.5
            print(f"{step} {loss.item():.3f}")
            if step == 20:
                print(json.dumps(optimizer.state_dict()["param_groups"][0]["lr"]))
    """,
    "a learning rate of two groups": """
        net, other = nn.Linear(4, 1), nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([{"params": [one]} for one in (net.weight, net.bias, other)], lr=0.125)

        @torch.compile
        def update():
            optimizer.step()

        for step in range(STEPS):
            optimizer.zero_grad()
            loss = net(torch.ones(3, 4)).square().mean() + other.square().sum()
            loss.backward()
            update()
            optimizer.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"] * 0.5
            print(f"{step} {loss.item():.3f}")
            if step == 20:
                for group in optimizer.param_groups[1:]:
                    group["lr"] *= 0.5
                print([float(group["lr"]) for group in optimizer.param_groups])
    """,
    "a learning rate in single precision": """
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        @torch.compile
        def update():
            optimizer.step()

        for step in range(STEPS):
            optimizer.zero_grad()
            loss = net(torch.ones(3, 4)).square().mean()
            loss.backward()
            update()
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * 0.9
            print(f"{step} {loss.item():.3f}")
            if step == 20:
                print(float(optimizer.param_groups[0]["lr"]))
    """,
    "an attribute that is set again": """
        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.temperature = 1.0

            def forward(self, x):
                return torch.softmax(x / self.temperature, dim=-1)

        router = Router()
        compiled = torch.compile(router)
        for step in range(STEPS):
            y = compiled(torch.arange(4.0))
            router.temperature *= 0.5
            if step == 20:
                router.temperature = 1.0
            print(step, f"{y.max().item():.3f}")
    """,
    "an attribute in half precision": """
        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.temperature = 1.1

            def forward(self, x):
                return x / self.temperature

        router = Router()
        compiled = torch.compile(router)
        for step in range(STEPS):
            y = compiled(torch.arange(4.0))
            router.temperature *= 0.9
            if step == 20:
                router.half()
                print(f"{float(router.temperature):.9f}")
            print(step, f"{y.max().item():.3f}")
    """,
    "an attribute that was noted": """
        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.temperature = 1.0

            def forward(self, x):
                return x / self.temperature

        router, noted = Router(), []
        compiled = torch.compile(router)
        for step in range(STEPS):
            y = compiled(torch.arange(4.0))
            noted.append(router.temperature)
            router.temperature *= 0.5
            print(step, f"{y.max().item():.3f}")
            if step == 20:
                print([float(one) for one in noted])
    """,
    "an attribute that an average takes up": """
        from torch.optim.swa_utils import AveragedModel

        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))
                self.temperature = 1.0

            def forward(self, x):
                return x * self.scale / self.temperature

        router = Router()
        average = AveragedModel(router, use_buffers=True)
        compiled = torch.compile(router)
        for step in range(STEPS):
            y = compiled(torch.arange(4.0))
            router.temperature *= 0.5
            print(step, f"{y.max().item():.3f}")
            if step >= 20:
                average.update_parameters(router)
                print(float(average.module.temperature), len(list(router.buffers())))
    """,
    "an inference mode with a flag": """
        @torch.compile
        def double(x):
            return x * 2

        with torch.inference_mode():
            cached = torch.ones(3)
        plain = torch.ones(3)
        for step in range(STEPS):
            y = double(cached if step % 2 else plain)
            print(step, y.sum().item())
            if step == 20:
                with torch.inference_mode(False):
                    print(double(torch.ones(3)).is_inference())
    """,
    "an inference mode that is asked for": """
        @torch.compile
        def double(x):
            return x * 2

        with torch.inference_mode():
            cached = torch.ones(3)
        plain = torch.ones(3)
        for step in range(STEPS):
            y = double(cached if step % 2 else plain)
            print(step, y.sum().item())
            if step == 20:
                print(cached.is_inference())
    """,
    "a checkpoint made before": """
        import copy, io, pickle

        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))
                self.temperature = 1.0

            def forward(self, x):
                return x * self.scale / self.temperature

        router = Router()
        before = {"scale": torch.ones(1)}
        compiled = torch.compile(router)
        for step in range(STEPS):
            y = compiled(torch.arange(4.0))
            router.temperature *= 0.5
            print(step, f"{y.max().item():.3f}")
            if step == 20:
                print(list(router.state_dict()), router.load_state_dict(before, strict=True))
                for other in (copy.deepcopy(router), pickle.loads(pickle.dumps(router))):
                    print(float(other.temperature), other(torch.ones(1)).item())
    """,
    "an option that other code sees": """
        from torch._dynamo.utils import counters

        class Layer(nn.Module):
            def __init__(self, index):
                super().__init__()
                self.index = index

            def forward(self, x):
                y = torch.tanh(x)
                torch._dynamo.graph_break()
                return x + y / (1 + self.index)

        class Tower(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(Layer(index) for index in range(12))

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        tower, other = torch.compile(Tower()), Layer(0)

        @torch.compile
        def with_other(x):
            return x + other.index

        for step in range(STEPS):
            print(step, f"{tower(torch.ones(2)).sum().item():.4f}")
            if step == 20:
                counters.clear()
                for other.index in range(2, 7):
                    with_other(torch.ones(2))
                print(counters["stats"]["unique_graphs"])
    """,
}

PROGRAMS = {name: HEAD + textwrap.dedent(body) for name, body in _BODIES.items()}
