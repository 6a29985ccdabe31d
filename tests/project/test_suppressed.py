"""Which comment leaves out which finding, and which comments did nothing, over one report and over several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import report_samples as samples

from breakscope.project import gate, suppressed
from breakscope.project.baseline import Baseline
from breakscope.project.verdict import Policy
from breakscope.report.model import Finding, Report

BRANCH = "if y.abs().max() > 1e4:"


def report_of(folder: Path, *findings: Finding) -> Report:
    run = replace(samples.RUN, cwd=str(folder), targets=())
    return replace(samples.RECOMPILES, run=run, findings=findings)


def branch_at(file: Path | str, line: int, source: str) -> Finding:
    location = replace(
        samples.BRANCH.location, file=str(file), line=line, end_line=line, source=source.strip()
    )
    return replace(samples.BRANCH, location=location, stack=())


def write(file: Path, source: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file


def reasons(folder: Path, *findings: Finding) -> Mapping[str, str | None]:
    return suppressed.apply(report_of(folder, *findings), str(folder)).reasons


def test_a_break_in_a_library_is_left_out_where_the_project_calls_it(tmp_path: Path) -> None:
    call = "loss = step(net, batch)"
    train = write(
        tmp_path / "train.py", f"import lib\n{call}  # breakscope: ignore[BS104] -- their logging\n"
    )
    assert samples.LOGGER.called_from is not None
    finding = replace(
        samples.LOGGER,
        called_from=replace(
            samples.LOGGER.called_from, file=str(train), line=2, source=f"{call}  # breakscope: …"
        ),
    )
    # The line as the scan saw it is not that of the file any more: only its own text counts then.
    assert reasons(tmp_path, finding) == {}
    current = replace(finding.called_from, source=train.read_text().splitlines()[1])  # type: ignore[type-var]
    assert reasons(tmp_path, replace(finding, called_from=current)) == {finding.fingerprint: "their logging"}
    assert reasons(tmp_path, replace(finding, called_from=None)) == {}


def test_a_report_of_another_machine_is_matched_with_the_files_here(tmp_path: Path) -> None:
    source = f"{BRANCH}  # breakscope: ignore[BS101]"
    write(tmp_path / "package" / "model.py", f"{source}\n    pass\n")
    finding = branch_at("/builds/elsewhere/project/package/model.py", 1, source)
    report = replace(report_of(tmp_path, finding), run=replace(samples.RUN, cwd="/builds/elsewhere/project"))
    assert suppressed.apply(report, str(tmp_path)).reasons == {finding.fingerprint: None}


def test_an_unreadable_file_has_no_comments(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_bytes(b"\xff\xfe # breakscope: ignore[BS101]")
    found = suppressed.apply(report_of(tmp_path, branch_at(tmp_path / "model.py", 1, BRANCH)), str(tmp_path))
    assert (found.reasons, found.unused, found.malformed) == ({}, frozenset(), frozenset())


def test_a_comment_that_one_of_several_runs_used_is_not_unused(tmp_path: Path) -> None:
    source = f"{BRANCH}  # breakscope: ignore[BS101]"
    idle = "x = 1  # breakscope: ignore[BS2]"
    file = write(tmp_path / "model.py", f"{source}\n    pass\n{idle}\n")
    uses = report_of(tmp_path, branch_at(file, 1, source))
    sees = report_of(tmp_path, replace(branch_at(file, 2, "pass"), code="BS102", fingerprint="other"))

    def examined(report: Report) -> gate.Examined:
        return gate.examine("t", report, Baseline(), Policy(), tmp_path, suppress=True)

    assert [one.line for one in gate.conclude([examined(sees)], "b").unused] == [1, 3]
    both = gate.conclude([examined(sees), examined(uses)], "b")
    assert [(one.line, one.said) for one in both.unused] == [(3, "ignore[BS2]")]
    assert (
        gate.conclude([gate.examine("t", uses, Baseline(), Policy(), tmp_path, suppress=False)], "b").unused
        == ()
    )


def test_the_worst_target_is_the_answer(tmp_path: Path) -> None:
    def answer(*reports: Report) -> int:
        policy = Policy(select=("BS101",))
        return gate.conclude(
            [gate.examine("t", one, Baseline(), policy, tmp_path, suppress=False) for one in reports], "b"
        ).exit_code

    clean, new = report_of(tmp_path), report_of(tmp_path, samples.BRANCH)
    vacuous = replace(clean, reconciliation=replace(clean.reconciliation, vacuous=True))
    assert (answer(clean), answer(clean, new), answer(new, vacuous, clean)) == (0, 1, 3)
