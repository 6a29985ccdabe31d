"""The way from the call of something compiled to the place in it that reads a tensor's value."""

from __future__ import annotations

import ast
import builtins
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from breakscope.fix import runs
from breakscope.fix.remedies import calls
from breakscope.fix.remedies.source import Files
from breakscope.fix.rule import Site, Unsafe
from breakscope.inside.record.evidence import Evidence
from breakscope.report.model import Finding, Frame, Report, Signature
from breakscope.source.module import FunctionNode, Module, parsed
from breakscope.source.names import own_nodes


@dataclass(frozen=True, slots=True)
class Step:
    """A function on the way.

    Attributes:
        site: the function, with what the recorded run saw in it.
        calls: those of its calls that lead to the next function on the way.
    """

    file: str
    site: Site
    calls: tuple[ast.Call, ...] = ()

    @property
    def method(self) -> bool:
        """Whether it is called on an object, which is its first parameter."""
        return isinstance(self.site.parents.get(self.site.function), ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Chain:
    """A way into compiled code.

    Attributes:
        entries: the calls of what is compiled, in the project's source.
        steps: the functions, that which is compiled first.
    """

    entries: tuple[calls.Site, ...]
    steps: tuple[Step, ...]


def find(finding: Finding, site: Site, report: Report, files: Files) -> Chain:
    """The way to a finding, without evidence.

    Raises:
        Unsafe: the report does not show it, or its beginning is not in the project's source.
    """
    frames = [one for one in finding.stack if one.owner != "torch"]
    entered = [(at, one) for one in report.signatures if (at := _entered_at(frames, one)) is not None]
    if not entered:
        raise Unsafe("the call of what is compiled is not known, or not in the project's own source")
    at, signature = max(entered, key=lambda pair: pair[0])
    functions = [_function_at(frame, files) for frame in frames[at + 1 :]]
    if not functions or functions[-1].site.function is not site.function:
        raise Unsafe("the way from the compiled call to this place is not known")
    if len({(step.file, step.site.qualname) for step in functions}) < len(functions):
        raise Unsafe("a function on the way calls itself")
    same = [one for one in report.signatures if _enters(one, functions[0], signature)]
    steps = (*functions[:-1], replace(functions[-1], site=site))
    entries = tuple(one for one in calls.sites(same, files) if not _calls_builtin(one))
    if not entries:
        raise Unsafe("the call of what is compiled is made by one of Python's own functions")
    return Chain((*entries, *_other_calls(entries)), steps)


def _other_calls(entries: Sequence[calls.Site]) -> Iterator[calls.Site]:
    """Calls of the same names of which no compile came: with them a graph was there already."""
    known = {entry.call for entry in entries}
    for entry in {ast.dump(one.call.func): one for one in entries}.values():
        name, tree = entry.call.func, entry.file.tree
        if not isinstance(name, ast.Name) or len(_places_of(name.id, tree)) != 1:
            continue  # it may be something else there
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node not in known and ast.dump(node.func) == ast.dump(name):
                yield calls.Site(entry.file, node, entry.file.statement(node), entry.signatures)


def _places_of(name: str, tree: ast.Module) -> list[ast.AST]:
    """Where a module gives a name a value."""
    return [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        or (isinstance(node, FunctionNode | ast.ClassDef) and node.name == name)
    ]


def _calls_builtin(entry: calls.Site) -> bool:
    """Whether what is written there is ``list(map(compiled, batches))``, and calls something else."""
    called, module = entry.call.func, entry.file.module
    name = called.id if isinstance(called, ast.Name) else ""
    return hasattr(builtins, name) and name not in module.bound | module.imported


def _enters(other: Signature, first: Step, signature: Signature) -> bool:
    """Whether another compile came of a call of the same function.

    Raises:
        Unsafe: a function of somebody else's stands between the call and the first one on the way.
    """
    if signature.entry_file is not None and os.path.realpath(signature.entry_file) == first.file:
        if signature.entry_line not in _lines(first.site.function):
            raise Unsafe(f"the compiled call enters {first.site.qualname} by way of another function")
        return (other.entry_file, other.entry_line) == (signature.entry_file, signature.entry_line)
    if not signature.entry.startswith(_OF_TORCH):
        raise Unsafe(f"the compiled call enters {signature.entry}, which calls {first.site.qualname}")
    return other.call == signature.call  # all that torch wraps has one entry


# What torch puts around a function that it compiles and whose file is one of torch's: ``torch.no_grad``.
_OF_TORCH = ("wrap_inline", "_wrap_inline")


def _entered_at(frames: Sequence[Frame], signature: Signature) -> int | None:
    """Which frame makes the outermost call."""
    call = signature.call
    if call is None or call.owner != "project":
        return None
    lines = range(call.line, (call.end_line or call.line) + 1)
    same = [
        index
        for index, frame in enumerate(frames[:-1])
        if os.path.realpath(frame.file) == os.path.realpath(call.file) and frame.line in lines
    ]
    return same[-1] if same else None


def _lines(function: FunctionNode) -> range:
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    return range(first, function.lineno + 1)


def _function_at(frame: Frame, files: Files) -> Step:
    file = files.open(frame.file)
    if file is None:
        raise Unsafe(f"the source of {frame.function} cannot be read")
    module = parsed(file.text)
    around = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, FunctionNode) and node.lineno <= frame.line <= (node.end_lineno or 0)
    ]
    if not around:
        raise Unsafe(f"{frame.function} is in no function")
    function = max(around, key=lambda node: node.lineno)
    names = _qualname(module, function)
    if isinstance(module.parents[function], FunctionNode):
        raise Unsafe(f"{names} is made inside of a function")
    return Step(file.path, Site(module, function, names, function, "", "", Evidence()))


