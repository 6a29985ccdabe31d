"""A number kept on a module as a buffer: an input of the graph, and no constant of it."""

from __future__ import annotations

import ast
import re

from breakscope.fix.patch import Refusal
from breakscope.fix.remedies.source import File, Files
from breakscope.fix.remedies.subject import Proposal, Subject

_OWN = re.compile(r"self\.(?P<name>\w+)$")


def buffer(subject: Subject, files: Files, template: str) -> list[Proposal]:
    """``self.x = 1.0`` in ``__init__`` -> ``self.register_buffer("x", …, persistent=False)``."""
    found = _OWN.match(subject.guard.source or "")
    file = files.open(subject.finding.location.file)
    if found is None or file is None or subject.finding.location.owner != "project":
        return []
    place = _assignment(file, subject.finding.location.line, found["name"])
    if place is None:
        return []
    if (line := _given_a_number(file, place, found["name"])) is not None:
        why = f"self.{found['name']} is given a plain number in line {line}, which a buffer does not take"
        return [Refusal(why)]
    value = template.format(file.source(place.value))
    text = f'self.register_buffer("{found["name"]}", {value}, persistent=False)'
    return [
        subject.patch(
            "attribute-to-buffer",
            f"keep self.{found['name']} in a buffer, which is an input of the graph and no constant of it",
            (file.replace(place, text), *file.torch_import()),
            caveat=(
                f"self.{found['name']} is a tensor from then on, and a buffer: .to() and .half() convert it, "
                "DDP broadcasts it, a change in place shows wherever it was noted, and no plain number can "
                "be assigned to it; state_dict() has the same keys as before, and .item() gives the number"
            ),
        )
    ]


def _assignment(file: File, line: int, name: str) -> ast.Assign | None:
    """``self.name = <number>`` in the ``__init__`` of the class whose method stands at a line."""
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.ClassDef) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                return next((one for one in ast.walk(method) if _sets(one, name)), None)  # type: ignore[return-value]
    return None


def _given_a_number(file: File, place: ast.Assign, name: str) -> int | None:
    """The line in which the attribute gets a value that does not come of itself; None if there is none."""
    around = {id(node) for node in file.parents(place)}
    for node in ast.walk(file.tree):
        match node:
            case ast.Call(ast.Name("setattr"), [_, ast.Constant(attribute), *_]) if attribute == name:
                return node.lineno
            case ast.Attribute(owner, attribute, ast.Store()) if attribute == name:
                statement = next(parent for parent in file.parents(node) if isinstance(parent, ast.stmt))
                if statement is place or _comes_of_itself(statement, name):
                    continue
                # Another class may have an attribute of the same name; one that inherits has this one.
                holder = next(
                    (parent for parent in file.parents(node) if isinstance(parent, ast.ClassDef)), None
                )
                other = (
                    holder is not None and id(holder) not in around and not _inherits(holder, around, file)
                )
                if not (other and isinstance(owner, ast.Name) and owner.id == "self"):
                    return node.lineno
    return None


def _comes_of_itself(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Assign):
        return any(isinstance(one, ast.Attribute) and one.attr == name for one in ast.walk(statement.value))
    return isinstance(statement, ast.AugAssign)


def _inherits(holder: ast.ClassDef, around: set[int], file: File) -> bool:
    names = {
        node.name for node in ast.walk(file.tree) if isinstance(node, ast.ClassDef) and id(node) in around
    }
    return any(ast.unparse(base).rpartition(".")[2] in names for base in holder.bases)


def _sets(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign([ast.Attribute(ast.Name("self"), attribute)]):
            return attribute == name
    return False
