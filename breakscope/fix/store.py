"""The folder of fixes: a manifest for the overlay, and patch files that ``git apply`` takes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from breakscope.errors import OutputError
from breakscope.fix.candidates import Candidate
from breakscope.fix.runs import module_of
from breakscope.fix.text import Edits, Source
from breakscope.inside import overlay
from breakscope.report import schema

_PATCH_NAME = re.compile(r"\d{4}-[\w-]+\.patch")
_INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")


def manifest(patches: Sequence[Candidate], sources: Mapping[str, Source], script: str) -> dict[str, Any]:
    """What :func:`breakscope.inside.overlay.install_fixes` takes."""
    files: dict[str, list[Candidate]] = {}
    config: dict[str, bool] = {}
    for patch in patches:
        config.update(patch.rewrite.config)
        if patch.edits:
            files.setdefault(patch.file, []).append(patch)
    return {
        "version": overlay.VERSION,
        "config": config,
        "files": [
            {
                "file": file,
                "module": module_of(file, script),
                "sha256": sources[file].sha256,
                "edits": [list(edit) for edit in together(changes)],
                "rules": sorted({one.rule for one in changes}),
            }
            for file, changes in files.items()
        ],
    }


def together(patches: Sequence[Candidate]) -> Edits:
    """The edits of several patches of one file, sorted, each once."""
    return tuple(sorted({edit for one in patches for edit in one.edits}))


def overlapping(edits: Edits) -> bool:
    """Whether two of sorted edits touch the same text."""
    return any(
        second[0] < first[1] or (second[0] == first[0] and first[0] == first[1])
        for first, second in pairwise(edits)
    )


def write_manifest(
    folder: Path, patches: Sequence[Candidate], sources: Mapping[str, Source], script: str
) -> None:
    """Write the manifest of a set of patches into a folder, whole or not at all. Raises OutputError."""
    data = json.dumps(manifest(patches, sources, script), indent=1)
    schema.write(data.encode(), folder / overlay.MANIFEST)


def write_folder(
    folder: Path,
    groups: Mapping[str, Sequence[Candidate]],
    sources: Mapping[str, Source],
    script: str,
    root: Path,
) -> list[Path]:
    """Write a folder of fixes: the manifest and a series of patches; patches of before are removed.

    Args:
        groups: patches by subfolder; those of "" are accepted: they are in the manifest.
        root: folder to which names in the patches of the project's files are relative.

    Returns:
        The patch files. Those of one group apply one after the other; a patch of library code names its
        file as from ``site-packages`` on.

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
        state = dict(sources)
        for number, patch in enumerate((one for one in patches if one.edits), 1):
            before = state[patch.file]
            done = [one for one in patches[: patches.index(patch) + 1] if one.file == patch.file]
            after = sources[patch.file].changed(together(done))
            state[patch.file] = after
            place = folder / group / f"{number:04d}-{patch.findings[0].code}-{patch.rule}.patch"
            place.parent.mkdir(exist_ok=True)
            diff = before.diff(after, shown_name(patch.file, root))
            schema.write(diff.encode(before.encoding, errors="backslashreplace"), place)
            written.append(place)
    write_manifest(folder, groups[""], sources, script)
    return written


def shown_name(file: str, root: Path) -> str:
    """A file's name in a patch: relative to the project, or to where libraries are installed."""
    try:
        return Path(file).relative_to(os.path.realpath(root)).as_posix()
    except ValueError:
        return _INSTALLED.sub("", file).replace("\\", "/").lstrip("/")


def export(manifest: Mapping[str, Any], command: str) -> str:
    """One module that applies the fixes of library code when it is imported. It needs no breakscope."""
    files = [{**one, "file": _INSTALLED.sub("", one["file"])} for one in manifest["files"] if one["module"]]
    code = Path(overlay.__file__).read_text(encoding="utf-8")
    head = (
        f"# Written by {command}: import this before the libraries that it fixes.\n"
        f"# Fixed here: {', '.join(one['module'] for one in files) or 'nothing'}.\n"
    )
    data = json.dumps({**manifest, "files": files}, ensure_ascii=True, indent=1)
    return f"{head}{code}\n\ninstall_fixes(json.loads({_literal(data)}))\n"


def _literal(text: str) -> str:
    return 'r"""' + text + '"""' if '"""' not in text and not text.endswith("\\") else repr(text)
