"""``breakscope show``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.errors import ArtifactError
from breakscope.view.artifacts import TITLES

if TYPE_CHECKING:
    from breakscope.report.model import Artifact, Report

# Which kinds an option asks for, in the order in which they are printed.
_OPTIONS = {
    "--graph": ("graph",),
    "--aot": ("aot_joint", "aot_forward", "aot_backward", "aot_inference"),
    "--code": ("code",),
    "--guards": ("guards",),
    "--bytecode": ("bytecode_before", "bytecode_after"),
}


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("show")
    def show(
        region: Annotated[
            str, typer.Argument(metavar="REGION", help="Compile id, such as 0/0, or name of a function.")
        ],
        path: arguments.Saved = None,
        graph: Annotated[bool, typer.Option("--graph", help="Show Dynamo's graph.")] = False,
        aot: Annotated[bool, typer.Option("--aot", help="Show the graphs of AOTAutograd.")] = False,
        code: Annotated[bool, typer.Option("--code", help="Show the code that Inductor generated.")] = False,
        guards: Annotated[bool, typer.Option("--guards", help="Show the tree of guards.")] = False,
        bytecode: Annotated[
            bool, typer.Option("--bytecode", help="Show the bytecode before and after Dynamo.")
        ] = False,
        rank: Annotated[
            int | None, typer.Option(min=0, metavar="N", help="Show only what this rank compiled.")
        ] = None,
    ) -> int:
        """Show the graphs, code, guards or bytecode of a compile. Without an option, list what was kept.

        The report must have been made with --artifacts.
        """
        from breakscope.inside.capture.artifacts import FOLDER as ARTIFACTS
        from breakscope.inside.capture.artifacts import Store
        from breakscope.report import schema
        from breakscope.report.latest import place_of

        place = place_of(path)
        report = schema.load(path or place)
        chosen = [one for one in of_region(report, region) if rank in (None, one.rank)]
        asked = dict(zip(_OPTIONS, (graph, aot, code, guards, bytecode), strict=True))
        kinds = [kind for option, wanted in asked.items() if wanted for kind in _OPTIONS[option]]
        if not kinds:
            table(chosen)
            return 0
        store = Store(place.parent / ARTIFACTS)
        wanted = [one for kind in kinds for one in chosen if one.kind == kind]
        if not wanted:
            options = " ".join(option for option, given in asked.items() if given)
            raise ArtifactError(f"nothing was kept of {region} for {options}; available: {listed(chosen)}")
        # The same code on every rank is printed once.
        for digest in dict.fromkeys(one.digest for one in wanted):
            same = [one for one in wanted if one.digest == digest]
            text = store.get(digest)
            heading(same)
            print_code(text)
        return 0


def of_region(report: Report, region: str) -> list[Artifact]:
    """What was kept of a compile, or of every compile of a function.

    Raises:
        ArtifactError: nothing was, or there is no such region.
    """
    if not report.artifacts:
        raise ArtifactError("the report lists no artifacts: scan or import again with --artifacts")
    ids = {one.compile_id for one in report.regions if one.function == region}
    ids |= {one.compile_id for one in report.compiles if one.function == region}
    found = [
        artifact
        for artifact in report.artifacts
        if artifact.compile_id == region or artifact.compile_id in ids
    ]
    if not found:
        known = ", ".join(dict.fromkeys(artifact.compile_id for artifact in report.artifacts))
        raise ArtifactError(f"nothing was kept of a region {region}; available: {known}")
    return found


def listed(artifacts: Iterable[Artifact]) -> str:
    """The options that would show something."""
    kinds = {artifact.kind for artifact in artifacts}
    return " ".join(option for option, of in _OPTIONS.items() if kinds & set(of)) or "nothing"


def table(artifacts: Sequence[Artifact]) -> None:
    """List what was kept, with the options that print it."""
    from breakscope.cli import output

    for artifact in artifacts:
        option = next(option for option, kinds in _OPTIONS.items() if artifact.kind in kinds)
        rank = f"rank {artifact.rank}  " if any(other.rank for other in artifacts) else ""
        output.write(
            f"{artifact.compile_id:8} {rank}{option:11} {TITLES[artifact.kind]}, {artifact.size:,} bytes"
        )


def heading(same: Sequence[Artifact]) -> None:
    """Say on stderr what follows on stdout, so that the code alone can go into a file."""
    ids = ", ".join(dict.fromkeys(one.compile_id for one in same))
    ranks = sorted({one.rank for one in same})
    where = f", ranks {', '.join(map(str, ranks))}" if ranks != [0] else ""
    print(f"{TITLES[same[0].kind]} of {ids}{where}", file=sys.stderr)


def print_code(text: str) -> None:
    """Print code, with colours where the terminal has them."""
    from breakscope.cli import output

    if not output.wants_color():
        output.write(text)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console(force_terminal=True, soft_wrap=True)
    console.print(Syntax(text, "python", theme="ansi_dark", background_color="default", word_wrap=False))
