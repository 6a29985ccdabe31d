"""Every rule, in the order in which they are asked, and what they answer to a site. One rule a file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter

from breakscope.fix.installed_rules import answer_of, installed_rules
from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.rule import Rule, Site
from breakscope.fix.rules.boolean_value import BooleanValue
from breakscope.fix.rules.branch_in_place import BranchInPlace
from breakscope.fix.rules.branch_to_cond import BranchToCond
from breakscope.fix.rules.branch_to_where import BranchToWhere
from breakscope.fix.rules.builtin_pow import BuiltinPow
from breakscope.fix.rules.capture_flag import CaptureFlag
from breakscope.fix.rules.comprehension import Comprehension
from breakscope.fix.rules.custom_op import CustomOp
from breakscope.fix.rules.eager_leaf import EagerLeaf
from breakscope.fix.rules.empty_turn import EmptyTurn
from breakscope.fix.rules.guard_in_graph import GuardInGraph
from breakscope.fix.rules.integer_division import IntegerDivision
from breakscope.fix.rules.known_size import KnownSize
from breakscope.fix.rules.legacy_variable import LegacyVariable
from breakscope.fix.rules.loop_exit import LoopExit
from breakscope.fix.rules.mask_shortcut import MaskShortcut
from breakscope.fix.rules.mask_to_where import MaskToWhere
from breakscope.fix.rules.masked_turn import MaskedTurn
from breakscope.fix.rules.message_and_branch import MessageAndBranch
from breakscope.fix.rules.numpy_number import NumpyNumber
from breakscope.fix.rules.numpy_operator import NumpyOperator
from breakscope.fix.rules.numpy_size import NumpySize
from breakscope.fix.rules.quiet_messages import QuietMessages
from breakscope.fix.rules.random_skip import RandomSkip
from breakscope.fix.rules.requires_grad import RequiresGrad
from breakscope.fix.rules.scalar_read import ScalarRead
from breakscope.fix.rules.tensor_argument import TensorArgument
from breakscope.fix.rules.ternary_to_where import TernaryToWhere
from breakscope.fix.rules.zero_probability import ZeroProbability


def in_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules as they are asked: as their ``before`` and ``after`` say, and by name where those say nothing.

    A name that no rule has says nothing either: that rule's package may be gone.

    Raises:
        graphlib.CycleError: they contradict each other.
    """
    by_name = {rule.name: rule for rule in rules}
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(by_name, ()))
    for name, rule in by_name.items():
        sorter.add(name, *(earlier for earlier in rule.after if earlier in by_name))
        for later in rule.before:
            if later in by_name:
                sorter.add(later, name)
    sorter.prepare()
    found: list[Rule] = []
    ready: list[str] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()])
        name = ready.pop(0)
        found.append(by_name[name])
        sorter.done(name)
    return tuple(found)


RULES = in_order(
    (
        BooleanValue(),
        BranchInPlace(),
        BranchToCond(),
        BranchToWhere(),
        BuiltinPow(),
        CaptureFlag(),
        Comprehension(),
        CustomOp(),
        EagerLeaf(),
        EmptyTurn(),
        GuardInGraph(),
        IntegerDivision(),
        KnownSize(),
        LegacyVariable(),
        LoopExit(),
        MaskShortcut(),
        MaskToWhere(),
        MaskedTurn(),
        MessageAndBranch(),
        NumpyNumber(),
        NumpyOperator(),
        NumpySize(),
        QuietMessages(),
        RandomSkip(),
        RequiresGrad(),
        ScalarRead(),
        TensorArgument(),
        TernaryToWhere(),
        ZeroProbability(),
    )
)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Ours, and those of installed packages. Raises UsageError: one of those is no rule."""
    return in_order((*RULES, *installed_rules()))


def propose(site: Site) -> tuple[Rule | None, Rewrite | Refusal]:
    """The first rewrite that a rule has for a site; else the refusal of the rule that comes nearest."""
    rewrites, refusals = _answers(site)
    if rewrites:
        return rewrites[0]
    if refusals:
        refusing = {rule.name for rule, _ in refusals}
        told = (pair for pair in refusals if not refusing.intersection(pair[0].nearer))
        return next(told, refusals[0])
    return None, Refusal("no rule rewrites this kind of place")


def others(site: Site) -> list[tuple[Rule, Rewrite]]:
    """The rewrites that rules have for a site besides the first, for when that one makes things slower."""
    return [(rule, one) for rule, one in _answers(site)[0][1:] if one.edits and not one.scaffold]


def _answers(site: Site) -> tuple[list[tuple[Rule, Rewrite]], list[tuple[Rule, Refusal]]]:
    """Rewrites, best first, and refusals.

    A rewrite without need of consent goes before one that needs it, and a scaffold comes last.
    """
    # A skipped frame has a code of its own, whatever stopped Dynamo in it.
    asked = [rule for rule in all_rules() if site.code in rule.codes or site.code.startswith("BS3")]
    answers = [(rule, answer_of(rule, site)) for rule in asked]
    rewrites = [(rule, answer) for rule, answer in answers if isinstance(answer, Rewrite)]
    rewrites.sort(key=lambda pair: (bool(pair[1].scaffold), pair[1].consent))
    return rewrites, [(rule, answer) for rule, answer in answers if isinstance(answer, Refusal)]
