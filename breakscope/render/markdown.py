"""The report in GitHub's Markdown: a log to keep in a repository, or a comment on a pull request.

Summary, table, one folded part for each finding. What does not fit is cut from the end, where the least
costly findings stand, and the text says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from breakscope.render import bench_markdown
from breakscope.report import benchmark
from breakscope.report.model import Finding, Report, Suggestion
from breakscope.report.ranking import is_open, worst_first
from breakscope.view.following import following
from breakscope.view.markup import block, code, plain
from breakscope.view.text import and_more, count, short_path
from breakscope.view.words import Said, about_run, clip, is_new, lines, said

# GitHub allows 65,536 characters in a comment. Bytes are never fewer.
MAX_BYTES = 65_536

_CUT_NOTE = 500  # bytes kept free to say what was cut
_TABLE_SHARE = 0.5  # of the room, where not all fits: rows are short and say most
_LINE, _TEXT = 300, 4_000  # characters of one line, and of a block of code or a diff
_CODES = 5


def render(
    report: Report,
    *,
    root: str | None = None,
    known: frozenset[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> str:
    """The report as Markdown that ends with a newline; worst finding first.

    Args:
        report: what to show.
        root: folder to which paths are shown relative, besides that in which the script ran.
        known: fingerprints that are not new; with them, a column says which are.
        max_bytes: most that the text takes as UTF-8. Without room for the summary only one line is left.
    """
    open_ = [finding for finding in report.findings if is_open(finding)]
    # What is new must show, even where it follows from what is known.
    findings = sorted(following(open_).causes if known is None else open_, key=worst_first)
    words = [said(report, finding, root) for finding in findings]
    measured = benchmark.from_dict(report.benchmark)
    head = _head(report, root)
    tail = (bench_markdown.section(measured) if measured else "") + _tail(report, root)
    table = _table_head(known is not None)
    rows = [
        _row(number, finding, said_of, known)
        for number, (finding, said_of) in enumerate(zip(findings, words, strict=True), 1)
    ]
    folds = [
        _fold(number, finding, said_of)
        for number, (finding, said_of) in enumerate(zip(findings, words, strict=True), 1)
    ]

    room = max_bytes - _size([head, tail, table]) - _CUT_NOTE
    if room < 0:
        return f"breakscope: {count(len(findings), 'finding')}; there is no room to show them here.\n"
    everything = _size(rows) + _size(folds) <= room
    shown_rows = len(rows) if everything else _fit(rows, int(room * _TABLE_SHARE))
    shown_folds = min(shown_rows, _fit(folds, room - _size(rows[:shown_rows])))

    parts = [head]
    if shown_rows:
        parts += [table, *rows[:shown_rows], "\n"]
    parts += [_cut(findings, shown_rows, shown_folds, max_bytes), *folds[:shown_folds], tail]
    return "".join(parts).rstrip("\n") + "\n"


def _size(parts: Sequence[str]) -> int:
    return sum(len(part.encode()) for part in parts)


def _fit(parts: Sequence[str], room: int) -> int:
    """How many of the first parts fit."""
    used = 0
    for number, part in enumerate(parts):
        used += len(part.encode())
        if used > room:
            return number
    return len(parts)


def _cut(findings: Sequence[Finding], rows: int, folds: int, max_bytes: int) -> str:
    total = len(findings)
    if folds == total:
        return ""
    hidden = findings[rows:]
    text = f"Cut to fit into {max_bytes:,} bytes: "
    if hidden:
        codes = Counter(finding.code for finding in hidden).most_common()
        kinds = and_more((f"{number:,} {clip(name, 20)}" for name, number in codes), _CODES)
        text += f"the {len(hidden):,} least costly of {total:,} findings ({plain(kinds)}), and "
    return f"{text}the details of all but the first {folds:,}.\n\n"


# ---- the run ----


def _head(report: Report, root: str | None) -> str:
    view = about_run(report, root)
    script = short_path(report.run.script, [folder for folder in (root, report.run.cwd) if folder])
    findings = sum(map(is_open, report.findings))
    parts = [f"## breakscope: {count(findings, 'finding')} in {code(clip(script, _LINE))}"]
    if view.alarm:
        parts.append(f"> [!WARNING]\n> {plain(clip(view.alarm, _LINE))}")
    parts.append(_flow(view.totals))
    parts.append(_flow(view.header[1:]))
    if view.ranks:
        (_, sentence), *lines = _clipped(view.ranks)
        items = [f"- **{label}**: {plain(text)}" if label else f"  - {plain(text)}" for label, text in lines]
        parts.append("\n".join([f"**Ranks**: {plain(sentence)}", "", *items]))
    if view.verdict:
        parts.append(f"**{plain(view.verdict[0].upper() + view.verdict[1:])}.**")
    return "\n\n".join(parts) + "\n\n"


def _flow(items: Sequence[str]) -> str:
    return " · ".join(plain(clip(item, _LINE)) for item in items)


def _tail(report: Report, root: str | None) -> str:
    view = about_run(report, root)
    notes = view.notes[:20]
    items = [f"- {plain(f'{label}: {text}' if label else text)}" for label, text in _clipped(notes)]
    parts = [f"<details><summary>{count(len(items), 'note')} on this run</summary>\n"] if items else []
    parts += [*items, "\n</details>\n"] if items else []
    parts = _closed(view.closed) + parts
    version = plain(clip(report.tool.version, 40))
    started = plain(clip(report.run.started_at, 40))
    parts.append(
        f"\nMade by breakscope {version} from a run of {started}. "
        "`breakscope explain CODE` says more about a code."
    )
    return "\n".join(parts)


def _closed(lines: Sequence[tuple[str, str]]) -> list[str]:
    """What nothing is to be done about, as a list."""
    items = [f"- {plain(f'{label}: {text}' if label else text)}" for label, text in _clipped(lines)]
    return ["**Nothing to do** about what is expected, or meant to be so:\n", *items, ""] if items else []


def _clipped(notes: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(label, clip(text, _LINE)) for label, text in notes]


# ---- the findings ----


def _table_head(with_news: bool) -> str:
    titles = ["", "code", "what", "where", "how often or how costly", *(["new"] if with_news else [])]
    return f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}\n"


def _row(number: int, finding: Finding, words: Said, known: frozenset[str] | None) -> str:
    cells = [
        str(number),
        code(clip(finding.code, 40)),
        plain(clip(words.title, _LINE)),
        f"{code(clip(words.where, _LINE))} {plain(clip(words.function, _LINE))}".strip(),
        plain(clip(words.amount, _LINE)),
    ]
    if known is not None:
        cells.append("new" if is_new(finding, known) else "known")
    return f"| {' | '.join(cells)} |\n"


def _fold(number: int, finding: Finding, words: Said) -> str:
    where = clip(f"{words.where} {words.function}".strip(), _LINE)
    title = f"{plain(clip(finding.code, 40))} {plain(clip(words.title, _LINE))}"
    parts = [f"<details><summary>{number}. <b>{title}</b> {code(where)}</summary>", ""]
    if finding.location.source is not None:
        parts += [block(clip(finding.location.source, _TEXT), "python"), ""]
    amount = ", ".join(text for text in (words.amount, words.counts) if text)
    facts = [("how much", (amount,)), *words.details]
    for label, texts in facts:
        joined = "<br>".join(_text(label, clip(text, _LINE * 2)) for text in texts)
        parts.append(f"- **{label}**: {joined}")
    if finding.gb_id:
        parts.append(f"- **torch's id**: {code(clip(finding.gb_id, 40))}")
    parts += [f"- **fingerprint**: {code(clip(finding.fingerprint, _LINE))}", ""]
    if finding.suggestion:
        parts += _suggested(finding.suggestion)
    return "\n".join([*parts, "</details>", "", ""])


def _text(label: str, text: str) -> str:
    """Advice and reasons are sentences; guards and call paths are code."""
    return code(text) if label in ("guard", "via", "used at") else plain(text)


def _suggested(suggestion: Suggestion) -> list[str]:
    why = f": {lines(suggestion.why)}" if suggestion.why.strip() else ""
    summary = clip(f"{suggestion.summary} ({suggestion.status}{why})", _LINE * 2)
    parts = [f"Suggested rewrite: {plain(summary)}", ""]
    if suggestion.diff.strip():
        parts += [block(clip(suggestion.diff.strip("\n"), _TEXT), "diff"), ""]
    return parts
