"""``breakscope prove``."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.cli.fix import FORMAT_NAMES, Format, settings_of
from breakscope.cli.output import draw
from breakscope.cli.script_words import ScriptCommand, program_of, program_of_report
from breakscope.cli.trust import TrustReport, confirm_run
from breakscope.errors import OutputError, UsageError

if TYPE_CHECKING:
    from breakscope.fix.diff import Change
    from breakscope.fix.prove import Proved
    from breakscope.inside.settings import Settings
    from breakscope.report.model import Report
    from breakscope.run.launch import Program


_NOT_WRITTEN = "no counterexample is written: an argument or a changed line of it looks like a secret"


class Exact(StrEnum):
    """Choices of ``--exact``."""

    BITWISE = "bitwise"
    REASSOCIATED = "reassociated"


class _PatchCommand(ScriptCommand):
    """The patch is ours and comes first; the script, after ``--``, is not."""

    def split(self, _ctx: object, args: list[str]) -> tuple[list[str], list[str]]:
        at = args.index("--") if "--" in args else len(args)
        return args[:at], args[at + 1 :]


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        "prove",
        cls=_PatchCommand,
        options_metavar="[OPTIONS] PATCH [-- SCRIPT|-m MODULE [ARGS]...]",
        epilog="PATCH may be - for standard input: git diff | breakscope prove - -- train.py",
    )
    def prove(
        ctx: typer.Context,
        patch: Annotated[
            str,
            typer.Argument(
                metavar="PATCH", help="A unified diff; with --against, the file that was changed."
            ),
        ],
        report: Annotated[
            Path | None,
            typer.Option(
                "--report", metavar="REPORT", help="Run the script of this report, as it was scanned."
            ),
        ] = None,
        against: Annotated[
            Path | None, typer.Option(metavar="OLD_FILE", help="The changed file as it was before.")
        ] = None,
        exact: Annotated[
            Exact,
            typer.Option(
                metavar="|".join(Exact), help="Results must be equal bit for bit, or up to the order of sums."
            ),
        ] = Exact.BITWISE,
        counterexample: Annotated[
            Path | None,
            typer.Option(metavar="FILE.py", help="If the results differ, write a script that shows both."),
        ] = None,
        inductor: Annotated[
            bool, typer.Option(help="In the end, also compare the script under Inductor.")
        ] = True,
        bench: Annotated[
            bool, typer.Option("--bench", help="Time a step with the patch and without it.")
        ] = False,
        timeout: arguments.RunTimeout = None,
        budget: Annotated[
            float, typer.Option(min=1, metavar="SECONDS", help="Time for the comparisons of one function.")
        ] = 60,
        python: arguments.Python = None,
        trust_report: TrustReport = False,
        format_: Annotated[
            Format, typer.Option("--format", "-f", metavar=FORMAT_NAMES, help="Output format.")
        ] = Format.TERMINAL,
    ) -> int:
        """Prove that a patch, by anybody, computes what the code computed before.

        No file is changed. Exits with 0 if the patch is proved, else with 1.
        """
        from breakscope.fix import counterexample as examples
        from breakscope.fix import prove as engine
        from breakscope.fix import runs
        from breakscope.report.latest import FOLDER
        from breakscope.run import interpreter, launch

        interpreter.use(python)
        if bench and not inductor:
            raise UsageError("--bench times the script under Inductor; leave out --no-inductor")
        text = "" if against else _read(patch)
        place = counterexample.absolute() if counterexample else None
        was = Path.cwd()
        what, settings = _script(ctx, report, trusted=trust_report)
        changes = _changes(patch, text, against, was)
        options = engine.Options(settings, exact.value, inductor)
        with launch.workspace(Path(FOLDER).absolute()) as work:
            script = runs.Script(what, work, timeout, budget)
            proved = engine.prove(changes, script, options, draw)
        draw("")
        wrote = None
        if place is not None and proved.counterexample is not None:
            example = examples.script_of(proved.counterexample, changes, script, options, proved.through)
            if example is not None:
                wrote = _write(place, example)
            else:
                print(f"breakscope: {_NOT_WRITTEN}", file=sys.stderr)
        _show(proved, changes, format_, wrote, bench=bench)
        return 0 if proved.verdict.status == "proved" else 1


def _read(patch: str) -> str:
    from breakscope.fix.diff import DiffError

    try:
        data = sys.stdin.buffer.read() if patch == "-" else Path(patch).read_bytes()
    except OSError as error:
        raise DiffError(f"cannot read the patch {patch}: {error.strerror}") from None
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DiffError(f"the patch {patch} is not UTF-8") from None


def _changes(patch: str, text: str, against: Path | None, was: Path) -> list[Change]:
    """The changes; names in a diff are relative to the folder, or to the repository around it."""
    from breakscope.fix import diff

    if against is not None:
        return [diff.against(was / patch, was / against)]
    above = [was, *was.parents]
    roots = [one for one in above if (one / ".git").exists()][:1]
    return diff.changes(text, [*roots, was, Path.cwd()])


def _script(ctx: typer.Context, path: Path | None, *, trusted: bool) -> tuple[Program, Settings]:
    """What to run, and how it is compiled; of a report, where it was run."""
    from breakscope.inside.settings import Settings
    from breakscope.report import schema
    from breakscope.report.latest import FOLDER, LATEST

    words = ctx.meta["breakscope.program"]
    if words and path is not None:
        raise UsageError("name a script after --, or a report: not both")
    if words:
        return program_of(words, "run"), Settings(cost=False)
    latest = Path(FOLDER) / LATEST
    if path is None and not latest.exists():
        raise UsageError("name the script to prove it on: breakscope prove PATCH -- train.py")
    report: Report = schema.load(path or latest)
    confirm_run(report, "prove", trusted=trusted)
    try:
        os.chdir(report.run.cwd)
    except OSError as error:
        raise OutputError(f"the script ran in {report.run.cwd}: {error.strerror}") from None
    return program_of_report(report), settings_of(report)


def _write(place: Path, text: str) -> Path:
    from breakscope.report import schema

    schema.write(text.encode(), place)
    return place


def _show(
    proved: Proved,
    changes: list[Change],
    format_: Format,
    wrote: Path | None,
    *,
    bench: bool,
) -> None:
    from breakscope.cli import output
    from breakscope.fix import answer as answers
    from breakscope.report.secrets import masked

    answer = masked(answers.answer(proved, changes, str(wrote) if wrote else None))
    if format_ is Format.JSON:
        output.write(json.dumps(answer, indent=1))
    else:
        output.write(answers.text(answer, bench=bench))
