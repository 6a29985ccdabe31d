# ruff: noqa: INP001 - a script, not a package
"""Writes the files of a new rewrite rule, ready to be filled in; see CONTRIBUTING.md.

    python scripts/new_rule.py NAME CODE     for example: deepcopy-to-clone BS118

It writes breakscope/fix/rules/NAME.py and tests/fix/rules/NAME.py, and adds the rule to the imports and to
the tuple in breakscope/fix/rules/__init__.py. Nothing is overwritten.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

RULE = '''\
"""WHAT is written, why Dynamo breaks there, and what is written instead."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe


class {class_name}(Rule):
    """``BEFORE`` -> ``AFTER``."""

    name = "{name}"
    codes = ("{code}",)
    title = "AFTER instead of BEFORE"
    does = "`BEFORE` becomes `AFTER`"
    needs = ("WHAT HOLDS WHERE IT IS REWRITTEN, one sentence each.",)
    hazards = ("WHAT IT REFUSES, OR WHAT IS DIFFERENT AFTERWARDS, one sentence each.",)
    rewritten = Example(
        """\\
def f(x):
    return BEFORE
""",
        """\\
def f(x):
    return AFTER
""",
    )
    left_alone = Example(
        """\\
def f(x):
    return WHAT LOOKS ALIKE, AND MUST STAY
""",
        why="PART OF THE REASON",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the call at the site."""
        for node in site.around():
            if isinstance(node, ast.Call):
                if not site.is_tensor(node.args[0]):
                    raise Unsafe(f"`{{site.text(node.args[0])}}` is not always a tensor")
                return Rewrite(
                    edits=(Edit(*site.offsets(node), "AFTER"),),
                    summary="AFTER instead of BEFORE",
                )
        return None
'''

TABLE = '''\
"""What the rule ``{name}`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES: tuple[Example, ...] = ()

LEAVES: tuple[Example, ...] = ()
'''


def registered(text: str, module: str, class_name: str) -> str:
    """The text of ``rules/__init__.py`` with one more rule, in alphabetical order."""
    for new, pattern in (
        (f"from breakscope.fix.rules.{module} import {class_name}\n", r"from breakscope\.fix\.rules\..*\n"),
        (f"        {class_name}(),\n", r"        \w+\(\),\n"),
    ):
        rows = list(re.finditer(pattern, text))
        after = [row for row in rows if row[0] < new]
        place = after[-1].end() if after else rows[0].start()
        text = text[:place] + new + text[place:]
    return text


def main() -> int:
    """Read the command line, write the files; 1 if the rule exists."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="short and stable, of small letters, digits and hyphens")
    parser.add_argument("code", help="of the findings that it answers; `breakscope explain --list` has all")
    options = parser.parse_args()
    if not re.fullmatch(r"[a-z]\w*(-[a-z0-9]+)*", options.name) or "_" in options.name:
        parser.error(f"{options.name!r} is no name such as deepcopy-to-clone")
    if not re.fullmatch(r"BS\d{3}", options.code):
        parser.error(f"{options.code!r} is no code such as BS118")
    module = options.name.replace("-", "_")
    words = {"name": options.name, "code": options.code}
    words["class_name"] = "".join(word.capitalize() for word in module.split("_"))
    rule = ROOT / "breakscope" / "fix" / "rules" / f"{module}.py"
    table = ROOT / "tests" / "fix" / "rules" / f"{module}.py"
    for file in (rule, table):
        if file.exists():
            print(f"{file.relative_to(ROOT)} exists", file=sys.stderr)
            return 1
    rule.write_text(RULE.format(**words), encoding="utf-8")
    table.write_text(TABLE.format(**words), encoding="utf-8")
    rules = rule.with_name("__init__.py")
    text = registered(rules.read_text(encoding="utf-8"), module, words["class_name"])
    rules.write_text(text, encoding="utf-8")
    for file in (rule, table, rules):
        print(file.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
