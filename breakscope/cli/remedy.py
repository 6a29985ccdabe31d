"""``breakscope remedy``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.cli.script_words import program_of_report
from breakscope.cli.trust import TrustReport, confirm_run
from breakscope.errors import UsageError

LABELS = ("proved", "needs consent", "unproved", "refused")

if TYPE_CHECKING:
    from breakscope.fix.outcomes import Fixed
    from breakscope.report.model import Report


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("remedy")
    def remedy(
        path: arguments.Saved = None,
        select: Annotated[
            list[str] | None,
            typer.Option(metavar="CODE", help="Only these codes or fingerprints; may be repeated."),
        ] = None,
        compile_: Annotated[
            str, typer.Option("--compile", metavar="auto|script|FUNCTION", help="As the scan was asked to.")
        ] = "auto",
        timeout: Annotated[
            float | None, typer.Option(min=0.1, help="End each run of the script after this many seconds.")
        ] = None,
        output: Annotated[
            Path | None,
            typer.Option("--output", "-o", help="Report file to write (default: the report itself)."),
        ] = None,
        trust_report: TrustReport = False,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Try what would keep recompiles from happening, on the script itself, and say what was proved.

        The script runs again once as it is and once for each remedy. No file of yours is changed.
        """
        from breakscope.fix import engine, outcomes, runs
        from breakscope.fix.work import Options
        from breakscope.inside.settings import Settings
        from breakscope.report import schema
        from breakscope.report.latest import FOLDER, LATEST
        from breakscope.run import launch

        place = (path or Path(FOLDER) / LATEST).absolute()
        target = output.absolute() if output else place
        report = schema.load(place)
        confirm_run(report, "remedy", trusted=trust_report)
        _go_to(report)
        what = program_of_report(report)
        settings = Settings(compile=compile_, backend=report.run.backend, mode=report.run.mode)
        with launch.workspace(target.parent) as folder:
            script = runs.Script(what, folder, timeout, budget_s=0)
            progress = _say if sys.stderr.isatty() and not quiet else _silent
            fixed = engine.remedies(report, script, Options(settings), progress, select or ())
        schema.save(outcomes.suggested(report, fixed), target)
        if not quiet:
            from breakscope.cli import output as printer

            printer.write(shown(report, fixed))
        return 0


def shown(report: Report, fixed: Fixed) -> str:
    """The suggestions as text, in the order of the report's findings."""
    lines: list[str] = []
    diffs: set[str] = set()
    for one in fixed.outcomes:
        finding, suggestion = one.finding, one.suggestion
        at = f"{os.path.relpath(finding.location.file, report.run.cwd)}:{finding.location.line}"
        lines += [f"{finding.code}  {finding.title}", f"    {at}  {finding.location.function}"]
        if suggestion.status == "refused":
            lines.append(f"    no proved remedy: {suggestion.why}")
        else:
            lines.append(f"    {suggestion.label}: {suggestion.summary}")
            lines.append(f"    {suggestion.why}")
            lines += [f"    limit: {limit}" for limit in suggestion.evidence.get("limits", ())]
            if suggestion.diff in diffs:
                lines.append("    the change is the one above")
            else:
                diffs.add(suggestion.diff)
                lines += [f"      {line}" for line in suggestion.diff.splitlines()]
        lines.append("")
    if not lines:
        return "no recompiles to treat\n"
    count = [one.suggestion.label for one in fixed.outcomes]
    shown = [label for label in LABELS if label != "needs consent" or label in count]
    return "\n".join([*lines, ", ".join(f"{count.count(label)} {label}" for label in shown)]) + "\n"


def _go_to(report: Report) -> None:
    try:
        os.chdir(report.run.cwd)
    except OSError as error:
        raise UsageError(
            f"the script ran in {report.run.cwd}, which cannot be entered: {error.strerror}; scan again"
        ) from None


def _say(text: str) -> None:
    print(f"breakscope: {text}", file=sys.stderr)


def _silent(_text: str) -> None:
    return None
