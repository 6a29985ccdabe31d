"""Writing proved rewrites into the user's own files: whole or not at all, and never anywhere else."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from breakscope.fix.patch import Patch, edits_by_file
from breakscope.fix.source_file import NotTextError, Source
from breakscope.report import files


def write(
    patches: Sequence[Patch], sources: Mapping[str, Source], root: Path
) -> tuple[list[str], dict[str, str]]:
    """Write patches into the files of a project.

    Args:
        sources: the files as they were when the patches were made; another content is left alone.
        root: the project; nothing outside it is written.

    Returns:
        The files written, and why others were not.
    """
    written: list[str] = []
    left: dict[str, str] = {}
    for file, edits in edits_by_file(patches).items():
        why = _why_not(file, patches, root)
        if why is None:
            try:
                replace(file, sources[file].data, sources[file].changed(edits).data)
            except NotTextError as error:
                why = str(error)
            except ChangedError:
                why = "it has changed since the rewrite was made; scan again"
            except OSError as error:
                why = f"it cannot be written: {error.strerror}"
        if why is None:
            written.append(file)
        else:
            left[file] = why
    return written, left


def as_written(patches: Sequence[Patch], root: Path) -> list[Patch]:
    """Of patches what :func:`write` would write: no settings, and nothing of a library."""
    files = {file for file in edits_by_file(patches) if _why_not(file, patches, root) is None}
    kept = ((patch, tuple(edit for edit in patch.edits if edit.file in files)) for patch in patches)
    return [
        dataclasses.replace(one, rewrite=dataclasses.replace(one.rewrite, edits=edits, config={}, options={}))
        for one, edits in kept
        if edits
    ]


def missed(left: Mapping[str, str], patches: Sequence[Patch], root: Path) -> set[str]:
    """Of the files that :func:`write` left alone those that it is for: what is not the project's is not."""
    return {edit.file for patch in as_written(patches, root) for edit in patch.edits} & left.keys()


def _why_not(file: str, patches: Sequence[Patch], root: Path) -> str | None:
    inside = os.path.realpath(file).startswith(os.path.join(os.path.realpath(root), ""))
    changing = (patch for patch in patches if any(edit.file == file for edit in patch.edits))
    owners = {finding.location.owner for patch in changing for finding in patch.findings}
    if owners != {"project"} or not inside:
        return "it is not a file of the project; run with it as an overlay: breakscope run --fixes"
    return None


class ChangedError(Exception):
    """The file is not what the rewrite was made for."""


def replace(file: str, old: bytes, new: bytes) -> None:
    """Put ``new`` in the place of a file that holds ``old``. Whatever happens, the file is one or the other.

    Mode bits, and a link that leads to the file, stay as they are.

    Raises:
        ChangedError: it does not hold ``old``, or another process is changing it.
        OSError: it cannot be read or written.
    """
    target = os.path.realpath(file)

    def look(path: str) -> None:
        # As late as can be, so that an editor that has just saved is not overruled.
        if Path(path).read_bytes() != old:
            raise ChangedError(path)

    with open(target, "rb") as held:
        # Of two that write one file at once, only the first finds what its rewrite was made for.
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ChangedError(target) from None
        except OSError:
            pass  # a file system without locks
        files.replace(target, new, mode=stat.S_IMODE(os.fstat(held.fileno()).st_mode), last_look=look)
