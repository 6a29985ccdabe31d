"""``breakscope merge``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from breakscope.cli import arguments


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("merge")
    def merge(
        reports: Annotated[
            list[Path], typer.Argument(metavar="REPORT...", help="Report files or folders of report files.")
        ],
        output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Report file to write.")],
        executor: arguments.Executor = "local",
        jobs: arguments.Jobs = None,
        parquet: Annotated[
            Path | None,
            typer.Option(
                metavar="DIR", help="Also write Parquet tables to DIR, partitioned by job and rank."
            ),
        ] = None,
        limit: arguments.Limit = 20,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Merge the reports of several ranks, nodes or jobs into one report.

        The order of the reports does not matter, and a report that is named twice counts once.
        """
        from breakscope.cli import output as show
        from breakscope.fleet import executors, reduce
        from breakscope.fleet import parquet as tables
        from breakscope.report import schema

        if parquet is not None:
            tables.check()
        files = reduce.files(reports)
        if left_out := reduce.earlier(reports):
            print(
                f"breakscope: left out {left_out} earlier scans, which are not ranks of a job; "
                "name their files to merge them",
                file=sys.stderr,
            )
        with executors.executor(executor, jobs, reduce.tasks(files)) as where:
            merged = reduce.reduce(files, where)
        schema.save(merged, output)
        if parquet is not None:
            tables.write(merged, parquet)
        if not quiet:
            name = f" {show.relative(output.absolute())}"
            show.terminal(merged, limit=limit, everything=False, next_steps=show.next_steps(merged, name))
        return 0
