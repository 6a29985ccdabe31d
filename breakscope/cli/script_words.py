"""Where our part of a command line ends and that of the user's script begins, and what is to be run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.core

from breakscope.errors import BreakscopeError, UsageError

if TYPE_CHECKING:
    from breakscope.report.model import Report
    from breakscope.run.launch import Program

MODULE_OPTION = "-m"


def program_of(words: Sequence[str], purpose: str) -> Program:
    """What to run, as the command line names it.

    Args:
        words: the script or ``-m`` and a module, and its arguments.
        purpose: what a script is wanted for, where none is named: "scan".

    Raises:
        UsageError, ScriptNotFoundError: nothing is named, or there is no such thing.
    """
    from breakscope.run.program import program

    module = words[:1] == [MODULE_OPTION]
    words = words[1:] if module else words
    if not words:
        raise UsageError("name a module after -m" if module else f"name a script to {purpose}")
    return program(words[0], words[1:], module=module)


def program_of_report(report: Report) -> Program:
    """What a report is of, to run it again.

    Raises:
        TorchMissingError, ScriptNotFoundError: it cannot be run here.
    """
    from breakscope.report.secrets import is_masked
    from breakscope.run.program import check_torch, program

    check_torch()
    if any(map(is_masked, report.run.argv)):
        raise UsageError(
            "an argument of the script was a secret and is not in the report: "
            "give it in the environment, and scan again"
        )
    option, _, name = report.run.script.partition(" ")
    module = option == MODULE_OPTION and bool(name)
    return program(name if module else report.run.script, report.run.argv, module=module)


class ScriptCommand(typer.core.TyperCommand):
    """Options of ours stand before the script; all after it is the script's, untouched."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split the line where the script's part begins, then let click read ours."""
        ours, theirs = self.split(ctx, args)
        ctx.meta["breakscope.program"] = theirs
        tell_of_ours(ctx, theirs)
        return super().parse_args(ctx, ours)

    def split(self, ctx: Any, args: list[str]) -> tuple[list[str], list[str]]:
        """Our words and the script's."""
        takes_value = {
            name
            for option in self.get_params(ctx)
            if not getattr(option, "is_flag", False)
            for name in option.opts
        }
        index = 0
        while index < len(args):
            arg = args[index]
            if arg == MODULE_OPTION:
                return args[:index], args[index:]
            if arg == "-c" or arg.startswith("-c "):
                raise UsageError("code given with -c cannot be run again; write it to a file and name that")
            if arg == "--":
                return args[:index], args[index + 1 :]
            if not arg.startswith("-") or arg == "-":
                return args[:index], args[index:]
            index += 2 if arg in takes_value else 1
        return args, []


def tell_of_ours(ctx: Any, words: Sequence[str]) -> None:
    """Have it said in the end where an option of ours stands after a script that has no such option.

    Args:
        words: the script or ``-m`` and a module, and its arguments.
    """
    own = {name for option in ctx.command.params for name in (*option.opts, *option.secondary_opts)}
    arguments = words[2:] if words[:1] == [MODULE_OPTION] else words[1:]
    if "--" in arguments:  # what the user has marked as the script's
        arguments = arguments[: arguments.index("--")]
    taken = list(dict.fromkeys(name for word in arguments if (name := word.partition("=")[0]) in own))
    theirs = _taken_by_script(words) if taken else frozenset()
    taken = [name for name in taken if name not in theirs]
    if taken:
        names = ", ".join(f"`{name}`" for name in taken)
        text = f"{names} stood after the script and went to it; options of {ctx.info_name} go before it"
        ctx.call_on_close(lambda: print(f"breakscope: note: {text}", file=sys.stderr))


def _taken_by_script(words: Sequence[str]) -> frozenset[str]:
    """The options that the script takes itself; none where it cannot be found."""
    from breakscope.run.program import project_roots
    from breakscope.source.options import options_of

    try:
        what = program_of(words, "run")
    except BreakscopeError:
        return frozenset()  # which is said elsewhere
    return options_of(what.path, project_roots(what, Path.cwd()))
