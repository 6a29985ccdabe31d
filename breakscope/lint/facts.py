"""What one file holds that matters to lint: the result of reading it once, kept in the cache.

Nothing here depends on any other file, nor on where the file is. Named tuples, because they are many: JSON
takes them as they are, and they cost a run of lint less time than dataclasses, to define and to make.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Candidate(NamedTuple):
    """A place that breaks if its function is compiled.

    Attributes:
        line: counts from 1; ``column`` and ``end_column`` count UTF-8 bytes from 0, as ``ast`` does.
        likely: whether it breaks whenever its function runs, as far as the source tells; else it may.
        about: what is special here, in a few words; empty where the code says it all.
    """

    code: str
    line: int
    column: int
    end_line: int
    end_column: int
    likely: bool
    about: str = ""


class Call(NamedTuple):
    """Something that a function calls or hands on.

    Attributes:
        target: ``name:a.b.c`` (as imported here), ``local:f.<locals>.g``, ``self:method``, ``super:method``,
            ``attr:x.method`` (a method of what is in ``self.x``), ``of:Class.method`` or ``any:method`` (of
            an unknown object).
        sure: whether ``target`` is what is called, or only something of that name.
        place: line, column, end line and end column of the first such expression.
    """

    target: str
    sure: bool
    place: tuple[int, int, int, int]


class Function(NamedTuple):
    """One function or method.

    Attributes:
        name: qualified name, ``Outer.inner`` and ``outer.<locals>.inner``.
        owner: qualified name of its class; empty for a function.
        decorators: their names as imported here, with ``()`` where they are called with arguments.
        wraps: whether it looks like what a decorator puts in place of a function.
        compiled: whether it is decorated with torch.compile.
        floats: parameters that are annotated as a float.
    """

    name: str
    owner: str
    line: int
    decorators: tuple[str, ...]
    compiled: bool
    wraps: bool
    calls: tuple[Call, ...]
    candidates: tuple[Candidate, ...]
    floats: tuple[tuple[str, tuple[int, int, int, int]], ...] = ()


class Class(NamedTuple):
    """One class.

    Attributes:
        bases: names as imported here.
        methods: names of its own methods.
        attributes: attribute -> name of the class that its constructor puts there.
    """

    name: str
    bases: tuple[str, ...]
    methods: tuple[str, ...]
    attributes: dict[str, str]


class Facts(NamedTuple):
    """One file.

    Attributes:
        imports: name here -> what it stands for, ``a.b.c``; relative imports keep their dots.
        functions: those that were looked into. ``others`` are names of those that were not, because
            nothing in this file compiles them.
        tables: module-level containers -> names of the functions and classes in them.
        compiled: what is handed to torch.compile, as targets of :class:`Call`.
        error: why the file could not be read; then all else is empty.
    """

    imports: dict[str, str]
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    tables: dict[str, tuple[str, ...]]
    compiled: tuple[str, ...]
    others: tuple[str, ...] = ()
    error: str | None = None


def failed(error: str) -> Facts:
    """The facts of a file that could not be read."""
    return Facts({}, (), (), {}, (), (), error)


def from_plain(plain: list[Any]) -> Facts:
    """Facts from the lists that JSON makes of them.

    Raises:
        ValueError, TypeError: it is something else.
    """
    imports, functions, classes, tables, compiled, others, error = plain
    return Facts(
        imports,
        tuple(_function(*row) for row in functions),
        tuple(
            Class(name, tuple(bases), tuple(methods), attributes)
            for name, bases, methods, attributes in classes
        ),
        {name: tuple(members) for name, members in tables.items()},
        tuple(compiled),
        tuple(others),
        error,
    )


def _function(
    name: str,
    owner: str,
    line: int,
    decorators: list[str],
    compiled: bool,
    wraps: bool,
    calls: list[Any],
    candidates: list[Any],
    floats: list[Any],
) -> Function:
    return Function(
        name,
        owner,
        line,
        tuple(decorators),
        compiled,
        wraps,
        tuple([Call(target, sure, tuple(place)) for target, sure, place in calls]),
        tuple(map(Candidate._make, candidates)),
        tuple((argument, tuple(place)) for argument, place in floats),
    )
