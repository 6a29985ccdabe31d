"""Reports and comparisons as HTML pages: no network, safe with hostile text, printable, light and dark."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from breakscope.diagnose.compare import Comparison
from breakscope.render.html import comparison, view
from breakscope.render.html.findings import Caller
from breakscope.render.html.produced import ReadArtifact
from breakscope.render.html.sources import OnDisk, SourceReader, evidenced
from breakscope.report.model import Report

__all__ = ["OnDisk", "SourceReader", "evidenced", "render", "render_diff"]

_FOLDER = Path(__file__).parent


def render(
    report: Report,
    *,
    sources: SourceReader | None,
    known: frozenset[str] | None = None,
    artifacts: ReadArtifact | None = None,
) -> str:
    """The page of a report as text that is always valid UTF-8.

    Args:
        report: what to show.
        sources: reads the files that the report names, as :class:`OnDisk` does; None to show only the lines
            that the report itself holds.
        known: fingerprints of the findings that are not new; None where nothing is known about that, and then
            the page does not tell new from known.
        artifacts: gives the text of an artifact by its digest; None to show none of them.
    """
    made = view.build(report, sources, known, artifacts)
    return _pour("template.html.j2", "page.js", view=made, data=_data(made))


def render_diff(compared: Comparison, *, root: str | None) -> str:
    """The page of a comparison as text that is always valid UTF-8.

    Args:
        compared: what to show.
        root: folder to which paths are shown relative, besides those in which the scripts ran.
    """
    return _pour("diff.html.j2", "diff.js", view=comparison.build(compared, root=root))


def _pour(template: str, script: str, **values: Any) -> str:
    """A template with its values, and with the style and the scripts that its policy allows."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    files = {"style": _STYLE, "theme": _THEME, "script": script}
    assets = {kind: Markup(_asset(file)) for kind, file in files.items()}  # noqa: S704 - our own files
    return environment.get_template(template).render(**values, csp=_policy(script), **assets)


_STYLE, _THEME = "style.css", "theme.js"


def _data(made: view.View) -> dict[str, Any]:
    """What the page's script draws when it is asked for.

    Call paths share most of their entries, which are half of a large page: each stands there once.
    """
    frames: dict[Caller, int] = {}
    findings = []
    for finding in made.findings:
        path = [frames.setdefault(caller, len(frames)) for caller in finding.callers]
        findings.append({**asdict(replace(finding, callers=())), "callers": path})
    return {
        "findings": findings,
        "frames": [asdict(caller) for caller in frames],
        "files": [asdict(file) for file in made.files],
        "produced": asdict(made.produced) if made.produced else None,
        "codes": {code: asdict(entry) for code, entry in made.codes.items()},
    }


def _policy(script: str) -> str:
    """The content security policy: nothing is loaded, and only the page's own style and scripts run."""
    scripts = " ".join(f"'sha256-{_hash(file)}'" for file in (_THEME, script))
    style = f"'sha256-{_hash(_STYLE)}'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src {style}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(file: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8")


def _hash(file: str) -> str:
    return base64.b64encode(hashlib.sha256(_asset(file).encode("utf-8")).digest()).decode("ascii")
