"""What torch says of sizes that were marked as dynamic, in words that name the dimension and what to do.

What ``torch.compile`` raises is tested by following the advice (``tests/advice``); these are of ``torch.export``.
"""

from __future__ import annotations

import pytest

from breakscope.diagnose.constraints import explain


@pytest.mark.parametrize(
    ("said", "why", "what_to_do"),
    [
        (
            "  - The values of b = L['y'].size()[0] and a = L['x'].size()[0] must always be equal.",
            "dimension 0 of y and dimension 0 of x must always be equal in this code",
            "Give both the same Dim in dynamic_shapes (b = a), or Dim.AUTO",
        ),
        (
            (
                "  - The values of b = L['y'].size()[0] must always be related to the values of"
                " a = L['x'].size()[0] by b = 2*a."
            ),
            "dimension 0 of y follows from dimension 0 of x in this code (b = 2*a)",
            "Write it so in dynamic_shapes (b = 2*a)",
        ),
        (
            "L['y'].size()[0] = 4 is not equal to L['batch']['x'].size()[1] = 6",
            "dimension 0 of y is 4 and dimension 1 of batch['x'] is 6, and both have the same Dim",
            "Give them Dims of their own",
        ),
        (
            (
                "  - Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) are valid because"
                " L['x'].size()[0] was inferred to be equal to 6."
            ),
            "dimension 0 of x is marked as dynamic, and the code fixes it to 6",
            "torch._dynamo.maybe_mark_dynamic(x, 0)",
        ),
        (
            (
                "  - Not all values of batch = L['x'].size()[0] in the specified range 4 <= batch <= 64 satisfy"
                " the generated guard (L['x'].size()[0] % 2) == 0."
            ),
            "marked as dynamic for sizes from 4 to 64, and this graph is right only where (x.shape[0] % 2) == 0",
            "Leave min and max out",
        ),
    ],
)
def test_a_violation_names_the_dimensions_and_what_to_do(said: str, why: str, what_to_do: str) -> None:
    explained = explain(said)
    assert explained is not None
    assert why in explained[0]
    assert what_to_do in explained[1]


def test_a_text_that_is_not_known_stays_torchs_own() -> None:
    assert explain("Constraints violated (a)!\n  - Something new.") is None
