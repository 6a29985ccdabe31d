"""``breakscope check`` in every format of ``breakscope report``, for one target or several.

A format that knows of new and known findings gets all that count; one that only annotates gets those that
fail. What a format cannot say of a verdict stands in its own place there: a budget is a test case to JUnit.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

from breakscope.project.verdict import Check, Verdict
from breakscope.render import FORMATS, Options
from breakscope.report import schema
from breakscope.view import verdict
from breakscope.view.markup import plain
from breakscope.view.text import harmless

# 1: the first layout of the JSON format.
CHECK_VERSION = 1


def render(check: Check, format_: str, options: Options) -> str | bytes:
    """The answer in one format. What holds the report of one target gets one: the caller sees to it."""
    if format_ in _FORMATS:
        return _FORMATS[format_](check, options)
    (one,) = check.verdicts
    return FORMATS[format_](verdict.counting(one), options)


def _terminal(check: Check, options: Options) -> str:
    from breakscope.render import terminal
    from breakscope.view import report_view

    screens = []
    for number, one in enumerate(check.verdicts, 1):
        last = number == len(check.verdicts)
        shown = verdict.failing(one)
        view = report_view.build(shown, limit=options.limit, all=options.everything, root=options.root)
        said = verdict.headline(one)
        rows = verdict.rows(one, check.baseline, options.root, everything=options.everything)
        if last:
            rows += verdict.comments(check, options.root, everything=options.everything)
        view = replace(
            view,
            alarm=said if one.exit_code else None,
            verdict=None if one.exit_code else said,
            header=(f"breakscope check {harmless(one.target)}", *view.header[1:]),
            notes=(*rows, *view.notes),
        )
        steps = options.next_steps if last else ()
        screens.append(
            terminal.render_view(
                view, width=options.width, color=options.color, next_steps=steps, links=options.links
            )
        )
    return "\n".join(screens)


def _markdown(check: Check, options: Options) -> str:
    from breakscope.render import markdown

    parts = []
    for one in check.verdicts:
        rows = verdict.rows(one, check.baseline, options.root, everything=True)
        listed = [f"- {plain(f'{label}: {text}' if label else text)}" for label, text in rows]
        head = [f"# {plain(f'breakscope check {one.target}')}", f"**{plain(verdict.headline(one))}**"]
        body = markdown.render(verdict.counting(one), root=options.root, known=verdict.known(one))
        parts.append("\n\n".join([*head, *(["\n".join(listed)] if listed else []), body]))
    rows = verdict.comments(check, options.root, everything=True)
    if rows:
        parts.append("\n".join(f"- {plain(f'{label}: {text}' if label else text)}" for label, text in rows))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _github(check: Check, options: Options) -> str:
    from breakscope.render import github

    text = []
    for one in check.verdicts:
        level = "error" if one.exit_code else "notice"
        said = f"{one.target}: {verdict.headline(one)}"
        text.append(f"::{level} title=breakscope check::{github.data(said)}\n")
        failing = verdict.failing(one)
        if failing.findings:
            text.append(github.render(failing, root=options.root, known=verdict.known(one)))
    for label, said in verdict.comments(check, options.root, everything=True):
        text.append(f"::notice title=breakscope::{github.data(f'{label} {said}'.strip())}\n")
    return "".join(text)


def _json(check: Check, _: Options) -> str:
    data = {
        "check_version": CHECK_VERSION,
        "exit_code": check.exit_code,
        "baseline": check.baseline,
        "targets": [_json_target(one) for one in check.verdicts],
        "unused_suppressions": [{"file": c.file, "line": c.line, "text": c.said} for c in check.unused],
        "malformed_suppressions": [{"file": c.file, "line": c.line, "text": c.said} for c in check.malformed],
    }
    return json.dumps(data, indent=1) + "\n"


def _json_target(one: Verdict) -> dict[str, Any]:
    return {
        "target": one.target,
        "outcome": one.outcome,
        "exit_code": one.exit_code,
        "why": list(one.why),
        "findings": [
            {"fingerprint": judged.finding.fingerprint, "state": judged.state, "why": judged.why}
            for judged in one.judged
        ],
        "left_out": one.left_out,
        "gone": [
            {"fingerprint": gone.fingerprint, "code": gone.code, "file": gone.file, "function": gone.function}
            for gone in one.gone
        ],
        "budgets": [
            {
                "name": spent.name,
                "limit": spent.limit,
                "actual": spent.actual,
                "exceeded": spent.exceeded,
                "why": spent.why,
            }
            for spent in one.spent
        ],
        "report": schema.to_dict(one.report),
    }


def _sarif(check: Check, options: Options) -> str:
    from breakscope.render import sarif

    runs: list[Any] = []
    for one in check.verdicts:
        whole = replace(one.report, findings=one.of("new", "known", "suppressed"))
        log = json.loads(sarif.render(whole, root=options.root, known=verdict.known(one)))
        reasons = {
            judged.finding.fingerprint: judged.why for judged in one.judged if judged.state == "suppressed"
        }
        for run in log["runs"]:
            for result in run["results"]:
                name = result["partialFingerprints"][sarif.FINGERPRINT]
                if name in reasons:
                    why = {"justification": harmless(reasons[name] or "")} if reasons[name] else {}
                    result["suppressions"] = [{"kind": "inSource", **why}]
        runs += log["runs"]
    return json.dumps({"$schema": sarif.SCHEMA, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def _junit(check: Check, options: Options) -> str:
    from breakscope.render import junit

    top = ET.Element("testsuites")
    for one in check.verdicts:
        text = junit.render(verdict.counting(one), root=options.root, known=verdict.known(one))
        suite = ET.fromstring(text.encode())[0]  # noqa: S314 - our own text
        suite.set("name", f"breakscope check {harmless(one.target)}")
        for spent in one.spent:
            case = ET.SubElement(suite, "testcase", classname="breakscope.budget", name=spent.name)
            if spent.exceeded:
                ET.SubElement(case, "failure", type="budget", message=harmless(spent.sentence))
            elif spent.actual is None:
                ET.SubElement(case, "error", type="not measured", message=harmless(spent.sentence))
        if one.outcome == "vacuous" and not one.report.reconciliation.vacuous:
            case = ET.SubElement(suite, "testcase", classname="breakscope", name="compiled by the script")
            ET.SubElement(case, "error", type="vacuous", message=harmless(one.why[0]))
        if one.strict:
            _fail_skipped(suite)
        _count(suite)
        top.append(suite)
    for name in ("tests", "failures", "errors"):
        top.set(name, str(sum(int(suite.attrib[name]) for suite in top)))
    ET.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


def _fail_skipped(suite: ET.Element) -> None:
    """Known findings are skipped cases, but not with --strict."""
    for case in suite.findall("testcase"):
        for skipped in case.findall("skipped"):
            case.remove(skipped)
            ET.SubElement(case, "failure", type="known", message=skipped.attrib["message"])


def _count(suite: ET.Element) -> None:
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))


def _csv(check: Check, options: Options) -> str:
    from breakscope.render import csv as table

    out = io.StringIO()
    # All quoted: some readers take a lone carriage return in a bare cell for the end of a record.
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for number, one in enumerate(check.verdicts):
        states = {judged.finding.fingerprint: judged.state for judged in one.judged}
        whole = replace(one.report, findings=tuple(judged.finding for judged in one.judged))
        text = table.render(whole, root=options.root)
        head, *records = csv.reader(io.StringIO(text, newline=""))
        names = list(head)
        if number == 0:
            writer.writerow(["target", "state", *names])
        column = names.index("fingerprint")
        for record in records:
            writer.writerow([one.target, states[record[column]], *record])
    return out.getvalue()


_FORMATS: dict[str, Callable[[Check, Options], str | bytes]] = {
    "terminal": _terminal,
    "json": _json,
    "markdown": _markdown,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
    "csv": _csv,
}
