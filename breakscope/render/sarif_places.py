"""SARIF's locations, call paths and fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from breakscope.report.model import Finding, Frame, Location, Report, SourceEdit
from breakscope.view.text import first_line, harmless, package_path
from breakscope.view.unified import Replacement, replacements
from breakscope.view.words import absolute_path, clip, project_place, relative_path

MAX_TEXT = 4_000  # characters of one message
_ROOT, _PACKAGES = "SRCROOT", "SITEPACKAGES"
# Where these folders are differs from machine to machine; a reader supplies them.
BASES: dict[str, Any] = {
    _ROOT: {"description": {"text": "The root of the repository, or where the script ran."}},
    _PACKAGES: {"description": {"text": "The folder in which Python packages are installed."}},
}


def quoted(path: str) -> str:
    """A path as part of a URI, whatever characters it holds."""
    try:
        data = path.encode("utf-8", errors="surrogateescape")  # the bytes that the file system has
    except UnicodeEncodeError:
        data = path.encode("utf-8", errors="surrogatepass")
    return quote(data, safe="/")


def message(text: str) -> dict[str, str]:
    """A message whose text is text: SARIF reads ``[words](target)`` in it as a link."""
    return {"text": clip(text, MAX_TEXT).replace("](", "] (")}


@dataclass(frozen=True, slots=True)
class Places:
    """Turns the model's places into SARIF's; holds what all of them need."""

    report: Report
    root: str | None

    def relative(self, file: str) -> str | None:
        """A path inside the repository; None for any other."""
        return relative_path(file, self.report, self.root)

    def primary(self, finding: Finding) -> dict[str, Any]:
        """Where a finding is shown: in the project where its call path gets there."""
        place = project_place(finding)
        names = (
            [{"fullyQualifiedName": harmless(place.function), "kind": "function"}] if place.function else []
        )
        return {**self._location(place), **({"logicalLocations": names} if names else {})}

    def related(self, finding: Finding) -> list[dict[str, Any]]:
        """The library's line, if the primary location is its caller, and the functions that run eagerly."""
        found = []
        if project_place(finding) is not finding.location:
            found.append({**self._location(finding.location), "message": {"text": "It breaks here."}})
        for frame in finding.skipped:
            text = f"{frame.function} runs eagerly {frame.extent}: {first_line(frame.why)}"
            skipped = Frame(frame.file, frame.line, frame.function)
            found.append({**self._location(skipped), "message": message(harmless(text))})
        return [{**one, "id": number} for number, one in enumerate(found, 1)]

    def flow(self, finding: Finding) -> dict[str, Any] | None:
        """The call path, outermost frame first; None where it is not known."""
        if not finding.stack:
            return None
        steps = [
            {
                "location": {**self._location(frame), "message": message(harmless(frame.function) or "?")},
                "nestingLevel": level,
            }
            for level, frame in enumerate(finding.stack)
        ]
        return {"threadFlows": [{"locations": steps}]}

    def fixes(self, finding: Finding) -> list[dict[str, Any]]:
        """The suggested rewrite, if it is proved: others must not be applied by a program."""
        suggestion = finding.suggestion
        if suggestion is None or suggestion.status != "proved":
            return []
        changes = self._edited(suggestion.edits) or self._patched(finding, suggestion.diff)
        text = harmless(f"{suggestion.summary} ({suggestion.rule}, proved)")
        return [{"description": message(text), "artifactChanges": changes}] if changes else []

    def _edited(self, edits: Sequence[SourceEdit]) -> list[dict[str, Any]]:
        files: dict[str, list[dict[str, Any]]] = {}
        for edit in edits:
            region = {
                "startLine": edit.line,
                "startColumn": edit.column,
                "endLine": edit.end_line,
                "endColumn": edit.end_column,
            }
            change = {"deletedRegion": region, "insertedContent": {"text": edit.text}}
            files.setdefault(edit.file, []).append(change)
        return [
            {"artifactLocation": self._artifact(file), "replacements": changes}
            for file, changes in files.items()
        ]

    def _patched(self, finding: Finding, diff: str) -> list[dict[str, Any]]:
        """The changes of a report that has no edits, but for its diff."""
        try:
            patched = replacements(diff)
        except ValueError:  # a damaged diff is no fix; the suggestion itself stands in the properties
            return []
        return [
            {
                "artifactLocation": self._named(path, finding),
                "replacements": [_replacement(part) for part in parts],
            }
            for path, parts in patched.items()
        ]

    def _named(self, path: str, finding: Finding) -> dict[str, Any]:
        """A diff names a file from the root of the project; so the finding's own, if it ends like that."""
        own = finding.location.file.replace("\\", "/")
        same = own == path or own.endswith(f"/{path.lstrip('/')}")
        return self._artifact(finding.location.file if same else path)

    def _location(self, place: Location | Frame) -> dict[str, Any]:
        physical: dict[str, Any] = {"artifactLocation": self._artifact(place.file)}
        if place.line >= 1:
            physical["region"] = _region(place)
        return {"physicalLocation": physical}

    def _artifact(self, file: str) -> dict[str, Any]:
        inside = self.relative(file)
        if inside is not None:
            return {"uri": quoted(inside), "uriBaseId": _ROOT}
        installed = package_path(file)
        if installed is not None:
            return {"uri": quoted(installed), "uriBaseId": _PACKAGES}
        full = absolute_path(file, self.report)
        if full is None:
            return {"uri": quoted(file)}
        return {"uri": "file:///" + quoted(full).lstrip("/")}


def _region(place: Location | Frame) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": place.line}
    if isinstance(place, Frame):
        return region
    column, end_line, end_column = place.column, place.end_line or place.line, place.end_column
    if column is None or column < 1:
        return region
    region["startColumn"] = column
    forward = end_line > place.line or (end_column is not None and end_column > column)
    if end_column is not None and end_column >= 1 and end_line >= place.line and forward:
        region |= {"endLine": end_line, "endColumn": end_column}
    return region


def _replacement(change: Replacement) -> dict[str, Any]:
    after = change.start + len(change.removed)
    if change.open_end and change.removed:
        # The file's last line has no line break to take out, or gets none.
        region = {
            "startLine": change.start,
            "startColumn": 1,
            "endLine": after - 1,
            "endColumn": len(change.removed[-1]) + 1,
        }
        text = "\n".join(change.added)
    else:
        region = {"startLine": change.start, "startColumn": 1, "endLine": after, "endColumn": 1}
        text = "".join(f"{line}\n" for line in change.added)
    return {"deletedRegion": region, "insertedContent": {"text": text}}
