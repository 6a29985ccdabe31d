"""Comments that left nothing out of a run and hold for a possible break that lint sees there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from breakscope.project import suppress
from breakscope.project.suppressed import Comment, locate
from breakscope.project.verdict import Check


def without_those_for_lint(check: Check, root: Path) -> Check:
    """The answer with only those comments unused that lint does not need either."""
    if not check.unused:
        return check
    from breakscope.lint import engine

    # What is compiled is known by who calls it: the other files that the runs compiled are read, too.
    files = {one.file for one in check.unused} | _compiled_files(check, str(root))
    possible = engine.lint(sorted(files), suppress=False).possible

    def for_lint(comment: Comment) -> bool:
        entries = [one for one in suppress.read(comment.file).entries if one.line == comment.line]
        places = [(one.code, one.location) for one in possible if one.location.file == comment.file]
        return any(
            entry.holds(code, place.line, place.end_line or place.line)
            for entry in entries
            for code, place in places
        )

    return replace(check, unused=tuple(one for one in check.unused if not for_lint(one)))


def _compiled_files(check: Check, root: str) -> set[str]:
    found = set()
    for verdict in check.verdicts:
        run = verdict.report.run
        files = {
            run.script,
            *(target.file for target in run.targets),
            *(one.file for one in verdict.report.compiles),
        }
        found |= {locate(file, run.cwd, root) for file in files if file is not None and file.endswith(".py")}
    return {file for file in found if file is not None and "site-packages" not in file}
