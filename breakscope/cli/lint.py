"""``breakscope lint``."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments

if TYPE_CHECKING:
    from breakscope.report.lint import Linted

FORMAT_NAMES = "full|concise|json|sarif|github"


class LevelChoice(StrEnum):
    """Choices of ``--level``."""

    LIKELY = "likely"
    POSSIBLE = "possible"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("lint")
    def lint(
        paths: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[PATH]...", help="Files and folders to read (default: the current folder)."
            ),
        ] = None,
        level: Annotated[
            LevelChoice,
            typer.Option(
                metavar="|".join(LevelChoice),
                help="likely: show only what breaks whenever its function runs compiled. possible: also show "
                "what may break.",
            ),
        ] = LevelChoice.LIKELY,
        select: arguments.Select = None,
        ignore: arguments.Ignore = None,
        exclude: Annotated[
            list[str] | None,
            typer.Option(
                metavar="PATTERN",
                help="Leave out these files and folders, as in .gitignore; may be repeated.",
            ),
        ] = None,
        format_: Annotated[
            str, typer.Option("--format", "-f", metavar=FORMAT_NAMES, help="Output format.")
        ] = "full",
        output: arguments.Output = None,
        jobs: arguments.Jobs = None,
        no_cache: Annotated[
            bool, typer.Option("--no-cache", help="Read every file again, also those that have not changed.")
        ] = False,
        baseline: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="File of known findings (default .breakscope/baseline.json)."),
        ] = None,
        update_baseline: Annotated[
            bool, typer.Option("--update-baseline", help="Accept the present findings: rewrite the baseline.")
        ] = False,
        no_suppress: Annotated[
            bool, typer.Option("--no-suppress", help="Ignore suppression comments in the source code.")
        ] = False,
    ) -> int:
        """Find possible graph breaks in source code without running it. Needs no torch.

        Exits with 1 if there are any, and with 2 if a file could not be read.
        """
        from breakscope.cli import output as out
        from breakscope.cli.report import publish
        from breakscope.errors import UsageError
        from breakscope.lint import cache, engine
        from breakscope.lint import select as choice
        from breakscope.render import lint as formats

        render = formats.FORMATS.get(format_)
        if render is None:
            raise UsageError(f"no format {format_!r}: there are {', '.join(formats.FORMATS)}")
        wanted = choice.Choice.parse(select or [], ignore or [], level.value)
        found = engine.lint(
            paths or ["."],
            exclude=exclude or [],
            jobs=jobs,
            cache=None if no_cache else Path(cache.FOLDER),
            suppress=not no_suppress,
        )
        shown, hidden = wanted.apply(found)
        shown = _without_known(shown, baseline, update_baseline, paths or ["."], exclude or [])
        for remark in (*shown.unreadable, *shown.unused):
            line = f":{remark.line}" if remark.line else ""
            print(f"breakscope: {out.relative(Path(remark.file))}{line}: {remark.text}", file=sys.stderr)
        options = formats.Options(
            os.getcwd(),
            width=shutil.get_terminal_size((100, 24)).columns,
            color=output is None and out.wants_color(),
            hidden=hidden,
        )
        publish(render(shown, options), output)
        if shown.unreadable:
            return 2
        return 1 if shown.possible else 0


def _without_known(
    shown: Linted, baseline: Path | None, update: bool, paths: list[str], exclude: list[str]
) -> Linted:
    """What the baseline does not know; with ``update``, after it was written anew."""
    from breakscope.cli import check_answer
    from breakscope.lint import files, known_breaks
    from breakscope.project import baseline as baselines
    from breakscope.project import config, gate

    settings = config.load(file=None)
    place = baseline if baseline is not None else settings.root / settings.baseline
    known = gate.read_baseline(place, required=baseline is not None and not update)
    root = os.getcwd()
    if update:
        before = known
        known = known_breaks.accept(shown, before, root, files.collect(paths, exclude))
        baselines.save(known, place)
        check_answer.tell_update(before, known, place)
    return known_breaks.leave_out(shown, known, root)
