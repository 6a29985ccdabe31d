"""A verdict in words: what the formats of ``breakscope check`` say beside the findings."""

from __future__ import annotations

import dataclasses
from collections import Counter

from breakscope.project.suppressed import Comment
from breakscope.project.verdict import Check, Judged, State, Verdict
from breakscope.report.model import Report
from breakscope.view.text import count, harmless, short_path

Row = tuple[str, str]
"""A label and a line beside it; an empty label goes on with the one before."""

_SHOWN = 10


def headline(verdict: Verdict) -> str:
    """Passed or failed, and why, as one sentence."""
    if verdict.why:
        word = {1: "FAILED", 2: "NOT JUDGED", 3: "SAYS NOTHING"}[verdict.exit_code]
        return f"{word}: {harmless('; '.join(verdict.why))}"
    known = len(verdict.of("known"))
    rest = f"nothing new, {count(known, 'known finding')}" if known else "no finding"
    return f"passed: {rest}"


def failing(verdict: Verdict) -> Report:
    """The report with only the findings that make the verdict fail."""
    states: tuple[State, ...] = ("new", "known") if verdict.strict else ("new",)
    return dataclasses.replace(verdict.report, findings=verdict.of(*states))


def counting(verdict: Verdict) -> Report:
    """The report with only the findings that count and are not suppressed."""
    return dataclasses.replace(verdict.report, findings=verdict.of("new", "known"))


def known(verdict: Verdict) -> frozenset[str]:
    """Fingerprints of the findings that are not new."""
    return frozenset(one.fingerprint for one in verdict.of("known", "suppressed"))


def rows(verdict: Verdict, baseline: str, root: str | None, *, everything: bool) -> list[Row]:
    """What became of the findings that are not shown as failing, and the budgets."""
    folders = [folder for folder in (root, verdict.report.run.cwd) if folder]
    known_ones = [one for one in verdict.judged if one.state == "known"]
    suppressed = [one for one in verdict.judged if one.state == "suppressed"]
    found: list[Row] = []
    if known_ones:
        codes = Counter(known_one.finding.code for known_one in known_ones)
        kinds = ", ".join(f"{number} {harmless(code)}" for code, number in sorted(codes.items()))
        found.append(("known", f"{count(len(known_ones), 'finding')} in {harmless(baseline)}: {kinds}"))
        renamed = [known_one for known_one in known_ones if known_one.why]
        found += _listed("", [f"{_place(one, folders)}: {one.why}" for one in renamed], everything)
    for state in ("expected", "meant"):
        lines = [f"{_place(one, folders)}: {one.why}" for one in verdict.judged if one.state == state]
        found += _listed(state, lines, everything)
    lines = [f"{_place(one, folders)}: {one.why or 'no reason given'}" for one in suppressed]
    found += _listed("suppressed", lines, everything)
    gone = [
        harmless(f"{one.code} {one.file} {one.function}: {one.source or 'the function as a whole'}")
        for one in verdict.gone
    ]
    found += _listed("gone", gone, everything)
    if gone:
        found.append(("", "known, and not seen any more: --update-baseline takes them out"))
    for spent in verdict.spent:
        if spent.actual is not None and not spent.exceeded:
            found.append(("budget", harmless(spent.sentence)))
    if verdict.left_out:
        found.append(("left out", f"{count(verdict.left_out, 'finding')} by select, ignore, path or owner"))
    return found


def comments(check: Check, root: str | None, *, everything: bool) -> list[Row]:
    """The comments in source that did nothing."""
    folders = [folder for folder in (root,) if folder]

    def said(one: Comment) -> str:
        return f"{short_path(one.file, folders)}:{one.line} {harmless(one.said)}"

    unused = [f"{said(one)} suppresses nothing here" for one in check.unused]
    malformed = [said(one) for one in check.malformed]
    return _listed("unused", unused, everything) + _listed("not read", malformed, everything)


def _listed(label: str, lines: list[str], everything: bool) -> list[Row]:
    shown = lines if everything else lines[:_SHOWN]
    found = [(label if index == 0 else "", harmless(line)) for index, line in enumerate(shown)]
    if len(shown) < len(lines):
        found.append(("", f"and {len(lines) - len(shown):,} more … --all shows them"))
    return found


def _place(one: Judged, folders: list[str]) -> str:
    place = one.finding.location
    return f"{one.finding.code} {short_path(place.file, folders)}:{place.line}"
