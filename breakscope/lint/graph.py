"""What is likely compiled: the entries of the file set, and what they call, as far as names tell."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple

from breakscope.lint import known
from breakscope.lint.facts import Call, Candidate, Function
from breakscope.lint.project import Project, Symbol

_LIGHTNING = ("LightningModule",)
_MODULE_NAMES = ("Module", *_LIGHTNING)
_ENTRIES = ("training_step", "validation_step", "test_step", "predict_step")
# Bases that have a forward() and are no modules.
_NOT_MODULES = (
    "Function",
    "ABC",
    "Protocol",
    "Enum",
    "object",
    "Generic",
    "TypedDict",
    "NamedTuple",
    "ABCMeta",
)
_MOST_OWNERS = 3  # classes that may have a method of which only the name is known


class Reached(NamedTuple):
    """A function that is likely compiled.

    Attributes:
        likely: whether every step from the entry to it is what the source says, not a guess by name.
        why: what compiles it: "forward of a module", "decorated with torch.compile".
        entry: qualified name of the entry; the function itself where it is one.
    """

    likely: bool
    why: str
    entry: str


class Placed(NamedTuple):
    """A candidate in a function that is likely compiled."""

    file: str
    function: str
    candidate: Candidate
    reached: Reached


class Graph:
    """Finds what is likely compiled in a project whose files were read."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.reached: dict[Symbol, Reached] = {}
        self.explicit: set[Symbol] = set()
        self._modules: dict[Symbol, bool] = {}
        self._owners: dict[str, list[Symbol]] | None = None
        self._subclasses: dict[Symbol, list[Symbol]] | None = None
        self._disabled: list[Placed] = []
        self._called: dict[Symbol, list[tuple[Symbol, bool]]] = {}

    def placed(self) -> list[Placed]:
        """Every candidate in what is likely compiled. ``project.wanted`` names files to read for more."""
        self._walk(self._entries())
        found = list(self._disabled)
        for symbol, reached in self.reached.items():
            function = self._function(symbol)
            if function is None:
                continue
            found += [
                Placed(symbol.file, symbol.name, candidate, reached) for candidate in function.candidates
            ]
            if symbol in self.explicit:
                found += [
                    Placed(
                        symbol.file,
                        symbol.name,
                        Candidate("BS207", *place, False, f"every new value of {name} compiles again"),
                        reached,
                    )
                    for name, place in function.floats
                ]
        return found

    # ---- entries ----

    def _entries(self) -> list[tuple[Symbol, Reached]]:
        found: list[tuple[Symbol, Reached]] = []
        for file, functions in self.project.functions.items():
            for function in functions.values():
                if function.compiled:
                    symbol = Symbol(file, function.name, "function")
                    self.explicit.add(symbol)
                    found.append((symbol, Reached(True, "decorated with torch.compile", function.name)))
            for target in self.project.facts[file].compiled:
                for symbol in self._passed(file, target):
                    self.explicit.add(symbol)
                    found.append((symbol, Reached(True, "passed to torch.compile", symbol.name)))
        for cls in self.project.all_classes():
            if not self.is_module(cls):
                continue
            forward = self.project.method(cls, "forward")
            if forward is not None:
                found.append((forward, Reached(True, "forward of a module", forward.name)))
            if self._ends_with(cls, _LIGHTNING):
                steps = [self.project.method(cls, name) for name in _ENTRIES]
                found += [
                    (step, Reached(False, "step of a LightningModule", step.name))
                    for step in steps
                    if step is not None
                ]
        return found

    def _passed(self, file: str, target: str) -> list[Symbol]:
        kind, _, name = target.partition(":")
        if kind == "any":
            names = [*self.project.functions[file], *self.project.others[file]]
            return [Symbol(file, one, "function") for one in names if one.endswith(f".{name}")]
        symbol = self.project.resolve(name, file)
        if symbol is None:  # a function inside another one
            names = [
                function
                for function in self.project.functions[file]
                if function.endswith(f".<locals>.{name}")
            ]
            return [Symbol(file, one, "function") for one in names]
        return [symbol] if symbol.kind == "function" else []

    def is_module(self, cls: Symbol) -> bool:
        """Whether a class is an nn.Module, by its bases or, where these are unknown, by its forward()."""
        known_answer = self._modules.get(cls)
        if known_answer is not None:
            return known_answer
        self._modules[cls] = False  # a class that is its own base
        facts = self.project.classes[cls.file][cls.name]
        answer = any(self.is_module(base) for base in self.project.bases(cls))
        for base in facts.bases:
            if self.project.resolve(base, cls.file) is None:
                last = base.rpartition(".")[2]
                answer = answer or (last not in _NOT_MODULES and self._has_forward(cls))
        self._modules[cls] = answer
        return answer

    def _has_forward(self, cls: Symbol) -> bool:
        return self.project.method(cls, "forward") is not None or self._ends_with(cls, _MODULE_NAMES)

    def _ends_with(self, cls: Symbol, names: tuple[str, ...]) -> bool:
        return any(
            base.rpartition(".")[2] in names
            for ancestor in self.project.ancestors(cls)
            for base in self.project.classes[ancestor.file][ancestor.name].bases
        )

    # ---- calls ----

    def _walk(self, entries: list[tuple[Symbol, Reached]]) -> None:
        """Sure steps first, so that a function counts as likely where any way to it is."""
        for likely in (True, False):
            queue = deque(entry for entry in entries if entry[1].likely or not likely)
            if not likely:
                queue.extend(
                    (callee, Reached(False, "called", reached.entry))
                    for symbol, reached in list(self.reached.items())
                    for callee, sure in self._callees(symbol)
                    if not sure
                )
            while queue:
                symbol, reached = queue.popleft()
                if symbol in self.reached or self._is_closed(symbol):
                    continue
                self.reached[symbol] = reached
                for callee, sure in self._callees(symbol):
                    if sure or not likely:
                        way = Reached(likely and sure, "called", reached.entry)
                        queue.append((callee, way))

    def _function(self, symbol: Symbol) -> Function | None:
        return self.project.functions.get(symbol.file, {}).get(symbol.name)

    def _is_closed(self, symbol: Symbol) -> bool:
        """Whether Dynamo does not look into a function."""
        function = self._function(symbol)
        if function is None:
            return True
        names = [name.removesuffix("()") for name in function.decorators]
        return any(name in known.DISABLERS or name in known.OPAQUE for name in names)

    def _callees(self, symbol: Symbol) -> list[tuple[Symbol, bool]]:
        known_ones = self._called.get(symbol)
        if known_ones is None:
            known_ones = self._called[symbol] = self._find_callees(symbol)
        return known_ones

    def _find_callees(self, symbol: Symbol) -> list[tuple[Symbol, bool]]:
        function = self._function(symbol)
        if function is None:
            return []
        found: list[tuple[Symbol, bool]] = []
        for call in function.calls:
            for callee, sure in self._targets(symbol, function, call):
                if self._is_disabled(callee):
                    self._report_disabled(symbol, call, sure)
                else:
                    found.append((callee, sure))
        return found + [
            (wrapper, True) for name in function.decorators for wrapper in self._wrappers(symbol.file, name)
        ]

    def _wrappers(self, file: str, decorator: str) -> list[Symbol]:
        """The functions that a decorator puts in place of what it decorates."""
        maker = self.project.resolve(decorator.removesuffix("()"), file)
        if maker is None or maker.kind != "function":
            return []
        prefix = f"{maker.name}.<locals>."
        # Called with arguments, a decorator makes the decorator: the wrapper is one level deeper.
        depth = 2 if decorator.endswith("()") else 1
        return [
            Symbol(maker.file, name, "function")
            for name, one in self.project.functions[maker.file].items()
            if one.wraps
            and name.startswith(prefix)
            and name.count("<locals>") - maker.name.count("<locals>") == depth
        ]

    def _targets(self, symbol: Symbol, function: Function, call: Call) -> list[tuple[Symbol, bool]]:
        kind, _, name = call.target.partition(":")
        if kind == "name":
            return self._named(self.project.resolve(name, symbol.file))
        if kind == "local":
            return [(Symbol(symbol.file, name, "function"), True)]
        if kind == "any":
            owners = self._with_method(name)
            return [(owner, False) for owner in owners] if len(owners) <= _MOST_OWNERS else []
        if kind == "of":
            cls_name, _, method = name.rpartition(".")
            return self._methods(self.project.resolve(cls_name, symbol.file), method, overrides=False)
        own = self.project.resolve(function.owner, symbol.file) if function.owner else None
        if own is None:
            return []
        if kind == "attr":
            attribute, _, method = name.partition(".")
            made_by = self._made_by(own, attribute)
            return self._methods(made_by, method, overrides=False) if made_by else []
        if kind == "super":
            above = self.project.method(own, name, skip_own=True)
            return [(above, True)] if above else []
        return self._methods(own, name, overrides=True)

    def _named(self, target: Symbol | None, depth: int = 0) -> list[tuple[Symbol, bool]]:
        if target is None or depth > 2:
            return []
        if target.kind == "function":
            return [(target, True)]
        if target.kind == "class":
            return []  # making an object is not calling its methods
        members = self.project.facts[target.file].tables[target.name]
        sure = len(members) == 1
        found = []
        for member in members:
            for one, _ in self._named(self.project.resolve(member, target.file), depth + 1):
                found.append((one, sure))
        return found

    def _methods(self, cls: Symbol | None, name: str, *, overrides: bool) -> list[tuple[Symbol, bool]]:
        """A method, and those of subclasses that may stand in its place."""
        if cls is None or cls.kind != "class":
            return []
        own = self.project.method(cls, name)
        found = [(own, True)] if own else []
        for below in self._below(cls):
            if name in self.project.classes[below.file][below.name].methods:
                one = self.project.method(below, name)
                if one is not None:
                    found.append((one, overrides))
        return found

    def _made_by(self, cls: Symbol, attribute: str) -> Symbol | None:
        for ancestor in self.project.ancestors(cls):
            maker = self.project.classes[ancestor.file][ancestor.name].attributes.get(attribute)
            if maker is not None:
                return self.project.resolve(maker, ancestor.file)
        return None

    def _below(self, cls: Symbol) -> list[Symbol]:
        if self._subclasses is None:
            self._subclasses = defaultdict(list)
            for one in self.project.all_classes():
                for above in self.project.ancestors(one)[1:]:
                    self._subclasses[above].append(one)
        return self._subclasses.get(cls, [])

    def _with_method(self, name: str) -> list[Symbol]:
        if self._owners is None:
            self._owners = defaultdict(list)
            for cls in self.project.all_classes():
                for method in self.project.classes[cls.file][cls.name].methods:
                    self._owners[method].append(Symbol(cls.file, f"{cls.name}.{method}", "function"))
        return self._owners.get(name, [])

    # ---- disabled functions ----

    def _is_disabled(self, symbol: Symbol) -> bool:
        function = self._function(symbol)
        return function is not None and any(
            name.removesuffix("()") in known.DISABLERS for name in function.decorators
        )

    def _report_disabled(self, symbol: Symbol, call: Call, sure: bool) -> None:
        reached = self.reached[symbol]
        candidate = Candidate("BS108", *call.place, sure and reached.likely)
        placed = Placed(symbol.file, symbol.name, candidate, reached)
        if placed not in self._disabled:
            self._disabled.append(placed)