def _qualname(module: Module, function: ast.AST) -> str:
    names: list[str] = []
    above: ast.AST | None = function
    while above is not None:
        if isinstance(above, FunctionNode | ast.ClassDef):
            names.append(above.name)
        above = module.parents.get(above)
    return ".".join(reversed(names))


def with_evidence(chain: Chain, seen: Mapping[str, Mapping[str, Evidence]], script: str) -> Chain:
    """The way with what was recorded in its functions, and with the calls that lead along it.

    Raises:
        Unsafe: a call leads elsewhere, too, or was not recorded.
    """
    steps = []
    for step in chain.steps:
        evidence = seen.get(step.file, {}).get(step.site.qualname)
        if evidence is None or not evidence.calls:
            raise Unsafe(f"{step.site.qualname} was not called in a run without compiling")
        steps.append(replace(step, site=replace(step.site, evidence=evidence)))
        step.site.refuse_frame_readers()
    for index, (_, following) in enumerate(itertools.pairwise(chain.steps)):
        step = steps[index]
        found = tuple(_leading(step, following, script))
        if not found:
            raise Unsafe(f"no call in {step.site.qualname} was seen to lead to {following.site.qualname}")
        steps[index] = replace(step, calls=found)
    return replace(chain, steps=tuple(steps))


def _leading(step: Step, following: Step, script: str) -> Iterator[ast.Call]:
    """The calls of a function that lead to the next one."""
    targets = set(_names_of(following, script))
    for node in own_nodes(step.site.function):
        if not isinstance(node, ast.Call) or (seen := step.site.seen(node.func)) is None:
            continue
        there = [name for name in seen.types if name in targets]
        if not there:
            continue
        if len(there) < len(seen.types) or not seen.only("module", "callable"):
            others = next(name for name in (*seen.types, "something else") if name not in targets)
            raise Unsafe(f"`{step.site.text(node.func)}` is also {others.removeprefix('__main__.')}")
        yield node


def _names_of(step: Step, script: str) -> Iterator[str]:
    """Names of a function in the recorded run: its own, and those of classes whose forward it is."""
    module = runs.module_of(step.file, script) or "__main__"
    qualname = step.site.qualname
    yield f"{module}.{qualname}"
    owner, _, name = qualname.rpartition(".")
    if name != "forward" or not step.method:
        return
    classes = [one for one in step.site.tree.body if isinstance(one, ast.ClassDef)]
    inheriting = {owner}
    for one in classes:  # in the order in which they are made
        bases = {ast.unparse(base) for base in one.bases[:1]}
        own = any(isinstance(part, FunctionNode) and part.name == "forward" for part in one.body)
        if bases & inheriting and not own:
            inheriting.add(one.name)
    yield from (f"{module}.{one}" for one in inheriting)
