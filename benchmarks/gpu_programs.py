"""The programs against which ``bench_gpu.py`` holds bench: torch alone, nothing of breakscope in them."""

from __future__ import annotations

# One arm, in a process of its own. For each line that it reads it makes one block of calls and says what one
# of them took: nothing is recorded or waited for between the calls of a block; and how long a loop of plain
# Python took before and after the block, for a lent host shares its cores. After the last line it says how
# long the device worked in a call: two compiles of a model may choose other kernels, and it shows there.
EVENTS = """
import json, sys, tempfile, time, torch
SETTLE, BLOCK = 10, 20
source, mode = open(sys.argv[1]).read(), sys.argv[2]
namespace = {}
exec(source.partition("\\nwith torch.no_grad():\\n    for")[0], namespace)
call = source.partition("        model(")[2].partition(")\\n")[0]
run = eval(f"lambda model: model({call})", namespace)
model = namespace["model"]
if mode != "eager":
    model = torch.compile(model, mode=None if mode == "default" else mode)

def calls(count):
    for _ in range(count):
        torch.compiler.cudagraph_mark_step_begin()
        run(model)

def loop_ms():
    began = time.perf_counter()
    for number in range(100_000):
        number * number
    return (time.perf_counter() - began) * 1e3

def block():
    loop_ms()
    before = loop_ms()
    calls(SETTLE)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    calls(BLOCK)
    last.record()
    torch.cuda.synchronize()
    return [first.elapsed_time(last) / BLOCK, before, loop_ms()]

def busy():
    with torch.profiler.profile() as profiler:
        calls(3)
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiler.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    on_device = ("kernel", "gpu_memcpy", "gpu_memset")
    return sum(one["dur"] for one in events if one.get("cat") in on_device) / 3e3

with torch.no_grad():
    calls(30)
    torch.cuda.synchronize()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(block()), flush=True)
    print(busy(), flush=True)
"""
# What torch's own tool says of the same model's kernels, if it gets that far.
OWN = """
import os, sys
os.environ["TORCHINDUCTOR_BENCHMARK_KERNEL"] = "1"
import torch
source = open(sys.argv[1]).read()
namespace = {}
exec(source.partition("\\nwith torch.no_grad():\\n    for")[0], namespace)
call = source.partition("        model(")[2].partition(")\\n")[0]
model = torch.compile(namespace["model"])
with torch.no_grad():
    eval(f"lambda model: model({call})", namespace)(model)
from torch._inductor.wrapper_benchmark import benchmark_all_kernels
benchmark_all_kernels("model", None)
"""

CEILINGS = """
import json, statistics, torch
def ms(action):
    for _ in range(3): action()
    times = []
    for _ in range(9):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record(); action(); b.record(); torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return statistics.median(times)
x = torch.randn(1 << 31, dtype=torch.float16, device="cuda"); y = torch.empty_like(x)
found = {"copy": 2 * x.nbytes / ms(lambda: y.copy_(x)) / 1e9}
del x, y
for dtype in (torch.float16, torch.bfloat16):
    best = 0.0
    for side in (4096, 6144, 8192, 12288):
        a, b = (torch.randn(side, side, dtype=dtype, device="cuda") for _ in range(2))
        best = max(best, 2 * side ** 3 / ms(lambda: a @ b) / 1e9)
    found[str(dtype).removeprefix("torch.")] = best
print(json.dumps(found))
"""
