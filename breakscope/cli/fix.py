"""``breakscope fix``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.cli.output import draw
from breakscope.cli.script_words import program_of_report
from breakscope.cli.trust import TrustReport, confirm_run
from breakscope.errors import OutputError, ReportError, UsageError

if TYPE_CHECKING:
    from breakscope.fix.evidence import Verdict
    from breakscope.fix.outcomes import Fixed
    from breakscope.fix.patch import Patch
    from breakscope.inside.settings import Settings
    from breakscope.report.model import Report


class Format(StrEnum):
    """Choices of ``--format``."""

    TERMINAL = "terminal"
    TEXT = "text"  # what terminal was called before 0.2
    JSON = "json"


FORMAT_NAMES = "terminal|json"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("fix")
    def fix(
        path: arguments.Saved = None,
        write: Annotated[
            bool, typer.Option("--write", help="Write the accepted rewrites into the files of your project.")
        ] = False,
        unsafe: Annotated[
            bool, typer.Option("--unsafe", help="Also accept rewrites that change behaviour.")
        ] = False,
        select: arguments.Select = None,
        ignore: arguments.Ignore = None,
        interactive: Annotated[
            bool, typer.Option("--interactive", "-i", help="Ask before each rewrite is accepted.")
        ] = False,
        output: Annotated[
            Path | None,
            typer.Option(
                "--fixes",
                "--output",
                "-o",
                metavar="DIR",
                help="Folder to write the fixes to (default .breakscope/fixes).",
            ),
        ] = None,
        export_overlay: Annotated[
            Path | None,
            typer.Option(
                metavar="FILE", help="Also write one module that fixes libraries when it is imported."
            ),
        ] = None,
        inductor: Annotated[
            bool, typer.Option(help="In the end, also compare the fixed script under Inductor.")
        ] = True,
        timeout: arguments.RunTimeout = None,
        budget: Annotated[
            float, typer.Option(min=1, metavar="SECONDS", help="Time for the comparisons of one rewrite.")
        ] = 60,
        command: Annotated[
            str,
            typer.Option(
                "--with",
                metavar="COMMAND",
                help="Where no rule applies, ask this command: JSON in, unified diff out.",
            ),
        ] = "",
        tries: Annotated[
            int, typer.Option(min=1, metavar="N", help="Ask that command at most N times about one finding.")
        ] = 3,
        format_: Annotated[
            Format, typer.Option("--format", "-f", metavar=FORMAT_NAMES, help="Output format.")
        ] = Format.TERMINAL,
        python: arguments.Python = None,
        trust_report: TrustReport = False,
        jobs: Annotated[
            int | None,
            typer.Option("--jobs", "-j", min=1, metavar="N", help="Runs of the script at a time."),
        ] = None,
        forks: Annotated[
            bool, typer.Option(help="Load the script's modules once, and fork its further runs from there.")
        ] = True,
        rules: Annotated[bool, typer.Option("--rules", help="List the rewrite rules and exit.")] = False,
        all_: Annotated[bool, typer.Option("--all", help="Also show what is not proved, and why.")] = False,
    ) -> int:
        """Rewrite code that breaks or recompiles, and prove that the rewrite computes the same.

        The script of the report runs several times: once to see its values, once for each rewrite, and as a
        whole with the rewrites and without them. Exits with 0 if every finding has an accepted rewrite, else
        with 1.
        """
        if rules:
            return _list_rules()
        from breakscope.fix import apply, engine, outcomes, runs, store
        from breakscope.fix.work import Options
        from breakscope.report import schema
        from breakscope.report.latest import FOLDER, LATEST
        from breakscope.report.secrets import masked
        from breakscope.run import interpreter, launch

        interpreter.use(python)
        # Before going where the script ran: paths are the user's.
        given = path or Path(FOLDER) / LATEST
        report, place = schema.load(given), given.absolute()
        chosen = output.absolute() if output else None
        exported = export_overlay.absolute() if export_overlay else None
        confirm_run(report, "fix", trusted=trust_report)
        root = _enter(report)
        folder = chosen or (Path(FOLDER) / "fixes").absolute()
        if interactive and not sys.stdin.isatty():
            raise UsageError("--interactive needs a terminal to ask on")
        options = Options(
            settings_of(report),
            arguments.codes(select),
            arguments.codes(ignore),
            unsafe,
            inductor,
            command=command,
            tries=tries,
            proofs=Path(FOLDER).absolute() / "proofs",
            forks=forks,
        )
        with launch.workspace(folder.parent) as work:
            script = runs.Script(
                program_of_report(report), work, timeout, budget, jobs=jobs or runs.jobs(report)
            )
            choose = _ask if interactive else None
            try:
                fixed = engine.fix(report, script, options, draw, choose)
            except KeyboardInterrupt:
                draw("")
                print("proofs made up to now are kept; the same command goes on from there", file=sys.stderr)
                raise
        draw("")
        _say_how(fixed)
        if format_ is not Format.JSON:
            _show(fixed, everything=all_)
        groups = _groups(fixed, accepted := fixed.accepted)
        store.write_folder(folder, groups, fixed.sources, script.what.path, root)
        schema.save(outcomes.suggested(report, fixed), place)
        if exported is not None:
            manifest = store.manifest(accepted, fixed.sources, script.what.path)
            text = store.export(manifest, f"breakscope fix --export-overlay {export_overlay}")
            schema.write(text.encode(), exported)
        written, left = apply.write(accepted, fixed.sources, root) if write else ([], {})
        missed = apply.missed(left, accepted, root)
        code = 0 if all(outcome.accepted for outcome in fixed.outcomes) and not missed else 1
        if format_ is Format.JSON:
            print(json.dumps(masked(outcomes.answer(fixed, folder, written, left, code)), indent=1))
            return code
        for file in written:
            print(f"written: {os.path.relpath(file)}")
        for file, why in left.items():
            print(f"not written: {os.path.relpath(file)}: {why}")
        _next(report, fixed, [] if missed else accepted, folder, write)
        return code


def _enter(report: Report) -> Path:
    """Go where the script ran; return the root of its project."""
    from breakscope.cli.report import repository

    if report.run.world_size > 1:
        raise ReportError("fix cannot run a script of several ranks yet: scan it as one process")
    try:
        os.chdir(report.run.cwd)
    except OSError as error:
        raise OutputError(f"the script ran in {report.run.cwd}: {error.strerror}") from None
    return Path(repository(report))


def settings_of(report: Report) -> Settings:
    """How trials compile: as the scan of the report did."""
    from breakscope.inside.settings import Settings

    asked = report.run.asked
    return Settings(
        compile=asked.get("compile", "auto"),
        dynamic=asked.get("dynamic", "auto"),
        steps=asked.get("steps"),
        cost=False,
    )


def _say_how(fixed: Fixed) -> None:
    """What was run for the answer, where that is not the usual."""
    if fixed.kept:
        print("nothing was run: nothing that this depends on has changed since", file=sys.stderr)
    if fixed.unforked:
        why = f"not forked but started anew, which takes longer: {fixed.unforked}"
        print(f"runs of the script were {why}", file=sys.stderr)


def _show(fixed: Fixed, *, everything: bool) -> None:
    from breakscope.cli import output
    from breakscope.render import fixes
    from breakscope.report.secrets import mask

    answers = [(outcome.finding, outcome.suggestion) for outcome in fixed.outcomes]
    text = fixes.render(answers, everything=everything, color=output.wants_color(), root=os.getcwd())
    output.write(mask(text))


def _groups(fixed: Fixed, accepted: Sequence[Patch]) -> dict[str, list[Patch]]:
    groups: dict[str, list[Patch]] = {"": list(accepted), "consent": [], "unproved": []}
    for outcome in fixed.outcomes:
        if outcome.patch is None or outcome.accepted or outcome.suggestion.status == "refused":
            continue
        group = groups["consent" if outcome.suggestion.needs_consent else "unproved"]
        if outcome.patch not in group:
            group.append(outcome.patch)
    return groups


def _ask(patch: Patch, verdict: Verdict, diff: str) -> bool:
    from breakscope.cli import output
    from breakscope.report.secrets import mask

    draw("")
    where = patch.findings[0].location
    output.write(f"{mask(diff)}\n{patch.rewrite.summary} at {where.file}:{where.line}: {verdict.why}")
    return typer.confirm("accept?", default=True)


def _next(report: Report, fixed: Fixed, accepted: Sequence[Patch], folder: Path, written: bool) -> None:
    if not accepted:
        if not fixed.outcomes:
            print("nothing to fix: no breaks or recompiles among the findings asked for")
        return
    for line in _sites(fixed):
        print(line)
    place = os.path.relpath(folder)
    script = " ".join([report.run.script, *report.run.argv])
    edits = [one for one in accepted if one.edits]  # options of a compile and settings have none
    own = any(finding.location.owner == "project" for edit in edits for finding in edit.findings)
    print(f"\nnext  breakscope run --fixes {place} {script}")
    if own and not written:
        print("      breakscope fix --write   or   git apply " + os.path.join(place, "*.patch"))


def _sites(fixed: Fixed) -> list[str]:
    """What the files give once they are written, and what is left to do by hand."""
    found = fixed.written
    if found is None:
        return []
    with_all = f" (with breakscope run --fixes: {found.fixed})" if found.fixed != found.written else ""
    lines = [f"\nas written: {found.before} -> {found.written} sites{with_all}"]
    for one in found.left:
        where = one.location
        lines.append(f"   left: {one.code}  {os.path.relpath(where.file)}:{where.line}  {one.title}")
    lines += [f"   add before the first compiled call: {line}" for line in found.lines]
    return lines


def _list_rules() -> int:
    from breakscope.cli import output
    from breakscope.fix.rules import all_rules

    blocks = []
    for rule in all_rules():
        codes = ", ".join(rule.codes)
        lines = [f"{rule.name}  ({codes})" + ("  needs consent" if rule.consent else ""), f"  {rule.title}"]
        lines += [f"  needs   {need}" for need in rule.needs]
        lines += [f"  hazard  {hazard}" for hazard in rule.hazards]
        # A rule of somebody else's package may come without examples.
        if rewritten := getattr(rule, "rewritten", None):
            lines += ["  before", *(f"    {line}" for line in rewritten.before.strip().splitlines())]
            lines += ["  after", *(f"    {line}" for line in rewritten.after.strip().splitlines())]
        if left_alone := getattr(rule, "left_alone", None):
            lines += ["  left alone", *(f"    {line}" for line in left_alone.before.strip().splitlines())]
            lines += [f"  because {left_alone.why}"] if left_alone.why else []
        blocks.append("\n".join(lines))
    output.write("\n\n".join(blocks) or "no rules")
    return 0
