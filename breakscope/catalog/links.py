"""Pages: torch's about its graph-break ids, and ours about our codes, where they are published."""

from __future__ import annotations

import re
from functools import cache

TORCH_PAGES = "https://meta-pytorch.github.io/compile-graph-break-site/gb"
_TORCH_GUIDE = "https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile"
# Torch's chapters on what a code's first digit stands for.
_CHAPTERS = {"1": "graph_breaks_index", "2": "recompilation"}
_ID = re.compile(r"GB\d{4}")
_CODE = re.compile(r"BS\d{3}")
_PACKAGE = "torch-breakscope"
_SOURCES = "/tree/main/docs"  # see hatch_build.py: where there is no site, the metadata names the folder


def torch_page(gb_id: str | None) -> str | None:
    """Torch's page of one of its ids, the one that its own messages name; None for what is no such id."""
    return f"{TORCH_PAGES}/{gb_id.lower()}.html" if gb_id and _ID.fullmatch(gb_id) else None


def help_page(code: str, gb_id: str | None = None) -> str:
    """The page about one of our codes; where ours is not published, torch's about its id, or about the kind.

    Args:
        gb_id: torch's id of a finding with this code.
    """
    known = _CODE.fullmatch(code)  # a code of a report that somebody wrote by hand may be any text
    if known and (site := _site()):
        return f"{site}/codes/{code}.html"
    chapter = _CHAPTERS.get(code[2]) if known else None
    general = f"{_TORCH_GUIDE}/programming_model{'.' + chapter if chapter else ''}.html"
    return torch_page(gb_id) or general


@cache
def _site() -> str | None:
    """Where our documentation is published, as the metadata of the installed package has it."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata(_PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a folder of sources
        return None
    named = dict(str(url).split(", ", 1) for url in urls)
    address = named.get("Documentation", "")
    return address.rstrip("/") if address.startswith("https://") and not address.endswith(_SOURCES) else None
