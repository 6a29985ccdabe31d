"""How ``breakscope check`` shows its answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from breakscope.cli import output as screen
from breakscope.cli import report as report_command
from breakscope.cli.check_runs import Run
from breakscope.errors import UsageError
from breakscope.project.baseline import Baseline
from breakscope.project.verdict import Check
from breakscope.render import FORMATS, Options, format_named
from breakscope.render import check as renderer

_HTML = "html"


def wanted(pairs: Sequence[str]) -> list[tuple[str, Path]]:
    """``--write FORMAT=FILE``, read."""
    found = []
    for pair in pairs:
        format_, equals, file = pair.partition("=")
        if not equals or not file:
            raise UsageError(f"--write {pair}: write FORMAT=FILE, such as sarif=breakscope.sarif")
        if format_ != _HTML and format_ not in FORMATS:
            raise UsageError(
                f"--write {pair}: no format {format_!r}: there are {', '.join(FORMATS)}, {_HTML}"
            )
        found.append((format_, Path(file)))
    return found


def says_verdicts(format_: str) -> bool:
    """Whether a format says what is new, of any number of targets; else it holds the report of one."""
    return format_ == _HTML or format_named(format_).in_check


def publish(
    check: Check,
    runs: Sequence[Run],
    format_: str,
    output: Path | None,
    others: Sequence[tuple[str, Path]],
    *,
    limit: int,
    everything: bool,
) -> None:
    """Write the answer in every format that was asked for.

    Args:
        format_: of the answer on standard output, or in the file ``output``.
        others: pairs of format and file, read by :func:`wanted`.
    """
    import shutil

    on_screen = output is None
    options = Options(
        root=report_command.repository(check.verdicts[0].report),
        limit=limit,
        everything=everything,
        width=shutil.get_terminal_size((100, 24)).columns if on_screen else 100,
        color=on_screen and screen.wants_color(),
        next_steps=_next_steps(check, runs),
        links=on_screen and screen.wants_links(),
    )
    for other, file in others:
        if other == _HTML:
            _write_pages(check, runs, file)
        else:
            report_command.publish(renderer.render(check, other, options), file)
    report_command.publish(renderer.render(check, format_, options), output)
    if format_ == "github":
        _summarize(check, options)


def _write_pages(check: Check, runs: Sequence[Run], file: Path) -> None:
    """One page for each target: a page shows one report."""
    from breakscope.cli import report_html
    from breakscope.view import verdict

    for run, one in zip(runs, check.verdicts, strict=True):
        target = file if len(runs) == 1 else file.with_name(f"{file.stem}-{run.path.stem}{file.suffix}")
        report_html.write(verdict.counting(one), run.path, target, False, verdict.known(one))


def _summarize(check: Check, options: Options) -> None:
    """Add the answer to the summary of the workflow step, as far as GitHub has room for it."""
    text = renderer.render(check, "markdown", options)
    report_command.append_summary(lambda _room: str(text))


def _next_steps(check: Check, runs: Sequence[Run]) -> list[tuple[str, str]]:
    failing = next(((one, run) for one, run in zip(check.verdicts, runs, strict=True) if one.of("new")), None)
    if failing is None:
        return []
    verdict, run = failing
    steps = [
        (
            f"breakscope explain {verdict.of('new')[0].code}",
            "why it breaks there, with an example of what to do",
        ),
        (f"breakscope report {screen.relative(run.path)} --html", "the whole report as a page"),
    ]
    if verdict.exit_code != 3:
        steps.append(("breakscope check … --update-baseline", "accept what was found"))
    return steps


def tell_update(before: Baseline, after: Baseline, place: Path) -> None:
    """Say what the new baseline takes in and drops, and whether git keeps it: else it is lost."""
    old, new = before.fingerprints, after.fingerprints
    print(
        f"breakscope: wrote {screen.relative(place)}: {len(new)} known, {len(new - old)} of them added, "
        f"{len(old - new)} dropped",
        file=sys.stderr,
    )
    if _is_ignored(place):
        print(
            f"breakscope: git ignores {screen.relative(place)}: keep it with git add -f, or take it out of "
            ".gitignore",
            file=sys.stderr,
        )


def _is_ignored(place: Path) -> bool:
    import subprocess

    try:
        asked = subprocess.run(
            ["git", "check-ignore", "-q", place.name], cwd=place.parent, capture_output=True, check=False
        )
    except OSError:
        return False  # no git here
    return asked.returncode == 0
