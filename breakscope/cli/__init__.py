"""The command line: one small module for each command. They parse, wire, print and exit."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. No traceback of ours without ``--debug``."""
    if argv is None:
        from breakscope.run import surroundings

        surroundings.note_start()
    args = list(sys.argv[1:] if argv is None else argv)
    debug = bool(args) and args[0] == "--debug"
    if debug:
        args.pop(0)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (| head); Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if debug:
            raise
        code, sentence = _explain(error)
        print(f"breakscope: {sentence}", file=sys.stderr)
        return code


def _run(args: list[str]) -> int:
    import typer

    from breakscope.cli.app import command

    try:
        code = command().main(args or ["--help"], prog_name="breakscope", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> tuple[int, str]:
    """Exit code and sentence for an error that ended a command."""
    from breakscope.errors import BreakscopeError

    if isinstance(error, BreakscopeError):
        return error.exit_code, str(error)
    if (option := getattr(error, "option_name", None)) and (near := getattr(error, "possibilities", None)):
        return 2, f"no such option {option}; did you mean {' or '.join(sorted(near))}?"
    # A usage error of the command-line parser. Its class is click's own or typer's copy of it,
    # depending on the version of typer; both have this method.
    format_message = getattr(error, "format_message", None)
    if callable(format_message):
        text = " ".join(str(format_message()).split())
        return 2, text[0].lower() + text[1:].rstrip(".")
    text = f"internal error: {type(error).__name__}: {error}"
    return 4, f"{text} (breakscope --debug … shows where; please report it)"
