"""``breakscope check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from breakscope.cli import arguments
from breakscope.cli.script_words import tell_of_ours
from breakscope.errors import UsageError
from breakscope.render import FORMATS

if TYPE_CHECKING:
    from breakscope.project.baseline import Baseline
    from breakscope.project.verdict import Check

# Options of scan that say what to show, not how to run.
_NOT_INHERITED = ("output", "limit", "all_", "quiet")


class CheckCommand(typer.core.TyperCommand):
    """What stands after ``--`` is a script to run, and the options of scan are options here, too."""

    inherited: tuple[str, ...] = ()

    def inherit(self, scan: Any) -> None:
        """Take over the options of ``breakscope scan``."""
        own = {option.name for option in self.params}
        new = [param for param in scan.params if param.name not in own and param.name not in _NOT_INHERITED]
        self.params = [*self.params, *new]
        self.inherited = tuple(str(one.name) for one in new)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Split the line where the script's part begins, then let click read ours."""
        at = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:at])
        ctx.meta["breakscope.program"] = args[at + 1 :] if at < len(args) else None
        tell_of_ours(ctx, args[at + 1 :])
        given = tuple(name for name in self.inherited if _was_typed(ctx, name))
        ctx.meta["breakscope.scan"] = ({name: ctx.params.pop(name) for name in self.inherited}, given)
        return rest


def _was_typed(ctx: Any, name: str) -> bool:
    return getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        "check",
        cls=CheckCommand,
        options_metavar="[OPTIONS] [REPORT | -- SCRIPT|-m MODULE [ARGS]...]",
        epilog="Without REPORT and SCRIPT, check runs every target of the configuration; without targets, it "
        "judges the latest report. Write the options of scan before the --.",
    )
    def check(
        ctx: typer.Context,
        path: Annotated[Path | None, typer.Argument(metavar="[REPORT]", help="Report file to judge.")] = None,
        baseline: arguments.Baseline = None,
        update_baseline: arguments.UpdateBaseline = False,
        strict: Annotated[bool, typer.Option("--strict", help="Also fail on baselined findings.")] = False,
        no_suppress: arguments.NoSuppress = False,
        target: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help="Run this target of the configuration; may be repeated."),
        ] = None,
        max_sites: Annotated[
            int | None, typer.Option(min=0, metavar="N", help="Maximum number of sites.")
        ] = None,
        max_recompiles: Annotated[
            int | None, typer.Option(min=0, metavar="N", help="Maximum number of recompiles.")
        ] = None,
        max_crossings_per_step: Annotated[
            float | None, typer.Option(min=0, metavar="N", help="Maximum crossings in a step, on average.")
        ] = None,
        max_compile_seconds: Annotated[
            float | None, typer.Option(min=0, metavar="SECONDS", help="Maximum compile time in seconds.")
        ] = None,
        max_ms_per_step: Annotated[
            float | None,
            typer.Option(min=0, metavar="MS", help="Maximum duration of a steady step in milliseconds."),
        ] = None,
        config: arguments.Configuration = None,
        format_: Annotated[
            str, typer.Option("--format", "-f", metavar="|".join(FORMATS), help="Output format.")
        ] = "terminal",
        output: arguments.Output = None,
        write: Annotated[
            list[str] | None,
            typer.Option(
                metavar="FORMAT=FILE", help="Also write the result in this format or html; may be repeated."
            ),
        ] = None,
        limit: arguments.Limit = 20,
        all_: arguments.Everything = False,
    ) -> int:
        """Fail if a script, or the report of one, has new findings.

        Exits with 0 if there are no new findings; with 1 if there are, or if a limit is exceeded; with 2 if
        the command line or the configuration is wrong; with 3 if the run says nothing, because nothing was
        compiled or the script died; with 4 if breakscope itself failed.
        """
        from breakscope.cli import check_answer, check_comments
        from breakscope.cli import output as screen
        from breakscope.cli.check_runs import Asked, holds_one, runs
        from breakscope.project import config as configuration
        from breakscope.project import gate

        others = check_answer.wanted(write or [])
        of_one_target = [name for name in (format_, *dict(others)) if not check_answer.says_verdicts(name)]
        settings = configuration.load(file=config)
        budgets = configuration.Budgets(
            max_sites, max_recompiles, max_crossings_per_step, max_compile_seconds, max_ms_per_step
        )
        place = baseline if baseline is not None else settings.root / settings.baseline
        # Whatever is wrong with it is better said before anything runs.
        before = gate.read_baseline(place, required=baseline is not None and not update_baseline)
        asked = Asked(path, ctx.meta["breakscope.program"], tuple(target or ()), *ctx.meta["breakscope.scan"])
        if of_one_target and not holds_one(asked, settings):
            raise UsageError(f"{of_one_target[0]} holds one target: name one with --target")
        found = runs(asked, settings, budgets, live=format_ == "terminal" or output is not None)

        def judged(known: Baseline) -> Check:
            examined = [
                gate.examine(
                    run.target,
                    run.report,
                    known,
                    gate.policy(settings, run.budgets, strict=strict),
                    settings.root,
                    suppress=not no_suppress,
                )
                for run in found
            ]
            concluded = gate.conclude(examined, screen.relative(place))
            return check_comments.without_those_for_lint(concluded, settings.root)

        answer = judged(before)
        if update_baseline:
            after = gate.update(before, answer, place)
            answer = judged(after)
            check_answer.tell_update(before, after, place)
        check_answer.publish(answer, found, format_, output, others, limit=limit, everything=all_)
        return answer.exit_code
