"""The text of exported scripts. Doubled braces are those of the script."""

HEAD = '''"""{what}. Written by breakscope bench --export."""

import argparse
import itertools
import operator
import pathlib
import statistics
import time

import torch

inf, nan, device = float("inf"), float("nan"), torch.device
torch.manual_seed(0)


def tensor(dtype, shape, stride, device, values=None):
    """A tensor by shape and stride: random, or with the values that it had where those may be indices."""
    if values is not None:  # flat, with the gaps that the strides leave
        return VALUES[values].to(device).clone().as_strided(shape, stride)
    reach = 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    base = torch.empty(reach, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        base = torch.randn(reach, device=device, dtype=torch.float32).to(dtype)
    else:
        base.zero_()
    return base.as_strided(shape, stride)


def leaves(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)


def seconds(call, on_gpu, repeat):
    """Times of single calls, caches flushed before each."""
    flush = torch.zeros(64 * 1024**2, dtype=torch.float32, device="cuda" if on_gpu else "cpu")
    call()
    times = []
    for _ in range(repeat):
        flush.sum()  # read, not written: dirty lines would be written back in the call's own time
        if on_gpu:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            call()
            last.record()
            torch.cuda.synchronize()
            times.append(first.elapsed_time(last) / 1e3)
        else:
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
    return times


def distance(ours, theirs):
    """Norm of the difference over the norm, the worst of all tensors."""
    worst = 0.0
    for one, two in zip(leaves(ours), leaves(theirs)):
        if not one.is_floating_point():
            continue
        one, two = one.double(), two.double()
        worst = max(worst, float((one - two).norm() / two.norm().clamp_min(1e-30)))
    return worst
'''

KERNEL = '''
FILE = "{values}"
VALUES = torch.load(pathlib.Path(__file__).with_name(FILE), weights_only=True) if FILE else {{}}
CHECKS, BYTES, FLOPS = {checks}, {bytes}, {flops}

{definition}


{eager}


def inputs():
    return {arguments}


def check_fragment(args, kwargs):
    """Against the ATen calls that the kernel was made of.

    Which argument is which input of theirs is not written anywhere, so each that fits by shape is tried, and
    the nearest counts: random inputs do not agree by chance.
    """
    if eager is None:
        print("no check: what the kernel computes is not known as eager code; its graph's script has a check")
        return
    before = [one.clone(memory_format=torch.preserve_format) for one in args if isinstance(one, torch.Tensor)]
    kernel(*args, **kwargs)
    after = [one for one in args if isinstance(one, torch.Tensor)]
    fits = [[at for at, one in enumerate(before) if one.shape == torch.Size(shape)] for shape, _ in READS]
    nearest = None
    try:
        for choice in itertools.islice(itertools.product(*fits), 5_000):
            if len(set(choice)) < len(choice):
                continue
            results = eager(*(before[at] for at in choice))
            worst = max(min(gaps(one, after), default=float("inf")) for one in results)
            nearest = worst if nearest is None else min(nearest, worst)
    except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
        print(f"no check: eager does not run: {{str(error).splitlines()[0]}}")
        return
    if nearest is None or nearest == float("inf"):
        print("no check: the kernel's arguments do not fit the shapes of its eager code")
    else:
        print(f"against eager: relative difference {{nearest:.2g}}")


def gaps(result, written):
    for one in written:
        if one.numel() == result.numel():
            yield distance([one.reshape(-1)], [result.reshape(-1).to(one.dtype)])


def wide(value):
    """The same inputs in double precision."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {{key: wide(item) for key, item in value.items()}}
    return type(value)(wide(item) for item in value) if isinstance(value, (list, tuple)) else value


def check(args, kwargs):
    if not CHECKS:
        check_fragment(args, kwargs)
        return
    copies = wide(args), wide(kwargs)
    ours = kernel(*args, **kwargs)
    try:
        theirs = kernel(*copies[0], **copies[1])
    except (RuntimeError, NotImplementedError) as error:
        print(f"no check: the op does not take float64: {{str(error).splitlines()[0]}}")
        return
    print(f"against eager in float64: relative difference {{distance(ours, theirs):.2g}}")


def main(repeat):
    args, kwargs = inputs()
    on_gpu = any(one.is_cuda for one in leaves((args, kwargs)))
    with torch.no_grad():
        check(args, kwargs)
        median = statistics.median(seconds(lambda: kernel(*args, **kwargs), on_gpu, repeat))
    rates = [f"{{median * 1e6:.2f}} us a call (launch included, caches flushed)"]
    rates += [f"{{BYTES / median / 1e9:.1f}} GB/s"] if BYTES else []
    rates += [f"{{FLOPS / median / 1e12:.3g}} TFLOP/s"] if FLOPS else []
    print(", ".join(rates))
'''

GRAPH = """
{imports}

VALUES = {{}}


class Graph(torch.nn.Module):
{code}


def inputs():
    return [
        {inputs}
    ]


def main(repeat):
    graph, args = Graph(), inputs()
    compiled = torch.compile(graph)
    on_gpu = any(one.is_cuda for one in leaves(args))
    with torch.set_grad_enabled({grad}):
        print(f"compiled against eager: relative difference {{distance(compiled(*args), graph(*args)):.2g}}")
        for name, call in (("eager", graph), ("compiled", compiled)):
            median = statistics.median(seconds(lambda: call(*args), on_gpu, repeat))
            print(f"{{name}}: {{median * 1e3:.4f}} ms a call (caches flushed)")
"""

FOOT = """

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=30)
    main(parser.parse_args().repeat)
"""
