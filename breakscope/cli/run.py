"""``breakscope run``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from breakscope.cli import arguments
from breakscope.cli.scan import fixes_folder
from breakscope.cli.script_words import ScriptCommand, program_of


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        "run",
        cls=ScriptCommand,
        options_metavar="[OPTIONS] SCRIPT|-m MODULE [ARGS]...",
        epilog="Everything after SCRIPT or -m MODULE is passed to the script.",
    )
    def run(
        ctx: typer.Context,
        fixes: Annotated[
            Path, typer.Option(metavar="DIR", help="Folder of fixes that breakscope fix has written.")
        ] = Path(".breakscope/fixes"),
        python: arguments.Python = None,
    ) -> int:
        """Run a script with fixes applied while its source code is loaded. Files are not changed."""
        from breakscope.inside.start import Agent
        from breakscope.run import interpreter, launch

        interpreter.use(python)
        what = program_of(ctx.meta["breakscope.program"], "run")
        settings = json.dumps({"fixes": fixes_folder(fixes), "script": what.path})
        return launch.run(what, Agent("", settings, ahead="breakscope.inside.patched_run")).exit_code
