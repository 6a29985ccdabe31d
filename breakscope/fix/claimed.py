"""What rewrites say of themselves, as the proof takes it."""

from __future__ import annotations

from collections.abc import Sequence

from breakscope.fix.rule import NO_GRADIENT, Rewrite
from breakscope.inside.prove.claims import Claims


def claims_of(rewrites: Sequence[Rewrite]) -> Claims:
    """What several rewrites of one function claim, taken together."""
    return Claims(
        exact=all(one.exact == "bitwise" for one in rewrites),
        unaliased=any(one.unaliased for one in rewrites),
        early=tuple(path.rpartition(".")[2] for one in rewrites for path in one.early),
        conditional=any(one.assumes for one in rewrites),
        compiled_only=any(one.compiled_only for one in rewrites),
        zeros=any(one.compiled_only and one.consent for one in rewrites),
        no_gradients=any(one.compiled_only and NO_GRADIENT in one.assumes for one in rewrites),
        raises=any(one.raises for one in rewrites),
        silent=any(one.silent for one in rewrites),
    )
