"""The report in a notebook's cell: ``Report._repr_html_``."""

from __future__ import annotations

from html import escape

from breakscope.report.model import Finding, Report
from breakscope.report.ranking import worst_first
from breakscope.view.text import harmless
from breakscope.view.words import about_run, clip, said

_ROWS = 50
_LINE = 300  # characters of one text


def render(report: Report) -> str:
    """A fragment of HTML without styles or scripts: the totals and a table, worst finding first."""
    view = about_run(report, None)
    parts = [f"<p><b>{_text(view.alarm)}</b></p>"] if view.alarm else []
    parts += [
        f"<p>{_text(' · '.join(clip(item, _LINE) for item in items))}</p>"
        for items in (view.header, view.totals)
    ]
    if view.verdict:
        parts.append(f"<p>{_text(view.verdict)}</p>")
    findings = sorted(report.findings, key=worst_first)
    if findings:
        rows = "".join(_row(report, finding) for finding in findings[:_ROWS])
        titles = "".join(f"<th>{title}</th>" for title in ("code", "what", "where", "how much", "do this"))
        parts.append(f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>")
    if len(findings) > _ROWS:
        parts.append(f"<p>and {len(findings) - _ROWS:,} more: to_frames() has all of them</p>")
    return f"<div>{''.join(parts)}</div>"


def _row(report: Report, finding: Finding) -> str:
    words = said(report, finding, None)
    source = harmless(finding.location.source or "")
    where = f"<code>{_cell(words.where)}</code><br>{_cell(words.function)}"
    if source:
        where += f"<br><code>{_cell(source)}</code>"
    cells = (f"<code>{_cell(harmless(finding.code))}</code>", _cell(words.title), where, _cell(words.amount))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in (*cells, _cell(words.advice)))}</tr>"


def _cell(text: str) -> str:
    return _text(clip(text, _LINE))


def _text(text: str) -> str:
    # A notebook typesets what stands between dollar signs.
    return escape(text).replace("$", "&#36;<wbr>")
