"""``breakscope lint``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments

if TYPE_CHECKING:
    from breakscope.project.config import Config
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
            LevelChoice | None,
            typer.Option(
                metavar="|".join(LevelChoice),
                help="likely: show only what breaks whenever its function runs compiled (default). "
                "possible: also show what may break.",
            ),
        ] = None,
        select: arguments.Select = None,
        ignore: arguments.Ignore = None,
        exclude: Annotated[
            list[str] | None,
            typer.Option(
                metavar="PATTERN",
                help="Leave out these files and folders, as in .gitignore; may be repeated.",
            ),
        ] = None,
        config: arguments.Configuration = None,
        format_: Annotated[
            str, typer.Option("--format", "-f", metavar=FORMAT_NAMES, help="Output format.")
        ] = "full",
        output: arguments.Output = None,
        jobs: arguments.Jobs = None,
        no_cache: Annotated[
            bool, typer.Option("--no-cache", help="Read every file again, also those that have not changed.")
        ] = False,
        baseline: arguments.Baseline = None,
        update_baseline: arguments.UpdateBaseline = False,
        no_suppress: arguments.NoSuppress = False,
    ) -> int:
        """Find possible graph breaks in source code without running it. Needs no torch.

        Exits with 1 if there are any, and with 2 if a file could not be read.
        """
        from breakscope.cli import output as out
        from breakscope.cli.report import publish
        from breakscope.errors import UsageError
        from breakscope.lint import cache, engine, files
        from breakscope.lint import select as choice
        from breakscope.project import config as configuration
        from breakscope.render import lint as formats
        from breakscope.report.secrets import masked

        render = formats.FORMATS.get(format_)
        if render is None:
            raise UsageError(f"no format {format_!r}: there are {', '.join(formats.FORMATS)}")
        settings = configuration.load(file=config)
        wanted = choice.Choice(
            arguments.codes(select) or settings.select,
            (*arguments.codes(ignore), *settings.ignore),
            settings.lint.level if level is None else level.value,
            settings.per_path_ignore,
            str(settings.root),
        )
        excluded = exclude or [], (settings.lint.exclude, str(settings.root))
        found = engine.lint(
            paths or ["."],
            exclude=excluded[0],
            configured=excluded[1],
            jobs=jobs,
            cache=None if no_cache else Path(cache.FOLDER),
            suppress=not no_suppress,
        )
        shown, hidden = wanted.apply(found)
        read = partial(files.collect, paths or ["."], *excluded)
        shown = masked(_without_known(shown, settings, baseline, read, update=update_baseline))
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
    shown: Linted, settings: Config, baseline: Path | None, read: Callable[[], list[str]], *, update: bool
) -> Linted:
    """What the baseline does not know; with ``update``, after it was written anew.

    Args:
        read: gives the files that were read.
    """
    from breakscope.cli import check_answer
    from breakscope.lint import known_breaks
    from breakscope.project import baseline as baselines
    from breakscope.project import gate

    place = baseline if baseline is not None else settings.root / settings.baseline
    known = gate.read_baseline(place, required=baseline is not None and not update)
    root = os.getcwd()
    if update:
        before = known
        known = known_breaks.accept(shown, before, root, read())
        baselines.save(known, place)
        check_answer.tell_update(before, known, place)
    return shown if settings.strict else known_breaks.leave_out(shown, known, root)
