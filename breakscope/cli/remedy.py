"""``breakscope remedy``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.cli.progress import Progress, duration
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
        select: arguments.Select = None,
        ignore: arguments.Ignore = None,
        compile_: Annotated[
            str | None,
            typer.Option(
                "--compile", metavar="auto|script|FUNCTION", help="What to compile (default: as in the scan)."
            ),
        ] = None,
        timeout: Annotated[
            float | None,
            typer.Option(
                min=0.1, metavar="SECONDS", help="End each run of the script after this many seconds."
            ),
        ] = None,
        regional: Annotated[
            bool,
            typer.Option(
                "--regional",
                help="Try to compile layers that are alike one by one, however short the compile was.",
            ),
        ] = False,
        output: Annotated[
            Path | None,
            typer.Option(
                "--output", "-o", metavar="FILE", help="Report file to write (default: the report itself)."
            ),
        ] = None,
        python: arguments.Python = None,
        trust_report: TrustReport = False,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Find and verify fixes for recompiles and long compiles.

        The script runs once as it is and once with each remedy. No file of yours is changed. Exits with 0 if
        every finding has a proved remedy, else with 1.
        """
        from breakscope.cli import output as printer
        from breakscope.fix import engine, outcomes, runs
        from breakscope.fix.work import Options
        from breakscope.inside.settings import Settings
        from breakscope.report import schema
        from breakscope.report.latest import FOLDER, LATEST
        from breakscope.report.secrets import mask
        from breakscope.run import interpreter, launch

        interpreter.use(python)
        place = (path or Path(FOLDER) / LATEST).absolute()
        target = output.absolute() if output else place
        report = schema.load(place)
        if regional:
            report = _with_layers(report)
        chosen = _chosen(report, arguments.words(select), arguments.codes(ignore))
        confirm_run(report, "remedy", trusted=trust_report)
        _go_to(report)
        what = program_of_report(report)
        settings = Settings(
            compile=compile_ or report.run.asked.get("compile", "auto"),
            backend=report.run.backend,
            mode=report.run.mode,
        )
        fixed = outcomes.Fixed((), {}, None)
        if chosen:
            with launch.workspace(target.parent) as folder, Progress(quiet=quiet) as progress:
                script = runs.Script(what, folder, timeout, budget_s=0)
                told = _counted(progress, len(chosen))
                try:
                    fixed = engine.remedies(report, script, Options(settings), told, chosen)
                except KeyboardInterrupt:
                    progress.close()
                    print(
                        f"breakscope: interrupted after {duration(progress.elapsed_s)}; "
                        f"{printer.relative(target)} is as it was, and no file of yours was changed",
                        file=sys.stderr,
                    )
                    raise
        schema.save(outcomes.suggested(report, fixed), target)
        if not quiet:
            printer.write(mask(shown(report, fixed)))
        proved = [outcome.suggestion.label == "proved" for outcome in fixed.outcomes]
        return 0 if all(proved) else 1


def shown(report: Report, fixed: Fixed) -> str:
    """The suggestions as text, in the order of the report's findings."""
    lines: list[str] = []
    diffs: set[str] = set()
    for outcome in fixed.outcomes:
        finding, suggestion = outcome.finding, outcome.suggestion
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
        return "no recompiles to treat, and no long compiles of layers that are alike\n"
    count = [outcome.suggestion.label for outcome in fixed.outcomes]
    shown = [label for label in LABELS if label != "needs consent" or label in count]
    return "\n".join([*lines, ", ".join(f"{count.count(label)} {label}" for label in shown)]) + "\n"


def _with_layers(report: Report) -> Report:
    """The report with a finding about the module whose layers are alike."""
    from breakscope.fix.remedies import regional
    from breakscope.run.program import project_roots

    if regional.signature_of(report) is None:
        raise UsageError(
            "nothing that was compiled holds three or more layers that are alike (of one class and one "
            "structure, in a ModuleList, ModuleDict or Sequential): there is nothing to compile one by one"
        )
    return regional.asked_for(report, project_roots(program_of_report(report), Path(report.run.cwd)))


def _go_to(report: Report) -> None:
    try:
        os.chdir(report.run.cwd)
    except OSError as error:
        raise UsageError(
            f"the script ran in {report.run.cwd}, which cannot be entered: {error.strerror}; scan again"
        ) from None


def _chosen(report: Report, select: Sequence[str], ignore: tuple[str, ...]) -> list[str]:
    """Fingerprints of the findings to treat; ``select`` has codes, prefixes of codes, or fingerprints.

    Raises:
        UsageError: a word of ``select`` is none of these.
    """
    from breakscope.fix.remedies.engine import treats

    prints = [finding.fingerprint for finding in report.findings]
    fingerprints = tuple(word for word in select if any(name.startswith(word) for name in prints))
    wanted = arguments.codes([word for word in select if word not in fingerprints])
    return [
        finding.fingerprint
        for finding in report.findings
        if treats(finding, report)
        and (not select or finding.code.startswith(wanted) or finding.fingerprint.startswith(fingerprints))
        and not finding.code.startswith(ignore)
    ]


def _counted(progress: Progress, findings: int) -> Callable[[str], None]:
    """Says which run of the script it is, and of how many: of each finding at least one, and one without."""
    numbers = count(1)

    def tell(text: str) -> None:
        number = next(numbers)
        progress(f"run {number} of about {max(number, findings + 1)}: {text}")

    return tell
