"""The programs against which ``bench_gpu.py`` holds bench: torch alone, nothing of breakscope in them."""

from __future__ import annotations

# One arm, in a process of its own: SCRIPT MODE FIXES. It makes the model, says so, and waits; then it
# compiles, says so, and for each line that it reads it makes one block of the script's steps and says what
# one of them took: nothing is recorded or waited for between the steps of a block. Then it makes as many with
# two events around each, and says what took the middle one of them. It also says what a loop of plain Python
# took before and after, for a lent host shares its cores; told the best loop so far, it looks for a CPU like
# that first. After the last line it says how long the device worked in a step.
EVENTS = r"""
import json, os, random, re, statistics, sys, tempfile, textwrap, time, torch
SETTLE, BLOCK = 5, 20
path, mode, fixes = sys.argv[1:4]
if fixes:
    from breakscope import overlay
    overlay.install(fixes)
pattern = r"(.*)\n((?:with torch.no_grad...\n    )?for _ in range.*)"
setup, loop = re.match(pattern, open(path).read(), re.DOTALL).groups()
body = re.search(r"for _ in range.*?\n(.*?)(?=\n\S|\Z)", loop, re.DOTALL)[1]
on_gpu = torch.cuda.is_available()
space = {}
exec(setup, space)
exec("def step():\n" + textwrap.indent(textwrap.dedent(body), "    "), space)
step, wait = space["step"], torch.cuda.synchronize if on_gpu else lambda: None

def steps(count):
    for _ in range(count):
        torch.compiler.cudagraph_mark_step_begin()
        step()

def loop_ms():
    began = time.perf_counter()
    for number in range(50_000):
        number * number
    return (time.perf_counter() - began) * 1e3

def find_fast_cpu(best_ms):
    allowed = os.sched_getaffinity(0)
    for cpu in random.sample(sorted(allowed), min(12, len(allowed))):
        if min(loop_ms(), loop_ms()) <= 1.1 * best_ms:
            break
        os.sched_setaffinity(0, {cpu})
        os.sched_setaffinity(0, allowed)

def block(best_ms):
    find_fast_cpu(best_ms)
    steps(SETTLE)
    before = loop_ms()
    steps(SETTLE)
    first, last = moment(), moment()
    record(first)
    steps(BLOCK)
    record(last)
    wait()
    pairs = [(moment(), moment()) for _ in range(BLOCK)]
    for pair in pairs:
        record(pair[0])
        steps(1)
        record(pair[1])
    wait()
    each = statistics.median(between(*pair) for pair in pairs)
    return [between(first, last) / BLOCK, each, before, loop_ms()]

def moment():
    if not on_gpu:
        return [0.0]
    event = torch.cuda.Event(enable_timing=True)
    event.record()  # made by its first record
    return event

def record(one):
    if on_gpu:
        one.record()
    else:
        one[0] = time.perf_counter()

def between(one, other):
    return one.elapsed_time(other) if on_gpu else (other[0] - one[0]) * 1e3

def busy():
    with torch.profiler.profile() as profiler:
        steps(3)
        wait()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiler.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    on_device = ("kernel", "gpu_memcpy", "gpu_memset")
    return sum(one["dur"] for one in events if one.get("cat") in on_device) / 3e3

with torch.set_grad_enabled("no_grad" not in loop):
    wait()
    print("made", flush=True)
    sys.stdin.readline()
    if mode != "eager":
        space["model"] = torch.compile(space["model"], mode=None if mode == "default" else mode)
    steps(30)
    wait()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(block(float(line))), flush=True)
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
