"""What the function makes or sets itself is led to that, and not to what its caller passes."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.diagnose import made_of
from breakscope.diagnose.becomes import is_tensor
from breakscope.project.sources import Sources
from breakscope.report.model import Finding, Report

pytestmark = pytest.mark.torch
Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def cause_of(report: Report, finding: Finding) -> tuple[str, int] | None:
    found = {one.fingerprint: (one.code, one.location.line) for one in report.findings}
    return found.get(str(finding.caused_by))


ARRAYS = """
    import numpy as np
    import torch

    def shift(shape, stride):
        sx = (np.arange(0, shape[1]) + 0.5) * stride
        sy = (np.arange(0, shape[0]) + 0.5) * stride
        a, b = np.meshgrid(sx, sy)
        return np.stack([a.ravel(), b.ravel()], 1)

    class Anchors(torch.nn.Module):
        def forward(self, x):
            s = np.array(x.shape[2:])
            out = np.zeros((0, 2))
            for stride in (4, 8):
                out = np.append(out, shift((s + stride - 1) // stride, stride), axis=0)
            return torch.from_numpy(out.astype(np.float32)) + x.mean()

    anchors = torch.compile(Anchors())
    for h, w in ((16, 16), (16, 32), (24, 16)):
        anchors(torch.ones(1, 3, h, w))
"""


def test_an_array_that_is_made_here_goes_with_its_break(scan: Scan) -> None:
    report = scan(ARRAYS)
    arrays = [one for one in coded(report, "BS201") if "from_numpy" in one.reason]
    assert arrays
    for one in arrays:
        assert cause_of(report, one) in {("BS102", 6), ("BS102", 7)}, one.advice
        assert "an array that is made here" in str(one.advice)
    assert "[n // 2 for n in x.shape]" in str(coded(report, "BS102")[0].advice)


PAIR = """
    import numpy as np
    import torch

    index = {"a": (0, 1), "b": (1, 3)}

    @torch.compile
    def f(x):
        i = np.array(index["b"])
        return x[:, i[0] : i[1]]

    f(torch.ones(2, 3))
"""


def test_an_array_of_pythons_numbers_is_left_out(scan: Scan) -> None:
    (site,) = (one for one in scan(PAIR).findings if one.caused_by is None)
    said = "`i` is an array that numpy makes of Python's numbers in line 9"
    assert said in str(site.advice)
    assert "leave numpy out there" in str(site.advice)
    assert not scan(PAIR.replace('np.array(index["b"])', 'index["b"]')).findings


PREDICTED = """
    import torch

    def mask(lengths):
        x = torch.arange(lengths.max(), dtype=lengths.dtype)
        return x < lengths[:, None]

    @torch.compile
    def step(x, frames):
        y = x * 2
        return y.sum() * mask(frames.sum(1)).float().mean()

    for long, each in ((6, 2), (8, 2), (5, 3), (9, 3)):
        step(torch.rand(2, long), torch.full((2, long), each))
"""


def test_a_size_that_is_read_of_data_is_no_size_of_the_call(scan: Scan) -> None:
    report = scan(PREDICTED)
    (made,) = (one for one in coded(report, "BS201") if one.guard and one.guard.source == "value from line 5")
    assert cause_of(report, made) == ("BS102", 5)


ONCE = """
    import torch

    class Norm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.ready = False
            self.shift = torch.nn.Parameter(torch.zeros(3))

        def forward(self, x):
            if not self.ready:
                with torch.no_grad():
                    self.shift.data.copy_(-x.mean(0))
                self.ready = True
            return x + self.shift

    norm = torch.compile(Norm())
    for _ in range(3):
        norm(torch.ones(2, 3))
"""


def test_a_flag_that_the_first_call_sets_is_left_to_that(scan: Scan) -> None:
    (flag,) = coded(scan(ONCE), "BS209")
    assert "make the first call in eager: the code sets it itself, in line 14" in str(flag.advice)
    (flag,) = coded(scan(ONCE.replace("self.ready = True", "pass") + "        norm.ready = True\n"), "BS209")
    assert "set it before the first call and keep it" in str(flag.advice)


MODULE = """
    import torch

    class Outer(torch.nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def run(self, x):
            return self.f(x) + 1

    linear = torch.nn.Linear(3, 3)

    class Manager:
        def __enter__(self):
            print(end="", file=None)

        def __exit__(self, *args):
            pass

    @torch.compile
    def go(x):
        with Manager():
            return Outer(linear).run(x)

    go(torch.ones(2, 3))
"""


def test_a_module_is_made_in_a_graph_where_nothing_before_it_breaks(scan: Scan) -> None:
    report = scan(MODULE)
    for one in report.findings:
        if "Uninitialized" in one.reason:
            assert cause_of(report, one) is not None
            assert "where a function runs eagerly" in str(one.advice)
    assert not scan(MODULE.replace("with Manager():", "if True:")).findings


BETWEEN = """
    import torch

    def other(d, v):
        m = v < d
        d[m] = v[m]
        return d

    def query(r, x):
        g = x.clone()
        mask = x > r
        g[mask] = (x * 2)[mask]
        return g

    @torch.compile
    def step(x):
        y = other(x.clone(), x * 0.5)
        return query(0.2, y) + query(0.4, y)

    for _ in range(2):
        step(torch.rand(4, 4))
"""


def test_a_break_in_front_of_the_call_is_of_no_matter(scan: Scan) -> None:
    report = scan(BETWEEN)
    (number,) = coded(report, "BS207")
    assert cause_of(report, number) == ("BS105", 12)
    assert "Without that break query is compiled as part of what calls it" in str(number.advice)


LINES = """
    import torch

    def split(a, b, n):
        k = n[0]
        y = a + b
        return torch.tanh(y[:, :k]) * torch.sigmoid(y[:, k:])

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = 4
            self.linear = torch.nn.Linear(4, 8)

        def forward(self, x):
            n = torch.IntTensor([self.hidden])
            y = self.linear(x)
            return x + split(
                y,
                torch.zeros_like(y),
                n,
            )

    torch.compile(Net())(torch.ones(2, 4))
"""


@pytest.mark.parametrize("several", [True, False])
def test_a_number_is_followed_through_a_call_of_several_lines(scan: Scan, *, several: bool) -> None:
    source = LINES if several else LINES.replace("(\n                y,\n                ", "(y, ")
    (site,) = coded(scan(source), "BS102")
    assert "The tensor that is read is made of `self.hidden` (line 16)" in str(site.advice)


STEPS = """
    import torch

    class Steps:
        def __init__(self):
            self.h = 1.0

        def propose(self, error):
            accept = error < 0.5
            if accept:
                self.h = self.h * 2
            else:
                self.h = self.h / 2
            return accept

    def solve(x, n):
        steps, done = Steps(), 0
        while done < n:
            y = x * (1 - 0.1 * steps.h)
            if steps.propose((x - y).norm()):
                x, done = y, done + 1
        return x

    @torch.compile
    def root(x):
        return solve(x, 3)

    root(torch.ones(3))
"""


def test_what_a_turn_decides_is_for_no_caller_of_the_whole_loop(scan: Scan) -> None:
    (site,) = (one for one in scan(STEPS).findings if one.location.line == 10)
    said = "Here the caller is the loop in line 18 of solve, turn after turn: keep that loop outside"
    assert said in str(site.advice)


CHECK = """
    import torch

    @torch.compile
    def f(x, a, b, eta=0.0):
        forward = b > a
        if not forward and eta:
            raise ValueError("eta must be 0")
        return x * 2

    f(torch.ones(2), torch.tensor(0.0), torch.tensor(1.0))
"""


def test_a_number_of_pythons_stays_in_front_of_what_is_asserted(scan: Scan) -> None:
    (site,) = coded(scan(CHECK), "BS106")
    assert "assert not eta or forward, 'eta must be 0'." in str(site.advice)
    check = '        if not forward and eta:\n            raise ValueError("eta must be 0")\n'
    assert check in CHECK
    assert not scan(CHECK.replace(check, "        assert not eta or forward, 'eta must be 0'\n")).findings


COARSE = """
    import torch

    layers = torch.nn.Sequential(*[torch.nn.Conv2d(1, 1, 3, stride=4, padding=1) for _ in range(2)])

    @torch.compile(dynamic=True)
    def f(x):
        y = layers(x)
        return (y + torch.ones(1, 1, y.shape[2], 1)).sum()

    f(torch.ones(1, 1, 64, 48))
    f(torch.ones(1, 1, 16, 48))
"""


def test_a_size_that_becomes_one_is_a_graph_of_its_own(scan: Scan) -> None:
    for one in scan(COARSE).findings:
        assert "take away the branch" not in str(one.advice), one.advice


PACKED = """
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 4, batch_first=True)

        def forward(self, x, lengths):
            x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            self.lstm.flatten_parameters()
            out, _ = self.lstm(x)
            return torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0]

    torch.compile(Encoder())(torch.ones(2, 3, 4), torch.tensor([3, 2]))
"""


def test_an_rnn_that_is_given_what_is_packed_is_told_so_at_its_other_methods(scan: Scan) -> None:
    sites = [one for one in scan(PACKED).findings if one.location.line == 11]
    assert sites
    for one in sites:
        assert "The input is packed" in str(one.advice)


CALLS: dict[str, tuple[str, str, str]] = {
    "a bound that is a number beside one that is none": (
        "BS102",
        "`x.clamp(0, n - 1)` has a number for one bound and a tensor for the other",
        """
        @torch.compile
        def f(x, n):
            return x.clamp(0, n - 1) * 2

        f(torch.ones(3), torch.tensor(4))
        """,
    ),
    "what numpy is asked, before what follows of it": (
        "BS111",
        "Ask isinstance(x, (int, float)) in place of numpy.isscalar(x)",
        """
        @torch.compile
        def f(x, w=1.0):
            is_scalar = np.isscalar(w)
            if is_scalar or w.size(0) == 1:
                return x * w
            rows = []
            for row in w:
                rows.append(x * row)
            return torch.stack(rows)

        f(torch.ones(3), 1.5)
        """,
    ),
    "a rank that the model sets": (
        "BS206",
        "Make the first call in eager where the model makes self.grid anew in it",
        """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.grid = torch.zeros(1)

            def forward(self, x):
                if self.grid.dim() != x.dim():
                    self.grid = torch.ones_like(x)
                return x * self.grid.sum()

        net = torch.compile(Net())
        for _ in range(2):
            net(torch.ones(2, 2, 2))
        """,
    ),
    "an array of one": (
        "BS201",
        "Torch compiles sizes 0 and 1 apart from all others, and dimension 0 of s came with 1 and 2",
        """
        @torch.compile(dynamic=True)
        def act(s):
            return torch.from_numpy(np.asarray(s, dtype=np.float32)) * 2

        for n in (1, 1, 2, 3):
            act(np.ones((n, 4)))
        """,
    ),
    "targets under the mask of the rows": (
        "BS105",
        "give it the targets with .masked_fill(~keep, -100)",
        """
        @torch.compile
        def loss(scores, targets, keep):
            wide = scores[keep.unsqueeze(2).expand_as(scores)]
            return torch.nn.functional.cross_entropy(wide.view(-1, 5), targets)

        loss(torch.randn(2, 3, 5), torch.tensor([1, 2]), torch.tensor([[True, False, False]] * 2))
        """,
    ),
    "an array that a closure writes to": (
        "BS102",
        "`lengths` comes out of numpy, which Dynamo traces as a tensor: return it, and call tolist() in the caller",
        """
        @torch.compile
        def f(x, steps=3):
            lengths = np.array([steps] * x.size(0))

            def ends(step):
                lengths[(lengths > step)] = step

            ends(1)
            return x * 2, lengths.tolist()

        f(torch.ones(3))
        """,
    ),
    "a size that meets one that is fixed": (
        "BS214",
        "as large as something of a fixed size that it meets, a buffer or a parameter",
        """
        mask = torch.ones(12, 12)

        @torch.compile
        def f(x):
            n = x.size(1)
            return (x @ x.transpose(1, 2)) * mask[:n, :n]

        for n in (9, 12, 7):
            x = torch.ones(2, n, 4)
            torch._dynamo.maybe_mark_dynamic(x, 1)
            f(x)
        """,
    ),
    "a count that no module keeps": (
        "BS209",
        "One compile for a second value is normal (6, 7 were seen), made once: torch treats self.at",
        """
        from abc import ABC

        class Base(ABC):
            def __init__(self):
                self.rows, self.at = torch.ones(40, 2), 6

        class Ring(Base):
            def take(self, i):
                return self.rows[: self.at].sum(0) * i

        ring = Ring()
        take = torch.compile(ring.take)
        for at in (6, 7, 8, 9):
            ring.at = at
            take(torch.ones(2))
        """,
    ),
    "a piece of a list in a function that follows indices": (
        "BS301",
        "The function follows indices back one by one",
        """
        @torch.compile
        def decode(score, back, mask):
            best = score.argmax(1)
            back = back.tolist()
            paths = [[i] for i in best.tolist()]
            for b in range(score.size(0)):
                i = best[b]
                n = mask[:, b].sum().int()
                for p in reversed(back[b][:n]):
                    i = p[i]
                    paths[b].append(i)
            return paths

        decode(torch.randn(2, 5), torch.randint(0, 5, (2, 3, 5)), torch.ones(3, 2))
        """,
    ),
    "a mark does not reach behind a break": (
        "BS201",
        "what is made of it in front of a break has no mark: there have breakscope remedy try dynamic=True",
        """
        @torch.compile
        def f(x):
            print(end="", flush=True) if False else torch._dynamo.graph_break()
            return x * 2

        for n in (3, 4):
            f(torch.ones(n))
        """,
    ),
    "an assert is no branch": (
        "BS201",
        "a slice (line 13) cuts by it: what is cut there has to be longer than the first call's",
        """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(12, 12))

            def forward(self, x):
                n = x.size(1)
                assert n <= 12
                return (x @ x.transpose(1, 2)) * self.mask[:n, :n]

        net = torch.compile(Net())
        for n in (12, 9):
            x = torch.ones(2, n, 4)
            net(x)
        """,
    ),
    "a number in a branch that may not run": (
        "BS201",
        "in a branch (a function of math (line 8)): where that runs, each size",
        """
        @torch.compile(dynamic=False)
        def f(x, every=0):
            if every:
                return x * math.ceil(x.shape[0] / every)
            return x * 2

        for n in (2, 3, 4):
            f(torch.ones(n))
        """,
    ),
    "rows of what is packed": (
        "BS201",
        "Goes with BS107",
        """
        torch._dynamo.config.allow_rnn = True
        rnn = torch.nn.LSTM(4, 4, batch_first=True)

        @torch.compile
        def f(x, lengths):
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return packed.data * 2

        for lengths in ([7, 5, 4], [6, 6, 3], [8, 4, 2]):
            f(torch.rand(3, max(lengths), 4), lengths)
        """,
    ),
    "a search that breaks for something else first": (
        "BS301",
        "But values steer this loop all over, as in NMS, so that no graph holds it",
        """
        @torch.compile
        def nms(x, scores):
            keep, rest, index = [], x.new(), scores.sort(0)[1]
            while index.numel() > 0:
                keep.append(index[-1])
                index = index[:-1]
                torch.index_select(x, 0, index, out=rest)
                index = index[rest.le(0.5)]
            return keep

        nms(torch.rand(6), torch.rand(6))
        """,
    ),
}


@pytest.mark.parametrize("name", [*CALLS])
def test_what_is_said_is_true_of_this_call(scan: Scan, name: str) -> None:
    code, said, source = CALLS[name]
    report = scan(f"import math\nimport numpy as np\nimport torch\n{textwrap.dedent(source)}")
    advice = [str(one.advice) for one in coded(report, code)]
    assert any(said in one for one in advice), advice


ANEW = """
    import torch

    @torch.compile
    def loss(pred, gold):
        gold = gold.view(-1)
        torch._dynamo.graph_break()
        return (pred.view(-1) - gold).abs().sum()

    for rows, columns in ((2, 5), (3, 6)):
        loss(torch.rand(rows, columns), torch.rand(rows, columns))
