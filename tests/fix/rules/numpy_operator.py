"""What the rule ``numpy-operator`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES: tuple[Example, ...] = ()

_CALLS = ("torch.randn(2, 4), T([1, 3])", "torch.randn(3, 5), T([5, 0, 2])")
_MODULE = """\
import numpy as np
import torch

seen = []


def spans(shape, lengths):
    rows, length = shape
{body}
    return mask


def f(x, lengths):
    return torch.tensor(spans((x.shape[0], x.shape[1]), lengths))
"""
_FILL = """
mask = np.zeros((rows, length), dtype=bool)
for row, kept in enumerate(lengths.tolist()):
    mask[row, :kept] = True
"""


def _left(body: str, why: str) -> Example:
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return Example(_MODULE.format(body=lines), why=why, calls=_CALLS)


LEAVES: tuple[Example, ...] = (
    # Something is left behind besides the array.
    _left(_FILL + "seen.append(rows)", "what `seen.append` does"),
    _left(_FILL + "print(rows)", "what `print` does"),
    _left(_FILL + "lengths.add_(1)", "what `lengths.add_` does"),
    _left(_FILL + "lengths[0] = 1", "may write into what it was given"),
    _left(_FILL + "lengths += 1", "may write into what it was given"),
    _left(_FILL + "np.random.seed(1)", "what `np.random.seed` does"),
    _left(_FILL + "other = lengths.numpy()\nother[0] = 1", "may write into what it was given"),
    _left(_FILL + "for one in [lengths]:\n    one[0] = 1", "may write into what it was given"),
    # The array is another one, or of another size or dtype than np.zeros says.
    _left(_FILL + "mask = mask[:1]", ""),
    _left(_FILL.replace("np.zeros((rows, length), dtype=bool)", "np.zeros((rows, length))"), "the dtype"),
    _left(_FILL.replace("dtype=bool", "dtype=np.float32"), "may carry gradients"),
    _left(_FILL.replace("mask =", "length = length + 1\nmask =", 1), "does not follow"),
    _left(_FILL + "mask.shape = (length, rows)", "may write into"),
    _left(_FILL + "mask.resize((length, rows))", "what `mask.resize` does"),
)
