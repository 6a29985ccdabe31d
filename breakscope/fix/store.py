"""The folder of fixes: a manifest for the overlay, and patch files that ``git apply`` takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from breakscope.errors import OutputError
from breakscope.fix.patch import Patch, clash, edits_by_file
from breakscope.fix.runs import module_of
from breakscope.fix.source_file import INSTALLED, Source, shown_name
from breakscope.inside import overlay
from breakscope.report import schema

_PATCH_NAME = re.compile(r"\d{4}-[\w-]+\.patch")


def manifest(patches: Sequence[Patch], sources: Mapping[str, Source], script: str) -> dict[str, Any]:
    """What :func:`breakscope.inside.overlay.install_fixes` takes, and ``overlay.check`` reads back."""
    config: dict[str, bool] = {}
    rules: dict[str, set[str]] = {}
    for patch in patches:
        config.update(patch.rewrite.config)
        for edit in patch.edits:
            rules.setdefault(edit.file, set()).add(patch.rule)
    return {
        "version": overlay.VERSION,
        "config": config,
        "files": [
            {
                "file": file,
                "module": module_of(file, script),
                "sha256": sources[file].sha256,
                "edits": [[edit.start, edit.end, edit.text] for edit in edits],
                "rules": sorted(rules[file]),
            }
            for file, edits in edits_by_file(patches).items()
        ],
    }


def write_manifest(
    folder: Path, patches: Sequence[Patch], sources: Mapping[str, Source], script: str
) -> None:
    """Write the manifest of a set of patches into a folder, whole or not at all. Raises OutputError."""
    data = json.dumps(manifest(patches, sources, script), indent=1)
    schema.write(data.encode(), folder / overlay.MANIFEST)


def write_folder(
    folder: Path,
    groups: Mapping[str, Sequence[Patch]],
    sources: Mapping[str, Source],
    script: str,
    root: Path,
) -> list[Path]:
    """Write a folder of fixes: the manifest and a series of patches; patches of before are removed.

    Args:
        groups: patches by subfolder; those of "" are accepted: they are in the manifest.
        root: folder to which names in the patches of the project's files are relative.

    Returns:
        The patch files. Those of one group apply one after the other, but for those that change what one
        before them changes, which apply to the file as it is: of them one has to be chosen. A patch of
        library code names its file as from ``site-packages`` on.

    Raises:
        OutputError: something cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for group in ("", "consent", "unproved"):
            for old in (folder / group).glob("*.patch"):
                if _PATCH_NAME.fullmatch(old.name):
                    old.unlink()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from error
    for group, patches in groups.items():
        series: list[Patch] = []
        for number, patch in enumerate((one for one in patches if one.edits), 1):
            apart = clash([*series, patch])
            place = folder / group / f"{number:04d}-{patch.findings[0].code}-{patch.rule}.patch"
            place.parent.mkdir(exist_ok=True)
            schema.write(_diff(patch, [] if apart else series, sources, root), place)
            written.append(place)
            series += [] if apart else [patch]
    write_manifest(folder, groups[""], sources, script)
    return written


def _diff(patch: Patch, before: Sequence[Patch], sources: Mapping[str, Source], root: Path) -> bytes:
    """What a patch changes in files that have others already; each file's part is in its own encoding."""
    was, now = edits_by_file(before), edits_by_file([*before, patch])
    parts = []
    for file in dict.fromkeys(edit.file for edit in patch.edits):
        source = sources[file]
        old, new = source.changed(was.get(file, ())), source.changed(now[file])
        diff = old.diff(new, shown_name(file, root))
        parts.append(diff.encode(source.encoding, errors="backslashreplace"))
    return b"".join(parts)


def export(manifest: Mapping[str, Any], command: str) -> str:
    """One module that applies the fixes of library code when it is imported. It needs no breakscope."""
    files = [{**one, "file": INSTALLED.sub("", one["file"])} for one in manifest["files"] if one["module"]]
    code = Path(overlay.__file__).read_text(encoding="utf-8")
    head = (
        f"# Written by {command}: import this before the libraries that it fixes.\n"
        f"# Fixed here: {', '.join(one['module'] for one in files) or 'nothing'}.\n"
    )
    data = json.dumps({**manifest, "files": files}, ensure_ascii=True, indent=1)
    return f"{head}{code}\n\ninstall_fixes(json.loads({_literal(data)}))\n"


def _literal(text: str) -> str:
    return 'r"""' + text + '"""' if '"""' not in text and not text.endswith("\\") else repr(text)
