"""A place in source, and the tool that names it: what lint needs of the model, which takes longer to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Owner = Literal["project", "library", "torch"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in source.

    Attributes:
        file: path as Python knew it (absolute when the script's was).
        function: qualified name where the source could be read, else the bare code name.
        source: the text of ``line`` without its indentation; None where the source is not on disk.
        indent: how many characters of indentation ``source`` lacks; columns count them in.
        owner: whose code it is: the user's project, an installed library, or torch itself.
    """

    file: str
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str | None = None
    source: str | None = None
    owner: Owner = "project"
    indent: int | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """Which breakscope wrote the report."""

    name: str
    version: str
