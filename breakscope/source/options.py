"""Which options a script takes, as far as its text says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MOST_FILES = 60  # of a project: enough for a command line, and read in well under a second


def options_of(script: str, roots: tuple[str, ...]) -> frozenset[str]:
    """The options, ``--steps``, that a script or what it imports from its own project names.

    They are texts that are an option (argparse, click, absl), fields of a class (dataclass parsers) and
    arguments of a decorated function (typer, click).

    Args:
        roots: folders from which the script imports its own modules.
    """
    found: set[str] = set()
    seen: set[Path] = set()
    waiting = [Path(script)]
    while waiting and len(seen) < MOST_FILES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        tree = _parsed(file)
        if tree is not None:
            found |= {name for node in ast.walk(tree) for name in _named(node)}
            waiting += [path for node in ast.walk(tree) for path in _imported(node, file, roots)]
    return frozenset(found)


def _parsed(file: Path) -> ast.Module | None:
    try:
        # What a pipe holds is Python's to read.
        return ast.parse(file.read_bytes()) if file.is_file() else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _named(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if text.startswith("-"):
            yield text
        case ast.ClassDef(body=body):
            for line in body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield from _spelled(line.target.id)
        case ast.FunctionDef(decorator_list=[_, *_], args=args):
            for arg in (*args.args, *args.kwonlyargs):
                yield from _spelled(arg.arg)


def _spelled(name: str) -> tuple[str, str]:
    return f"--{name}", f"--{name.replace('_', '-')}"


def _imported(node: ast.AST, file: Path, roots: tuple[str, ...]) -> Iterator[Path]:
    match node:
        case ast.Import(names=names):
            modules, folders = [alias.name for alias in names], [Path(root) for root in roots]
        case ast.ImportFrom(module=module, names=names, level=level):
            folders = (
                [file.parents[level - 1]] if 0 < level <= len(file.parents) else [Path(r) for r in roots]
            )
            prefix = f"{module}." if module else ""
            modules = [*([module] if module else []), *(f"{prefix}{alias.name}" for alias in names)]
        case _:
            return
    for folder in folders:
        for module in modules:
            place = folder.joinpath(*module.split("."))
            for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                if path.is_file():
                    yield path