"""


def test_an_argument_and_what_its_name_holds_later_are_two(scan: Scan) -> None:
    sizes = [one.guard for one in coded(scan(ANEW), "BS201") if one.guard and one.guard.source == "gold"]
    assert ("2", "3") in [one.values for one in sizes]
    assert ("10", "18") in [one.values for one in sizes]


def test_a_long_function_whose_names_go_round_is_asked_once_for_each_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names in a circle are not remembered while they are asked: what costs is what is looked at for each."""
    lines = [f"        {a} = self.mix({a} * x.scale(), {b}.sum() + x)" for a, b in ("ab", "bc", "cd", "da")]
    body = "\n".join(lines * 30)
    source = f"class Net:\n    def mix(self, p, q):\n        return p + q\n\n    def f(self, x, a, b, c, d):\n{body}\n"
    (tmp_path / "net.py").write_text(f"{source}        return a\n")
    asked: Counter[int] = Counter()

    def counted(node: ast.AST, way: Sequence[ast.AST]) -> bool:
        asked[id(node)] += 1
        return is_tensor(node, way)

    monkeypatch.setattr(made_of, "is_tensor", counted)
    made_of.made_of(Sources(), "a", 0, (str(tmp_path / "net.py"), 5 + len(lines) * 30), ())
    assert asked
    assert max(asked.values()) == 1
