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

if TYPE_CHECKING:
    from breakscope.report.model import Report, Suggestion


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
        from breakscope.fix.remedies import engine
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
            found = engine.remedies(
                report,
                what,
                settings,
                folder,
                timeout_s=timeout,
                select=select or (),
                progress=_say if sys.stderr.isatty() and not quiet else _silent,
            )
        schema.save(engine.applied(report, found), target)
        if not quiet:
            from breakscope.cli import output as printer

            printer.write(shown(report, found))
        return 0


def shown(report: Report, found: dict[str, Suggestion]) -> str:
    """The suggestions as text, in the order of the report's findings."""
    lines: list[str] = []
    diffs: set[str] = set()
    for finding in report.findings:
        suggestion = found.get(finding.fingerprint)
        if suggestion is None:
            continue
        at = f"{os.path.relpath(finding.location.file, report.run.cwd)}:{finding.location.line}"
        lines += [f"{finding.code}  {finding.title}", f"    {at}  {finding.location.function}"]
        if suggestion.status == "refused":
            lines.append(f"    no proved remedy: {suggestion.why}")
        else:
            lines.append(f"    {suggestion.status}: {suggestion.summary}")
            lines.append(f"    {suggestion.why}")
            if caveat := suggestion.evidence.get("caveat"):
                lines.append(f"    but: {caveat}")
            lines += [f"    limit: {limit}" for limit in suggestion.evidence.get("limits", ())]
            if suggestion.diff in diffs:
                lines.append("    the change is the one above")
            else:
                diffs.add(suggestion.diff)
                lines += [f"      {line}" for line in suggestion.diff.splitlines()]
        lines.append("")
    if not lines:
        return "no recompiles to treat\n"
    count = [one.status for one in found.values()]
    parts = [f"{count.count(status)} {status}" for status in ("proved", "unproved", "refused")]
    return "\n".join([*lines, ", ".join(parts)]) + "\n"


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
