"""The report as JUnit XML, for the test pages of CI systems."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from breakscope.report.model import Finding, Report
from breakscope.report.ranking import is_open, worst_first
from breakscope.view.text import harmless, short_path
from breakscope.view.words import about_run, clip, is_new, said

_SOURCE = 2_000  # characters of a source line


def render(report: Report, *, root: str | None = None, known: frozenset[str] | None = None) -> str:
    """One failing case for each finding, worst first; one passing case for a report without any to act on.

    A run that ended badly or compiled nothing is a case with an error: it is no pass. Characters that XML
    cannot hold are shown escaped.

    Args:
        report: what to show.
        root: folder to which paths are shown relative, besides that in which the script ran.
        known: fingerprints that are not new; their cases are skipped ones, not failures. So are those of
            what is expected or meant to be so.
    """
    run = report.run
    script = short_path(run.script, [folder for folder in (root, run.cwd) if folder])
    suite = ET.Element("testsuite", name=f"breakscope {script}")
    view = about_run(report, root)
    if view.alarm:
        case = ET.SubElement(suite, "testcase", classname="breakscope", name=script)
        ET.SubElement(case, "error", type=run.status, message=view.alarm)
    elif not any(map(is_open, report.findings)):
        ET.SubElement(suite, "testcase", classname="breakscope", name=script)
    for finding in sorted(report.findings, key=worst_first):
        _case(suite, report, finding, root, known)

    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(suite)))
    suite.set("time", f"{run.duration_s:.3f}")
    suite.set("timestamp", harmless(run.started_at))
    top = ET.Element(
        "testsuites", {name: suite.attrib[name] for name in ("tests", "failures", "errors", "time")}
    )
    top.append(suite)
    ET.indent(top)
    # The command line writes UTF-8.
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


def _case(
    suite: ET.Element, report: Report, finding: Finding, root: str | None, known: frozenset[str] | None
) -> None:
    words = said(report, finding, root)
    code = harmless(finding.code)
    case = ET.SubElement(
        suite,
        "testcase",
        classname=f"breakscope.{code}",
        name=f"{words.where} {words.function}".strip(),
        file=short_path(finding.location.file, [folder for folder in (root, report.run.cwd) if folder]),
        line=str(finding.location.line),
    )
    message = f"{words.title}: {words.amount}"
    if known is not None and not is_new(finding, known):
        ET.SubElement(case, "skipped", message=f"known: {message}")
        return
    if not is_open(finding):
        why = finding.intended or finding.expected or ""
        ET.SubElement(case, "skipped", message=f"nothing to do: {words.title}: {harmless(why)}")
        return
    source = finding.location.source
    facts = [
        *([clip(harmless(source), _SOURCE)] if source else []),
        *([words.counts] if words.counts else []),
        *(f"{label}: {text}" for label, texts in words.details for text in texts),
        f"fingerprint: {harmless(finding.fingerprint)}",
    ]
    failure = ET.SubElement(case, "failure", type=code, message=message)
    failure.text = "\n".join(facts)
