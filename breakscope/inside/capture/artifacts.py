"""What a compile produced, kept beside the report: graphs, generated code, guards, bytecode.

A text is stored once, compressed, under its SHA-256: recompiles, ranks and later reports in the same folder
share it. The report lists which compile had which.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from pathlib import Path
from typing import Any

from breakscope.errors import ArtifactError, OutputError
from breakscope.report import files
from breakscope.report.model import ArtifactKind
from breakscope.report.secrets import mask

FOLDER = "artifacts"

# Dynamo's names for them in its structured trace.
_RECORDS: dict[str, ArtifactKind] = {
    "dynamo_output_graph": "graph",
    "aot_joint_graph": "aot_joint",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "aot_inference_graph": "aot_inference",
    "inductor_output_code": "code",
    "dynamo_cpp_guards_str": "guards",
}
_BYTECODE: dict[str, ArtifactKind] = {
    "_ORIGINAL_BYTECODE": "bytecode_before",
    "_MODIFIED_BYTECODE": "bytecode_after",
}
KINDS = tuple(_RECORDS)
NAMED = (*_RECORDS, rf"[^\"]+(?:{'|'.join(_BYTECODE)})")  # some versions write these as named artifacts
_DIGEST = re.compile(r"[0-9a-f]{64}")


def kind_of(record: dict[str, Any]) -> ArtifactKind | None:
    """Which artifact a record of the structured trace holds, if it holds one."""
    for key, kind in _RECORDS.items():
        if key in record:
            return kind
    name = str((record.get("artifact") or {}).get("name"))
    if name in _RECORDS:
        return _RECORDS[name]
    return next((kind for suffix, kind in _BYTECODE.items() if name.endswith(suffix)), None)


class Store:
    """A folder of texts, each under its digest. Several processes may write into it at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, text: str) -> str:
        """Keep a text and return its digest. Raises OutputError: it cannot be written."""
        data = mask(text).encode("utf-8", errors="surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                files.replace(path, gzip.compress(data, 6, mtime=0))
        except OSError as error:
            raise OutputError(f"cannot keep artifacts in {self._folder}: {error.strerror}") from None
        return digest

    def get(self, digest: str) -> str:
        """The text with a digest. Raises ArtifactError: it is not there, or not what was stored."""
        path = self._path(digest)
        try:
            data = gzip.decompress(path.read_bytes())
        except FileNotFoundError:
            raise ArtifactError(
                f"{path} is missing: artifacts stay in the folder {FOLDER} beside their report, move both"
            ) from None
        except (OSError, EOFError, zlib.error) as error:
            raise ArtifactError(f"cannot read {path}: {error}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ArtifactError(f"cannot read {path}: its content was changed")
        return data.decode("utf-8", errors="replace")

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):  # a report is data: it must not lead out of the folder
            raise ArtifactError(f"{digest!r} is not the name of an artifact")
        return self._folder / digest[:2] / f"{digest}.gz"
